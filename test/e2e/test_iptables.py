# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic with msfrs-iptables up: which connections are intercepted, which are not, and what the proxy sees of them.

A plain listening socket stands for Squid: Squid has no other information about a connection.
"""
import socket
import struct
import sys

import pytest

from iptables_script import HTTP_PORT, HTTPS_PORT, MODES, drain, script, up
from site_in_namespaces import (CLIENT, INSIDE, OUTSIDE, PATIENCE, SERVER, SILENCE, connection, listener, set_sysctl,
                                sh)

FAMILIES = pytest.mark.parametrize('family', (4, 6))
BOTH_MODES = pytest.mark.parametrize('mode', MODES)
SO_ORIGINAL_DST = 80                            # linux/netfilter_ipv4.h; IP6T_SO_ORIGINAL_DST is the same number

#: First datagrams of QUIC clients: header forms and versions (RFC 9000, 9369; 9287: a cleared fixed bit), two sizes.
INITIAL = bytes.fromhex('c300000001') + bytes(1195)
QUIC = {'version 1': INITIAL, 'version 2': bytes.fromhex('d36b3343cf') + bytes(1247),
        'reserved version': bytes.fromhex('c01a2a3a4a') + bytes(1195),
        '0-RTT': bytes.fromhex('d700000001') + bytes(1445),
        'fixed bit cleared': bytes.fromhex('8300000001') + bytes(1195)}
#: Datagrams that begin no QUIC connection: first and large ones of other protocols.
NOT_QUIC = {'WireGuard': bytes.fromhex('01000000') + bytes(144),
            'WireGuard data': bytes.fromhex('04000000') + bytes(1428),
            'DTLS': bytes.fromhex('16feff0000') + bytes(1295), 'DTLS 1.3 data': b'\x2f' + bytes(1399),
            'OpenVPN': b'\x38' + bytes(41), 'OpenVPN data': b'\x48' + bytes(1439),
            'STUN': bytes.fromhex('000100002112a442') + bytes(12), 'TURN': bytes.fromhex('40000500') + bytes(1280),
            'RTP': bytes.fromhex('90e01234') + bytes(1206), 'RTP, type 0': bytes.fromhex('80001234') + bytes(1206),
            'short header': b'\x41' + bytes(1299), 'long header, too short': INITIAL[:1199]}


def proxy_socket(site, mode, family, port):
    return listener(site.gateway, family, port, transparent=mode == 'tproxy')


def original_destination(accepted, mode, family):
    """The address that the client connected to, found as Squid finds it."""
    if mode == 'tproxy':
        return accepted.getsockname()[:2]
    if family == 4:
        raw = accepted.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
        return socket.inet_ntop(socket.AF_INET, raw[4:8]), struct.unpack('!H', raw[2:4])[0]
    raw = accepted.getsockopt(socket.IPPROTO_IPV6, SO_ORIGINAL_DST, 28)
    return socket.inet_ntop(socket.AF_INET6, raw[8:24]), struct.unpack('!H', raw[2:4])[0]


def exchange(one, other):
    """One byte in each direction."""
    one.sendall(b'?')
    assert other.recv(1) == b'?'
    other.sendall(b'!')
    assert one.recv(1) == b'!'


def nothing_arrived(listening):
    listening.settimeout(0)
    with pytest.raises(BlockingIOError):
        listening.accept()


def accepted_by(listening):
    """The next connection; a silent peer makes the test fail by timeout."""
    accepted, _ = listening.accept()
    accepted.settimeout(PATIENCE)
    return accepted


def reaches(site, proxy, server, family, port=80, host=None, address=None):
    """Connects; returns which side accepted: 'proxy' or 'server'."""
    with connection(host or site.client, family, address or SERVER[family], port) as client:
        for name, listening in (('proxy', proxy), ('server', server)):
            listening.settimeout(0)
            try:
                accepted = accepted_by(listening)
            except BlockingIOError:
                continue
            with accepted:
                exchange(client, accepted)
            return name
    raise AssertionError('connected, and nobody accepted it')


@BOTH_MODES
@FAMILIES
@pytest.mark.parametrize('port, ports', ((80, HTTP_PORT), (443, HTTPS_PORT)))
def test_the_proxy_gets_the_connection_and_sees_both_ends(site, mode, family, port, ports):
    up(site.gateway, '--mode', mode)
    with (proxy_socket(site, mode, family, ports[mode]) as proxy, listener(site.server, family, port) as server,
          connection(site.client, family, SERVER[family], port) as client):
        accepted, peer = proxy.accept()
        with accepted:
            assert peer[:2] == client.getsockname()[:2]
            assert peer[0] == CLIENT[family]
            assert original_destination(accepted, mode, family) == (SERVER[family], port)
            exchange(client, accepted)
        nothing_arrived(server)


@FAMILIES
@pytest.mark.parametrize('rp_filter', (0, 1, 2))
def test_with_tproxy_the_proxy_fetches_with_the_clients_address(site, family, rp_filter):
    """The server's responses are addressed to the client but must reach the proxy, whatever rp_filter is."""
    for interface in ('all', 'in0', 'out0'):
        set_sysctl(site.gateway, f'net/ipv4/conf/{interface}/rp_filter', rp_filter)
    up(site.gateway, '--mode', 'tproxy')
    with (listener(site.server, family, 80) as server,
          connection(site.gateway, family, SERVER[family], 80, source=CLIENT[family]) as fetching):
        accepted, peer = server.accept()
        with accepted:
            assert peer[0] == CLIENT[family]
            exchange(fetching, accepted)


