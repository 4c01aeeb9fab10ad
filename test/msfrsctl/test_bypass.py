# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic that bypasses Squid: its amount, its receivers, where it is reported; without it, no measurement is made."""
import ipaddress
import socket
import sys

import pytest
import yaml
from conftest import BUSY

from msfrsctl import bypass
from msfrsctl.system import System

TCP, UDP, GRE = 6, 17, 47
#: Bytes on the link during a measurement, at 2 Mbit/s.
WHOLE = int(bypass.LOOK * 250_000)
COUNTER = '/sys/class/net/wan0/statistics/rx_bytes'


def packet(to, length, protocol=TCP, port=40000):
    """The headers of a packet from a web server, as far as they are examined; port: the user's."""
    to = ipaddress.ip_address(to)
    ports = (443).to_bytes(2, 'big') + port.to_bytes(2, 'big') + bytes(16)
    if to.version == 6:
        return bytes([0x60, *bytes(5), protocol, 63]) + bytes(16) + to.packed + ports, length
    return bytes([0x45, *bytes(8), protocol, *bytes(6)]) + to.packed + ports, length


@pytest.fixture
def link(gateway):
    """A link that carries `received` bytes during a measurement, `squids` of them through Squid."""
    gateway.configure('msfrs on', 'msfrs_link rate=2Mbit interface=wan0', 'http_port 8080')
    machine = gateway.machine
    machine.files['/etc/msfrs/iptables.conf'] = 'inside = lan0, wlan0\n'
    gateway.received, gateway.squids, gateway.parties = WHOLE, 0, None
    gateway.window = {'utilisation': 0.99, 'own': 0.2}

    def report():
        said = yaml.safe_load(BUSY)
        passed = (machine.time - began) / bypass.LOOK
        said['window'].update(gateway.window)
        said['classes'][0]['bytes'] = int(gateway.squids / 1.06 * passed)
        if gateway.parties is not None:
            said['parties'] = gateway.parties
        return yaml.safe_dump(said)

    def counter():
        return f'{7_000_000 + int(gateway.received * (machine.time - began) / bypass.LOOK)}\n'
    began = machine.time
    machine.pages['msfrs'] = report
    machine.moving[COUNTER] = counter
    machine.wire = [packet('10.20.0.9', 700_000), packet('10.20.0.8', 80_000, UDP, 40001),
                    packet('10.20.0.7', 90_000, port=40001), packet('10.20.0.7', 10_000, port=40002)]
    # One of Squid's connections ends meanwhile, another begins.
    machine.peers = [[('10.20.0.7', 40001), ('10.20.0.8', 40001)], [('10.20.0.7', 40002)]] * 4
    gateway.squids = WHOLE // 5
    return gateway


def test_it_leads(link):
    """In status and why; doctor lists it first, with advice."""
    said = '80% of the link bypasses Squid, most of it to 10.20.0.9; no weight holds for it'
    assert link.run('status')[1].splitlines()[1] == f'beside     {said}'
    assert link.run('why', '10.20.1.7')[1].splitlines()[1] == said
    first = link.data('doctor', '--only', 'bypass')['findings'][0]
    assert first == {'check': 'bypass', 'level': 'warning', 'what': said, 'do': bypass.DO}
    assert 'msfrsctl setup' in bypass.DO
    assert link.data('status')['bypass'] == {'share': pytest.approx(0.8, abs=0.001), 'user': '10.20.0.9', 'own': False,
                                             'part': pytest.approx(35 / 39), 'held': False}


def test_where_msfrs_edge_holds_it_there_is_nothing_to_do(link):
    """The window does not count it as other traffic then; the edge's share shows that it exists."""
    link.window = {'utilisation': 0.99, 'own': 0.98}
    link.parties = [{'slot': 0, 'kind': 'worker', 'live': True, 'share': 0.8},
                    {'slot': 1, 'kind': 'edge', 'live': True, 'share': 0.2}]
    assert 'most of it to 10.20.0.9; msfrs-edge holds it to its share' in link.run('status')[1]
    assert link.data('doctor', '--only', 'bypass')['findings'][0]['level'] == 'note'


@pytest.mark.parametrize('window, parties', [
    ({'utilisation': 0.99, 'own': 0.9}, None), ({'utilisation': 0.05, 'own': 0.0}, None), ({'own': None}, None),
    ({'utilisation': 0.99, 'own': 0.98}, [{'kind': 'edge', 'live': True, 'share': 0.1}]),
    ({'utilisation': 0.99, 'own': 0.98}, [{'kind': 'edge', 'live': False, 'share': 0.5}])])
