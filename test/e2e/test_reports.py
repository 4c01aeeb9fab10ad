# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports for administrators: msfrs and msfrs-metrics, and the msfrs:: codes in access.log."""
import base64
import http.client
import re
import ssl

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as older_parser

from background import PATIENCE, content
from both_ends import both_ends_of
from fieldtrial.site.world import FORWARD_PORT
from gateway import NARROW, OFF

HELD = ('held_p50', 'held_p95', 'held_p99', 'held_per_mb')
OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'


def scrape(link):
    """(Content-Type, text) of the metrics, requested as Prometheus does: directly by the manager's path."""
    with link.world.gateway.inside():
        connection = http.client.HTTPConnection('127.0.0.1', FORWARD_PORT, timeout=PATIENCE)
        connection.connect()
    connection.request('GET', '/squid-internal-mgr/msfrs-metrics',
                       headers={'Accept': 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'})
    answer = connection.getresponse()
    assert answer.status == 200
    text = answer.read().decode()
    connection.close()
    return answer.getheader('Content-Type'), text


def families(text):
    """The metric families of OpenMetrics text; the parser is strict."""
    found = list(text_string_to_metric_families(text))
    assert all(family.documentation and family.name.startswith('msfrs_') for family in found)
    return found


def samples(text):
    """OpenMetrics text as {(name, label value or None...): value}."""
    found = {}
    for family in families(text):
        for sample in family.samples:
            found[(sample.name, *sample.labels.values())] = sample.value
    return found


def held_metrics(link, cls):
    """The metrics of a class for HELD."""
    found = samples(scrape(link)[1])
    seconds, received = found['msfrs_class_held_seconds_sum', cls], found['msfrs_class_received_bytes_total', cls]
    return [*(found['msfrs_class_held_seconds', cls, quantile] for quantile in ('0.5', '0.95', '0.99')),
            1e6 * seconds / received if received else None]


@pytest.fixture
def busy(slow_link):
    """gold's first user waits for a server that does not respond; behind it wait two requests of bronze, and one of
    gold; a third request of bronze was refused. Without quanta, as a silent server would lose its slot."""
    gateway = slow_link.gateway.start(NARROW, 'msfrs_quantum none', 'msfrs_queue max_per_user=2', 'msfrs_user src6/64')
    gold, bronze = slow_link.of('gold')[0], slow_link.of('bronze')[0]
    slow_link.first = slow_link.users.get(gold, gate='open')
    gateway.wait_for(queued=0, in_flight=1)
    slow_link.waiting = [slow_link.users.get(who, size=size)
                         for who, size in ((bronze, 1000), (bronze, 2000), (gold, 100_000))]
    gateway.wait_for(queued=3, in_flight=1)
    slow_link.refused = slow_link.users.get(bronze).wait()
    assert slow_link.refused.status == 503
    return slow_link


def test_the_report(busy):
    report = busy.gateway.report()
    assert report['scheduling'] is True
    assert report['window']['outstanding'] == 1 and report['window']['limit'] == 1
    gold, silver, bronze = report['classes']
    assert report['holding'] == 'yes, because 3 wait and the window is full (W is 1 of W+ 1.00)'
    assert report['window']['queue_target'] is None, 'the window of the paper'
    names = ('name', 'default', 'weight', 'users', 'queued', 'paused', 'in_flight', 'sending', 'asked', 'silent',
             'requests', 'exchanges')
    weights = busy.world.weights
    assert [gold[name] for name in names] == ['gold', False, weights['gold'], 1, 1, 0, 1, 0, 1, 0, 2, 0]
    assert [silver[name] for name in names] == ['silver', False, weights['silver'], 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert [bronze[name] for name in names] == ['bronze', True, weights['bronze'], 1, 2, 0, 0, 0, 0, 0, 3, 0]
    assert bronze['refused'] == {'per_user': 1, 'total': 0, 'admission': 0, 'max_wait': 0}
    users = {row['user']: (row['class'], row['queued'], row['in_flight']) for row in report['top_users']}
    assert users == {busy.of('gold')[0].v4: ('gold', 1, 1), busy.of('bronze')[0].v4: ('bronze', 2, 0)}
    server = busy.world.servers[0].v4
    assert [(row['user'], row['class'], row['host'], row['what']) for row in report['held']] == [
        (who.v4, who.cls, server, 'request') for who in (*2 * busy.of('bronze')[:1], busy.of('gold')[0])]
    waited = [row['waited'] for row in report['held']]
    assert waited == sorted(waited, reverse=True)
    busy.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (busy.first, *busy.waiting))
    busy.gateway.rest()
    assert busy.gateway.report()['holding'] == 'no, because nobody waits (W is 0 of W+ 1.00)'
    assert busy.gateway.report()['held'] == []
    classes = busy.gateway.classes()
    assert classes['gold']['bytes'] > 100_000 and classes['bronze']['bytes'] > 3000
    for row in classes.values():
        assert held_metrics(busy, row['name']) == pytest.approx([row[name] for name in HELD], abs=1e-4, rel=1e-5)
    assert 0 < classes['bronze']['held_p50'] <= classes['bronze']['held_p95'] <= classes['bronze']['held_p99']
    assert classes['bronze']['held_per_mb'] > 0 and classes['silver']['held_per_mb'] is None
    found = samples(scrape(busy)[1])
    for row in classes.values():
        unfinished = found['msfrs_class_unfinished_byte_seconds_total', row['name']]
        assert unfinished == pytest.approx(row['unfinished'], abs=1)
    assert classes['bronze']['unfinished'] > 0 and classes['silver']['unfinished'] == 0
    assert {name: value > 0 for (name, *_), value in found.items() if 'wanted' in name} == {
        'msfrs_link_wanted_seconds_total': True, 'msfrs_link_wanted_bytes_total': True}


def test_pauses_between_quanta_are_time_held(slow_link):
    """A tunnel with several exchanges, as with HTTP/2: the page is released at once and held from quantum to quantum.
    That shows while it lasts, and in access.log."""
    gold, guest = slow_link.of('gold')[0], slow_link.of('bronze')[0]
    page = content('page', 0, 500_000)
    with both_ends_of(slow_link, (NARROW, 'msfrs_arbiter msf lag=0 favour=0')) as ends:
        gateway = slow_link.gateway
        tunnel = ends.tunnel(guest, ssl.TLSVersion.TLSv1_3)
        gateway.wait_for(queued=0, paused=0, in_flight=0, silent=1)
        busy = ends.tunnel(gold)
        busy.server.say(bytes(16_000_000))
        gateway.wait_until(lambda: len(busy.client.heard) > 100_000, 'it flows')
        tunnel.client.say(b'a request')
        tunnel.server.wait_for(b'a request')
        tunnel.server.say(page)
        gateway.wait_until(lambda: gateway.classes()['bronze']['held_p95'] > 1, 'it is held for a second')
        assert len(tunnel.client.heard) < len(page), 'and goes on'
        tunnel.client.wait_for(page)
        busy.client.leave(reset=True)
        gateway.wait_for(queued=0, paused=0, in_flight=0, silent=1)
        tunnel.client.say_good_bye()
        rows = gateway.wait_until(lambda: [row for row in gateway.access_log() if row['class'] == 'bronze'], 'its line')
        held = int(rows[0]['total_wait']) / 1000
        assert int(rows[0]['wait']) + int(rows[0]['exchange_wait']) < 500 * held, 'most of it between quanta'
        bronze = gateway.classes()['bronze']
        assert bronze['held_p95'] == pytest.approx(held, rel=0.1)
        assert bronze['held_per_mb'] == pytest.approx(1e6 * held / int(rows[0]['bytes']), rel=0.01)
        found = samples(scrape(slow_link)[1])
        assert found['msfrs_class_held_seconds_sum', 'bronze'] == pytest.approx(held, abs=2e-3)
        assert found['msfrs_class_held_seconds', 'bronze', '0.95'] == pytest.approx(bronze['held_p95'], abs=1e-4)
        ends.none_left()


def test_all_users(busy):
    users = yaml.safe_load(busy.gateway.page('msfrs-users'))
    assert users == {'users': busy.gateway.report()['top_users']} and len(users['users']) == 2
    busy.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (busy.first, *busy.waiting))
    busy.gateway.reconfigure(on=False)
    assert yaml.safe_load(busy.gateway.page('msfrs-users')) == {'users': []}


def test_every_byte_is_charged_once(slow_link):
    """Headers and bodies as the servers wrote them, in one quantum or in many, to the requesting class and user."""
    gateway = slow_link.gateway.start(NARROW, 'msfrs_quantum 8 KB')
    sizes = {slow_link.of('gold')[0]: (1, 3_000, 70_000), slow_link.of('gold')[1]: (16_384,),
             slow_link.of('bronze')[0]: (150_000, 0)}
    fetches = {user: [slow_link.users.get(user, size=size, framing=framing) for size in sizes[user]
                      for framing in ('length', 'chunked', 'close')] for user in sizes}
    for user, asked in fetches.items():
        assert all(fetch.wait().good for fetch in asked), asked
        assert sum(fetch.received for fetch in asked) == 3 * sum(sizes[user])
    gateway.rest()
    report, classes = gateway.report(), gateway.classes()
    assert sum(row['bytes'] for row in classes.values()) == slow_link.origin.sent
    top = {row['user']: row['bytes'] for row in report['top_users']}
    assert sum(top.values()) == slow_link.origin.sent
    for user, asked in fetches.items():
        body = sum(fetch.received for fetch in asked)
        assert body < top[user.v4] < body + 300 * len(asked) + body / 100
    assert [row['user'] for row in report['top_users']] == sorted(top, key=top.get, reverse=True)
    assert classes['bronze']['quanta'] > 3 * 150_000 / 8192 / 2
    logged = sum(int(row['bytes']) for row in gateway.access_log(18))
    assert logged == slow_link.origin.sent


def test_the_windows_history(slow_link):
    gateway = slow_link.gateway.start('msfrs_window interval=100ms')
    history = gateway.wait_until(lambda: len(gateway.report()['window']['history']) >= 3 and
                                 gateway.report()['window']['history'], 'three intervals')
    assert all(set(entry) == {'ago', 'outstanding', 'limit', 'utilisation', 'full', 'own'} for entry in history)
    assert [entry['ago'] for entry in history] == sorted((entry['ago'] for entry in history), reverse=True)
    assert not any(entry['full'] for entry in history), 'nobody had to wait'
    assert gateway.wait_until(lambda: len(gateway.report()['window']['history']) == 120, 'as many as are kept')


def test_the_metrics_are_the_reports_figures(busy):
    report = busy.gateway.report()
    kind, text = scrape(busy)
    assert kind == OPENMETRICS
    found = samples(text)
    assert found['msfrs_scheduling',] == 1
    assert found['msfrs_link_capacity_bytes_per_second',] == busy.world.rate_bps / 8
    assert found['msfrs_window_outstanding_responses',] == report['window']['outstanding']
    assert found['msfrs_window_limit_responses',] == report['window']['limit']
    assert found['msfrs_holding',] == 1
    assert report['window']['used_while_waiting'] >= 0
    for row in report['classes']:
        name = row['name']
        for metric, figure in {'weight': 'weight', 'users': 'users', 'queued_requests': 'queued',
                               'paused_responses': 'paused', 'in_flight_requests': 'in_flight',
                               'sending_responses': 'sending', 'asked_requests': 'asked', 'silent_requests': 'silent',
                               'exchanges_total': 'exchanges',
                               'service_bytes': 'service', 'requests_total': 'requests',
                               'received_bytes_total': 'bytes', 'quanta_total': 'quanta'}.items():
            assert found[f'msfrs_class_{metric}', name] == row[figure], metric
        for reason, count in row['refused'].items():
            assert found['msfrs_class_refused_requests_total', name, reason] == count
        assert found['msfrs_class_held_seconds', name, '0.95'] >= row['held_p95'] - 1e-4, 'it goes on'
        assert found['msfrs_class_held_seconds_count', name] == row['queued'] + row['in_flight']
    # Without the content type, they are parsed by the rules of the older format.
    assert {sample.name for family in older_parser(text) for sample in family.samples} == {key[0] for key in found}


def test_the_list_of_the_held_is_bounded(slow_link):
    gateway = slow_link.gateway.start(NARROW, 'msfrs_quantum none')
    blocker = slow_link.users.get(slow_link.of('gold')[0], gate='open')
    gateway.wait_for(queued=0, in_flight=1)
    waiting = [slow_link.users.get(slow_link.of('silver')[0]) for _ in range(60)]
    gateway.wait_for(queued=60, in_flight=1)
    assert len(gateway.report()['held']) == 50
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (blocker, *waiting))


