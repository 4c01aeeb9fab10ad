# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic that bypasses Squid: bodies in datagrams from port 443 of the servers, like QUIC's. The client requests
missing datagrams by number, a window of them at a time, and checks them byte by byte. The window doubles if all have
arrived, and restarts if not."""
import asyncio
import contextlib
import itertools
import socket
import struct
import time

from background import content
from http_users import Fetch

PORT = 443
PIECE = 1200                        #: bytes of a body in a datagram
FIRST, MOST = 2, 8                  #: datagrams in the window
REPEAT_S, GIVE_UP_S = 1.0, 60.0     #: without a datagram
NUMBER = struct.Struct('!I')


def _packed(size, numbers, key):
    return struct.pack(f'!IB{len(numbers)}I', size, len(numbers), *numbers) + key.encode()


def _unpacked(data):
    size, count = struct.unpack_from('!IB', data)
    return size, struct.unpack_from(f'!{count}I', data, 5), data[5 + 4 * count:].decode()


def _piece(key, size, number):
    return content(key, number * PIECE, min(PIECE, size - number * PIECE))


class _Server(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self._transport = transport

    def datagram_received(self, data, address):
        size, numbers, key = _unpacked(data)
        for number in numbers:
            self._transport.sendto(NUMBER.pack(number) + _piece(key, size, number), address)


class _Arrivals(asyncio.DatagramProtocol):
    def __init__(self):
        self.queue = asyncio.Queue()

    def datagram_received(self, data, _address):
        self.queue.put_nowait(data)

    def error_received(self, _error):
        pass        # lost datagrams are requested again


class Datagrams:
    """Servers on all addresses of a world's servers, and users who request bodies from them."""

    def __init__(self, loop, world):
        self._loop, self._world = loop, world
        self._numbers = itertools.count(1)
        for server in world.servers:
            for address in server.addresses:
                loop.call(self._endpoint(_Server, self._socket(world.farm, address, PORT)))

    @staticmethod
    def _socket(host, address, port):
        family = socket.AF_INET6 if ':' in address else socket.AF_INET
        with host.inside():
            made = socket.socket(family, socket.SOCK_DGRAM)
        made.bind((address, port))
        made.setblocking(False)
        return made

    @staticmethod
    async def _endpoint(protocol, made):
        return await asyncio.get_running_loop().create_datagram_endpoint(protocol, sock=made)

    def get(self, user, *, size, family=4, server=0):
        """Starts a request for a body; returns its Fetch."""
        where = self._world.servers[server]
        address, source = (where.v4, user.v4) if family == 4 else (where.v6, user.v6)
        fetch = Fetch(f'd{next(self._numbers)}', 'datagrams')
        fetch._loop = self._loop.loop

        async def start():
            fetch._task = asyncio.ensure_future(self._run(fetch, source, address, size))
        self._loop.call(start())
        return fetch

    async def _run(self, fetch, source, address, size):
        transport = None
        fetch.t_start = time.monotonic()
        try:
            made = self._socket(self._world.users_host, source, 0)
            made.connect((address, PORT))
            fetch.port = made.getsockname()[1]
            transport, arrivals = await self._endpoint(_Arrivals, made)
            await self._ask(fetch, transport, arrivals.queue, size)
            fetch.status, fetch.whole = 200, True
        except (OSError, asyncio.TimeoutError) as error:
            fetch.error = error
        except asyncio.CancelledError:
            pass
        finally:
            if transport:
                transport.close()
            fetch.t_end = time.monotonic()
            fetch._finished.set()

    async def _ask(self, fetch, transport, arrivals, size):
        missing = dict.fromkeys(range(-(-size // PIECE)))
        window, heard = FIRST, time.monotonic()
        while missing:
            asked = set(itertools.islice(missing, window))
            transport.sendto(_packed(size, sorted(asked), fetch.key))
            with contextlib.suppress(asyncio.TimeoutError):
                while asked:
                    data = await asyncio.wait_for(arrivals.get(), REPEAT_S)
                    heard = time.monotonic()
                    number, = NUMBER.unpack_from(data)
                    asked.discard(number)
                    if number in missing:
                        del missing[number]
                        fetch.intact = fetch.intact and data[NUMBER.size:] == _piece(fetch.key, size, number)
                        fetch.received += len(data) - NUMBER.size
            if time.monotonic() - heard > GIVE_UP_S:
                raise asyncio.TimeoutError(f'no datagram for {GIVE_UP_S:g} s')
            window = FIRST if asked else min(2 * window, MOST)
