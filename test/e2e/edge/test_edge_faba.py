# SPDX-License-Identifier: GPL-2.0-or-later
"""FABA's shares under real traffic: TCP beside constant-rate UDP, weights of classes, and a tree of classes.

The scheduler is always fifo: any fairness is due to the AQM.
"""
import pytest

from edgetrial.iperf import Flow
from shares import rates

CONF = '''
link rate=10Mbit overhead=14B
queue number=0
limit 100
scheduler fifo
flow connection
'''


@pytest.mark.edge_link(rtts_ms=(20,) * 2)
@pytest.mark.parametrize('aqm, least, most', (
    # Its fair share is 1 Mbit/s, and the paper's FABA allows it little more (figure 10). A plain tail-drop buffer
    # allows it nearly all of its 5 Mbit/s, and RED no less than half of them.
    ('faba', 0.6e6, 1.7e6),
    ('sfed', 0.6e6, 1.7e6),
    ('droptail', 3.0e6, 5.2e6),
))
def test_unresponsive_flow_beside_nine_of_tcp(edge_link, aqm, least, most):
    edge_link.start_edge(CONF, aqm=aqm)
    edge_link.take()
    near, far = edge_link.senders
    udp = Flow(far, edge_link.receivers[0], rate_bps=5e6)
    tcp = Flow(near, edge_link.receivers[0], streams=9)
    had, _ = rates(edge_link, [udp, tcp], measured=6)
    assert least < had[0] < most, had
    assert sum(had) > 0.85 * 10e6, had


@pytest.mark.edge_link(rtts_ms=(20,) * 2)
def test_weights_of_classes(edge_link):
    """A class of weight 3 and one of weight 1, which sends at the link's rate and is unresponsive. With equal weights
    it would get 5 of 10 Mbit/s, with a plain buffer nearly all."""
    edge_link.start_edge(CONF + '''
class heavy weight=3
class light weight=1 default=on
classify heavy protocol=tcp
''', aqm='faba bucket=class')
    edge_link.take()
    near, far = edge_link.senders
    udp = Flow(far, edge_link.receivers[0], rate_bps=9e6)
    tcp = Flow(near, edge_link.receivers[0], streams=6)
    had, _ = rates(edge_link, [udp, tcp], measured=6)
    assert 1.7e6 < had[0] < 3.5e6, had       # 2.5 Mbit/s
    assert had[1] > 0.6 * 10e6, had          # 7.5 Mbit/s


@pytest.mark.edge_link(rtts_ms=(20,) * 3)
def test_tree_of_classes(edge_link):
    """Half goes to unresponsive traffic, and of the rest a third to one class of TCP and two thirds to another, though
    both have as many connections. As figure 18, except that the weight of the parent class is not the sum of its
    children's: if it were, classes of one level would give the same."""
    edge_link.start_edge(CONF + '''
class adaptive weight=1
class light weight=1 parent=adaptive
class bulk weight=2 parent=adaptive
class cbr weight=1 default=on
classify light protocol=tcp from=198.19.1.1
classify bulk protocol=tcp from=198.19.1.2
''', aqm='faba bucket=tree')
    edge_link.take()
    light, bulk, cbr = (Flow(sender, edge_link.receivers[0], **how) for sender, how in
                        zip(edge_link.senders, ({'streams': 4}, {'streams': 4}, {'rate_bps': 9e6})))
    had, _ = rates(edge_link, [light, bulk, cbr], measured=6)
    # 5 Mbit/s. With classes of one level it would get a quarter, 2.5; with nine flows of one weight 1.1; with a plain
    # buffer nearly all.
    assert 3.8e6 < had[2] < 6.2e6, had
    assert 1.4 < had[1] / had[0] < 2.9, had  # 3.3 to 1.7 Mbit/s
