# SPDX-License-Identifier: GPL-2.0-or-later
"""The kinds of connections of the workload `internet`: what passes ports 443 and 80 besides ordinary requests, and
servers that are far from ordinary. Each has both of its ends here, and addresses of its own.

    python3 -m fieldtrial.load.internet PORT

serves them all on a host, the nth place on the nth port from PORT on.
"""
import asyncio
import contextlib
import dataclasses
import signal
import sys
from collections.abc import Awaitable, Callable

from ..base.paths import ROOT
from ..site import addresses
from ..site.lan import HOME
from ..site.processes import listens
from . import client_hellos, protocols
from .protocols import TLS_PORT, expect, return_bytes

#: Of the first place; nginx has the usual ports of all addresses.
FIRST_PORT = 20_001
#: Round-trip time of the servers, ms: of another country.
RTT_MS = 40.0
#: Names that the gateway's resolver answers with another address than the users', or does not know: of a pool that
#: rotates, and of DNS over HTTPS or the outer name of ECH.
POOL, HIDDEN = dataclasses.replace(addresses.REFUSING, name='pool.test'), 'hidden.test'
#: Pause between two pieces of a ClientHello, s.
PIECE_S = 0.02
#: After this time without an answer a client tries the next address, s (RFC 8305, Connection Attempt Delay).
NEXT_S = 0.25
#: Time that the slow server takes, s; bytes of an upload that needs path MTU discovery; and that MTU.
SLOW_S, UPLOAD, MTU = 2.0, 40_000, 1400


@dataclasses.dataclass(frozen=True)
class Kind:
    """talk(connect, draw): the client's end of one connection; connect(n) opens it to the nth of the kind's addresses
    and returns (reader, writer). draw: random.Random. serve(reader, writer): the server's end, of the last address.
    before: an address to try first: one where nobody answers, or nothing listens."""
    name: str
    port: int
    serve: Callable[..., Awaitable[None]]
    talk: Callable[..., Awaitable[None]]
    before: addresses.Server | None = None


def _protocol(kind):
    async def talk(connect, _draw):
        await kind.talk(*await connect(0))
    return Kind(kind.name, kind.port, kind.serve, talk)


def _hello(name, make):
    """The server returns the ClientHello: what arrived there is what was sent."""
    async def talk(connect, draw):
        hello = make(draw.choice((POOL.name, HIDDEN)), draw)
        reader, writer = await connect(0)
        for number, piece in enumerate(hello.pieces):
            await asyncio.sleep(PIECE_S if number else 0)
            writer.write(piece)
            await writer.drain()
        await expect(reader, hello.bytes)
    return Kind(f'TLS: {name}', TLS_PORT, return_bytes, talk)


async def _upload(connect, _draw):
    await protocols.have_returned(*await connect(0), UPLOAD)


async def _serve_slowly(reader, writer):
    first = await reader.read(65_536)
    await asyncio.sleep(SLOW_S)
    writer.write(first)
    await return_bytes(reader, writer)


async def _small(connect, _draw):
    await protocols.have_returned(*await connect(0), 100)


async def _next_address(connect, _draw):
    """As browsers do with several addresses of a name (RFC 8305)."""
    try:
        async with asyncio.timeout(NEXT_S):
            ends = await connect(0)
    except OSError:     # a TimeoutError is one
        ends = await connect(1)
    await protocols.have_returned(*ends, 100)


KINDS = (
    *map(_protocol, protocols.KINDS),
    *(_hello(name, make) for name, make in client_hellos.KINDS.items()),
    Kind(f'upload by a hop of {MTU} bytes', TLS_PORT, return_bytes, _upload),
    Kind(f'server that takes {SLOW_S:g} s', TLS_PORT, _serve_slowly, _small),
    Kind('first address silent', TLS_PORT, return_bytes, _next_address, before=addresses.SILENT),
    Kind('first address refuses', TLS_PORT, return_bytes, _next_address, before=addresses.REFUSING))


def places():
    """The Server of each kind, in the order of KINDS."""
    return addresses.others(len(KINDS), RTT_MS)


async def converse(kind, place, source, draw):
    """One connection of a kind from the address `source` to its server `place`. Raises OSError, also for
    another answer than that server's."""
    writers = []

    def address(number):
        server = [*([kind.before] if kind.before else []), place][number]
        return server.v6 if ':' in source else server.v4

    async def connect(number):
        reader, writer = await asyncio.open_connection(address(number), kind.port, local_addr=(source, 0))
        writers.append(writer)
        return reader, writer
    try:
        await kind.talk(connect, draw)
    except protocols.Differs as error:
        raise ConnectionError(str(error)) from None
    finally:
        for writer in writers:
            writer.transport.abort()


def start_servers(world):
    """Starts them on the host of servers, and gives the users IPv6 privacy addresses. Daemons of the world."""
    host, = world.farms
    for number, (kind, place) in enumerate(zip(KINDS, places())):
        for iptables, to in (('iptables', place.v4), ('ip6tables', place.v6)):
            host.run(iptables, '-t', 'nat', '-A', 'PREROUTING', '-d', to, '-p', 'tcp', '--dport', str(kind.port),
                     '-j', 'REDIRECT', '--to-ports', str(FIRST_PORT + number))
        if kind.talk is _upload:
            _narrow(world.isp, place)
    for users_host, users in world.groups.items():
        users_host.batch([f'addr add {address}/128 dev {HOME} nodad' for user in users
                          for address in addresses.privacy(user)])
    daemon = world.start(host, [sys.executable, '-m', 'fieldtrial.load.internet', str(FIRST_PORT)], 'internet.log',
                         command='servers of other protocols', cwd=ROOT)
    daemon.wait_until(lambda: listens(host, FIRST_PORT + len(KINDS) - 1), 'listening')
    return [daemon]


def _narrow(isp, place):
    """Gives the way from the ISP to a server a smaller MTU."""
    for address, family in ((place.v4, '-4'), (place.v6, '-6')):
        words = isp.run('ip', family, 'route', 'get', address).split()
        isp.run('ip', family, 'route', 'replace', address, 'dev', words[words.index('dev') + 1], 'mtu', 'lock', MTU)


def _served(serve):
    async def connected(reader, writer):
        with contextlib.suppress(OSError, protocols.Differs):
            await serve(reader, writer)
        writer.close()
    return connected


async def _serve_all(first):
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    for number, kind in enumerate(KINDS):
        await asyncio.start_server(_served(kind.serve), None, first + number)
    await over.wait()


def main(port):
    asyncio.run(_serve_all(int(port)))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
