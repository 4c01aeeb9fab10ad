# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 13 of the MSF-RS paper: Squid and msfrs-edge on one gateway whose uplink is a bottleneck, too. While a user
uploads, fetches of others through Squid must not wait: every request and every acknowledgement uses the uplink."""
import contextlib
import statistics
import time
import types

import pytest

from fieldtrial.base.paths import ROOT
from edgetrial import iperf as flows
from fieldtrial.site import grid, msfrs_edge
from fieldtrial.site.world import WAN, World
from gateway import Gateway

#: A gateway without either: a single queue of 50 packets, or 1.2 s.
PLAIN = 'queue number=0\nscheduler fifo\naqm droptail\nlimit 50\n'
UPLINK = 'rate=500kbit overhead=14B'
SMALL = grid.nearest(4096)


@pytest.fixture(scope='module')
def world(installed, certificates):
    with World(rate_bps=4e6, rtts_ms=(20,), users=(1, 1, 1)) as made:
        made.start_names()
        made.start_origin()
        made.start_squid(Gateway(made, installed, certificates.gateway).configuration(), installed.program)
        yield made


def fetch_seconds(world, conf, count=9):
    """Seconds of each of several fetches of a small object during an upload that has filled the uplink."""
    uploader, user = world.users[-1], world.users[0]
    ends = types.SimpleNamespace(senders_host=world.users_host, receivers_host=world.farm)
    with contextlib.ExitStack() as stack:
        edge = stack.enter_context(msfrs_edge.start(world, world.gateway, ROOT / 'build/install/sbin/msfrs-edge', conf,
                                                link=UPLINK))
        stack.callback(msfrs_edge.rules, world.gateway, 'down')
        msfrs_edge.rules(world.gateway, 'up', '--link', f'{WAN}=0')
        stack.enter_context(flows.running(ends, [flows.Flow(uploader, world.servers[0], streams=2)], 60))
        end = time.monotonic() + 30
        while msfrs_edge.totals(edge.control)['passed_bytes_total'] < 500e3 / 8 * 3:     # three seconds of upload
            assert time.monotonic() < end
            time.sleep(0.05)
        took = []
        for _ in range(count):
            before = time.monotonic()
            status, size, _ = world.fetch(user, world.servers[0], SMALL)
            assert (status, size) == (200, SMALL)
            took.append(time.monotonic() - before)
        return took


@pytest.fixture(scope='module')
def plain_seconds(world):
    return statistics.median(fetch_seconds(world, PLAIN))


@pytest.mark.parametrize('name', ('uplink', 'uplink-requests'))
def test_an_upload_holds_nobody_up(world, plain_seconds, name):
    """With a single queue, a request waits for most of a second. With either use it waits for little: a packet of
    24 ms, and Squid's own processing; a quarter leaves room for a busy machine."""
    assert plain_seconds > 0.3
    assert statistics.median(fetch_seconds(world, msfrs_edge.CONF / f'{name}.conf')) < plain_seconds / 4
