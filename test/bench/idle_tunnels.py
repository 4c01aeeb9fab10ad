# SPDX-License-Identifier: GPL-2.0-or-later
"""What open but idle tunnels cost a gateway: slots, memory and processor time, with msfrs and without.

Users, Squid and a server are on one separate host, on its loopback. The same Squid runs twice, with msfrs off and on;
each tunnel has one exchange, and is idle afterwards.
"""
import argparse
import asyncio
import contextlib
import os
import pathlib
import resource
import signal
import socket
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from fieldtrial.base.errors import TrialError  # noqa: E402
from fieldtrial.site import meters  # noqa: E402 (needs the path above)
from fieldtrial.site.netns import NetnsFabric, sweep, temporary_directory  # noqa: E402
from fieldtrial.site.processes import Daemon, listens  # noqa: E402
from fieldtrial.site.world import FORWARD_PORT  # noqa: E402

import yaml  # noqa: E402

PORT, USERS, AT_ONCE = 7000, 100, 100
SPARE = 200                     #: file descriptors in addition to those of tunnels; Squid keeps 100 free
PATIENCE_S = 60.0
TARGET_BYTES = 4096
ASK, ANSWER = b'x' * 48, b'y' * 1000
ON = '''\
msfrs on
msfrs_link rate=1gbit
msfrs_class all weight=1 default
'''
CONF = '''\
http_port 127.0.0.1:{port}
visible_hostname gateway.test
dns_nameservers 127.0.0.1
acl CONNECT method CONNECT
http_access allow localhost
acl users src 127.0.0.0/8
http_access allow users
http_access deny all
cache deny all
cache_mem 8 MB
cache_effective_user proxy
cache_log {directory}/cache.log
access_log none
pid_filename {directory}/squid.pid
coredump_dir {directory}
shutdown_lifetime 1 second
max_filedescriptors {files}
{arm}'''


async def serve(reader, writer):
    with contextlib.suppress(OSError):
        while await reader.read(4096):
            writer.write(ANSWER)
    writer.close()


def bound_socket(host, address, port=0):
    """A TCP socket on a host, bound to this address."""
    with host.inside():
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    made.setblocking(False)
    return made


class Tunnels:
    """Opens them, and closes them at the end of the block."""

    def __init__(self, host, count):
        self._host, self._count, self._open, self._server = host, count, [], None

    async def __aenter__(self):
        self._server = await asyncio.start_server(serve, sock=bound_socket(self._host, '127.0.0.1', PORT), backlog=AT_ONCE)
        for first in range(0, self._count, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, self._count))
            self._open += await asyncio.gather(*map(self._tunnel, numbers))
        return self

    async def __aexit__(self, *_):
        for writer in self._open:
            writer.transport.abort()
        self._server.close()

    async def _tunnel(self, number):
        made = bound_socket(self._host, f'127.0.1.{1 + number % USERS}')
        await asyncio.get_running_loop().sock_connect(made, ('127.0.0.1', FORWARD_PORT))
        reader, writer = await asyncio.open_connection(sock=made)
        writer.write(f'CONNECT 127.0.0.1:{PORT} HTTP/1.1\r\n\r\n'.encode())
        answer = await reader.readuntil(b'\r\n\r\n')
        if b' 200 ' not in answer.splitlines()[0]:
            raise TrialError(f'tunnel {number}: {answer.decode(errors="replace")}')
        writer.write(ASK)
        await reader.readexactly(len(ANSWER))
        return writer


def resident(pid):
    """Resident memory in bytes."""
    return int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[1]) * resource.getpagesize()


def spent(pid):
    """Seconds of processor time."""
    return int(pathlib.Path(f'/proc/{pid}/schedstat').read_text().split()[0]) / 1e9


def places(host):
    """(in service or waiting, silent); both 0 while msfrs is off."""
    report = yaml.safe_load(meters.manager_report(types.SimpleNamespace(gateway=host), 'msfrs', timeout=PATIENCE_S))
    rows = report.get('classes') or []
    return (sum(row['in_flight'] + row['queued'] + row['paused'] for row in rows), sum(row['silent'] for row in rows))


