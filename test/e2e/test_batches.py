# SPDX-License-Identifier: GPL-2.0-or-later
"""While others wait, Squid reads a response several segments at a time. No bytes are held back for that."""
import pytest

from gateway import NARROW

pytestmark = [pytest.mark.sanitized, pytest.mark.link(rate_bps=4e6, rtts_ms=(5.0, 5.0))]
BATCH = 4096    #: bytes; BatchBytes in src/session/read_batch.cc


@pytest.fixture(scope='module')
def crowded(common_link):
    """A gateway that serves one request at a time, each without a pause."""
    common_link.gateway.start(NARROW, 'msfrs_quantum 1 MB')


@pytest.fixture
def link(crowded, shared_link):
    return shared_link


def test_what_a_slow_server_has_sent_is_passed_on(link):
    """At 600 bytes a second a batch takes seven seconds; the bytes are forwarded in smaller pieces."""
    gateway, (one, two) = link.gateway, link.of('gold')
    slow = link.users.get(one, size=30_000, pace=600)
    gateway.wait_for(queued=0, in_flight=1)
    waiting = link.users.get(two, size=3_000)
    gateway.wait_for(queued=1, in_flight=1)
    received, pieces = slow.received, []
    while len(pieces) < 3:
        before = received
        gateway.wait_until(lambda: slow.received > before, slow)  # pylint: disable=cell-var-from-loop
        received = slow.received
        pieces.append(received - before)
    assert max(pieces) < BATCH, pieces
    slow.abort()
    assert waiting.wait().good, waiting
    gateway.rest()


@pytest.mark.parametrize('size', (BATCH, BATCH + 1, 3 * BATCH - 1, 50_000))
def test_a_connection_is_handed_on_as_it_was(link, size):
    """Otherwise the kernel would hold back a short response to the next request until the server gives up."""
    gateway, origin, (one, two) = link.gateway, link.origin, link.of('gold')
    first = link.users.get(one, size=size, gate=f'first-{size}')
    gateway.wait_for(queued=0, in_flight=1)
    second = link.users.get(two, size=10)
    gateway.wait_for(queued=1, in_flight=1)
    origin.open_gate(f'first-{size}')
    assert first.wait().good, first
    assert second.wait().good, second
    ports = [seen.port for seen in origin.seen if seen.key in (first.key, second.key)]
    assert len(ports) == 2 and len(set(ports)) == 1, 'both were to go over one connection'
    gateway.rest()


@pytest.mark.parametrize('then', ('close', 'reset'))
def test_a_server_that_ends_below_a_batch(link, then):
    """The bytes that it has sent are forwarded, and its slot is released at once."""
    gateway, (one, two) = link.gateway, link.of('gold')
    faulty = link.users.get(one, size=60_000, send=20_000, then=then, gate=f'end-{then}')
    gateway.wait_for(queued=0, in_flight=1)
    waiting = link.users.get(two, size=3_000)
    gateway.wait_for(queued=1, in_flight=1)
    link.origin.open_gate(f'end-{then}')
    assert waiting.wait().good, waiting
    assert not faulty.wait().whole and faulty.intact
    gateway.rest()
