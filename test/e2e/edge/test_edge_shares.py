# SPDX-License-Identifier: GPL-2.0-or-later
"""Order and shares of every scheduler under real TCP: classes by weight, and within them hosts regardless of their
number of connections.

No packet is lost: every connection has the same small window, and all windows fit into the buffer. So connections wait
in the queue for their turn, and the shares depend on the scheduler alone.
"""
import pytest

from edgetrial.iperf import Flow
from shares import rates

CONF = '''
link rate=8Mbit overhead=14B
queue number=0
limit 1000
flow src ipv6-prefix=128
class gold weight=3
class bronze weight=1 default=on
classify gold from=198.19.1.1-198.19.1.2
classify gold from=2001:2:0:8001::1-2001:2:0:8001::2
'''
WINDOW = 32768

#: Ratios of gold to bronze, and of gold's first host, with three connections, to the second, with one. fifo shares by
#: connections, 4 to 4 and 3 to 1; class weights are 3:1; weights of users, of whom gold has two, give 6:1. drfq and
#: atfq, whose packets need only the link here, give each flow the weight of its class. diffserv has one queue a class.
#: So each of the four pairs of ratios is wrong for all other schedulers.
EXPECTED = {'fifo': (1, 3), 'drr': (3, 1), 'sfq': (3, 1), 'msfq': (3, 1), 'drr share=user': (6, 1),
            'msfq share=user': (6, 1), 'msf': (6, 1), 'diffserv': (3, 3), 'drfq rate=8000000': (6, 1),
            'atfq rate=8000000': (6, 1)}
#: Neighbouring ratios (1 and 3, 3 and 6) differ at least by a factor of 2; half of that on either side would be 1.41.
NEAR = 1.25


def near(found, wanted):
    return wanted / NEAR < found < wanted * NEAR


@pytest.mark.edge_link(rtts_ms=(0,) * 3)
@pytest.mark.parametrize('scheduler', ('drr', 'sfq', 'diffserv'))
def test_weights_hold_under_a_flood_without_an_aqm(edge_link, scheduler):
    """All senders exceed the link's rate, the one with least weight the most, and are unresponsive. With one tail-drop
    buffer the largest sender gets most of the link, and 4:2:1 becomes 3.8:2.6:3.1."""
    edge_link.start_edge(CONF.replace('limit 1000', 'limit 100').split('class gold')[0] + '''
class gold weight=4
class silver weight=2
class bronze weight=1 default=on
classify gold from=198.19.1.1
classify silver from=198.19.1.2
''', scheduler=scheduler)
    edge_link.take()
    gold, silver, bronze = (Flow(host, edge_link.receivers[0], rate_bps=rate, packet=packet) for host, rate, packet in
                            zip(edge_link.senders, (8e6, 9e6, 16e6), (1000, 1000, 500)))
    had, _ = rates(edge_link, [gold, silver, bronze], warm_up=1)
    for rate, share in zip(had, (4, 2, 1)):
        assert rate / sum(had) == pytest.approx(share / 7, rel=0.08), had


@pytest.mark.edge_link(rtts_ms=(0,) * 8)
def test_several_threads_share_the_link(edge_link):
    """Four queues, chosen by addresses, share one link. With a separate rate for each, or the whole rate for each, they
    would exceed the link's rate by a quarter or more."""
    edge_link.start_edge(CONF.replace('number=0', 'number=0 threads=4'), scheduler='drr')
    edge_link.take('0-3')
    flows = [Flow(host, edge_link.receivers[0], window=WINDOW) for host in edge_link.senders]
    had, _ = rates(edge_link, flows)
    assert 0.9 * 8e6 < sum(had) < 1.01 * 8e6, had
    busy = [line for line in edge_link.router.run('cat', '/proc/net/netfilter/nfnetlink_queue').splitlines()
            if int(line.split()[7]) > 100]       # number of the last packet
    assert len(busy) >= 2       # the probability that all eight are in one is 1 in 16,384


@pytest.mark.edge_link(rtts_ms=(0,) * 3)
@pytest.mark.parametrize('scheduler, family', [*((name, 4) for name in EXPECTED), ('drr', 6)])
def test_classes_share_by_weight_and_hosts_alike(edge_link, scheduler, family):
    edge_link.start_edge(CONF, scheduler=scheduler)
    edge_link.take()
    first, second, third = edge_link.senders
    flows = [Flow(host, edge_link.receivers[0], streams=streams, window=WINDOW, family=family)
             for host, streams in ((first, 3), (second, 1), (third, 4))]
    had, _ = rates(edge_link, flows)
    classes, hosts = EXPECTED[scheduler]
    assert near((had[0] + had[1]) / had[2], classes), had
    assert near(had[0] / had[1], hosts), had
    # The link was full, but not overloaded: this count omits 14 bytes a packet.
    assert 0.9 * 8e6 < sum(had) < 1.01 * 8e6, had
