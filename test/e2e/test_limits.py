# SPDX-License-Identifier: GPL-2.0-or-later
"""The limits of msfrs_queue: up to them every request waits and is served; beyond, a clear error, counted and logged.
"""
import re

import pytest

from background import PATIENCE
from gateway import NARROW

pytestmark = pytest.mark.link(rate_bps=8e6, rtts_ms=(2.0,), users=(2, 2, 2))


def hold_up(link, gate='open'):
    """Holds the only slot in the window until the gate opens."""
    blocker = link.users.get(link.of('silver')[0], 'blocker', gate=gate)
    link.gateway.wait_for(queued=0, in_flight=1)
    return blocker


def refusals(link):
    """All refusals by (class, reason), in the report and, identically, in the metrics."""
    def report():
        return {(name, reason): count for name, row in link.gateway.classes().items()
                for reason, count in row['refused'].items() if count}
    pattern = re.compile(r'^msfrs_class_refused_requests_total\{class="(\w+)",reason="(\w+)"\} (\d+)$', re.MULTILINE)
    before = report()
    metrics = {(name, reason): int(count) for name, reason, count in pattern.findall(link.gateway.page('msfrs-metrics'))
               if count != '0'}
    if metrics != before:       # under load there may have been another one meanwhile
        after = report()
        assert all(before.get(key, 0) <= metrics.get(key, 0) <= after.get(key, 0) for key in {*metrics, *after}), (
            before, metrics, after)
    return metrics


def assert_refused(fetch, sentence, retry_after):
    """A page for people, and Retry-After for programs."""
    assert fetch.wait().status == 503 and fetch.whole, fetch
    assert fetch.headers['retry-after'] == str(retry_after)
    assert fetch.headers['x-squid-error'].startswith('ERR_MSFRS_QUEUE')
    assert fetch.headers['content-type'].startswith('text/html')
    page = fetch.text.decode()
    assert sentence in page and 'The Internet connection is busy' in page
    assert not re.search(r'%[A-Za-z]', page), 'a code that was not replaced'


def rows_of(link, client, count):
    def rows():
        return [row for row in link.gateway.access_log() if row['client'] == client]
    link.gateway.wait_until(lambda: len(rows()) == count, lambda: f'{count} rows: {rows()}')
    return rows()


def test_a_thousand_queued_requests_are_all_answered(slow_link):
    """Five users with 200 each: the limit. One more is refused; another user's is not."""
    gateway = slow_link.gateway.start(NARROW, 'msfrs_queue max_per_user=200 max_wait=10min')
    blocker = hold_up(slow_link)
    sixth = slow_link.of('silver')[0]
    five = [user for user in slow_link.world.users if user is not sixth]
    queued = [slow_link.users.get(user, size=700 + number) for number in range(200) for user in five]
    gateway.wait_for(queued=1000, in_flight=1)
    for user in five:
        assert slow_link.users.get(user).wait().status == 503
    modest = slow_link.users.get(sixth)
    gateway.wait_for(queued=1001, in_flight=1)
    assert slow_link.origin.keys() == ['blocker']
    slow_link.origin.open_gate('open')
    for number, fetch in enumerate(queued):
        assert fetch.wait(3 * PATIENCE).good and fetch.received == 700 + number // 5, fetch
    assert blocker.wait().good and modest.wait().good
    gateway.rest()
    assert len(slow_link.origin.keys()) == 1002
    assert refusals(slow_link) == {('gold', 'per_user'): 2, ('silver', 'per_user'): 1, ('bronze', 'per_user'): 2}
    assert gateway.total('requests') == 1007


@pytest.mark.parametrize('count', (400, 500))
def test_one_address_may_have_the_whole_queue(slow_link, count):
    """A filter, a NAT or a carrier's NAT in front of the gateway is one user."""
    gateway = slow_link.gateway.start(NARROW, 'msfrs_queue max_wait=10min')
    hold_up(slow_link)
    front = slow_link.of('gold')[0]
    waiting = [slow_link.users.get(front, via='intercept') for _ in range(count)]
    gateway.wait_for(queued=count, in_flight=1)
    slow_link.origin.open_gate('open')
    assert all(fetch.wait(3 * PATIENCE).good for fetch in waiting)
    assert refusals(slow_link) == {}


@pytest.mark.sanitized
def test_in_a_full_queue_the_user_with_most_loses_its_last(slow_link):
    gateway = slow_link.gateway.start(NARROW, 'msfrs_queue max_queued=3 max_wait=90s')
    hold_up(slow_link)
    greedy, modest = slow_link.of('gold')
    waiting = []
    for count in (1, 2, 3):
        waiting.append(slow_link.users.get(greedy))
        gateway.wait_for(queued=count, in_flight=1)
    other = slow_link.users.get(modest, via='intercept')
    assert_refused(waiting.pop(), 'Too many requests of all users are waiting', 90)
    gateway.wait_for(queued=3, in_flight=1)
    assert_refused(slow_link.users.get(greedy), 'Too many requests of all users are waiting', 90)
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (*waiting, other))
    assert refusals(slow_link) == {('gold', 'total'): 2}
    refused = [row['refusal'] for row in rows_of(slow_link, greedy.v4, 4) if row['status'] == '503']
    assert refused == ['MSFRS_QUEUE_FULL'] * 2


