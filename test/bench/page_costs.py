# SPDX-License-Identifier: GPL-2.0-or-later
"""What msfrs-page costs Squid in processor time, and how fast the page's data arrive, with the most users possible.

Everything is on one separate host, on its loopback. Squid has a constant load, and none at the end; msfrs-page runs in
every second part of it, and is queried once a second, as by an open page. The fraction of a core that monitoring takes
does not depend on the load; the ratio does, and means little where Squid has to share its core.

    sudo python3 test/bench/page_costs.py --squid build/install/sbin/squid --page build/obj/msfrs-page
"""
import argparse
import asyncio
import contextlib
import itertools
import os
import pathlib
import random
import statistics
import sys
import time

from idle_tunnels import PATIENCE_S, PORT, bound_socket, lone_squid, met, spent

from fieldtrial.base.errors import TrialError
from fieldtrial.base.paths import ROOT
from fieldtrial.site.netns import NetnsFabric, sweep
from fieldtrial.site.processes import Daemon, listens
from fieldtrial.site.world import FORWARD_PORT

PAGE_PORT, AT_ONCE = 3880, 16
BODY = b'y' * 30_000
ON = '''\
msfrs on
msfrs_link rate=1gbit
msfrs_class gold weight=4
msfrs_class bronze weight=1 default
acl even src 127.1.0.0/20
msfrs_access gold allow even
'''
ASKS = 200                      #: sequential queries for the page's data
MOST_OF_SQUID, MOST_OF_CORE, MOST_MS = 1.01, 0.01, 10.0     #: the targets


async def serve(reader, writer):
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        await reader.readuntil(b'\r\n\r\n')
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' % len(BODY) + BODY)
        await writer.drain()
    writer.close()


class Load:
    """Requests of users, AT_ONCE at a time, each from an address of its own. bytes: received so far."""

    def __init__(self, host, users):
        self._host, self.bytes = host, 0
        self._users = [f'127.1.{n // 250}.{n % 250 + 1}' for n in range(users)]
        self._random = random.Random(1)

    async def _get(self, address, port, path):
        made = bound_socket(self._host, address)
        await asyncio.get_running_loop().sock_connect(made, ('127.0.0.1', port))
        reader, writer = await asyncio.open_connection(sock=made)
        writer.write(f'GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'.encode())
        answer = await reader.read(-1)
        writer.close()
        if not answer.startswith(b'HTTP/1.1 200 '):
            raise TrialError(f'{path}: {answer[:200].decode(errors="replace")}')
        return answer

    async def _ask(self, users):
        for user in users:
            self.bytes += len(await self._get(user, FORWARD_PORT, f'http://127.0.0.1:{PORT}/'))

    async def __aenter__(self):
        """Returns once each user has made a request."""
        self._server = await asyncio.start_server(serve, sock=bound_socket(self._host, '127.0.0.1', PORT), backlog=64)
        await asyncio.gather(*(self._ask(self._users[first::AT_ONCE]) for first in range(AT_ONCE)))
        forever = iter(lambda: self._random.choice(self._users), None)
        self._busy = [asyncio.create_task(self._ask(forever)) for _ in range(AT_ONCE)]
        return self

    async def __aexit__(self, *_):
        await self.rest()
        self._server.close()

    async def rest(self):
        """Stops all requests."""
        for task in self._busy:
            task.cancel()
        ended = await asyncio.gather(*self._busy, return_exceptions=True)
        self._busy = []
        for wrong in ended:
            if not isinstance(wrong, asyncio.CancelledError):
                raise wrong

    async def data(self, path='/data.json'):
        """(seconds, response) of the page's data."""
        began = time.perf_counter()
        answer = await self._get('127.0.0.1', PAGE_PORT, path)
        return time.perf_counter() - began, answer

    async def watch(self):
        """Asks as an open page does."""
        for second in itertools.count():
            await self.data()
            if second % 5 == 0:
                await self.data('/users.json')
            await asyncio.sleep(1)


