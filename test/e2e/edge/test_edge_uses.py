# SPDX-License-Identifier: GPL-2.0-or-later
"""The example configurations, each as in conf/edge except for the path of the control socket."""
import contextlib
import statistics
import time

import pytest

from edgetrial.edge_link import OUT
from edgetrial.iperf import Flow, running
from edgetrial.wire import Wire
from fieldtrial.site.addresses import GATEWAY_IN4
from fieldtrial.site.msfrs_edge import CONF, totals
from probe import Probe, send_for
from site_in_namespaces import connection, listener
from shares import WARM_UP, rates

UPLINK = 9.5e6


@pytest.mark.parametrize('selfish, translated', (('six connections', False), ('a flood', False),
                                                 ('six connections', True)))
def test_uplink_hosts_have_the_same_share(edge_link, selfish, translated):
    """By connections the selfish host would get 6/7 of the link; its flood would leave almost nothing to the other. If
    msfrs-edge saw the addresses after NAT, both would be one host."""
    edge_link.start_edge(CONF / 'uplink.conf')
    edge_link.take()
    modest, greedy = edge_link.sender('10.1.0.1'), edge_link.sender('10.1.0.2')
    if translated:
        edge_link.router.run('iptables', '-t', 'nat', '-A', 'POSTROUTING', '-o', OUT, '-j', 'MASQUERADE')
    how = {'streams': 6} if selfish == 'six connections' else {'rate_bps': 20e6}
    flows = [Flow(greedy, edge_link.receivers[0], **how), Flow(modest, edge_link.receivers[0])]
    had, wire = rates(edge_link, flows)
    seen = {packet.source for flow in flows for packet in wire.of(flow)}
    assert seen == ({GATEWAY_IN4} if translated else {greedy.v4, modest.v4})
    assert had[1] > 0.38 * UPLINK, had
    assert had[0] > 0.38 * UPLINK, had


def test_uplink_hosts_of_ipv6_are_networks(edge_link):
    """A host gains nothing by a second address: of three addresses with a connection each, the two of one /64 would get
    two thirds."""
    edge_link.start_edge(CONF / 'uplink.conf')
    edge_link.take()
    flows = [Flow(edge_link.sender(v6=address), edge_link.receivers[0], family=6)
             for address in ('fd00:0:0:1::1', 'fd00:0:0:1::2', 'fd00:0:0:2::1')]
    had, _ = rates(edge_link, flows)
    assert 0.38 < had[2] / sum(had) < 0.60, had


def test_uplink_requests_pass_what_is_uploaded(edge_link):
    """Duration of a small request, its connection included, beside an upload that keeps the queue long. Traffic to a
    port that no line names waits behind the upload, for 100 ms and more."""
    edge_link.start_edge(CONF / 'uplink-requests.conf')
    edge_link.take()
    host, there = edge_link.sender('10.1.0.1'), edge_link.receivers[0]
    with Wire(edge_link.receivers_host, 'eth0') as wire, contextlib.ExitStack() as stack:
        servers = {port: stack.enter_context(listener(edge_link.receivers_host, 4, port)) for port in (80, 443, 8080)}
        probes = [stack.enter_context(Probe(edge_link, host.v4, there.v4, port)) for port in (53, 5300)]
        stack.enter_context(running(edge_link, [Flow(host, there, streams=4)], 30))
        send_for([], WARM_UP)
        took = {port: [] for port in servers}
        for _ in range(9):
            for port, server in servers.items():
                took[port].append(request(edge_link, there.v4, port, server))
            send_for(probes, 0.1)
    took = {port: statistics.median(times) for port, times in took.items()}
    assert took[8080] > 0.05 and max(took[80], took[443]) < took[8080] / 3, took
    dns, other = (probe.median_delay(wire) for probe in probes)
    assert dns < other / 3, (dns, other)


def request(link, address, port, server):
    """Seconds until a server has received a request."""
    before = time.monotonic()
    with connection(link.senders_host, 4, address, port) as client:
        client.sendall(b'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n')
        accepted, _ = server.accept()
        with accepted:
            accepted.recv(4096)
    return time.monotonic() - before


@pytest.mark.edge_link(rtts_ms=(20,))
@pytest.mark.parametrize('ecn', (False, True))
def test_sqm_keeps_the_queue_short(edge_link, ecn):
    """Six TCP connections fill the link, and packets wait for some ms, although the buffer of 1000 would allow a
    second. codel achieves this by dropping, or by marking ECN-capable packets."""
    edge = edge_link.start_edge(CONF / 'sqm.conf')
    edge_link.take()
    for host in (edge_link.senders_host, edge_link.receivers_host):
        host.set_kernel([f'net.ipv4.tcp_ecn={int(ecn)}'])
    had, _ = rates(edge_link, [Flow(edge_link.senders[0], edge_link.receivers[0], streams=6)])
    counts = totals(edge.control)
    assert had[0] > 0.85 * UPLINK, had
    assert (counts['marked_packets_total'] > counts['dropped_packets_total']) == ecn, counts
    assert counts['marked_packets_total'] + counts['dropped_packets_total'] > 0, counts
    assert counts['wait_seconds_sum'] / counts['wait_seconds_count'] < 0.06, counts


