# SPDX-License-Identifier: GPL-2.0-or-later
"""Users who disconnect: while they wait, while they are served, while their response is paused."""
import itertools
import random

import pytest

from gateway import NARROW

pytestmark = [pytest.mark.sanitized, pytest.mark.link(rate_bps=4e6, rtts_ms=(5.0,))]

WAYS = pytest.mark.parametrize('reset', (False, True), ids=('close', 'reset'))
#: Paths of a request: plain, through a CONNECT tunnel, intercepted, intercepted TLS.
ROADS = pytest.mark.parametrize('via', ('proxy', 'connect', 'intercept', 'tls'))


@pytest.fixture(scope='module')
def narrow(common_link):
    """A gateway that serves one request at a time, in quanta of 4 KB."""
    common_link.gateway.start(NARROW, 'msfrs_quantum 4 KB').intercept_tls()


@pytest.fixture
def link(narrow, shared_link):
    return shared_link


_number = itertools.count()


def fresh(*names):
    """The names with a suffix that was never used before: for keys and gates."""
    return [f'{name}-{next(_number)}' for name in names]


@WAYS
@ROADS
def test_while_queued(link, via, reset):
    gateway, (leaver, stayer) = link.gateway, link.of('gold')
    blocker, gate, stay, *leave = fresh('blocker', 'gate', 'staying', 'leaving', 'leaving', 'leaving')
    blocking = link.users.get(link.of('silver')[0], blocker, gate=gate)
    gateway.wait_for(queued=0, in_flight=1)
    leaving = [link.users.get(leaver, key, via=via) for key in leave]
    staying = link.users.get(stayer, stay, via=via)
    gateway.wait_for(queued=4, in_flight=1)
    before = gateway.classes()['gold']
    for fetch in leaving:
        fetch.abort(reset)
    gateway.wait_for(queued=1, in_flight=1)     # at once, not only when their turn comes
    after = gateway.classes()['gold']
    assert after['users'] == 1
    assert (after['bytes'], after['service']) == (before['bytes'], before['service'])
    link.origin.open_gate(gate)
    assert staying.wait().good and blocking.wait().good
    gateway.rest()
    assert not set(leave) & set(link.origin.keys()), 'a server was asked for somebody who had gone'


def test_while_queued_is_logged(link):
    gateway, leaver = link.gateway, link.of('bronze')[0]
    gate, *leave = fresh('gate', 'leaving', 'leaving')
    blocking = link.users.get(link.of('silver')[0], gate=gate)
    gateway.wait_for(queued=0, in_flight=1)
    leaving = [link.users.get(leaver, key, via=via) for key, via in zip(leave, ('proxy', 'connect'), strict=True)]
    gateway.wait_for(queued=2, in_flight=1)
    for fetch in leaving:
        fetch.abort()

    def rows():
        return [row for row in gateway.access_log() if row['client'] == leaver.v4]
    gateway.wait_until(lambda: len(rows()) == 2, rows)
    for row in rows():          # never released, not charged, and not refused either
        assert (row['class'], row['user'], row['refusal']) == ('bronze', leaver.v4, '-')
        assert (row['wait'], row['bytes'], row['quanta']) == ('-', '0', '0')
    link.origin.open_gate(gate)
    assert blocking.wait().good


@WAYS
@ROADS
@pytest.mark.parametrize('size', (0, 3000), ids=('before-the-answer', 'in-the-answer'))
def test_while_in_flight(link, via, reset, size):
    """The slot becomes free, and the next request gets it. Squid waits only 200 ms for a server that stops within
    a response, so the slot may be free before the user leaves."""
    gateway, (leaver, stayer) = link.gateway, link.of('gold')
    (leave,) = fresh('leaving')
    # Squid waits for bytes that the server does not send, and pauses nothing.
    script = {'size': 1_000_000, 'send': size, 'then': 'hang'} if size else {'gate': 'never'}
    leaving = link.users.get(leaver, leave, via=via, **script)
    gateway.wait_until(lambda: leave in link.origin.keys() and leaving.received == size, 'the server has the request')
    staying = link.users.get(stayer, via=via)
    if not size:
        gateway.wait_for(queued=1, in_flight=1)
    leaving.abort(reset)
    assert staying.wait().good


