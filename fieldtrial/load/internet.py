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
from . import client_hellos, datagrams, protocols
from .protocols import TLS_PORT, expect, return_bytes

#: Of the first place; nginx has the usual ports of all addresses.
FIRST_PORT = 20_001
#: Round-trip time of the servers, ms: of another country.
RTT_MS = 40.0
#: Names that the gateway's resolver answers with another address than the users' (that of the first server of the web
#: in every world), or does not know: of a pool that rotates, and of DNS over HTTPS or the outer name of ECH.
POOL, HIDDEN = 's01.test', 'hidden.test'
#: Pause between two pieces of a ClientHello, s.
PIECE_S = 0.02
#: After this time without an answer a client tries the next address, s (RFC 8305, Connection Attempt Delay).
NEXT_S = 0.25
#: Time that the slow server takes, s; bytes of an upload that needs path MTU discovery.
SLOW_S, UPLOAD = 2.0, 40_000


@dataclasses.dataclass(frozen=True)
class Kind:
    """talk(ends, draw): the client's end of one connection; ends: Ends. draw: random.Random. serve(reader, writer): the
    server's end, of the last address. before: an address to try first: one where nobody answers, or nothing listens.
    answers: what the server's UDP port of the same number answers, see datagrams; None: there is none."""
    name: str
    port: int
    serve: Callable[..., Awaitable[None]]
    talk: Callable[..., Awaitable[None]]
    before: addresses.Server | None = None
    answers: dict | None = None


class Ends:
    """The client's ends of the connections of one conversation of a kind, from an address to its server `place`."""

    def __init__(self, kind, place, source):
        self._kind, self._source, self._writers = kind, source, []
        self._addresses = [server.v6 if ':' in source else server.v4
                           for server in ([kind.before] if kind.before else []) + [place]]

    async def connect(self, number=0):
        """(reader, writer) of a connection to the nth of the kind's addresses. Raises OSError."""
        reader, writer = await asyncio.open_connection(self._addresses[number], self._kind.port,
                                                       local_addr=(self._source, 0))
        self._writers.append(writer)
        return reader, writer

    async def datagrams(self):
        """Has the kind's datagrams answered. Raises OSError or protocols.Differs."""
        await datagrams.converse(self._kind.answers, (self._addresses[0], self._kind.port), (self._source, 0))

    def close(self):
        for writer in self._writers:
            writer.transport.abort()


def _protocol(kind):
    async def talk(ends, _draw):
        await kind.talk(*await ends.connect())
    return Kind(kind.name, kind.port, kind.serve, talk)


def _hello(name, make):
    """The server returns the ClientHello: what arrived there is what was sent."""
    async def talk(ends, draw):
        hello = make(draw.choice((POOL, HIDDEN)), draw)
        reader, writer = await ends.connect()
        for number, piece in enumerate(hello.pieces):
            await asyncio.sleep(PIECE_S if number else 0)
            writer.write(piece)
            await writer.drain()
        await expect(reader, hello.bytes)
    return Kind(f'TLS: {name}', TLS_PORT, return_bytes, talk)


def _datagrams(name, answers):
    async def talk(ends, _draw):
        await ends.datagrams()
    return Kind(name, TLS_PORT, return_bytes, talk, answers=answers)


async def _http3(ends, _draw):
    """As browsers do: by TCP at once where QUIC is refused."""
    try:
        await ends.datagrams()
    except ConnectionError:
        await protocols.have_returned(*await ends.connect(), 100)


async def _upload(ends, _draw):
    await protocols.have_returned(*await ends.connect(), UPLOAD)


async def _serve_slowly(reader, writer):
    first = await reader.read(65_536)
    await asyncio.sleep(SLOW_S)
    writer.write(first)
    await return_bytes(reader, writer)


async def _small(ends, _draw):
    await protocols.have_returned(*await ends.connect(), 100)


async def _next_address(ends, _draw):
    """As browsers do with several addresses of a name (RFC 8305)."""
    try:
        async with asyncio.timeout(NEXT_S):
            connected = await ends.connect(0)
    except OSError:     # a TimeoutError is one
        connected = await ends.connect(1)
    await protocols.have_returned(*connected, 100)


KINDS = (
    *map(_protocol, protocols.KINDS),
    *(_hello(name, make) for name, make in client_hellos.KINDS.items()),
    *(_datagrams(name, answers) for name, answers in datagrams.KINDS.items()),
    Kind('QUIC, or TCP where it is refused', TLS_PORT, return_bytes, _http3, answers=datagrams.QUIC),
    Kind(f'upload by a hop of {addresses.NARROW_MTU} bytes', TLS_PORT, return_bytes, _upload),
    Kind(f'server that takes {SLOW_S:g} s', TLS_PORT, _serve_slowly, _small),
    Kind('first address silent', TLS_PORT, return_bytes, _next_address, before=addresses.SILENT),
    Kind('first address refuses', TLS_PORT, return_bytes, _next_address, before=addresses.REFUSING))


def places():
    """The Server of each kind, in the order of KINDS."""
    return addresses.others(len(KINDS), RTT_MS)


async def converse(kind, place, source, draw):
    """One connection of a kind from the address `source` to its server `place`. Raises OSError, also for
    another answer than that server's."""
    ends = Ends(kind, place, source)
    try:
        await kind.talk(ends, draw)
    except protocols.Differs as error:
        raise ConnectionError(str(error)) from None
    finally:
        ends.close()


def start_servers(world):
    """Starts them on the host of servers, and gives the users IPv6 privacy addresses. Daemons of the world."""
    host, = world.farms
    for number, (kind, place) in enumerate(zip(KINDS, places())):
        for iptables, to in (('iptables', place.v4), ('ip6tables', place.v6)):
            host.run(iptables, '-t', 'nat', '-A', 'PREROUTING', '-d', to, '-p', 'tcp', '--dport', str(kind.port),
                     '-j', 'REDIRECT', '--to-ports', str(FIRST_PORT + number))
        if kind.talk is _upload:
            world.narrow(place)
    for users_host, users in world.groups.items():
        users_host.batch([f'addr add {address}/128 dev {HOME} nodad' for user in users
                          for address in addresses.privacy(user)])
    daemon = world.start(host, [sys.executable, '-m', 'fieldtrial.load.internet', str(FIRST_PORT)], 'internet.log',
                         command='servers of other protocols', cwd=ROOT)
    daemon.wait_until(lambda: listens(host, FIRST_PORT + len(KINDS) - 1), 'listening')
    return [daemon]


def _served(serve):
    async def connected(reader, writer):
        with contextlib.suppress(OSError, protocols.Differs):
            await serve(reader, writer)
        writer.close()
    return connected


async def _serve_all(first):
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    for number, (kind, place) in enumerate(zip(KINDS, places())):
        await asyncio.start_server(_served(kind.serve), None, first + number)
        for address in place.addresses if kind.answers else ():
            await serve_datagrams(kind.answers, (address, kind.port))
    await over.wait()


async def serve_datagrams(answers, at):
    """Answers the datagrams of a kind at an (address, port). Its transport."""
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: datagrams.Server(answers),
                                                                            local_addr=at)
    return transport


def main(port):
    asyncio.run(_serve_all(int(port)))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
