# SPDX-License-Identifier: GPL-2.0-or-later
"""What the reports, the metrics and the log say is what happened; who counts as one user."""
import base64
import http.client
import ipaddress
import itertools
import math
import time

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fieldtrial.world import FORWARD_PORT
from gateway import NARROW

pytestmark = pytest.mark.link(rate_bps=8e6, rtts_ms=(2.0,), users=(2, 2, 2))

#: Class, number of the user, sizes of what he asks for.
ASKED = (('gold', 0, (1, 3_000, 70_000)), ('gold', 1, (16_384,)), ('bronze', 0, (150_000, 10)))


@pytest.fixture
def served(slow_link):
    """A gateway at rest that has served ASKED; `fetches` by class."""
    gateway = slow_link.gateway.start('msfrs_window target=95% interval=1min growth=3 reserve=25%',
                                      'msfrs_quantum 8 KB', 'msfrs_queue max_wait=40s max_per_user=50 max_queued=500')
    slow_link.fetches = {name: [] for name in slow_link.world.weights}
    for name, number, sizes in ASKED:
        for size in sizes:
            slow_link.fetches[name].append(slow_link.users.get(slow_link.of(name)[number], size=size))
    assert all(fetch.wait().good for fetch in itertools.chain(*slow_link.fetches.values()))
    gateway.rest()
    return slow_link


def test_report(served):
    report, classes = served.gateway.report(), served.gateway.classes()
    assert report['scheduling'] is True
    assert report['link'] == {'rate': 8_000_000, 'interface': 'wan0', 'metered': True, 'overhead': 0.06, 'rtt': 0.3}
    window = report['window']
    assert {name: window[name] for name in ('outstanding', 'target', 'interval', 'growth', 'reserve')} == {
        'outstanding': 0, 'target': 0.95, 'interval': 60, 'growth': 3, 'reserve': 0.25}
    assert window['limit'] >= 1
    assert {name: report[name] for name in ('quantum', 'max_wait', 'max_per_user', 'max_queued', 'arbiter', 'admission')} == {
        'quantum': 8192, 'max_wait': 40, 'max_per_user': 50, 'max_queued': 500, 'arbiter': 'msf', 'admission': 'none'}
    # Every byte that the servers wrote is charged, once: heads and bodies.
    assert sum(row['bytes'] for row in classes.values()) == served.origin.sent
    for name, fetches in served.fetches.items():
        row, body = classes[name], sum(fetch.received for fetch in fetches)
        assert (row['weight'], row['default']) == (served.world.weights[name], name == 'bronze')
        assert row['requests'] == row['waits'] == len(fetches)
        assert body <= row['bytes'] <= body + 200 * len(fetches)
        assert row['quanta'] >= sum(math.ceil(fetch.received / 8192) for fetch in fetches) / 2
        assert row['refused'] == {'per_user': 0, 'total': 0, 'admission': 0, 'max_wait': 0}
        assert 0 <= row['wait_p50'] <= row['wait_p95'] <= row['wait_p99'] < 10
    top = report['top_users']
    assert [(row['user'], row['class']) for row in top] == [
        (served.of('bronze')[0].v4, 'bronze'), (served.of('gold')[0].v4, 'gold'), (served.of('gold')[1].v4, 'gold')]
    assert sum(row['bytes'] for row in top) == served.origin.sent


def test_window_history(slow_link):
    gateway = slow_link.gateway.start('msfrs_window interval=200ms')
    load = slow_link.users.load(slow_link.world.users)
    gateway.wait_until(lambda: len(gateway.report()['window']['history']) > 15, 'fifteen intervals')
    load.stop(abort=True)
    history = gateway.report()['window']['history']
    agos = [sample['ago'] for sample in history]
    assert agos == sorted(agos, reverse=True) and agos[-1] < 20
    assert all(sample['limit'] >= 1 and 0 <= sample['utilisation'] < 2 for sample in history)
    assert any(sample['full'] and sample['utilisation'] > 0.8 for sample in history)


def test_metrics_are_the_reports_figures(served):
    with served.world.gateway.inside():
        connection = http.client.HTTPConnection('127.0.0.1', FORWARD_PORT, timeout=20)
        connection.connect()
    connection.request('GET', '/squid-internal-mgr/msfrs-metrics')
    answer = connection.getresponse()
    assert answer.getheader('Content-Type').startswith('application/openmetrics-text')
    text = answer.read().decode()
    connection.close()
    samples = {(sample.name, *sample.labels.values()): sample.value
               for family in text_string_to_metric_families(text) for sample in family.samples}
    report = served.gateway.report()
    assert samples['msfrs_scheduling',] == samples['msfrs_link_metered',] == 1
    assert samples['msfrs_link_capacity_bytes_per_second',] == 1_000_000
    assert samples['msfrs_window_outstanding_responses',] == 0
    assert samples['msfrs_window_limit_responses',] == pytest.approx(report['window']['limit'], abs=0.01)
    assert samples['msfrs_window_target_ratio',] == 0.95
    for row in report['classes']:
        name = row['name']
        for metric, figure in (('weight', 'weight'), ('users', 'users'), ('queued_requests', 'queued'),
                               ('paused_responses', 'paused'), ('in_flight_requests', 'in_flight'),
                               ('service_bytes', 'service'), ('requests_total', 'requests'),
                               ('received_bytes_total', 'bytes'), ('quanta_total', 'quanta'),
                               ('wait_seconds_count', 'waits')):
            assert samples[f'msfrs_class_{metric}', name] == row[figure], (metric, name)
        for quantile, figure in (('0.5', 'wait_p50'), ('0.95', 'wait_p95'), ('0.99', 'wait_p99')):
            assert samples['msfrs_class_wait_seconds', name, quantile] == pytest.approx(row[figure], abs=1e-4)
        for reason, count in row['refused'].items():
            assert samples['msfrs_class_refused_requests_total', name, reason] == count