@FAMILIES
def test_with_redirect_what_the_proxy_fetches_leaves_with_the_gateways_address(site, family):
    up(site.gateway)
    with (proxy_socket(site, 'redirect', family, 3129) as proxy, listener(site.server, family, 80) as server,
          connection(site.gateway, family, SERVER[family], 80) as fetching):
        accepted, peer = server.accept()
        with accepted:
            assert peer[0] == OUTSIDE[family]
            exchange(fetching, accepted)
        nothing_arrived(proxy)


@BOTH_MODES
@FAMILIES
def test_what_is_not_web_traffic_passes(site, mode, family):
    up(site.gateway, '--mode', mode)
    with (proxy_socket(site, mode, family, HTTP_PORT[mode]) as proxy,
          listener(site.server, family, 8080) as server):
        assert reaches(site, proxy, server, family, port=8080) == 'server'


@BOTH_MODES
@FAMILIES
@pytest.mark.parametrize('address', (INSIDE, OUTSIDE), ids=('inside', 'outside'))
def test_what_is_meant_for_the_gateway_itself_is_not_intercepted(site, mode, family, address):
    up(site.gateway, '--mode', mode)
    with (proxy_socket(site, mode, family, HTTP_PORT[mode]) as proxy,
          listener(site.gateway, family, 80, address[family]) as page):
        assert reaches(site, proxy, page, family, address=address[family]) == 'server'


@BOTH_MODES
@FAMILIES
def test_the_way_back_from_outside_is_not_intercepted(site, mode, family):
    """A web server behind the gateway stays reachable from outside."""
    up(site.gateway, '--mode', mode)
    with (proxy_socket(site, mode, family, HTTP_PORT[mode]) as proxy, listener(site.client, family, 80) as page):
        assert reaches(site, proxy, page, family, host=site.server, address=CLIENT[family]) == 'server'


@BOTH_MODES
@FAMILIES
def test_nobody_connects_to_an_interception_port_directly(site, mode, family):
    with proxy_socket(site, mode, family, HTTP_PORT[mode]) as proxy:
        with connection(site.client, family, INSIDE[family], HTTP_PORT[mode]):
            pass                                # without the rules it responds at once
        up(site.gateway, '--mode', mode)
        with pytest.raises(TimeoutError):
            with connection(site.client, family, INSIDE[family], HTTP_PORT[mode], timeout=SILENCE):
                pass
        with connection(site.gateway, family, INSIDE[family], HTTP_PORT[mode]):
            pass                                # the gateway itself may connect, depending on gateway-traffic
        assert proxy


