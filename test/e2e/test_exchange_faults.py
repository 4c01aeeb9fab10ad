# SPDX-License-Identifier: GPL-2.0-or-later
"""Persistent connections that break or wait for long, in every state: no other user suffers, and no slot is lost. The
test controls both ends (both_ends.py); an exchange without an answer keeps its slot."""
import ssl
import time

import pytest

from background import content
from both_ends import both_ends_of, link, narrow    # the latter are fixtures
from gateway import NARROW, ONE_PLACE

LINES = (NARROW, 'msfrs_quantum 4 KB', 'tcp_recv_bufsize 32 KB')
#: For a response whose rest fits into a receive window, but exceeds what Squid buffers for a client that reads nothing:
#: less than 90 KB. The configured link is fast, so that windows are wide; a paused response is the last to resume.
ROOMY = (f'{ONE_PLACE} patience=59min', 'msfrs_quantum 8 KB', 'msfrs_arbiter fifo', 'read_ahead_gap 4 KB')
FAST = 60e6
ASK, ANSWER, MUCH = content('ask', 0, 48), content('answer', 0, 3000), content('much', 0, 200_000)
ALL, BEGUN = content('all', 0, 100_000), 20_000     #: BEGUN: more than a quantum, plus bytes too few for a read


def asked(link, who='gold', tls=None):
    """A tunnel that holds the slot, since its server has a request and does not answer."""
    pair = link.ends.tunnel(link.of(who)[0], tls)
    pair.client.say(ASK)
    pair.server.wait_for(ASK)
    return pair


def silent(link):
    """A tunnel whose server has answered."""
    pair = asked(link)
    pair.server.say(ANSWER)
    pair.client.wait_for(ANSWER)
    link.gateway.wait_for(queued=0, paused=0, in_flight=0, silent=1)
    return pair


class Scene:
    """A tunnel in a state, with another that holds the slot if the state requires it. `rest()` lets it complete its
    exchange once it has the slot."""

    def __init__(self, link, state):
        self._link, self._state, self.blocker, self._waiting = link, state, None, None
        getattr(self, f'_{state}')()

    def _asked(self):
        self.pair = asked(self._link)
        self._link.gateway.wait_for(in_flight=1, asked=1)

    def _sending(self):
        self.pair = asked(self._link)
        self.pair.server.say(MUCH)
        self._link.gateway.wait_until(lambda: self.pair.client.heard, 'it has begun')

    def _paused(self):
        self._sending()
        self._block(paused=1, in_flight=1)

    def _arrived(self):
        """The rest of its response waits in Squid's kernel for its client, which does not read for now."""
        gateway, (user, other) = self._link.gateway, self._link.of('gold')
        gateway.reconfigure(*ROOMY, rate=FAST)
        self.pair = self._link.ends.plain(user, f'GET http://{self._link.ends.address}/ HTTP/1.1\r\n'
                                          f'Host: {self._link.ends.address}\r\nConnection: close\r\n\r\n'.encode(),
                                          unread=True)
        gateway.wait_for(in_flight=1, asked=1)
        self._waiting = self._link.users.get(other, gate='after it has arrived')
        gateway.wait_for(queued=1, in_flight=1)
        head = f'HTTP/1.1 200 OK\r\nContent-Length: {len(ALL)}\r\nConnection: close\r\n\r\n'.encode()
        self.pair.server.say(head + ALL[:BEGUN])
        gateway.wait_for(queued=0, paused=1, in_flight=1)
        before = gateway.total('bytes')
        self.pair.server.say(ALL[BEGUN:])
        gateway.wait_until(lambda: gateway.total('bytes') > before, 'Squid reads on without a turn')
        assert gateway.totals('paused', 'in_flight') == (1, 1)

    def _silent(self):
        self.pair = silent(self._link)

    def _held(self):
        self._silent()
        self._block(silent=1, in_flight=1)
        self.pair.client.say(ASK)
        self._link.gateway.wait_for(queued=1, silent=0, in_flight=1)

    def _pushing(self):
        self._silent()
        self._block(silent=1, in_flight=1)
        self.pair.server.say(MUCH)
        self._link.gateway.wait_for(queued=1, silent=0, in_flight=1)

    def _block(self, **figures):
        self.blocker = asked(self._link, 'silver')
        self._link.gateway.wait_for(**figures)

    def unblock(self):
        """The holder of the slot disconnects."""
        if self.blocker:
            self.blocker.client.leave(reset=True)
        if self._waiting:
            self._waiting.abort(reset=True)
        self.blocker = self._waiting = None

    def listen(self):
        """A client that did not read begins to, and receives everything that has arrived."""
        if self._state == 'arrived':
            self.pair.client.listen()
            self._link.gateway.wait_until(lambda: self.pair.client.over, 'the whole response')
            assert self.pair.client.heard.partition(b'\r\n\r\n')[2] == ALL

    def rest(self):
        self.unblock()
        self.listen()
        if self._state == 'arrived':
            self._link.gateway.wait_for(queued=0, paused=0, in_flight=0, silent=0)
            return
        if self._state == 'asked':
            self.pair.server.say(ANSWER)
            self.pair.client.wait_for(ANSWER)
        elif self._state in ('sending', 'paused'):
            self.pair.client.wait_for(MUCH)
        elif self._state == 'pushing':
            self.pair.client.wait_for(ANSWER + MUCH)
        else:
            if self._state == 'silent':
                self.pair.client.say(ASK)
            self.pair.server.wait_for(ASK + ASK)
            self.pair.server.say(ANSWER)
            self.pair.client.wait_for(ANSWER + ANSWER)
        self._link.gateway.wait_for(queued=0, paused=0, in_flight=0, silent=1)


