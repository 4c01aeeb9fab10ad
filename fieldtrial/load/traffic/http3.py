# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP/3 for many users in one process, as in browsers: one QUIC connection for each user and server, opened when it is
first needed, replaced by the tunnel of http2 where QUIC is blocked.

A browser whose UDP is rejected or not answered uses TCP at once and retries QUIC with that server only after minutes.
These users do the same. Windows are those of http2. The server decides how fast it sends; a client only requests.
"""
import asyncio
import collections
import sys

from . import http2
from ...base.paths import MODULES

if MODULES.is_dir():    # ahead of Debian's packages: aioquic needs newer versions than Debian 12 has
    sys.path.insert(0, str(MODULES))

from aioquic.h3.connection import H3_ALPN, H3Connection  # noqa: E402 (needs the path above)
from aioquic.h3.events import DataReceived, HeadersReceived  # noqa: E402 (needs the path above)
from aioquic.quic import events  # noqa: E402 (needs the path above)
from aioquic.quic.configuration import QuicConfiguration  # noqa: E402 (needs the path above)
from aioquic.quic.connection import QuicConnection  # noqa: E402 (needs the path above)

#: Idle timeout, s, as in Chromium; Caddy has the same. Shortly before it expires the server may have closed its end, so
#: a new connection is made.
IDLE_S, FRESH_S = 30.0, 25.0
#: Timeout of a handshake before TCP is tried, s.
HANDSHAKE_S = 10.0
#: How long TCP is used for a server whose QUIC is blocked, s; Chromium's initial value.
BROKEN_S = 300.0
#: H3_NO_ERROR and H3_REQUEST_CANCELLED (RFC 9114, 8.1).
NO_ERROR, CANCELLED = 0x100, 0x10c
FIELDS = [(name.encode(), value.encode()) for name, value in http2.FIELDS]


class Connection(asyncio.DatagramProtocol):
    """A QUIC connection to one server, made by `loop.create_datagram_endpoint` with the server's address. `ended` is
    called once, if it ends with requests in flight before `abort` was called."""

    way = 'h3'

    def __init__(self, configuration, authority, ended=lambda: None):
        self._loop = asyncio.get_running_loop()
        self._quic = QuicConnection(configuration=configuration)
        self._http = H3Connection(self._quic)
        self._authority, self._ended = authority.encode(), ended
        self._transport = self._peer = None
        self._timer = self._timer_at = None
        self._exchanges = {}               # {stream: http2.Exchange}
        self._over = None                  # the OSError of a connection that has ended
        self._heard = self._loop.time()    # time of the last datagram from the server
        self.ready = self._loop.create_future()    #: done when it accepts requests; OSError if it never will

    @property
    def open(self):
        """Whether it accepts requests."""
        fresh = self._loop.time() < self._heard + FRESH_S
        return not self._over and (fresh or bool(self._exchanges))

    # --- asyncio.DatagramProtocol ------------------------------------------------------------------------------------

    def connection_made(self, transport):
        self._transport, self._peer = transport, transport.get_extra_info('peername')
        self._quic.connect(self._peer, now=self._loop.time())
        self._send()

    def datagram_received(self, data, addr):
        self._heard = self._loop.time()
        self._quic.receive_datagram(data, self._peer, now=self._loop.time())
        self._take()

    def error_received(self, exc):
        # From ICMP, which anyone can forge: it counts only until the server itself has sent something.
        if not self.ready.done():
            self._end(exc)

    # --- requests ----------------------------------------------------------------------------------------------------

    async def request(self, exchange, path):
        """Requests `path`; the response goes to the http2.Exchange. Returns the stream's number. Raises OSError. A
        stream that the server does not allow yet waits within the connection."""
        if self._over:
            raise self._over
        stream = self._quic.get_next_available_stream_id()
        self._http.send_headers(stream, [(b':method', b'GET'), (b':scheme', b'https'),
                                         (b':authority', self._authority), (b':path', path.encode()), *FIELDS],
                                end_stream=True)
        self._exchanges[stream] = exchange
        self._send()
        return stream

    def forget(self, stream):
        """The caller has no more interest in this stream; it is cancelled if it has not ended."""
        if self._exchanges.pop(stream, None) and not self._over:
            self._quic.stop_stream(stream, CANCELLED)
            self._send()

    def abort(self):
        """Closes it with all requests in flight, and notifies the server."""
        self._ended = lambda: None
        if not self._over and self._transport:
            self._quic.close(error_code=NO_ERROR)
            self._send()
        self._end(http2.TunnelError('the connection was closed'))

    # --- events of QUIC ----------------------------------------------------------------------------------------------

    def _send(self):
        """Sends pending datagrams and sets the timer that QUIC requests."""
        for datagram, _ in self._quic.datagrams_to_send(now=self._loop.time()):
            if self._over:
                return
            self._transport.sendto(datagram)
        when = None if self._over else self._quic.get_timer()
        if when != self._timer_at:
            self._wake(when)

    def _wake(self, when):
        if self._timer:
            self._timer.cancel()
        self._timer_at, self._timer = when, None if when is None else self._loop.call_at(when, self._tick)

    def _tick(self):
        when, self._timer, self._timer_at = self._timer_at, None, None
        self._quic.handle_timer(now=max(when, self._loop.time()))
        self._take()

    def _take(self):
        while not self._over and (event := self._quic.next_event()) is not None:
            if isinstance(event, events.HandshakeCompleted):
                if not self.ready.done():   # no caller waits any more
                    self.ready.set_result(None)
            elif isinstance(event, events.ConnectionTerminated):
                self._end(http2.TunnelError(event.reason_phrase or f'QUIC error {event.error_code:#x}'))
                return
            elif isinstance(event, events.StreamReset):
                self._finish(event.stream_id, http2.TunnelError(f'the server reset the stream: {event.error_code:#x}'))
            for news in self._http.handle_event(event):
                self._tell(news)
        self._send()

    def _tell(self, news):
        exchange = self._exchanges.get(getattr(news, 'stream_id', None))
        if not exchange:
            return
        if isinstance(news, HeadersReceived):
            exchange.began(int(dict(news.headers)[b':status']))
        elif isinstance(news, DataReceived) and news.data:
            exchange.arrived(news.data)
        if news.stream_ended:
            self._finish(news.stream_id)

    def _finish(self, stream, error=None):
        exchange = self._exchanges.pop(stream, None)
        if exchange:
            exchange.ended(error)

    def _end(self, error):
        if self._over:
            return
        self._over = error
        self._wake(None)
        if not self.ready.done():
            self.ready.set_exception(error)
        elif self._exchanges:
            self._ended()
        exchanges, self._exchanges = self._exchanges, {}
        for exchange in exchanges.values():
            exchange.ended(error)
        self._transport.abort()


class Connections(http2.Tunnels):
    """The QUIC connections of all users. `counts` are of these; failed: replaced by a tunnel."""

    def __init__(self, spec, road, tunnels):
        """tunnels: the http2.Tunnels of the same users."""
        super().__init__(spec, road)
        self._tunnels, self._ca = tunnels, spec.tls_ca
        self._broken = collections.defaultdict(float)   # {(user, server): until when TCP is used, loop's clock}

    async def of(self, user, server):
        """The user's one QUIC connection to the server, or the tunnel if QUIC is unavailable. Raises OSError."""
        loop, key = asyncio.get_running_loop(), (user.name, server.name)
        if loop.time() >= self._broken[key]:
            try:
                return await super().of(user, server)
            except OSError:
                self._broken[key] = loop.time() + BROKEN_S
        return await self._tunnels.of(user, server)

    async def _connect(self, user, server):
        configuration = QuicConfiguration(
            is_client=True, alpn_protocols=H3_ALPN, server_name=server.name, cafile=self._ca,
            idle_timeout=IDLE_S, max_data=http2.CONNECTION_WINDOW, max_stream_data=http2.STREAM_WINDOW)
        source, address = self._road(user, server)

        def lost():
            self.counts['lost'] += 1
        _, made = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: Connection(configuration, self._authority(server), lost), local_addr=(source, 0),
            remote_addr=(address, self._port))
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                await made.ready
        except BaseException as error:
            made.abort()
            if isinstance(error, OSError):
                self.counts['failed'] += 1
            raise
        self.counts['opened'] += 1
        return made
