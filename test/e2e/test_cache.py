# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that do not use the downlink do not wait for it: hits, collapsed requests, errors, the manager; and all of
them with msfrs off."""
import pytest

from gateway import NARROW, OFF

pytestmark = pytest.mark.link(rate_bps=8e6, rtts_ms=(2.0,), users=(2, 2, 2))


@pytest.fixture
def link(slow_link):
    slow_link.gateway.start(NARROW, 'collapsed_forwarding on', cache=True)
    return slow_link


#: Fields of access.log about scheduling.
SCHEDULED = ('class', 'user', 'wait', 'total_wait', 'bytes', 'quanta', 'window', 'window_limit', 'refusal')


def fill_window(link, gate='open'):
    blocker = link.users.get(link.of('silver')[0], gate=gate)
    link.gateway.wait_for(queued=0, in_flight=1)
    return blocker


def test_a_hit_is_answered_while_the_window_is_full(link):
    gateway, (one, two) = link.gateway, link.of('gold')
    assert link.users.get(one, 'page', size=30_000, cache=600).wait().good
    fill_window(link)
    other = link.users.get(one)
    gateway.wait_for(queued=1, in_flight=1)
    before = gateway.totals('requests', 'bytes')
    for via in ('proxy', 'intercept'):
        assert link.users.get(two, 'page', via=via, size=30_000, cache=600).wait().good
    assert gateway.totals('requests', 'bytes') == before
    assert gateway.totals('queued', 'in_flight') == (1, 1)
    hits = [row for row in gateway.access_log(3) if 'HIT' in row['tag']]
    assert len(hits) == 2
    for row in hits:
        assert {row[name] for name in SCHEDULED} == {'-'}
    link.origin.open_gate('open')
    assert other.wait().good
    assert link.origin.keys().count('page') == 1
    gateway.rest()


def test_a_revalidation_is_held(link):
    """Unlike a hit, it uses the downlink."""
    gateway, user = link.gateway, link.of('gold')[0]
    assert link.users.get(user, 'page', cache=600).wait().good
    fill_window(link)
    again = link.users.get(user, 'page', cache=600, header='Cache-Control: no-cache')
    gateway.wait_for(queued=1, in_flight=1)
    link.origin.open_gate('open')
    assert again.wait().good
    assert link.origin.keys().count('page') == 2
    gateway.rest()


def test_collapsed_requests_are_not_held(link):
    """A request for an object that another client is receiving is answered from that transfer."""
    gateway = link.gateway
    first = link.users.get(link.of('gold')[0], 'page', size=50_000, cache=600, gate='page')
    gateway.wait_for(queued=0, in_flight=1)
    others = [link.users.get(user, 'page', size=50_000, cache=600, gate='page') for user in link.world.users[1:]]
    blocked = link.users.get(link.of('bronze')[0])
    gateway.wait_for(queued=1, in_flight=1)         # the request for another object
    link.origin.open_gate('page')
    assert all(fetch.wait().good for fetch in (first, *others, blocked)), others
    assert link.origin.keys().count('page') == 1
    assert gateway.total('requests') == 2
    gateway.rest()


@pytest.mark.sanitized
@pytest.mark.parametrize('state', ('queued', 'paused'))
def test_collapsed_requests_are_served_though_the_first_has_gone(slow_link, state):
    gateway, (first, second) = slow_link.gateway, slow_link.of('gold')
    gateway.start(NARROW, 'collapsed_forwarding on', 'msfrs_quantum 4 KB', cache=True)
    if state == 'queued':
        fill_window(slow_link)
    page = {'size': 300_000, 'cache': 600}
    leaver = slow_link.users.get(first, 'page', **page)
    if state == 'queued':
        gateway.wait_for(queued=1, in_flight=1)
    else:
        gateway.wait_until(lambda: leaver.received, 'it has begun')
        slow_link.users.get(slow_link.of('silver')[0], gate='open')
        gateway.wait_for(queued=0, paused=1, in_flight=1)
    stayer = slow_link.users.get(second, 'page', **page)
    gateway.wait_until(lambda: second.v4 in gateway.page('client_list'), 'Squid knows the second')
    leaver.abort()
    slow_link.origin.open_gate('open')
    assert stayer.wait().good and stayer.received == 300_000, stayer
    gateway.rest()


def test_pages_of_squid_itself_are_not_held(link):
    """An error that Squid detects without contacting a server, and the manager's reports."""
    fill_window(link)
    denied = link.users.get(link.of('gold')[0], path='/squid-internal-static/icons/nothing', name='gateway.test:3128')
    assert denied.wait().status in (403, 404), denied
    assert 'queued: 0' in link.gateway.page('msfrs')
    link.origin.open_gate('open')
    link.gateway.rest()


@pytest.mark.parametrize('lines', (
    (),
    ('msfrs off',),
    ('msfrs off', 'msfrs_link rate=8kbit', 'msfrs_window interval=1min', 'msfrs_class all weight=1 default',
     'msfrs_queue max_per_user=1 max_wait=1s'),
), ids=('unsaid', 'off', 'off-but-configured'))
def test_msfrs_off(slow_link, lines):
    """No request is held or counted, and the logs do not mention it."""
    gateway = slow_link.gateway.start(*lines, on=False)
    gateway.intercept_tls()
    roads = ('proxy', 'connect', 'intercept', 'tls')
    waiting = [slow_link.users.get(user, via=via, gate='open') for user in slow_link.world.users for via in roads]
    gateway.wait_until(lambda: len(slow_link.origin.keys()) == len(waiting), 'all requests are at the server at once')
    big = slow_link.users.get(slow_link.of('gold')[0], size=300_000)
    assert big.wait().good
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in waiting)
    assert gateway.report() == OFF
    assert 'msfrs_scheduling 0\n# EOF' in gateway.page('msfrs-metrics')
    for row in gateway.access_log(len(waiting) + 1):
        assert {row[name] for name in SCHEDULED} == {'-'}
    assert 'msfrs:' not in gateway.cache_log()
