# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP/2 over TLS, as in browsers: one connection for each user and server, opened when it is first needed, kept open
and used for all of the user's requests to that server, several streams at a time.

To the gateway each is a tunnel: it sees a name (SNI), and then bytes. Windows are those of Chromium (RFC 9113, 6.9): so
wide that TCP and the gateway determine the rate, and updated when half of one is used up.
"""
import asyncio
import collections
import ssl

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

Code = h2.settings.SettingCodes

#: Bytes that a server may send on a stream, and on a connection, before it receives a window update.
STREAM_WINDOW, CONNECTION_WINDOW = 6 * 2 ** 20, 15 * 2 ** 20
#: Initial window of a connection (RFC 9113, 6.9.2).
FIRST_WINDOW = 65_535
SETTINGS = {Code.ENABLE_PUSH: 0, Code.INITIAL_WINDOW_SIZE: STREAM_WINDOW}
#: Timeout of a handshake: the run, not the client, decides when a user has waited long enough.
HANDSHAKE_S = 86_400.0
FIELDS = (('user-agent', 'msfrs-fieldtrial'), ('accept', '*/*'), ('accept-encoding', 'identity'))


class TunnelError(ConnectionError):
    """A tunnel, or a stream in it, ended prematurely; str() gives the reason."""


def context(authorities):
    """The ssl.SSLContext of all tunnels: HTTP/2 only, servers verified by the file `authorities`."""
    made = ssl.create_default_context(cafile=authorities)
    made.set_alpn_protocols(['h2'])
    return made


class Tunnel(asyncio.Protocol):
    """A connection to one server, made by `loop.create_connection`. `ended` is called once, if it stops accepting
    requests before `close` was called."""

    way = 'h2'

    def __init__(self, authority, ended=lambda: None):
        self._authority, self._ended = authority, ended
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding='utf-8'))
        self._h2.local_settings = h2.settings.Settings(client=True, initial_values=SETTINGS)
        self._transport = None
        self._exchanges = {}               # {stream: Exchange}
        self._unsent = {}                  # {stream: bytes of its request's body that the server has not allowed yet}
        self._waiting = collections.deque()   # callers beyond the server's limit of streams
        self._over = None                  # the TunnelError of a tunnel that accepts no more requests

    @property
    def open(self):
        """Whether it accepts requests."""
        return self._over is None

    # --- asyncio.Protocol --------------------------------------------------------------------------------------------

    def connection_made(self, transport):
        self._transport = transport
        if transport.get_extra_info('ssl_object').selected_alpn_protocol() != 'h2':
            self._end('the server does not speak HTTP/2')
            return
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW - FIRST_WINDOW)
        self._write()

    def data_received(self, data):
        if self._over and not self._exchanges:
            return
        try:
            events = self._h2.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            self._write()
            self._end(f'{type(error).__name__}: {error}')
            return
        for event in events:
            self._take(event)
        self._send_bodies()
        self._write()

    def connection_lost(self, exc):
        self._end(str(exc) if exc else 'the server closed the tunnel')

    # --- requests ----------------------------------------------------------------------------------------------------

    async def request(self, exchange, path, upload=0):
        """Requests `path`, or posts `upload` bytes to it; the response goes to the Exchange. Returns the stream's
        number. Raises TunnelError."""
        while self.open and self._h2.open_outbound_streams >= self._h2.remote_settings.max_concurrent_streams:
            room = asyncio.get_running_loop().create_future()
            self._waiting.append(room)
            await room
        if self._over:
            raise self._over
        stream = self._h2.get_next_available_stream_id()
        body = (('content-length', str(upload)),) if upload else ()
        self._h2.send_headers(stream, [(':method', 'POST' if body else 'GET'), (':scheme', 'https'),
                                       (':authority', self._authority), (':path', path), *FIELDS, *body],
                              end_stream=not body)
        self._exchanges[stream] = exchange
        if body:
            self._unsent[stream] = upload
            self._send_bodies()
        self._write()
        return stream

    def forget(self, stream):
        """The caller has no more interest in this stream; it is cancelled if it has not ended."""
        self._unsent.pop(stream, None)
        if self._exchanges.pop(stream, None) and not self._transport.is_closing():
            self._h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
            self._write()
        self._let_in()

    def close(self):
        if self._transport and not self._transport.is_closing():
            if self.open:
                self._h2.close_connection()
                self._write()
            self._transport.close()
        self._ended = lambda: None
        self._end('the tunnel was closed')

    def abort(self):
        """Closes it at once."""
        self._ended = lambda: None
        self._end('the tunnel was closed')

    def _take(self, event):
        exchange = self._exchanges.get(getattr(event, 'stream_id', None))
        if isinstance(event, h2.events.DataReceived):
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if exchange and event.data:
                exchange.arrived(event.data)
        elif isinstance(event, h2.events.ResponseReceived) and exchange:
            exchange.began(int(dict(event.headers)[':status']))
        elif isinstance(event, h2.events.StreamEnded):
            self._finish(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self._finish(event.stream_id, TunnelError(f'the server reset the stream: {event.error_code!s}'))
        elif isinstance(event, h2.events.ConnectionTerminated):
            self._end(f'GOAWAY: {event.error_code!s}')

    def _send_bodies(self):
        """Sends as much of each body as the server's windows allow."""
        for stream, left in list(self._unsent.items()):
            while (size := min(left, self._h2.local_flow_control_window(stream),
                               self._h2.max_outbound_frame_size)) > 0:
                left -= size
                self._h2.send_data(stream, bytes(size), end_stream=not left)
            self._unsent[stream] = left
        self._unsent = {stream: left for stream, left in self._unsent.items() if left}

    def _finish(self, stream, error=None):
        if self._unsent.pop(stream, 0):
            error = error or TunnelError('the server answered before it had the whole body')
        exchange = self._exchanges.pop(stream, None)
        if exchange:
            exchange.ended(error)
        self._let_in()

    def _let_in(self):
        """Wakes one caller that waits for a stream."""
        while self._waiting:
            room = self._waiting.popleft()
            if not room.done():
                room.set_result(None)
                return

    def _write(self):
        data = self._h2.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def _end(self, why):
        if self._over:
            return
        self._over = TunnelError(why)
        self._unsent.clear()
        self._ended()
        exchanges, self._exchanges = self._exchanges, {}
        for exchange in exchanges.values():
            exchange.ended(self._over)
        for room in self._waiting:
            if not room.done():
                room.set_result(None)
        self._waiting.clear()
        if self._transport and not self._transport.is_closing():
            self._transport.abort()


