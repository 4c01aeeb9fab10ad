# SPDX-License-Identifier: GPL-2.0-or-later
"""Persistent connections: an exchange holds a slot, and each kind of traffic has its rule (docs/design/exchanges.md).
There is one slot, which `flood` holds for as long as a test wants, and the test controls both ends."""
import ssl
import time

import pytest

from background import content
from both_ends import link, narrow      # fixtures
from gateway import ONE_PLACE

TLS_1_2, TLS_1_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
INSIDE = pytest.mark.parametrize('tls', (None, TLS_1_2, TLS_1_3), ids=('opaque', 'tls1.2', 'tls1.3'))
#: The holder of the slot keeps it while its server sends. The receive buffer keeps the bottleneck queue short.
LINES = (ONE_PLACE, 'msfrs_quantum 1 GB', 'tcp_recv_bufsize 32 KB')
FLOOD = 16_000_000      #: bytes; a minute of the link
ASK, ANSWER = content('ask', 0, 48), content('answer', 0, 3000)
MUCH = content('much', 0, 400_000)      #: more than one read of Squid's


def silent(link, count=1):
    """Waits until this many connections are open without a slot, and nothing else is served."""
    link.gateway.wait_for(queued=0, paused=0, in_flight=0, silent=count)


def exchanges(link):
    """Exchanges of gold, beyond the first of each of its requests."""
    return link.gateway.classes()['gold']['exchanges']


def kept(link, tls=None, half=False):
    """A tunnel of gold's first user after an exchange; `before`: number of gold's exchanges before it, `first`: number
    of its own by then, more than one if its ends needed longer than the time after which a server counts as silent.
    half: see BothEnds.tunnel."""
    before = exchanges(link)
    pair = link.ends.tunnel(link.of('gold')[0], tls, half=half)
    pair.client.say(ASK)
    pair.server.wait_for(ASK)
    pair.server.say(ANSWER)
    pair.client.wait_for(ANSWER)
    silent(link)
    pair.before, pair.first = before, 1 + exchanges(link) - before
    return pair


def flood(link):
    """A tunnel of silver whose server never stops sending."""
    pair = link.ends.tunnel(link.of('silver')[0])
    pair.server.say(bytes(FLOOD))
    link.gateway.wait_until(lambda: len(pair.client.heard) > 100_000, 'it flows')
    return pair


def in_turn(link, queued=0, **others):
    """Waits until the flood holds the slot and this many wait for it."""
    link.gateway.wait_for(queued=queued, paused=0, in_flight=1, **others)


def logged(link, pair):
    """The line in access.log of a pair that has ended."""
    def found():
        return [row for row in link.gateway.access_log() if row['port'] == str(pair.client.port)]
    return link.gateway.wait_until(found, 'a line of access.log')[0]


@INSIDE
@pytest.mark.sanitized
def test_a_kept_tunnel_waits_for_its_turn_again(link, tls):
    pair, busy = kept(link, tls), flood(link)
    in_turn(link, silent=1)
    pair.client.say(ASK)
    in_turn(link, queued=1, silent=0)
    report = link.gateway.report()
    assert report['holding'].startswith('yes, because 1 wait and the window is full')
    (held,) = report['held']
    assert (held['user'], held['class'], held['host'], held['what']) == (
        link.of('gold')[0].v4, 'gold', link.world.servers[0].v4, 'exchange')
    assert pair.server.heard == ASK, 'it did not wait'
    busy.client.leave(reset=True)
    pair.server.wait_for(ASK + ASK)
    pair.server.say(ANSWER)
    pair.client.wait_for(ANSWER + ANSWER)
    silent(link)
    pair.client.say_good_bye()      # which is not an exchange
    row = logged(link, pair)
    assert int(row['exchanges']) == 1 + exchanges(link) - pair.before > pair.first and int(row['exchange_wait']) > 0
    assert abs(int(row['total_wait']) - int(row['wait']) - int(row['exchange_wait'])) <= 1     # milliseconds, truncated
    assert int(row['bytes']) >= 2 * len(ANSWER)


def test_exchanges_are_counted_and_are_no_requests(link):
    requests = link.gateway.classes()['gold']['requests']
    pair = kept(link)
    for number in range(2, 5):
        pair.client.say(ASK)
        pair.server.wait_for(number * ASK)
        pair.server.say(ANSWER)
        pair.client.wait_for(number * ANSWER)
        silent(link)
    assert link.gateway.classes()['gold']['requests'] == requests + 1
    pair.client.leave()
    assert int(logged(link, pair)['exchanges']) == 1 + exchanges(link) - pair.before >= pair.first + 3


