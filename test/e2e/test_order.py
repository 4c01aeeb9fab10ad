# SPDX-License-Identifier: GPL-2.0-or-later
"""The stated number of bytes remaining decides which response resumes, and a false statement gains nothing.

Nothing here depends on time: which response resumed shows in the bytes received when all wait again.
"""
import pytest

from gateway import NARROW

QUANTUM = 16384
HEADERS = 500       #: bytes of headers at most that are charged for each response, and not seen by the user
SMALL = 150_000     #: bytes: more than gold gets before bronze's turn
#: Classes in strict turns: credit earned in idle seconds would let several resume out of turn.
STRICT = NARROW, 'msfrs_arbiter msf favour=0'

pytestmark = pytest.mark.link(rate_bps=4e6, users=(1, 0, 1), rtts_ms=(5.0, 5.0))


class Turns:
    """A large and a small response of one user of gold, which have both had a quantum and wait. A third request, which
    waits for its server, holds the slot."""

    def __init__(self, link, large):
        self.link = link
        gateway, self.origin = link.gateway, link.origin
        (gold,), (self.bronze,) = link.of('gold'), link.of('bronze')
        link.users.get(self.bronze, gate='begin')
        gateway.wait_for(queued=0, in_flight=1)
        self.large = link.users.get(gold, **large)
        gateway.wait_for(queued=1, in_flight=1)
        self.small = link.users.get(gold, size=SMALL)
        gateway.wait_for(queued=2, in_flight=1)
        self.holder = link.users.get(gold, gate='holder')
        gateway.wait_for(queued=3, in_flight=1)
        self.other = link.users.get(self.bronze, size=SMALL)
        gateway.wait_for(queued=4, in_flight=1)
        self.origin.open_gate('begin')
        gateway.wait_for(queued=0, paused=3, in_flight=1)
        for fetch in (self.large, self.small, self.other):
            gateway.wait_until(lambda: fetch.received > QUANTUM - HEADERS, fetch)  # pylint: disable=cell-var-from-loop
        assert not self.holder.status

    def go_on(self, first, second):
        """Gold resumes until it has had its share, four times that of bronze; then a new request of bronze takes the
        slot, and waits for its server. Returns the bytes that `second` received meanwhile; `first` got a quantum or
        more."""
        before = first.received, second.received
        self.link.users.get(self.bronze, key='end', gate='end')
        self.link.gateway.wait_for(queued=1, paused=3, in_flight=1)
        self.origin.open_gate('holder')
        self.link.gateway.wait_for(queued=0, paused=3, in_flight=1)
        self.link.gateway.wait_until(lambda: 'end' in self.origin.keys(), 'the new request at its server')
        self.link.gateway.wait_until(lambda: first.received - before[0] > QUANTUM - HEADERS, first)
        return second.received - before[1]

    def finish(self):
        """Completes all requests."""
        self.origin.open_gate('end')
        for fetch in (self.large, self.small, self.other):
            fetch.wait()
        self.link.gateway.rest()


@pytest.mark.parametrize('large, whole', [
    ({'size': 2 * SMALL}, True),
    ({'size': 1000 * SMALL, 'send': 2 * SMALL, 'then': 'close'}, False)], ids=['as said', 'much less than said'])
def test_the_least_left_goes_first(slow_link, large, whole):
    """A server that overstates its response delays its own response."""
    slow_link.gateway.start(*STRICT)
    turns = Turns(slow_link, large)
    assert turns.go_on(turns.small, turns.large) < QUANTUM / 2
    turns.finish()
    assert turns.small.good and turns.other.good
    assert (turns.large.whole, turns.large.intact) == (whole, True)


def test_a_chunk_says_what_is_left_at_least(slow_link):
    """The whole large response is one chunk. In many chunks it would go first: see below."""
    slow_link.gateway.start(*STRICT)
    turns = Turns(slow_link, {'size': 2 * SMALL, 'framing': 'chunked', 'chunk': 2 * SMALL})
    assert turns.go_on(turns.small, turns.large) < QUANTUM / 2
    turns.finish()
    assert turns.large.good and turns.small.good