class Exchange:
    """One request and its response, with the interface of aiohttp: once entered it has `status`, and
    `content.readany()` gives the body in pieces, b'' at its end. Raises TunnelError, or OSError if no tunnel can be
    opened."""

    def __init__(self, tunnels, user, server, path, **more):
        """more: arguments of Tunnel.request."""
        self._tunnels, self._whose, self._path, self._more = tunnels, (user, server), path, more
        self._tunnel = self._stream = None
        self._news = asyncio.Queue()    # the status, then pieces; b'' or an exception ends it
        self.status, self.content = 0, self
        # Called by its tunnel: on the header, and on a piece of the body.
        self.began = self.arrived = self._news.put_nowait

    @property
    def via(self):
        """How it was sent, once entered: one of run.WAYS."""
        return self._tunnel.way

    async def __aenter__(self):
        self._tunnel = await self._tunnels.of(*self._whose)
        self._stream = await self._tunnel.request(self, self._path, **self._more)
        try:
            self.status = await self.readany() or 0
            if not self.status:
                raise TunnelError('the stream ended without a response')
        except BaseException:
            self._tunnel.forget(self._stream)
            raise
        return self

    async def __aexit__(self, *_):
        self._tunnel.forget(self._stream)

    async def readany(self):
        piece = await self._news.get()
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def ended(self, error=None):
        """The response has ended; prematurely with `error`."""
        self._news.put_nowait(error or b'')


class Tunnels:
    """The tunnels of all users."""

    def __init__(self, spec, road):
        """road: function from user and server to the addresses (from, to)."""
        self._road, self._port = road, spec.tls_port
        self._tls = context(spec.tls_ca)
        self._kept = {}      # {(user, server): task that opens or has opened it}
        self._others = set()    # tunnels opened in addition
        #: Tunnels: opened; failed, could not be opened; lost, ended before they were closed.
        self.counts = collections.Counter()

    def get(self, user, server, path, **more):
        """The Exchange of a request on the user's tunnel to the server. more: arguments of Tunnel.request."""
        return Exchange(self, user, server, path, **more)

    async def of(self, user, server):
        """The user's one tunnel to the server; opened if there is none. Raises OSError."""
        key = user.name, server.name
        task = self._kept.get(key)
        if task is None or task.done() and (task.cancelled() or task.exception() or not task.result().open):
            task = self._kept[key] = asyncio.ensure_future(self._connect(user, server))
        return await asyncio.shield(task)     # others may wait for it, too

    async def open(self, user, server):
        """An additional tunnel for the caller alone, who must close it. Raises OSError."""
        tunnel = await self._connect(user, server)
        self._others.add(tunnel)
        return tunnel

    def _authority(self, server):
        return server.name if self._port == 443 else f'{server.name}:{self._port}'

    async def _connect(self, user, server):
        source, address = self._road(user, server)

        def lost():
            self.counts['lost'] += 1
        try:
            _, tunnel = await asyncio.get_running_loop().create_connection(
                lambda: Tunnel(self._authority(server), lost), address, self._port, local_addr=(source, 0),
                ssl=self._tls, server_hostname=server.name, ssl_handshake_timeout=HANDSHAKE_S)
        except OSError:
            self.counts['failed'] += 1
            raise
        self.counts['opened'] += 1
        return tunnel

    async def close(self):
        for task in self._kept.values():
            if task.done() and not task.cancelled() and not task.exception():
                task.result().abort()
            task.cancel()
        await asyncio.gather(*self._kept.values(), return_exceptions=True)
        for tunnel in self._others:
            tunnel.abort()