def test_the_host_of_who_is_held_before_its_tls(slow_link):
    """Intercepted: the name that the client requests, or the address."""
    slow_link.world.start_names()
    slow_link.gateway.start(NARROW, 'msfrs_quantum none').intercept_tls()
    gateway = slow_link.gateway
    blocker = slow_link.users.get(slow_link.of('gold')[0], gate='open')
    gateway.wait_for(queued=0, in_flight=1)
    waiting = [slow_link.users.get(slow_link.of('silver')[0], via='tls', name=name) for name in ('s01.test', None)]
    gateway.wait_for(queued=2, in_flight=1)
    assert {row['host'] for row in gateway.report()['held']} == {'s01.test', slow_link.world.servers[0].v4}
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (blocker, *waiting))


def reset_window(link, password=None):
    """(status, text) of the action, without the frame that Squid 7 adds to each process's text."""
    with link.world.gateway.inside():
        connection = http.client.HTTPConnection('127.0.0.1', FORWARD_PORT, timeout=PATIENCE)
        connection.connect()
    credentials = base64.b64encode(f'admin:{password}'.encode()).decode()
    connection.request('GET', '/squid-internal-mgr/msfrs-reset-window',
                       headers={'Authorization': f'Basic {credentials}'} if password else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, re.sub(r'^by kid\d+ \{\n(.*)\} by kid\d+\n\n$', r'\1', text, flags=re.DOTALL)


def test_the_window_is_reset_only_with_a_password(slow_link):
    gateway = slow_link.gateway.start(NARROW)
    assert reset_window(slow_link, 'any')[0] == 404, 'no password is configured: there is no such action'
    gateway.reconfigure(NARROW, 'cachemgr_passwd secret msfrs-reset-window')
    assert reset_window(slow_link)[0] == reset_window(slow_link, 'wrong')[0] == 401
    assert reset_window(slow_link, 'secret') == (200, 'W+ is 1.00 again\n')
    assert 'msfrs: W+ is 1.00 again, by Cache Manager request' in gateway.cache_log()


def test_a_window_that_grew_is_reset_under_load(slow_link):
    """A rate that the link cannot reach makes q* grow; no request is lost."""
    gateway = slow_link.gateway.start('msfrs_window interval=100ms', 'cachemgr_passwd secret msfrs-reset-window',
                                      rate=4e6)
    load = slow_link.users.load(slow_link.world.users, inflight=8, size=20_000)
    start = gateway.report()['window']['queue_target']
    assert start >= 0.03
    gateway.wait_until(lambda: gateway.report()['window']['queue_target'] >= 0.09, 'a window that has grown')
    assert samples(scrape(slow_link)[1])['msfrs_window_queue_target_seconds',] >= 0.09
    assert reset_window(slow_link, 'secret') == (200, 'the queue target is 30.0 ms again\n')
    assert [fetch for fetch in load.stop() if not fetch.good] == []
    gateway.rest()


def test_nothing_is_scheduled(slow_link):
    slow_link.gateway.start(on=False)
    assert yaml.safe_load(slow_link.gateway.page('msfrs')) == OFF
    assert samples(scrape(slow_link)[1]) == {('msfrs_scheduling',): 0}
    fetch = slow_link.users.get(slow_link.of('gold')[0]).wait()
    assert fetch.good
    (row,) = slow_link.gateway.access_log(1)
    assert {row[name] for name in ('class', 'user', 'wait', 'total_wait', 'exchanges', 'exchange_wait', 'bytes',
                                   'quanta', 'window', 'window_limit', 'refusal')} == {'-'}


def test_why_was_i_held(busy):
    """access.log tells the class, how long, and how full the window was; and why a request was refused."""
    busy.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (busy.first, *busy.waiting))
    rows = {row['url'].rpartition('/')[2].rstrip('?'): row for row in busy.gateway.access_log(5)}
    first, one, two, large, refused = (rows[fetch.key] for fetch in (busy.first, *busy.waiting, busy.refused))
    assert (first['class'], first['window'], first['window_limit'], first['quanta']) == ('gold', '1', '1.00', '1')
    assert int(first['wait']) <= int(one['wait']) <= int(one['total_wait'])
    for row, size in ((one, 1000), (two, 2000), (large, 100_000)):
        assert row['window'] == '1' and row['refusal'] == '-' and int(row['bytes']) > size
    assert (one['class'], one['user']) == ('bronze', busy.of('bronze')[0].v4)
    assert large['class'] == 'gold' and int(large['quanta']) >= 1
    assert (refused['class'], refused['wait'], refused['bytes'], refused['quanta'], refused['window']) == (
        'bronze', '-', '0', '0', '-')
    assert refused['refusal'] == refused['err_detail'] == 'MSFRS_USER_QUEUE_FULL'