@BOTH_MODES
@FAMILIES
@pytest.mark.parametrize('options, got', (
    (('--exempt-client', '198.18.1.2 2001:2:0:1::2'), 'server'),
    (('--exempt-client', '198.18.1.3,2001:2:0:1::3'), 'proxy'),
    (('--exempt-destination', '198.18.2.0/24 2001:2:0:2::/64'), 'server'),
    (('--exempt-destination', '198.18.3.0/24 2001:2:0:3::/64'), 'proxy'),
    (('--source', '198.18.1.0/24 2001:2:0:1::/64'), 'proxy'),
    (('--source', '198.18.1.128/25 2001:2:0:1:8000::/65'), 'server'),
    (('--intercept', '80'), 'proxy'),
    (('--intercept', '443'), 'server'),
    (('--ipv6', 'no'), {4: 'proxy', 6: 'server'}),
))
def test_who_is_intercepted_by_options(site, mode, family, options, got):
    up(site.gateway, '--mode', mode, *options)
    with (proxy_socket(site, mode, family, HTTP_PORT[mode]) as proxy, listener(site.server, family, 80) as server):
        assert reaches(site, proxy, server, family) == (got[family] if isinstance(got, dict) else got)


@pytest.mark.parametrize('mode, option', (('redirect', '--redirect-ports'), ('tproxy', '--tproxy-ports')))
@FAMILIES
def test_ports_of_ones_own(site, mode, option, family):
    up(site.gateway, '--mode', mode, option, '8180,8143')
    with (proxy_socket(site, mode, family, 8143) as proxy, listener(site.server, family, 443) as server):
        assert reaches(site, proxy, server, family, port=443) == 'proxy'


@FAMILIES
def test_gateway_traffic_is_redirected_but_squids_own(site, family):
    up(site.gateway, '--gateway-traffic', 'yes', '--squid-user', 'proxy')
    connect = (f'import socket; s = socket.create_connection(({SERVER[family]!r}, 80), {PATIENCE}); '
               's.sendall(b"?"); s.recv(1)')
    with (proxy_socket(site, 'redirect', family, 3129) as proxy, listener(site.server, family, 80) as server):
        for user, listening, other in (('root', proxy, server), ('proxy', server, proxy)):
            running = site.gateway.popen(['setpriv', f'--reuid={user}', '--clear-groups', '--', sys.executable, '-c',
                                          connect])
            listening.settimeout(PATIENCE)
            with accepted_by(listening) as accepted:
                assert accepted.recv(1) == b'?'
                accepted.sendall(b'!')
            assert running.wait(PATIENCE) == 0
            nothing_arrived(other)


@BOTH_MODES
def test_src_valid_mark_as_a_vpn_sets_it(site, mode):
    """It makes TPROXY drop every packet: `up` reports it, and fixes it if allowed. REDIRECT is not affected."""
    set_sysctl(site.gateway, 'net/ipv4/conf/all/src_valid_mark', 1)
    said = script(site.gateway, 'up', '--inside', 'in0', '--mode', mode)
    assert said.returncode == 0
    assert said.stderr == ('' if mode == 'redirect' else
                           'msfrs-iptables: warning: sysctl net.ipv4.conf.all.src_valid_mark is not 0, as it must be; '
                           'set it, or use --set-sysctl yes\n')
    with (proxy_socket(site, mode, 4, HTTP_PORT[mode]) as proxy, listener(site.server, 4, 80) as server):
        if mode == 'tproxy':
            with pytest.raises(TimeoutError):
                with connection(site.client, 4, SERVER[4], 80, timeout=SILENCE):
                    pass
        up(site.gateway, '--mode', mode, '--set-sysctl', 'yes')
        assert reaches(site, proxy, server, 4) == 'proxy'


@BOTH_MODES
@FAMILIES
def test_quic_rejected_at_once(site, mode, family):
    up(site.gateway, '--mode', mode)
    with listener(site.server, family, 443, kind=socket.SOCK_DGRAM) as server:
        for begins in QUIC.values():
            with datagrams(site.client, family, 443) as client:
                client.send(begins)
                with pytest.raises(ConnectionRefusedError):     # from the gateway's port unreachable, not by timeout
                    client.recv(16)
                nothing_came(server)
    with (listener(site.server, family, 4433, kind=socket.SOCK_DGRAM) as server,
          datagrams(site.client, family, 4433) as client):
        client.send(INITIAL)
        assert server.recv(2000) == INITIAL


