# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers take time, the same for a request in every arm; and some requests are never answered."""
import http.client
import statistics
import time

from fieldtrial.load import http3
from fieldtrial.site import first_byte
from loopback import serving
from simulated import Answer, Outcome


def test_the_distribution():
    paths = [f'/b/64/gold-1-object-{number}' for number in range(20_000)]
    waits = sorted(first_byte.wait_s(1, path) for path in paths)
    assert abs(statistics.median(waits) / 0.060 - 1) < 0.03
    assert abs(waits[len(waits) * 95 // 100] / 0.432 - 1) < 0.05      # 60 ms times exp(1.645 * 1.2)
    assert abs(sum(first_byte.silent(1, path) for path in paths) / len(paths) - 0.01) < 0.003
    assert first_byte.wait_s(1, paths[0]) != first_byte.wait_s(2, paths[0])


def test_nginx_waits_that_long():
    with serving(first_byte_seed=3) as served:
        connection = http.client.HTTPConnection('127.0.0.1', served.ports[0], timeout=60)
        for path, body in (*((f'/b/64/x-{number}', None) for number in range(5)), ('/up/9/x', b'123456789')):
            begun = time.monotonic()
            connection.request('POST' if body else 'GET', path, body)
            answer = connection.getresponse()
            assert time.monotonic() - begun >= first_byte.wait_s(3, path)
            assert (answer.status, len(answer.read())) == (200, 0 if body else 64)


def test_late_answers_and_streams():
    with serving(first_byte_seed=3) as served:
        connection = http.client.HTTPConnection('127.0.0.1', served.ports[0], timeout=60)
        for path, least_s in (('/w/64/0.3/x', 0.3), ('/s/12000/192000/x', 0.4)):    # 12,000 bytes at 24,000 a second
            begun = time.monotonic()
            connection.request('GET', path)
            answer = connection.getresponse()
            assert (answer.status, len(answer.read())) == (200, int(path.split('/')[2]))
            assert time.monotonic() - begun >= least_s


def test_caddy_asks_for_leave_first(tmp_path):
    def handlers(*more):
        told = http3.configuration(tmp_path, tmp_path, *more)
        return [each['handler'] for each in told['apps']['http']['servers']['origin']['routes'][0]['handle']]
    assert handlers('/run/x') == ['reverse_proxy', *handlers()] and 'reverse_proxy' not in handlers()


def test_a_request_has_the_same_path_in_every_arm(tmp_path):
    """Whatever the order of the responses: the nth object of a page, or of a user, is the same."""
    for workload in ('backlogged', 'https-pages'):
        asked = []
        for name, wait in (('fast', lambda user: 0.1), ('slow', lambda user: 0.5 if user.cls == 'gold' else 0.2)):
            out = tmp_path / f'{workload}-{name}'
            out.mkdir()
            outcome = Outcome(out, lambda user, *_, wait=wait: Answer(wait=wait(user)), workload=workload)
            assert len(set(outcome.clients.asked)) == len(outcome.clients.asked)
            asked.append(set(outcome.clients.asked))
        assert asked[1] < asked[0]


def test_requests_that_nobody_answers_change_nothing(tmp_path):
    made = []
    for at_once in (True, False):
        out = tmp_path / str(at_once)
        out.mkdir()
        made.append(Outcome(out, workload='backlogged', duration_s=60, at_once=at_once))
    plain, taking_time = made
    rows = [sorted(map(str, each.requests)) for each in made]       # those of one moment have no order
    assert rows[0] == rows[1] and plain.clients.silent == []
    assert 5 < len(taking_time.clients.silent) == taking_time.run.records.outcomes['silent']