def test_who_was_asked_and_who_sends(link):
    pair = link.ends.tunnel(link.of('gold')[0])
    pair.client.say(ASK)
    pair.server.wait_for(ASK)
    assert link.gateway.totals('sending') == (0,)
    pair.server.say(bytes(FLOOD))
    link.gateway.wait_for(sending=1, asked=0, silent=0)


@pytest.mark.parametrize('asked', (True, False), ids=('long-poll', 'push'))
@INSIDE
def test_what_comes_after_the_place_went_back(link, asked, tls):
    """A few bytes pass; of many, those after the first read wait for a turn."""
    pair = kept(link, tls)
    if asked:
        pair.client.say(ASK)
        pair.server.wait_for(ASK + ASK)
        silent(link)
    busy = flood(link)
    in_turn(link, silent=1)
    pair.server.say(b'a little')
    pair.client.wait_for(ANSWER + b'a little')
    in_turn(link, silent=1)
    pair.server.say(MUCH)
    in_turn(link, queued=1, silent=0)
    assert len(pair.client.heard) < len(MUCH) / 2
    busy.client.leave(reset=True)
    pair.client.wait_for(ANSWER + b'a little' + MUCH)
    silent(link)
    pair.client.leave()
    assert int(logged(link, pair)['exchanges']) == 1 + exchanges(link) - pair.before >= pair.first + (2 if asked else 1)


