# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-syn: through msfrs-iptables a client sees servers that are silent, refuse or cannot be reached as without it.

A plain listening socket stands for Squid, which would accept every connection at once.
"""
import asyncio
import contextlib
import re
import socket
import threading

import pytest

from background import wait_until
from iptables_script import HTTP_PORT, MODES, ROOT, script, up
from site_in_namespaces import AF, CLIENT, OUTSIDE, PATIENCE, SERVER, SILENCE, connection, listener, sh
from syn_daemon import SynDaemon

FAMILIES = pytest.mark.parametrize('family', (4, 6))
BOTH_MODES = pytest.mark.parametrize('mode', MODES)
TABLES = {4: 'iptables', 6: 'ip6tables'}
#: Behind the gateway: an address without a route; a network of silent servers.
NOWHERE = {4: '198.18.9.1', 6: '2001:2:0:9::1'}
SILENT = '198.18.64.0/18'
REFUSING = {4: '198.18.2.3/24', 6: '2001:2:0:2::3/64'}


@pytest.fixture
def mode():
    """Where a test has no other."""
    return 'redirect'


@pytest.fixture
def daemon(site, tmp_path, mode):
    with SynDaemon(site.gateway, tmp_path, mode) as made:
        yield made


def squid(site, mode, family):
    """What stands for Squid."""
    return listener(site.gateway, family, HTTP_PORT[mode], transparent=mode == 'tproxy')


def nothing_arrived(listening):
    listening.settimeout(0)
    with pytest.raises(BlockingIOError):
        listening.accept()


@contextlib.contextmanager
def silent(site, family):
    """The server drops what is for its port 80."""
    rule = 'INPUT', '-p', 'tcp', '--dport', '80', '-j', 'DROP'
    site.server.run(TABLES[family], '-A', *rule)
    yield
    site.server.run(TABLES[family], '-D', *rule)


def error_of(site, family, address, timeout=PATIENCE):
    """The error of a client's connection to port 80."""
    with pytest.raises(OSError) as caught:
        with connection(site.client, family, address, 80, timeout=timeout):
            pass
    return type(caught.value), caught.value.errno


@BOTH_MODES
@FAMILIES
def test_a_server_that_answers_does_not_notice_the_probe(site, daemon, mode, family):
    up(site.gateway, config=daemon.file)
    with squid(site, mode, family) as proxy, listener(site.server, family, 80) as server:
        for _ in range(2):                      # an unknown server, and a known one
            with connection(site.client, family, SERVER[family], 80):
                accepted, peer = proxy.accept()
                accepted.close()
                assert peer[0] == CLIENT[family]
        nothing_arrived(server)


@BOTH_MODES
@FAMILIES
def test_a_refusal_and_a_missing_route_are_those_of_without(site, daemon, mode, family):
    site.gateway.run('ip', f'-{family}', 'route', 'add', 'unreachable', f'{NOWHERE[family]}/{ {4: 32, 6: 128}[family] }')
    addresses = SERVER[family], NOWHERE[family]
    direct = [error_of(site, family, address) for address in addresses]
    assert len(set(direct)) == 2
    up(site.gateway, config=daemon.file)
    with squid(site, mode, family) as proxy:
        assert [error_of(site, family, address) for address in addresses] == direct
        nothing_arrived(proxy)


@BOTH_MODES
@FAMILIES
def test_a_silent_server_is_silent_until_it_is_back(site, daemon, mode, family):
    up(site.gateway, config=daemon.file)
    with squid(site, mode, family) as proxy, listener(site.server, family, 80):
        with silent(site, family):
            assert error_of(site, family, SERVER[family], timeout=SILENCE) == (TimeoutError, None)
            nothing_arrived(proxy)
        with connection(site.client, family, SERVER[family], 80):
            proxy.settimeout(PATIENCE)
            proxy.accept()[0].close()


@BOTH_MODES
def test_without_the_daemon_squid_answers_at_once(site, tmp_path, mode):
    daemon = SynDaemon(site.gateway, tmp_path, mode)
    with daemon, squid(site, mode, 4) as proxy, listener(site.server, 4, 80), silent(site, 4):
        up(site.gateway, config=daemon.file)
        assert error_of(site, 4, SERVER[4], timeout=SILENCE) == (TimeoutError, None)
        daemon.kill()
        with connection(site.client, 4, SERVER[4], 80):
            proxy.accept()[0].close()


