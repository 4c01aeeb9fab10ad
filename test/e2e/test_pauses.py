# SPDX-License-Identifier: GPL-2.0-or-later
"""A tunnel that is paused between two turns: bytes in flight are forwarded to the client, and the server sends no more
until the next turn."""
import ssl

import pytest

from background import content
from both_ends import both_ends_of
from gateway import NARROW

pytestmark = pytest.mark.sanitized
PAGE = content('page', 0, 1_000_000)
GREETING = b'welcome'
#: Greatest number of bytes in flight: the link's rate times msfrs_link rtt=, and the kernel's rounding.
MOST = 100_000


@pytest.fixture
def ends(slow_link):
    with both_ends_of(slow_link, (NARROW, 'msfrs_arbiter msf lag=0 favour=0')) as ends:
        yield ends


@pytest.fixture
def paused(slow_link, ends):
    """A tunnel in the middle of a page, and one that holds the only slot, as its server has a request."""
    gateway = slow_link.gateway
    tunnel = ends.tunnel(slow_link.of('bronze')[0])  # the one whose bytes Squid counts
    tunnel.server.say(GREETING)
    gateway.wait_for(queued=0, paused=0, in_flight=0, silent=1)
    blocker = ends.tunnel(slow_link.of('gold')[0], ssl.TLSVersion.TLSv1_3)
    gateway.wait_for(queued=0, paused=0, in_flight=0, silent=2)
    tunnel.client.say(b'a request')
    tunnel.server.wait_for(b'a request')
    tunnel.server.say(PAGE)
    gateway.wait_until(lambda: len(tunnel.client.heard) > 100_000, 'it flows')
    blocker.client.say(b'another')
    blocker.server.wait_for(b'another')
    gateway.wait_for(queued=0, paused=1, in_flight=1)
    return tunnel, blocker


def test_what_was_on_its_way_goes_on_and_no_more(slow_link, ends, paused):
    gateway, (tunnel, blocker) = slow_link.gateway, paused

    def charged():
        return gateway.classes()['bronze']['bytes']
    before = charged()
    gateway.wait_until(lambda: len(tunnel.client.heard) > before, 'it has more than what is charged')
    assert gateway.classes()['bronze']['paused'] == 1
    blocker.client.leave(reset=True)
    assert len(tunnel.client.heard) < before + MOST < len(PAGE)
    tunnel.client.wait_for(GREETING + PAGE)
    ends.none_left()
    assert charged() == len(GREETING + PAGE), 'all of it, once'


def test_a_client_that_leaves_in_a_pause(slow_link, ends, paused):
    gateway, (tunnel, blocker) = slow_link.gateway, paused
    tunnel.client.leave(reset=True)
    gateway.wait_for(queued=0, paused=0, in_flight=1, silent=0)
    blocker.server.say(b'an answer')
    blocker.client.wait_for(b'an answer')
    ends.none_left()


def test_a_client_that_closes_its_half_in_a_pause_gets_the_rest(slow_link, ends, paused):
    gateway, (tunnel, blocker) = slow_link.gateway, paused
    tunnel.client.leave()
    blocker.client.leave(reset=True)
    tunnel.client.wait_for(GREETING + PAGE)
    tunnel.server.leave()
    ends.none_left()


def test_a_server_that_leaves_in_a_pause(slow_link, ends, paused):
    """Its client receives the bytes that have arrived by then, and the end of the connection."""
    gateway, (tunnel, blocker) = slow_link.gateway, paused
    tunnel.server.leave(reset=True)
    blocker.server.say(b'an answer')
    blocker.client.wait_for(b'an answer')
    gateway.wait_until(lambda: tunnel.client.over, 'the end')
    assert (GREETING + PAGE).startswith(bytes(tunnel.client.heard))
    ends.none_left()