def paused_by_silence(link, via, *keys):
    """(fetches, gate): started responses of gold's first user, all paused, since a request of the second user, which
    waits at the gate, has the only slot."""
    one, two = link.of('gold')
    fetches = [link.users.get(one, key, via=way, size=400_000) for key, way in zip(keys, via, strict=True)]
    link.gateway.wait_until(lambda: all(fetch.received for fetch in fetches), lambda: f'part of each answer {fetches}')
    (gate,) = fresh('gate')
    link.users.get(two, gate=gate)
    link.gateway.wait_for(queued=0, paused=len(fetches), in_flight=1)
    return fetches, gate


@WAYS
@ROADS
def test_while_paused(link, via, reset):
    (leaving,), gate = paused_by_silence(link, [via], *fresh('leaving'))
    later = link.users.get(link.of('silver')[0], via=via)
    link.gateway.wait_for(queued=1, paused=1, in_flight=1)
    assert leaving.received < 300_000, 'paused, and its bytes go on'
    leaving.abort(reset)
    link.gateway.wait_for(queued=1, paused=0, in_flight=1)      # the slot is not released: the paused response had none
    link.origin.open_gate(gate)
    assert later.wait().good


def test_a_paused_response_goes_on_where_it_stopped(link):
    ways = ('proxy', 'connect', 'intercept', 'tls')
    paused, gate = paused_by_silence(link, ways, *fresh(*ways))
    link.origin.open_gate(gate)
    assert all(fetch.wait().good and fetch.received == 400_000 for fetch in paused), paused
    link.gateway.rest()
    key = paused[0].key
    (row,) = [row for row in link.gateway.access_log() if key in row['url']]
    assert int(row['quanta']) > 10 and int(row['total_wait']) > int(row['wait'])


def test_many_come_and_go_at_random(slow_link):
    """Aborts at all stages; users who stay get everything, and nothing is left over."""
    gateway = slow_link.gateway.start('msfrs_quantum 4 KB', 'msfrs_window interval=100ms')
    gateway.intercept_tls()
    chance = random.Random(7)
    every, gone = [], set()
    for _ in range(150):
        every.append(slow_link.users.get(
            chance.choice(slow_link.world.users), via=chance.choice(('proxy', 'connect', 'intercept', 'tls')),
            family=chance.choice((4, 6)), size=chance.choice((500, 5_000, 20_000)),
            framing=chance.choice(('length', 'chunked', 'close'))))
        leaver = chance.choice(every)
        if chance.random() < 0.7 and not leaver.finished:
            leaver.abort(reset=chance.random() < 0.5)
            gone.add(leaver)
    stayed = [fetch for fetch in every if fetch not in gone]
    assert 20 < len(stayed) < 140
    assert [fetch for fetch in stayed if not fetch.wait().good] == []
    gateway.rest()
    assert gateway.total('requests') <= 150


def test_no_ticket_outlives_its_transaction(link):
    """A request and its ticket refer to each other until the transaction is over, however it ends."""
    gateway, users = link.gateway, link.of('gold')
    vias = ('proxy', 'connect', 'intercept', 'tls')
    fetches = [link.users.get(user, fresh('whole')[0], size=20_000, via=via) for user in users for via in vias]
    held = [link.users.get(users[0], fresh('cut')[0], size=400_000, via=via) for via in vias]
    assert all(fetch.wait().good for fetch in fetches)
    for fetch in held:
        fetch.abort(True)
    gateway.rest()
    gateway.wait_until(lambda: in_use(gateway, 'Ticket') == 0, lambda: f'{in_use(gateway, "Ticket")} are left')


def in_use(gateway, pool):
    """Objects of one of Squid's memory pools that are in use."""
    row, = (line for line in gateway.page('mem').splitlines() if line.split('\t')[0].strip() == pool)
    return int(row.split('\t')[14])