def test_what_waits_at_the_end_passes_to_squid(site, tmp_path):
    daemon = SynDaemon(site.gateway, tmp_path)
    with daemon, squid(site, 'redirect', 4) as proxy, silent(site, 4):
        up(site.gateway, config=daemon.file)
        with site.client.inside():
            waiting = socket.socket()
        with waiting:
            waiting.setblocking(False)
            with pytest.raises(BlockingIOError):
                waiting.connect((SERVER[4], 80))
            wait_until(lambda: probes(site), 'a probe')
            nothing_arrived(proxy)
            assert daemon.end() == ''
            proxy.settimeout(PATIENCE)
            proxy.accept()[0].close()


def probes(site):
    return sh(site.gateway, 'ss', '-Htn', 'state', 'syn-sent').stdout


def test_the_probes_of_a_gateway_whose_own_traffic_is_intercepted(site, tmp_path):
    with SynDaemon(site.gateway, tmp_path) as daemon, squid(site, 'redirect', 4) as proxy, silent(site, 4):
        up(site.gateway, '--gateway-traffic', 'yes', config=daemon.file)
        assert error_of(site, 4, SERVER[4], timeout=SILENCE) == (TimeoutError, None)
        nothing_arrived(proxy)


@FAMILIES
@pytest.mark.parametrize('mode', ('tproxy',))
def test_with_tproxy_the_gateways_own_address_need_not_be_served(site, daemon, mode, family):
    up(site.gateway, config=daemon.file)
    site.server.run(TABLES[family], '-A', 'INPUT', '-s', OUTSIDE[family], '-p', 'tcp', '-j', 'DROP')
    with (squid(site, mode, family) as proxy, listener(site.server, family, 80),
          connection(site.client, family, SERVER[family], 80)):
        proxy.accept()[0].close()
    with squid(site, mode, family) as proxy:    # another server, which refuses
        site.server.run('ip', 'address', 'add', REFUSING[family], 'dev', 'eth0')
        assert error_of(site, family, REFUSING[family].partition('/')[0])[0] == ConnectionRefusedError
        nothing_arrived(proxy)


@BOTH_MODES
@FAMILIES
def test_a_server_that_refuses_the_probe_alone_is_reached_directly(site, daemon, mode, family):
    up(site.gateway, config=daemon.file)
    site.server.run(TABLES[family], '-A', 'INPUT', '-p', 'tcp', '--syn', '-m', 'statistic', '--mode', 'nth', '--every',
                    '9', '--packet', '0', '-j', 'REJECT', '--reject-with', 'tcp-reset')
    with (squid(site, mode, family) as proxy, listener(site.server, family, 80) as server,
          connection(site.client, family, SERVER[family], 80) as client):
        with server.accept()[0] as accepted:
            client.sendall(b'?')
            assert accepted.recv(1) == b'?'
            accepted.sendall(b'!')
            assert client.recv(1) == b'!'
        nothing_arrived(proxy)