@pytest.mark.parametrize('framing', ['chunked', 'close'])
def test_what_nobody_knows_counts_as_much_as_it_has_had(slow_link, framing):
    """Which is less than the rest of the small one; the end of a short chunk tells nothing."""
    slow_link.gateway.start(*STRICT)
    turns = Turns(slow_link, {'size': 2 * SMALL, 'framing': framing})
    assert turns.go_on(turns.large, turns.small) < QUANTUM / 2
    turns.finish()
    assert turns.large.good and turns.small.good


def test_an_ftp_server_says_how_large_a_file_is(ftp):
    ftp.gateway.start(*STRICT)
    turns = Turns(ftp, {'key': 'big', 'via': 'ftp', 'path': '/big'})
    assert turns.go_on(turns.small, turns.large) < QUANTUM / 2
    turns.finish()
    assert turns.large.good and turns.small.good


@pytest.mark.parametrize('size, first', [(100, 'stored'), (30_000, 'new')])
@pytest.mark.parametrize('answer', [{'keeps': 1}, {}], ids=['304', '200'])
def test_a_stored_response_says_how_large_another_will_be(slow_link, answer, size, first):
    """Only if it is small: a large one will most likely be answered with 304, so requests go in their order."""
    gateway, (user,) = slow_link.gateway.start(*STRICT, cache=True), slow_link.of('gold')
    stored = {'key': 'stored', 'size': size, 'cache': 600, **answer}
    assert slow_link.users.get(user, **stored).wait().good
    slow_link.users.get(slow_link.of('bronze')[0], gate='begin')
    gateway.wait_for(queued=0, in_flight=1)
    new = slow_link.users.get(user, 'new')
    gateway.wait_for(queued=1, in_flight=1)
    again = slow_link.users.get(user, **stored, header='Cache-Control: max-age=0')
    gateway.wait_for(queued=2, in_flight=1)
    slow_link.origin.open_gate('begin')
    assert new.wait().good and again.wait().good
    gateway.rest()
    assert slow_link.origin.keys()[2:] == [first, *{'stored', 'new'} - {first}]
    (row,) = [row for row in gateway.access_log(4) if 'REFRESH' in row['tag']]
    assert row['tag'] == ('TCP_REFRESH_UNMODIFIED' if answer else 'TCP_REFRESH_MODIFIED')


def test_attained_goes_by_turns(slow_link):
    """The result of the tests above if sizes were ignored."""
    slow_link.gateway.start(NARROW, 'msfrs_arbiter msf order=attained')
    turns = Turns(slow_link, {'size': 2 * SMALL})
    turns.go_on(turns.large, turns.small)
    turns.finish()
    assert turns.large.good and turns.small.good


@pytest.mark.parametrize('said', [1, 2 * SMALL - 1])
def test_a_server_that_says_too_little_gives_no_more_than_that(slow_link, said):
    """The user receives the stated bytes; those sent beyond them do not keep the slot from others."""
    slow_link.gateway.start(*STRICT)
    gold, bronze = slow_link.of('gold')[0], slow_link.of('bronze')[0]
    liar = slow_link.users.get(gold, gate='liar', size=said, send=2 * SMALL)
    slow_link.gateway.wait_for(queued=0, in_flight=1)
    honest = slow_link.users.get(bronze, size=SMALL)
    slow_link.gateway.wait_for(queued=1, in_flight=1)
    slow_link.origin.open_gate('liar')
    assert honest.wait().good, honest
    assert liar.wait().good and liar.received == said, liar
    slow_link.gateway.rest()
    charged = slow_link.gateway.classes()['gold']['bytes']
    assert charged <= said + QUANTUM + HEADERS, 'what was sent beyond it'
