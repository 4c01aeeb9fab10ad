# SPDX-License-Identifier: GPL-2.0-or-later
"""What is neither TLS nor plain HTTP on ports 443 and 80 works through the gateway as it does without."""
import asyncio
import contextlib
import socket
import subprocess
import threading
import time
import types

import pytest

from fieldtrial.load import protocols
from fieldtrial.load.protocols import Differs
from iptables_script import up
from msfrsctl import written
from site_in_namespaces import AF, PATIENCE, SERVER, connection, listener
from test_transparent_squid import EXAMPLE, FIELDS, gateway  # noqa: F401 (a fixture)

#: Each kind has a server of its own: 198.18.2.11 and 2001:2:0:2::11 is the first one's.
PLACES = {4: '198.18.2.{}', 6: '2001:2:0:2::{}'}

#: A question without the end of a line, and the end of the client's direction before Squid has made anything of it.
SHORT = [protocols.half_close(f'short question, port {port}', port, length=2)
         for port in (protocols.TLS_PORT, protocols.HTTP_PORT)]
KINDS = [*protocols.KINDS, *SHORT]
#: The user with the downloads.
NEIGHBOUR = '198.18.1.3'


def place(number, family):
    return PLACES[family].format(11 + number)


@pytest.fixture
def kinds(site):
    """The servers of all kinds, on addresses of their own."""
    site.server.batch([f'address add {place(number, family)}/{ {4: 24, 6: 64}[family] } dev eth0'
                       f'{" nodad" if family == 6 else ""}' for number in range(len(KINDS)) for family in (4, 6)])
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    with contextlib.ExitStack() as stack:
        for number, kind in enumerate(KINDS):
            for family in (4, 6):
                sock = stack.enter_context(listener(site.server, family, kind.port, place(number, family)))
                sock.setblocking(False)
                asyncio.run_coroutine_threadsafe(asyncio.start_server(_serving(kind), sock=sock), loop).result(PATIENCE)
        yield
        asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)


async def _cancel_others():
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _serving(kind):
    async def serve(reader, writer):
        with contextlib.suppress(Differs, OSError):
            await kind.serve(reader, writer)
        writer.close()
    return serve


def spoken(site, family, timeout=PATIENCE):
    """{kind: what went wrong} of one connection of each kind at once, for those that fail."""
    async def one(number, kind):
        with site.client.inside():
            sock = socket.socket(AF[family])
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (place(number, family), kind.port))
        reader, writer = await asyncio.open_connection(sock=sock)
        try:
            await asyncio.wait_for(kind.talk(reader, writer), timeout)
        finally:
            writer.close()

    async def every():
        ends = await asyncio.gather(*(one(number, kind) for number, kind in enumerate(KINDS)), return_exceptions=True)
        return {kind.name: repr(end) for kind, end in zip(KINDS, ends, strict=True) if end is not None}
    return asyncio.run(every())


def as_setup_writes(directory):
    """A squid.conf for this site with what `msfrsctl setup` writes."""
    classes = [types.SimpleNamespace(name='gold', weight=4, networks=['198.18.1.0/24', '2001:2:0:1::/64']),
               types.SimpleNamespace(name='bronze', weight=1, networks=[])]
    answers = types.SimpleNamespace(mode='redirect', classes=classes, rate='20Mbit', outside='out0', edge='no',
                                    users='198.18.0.0/15 2001:2::/48')
    part = written.squid_part(answers, None, f'{directory}/intercept.pem', f'{directory}/access.log')
    return (f'{part}http_access deny all\nvisible_hostname gateway\ncoredump_dir none\nlogfile_rotate 0\n'
            f'cache_log {directory}/cache.log\npid_filename {directory}/squid.pid\n')


@pytest.fixture(params=('shipped', 'setup'))
def configured(request, gateway):       # noqa: F811 (the fixture)
    if request.param == 'setup':
        here = [line for line in gateway.conf.read_text().splitlines()
                if line.startswith(('hosts_file', 'dns_nameservers', 'msfrs_arbiter'))]
        gateway.conf.write_text(as_setup_writes(gateway.directory) + '\n'.join(here) + '\n')
    gateway.start()
    return gateway


