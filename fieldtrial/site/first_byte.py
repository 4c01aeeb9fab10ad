# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers take time: the time to the first byte of each response, and which requests nobody ever answers.

    python3 -m fieldtrial.site.first_byte SOCKET SEED

Both follow from the seed and the path of the request alone, so that they are the same in every arm. Where the path
says so, /w/SIZE/SECONDS/ANYTHING, the time is that. As a program it gives nginx (auth_request) and Caddy leave to
respond to a request once its time is over, and answers /s/SIZE/RATE/ANYTHING with SIZE bytes at RATE bit/s. SOCKET is
the number of the open file that it listens on.
"""
import asyncio
import math
import random
import signal
import socket
import sys

#: The time to the first byte is lognormal: 95 % within 0.43 s, 99 % within 0.98 s, mean 0.12 s. A page of a web site is
#: often put together for a request, from databases and other servers; round trips come on top.
MEDIAN_S, SIGMA = 0.060, 1.2
#: Share of the requests that go to servers that are gone or blocked.
SILENT = 0.01
#: The longest header that is read, bytes.
MOST_HEADER = 65_536
#: Between two pieces of a stream, s: as between packets of voice.
PIECE_S = 0.02


def _draw(seed, path):
    return random.Random(f'{seed}{path}')


def wait_s(seed, path):
    """Time from the request for `path` to the first byte of its response, s."""
    if path.startswith('/w/'):
        return float(path.split('/')[3])
    return _draw(seed, path).lognormvariate(math.log(MEDIAN_S), SIGMA)


def silent(seed, path):
    """Whether the user who requests `path` also makes a request that is never answered."""
    return _draw(seed, f'{path} silent').random() < SILENT


class Leave(asyncio.Protocol):
    """A connection with requests of HTTP/1.1, one after the other; each is answered with 204 once its time is over."""

    def __init__(self, seed):
        self._seed, self._header, self._transport, self._timer = seed, b'', None, None

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self._header += data
        if len(self._header) > MOST_HEADER:
            self._transport.abort()
        elif self._header.endswith(b'\r\n\r\n'):
            path = self._header.split(b' ', 2)[1].decode('ascii', 'replace')
            self._header = b''
            if path.startswith('/s/'):
                _, _, size, rate, *_ = path.split('/')
                self._transport.write(f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode())
                self._stream(int(size), float(rate) / 8, asyncio.get_running_loop().time(), 0)
                return
            self._timer = asyncio.get_running_loop().call_later(wait_s(self._seed, path), self._transport.write,
                                                                b'HTTP/1.1 204 No Content\r\n\r\n')

    def _stream(self, size, rate, begun, sent):
        """Sends the next piece; rate: bytes/s, sent: bytes so far."""
        loop = asyncio.get_running_loop()
        piece = min(size, round((loop.time() - begun + PIECE_S) * rate)) - sent
        self._transport.write(bytes(piece))
        if sent + piece < size:
            self._timer = loop.call_later(PIECE_S, self._stream, size, rate, begun, sent + piece)

    def connection_lost(self, _exc):
        if self._timer:
            self._timer.cancel()


async def serve(listener, seed):
    """Answers on a listening socket until SIGTERM."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    await loop.create_unix_server(lambda: Leave(seed), sock=listener)
    await over.wait()


def main(listener, seed):
    asyncio.run(serve(socket.socket(fileno=int(listener)), seed))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