@FAMILIES
@pytest.mark.parametrize('backend', ('nft', 'legacy'))
def test_other_protocols_over_udp_port_443_pass(site, family, backend):
    if backend == 'legacy' and sh(site.client, 'iptables-legacy', '-S').returncode:
        pytest.skip('no legacy iptables here')
    up(site.gateway, '--backend', backend)
    with listener(site.server, family, 443, kind=socket.SOCK_DGRAM) as server:
        for kind, sent in NOT_QUIC.items():
            with datagrams(site.client, family, 443) as client:
                client.send(sent)
                assert server.recv(2000) == sent, kind
        with datagrams(site.client, family, 443) as client:
            client.send(INITIAL)
            with pytest.raises(ConnectionRefusedError):
                client.recv(16)
        nothing_came(server)


@FAMILIES
@pytest.mark.parametrize('options, arrives', (
    (('--quic', 'allow'), True),
    (('--exempt-client', '198.18.1.2 2001:2:0:1::2'), True),
    (('--exempt-destination', '198.18.2.2 2001:2:0:2::2'), True),
    (('--source', '198.18.1.128/25 2001:2:0:1:8000::/65'), True),
    (('--source', '198.18.1.0/24 2001:2:0:1::/64'), False),
))
def test_quic_let_through(site, family, options, arrives):
    up(site.gateway, *options)
    with (listener(site.server, family, 443, kind=socket.SOCK_DGRAM) as server,
          datagrams(site.client, family, 443) as client):
        client.send(INITIAL)
        if arrives:
            assert server.recv(2000) == INITIAL
        else:
            with pytest.raises(ConnectionRefusedError):
                client.recv(16)


def datagrams(host, family, port):
    """A UDP socket connected to the server, so that it receives ICMP errors."""
    with host.inside():
        made = socket.socket({4: socket.AF_INET, 6: socket.AF_INET6}[family], socket.SOCK_DGRAM)
    made.settimeout(PATIENCE)
    made.connect((SERVER[family], port))
    return made


def nothing_came(receiving):
    receiving.settimeout(0)
    with pytest.raises(BlockingIOError):
        receiving.recv(16)


@BOTH_MODES
@FAMILIES
@pytest.mark.parametrize('nat', (False, True), ids=('routed', 'masqueraded'))
def test_drain_lets_connections_under_way_go_on(site, mode, family, nat):
    """Also if nothing else makes the kernel track connections; an end that only receives would wait in vain."""
    if nat:
        site.gateway.run('ip6tables' if family == 6 else 'iptables', '-t', 'nat', '-A', 'POSTROUTING', '-o', 'out0',
                         '-j', 'MASQUERADE')
    up(site.gateway, '--mode', mode)
    with (proxy_socket(site, mode, family, HTTP_PORT[mode]) as proxy, listener(site.server, family, 80) as server,
          connection(site.client, family, SERVER[family], 80) as client):
        with accepted_by(proxy) as accepted:
            exchange(client, accepted)
            drain(site.gateway)
            exchange(accepted, client)
            exchange(client, accepted)
            assert reaches(site, proxy, server, family) == 'server'


@FAMILIES
def test_what_passed_squid_by_goes_on_when_the_rules_come(site, family):
    """With redirect, and a connection that was not tracked before."""
    with (proxy_socket(site, 'redirect', family, 3129) as proxy, listener(site.server, family, 80) as server,
          connection(site.client, family, SERVER[family], 80) as client):
        with accepted_by(server) as accepted:
            exchange(client, accepted)
            up(site.gateway)
            exchange(client, accepted)
            exchange(accepted, client)
        nothing_arrived(proxy)


@BOTH_MODES
@FAMILIES
def test_legacy_iptables(site, mode, family):
    """Skipped only where the kernel or the machine has no legacy iptables at all."""
    if sh(site.client, 'iptables-legacy', '-t', 'nat', '-S').returncode:
        pytest.skip('no legacy iptables here')
    up(site.gateway, '--mode', mode, '--backend', 'legacy')
    with (proxy_socket(site, mode, family, HTTP_PORT[mode]) as proxy, listener(site.server, family, 80) as server):
        assert reaches(site, proxy, server, family) == 'proxy'
        assert script(site.gateway, 'down').returncode == 0
        assert reaches(site, proxy, server, family) == 'server'
