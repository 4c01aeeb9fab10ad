# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-edge as shaper of a downlink of unknown rate (conf/edge/downlink-auto.conf), without Squid."""
import pytest

from background import wait_until
from fieldtrial.site import msfrs_edge
from fieldtrial.site.addresses import LAN4, LAN6
from fieldtrial.site.arms import EDGE
from fieldtrial.site.world import LAN, WAN

RATE = 4e6
QUEUE = 1


def shaper(world):
    """The example on the gateway, with bounds for a link as slow as this."""
    edge = msfrs_edge.start(world, world.gateway, EDGE, msfrs_edge.CONF / 'downlink-auto.conf', name='auto',
                            link='rate=auto min=500kbit max=50Mbit overhead=14B', queue=f'number={QUEUE} gso=off',
                            inside=f'{LAN4} {LAN6}')
    msfrs_edge.rules(world.gateway, 'up', '--link', f'{LAN}={QUEUE}', '--own', 'no', '--seen', f'{WAN}={QUEUE}')
    return edge


@pytest.mark.link(rate_bps=RATE, buffer_bdp=40, users=(2, 2, 2))
def test_the_rate_is_found_and_followed(slow_link):
    """With real TCP downloads: the full rate, a quarter of it, and the full rate again, within a tenth."""
    world = slow_link.world
    edge = shaper(world)

    def told():
        return msfrs_edge.totals(edge.control)
    assert told()['link_bits_per_second'] == 500_000, 'nobody has asked for anything'
    load = slow_link.users.load(world.users, via='tls', inflight=2, size=400_000)
    for rate in (RATE, RATE / 4, RATE):
        world.bottleneck.set_rate(rate)
        wait_until(lambda: 0.9 * rate < told()['link_bits_per_second'] < 1.1 * rate,
                   lambda: f'{rate}: {msfrs_edge.ask(edge.control, "status")}', timeout=30, check=edge.check)
    found = told()
    assert found['link_limited'] == 1, 'packets wait here, and not at the provider'
    assert found['link_base_round_trip_seconds'] < 0.1, 'servers are 10 and 40 ms away'
    load.stop(abort=True)