STATES = pytest.mark.parametrize('state', ('asked', 'sending', 'paused', 'arrived', 'silent', 'held', 'pushing'))
#: Sizes of a connection's send buffer: minimum, default and maximum.
SEND_BUFFER = 'net.ipv4.tcp_wmem'


@pytest.fixture
def scene(link, state):
    """The state of a test; afterwards the gateway must be as before."""
    if state != 'arrived':
        yield Scene(link, state)
        return
    host = link.world.gateway
    before = host.run('sysctl', '-n', SEND_BUFFER).split()
    host.set_kernel([f'{SEND_BUFFER}=4096 4096 4096'])
    try:
        yield Scene(link, state)
    finally:
        host.set_kernel([f'{SEND_BUFFER}={" ".join(before)}'])
        link.gateway.reconfigure(*LINES)


@pytest.mark.sanitized
@STATES
@pytest.mark.parametrize('who', ('client', 'server'))
def test_a_reset_in_every_state(link, scene, who):
    """An end that waits for its turn may be noticed to have disconnected only when the turn comes."""
    getattr(scene.pair, who).leave(reset=True)
    scene.unblock()
    if who == 'server':
        scene.listen()
    other = scene.pair.server if who == 'client' else scene.pair.client
    link.gateway.wait_until(lambda: other.over, 'the other end hears of it')
    link.gateway.wait_for(queued=0, paused=0, in_flight=0, silent=0)
    silent(link)                # the next one


@pytest.mark.sanitized
@STATES
def test_reconfigured_in_every_state(link, scene):
    """The same configuration, another arbiter, another window; the exchange then completes without lost or repeated
    bytes."""
    wider = f'{ONE_PLACE.replace("growth=1.01", "growth=2")} patience=30min'
    for lines in (LINES, (*LINES, 'msfrs_arbiter fifo'), (*LINES, 'msfrs_arbiter drr'), (wider, *LINES[1:]), LINES):
        link.gateway.reconfigure(*lines)
    scene.rest()


@pytest.mark.sanitized
@STATES
def test_switched_off_in_every_state(link, scene, state):
    link.gateway.reconfigure(on=False)
    if state in ('sending', 'paused', 'pushing'):
        scene.pair.client.wait_for(ANSWER + MUCH if state == 'pushing' else MUCH)
    scene.listen()
    scene.pair.client.leave(reset=True)
    scene.unblock()
    link.gateway.wait_until(lambda: scene.pair.server.over, 'its server hears of it')
    link.gateway.reconfigure(*LINES)