@pytest.mark.edge_link(rtts_ms=(154,))
def test_isp_is_the_bottleneck_of_the_trial(edge_link):
    """2 Mbit/s with a buffer of 57,000 bytes, 228 ms, and a path of 77 ms. A link without a buffer or with one of 1000
    packets would add 0 or 4,000 ms; without the path's delay, 77 ms would be missing."""
    edge_link.start_edge(CONF / 'isp.conf')
    edge_link.take()
    sender, receiver = edge_link.senders[0], edge_link.receivers[0]
    flood = Flow(sender, receiver, rate_bps=3e6, packet=1486)
    with Wire(edge_link.receivers_host, 'eth0') as wire, Probe(edge_link, sender.v4, receiver.v4, 9) as probe, \
            running(edge_link, [flood], 15):
        send_for([], 2)
        start = time.monotonic()
        send_for([probe], 4)
        rate = wire.rate_bps(flood, start, start + 4)
    # The probes, 50 a second of 128 bytes and a frame's header, also use the link when they find room.
    assert 0.94 * 2e6 < rate * 1500 / 1486 < 1.01 * 2e6
    assert 0.25 < probe.median_delay(wire) < 0.35


def test_diffserv_polices_and_marks(edge_link):
    """diffserv.rules: voice is limited to 2 Mbit/s, whoever sends it, and each rule's mark is in the packets; a mark
    from outside is not."""
    edge_link.start_edge(CONF / 'diffserv.conf')
    edge_link.take()
    there = edge_link.receivers[0]
    phone = edge_link.sender('198.18.10.5', '2001:db8:10::5')
    staff = edge_link.sender('198.18.20.7', '2001:db8:20::7')
    store = edge_link.receiver('198.19.1.7')
    voice = [Flow(phone, there, rate_bps=4e6, packet=228, family=family, port=port)
             for family, port in ((4, 16384), (6, 32767))]
    marked = {'af11': (10, Flow(edge_link.senders[0], there, port=22, window=16384)),
              'af21': (18, Flow(staff, there, port=443, window=16384)),
              'af21 of IPv6': (18, Flow(staff, there, family=6, port=443, window=16384)),
              'af41': (34, Flow(edge_link.senders[0], store, port=873, window=16384)),
              'none': (0, Flow(edge_link.senders[0], there, rate_bps=1e6, tos=46 << 2)),
              'none of IPv6': (0, Flow(edge_link.senders[0], there, rate_bps=1e6, family=6, tos=46 << 2))}
    had, wire = rates(edge_link, voice + [flow for _, flow in marked.values()])
    for flow, rate in zip(voice, had):
        assert {packet.dscp for packet in wire.of(flow)} == {46}
        # Unpoliced 4 Mbit/s. A sender that stalls for more than the bucket's 24 ms loses its unused tokens.
        assert 0.75 * 2e6 < rate < 1.03 * 2e6, had
    found = {name: {packet.dscp for packet in wire.of(flow)} for name, (_, flow) in marked.items()}
    assert found == {name: {dscp} for name, (dscp, _) in marked.items()}


def test_diffserv_the_higher_class_waits_less(edge_link):
    """Voice beside more best effort than the link can carry: in one queue both would wait for the whole buffer."""
    edge_link.start_edge(CONF / 'diffserv.conf')
    edge_link.take()
    edge_link.sender('198.18.10.5')
    there = edge_link.receivers[0]
    with Wire(edge_link.receivers_host, 'eth0') as wire, Probe(edge_link, '198.18.10.5', there.v4, 16400) as voice, \
            Probe(edge_link, edge_link.senders[0].v4, there.v4, 9) as other, \
            running(edge_link, [Flow(edge_link.senders[0], there, rate_bps=25e6)], 15):
        send_for([], 1)
        send_for([voice, other], 3)
    assert voice.median_delay(wire) < other.median_delay(wire) / 4
    assert len(voice.delays(wire)) > 50


def test_diffserv_a_flood_costs_voice_nothing(edge_link):
    """2,400 packets of best effort a second, one and a half times the link's rate. With one buffer for all, a third of
    the voice is lost."""
    edge_link.start_edge(CONF / 'diffserv.conf')
    edge_link.take()
    edge_link.sender('198.18.10.5')
    there, sent = edge_link.receivers[0], 0
    with Wire(edge_link.receivers_host, 'eth0') as wire, \
            Probe(edge_link, '198.18.10.5', there.v4, 16400, size=172) as voice, \
            running(edge_link, [Flow(edge_link.senders[0], there, rate_bps=2400 * 12000, packet=1500)], 15) as flood:
        send_for([], 1)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            voice.send()
            sent += 1
            time.sleep(0.02)
        send_for([], 0.5)
        best_effort = wire.rate_bps(flood[0][0], end - 4, end)
    assert sent > 100 and len(wire.of(voice)) == sent
    assert best_effort > 0.9 * 20e6     # and the link was full
