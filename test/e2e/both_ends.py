# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections through Squid with both ends controlled by the test, which decides what each end sends and when."""
import asyncio
import contextlib
import queue
import socket
import ssl

import pytest

from background import PATIENCE, wait_until
from fieldtrial.site import addresses
from fieldtrial.site.world import FORWARD_PORT
from scripted_origin import RESET

PORT, TLS_PORT = 7000, 7443
#: Size of an end's kernel buffers: a whole transfer, so that later stalls of the test process do not delay it.
IN_ONE_PIECE = 32_000_000
LITTLE = 8192           #: bytes of the buffer of a client that does not read
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33         # linux: asm-generic/socket.h; not in Python's socket module


class End:
    """One end. `heard`: all received bytes; `over`: whether the other end has closed or reset the connection; answer:
    sent whenever the end has received something; half: it does not close its half when the other end closes its own."""

    def __init__(self, loop, reader, writer, deaf=False, answer=b'', half=False):
        self._loop, self._reader, self._writer, self._answer, self._half = loop, reader, writer, answer, half
        self.heard, self.over = bytearray(), False
        self._socket = writer.get_extra_info('socket')
        self.port = writer.get_extra_info('sockname')[1]
        self._task = None if deaf else asyncio.ensure_future(self._listen())

    async def _listen(self):
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.CancelledError):
            while data := await self._reader.read(1 << 16):
                self.heard += data
                if self._answer:
                    self._writer.write(self._answer)
            if not self._half and self._writer.can_write_eof():     # TLS closes both
                self._writer.write_eof()
        self.over = True

    def listen(self):
        """Begins to read, for an end that was deaf."""
        async def begin():
            self._task = asyncio.ensure_future(self._listen())
        self._loop.call(begin())

    def say(self, words):
        """Sends the words: as much as fits through the kernel, the rest through the event loop."""
        async def write():
            self._writer.write(words)
        self._loop.call(write())

    def leave(self, reset=False):
        """Ends the connection after the sent data, without TLS's close_notify; or resets it."""
        async def end():
            with contextlib.suppress(OSError):      # it has ended already
                if not reset:
                    self._socket.shutdown(socket.SHUT_WR)
                    return
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            if self._task:
                self._task.cancel()
            self._writer.transport.abort()
        self._loop.call(end())

    def say_good_bye(self):
        """Closes the connection, with TLS's close_notify if it has TLS."""
        async def close():
            self._writer.close()
        self._loop.call(close())

    def wait_for(self, words):
        """Waits until exactly these words have been received."""
        wait_until(lambda: len(self.heard) >= len(words), lambda: f'{len(words)} bytes; heard {len(self.heard)}')
        assert self.heard == words, f'{len(self.heard)} bytes, not the {len(words)} that were said'


class Pair:
    """The two ends of a connection."""

    def __init__(self, client, server):
        self.client, self.server = client, server


class BothEnds:
    """Makes pairs for the users of a slow_link (see conftest)."""

    def __init__(self, link):
        self._loop, self._world, self._gateway = link.loop, link.world, link.gateway
        self._pairs, self._many, self._deaf, self._answer, self._half = [], [], False, b'', False
        self._accepted = {PORT: queue.SimpleQueue(), TLS_PORT: queue.SimpleQueue()}
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(str(link.certificates.origin))
        self._servers = [link.loop.call(self._listen(port)) for port in self._accepted]

    async def _listen(self, port):
        with self._world.farm.inside():
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, IN_ONE_PIECE)
        made.bind(('0.0.0.0', port))

        def accepted(reader, writer):
            self._accepted[port].put(End(self._loop, reader, writer, self._deaf, self._answer, self._half))
        return await asyncio.start_server(accepted, sock=made, ssl=self._context if port == TLS_PORT else None)

    def tunnel(self, user, tls=None, deaf=False, unread=False, half=False):
        """A CONNECT tunnel of a user; opaque, or carrying TLS of a version, which Squid does not decrypt. deaf: the
        server does not read until listen(); unread: neither does the client, and its kernel buffer is small; half: an end
        whose peer has closed its half keeps its own open."""
        self._half = half
        try:
            return self._open(user, tls, None, deaf, unread)
        finally:
            self._half = False

    def tunnels(self, users, answer):
        """An opaque tunnel for each user in the list, which may repeat users; returns their clients. The servers answer
        everything with `answer`."""
        async def connect():
            return await asyncio.gather(*(self._connect(user, None, None) for user in users))
        self._answer = answer
        clients = self._loop.call(connect())
        servers = [self._accepted[PORT].get(timeout=PATIENCE) for _ in users]
        self._answer = b''
        self._many += clients + servers
        return clients

    def plain(self, user, words, unread=False):
        """Sends the proxy a request for PORT of the first server. unread: see tunnel()."""
        return self._open(user, None, words, unread=unread)

    @property
    def address(self):
        return f'{self._world.servers[0].v4}:{PORT}'

    def _open(self, user, tls, words, deaf=False, unread=False):
        self._deaf = deaf
        waiting = self._loop.start(self._connect(user, tls, words, unread))
        server = self._accepted[TLS_PORT if tls else PORT].get(timeout=PATIENCE)
        self._pairs.append(Pair(waiting.result(PATIENCE), server))
        return self._pairs[-1]

    async def _connect(self, user, tls, words, unread=False):
        with self._world.users_host.inside():
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, LITTLE if unread else IN_ONE_PIECE)
        made.bind((user.v4, 0))
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, (addresses.GATEWAY_IN4, FORWARD_PORT))
        reader, writer = await asyncio.open_connection(sock=made, limit=LITTLE if unread else 1 << 16)
        if words is None:
            target = f'{self._world.servers[0].v4}:{TLS_PORT if tls else PORT}'
            writer.write(f'CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n'.encode())
            answer = await reader.readuntil(b'\r\n\r\n')
            assert b' 200 ' in answer.splitlines()[0], answer
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.minimum_version = context.maximum_version = tls
            context.set_ciphers('ECDHE+AESGCM')
            await writer.start_tls(context)
        if words:
            writer.write(words)
        return End(self._loop, reader, writer, deaf=unread, half=self._half)

    def end(self):
        """Resets all open connections."""
        for pair in self._pairs:
            pair.client.leave(reset=True)
            pair.server.leave(reset=True)
        for end in self._many:
            end.leave(reset=True)
        self._pairs.clear()
        self._many.clear()

    def none_left(self):
        """Resets all open connections, and waits until Squid has forgotten them."""
        self.end()
        self._gateway.wait_for(queued=0, paused=0, in_flight=0, silent=0)

    def close(self):
        for server in self._servers:
            self._loop.loop.call_soon_threadsafe(server.close)


@contextlib.contextmanager
def both_ends_of(link, lines):
    """Starts the link's Squid with these lines of squid.conf; `link.ends` makes pairs until the end."""
    link.gateway.start(*lines)
    with contextlib.closing(BothEnds(link)) as link.ends:
        yield link.ends


@pytest.fixture(scope='module')
def narrow(common_link, request):
    """The Squid of a module, started with its LINES, and both ends of its tests' connections."""
    with both_ends_of(common_link, request.module.LINES):
        yield


@pytest.fixture
def link(narrow, shared_link):
    """Closes each test's connections; nothing may remain in Squid."""
    yield shared_link
    shared_link.ends.none_left()