def test_where_squids_figures_are_not_suspicious_nobody_waits(link, window, parties):
    link.window, link.parties = window, parties
    began = link.machine.time
    assert 'bypasses' not in link.run('status')[1] and link.machine.time == began
    assert link.data('doctor', '--only', 'bypass')['findings'][0]['level'] == 'ok'


def test_a_moment_is_not_enough(link):
    """Suspicious figures in one interval, but not in the four seconds after it."""
    link.squids = 0.92 * WHOLE
    assert link.data('status')['bypass'] is None


def wire(*packets):
    return lambda link: setattr(link.machine, 'wire', packets)


@pytest.mark.parametrize('change, sentence', [
    (lambda link: setattr(link.machine, 'wire', None), 'bypasses Squid (root sees who has most of it);'),
    (lambda link: link.machine.wire.clear(), 'bypasses Squid, most of it to this machine itself;'),
    (lambda link: link.machine.files.clear(), 'bypasses Squid (root sees'),
    (wire(packet('2001:db8::7', 600_000, UDP), packet('10.20.0.9', 180_000, GRE)), 'most of it to 2001:db8::7;'),
    (wire(*(packet(f'10.20.0.{n}', 200_000 + n) for n in range(4))),
     '25% of that to 10.20.0.3, more than to anybody else;')])
def test_who_has_it(link, change, sentence):
    change(link)
    assert sentence in link.run('status')[1]


def test_what_is_not_known_is_not_said(link):
    link.machine.moving[COUNTER] = lambda: None
    assert link.data('status')['bypass'] is None


def test_after_off_a_user_has_what_comes_from_web_servers(link):
    """Also what Squid's connections still bring to others is not of this machine."""
    link.machine.wire = [packet('10.20.0.9', 600_000, port=40001), packet('10.20.0.7', 200_000, port=40001)]
    said = link.data('status')['bypass']
    assert (said['user'], said['part'], said['own']) == ('10.20.0.9', 1, False)


@pytest.mark.parametrize('text, peer', [
    ('1: 0100140A:0C39 0900140A:9C41 01 00000000:00000000', ('10.20.0.9', 40001)),
    ('1: 0000000000000000FFFF00000100140A:0C39 0000000000000000FFFF00000900140A:9C41 01 0', ('10.20.0.9', 40001)),
    ('1: 00000000000000000000000001000000:0C39 B80D0120000000000000000007000000:9C42 01 0', ('2001:db8::7', 40002))])
@pytest.mark.skipif(sys.byteorder == 'big', reason='the kernel writes addresses in the byte order of the machine')
def test_connections_of_this_machine(text, peer):
    class Files(System):
        def read(self, path):
            return f'  sl  local_address rem_address   st\n   {text}\n' if path == '/proc/net/tcp' else None
    assert Files().tcp_peers() == {(ipaddress.ip_address(peer[0]).packed, peer[1])}


def test_connections_of_a_real_machine():
    with socket.create_server(('127.0.0.1', 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert (socket.inet_aton('127.0.0.1'), client.getsockname()[1]) in System().tcp_peers()


@pytest.mark.parametrize('head', [b'', b'\x45', bytes(20), b'\x45' + bytes(18), b'\x60' + bytes(38), b'\xff' * 64])
def test_packets_that_are_none(link, head):
    link.machine.wire = [(head, 400_000)]
    assert link.data('status')['bypass']['own']


def test_interfaces_that_come_and_go(link):
    link.machine.files['/etc/msfrs/iptables.conf'] = 'inside = lan0 ppp+\n'
    link.machine.programs['ip -j link show'] = '[{"ifname": "ppp0"}, {"ifname": "wan0"}, {"ifname": "ppp7"}]'
    looked, packets = [], link.machine.packets

    def noted(interfaces, seconds, take):
        looked.append(interfaces)
        return packets(interfaces, seconds, take)
    link.machine.packets = noted
    link.data('status')
    assert looked == [['lan0', 'ppp0', 'ppp7']]


def test_packets_that_leave_are_seen():
    """By an interface that every machine has: each packet sent to it is seen once, with its length."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(('127.0.0.1', 0))
        port = sender.getsockname()[1]

        class Once(System):
            def __init__(self):
                self.looks = 0

            def monotonic(self):
                self.looks += 1
                if self.looks == 2:     # the sockets are open
                    sender.sendto(bytes(1000), ('127.0.0.1', port))
                return 10.0 if any(head[20:22] == port.to_bytes(2, 'big') for head, _ in found) else 0.0
        if not Once().packets(['lo'], 5, lambda head, length: found.append((head, length))):
            pytest.skip('needs root')
    mine = [(head, length) for head, length in found if head[20:22] == port.to_bytes(2, 'big')]
    assert [length for _, length in mine] == [1028] and len(mine[0][0]) == 64