@pytest.mark.sanitized
def test_too_many_of_one_user(slow_link):
    gateway = slow_link.gateway.start(NARROW, 'msfrs_queue max_per_user=3 max_wait=90s')
    hold_up(slow_link)
    greedy, modest = slow_link.of('gold')
    waiting = [slow_link.users.get(greedy) for _ in range(3)]
    gateway.wait_for(queued=3, in_flight=1)
    assert_refused(slow_link.users.get(greedy), 'Too many requests of yours are already waiting', 90)
    assert_refused(slow_link.users.get(greedy, via='intercept'), 'Too many requests of yours are already waiting', 90)
    others = slow_link.users.get(modest)
    gateway.wait_for(queued=4, in_flight=1)
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (*waiting, others))
    assert refusals(slow_link) == {('gold', 'per_user'): 2}
    refused = [row for row in rows_of(slow_link, greedy.v4, 5) if row['status'] == '503']
    assert len(refused) == 2
    for row in refused:
        assert row['refusal'] == row['err_detail'] == 'MSFRS_USER_QUEUE_FULL'
        assert row['err_code'] == 'ERR_MSFRS_QUEUE' and row['wait'] == '-'
    # At most one line a minute: a user with a thousand requests must not fill the disk.
    assert len(re.findall(f'WARNING: msfrs: .*user {greedy.v4}: Too many requests of yours', gateway.cache_log())) == 1


@pytest.mark.sanitized
def test_too_many_in_all(slow_link):
    gateway = slow_link.gateway.start(NARROW, 'msfrs_queue max_queued=2 max_wait=30s')
    hold_up(slow_link)
    one, two = slow_link.of('gold')
    waiting = [slow_link.users.get(one), slow_link.users.get(two)]
    gateway.wait_for(queued=2, in_flight=1)
    assert_refused(slow_link.users.get(slow_link.of('bronze')[0]), 'Too many requests of all users are waiting', 30)
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in waiting)
    assert refusals(slow_link) == {('bronze', 'total'): 1}
    (row,) = rows_of(slow_link, slow_link.of('bronze')[0].v4, 1)
    assert row['refusal'] == 'MSFRS_QUEUE_FULL'


@pytest.mark.sanitized
def test_who_waited_too_long(slow_link):
    gateway = slow_link.gateway.start(NARROW, 'msfrs_queue max_wait=1s')
    blocker = hold_up(slow_link)
    waiting = [slow_link.users.get(user, via=via) for via in ('proxy', 'intercept') for user in slow_link.of('bronze')]
    for fetch in waiting:
        assert_refused(fetch, 'waited for its turn as long as requests may wait here', 1)
    gateway.wait_for(queued=0, in_flight=1)
    assert refusals(slow_link) == {('bronze', 'max_wait'): 4}
    for row in rows_of(slow_link, slow_link.of('bronze')[0].v4, 2):
        assert (row['refusal'], row['wait'], row['bytes']) == ('MSFRS_WAITED_TOO_LONG', '-', '0')
        assert 1000 <= int(row['total_wait']) < 20_000
    slow_link.origin.open_gate('open')
    assert blocker.wait().good
    gateway.rest()


def test_a_response_that_was_begun_is_not_refused(slow_link):
    """Paused for longer than max_wait, it resumes."""
    gateway = slow_link.gateway.start(NARROW, 'msfrs_quantum 4 KB', 'msfrs_queue max_wait=1s')
    begun = slow_link.users.get(slow_link.of('gold')[0], size=1_000_000)
    gateway.wait_until(lambda: begun.received, 'part of it')
    slow_link.users.get(slow_link.of('silver')[0], gate='never')
    gateway.wait_for(queued=0, paused=1, in_flight=1)
    before = begun.received
    gateway.wait_until(lambda: begun.received > before + 20_000, 'it goes on beside the one that keeps the place')
    assert refusals(slow_link) == {}


@pytest.mark.sanitized
@pytest.mark.parametrize('directive, reason, retry_after', (
    ('msfrs_queue max_per_user=1', 'MSFRS_USER_QUEUE_FULL', 60),
    ('msfrs_queue max_wait=1s', 'MSFRS_WAITED_TOO_LONG', 1),
), ids=('at-once', 'after-a-wait'))
def test_tunnels(slow_link, directive, reason, retry_after):
    """CONNECT is answered with 503. Intercepted TLS is closed: an answer would need a forged connection."""
    slow_link.world.start_names()
    gateway = slow_link.gateway.start(NARROW, directive)
    gateway.intercept_tls()
    hold_up(slow_link)
    connecting, intercepted = slow_link.of('gold')
    if 'per_user' in directive:
        for user in (connecting, intercepted):
            slow_link.users.get(user)
        gateway.wait_for(queued=2, in_flight=1)
    connect = slow_link.users.get(connecting, via='connect')
    assert connect.wait().status == 503 and connect.headers['retry-after'] == str(retry_after), connect
    assert connect.headers['x-squid-error'].startswith('ERR_MSFRS_QUEUE')
    tls = slow_link.users.get(intercepted, via='tls', name='s01.test')
    assert tls.wait().status == 0 and tls.error and not tls.certificate, tls
    assert refusals(slow_link) == {('gold', 'per_user' if 'per_user' in directive else 'max_wait'): 2}
    for client in (connecting, intercepted):
        rows = [row for row in gateway.access_log() if row['client'] == client.v4 and row['refusal'] != '-']
        assert [row['refusal'] for row in rows] == [reason], gateway.access_log()
    slow_link.origin.open_gate('open')
    gateway.rest()