def test_access_log_says_why_somebody_was_held(slow_link):
    gateway, user = slow_link.gateway.start(NARROW, 'msfrs_quantum 16 KB'), slow_link.of('gold')[0]
    blocker = slow_link.users.get(slow_link.of('bronze')[0], 'blocker', gate='open')
    gateway.wait_for(queued=0, in_flight=1)
    began = time.monotonic()
    held = slow_link.users.get(user, 'held', size=100_000)
    gateway.wait_for(queued=1, in_flight=1)
    time.sleep(0.5)
    slow_link.origin.open_gate('open')
    assert held.wait().good and blocker.wait().good
    took = (held.t_end - began) * 1000
    rows = {row['url'].split('/')[-1].rstrip('?'): row for row in gateway.access_log(2)}
    row = rows['held']
    assert (row['class'], row['user'], row['client'], row['refusal']) == ('gold', user.v4, user.v4, '-')
    assert (row['window'], row['window_limit'], row['status']) == ('1', '1.00', '200')
    assert 500 <= int(row['wait']) <= int(row['total_wait']) <= took + 1
    assert 100_000 < int(row['bytes']) < 100_200
    assert 3 <= int(row['quanta']) <= 7
    assert (rows['blocker']['wait'], rows['blocker']['quanta']) == ('0', '1')


HELPER = """#!/bin/sh
while read -r _; do echo OK; done
"""


def users_reported(link, lines, requests):
    """Names of users in the report, in the order in which they came; requests: arguments of Users.get."""
    link.gateway.start(*lines)
    for how in requests:
        assert link.users.get(**how).wait().good, how
    link.gateway.rest()
    names = [row['user'] for row in link.gateway.access_log(len(requests))]
    assert {row['user'] for row in link.gateway.report()['top_users']} == set(names)
    return names


def test_users_by_address(slow_link):
    one, two = slow_link.of('gold')
    assert users_reported(slow_link, ['msfrs_user src'], [
        {'user': one}, {'user': two}, {'user': one, 'via': 'intercept'}, {'user': one, 'family': 6}]) == [
            one.v4, two.v4, one.v4, one.v6]


def test_users_by_network(slow_link):
    one, two = slow_link.of('gold')
    network = str(ipaddress.ip_network(f'{one.v6}/64', strict=False))
    assert users_reported(slow_link, ['msfrs_user src6/64'], [{'user': one}, {'user': one, 'family': 6}]) == [
        one.v4, network]
    wider = str(ipaddress.ip_network(f'{one.v6}/52', strict=False))
    slow_link.gateway.reconfigure('msfrs_user src6/52')
    for user in (one, two):
        assert slow_link.users.get(user, family=6).wait().good
    assert [row['user'] for row in slow_link.gateway.access_log(4)][2:] == [wider, wider]


def test_users_by_login(slow_link):
    """Who authenticates is known by name, from wherever; who does not, by address."""
    helper = slow_link.world.directory / 'helper'
    helper.write_text(HELPER)
    helper.chmod(0o755)
    one, two = slow_link.of('gold')
    anna = 'Proxy-Authorization: Basic ' + base64.b64encode(b'anna:secret').decode()
    slow_link.gateway.early = (f'auth_param basic program {helper}', 'acl known proxy_auth REQUIRED',
                               'acl asked src 198.18.16.0/20', 'http_access allow asked known',
                               'http_access deny asked')
    assert users_reported(slow_link, ['msfrs_user login'], [
        {'user': one, 'header': anna}, {'user': two, 'header': anna}, {'user': slow_link.of('bronze')[0]}]) == [
            'login=anna', 'login=anna', slow_link.of('bronze')[0].v4]
    assert slow_link.users.get(one).wait().status == 407


def test_users_by_hardware_address(slow_link):
    """All users of this site share one network card."""
    one, two = slow_link.of('gold')
    card = slow_link.world.users_host.run('cat', '/sys/class/net/eth0/address').strip()
    assert users_reported(slow_link, ['msfrs_user mac'], [
        {'user': one}, {'user': two, 'via': 'intercept'}, {'user': one, 'family': 6}]) == [
            f'mac={card}', f'mac={card}', one.v6]
