# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers, links and clients that fail: no other user suffers, nothing is lost, and the window's slots are released."""
import signal
import time

import pytest

from fieldtrial.site.addresses import ISP4
from fieldtrial.site.world import WAN
from gateway import NARROW

pytestmark = [pytest.mark.sanitized, pytest.mark.link(rate_bps=4e6, rtts_ms=(5.0, 5.0))]
ROADS = pytest.mark.parametrize('via', ('proxy', 'connect'))


@pytest.fixture(scope='module')
def narrow(common_link):
    """A gateway that serves one request at a time, in quanta of 4 KB."""
    common_link.gateway.start(NARROW, 'msfrs_quantum 4 KB', 'connect_timeout 2 seconds', 'forward_timeout 4 seconds')


@pytest.fixture
def link(narrow, shared_link):
    return shared_link


def next_one_goes(link, faulty, via='proxy'):
    """A request of another user, made while the faulty one is served, is held and then answered."""
    other = link.users.get(link.of('silver')[0], via=via)
    link.gateway.wait_for(queued=1, in_flight=1)
    assert other.wait().good, other
    assert faulty.wait()
    link.gateway.rest()


@pytest.fixture
def hasty(slow_link):
    """The same, but with a short timeout for servers."""
    slow_link.gateway.start(NARROW, 'msfrs_quantum 4 KB', 'read_timeout 3 seconds')
    return slow_link


def test_a_server_that_never_answers(hasty):
    faulty = hasty.users.get(hasty.of('gold')[0], gate='never')
    hasty.gateway.wait_for(queued=0, in_flight=1)
    next_one_goes(hasty, faulty)
    assert faulty.status == 504, faulty


@ROADS
def test_a_server_that_stops_in_the_middle(hasty, via):
    faulty = hasty.users.get(hasty.of('gold')[0], via=via, size=100_000, send=3_000, then='hang')
    hasty.gateway.wait_until(lambda: faulty.received == 3_000, faulty)
    next_one_goes(hasty, faulty)
    assert (faulty.status, faulty.received, faulty.intact, faulty.whole) == (200, 3_000, True, False)


@ROADS
@pytest.mark.parametrize('broken', (False, True), ids=('answers-on', 'falls-silent'))
def test_a_pause_may_be_longer_than_a_server_may_be_silent(hasty, via, broken):
    """The server is not to blame for it: read_timeout does not run meanwhile. Afterwards it does."""
    gateway, (one, two) = hasty.gateway, hasty.of('gold')
    script = {'send': 5_000, 'then': 'hang'} if broken else {}
    first = hasty.users.get(one, via=via, size=100_000, gate='first', **script)
    gateway.wait_for(queued=0, in_flight=1)
    began = time.monotonic()
    slow = hasty.users.get(two, size=3_000, pace=500)           # six seconds, and less than a quantum
    gateway.wait_for(queued=1, in_flight=1)
    hasty.origin.open_gate('first')
    gateway.wait_for(queued=0, paused=1, in_flight=1)           # after a quantum, which is less than 5 kB
    assert slow.wait().good and slow.t_end - began > 5
    assert first.wait().intact and first.received == (5_000 if broken else 100_000), first
    assert first.whole is not broken
    gateway.rest()


@ROADS
@pytest.mark.parametrize('then', ('reset', 'close'))
def test_a_server_that_ends_in_the_middle(link, via, then):
    """In one quantum and over several, with another user taking turns."""
    gateway = link.gateway
    for send in (3_000, 100_000):
        faulty = link.users.get(link.of('gold')[0], via=via, size=200_000, send=send, then=then)
        other = link.users.get(link.of('silver')[0], size=50_000)
        assert other.wait().good, other
        faulty.wait()
        assert faulty.status == 200 and not faulty.whole and faulty.intact
        # A reset may overtake data of the server; an orderly close may not.
        assert faulty.received == send if then == 'close' else faulty.received <= send
        gateway.rest()


@ROADS
@pytest.mark.link(rate_bps=2e6, rtts_ms=(5.0,))
@pytest.mark.parametrize('framing', ('chunked', 'close'))
def test_a_server_that_has_gone_while_its_response_is_paused(slow_link, via, framing):
    """Bytes that it sent before are still delivered, all of them."""
    gateway, (one, two) = slow_link.gateway, slow_link.of('gold')
    # The rest after the first quantum fits into the window plus the server's send buffer, but not into the window
    # alone: the server has finished and closed before the rest is read.
    gateway.start(NARROW, 'msfrs_quantum 32 KB')
    early = [slow_link.users.get(one, f'early{n}', via=via, size=80_000, framing=framing,
                                 then='' if framing == 'chunked' else 'close') for n in range(3)]
    gateway.wait_until(lambda: all(fetch.received for fetch in early), lambda: f'all begun {early}')
    blocker = slow_link.users.get(two, gate='open')
    gateway.wait_for(queued=0, paused=3, in_flight=1)
    gateway.wait_until(lambda: len(slow_link.origin.ended) == 3, 'the server has ended')
    assert all(fetch.received < 80_000 for fetch in early)
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good and fetch.received == 80_000 for fetch in early), early
    assert blocker.wait().good