async def measure(host, squid, options, arm):
    """Figures of one arm, with the tunnels open."""
    empty = resident(squid.pid)
    began = time.monotonic()
    async with Tunnels(host, options.tunnels):
        opened = time.monotonic() - began
        end = time.monotonic() + PATIENCE_S
        while arm and (held := await asyncio.to_thread(places, host)) != (0, options.tunnels):
            if time.monotonic() > end:
                raise TrialError(f'not at rest after {PATIENCE_S:g} s: {held[0]} have a place or wait, {held[1]} rest')
            await asyncio.sleep(0.2)
        full, before = resident(squid.pid), spent(squid.pid)
        await asyncio.sleep(options.seconds)
        used = spent(squid.pid) - before
        held = await asyncio.to_thread(places, host) if arm else (0, 0)
    return types.SimpleNamespace(opened=opened, bytes=(full - empty) / options.tunnels, cpu=used, held=held)


@contextlib.contextmanager
def lone_squid(host, program, files, arm):
    """A Squid on `host` with that many descriptors and the arm's own lines; yields it and its directory."""
    with temporary_directory() as directory:
        os.chmod(directory, 0o777)      # Squid writes its logs as its own user
        conf = pathlib.Path(directory) / 'squid.conf'
        conf.write_text(CONF.format(port=FORWARD_PORT, directory=directory, files=files, arm=arm))
        name = ''.join(filter(str.isalnum, host.name))
        with Daemon(host, [program, '-N', '-n', name, '-f', str(conf)], f'{directory}/squid.out',
                    command='squid', stop_signal=signal.SIGINT) as squid:
            squid.logs.append(f'{directory}/cache.log')
            squid.wait_until(lambda: listens(host, FORWARD_PORT), 'listening', PATIENCE_S)
            yield squid, directory


def run(host, options, arm):
    """The figures of a Squid with the arm's own lines."""
    with lone_squid(host, options.squid, 2 * options.tunnels + SPARE, arm) as (squid, _):
        return asyncio.run(measure(host, squid, options, arm))


def main():
    parser = argparse.ArgumentParser(prog='idle tunnels', description=__doc__.splitlines()[0])
    parser.add_argument('--squid', required=True, metavar='FILE', help='the patched Squid')
    parser.add_argument('--tunnels', type=int, default=10_000, metavar='N', help='default 10000; 20000 at most')
    parser.add_argument('--seconds', type=float, default=30.0, metavar='S', help='of silence (default 30)')
    options = parser.parse_args()
    if not 1 <= options.tunnels <= 20_000:
        parser.error(f'--tunnels: 1 to 20000, not {options.tunnels}')
    if os.geteuid() or not os.access(options.squid, os.X_OK):
        print(f'idle tunnels: skipped: it takes root, and {options.squid} (squid-patches/build 7)')
        return 0
    files = 2 * options.tunnels + SPARE
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, max(most, files)))      # inherited by Squid
    except ValueError:
        raise TrialError(f'--tunnels {options.tunnels} takes {files} file descriptors, of which {most} are allowed '
                         f'here (ulimit -Hn): at most {(most - SPARE) // 2}') from None
    sweep()
    with NetnsFabric('idle') as fabric:
        host = fabric.host('gw')
        host.set_kernel(['net.ipv4.ip_local_port_range=10000 65000', 'net.core.somaxconn=4096'])
        off, on = run(host, options, ''), run(host, options, ON)
    extra = on.bytes - off.bytes
    for what, figure, target in (
            ('tunnels', f'{options.tunnels}', ''),
            ('opened, each with an exchange, off / on', f'{off.opened:.1f} / {on.opened:.1f} s', ''),
            ('places held or waited for', f'{on.held[0]}; {on.held[1]} rest', met('0', on.held[0] == 0)),
            ('memory of Squid for each, off / on', f'{off.bytes:,.0f} / {on.bytes:,.0f} bytes', ''),
            ('  of the scheduler', f'{extra:,.0f} bytes', met(f'< {TARGET_BYTES}', extra < TARGET_BYTES)),
            (f'processor time in {options.seconds:g} s, off / on', f'{off.cpu:.3f} / {on.cpu:.3f} s', '')):
        print(f'{what:44} {figure:>26}  {target}'.rstrip(), flush=True)
    return 0


def met(target, fulfilled):
    return f'{target:10} {"met" if fulfilled else "MISSED"}'


if __name__ == '__main__':
    try:
        sys.exit(main())
    except TrialError as error:
        sys.exit(f'idle tunnels: {error}')