@pytest.mark.sanitized
@pytest.mark.parametrize('state', ('arrived',))
def test_a_client_that_takes_nothing_of_what_has_arrived_has_no_place(link, scene):
    """Nobody waits for it, even at its turn: it could not use a slot."""
    scene.unblock()
    link.gateway.wait_for(queued=0, paused=0, in_flight=0)
    asked(link, 'silver').client.leave(reset=True)      # holds the slot
    scene.rest()


@pytest.mark.sanitized
@pytest.mark.parametrize('tls', (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3), ids=('tls1.2', 'tls1.3'))
def test_a_server_that_thinks_after_its_session_tickets(link, tls):
    """They are not an answer: the exchange keeps its slot, and the answer does not wait for another."""
    pair = asked(link, tls=tls)
    other = link.users.get(link.of('silver')[0])
    link.gateway.wait_for(queued=1, in_flight=1)
    time.sleep(0.3)             # thinking time: six times the silence that ends an exchange after an answer
    assert link.gateway.totals('queued', 'in_flight', 'asked') == (1, 1, 1) and not other.received
    pair.server.say(ANSWER)
    pair.client.wait_for(ANSWER)
    assert other.wait().good, other
    pair.client.leave()
    link.gateway.wait_for(silent=0)
    (row,) = [row for row in link.gateway.access_log() if row['port'] == str(pair.client.port)]
    assert int(row['exchanges']) <= 2           # the handshake may take longer than a turn here


@pytest.mark.sanitized
def test_a_tunnel_that_is_not_used_gives_its_place_back(link):
    """No request follows the handshake."""
    pair = link.ends.tunnel(link.of('gold')[0], ssl.TLSVersion.TLSv1_3)
    link.gateway.wait_for(queued=0, in_flight=0, silent=1)
    assert not pair.client.heard


@pytest.mark.sanitized
def test_a_wait_may_be_longer_than_ends_may_be_silent(slow_link):
    """Neither end is to blame: read_timeout does not run while the client's bytes are held. Afterwards it does."""
    gateway = slow_link.gateway
    with both_ends_of(slow_link, (*LINES, 'read_timeout 3 seconds')) as ends:
        pair = silent(slow_link)
        slow = slow_link.users.get(slow_link.of('silver')[0], size=3_000, pace=500)     # six seconds of one quantum
        gateway.wait_for(in_flight=1, silent=1)
        pair.client.say(ASK)
        gateway.wait_for(queued=1, in_flight=1)
        began = time.monotonic()
        pair.server.say(b'unasked')             # which restarts both timeouts
        pair.client.wait_for(ANSWER + b'unasked')
        assert slow.wait().good and time.monotonic() - began > 4, slow
        pair.server.wait_for(ASK + ASK)
        gateway.wait_until(lambda: pair.client.over and pair.server.over, 'now they are too silent')
        gateway.rest()
        ends.end()


@pytest.mark.sanitized
@pytest.mark.link(rate_bps=20e6, rtts_ms=(5.0,), users=(4, 4, 4))
def test_a_thousand_tunnels_that_speak_at_once(slow_link):
    """None of them is refused, whatever the queue limits, and no slot is lost."""
    gateway = slow_link.gateway
    with both_ends_of(slow_link, ('msfrs_queue max_per_user=10 max_queued=100',)) as ends:
        clients = []
        for _ in range(10):
            clients += ends.tunnels([slow_link.world.users[n % 12] for n in range(100)], ANSWER)
        gateway.wait_for(queued=0, in_flight=0, silent=1000)
        before = gateway.total('exchanges')
        began = time.monotonic()
        for client in clients:
            client.say(ASK)
        gateway.wait_until(lambda: all(client.heard == ANSWER for client in clients), 'all are answered')
        spent = time.monotonic() - began
        gateway.rest()
        gateway.wait_for(silent=1000)
        assert gateway.total('exchanges') - before >= 1000
        assert spent < 30, 'no later than max_wait'
        ends.end()
        gateway.wait_for(silent=0)
        gateway.rest()
