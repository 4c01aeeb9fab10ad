# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-edge and its flows without a network: figures from packets, and results from rates."""
import socket
import struct

import pytest

from edgetrial import faba as live
from edgetrial.edge_link import End
from edgetrial.iperf import Flow
from edgetrial.wire import parse
from fieldtrial.site.msfrs_edge import with_lines

PORTS = struct.pack('!HH', 1024, 80)


def packet4(rest, protocol=17, tos=0xb9, fragment=0, words=5, length=None):
    size = 4 * words + len(rest) if length is None else length
    return struct.pack('!BBHHHBBH4s4s', 4 << 4 | words, tos, size, 1, fragment, 64, protocol, 0,
                       bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))) + bytes(4 * (words - 5)) + rest


def packet6(following, rest, traffic=0xb9):
    return struct.pack('!IHBB', 6 << 28 | traffic << 20 | 5, len(rest), following, 64) + \
        socket.inet_pton(socket.AF_INET6, '2001:2::1') + socket.inet_pton(socket.AF_INET6, '2001:2::2') + rest


def test_packet_of_ipv4():
    found = parse(packet4(PORTS + bytes(4) + b'body', words=7), 1.5)
    assert found[:10] == (1.5, '10.0.0.1', '10.0.0.2', 17, 1024, 80, 46, 1, 40, 0)
    assert found.data[found.payload:] == b'body'


def test_packet_of_ipv6_with_extension_headers():
    rest = bytes((43, 0)) + bytes(6) + bytes((17, 1)) + bytes(14) + PORTS + bytes(4) + b'body'
    found = parse(packet6(0, rest))
    assert found[1:10] == ('2001:2::1', '2001:2::2', 17, 1024, 80, 46, 1, 40 + len(rest), 0)
    assert found.data[found.payload:] == b'body'


@pytest.mark.parametrize('data, offset', (
    (packet4(PORTS * 4, fragment=0x2000 | 185), 1480),
    (packet6(44, bytes((17, 0)) + struct.pack('!HI', 1448 | 1, 7) + PORTS), 1448)))
def test_a_later_fragment_has_no_ports(data, offset):
    found = parse(data)
    assert (found.from_port, found.to_port, found.offset) == (None, None, offset)


@pytest.mark.parametrize('data', (b'', b'\x45', packet4(b'')[:19], packet6(17, b'')[:39], packet6(0, b''), b'\x75' * 60,
                                  packet6(44, bytes((17, 0, 0)))))
def test_what_is_cut_off_is_no_packet(data):
    assert parse(data) is None


def test_protocols_without_ports_and_transports_without_room():
    assert parse(packet4(PORTS, protocol=1)).to_port is None
    assert parse(packet4(PORTS[:3])).to_port is None


def test_arguments_of_iperf3():
    """The trial's rate is that of whole packets, iperf3's that of the payload."""
    ends = End('198.19.1.1', '2001:2::1'), End('198.18.16.1', '2001:2::2')
    udp = Flow(*ends, rate_bps=5e6, packet=512, family=6, port=7).arguments(3)
    assert udp[udp.index('--bitrate') + 1] == f'{5e6 * 464 / 512:.0f}' and udp[udp.index('--length') + 1] == '464'
    assert udp[:4] == ['--client', '2001:2::2', '--bind', '2001:2::1']
    tcp = Flow(*ends, packet=512, window=9000, congestion='reno', port=7).arguments(3)
    assert tcp[tcp.index('--set-mss') + 1] == '472' and '--udp' not in tcp
    assert tcp[tcp.index('--window') + 1] == '9000' and tcp[tcp.index('--congestion') + 1] == 'reno'


def test_lines_of_a_configuration_are_replaced():
    text = 'link rate=1Mbit\nlinked x\nuser nobody\n'
    assert with_lines(text, link='rate=2Mbit', user=None, aqm='red') == 'linked x\nlink rate=2Mbit\naqm red\n'


def test_fairness_index():
    assert live.fairness([3.0] * 4) == pytest.approx(1)
    assert live.fairness([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    for rates, index in live.TABLE2.values():       # including the paper's own numbers
        assert live.fairness(rates) == pytest.approx(index, abs=0.002)


def test_verdicts_of_the_live_table():
    """The paper's own figures meet them; with two of its AQMs exchanged they do not."""
    fair = live.RATE * 0.9
    paper = {(aqm, name): (0.9e6, share * fair) for aqm, row in live.TABLE1.items()
             for name, share in zip(live.BUFFERS, row)}
    two = {aqm: [rate * 1e3 for rate in rates] for aqm, (rates, _) in live.TABLE2.items()}
    buffers = list(live.BUFFERS)
    assert all(held for held, _ in live.judge(paper, two, buffers))
    wrong = {('fred' if aqm == 'faba' else 'faba' if aqm == 'fred' else aqm, name): rates
             for (aqm, name), rates in paper.items()}
    assert not list(live.why_missed(paper, buffers)) and len(list(live.why_missed(wrong, buffers))) == len(buffers)
    assert not any(held for held, said in live.judge(wrong, two, buffers) if 'RED <' in said)
    assert not any(held for held, said in live.judge(paper, {'faba': two['fred'], 'fred': two['faba']}, buffers)
                   if 'FRED' in said and 'buffer' not in said)