class Pairs:
    """Measures parts with and without monitoring. waits: s until the data arrived; known: users on the page at last."""

    def __init__(self, host, squid, options, directory, load):
        self._host, self._squid, self._options, self._directory, self._load = host, squid, options, directory, load
        self._conf = pathlib.Path(directory) / 'page.conf'
        self._conf.write_text(f'web {ROOT}/src/satellites/page/web\nlisten 127.0.0.1:{PAGE_PORT}\n')
        self.waits, self.known = [], 0

    async def _part(self):
        """Squid's processor seconds, sampled at the same point of each second, and bytes."""
        before, had, began = spent(self._squid.pid), self._load.bytes, time.monotonic()
        await asyncio.sleep(self._options.seconds)
        used = spent(self._squid.pid) - before
        return used, used / (time.monotonic() - began), self._load.bytes - had

    async def pair(self):
        alone = await self._part()
        with Daemon(self._host, [self._options.page, str(self._conf)], f'{self._directory}/page.out',
                    command='msfrs-page') as page:
            await asyncio.to_thread(page.wait_until, lambda: listens(self._host, PAGE_PORT), 'listening', PATIENCE_S)
            watching = asyncio.create_task(self._load.watch())
            watched = await self._part()
            watching.cancel()
            for _ in range(ASKS):
                wait, answer = await self._load.data()
                self.waits.append(wait)
        self.known = int(answer.partition(b'"user_count":')[2].partition(b',')[0])
        return alone, watched


async def measure(host, squid, options, directory):
    """([(s/GB without, s/GB with monitoring)], share of a core that monitoring takes without load, Pairs)"""
    async with Load(host, options.users) as load:
        parts = Pairs(host, squid, options, directory, load)
        busy = [await parts.pair() for _ in range(options.pairs)]
        await load.rest()
        (_, alone, _), (_, watched, _) = await parts.pair()
    return [[used * 1e9 / had for used, _, had in pair] for pair in busy], watched - alone, parts


def run(options):
    with NetnsFabric('page') as fabric:
        host = fabric.host('gw')
        with lone_squid(host, options.squid, 4096, ON) as (squid, directory):
            return asyncio.run(measure(host, squid, options, directory))


def main():
    parser = argparse.ArgumentParser(prog='page costs', description=__doc__.splitlines()[0])
    parser.add_argument('--squid', required=True, metavar='FILE', help='the patched Squid')
    parser.add_argument('--page', required=True, metavar='FILE', help='msfrs-page')
    parser.add_argument('--users', type=int, default=10_000, metavar='N', help='default 10000; 60000 at most')
    parser.add_argument('--seconds', type=float, default=30.0, metavar='S', help='of each part (default 30)')
    parser.add_argument('--pairs', type=int, default=3, metavar='N', help='of parts (default 3)')
    options = parser.parse_args()
    if not 1 <= options.users <= 60_000 or options.pairs < 1:
        parser.error('--users must be 1 to 60000, and --pairs at least 1')
    if os.geteuid() or not os.access(options.squid, os.X_OK):
        print(f'page costs: skipped: it takes root, and {options.squid} (squid-patches/build 7)')
        return 0
    sweep()
    pairs, of_core, parts = run(options)
    ratio = statistics.median(watched / alone for alone, watched in pairs)
    median = 1000 * statistics.median(parts.waits)
    for what, figure, target in (
            ('users that the page knows', f'{parts.known}', ''),
            ('processor time of Squid, alone / watched', ', '.join(f'{a:.2f}/{w:.2f}' for a, w in pairs), 's/GB'),
            ('  ratio, the median', f'{ratio:.4f}', met(f'< {MOST_OF_SQUID}', ratio < MOST_OF_SQUID)),
            ('  of a core, without load', f'{of_core:.2%}', met(f'< {MOST_OF_CORE:.0%}', of_core < MOST_OF_CORE)),
            ("the page's data after: median, least", f'{median:.1f}, {1000 * min(parts.waits):.1f} ms',
             met(f'< {MOST_MS:g} ms', median < MOST_MS))):
        print(f'{what:44} {figure:>30}  {target}'.rstrip(), flush=True)
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except TrialError as error:
        sys.exit(f'page costs: {error}')