@pytest.mark.link(rate_bps=2e6, rtts_ms=(5.0,))
@pytest.mark.parametrize('via', ('proxy', 'intercept'))
def test_a_rest_that_has_arrived_does_not_wait_for_its_turn(slow_link, via):
    """It no longer occupies the link, so holding it back would help nobody. The rest of a tunnel is unknown. The
    receive window is of at least three segments, and holds the rest."""
    gateway, (one, two) = slow_link.gateway, slow_link.of('gold')
    gateway.start(NARROW, 'msfrs_quantum 64 KB')
    early = [slow_link.users.get(one, f'whole{n}', via=via, size=68_000) for n in range(3)]
    gateway.wait_until(lambda: all(fetch.received for fetch in early), lambda: f'all begun {early}')
    blocker = slow_link.users.get(two, gate='after the rest')
    assert all(fetch.wait().good and fetch.received == 68_000 for fetch in early), early
    gateway.wait_for(queued=0, paused=0, in_flight=1)
    slow_link.origin.open_gate('after the rest')
    assert blocker.wait().good
    rows = [row for row in gateway.access_log() if 'whole' in row['url']]
    assert sum(int(row['bytes']) for row in rows) >= 200_000, 'all of it is charged'


@ROADS
def test_an_origin_that_refuses(link, via):
    """No server listens there: this is known at once, and nothing is charged."""
    before = link.gateway.classes()['bronze']['bytes']
    faulty = link.users.get(link.of('bronze')[0], via=via, **elsewhere(link, via, 81))
    assert faulty.wait().status == 503, faulty
    assert 'ERR_CONNECT_FAIL' in faulty.headers['x-squid-error']
    assert link.gateway.classes()['bronze']['bytes'] == before


@ROADS
def test_an_origin_that_cannot_be_reached(link, via):
    """All packets to it are lost."""
    link.world.farm.run('iptables', '-A', 'INPUT', '-p', 'tcp', '--dport', '82', '-j', 'DROP')
    faulty = link.users.get(link.of('gold')[0], via=via, **elsewhere(link, via, 82))
    link.gateway.wait_for(queued=0, in_flight=1)
    next_one_goes(link, faulty)
    assert faulty.status in (503, 504), faulty


def elsewhere(link, via, port):
    """Options that direct a request to this port of the first server."""
    return {'port': port} if via == 'connect' else {'name': f'{link.world.servers[0].v4}:{port}'}


def test_a_client_that_stops_reading_holds_up_nobody_for_long(slow_link):
    """Its response keeps a slot in the window; the window grows until the link is used."""
    gateway = slow_link.gateway.start('msfrs_window interval=200ms')
    stalled = [slow_link.users.get(user, size=3_000_000, stall_after=1000) for user in slow_link.of('gold')]
    gateway.wait_until(lambda: all(fetch.received for fetch in stalled), 'the answers have begun')
    others = [slow_link.users.get(user, size=100_000) for user in slow_link.of('bronze')]
    assert all(fetch.wait().good for fetch in others), others
    assert not any(fetch.finished for fetch in stalled)
    for fetch in stalled:
        fetch.abort()
    gateway.rest()


def rename(world, old, new):
    """Renames the gateway's outside interface; connections survive that."""
    world.gateway.batch([f'link set {old} down', f'link set {old} name {new}', f'link set {new} up',
                         f'route add default via {ISP4} congctl cubic'])


def test_an_interface_that_disappears_and_comes_back(slow_link):
    gateway, users = slow_link.gateway.start('msfrs_window interval=200ms'), slow_link.users
    load = users.load(slow_link.world.users)
    gateway.wait_until(lambda: gateway.report()['link']['metered'], 'the interface is metered')
    rename(slow_link.world, WAN, 'other0')
    gateway.wait_until(lambda: not gateway.report()['link']['metered'], 'payload is metered')
    before = load.bytes()
    gateway.wait_until(lambda: all(got > 50_000 for got in load.since(before).values()), 'traffic goes on for all')
    gateway.wait_until(lambda: 0.5 < gateway.report()['window']['utilisation'] < 1.5, 'utilisation by payload')
    assert gateway.cache_log().count('interface wan0 has no receive counter') == 1
    rename(slow_link.world, 'other0', WAN)
    gateway.wait_until(lambda: gateway.report()['link']['metered'], 'the interface is metered again')
    assert gateway.cache_log().count('interface wan0 is back') == 1
    assert gateway.cache_log().count('interface wan0 has no receive counter') == 1
    # Requests that needed a new connection while the link was down have failed.
    assert [fetch for fetch in load.stop() if not fetch.good and fetch.status != 503] == []
    gateway.rest()


def test_a_squid_that_was_stopped_for_a_while_goes_on(slow_link):
    """As after a suspended machine: everything is late, and nothing is lost."""
    gateway = slow_link.gateway.start('msfrs_window interval=200ms')
    load = slow_link.users.load(slow_link.world.users)
    gateway.wait_until(lambda: all(got > 20_000 for got in load.bytes().values()), 'traffic')
    gateway.send(signal.SIGSTOP)
    time.sleep(3)
    gateway.send(signal.SIGCONT)
    before = load.bytes()
    gateway.wait_until(lambda: all(got > 50_000 for got in load.since(before).values()), 'traffic goes on for all')
    assert [fetch for fetch in load.stop() if not fetch.good] == []
    gateway.rest()