@pytest.mark.parametrize('family', (4, 6))
def test_all_kinds_work_as_without_the_gateway(site, configured, kinds, family):
    assert spoken(site, family) == {}, 'without the gateway'
    up(configured.host)
    assert spoken(site, family) == {}
    configured.wait_until(lambda: len(tunnels(configured, family)) >= len(KINDS) - 1, 'tunnels in access.log')
    assert {line['class'] for line in tunnels(configured, family)} == {'gold'}


def test_all_kinds_work_beside_downloads(site, gateway, kinds):       # noqa: F811 (the fixture)
    """The link is slow and full of another user's downloads: the kinds wait for their turns, and none is lost."""
    site.server.run('tc', 'qdisc', 'add', 'dev', 'eth0', 'root', 'tbf', 'rate', '2mbit', 'burst', '16kb',
                    'limit', '60000')
    site.client.run('ip', 'address', 'add', f'{NEIGHBOUR}/24', 'dev', 'eth0')
    gateway.write(EXAMPLE.replace('rate=20Mbit', 'rate=2Mbit'))
    gateway.start()
    up(gateway.host)
    with endless(site), contextlib.ExitStack() as stack:
        for _ in range(4):
            stream = stack.enter_context(connection(site.client, 4, SERVER[4], 80, source=NEIGHBOUR))
            stream.sendall(f'GET / HTTP/1.0\r\nHost: {SERVER[4]}\r\n\r\n'.encode())
            threading.Thread(target=drain, args=(stream,), daemon=True).start()
        assert spoken(site, 4, timeout=6 * PATIENCE) == {}
    gateway.wait_until(lambda: len(tunnels(gateway, 4)) >= len(KINDS) - 1, 'tunnels in access.log')
    lines = tunnels(gateway, 4)
    assert {line['class'] for line in lines} == {'gold'} and all(int(line['quanta']) >= 1 for line in lines)
    assert any(int(line['total']) > 0 for line in lines), 'none was held'


@contextlib.contextmanager
def endless(site):
    """A web server whose responses do not end before the test."""
    stop = threading.Event()

    def serve(stream):
        with stream, contextlib.suppress(OSError):
            stream.recv(4096)
            stream.sendall(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n')
            while not stop.is_set():
                stream.sendall(bytes(65536))

    with listener(site.server, 4, 80, SERVER[4]) as sock:
        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(sock.accept()[0],), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        yield
        stop.set()


def drain(stream):
    with contextlib.suppress(OSError):
        while stream.recv(65536):
            pass


def tunnels(configured, family):
    """access.log's lines about tunnels and switched connections to the kinds' servers."""
    lines = [dict(zip(FIELDS, line.split())) for line in configured.access_log.read_text().splitlines()]
    return [line for line in lines if place(0, family)[:-2] in line['url'] and line['result'].startswith('TCP_TUNNEL')]


def test_connect_to_port_80_is_for_intercepted_clients(site, configured, kinds):
    """A client of the proxy itself gets a tunnel to port 443 alone, as before."""
    def asked(port):
        with connection(site.client, 4, '198.18.1.1', 3128) as stream:
            stream.sendall(f'CONNECT {place(0, 4)}:{port} HTTP/1.1\r\n\r\n'.encode())
            return stream.recv(4096).split()[1]
    assert asked(443) == b'200'
    assert asked(80) == b'403'


def test_a_request_in_pieces_is_no_tunnel(site, configured, origin_of_pieces):
    """A client that pauses within its request, for longer than a silent one is waited for, is served as HTTP."""
    up(configured.host)
    with connection(site.client, 4, SERVER[4], 80) as stream:
        stream.sendall(b'GET / HTTP/1.1\r\n')
        time.sleep(0.6)
        stream.sendall(f'Host: {SERVER[4]}\r\nConnection: close\r\n\r\n'.encode())
        answer = stream.makefile('rb').read()
    assert answer.startswith(b'HTTP/1.1 200') and b'Via:' in answer


@pytest.fixture
def origin_of_pieces(site):
    with listener(site.server, 4, 80, SERVER[4]) as sock:
        def serve():
            with contextlib.suppress(OSError):
                stream, _ = sock.accept()
                with stream:
                    stream.recv(4096)
                    stream.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
    thread.join(PATIENCE)


def test_the_configuration_is_parsed_without_a_complaint(configured):
    done = subprocess.run(configured.host.enter(configured.squid('-k', 'parse')), capture_output=True, text=True,
                          timeout=3 * PATIENCE)
    assert [line for line in done.stderr.splitlines() if 'ERROR' in line or 'FATAL' in line] == []