@contextlib.contextmanager
def pages(listening):
    """Answers each connection with the family of the address that it was for."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                with listening.accept()[0] as stream:
                    stream.recv(4096)
                    stream.sendall(b'HTTP/1.0 200 OK\r\n\r\nIPv%d' % {family: n for n, family in AF.items()}[
                        stream.family])
    listening.settimeout(None)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    listening.shutdown(socket.SHUT_RDWR)
    thread.join()


@BOTH_MODES
@pytest.mark.parametrize('dead', (4, 6))
@pytest.mark.parametrize('how', ('silent', 'refused'))
def test_happy_eyeballs(site, daemon, mode, dead, how):
    """curl and asyncio reach the second address if the first one is dead."""
    up(site.gateway, config=daemon.file)
    alive = 10 - dead
    with contextlib.ExitStack() as stack:
        if how == 'silent':
            stack.enter_context(silent(site, dead))
        for family in (4, 6):
            stack.enter_context(pages(stack.enter_context(squid(site, mode, family))))
        stack.enter_context(listener(site.server, alive, 80))
        order = f'name.test:80:{",".join({4: SERVER[4], 6: f"[{SERVER[6]}]"}[n] for n in (dead, alive))}'
        done = sh(site.client, 'curl', '-sS', '--noproxy', '*', '--resolve', order, 'http://name.test/')
        assert (done.stdout, done.stderr) == (f'IPv{alive}', '')
        with site.client.inside():
            assert asyncio.run(raced([dead, alive])) == AF[alive]


async def raced(order):
    """The family of the connection that a client by RFC 8305 ends with."""
    async def lookup(*_, **__):
        return [(AF[n], socket.SOCK_STREAM, socket.IPPROTO_TCP, '', (SERVER[n], 80)) for n in order]
    loop = asyncio.get_running_loop()
    loop.getaddrinfo = lookup
    transport, _ = await asyncio.wait_for(
        loop.create_connection(asyncio.Protocol, 'name.test', 80, happy_eyeballs_delay=0.25), PATIENCE)
    family = transport.get_extra_info('socket').family
    transport.close()
    return family


def test_a_flood_to_silent_servers_is_bounded_and_others_connect(site, daemon):
    """One user with more SYNs than are held of one: the others pass to Squid, and another user waits for nothing."""
    most = int(re.search(r'MostHeldOfUser = (\d+)', (ROOT / 'src/syn/gate.h').read_text())[1])
    beyond = 100
    site.server.run('iptables', '-A', 'INPUT', '-d', SILENT, '-j', 'DROP')
    site.server.run('ip', 'address', 'add', SILENT, 'dev', 'lo')
    site.gateway.run('ip', 'route', 'add', SILENT, 'via', SERVER[4])
    site.client.run('ip', 'address', 'add', '198.18.1.3/24', 'dev', 'eth0')
    before = daemon.sockets()
    up(site.gateway, config=daemon.file)
    with (squid(site, 'redirect', 4) as proxy, listener(site.server, 4, 80), contextlib.ExitStack() as stack):
        proxy.listen(beyond)
        for n in range(most + beyond):
            with site.client.inside():
                flooding = stack.enter_context(socket.socket())
            flooding.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                flooding.connect((f'198.18.{64 + n // 256}.{n % 256}', 80))
        proxy.settimeout(PATIENCE)
        for _ in range(beyond):
            proxy.accept()[0].close()
        assert daemon.sockets() <= before + most
        with connection(site.client, 4, SERVER[4], 80, source='198.18.1.3'):
            while (accepted := proxy.accept())[1][0] != '198.18.1.3':
                accepted[0].close()


@pytest.mark.parametrize('text, code, says', (
    ('syn-queue = many\n', 2, "msfrs-syn: {}:2: syn-queue 'many' must be a number from 0 to 65535, or none\n"),
    ('squid-user = nobody-here\n', 2, 'msfrs-syn: {}:2: user nobody-here: unknown on this machine; create it with '
                                      'useradd --system, or name another\n'),
    ('syn-queue = none\nsquid-user = nobody\n', 0, 'msfrs-syn: {}: syn-queue = none: nothing to do\n'),
))
def test_configurations_that_it_does_not_start_with(site, tmp_path, text, code, says):
    daemon = SynDaemon(site.gateway, tmp_path, text=text)
    done = sh(site.gateway, *daemon.command())
    assert (done.returncode, done.stdout, done.stderr) == (code, '', says.format(daemon.file))


def test_two_on_one_queue(site, daemon):
    done = sh(site.gateway, *daemon.command())
    assert done.returncode == 1 and 'NFQUEUE 100 cannot be bound: another process has it' in done.stderr


def test_the_queue_can_be_left_out(site):
    up(site.gateway, '--syn-queue', 'none')
    assert 'NFQUEUE' not in site.gateway.run('iptables-save')
    assert script(site.gateway, 'check', '--inside', 'in0', '--syn-queue', 'none').returncode == 0
    assert script(site.gateway, 'check', '--inside', 'in0').returncode == 1
