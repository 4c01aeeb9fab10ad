# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-edge beside Squid as a party of its ledger: traffic that bypasses Squid is limited to its share of the link, by
the classes of squid.conf, and a user's packets and responses share one account."""
import os
import signal
import socket
import threading
import time

import pytest

from fieldtrial.site import msfrs_edge
from fieldtrial.site.arms import EDGE
from fieldtrial.site.world import LAN
from gateway import SOON
from test_shares import MEASURED, WARM_UP, assert_shares, by_class, measure, near

#: Settings that the parties of a link need.
SHARED = 'msfrs_window interval=1s', SOON


class Edge:
    """conf/edge/downlink.conf on the gateway of a link."""

    def __init__(self, link):
        self.link = link
        self.start()

    def start(self):
        # Settings for a link as slow as this.
        self.daemon = msfrs_edge.hold(self.link.world, LAN, EDGE, aqm='codel target=60 interval=300')

    def totals(self):
        return msfrs_edge.totals(self.daemon.control)

    def classes(self):
        """Bytes that passed, by class."""
        found = {}
        for name, labels, value in msfrs_edge.SAMPLE.findall(msfrs_edge.ask(self.daemon.control, 'metrics')):
            if name == 'passed_bytes_total':
                found[labels.split('"')[1]] = float(value)
        return found

    def log(self):
        return (self.link.world.directory / 'downlink.log').read_text()


def parties(link, kind):
    return [row for row in link.gateway.report().get('parties', []) if row['kind'] == kind and row['live']]


@pytest.fixture
def link(slow_link):
    """Squid with one worker that shares the link, and the edge beside it."""
    slow_link.gateway.start(*SHARED, rate=f'{slow_link.world.rate_bps / 1000:.0f}kbit shared')
    slow_link.edge = Edge(slow_link)
    slow_link.gateway.wait_until(lambda: parties(slow_link, 'edge') and
                                 slow_link.edge.totals()['share_bits_per_second'] > 0, 'the edge is a party')
    return slow_link


def past_squid(link, users):
    """Keeps them busy with downloads that bypass Squid: TCP responds to loss and marks as QUIC does."""
    return link.users.load(users, via='tls', inflight=2, size=400_000)


def flood(link, user, rate, stopped):
    """UDP at a constant rate, regardless of loss."""
    with link.world.farm.inside():
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def run():
        began, sent = time.monotonic(), 0
        while not stopped.wait(0.01):
            while sent < (time.monotonic() - began) * rate / 8:
                sender.sendto(bytes(1200), (user.v4, 9))
                sent += 1228
        sender.close()
    threading.Thread(target=run, daemon=True).start()


@pytest.mark.link(rate_bps=6e6, rtts_ms=(40.0,), buffer_bdp=3)
def test_what_passes_beside_squid_has_its_share(link):
    """The first user of each class bypasses Squid, the second uses it: each gets a share by weight."""
    beside = [link.of(name)[0] for name in link.world.weights]
    through = [link.of(name)[1] for name in link.world.weights]
    loads = past_squid(link, beside), link.users.load(through)
    time.sleep(2 * WARM_UP)
    before = {**loads[0].bytes(), **loads[1].bytes()}
    time.sleep(2 * MEASURED)
    got = {**loads[0].since(before), **loads[1].since(before)}
    row, = parties(link, 'edge')
    for load in loads:
        load.stop(abort=True)
    assert set(link.edge.classes()) == set(link.world.weights), 'the classes of squid.conf'
    assert row['demand'] > 0 and row['outstanding'] > 0
    assert_shares(got, {user: link.world.weights[user.cls] for user in link.world.users})


@pytest.mark.link(rate_bps=6e6, rtts_ms=(40.0,), buffer_bdp=3)
def test_a_flood_takes_no_more_from_others_than_the_link_loses(link):
    """A user of bronze is sent 30 % of the link's rate, unresponsive to loss. It gets its share of that, and the rest
    of the link is divided by weight."""
    flooded, stopped = link.of('bronze')[0], threading.Event()
    others = [user for user in link.world.users if user is not flooded]
    flood(link, flooded, 0.3 * link.world.rate_bps, stopped)
    load = link.users.load(others)
    try:
        time.sleep(2 * WARM_UP)
        before, began = link.edge.classes(), time.monotonic()
        got, _ = measure(link, load, MEASURED)
        after, took = link.edge.classes(), time.monotonic() - began
    finally:
        stopped.set()
        load.stop(abort=True)
    passed = {name: (after[name] - before[name]) * 8 / took / link.world.rate_bps for name in after}
    assert passed['gold'] == passed['silver'] == 0 < passed['bronze'] < 0.12, passed
    shares = by_class(link, got)
    assert near(shares['gold'] / shares['silver'], 2, 0.2), shares
    assert sum(got.values()) * 8 / MEASURED > 0.5 * link.world.rate_bps, shares


def test_a_killed_edge_leaves_its_share_to_squid(link):
    """Its slots are free after a second, and its successor participates again."""
    user = link.of('gold')[0]
    load = past_squid(link, [user])
    link.gateway.wait_until(lambda: any(row['outstanding'] for row in parties(link, 'edge')), 'it holds places')
    os.kill(link.edge.daemon.pid, signal.SIGKILL)
    killed = time.monotonic()
    link.gateway.wait_until(lambda: not parties(link, 'edge'), 'it is dead')
    assert time.monotonic() - killed < 2.5
    link.gateway.wait_until(lambda: link.gateway.report()['window']['outstanding'] == 0, 'W is 0')
    link.edge.start()
    link.gateway.wait_until(lambda: parties(link, 'edge'), 'it is back')
    load.stop(abort=True)


def test_squid_may_come_later_and_start_again(slow_link):
    """Packets pass until Squid runs; after each start of Squid the edge finds its new segment."""
    edge = Edge(slow_link)
    assert 'cannot be opened: No such file or directory; the program that creates it does not run' in edge.log()
    assert slow_link.users.get(slow_link.of('gold')[0], via='tls', size=1000).wait()
    for _ in range(2):
        slow_link.gateway.start(*SHARED, rate=f'{slow_link.world.rate_bps / 1000:.0f}kbit shared')
        slow_link.gateway.wait_until(lambda: parties(slow_link, 'edge') and
                                     edge.totals()['share_bits_per_second'] > 0, 'it is a party')
        slow_link.gateway.wait_until(lambda: 'is shared, with 3 classes of Squid' in edge.log().splitlines()[-1],
                                     'it says so')
        slow_link.gateway.end()
    assert sum('segment' in line for line in edge.log().splitlines()) <= 9, edge.log()