def test_server_sent_events(link):
    """An HTTP/1 response gives up its slot between events, and small ones need none."""
    get = f'GET http://{link.ends.address}/events HTTP/1.1\r\nHost: {link.ends.address}\r\n\r\n'.encode()
    pair = link.ends.plain(link.of('gold')[0], get)
    link.gateway.wait_until(lambda: b'\r\n\r\n' in pair.server.heard, 'the request')
    pair.server.say(b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: 1\n\n')
    link.gateway.wait_until(lambda: b'data: 1\n\n' in pair.client.heard, 'the first event')
    silent(link)
    busy = flood(link)
    in_turn(link, silent=1)
    pair.server.say(b'data: 2\n\n')
    link.gateway.wait_until(lambda: b'data: 2\n\n' in pair.client.heard, 'the second event')
    in_turn(link, silent=1)
    before = len(pair.client.heard)
    pair.server.say(MUCH)
    in_turn(link, queued=1, silent=0)
    assert len(pair.client.heard) - before < len(MUCH) / 2
    busy.client.leave(reset=True)
    link.gateway.wait_until(lambda: len(pair.client.heard) >= before + len(MUCH), 'all of it')
    silent(link)


@pytest.mark.parametrize('size', (9, 13, 17, 26), ids=('settings-ack', 'window-update', 'ping', 'two-window-updates'))
@pytest.mark.parametrize('tls', (TLS_1_2, TLS_1_3), ids=('tls1.2', 'tls1.3'))
def test_housekeeping_of_http2_waits_for_nothing(link, tls, size):
    pair = kept(link, tls)
    flood(link)
    in_turn(link, silent=1)
    pair.client.say(ASK[:size])
    pair.server.wait_for(ASK + ASK[:size])
    in_turn(link, silent=1)
    pair.client.say(ASK[:size + 1])     # a record larger than any such frame waits
    in_turn(link, queued=1, silent=0)


def test_an_upload_holds_no_place(link):
    """Its server does not read all of it: it continues while another has the slot."""
    words = content('upload', 0, 8_000_000)
    pair = link.ends.tunnel(link.of('gold')[0], deaf=True)
    pair.client.say(words)
    silent(link)
    busy = flood(link)
    in_turn(link, silent=1)
    busy.client.leave(reset=True)       # the tunnel has paused: the rest may wait for a turn
    pair.server.listen()
    pair.server.wait_for(words)


#: How a client leaves. One that closes its half of a tunnel without TLS waits for an answer.
LEAVES = pytest.mark.parametrize('tls, reset', ((None, True), (TLS_1_2, False), (TLS_1_3, False), (TLS_1_3, True)),
                                 ids=('reset-opaque', 'close-tls1.2', 'close-tls1.3', 'reset-tls1.3'))


@LEAVES
@pytest.mark.sanitized
def test_a_client_that_leaves_while_it_is_held(link, tls, reset):
    """It is noticed at once, not when its turn comes."""
    pair = kept(link, tls)
    flood(link)
    pair.client.say(ASK)
    in_turn(link, queued=1, silent=0)
    pair.client.leave(reset)
    in_turn(link, queued=0, silent=0)
    link.gateway.wait_until(lambda: pair.server.over, 'its server hears of it')
    row = logged(link, pair)
    assert int(row['exchanges']) == pair.first + 1 and int(row['exchange_wait']) > 0


@LEAVES
@pytest.mark.sanitized
def test_a_client_that_leaves_behind_words_that_wait(link, tls, reset):
    """In addition to the bytes that Squid has read, more wait in the socket, and the end of the connection behind them.
    """
    pair = kept(link, tls)
    flood(link)
    pair.client.say(ASK)
    in_turn(link, queued=1, silent=0)
    for _ in range(3):
        pair.client.say(ASK)
        time.sleep(0.05)        # in separate segments
    in_turn(link, queued=1, silent=0)
    assert pair.server.heard == ASK
    pair.client.leave(reset)
    in_turn(link, queued=0, silent=0)
    link.gateway.wait_until(lambda: pair.server.over, 'its server hears of it')


@pytest.mark.sanitized
def test_a_client_that_dribbles(link):
    """Each piece that follows a silence needs a turn, and gives up its slot."""
    pair = kept(link)
    before = exchanges(link)
    for number in range(1, 4):
        pair.client.say(b'x')
        pair.server.wait_for(ASK + number * b'x')
        silent(link)
    assert exchanges(link) == before + 3
    busy = flood(link)
    in_turn(link, silent=1)
    pair.client.say(b'y')
    in_turn(link, queued=1, silent=0)
    assert pair.server.heard == ASK + b'xxx'
    busy.client.leave(reset=True)
    pair.server.wait_for(ASK + b'xxxy')


@pytest.mark.sanitized
def test_a_client_that_asks_and_never_reads(link):
    """The bytes that it does not read wait at its server; another has the slot."""
    pair = link.ends.tunnel(link.of('gold')[0], unread=True)
    pair.client.say(ASK)
    pair.server.wait_for(ASK)
    pair.server.say(MUCH)
    silent(link)
    assert int(link.gateway.classes()['gold']['bytes']) > 0
    busy = flood(link)
    in_turn(link, silent=1)
    pair.client.listen()
    in_turn(link, queued=1, silent=0)
    busy.client.leave(reset=True)
    pair.client.wait_for(MUCH)


def test_a_request_beside_a_large_answer_goes_before_who_has_had_less(link):
    """In one tunnel, as with HTTP/2; in one class, whose next turns go to the least served response."""
    link.gateway.reconfigure(ONE_PLACE, 'msfrs_quantum 8 KB')
    one, other = (link.ends.tunnel(user) for user in link.of('gold')[:2])
    one.client.say(ASK)
    one.server.say(bytes(FLOOD))
    link.gateway.wait_until(lambda: len(one.client.heard) > 1_000_000, 'it has had a lot')
    other.server.say(bytes(FLOOD))
    link.gateway.wait_until(lambda: len(other.client.heard) > 100_000, 'the other goes on')
    had = len(one.client.heard)
    link.gateway.wait_until(lambda: len(other.client.heard) > 300_000, 'the other goes on')
    assert len(one.client.heard) == had, 'it waits until the other has had as much'
    one.client.say(ASK)
    link.gateway.wait_until(lambda: len(one.client.heard) > had, 'it goes before the other')
    assert len(other.client.heard) < had
    one.client.leave(reset=True)
    other.client.leave(reset=True)
    silent(link, 0)
    link.gateway.reconfigure(*LINES)


@INSIDE
@pytest.mark.parametrize('reset', (False, True), ids=('close', 'reset'))
@pytest.mark.sanitized
def test_a_server_that_leaves_while_its_client_is_held(link, tls, reset):
    pair = kept(link, tls)
    flood(link)
    pair.client.say(ASK)
    in_turn(link, queued=1, silent=0)
    pair.server.leave(reset)
    in_turn(link, queued=0, silent=0)
    link.gateway.wait_until(lambda: pair.client.over, 'its client hears of it')


@INSIDE
@pytest.mark.parametrize('reset', (False, True), ids=('close', 'reset'))
def test_the_end_of_one_side_is_that_of_a_silent_tunnel(link, tls, reset):
    """TLS does not go on in one direction. In other tunnels the other end ends its own, too."""
    one, other = kept(link, tls, half=True), link.ends.tunnel(link.of('bronze')[0], tls, half=True)
    silent(link, 2)
    one.client.leave(reset)
    link.gateway.wait_until(lambda: one.server.over, 'the server hears of it')
    other.server.leave(reset)
    link.gateway.wait_until(lambda: other.client.over, 'the client hears of it')
    if not tls and not reset:
        silent(link, 1)
        one.server.leave()
        link.gateway.wait_until(lambda: one.client.over, 'the client hears of it')
        other.client.leave()
    silent(link, 0)
    assert len({logged(link, pair)['port'] for pair in (one, other)}) == 2


@pytest.mark.sanitized
def test_an_answer_after_the_end_of_the_question(link):
    """A client that closes its half keeps its place in the queue, and gets its answer in turn."""
    pair, busy = kept(link, half=True), flood(link)
    pair.client.say(ASK)
    pair.client.leave()
    in_turn(link, queued=1, silent=0)
    beside = link.users.get(link.of('bronze')[0], via='beside', size=1_000, pace=1_000)
    assert beside.wait().good
    in_turn(link, queued=1, silent=0)
    assert pair.server.heard == ASK and not pair.server.over
    busy.client.leave(reset=True)
    pair.server.wait_for(ASK + ASK)
    link.gateway.wait_until(lambda: pair.server.over, 'the end of the question')
    before = link.gateway.total('bytes')
    pair.server.say(MUCH)
    pair.client.wait_for(ANSWER + MUCH)
    assert link.gateway.total('bytes') - before == len(MUCH)
    pair.server.leave()
    link.gateway.wait_until(lambda: pair.client.over, 'the end of the answer')
    assert int(logged(link, pair)['exchanges']) == 1 + exchanges(link) - pair.before
    silent(link, 0)


@pytest.mark.sanitized
def test_a_question_after_the_end_of_the_answer(link):
    """A server that has closed its half needs no turn: nothing more comes over the link."""
    pair = kept(link, half=True)
    pair.server.leave()
    link.gateway.wait_until(lambda: pair.client.over, 'the end of the answer')
    silent(link, 0)
    flood(link)
    pair.client.say(MUCH)
    pair.server.wait_for(ASK + MUCH)
    pair.client.leave()
    link.gateway.wait_until(lambda: pair.server.over, 'the end of the question')
    assert int(logged(link, pair)['exchanges']) == pair.first


@pytest.mark.sanitized
@pytest.mark.parametrize('who', ('client', 'server'))
def test_an_idle_half_is_cut(link, who):
    """After a minute, or read_timeout if that is less."""
    link.gateway.reconfigure(*LINES, 'read_timeout 2 seconds')
    pair = kept(link, half=True)
    ending, other = (pair.client, pair.server) if who == 'client' else (pair.server, pair.client)
    ending.leave()
    link.gateway.wait_until(lambda: other.over, 'the end of one half')
    link.gateway.wait_until(lambda: ending.over, 'and of the other')
    link.gateway.reconfigure(*LINES)


@pytest.mark.sanitized
@pytest.mark.parametrize('lines, how', (
    ((), {}),
    ((), {'weights': {'silver': 1, 'bronze': 1}}),
    (('msfrs_arbiter fifo',), {}),
), ids=('same', 'class-gone', 'arbiter'))
def test_reconfigured_while_held(link, lines, how):
    pair, busy = kept(link), flood(link)
    pair.client.say(ASK)
    in_turn(link, queued=1, silent=0)
    link.gateway.reconfigure(*LINES, *lines, **how)
    in_turn(link, queued=1, silent=0)
    assert pair.server.heard == ASK
    busy.client.leave(reset=True)
    pair.server.wait_for(ASK + ASK)
    pair.client.leave()
    link.gateway.reconfigure(*LINES)


@pytest.mark.sanitized
def test_switched_off_while_held(link):
    pair = kept(link)
    flood(link)
    pair.client.say(ASK)
    in_turn(link, queued=1, silent=0)
    link.gateway.reconfigure(on=False)
    pair.server.wait_for(ASK + ASK)
    pair.server.say(MUCH)
    pair.client.wait_for(ANSWER + MUCH)
    pair.client.leave()
    link.gateway.reconfigure(*LINES)


def test_what_was_scheduled_before_it_was_switched_off_is_logged(link):
    pair = kept(link)
    link.gateway.reconfigure(on=False)
    pair.client.leave()
    row = logged(link, pair)
    assert int(row['exchanges']) == pair.first and len(ANSWER) <= int(row['bytes']) < len(ANSWER) + 1000
    link.gateway.reconfigure(*LINES)


def test_what_waited_too_long_goes_on(link):
    """Regardless of the window: nobody could be told of a refusal."""
    pair = kept(link)
    flood(link)
    pair.client.say(ASK)
    in_turn(link, queued=1, silent=0)
    link.gateway.reconfigure(*LINES, 'msfrs_queue max_wait=100ms')
    pair.server.wait_for(ASK + ASK)
    assert link.gateway.classes()['gold']['refused']['max_wait'] == 0
    link.gateway.reconfigure(*LINES)
