# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP/2 on persistent tunnels: with a real nginx over loopback, and with a scripted server, byte by byte."""
import asyncio
import collections
import contextlib
import itertools
import ssl

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
import pytest

import simulated
from fieldtrial.load.traffic import http2
from loopback import free_ports, serving
from test_loadgen import SOURCES, finish, results, spec, start


@pytest.fixture(name='origin', scope='module')
def _origin():
    with serving() as running:
        yield running


def https(tmp_path, origin, workload, **more):
    """A run of the load generator's program over tunnels."""
    code, said = finish(start(spec(tmp_path, origin.ports[0], workload=workload, tls_port=origin.ports[1],
                                   tls_ca=origin.certificate, **more)))
    assert code == 0, said
    return results(tmp_path)


def test_one_tunnel_for_each_user_and_server(tmp_path, origin):
    servers = [simulated.server(name, v6='::1') for name in ('s01.test', 'localhost')]
    requests, received, meta = https(tmp_path, origin, 'https-open', duration_s=0.5, drain_s=100, rate_bps=20e6,
                                     servers=servers, sizes='lognormal:9.357:1.318:200000')
    assert len(requests) == meta['offered']['arrivals'] > 20
    assert meta['requests'] == {'ok': len(requests)} and meta['errors'] == {}
    for row in requests:
        assert row['size'] == row['bytes'] and row['status'] == '200' and row['scheme'] == 'h2'
        assert float(row['t_start']) <= float(row['t_first_byte']) <= float(row['t_end'])
    pairs = {(row['user'], row['server']) for row in requests}
    assert len(pairs) < len(requests) and meta['tunnels'] == {'opened': len(pairs)}
    assert sum(int(received[-1][name]) for name in ('gold', 'silver', 'bronze')) == sum(
        int(row['bytes']) for row in requests)


def test_idle_tunnels_are_opened_and_agree_on_http2(tmp_path, origin):
    _, _, meta = https(tmp_path, origin, 'https-pages', duration_s=4, drain_s=100,
                       parameters={'idle': 5, 'think_s': 1, 'objects': 2}, sizes='fixed:500')
    assert meta['tunnels'] == {'opened': 3 * 5 + 3} and meta['errors'] == {}


def test_a_strangers_certificate_is_an_error(tmp_path, origin):
    requests, _, meta = https(tmp_path, origin, 'https-open', duration_s=0.5, drain_s=100, rate_bps=5e6,
                              servers=[simulated.server('no.test')])
    assert meta['requests'] == {'error': len(requests)}
    assert all('CERTIFICATE_VERIFY_FAILED' in text for text in meta['errors'])
    assert set(meta['tunnels']) == {'failed'}


# --- a scripted server -----------------------------------------------------------------------------------------------

class Server(asyncio.Protocol):
    """Answers each request by `script(server, stream)`; records what it saw of the client."""

    def __init__(self, seen, script, settings):
        self.seen, self._script, self._settings = seen, script, settings
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding='utf-8'))
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport
        self.seen.servers.append(self)
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values=self._settings)
        self.h2.initiate_connection()
        self.write()

    def data_received(self, data):
        for event in self.h2.receive_data(data):
            self.seen.events.append(event)
            if isinstance(event, h2.events.RequestReceived):
                self._script(self, event.stream_id)
        self.write()

    def answer(self, stream, body=b'', status='200', end=True):
        """A header, and as much of a body as the windows allow."""
        self.h2.send_headers(stream, [(':status', status)], end_stream=end and not body)
        size = self.h2.max_outbound_frame_size
        pieces = [body[at:at + size] for at in range(0, len(body), size)]
        for number, piece in enumerate(pieces, start=1):
            self.h2.send_data(stream, piece, end_stream=end and number == len(pieces))

    def write(self):
        if not self.transport.is_closing():
            self.transport.write(self.h2.data_to_send())


class Seen:
    """Record of the servers of a test."""

    def __init__(self):
        self.servers, self.events = [], []

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


async def until(ready):
    """Lets the loop run until a condition is true."""
    async with asyncio.timeout(60):
        while not ready():
            await asyncio.sleep(0.001)


def scripted(tmp_path, origin, script, test, settings=None, protocols=('h2',)):
    """Runs the coroutine `test(tunnels, user, server, seen)` beside a scripted server."""
    async def run():
        port, = free_ports(1)
        made = simulated.spec(tmp_path, workload='https-open', tls_port=port, tls_ca=origin.certificate,
                              users=[simulated.user('a', 'gold', SOURCES[0])], servers=[simulated.server('s01.test')])
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(origin.certificate, origin.certificate.replace('tls.crt', 'tls.key'))
        tls.set_alpn_protocols(list(protocols))
        seen = Seen()
        listener = await asyncio.get_running_loop().create_server(
            lambda: Server(seen, script, settings or {}), '127.0.0.1', port, ssl=tls)
        tunnels = http2.Tunnels(made, lambda user, server: (user.addresses[0], server.addresses[0]))
        try:
            await test(tunnels, made.users[0], made.servers[0], seen)
        finally:
            await tunnels.close()
            listener.close()
            for server in seen.servers:
                server.transport.abort()
    asyncio.run(run())


async def body(response):
    """The whole body."""
    pieces = []
    while piece := await response.content.readany():
        pieces.append(piece)
    return b''.join(pieces)


def test_what_a_client_says_of_itself(tmp_path, origin):
    async def test(tunnels, user, server, seen):
        async with tunnels.get(user, server, '/b/3/x') as response:
            assert response.status == 200 and await body(response) == b'abc'
        request, = seen.of(h2.events.RequestReceived)
        assert dict(request.headers) == {
            ':method': 'GET', ':scheme': 'https', ':authority': f's01.test:{tunnels._port}', ':path': '/b/3/x',
            'user-agent': 'msfrs-fieldtrial', 'accept': '*/*', 'accept-encoding': 'identity'}
        h2_of, = [each.h2 for each in seen.servers]
        assert h2_of.remote_settings.initial_window_size == http2.STREAM_WINDOW
        assert h2_of.remote_settings.enable_push == 0
        assert h2_of.outbound_flow_control_window == http2.CONNECTION_WINDOW - 3
        name = seen.servers[0].transport.get_extra_info('ssl_object')
        assert name.selected_alpn_protocol() == 'h2' and name.version() == 'TLSv1.3'
    scripted(tmp_path, origin, lambda server, stream: server.answer(stream, b'abc'), test)


def test_windows_never_stop_a_server(tmp_path, origin):
    """Four times a connection's window, sent only as the windows allow: they are reopened during the transfer."""
    left = {}

    def send(server, stream):
        while left[stream] and server.h2.local_flow_control_window(stream) > 0:
            count = min(left[stream], server.h2.local_flow_control_window(stream), 16_384)
            left[stream] -= count
            server.h2.send_data(stream, bytes(count), end_stream=not left[stream])

    def script(server, stream):
        left[stream] = 4 * http2.CONNECTION_WINDOW
        server.answer(stream, end=False)
        send(server, stream)

    async def test(tunnels, user, server, seen):
        async with tunnels.get(user, server, '/') as response:
            got, reader = 0, asyncio.ensure_future(body(response))
            while not reader.done():
                await asyncio.sleep(0.001)
                for each in seen.servers:
                    for stream in left:
                        if left[stream]:
                            send(each, stream)
                    each.write()
            got = len(await reader)
        assert got == 4 * http2.CONNECTION_WINDOW
        updates = [event for event in seen.of(h2.events.WindowUpdated)]
        # When half of a window is used up, not for every frame.
        assert all(event.delta >= http2.STREAM_WINDOW // 2 for event in updates)
        assert len([event for event in updates if event.stream_id == 0]) <= 10
    scripted(tmp_path, origin, script, test)


def test_streams_share_a_tunnel_and_come_in_any_order(tmp_path, origin):
    asked = []

    def script(server, stream):
        asked.append(stream)
        if len(asked) == 5:
            for each in reversed(asked):
                server.answer(each, b'%d' % each)

    async def test(tunnels, user, server, seen):
        async def one():
            async with tunnels.get(user, server, '/') as response:
                return await body(response)
        got = await asyncio.gather(*(one() for _ in range(5)))
        assert sorted(got) == sorted(b'%d' % stream for stream in asked) and len(seen.servers) == 1
        assert dict(tunnels.counts) == {'opened': 1}
    scripted(tmp_path, origin, script, test)


def test_no_more_streams_than_the_server_allows(tmp_path, origin):
    now, most = set(), [0]

    def script(server, stream):
        now.add(stream)
        most[0] = max(most[0], len(now))
        asyncio.get_running_loop().call_later(0.005, end, server, stream)

    def end(server, stream):
        now.discard(stream)
        server.answer(stream, b'x')
        server.write()

    async def test(tunnels, user, server, _seen):
        async def one():
            async with tunnels.get(user, server, '/') as response:
                return await body(response)
        await one()     # from now on the server's settings are known
        assert await asyncio.gather(*(one() for _ in range(20))) == 20 * [b'x']
        assert most[0] == 3
    scripted(tmp_path, origin, script, test, {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 3})


def test_a_request_that_is_cut_resets_its_stream_alone(tmp_path, origin):
    streams = itertools.count()

    def script(server, stream):
        if next(streams):
            server.answer(stream, b'x')
        else:
            server.answer(stream, b'half', end=False)

    async def test(tunnels, user, server, seen):
        async def stuck():
            async with tunnels.get(user, server, '/') as response:
                await body(response)
        task = asyncio.ensure_future(stuck())
        await until(lambda: seen.of(h2.events.RequestReceived))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await until(lambda: seen.of(h2.events.StreamReset))
        assert [event.error_code for event in seen.of(h2.events.StreamReset)] == [h2.errors.ErrorCodes.CANCEL]
        async with tunnels.get(user, server, '/') as response:
            assert await body(response) == b'x'
        assert dict(tunnels.counts) == {'opened': 1}
    scripted(tmp_path, origin, script, test)


@pytest.mark.parametrize('how, words', [
    (lambda server, stream: server.h2.reset_stream(stream), 'the server reset the stream'),
    (lambda server, stream: server.h2.close_connection(), 'GOAWAY'),
    (lambda server, stream: server.transport.abort(), ''),
    # DATA on stream 0, which no connection may have (RFC 9113, 6.1).
    (lambda server, stream: server.transport.write(b'\0\0\1\0\0\0\0\0\0x'), 'ProtocolError'),
])
def test_a_server_that_fails_is_an_error_and_asked_again_on_a_new_tunnel(tmp_path, origin, how, words):
    calls = collections.Counter()

    def script(server, stream):
        calls['all'] += 1
        if calls['all'] == 1:
            server.answer(stream, b'half', end=False)
            how(server, stream)
        else:
            server.answer(stream, b'x')

    async def test(tunnels, user, server, _seen):
        with pytest.raises(http2.TunnelError, match=words):
            async with tunnels.get(user, server, '/') as response:
                await body(response)
        async with tunnels.get(user, server, '/') as response:
            assert await body(response) == b'x'
        lost = int('reset' not in words)
        assert tunnels.counts['lost'] == lost and tunnels.counts['opened'] == 1 + lost
    scripted(tmp_path, origin, script, test)


def test_an_upload_is_sent_as_the_server_allows(tmp_path, origin):
    """No more than its window; the answer that comes before the end of the body is an error."""
    def script(server, stream):
        if len(server.seen.of(h2.events.RequestReceived)) == 2:
            server.answer(stream)

    async def test(tunnels, user, server, seen):
        async with asyncio.TaskGroup() as tasks:
            made = tasks.create_task(status(tunnels.get(user, server, '/up', upload=100_000)))
            await until(lambda: received(seen) == 65_535)
            assert not seen.of(h2.events.StreamEnded) and not made.done()
            asked, = seen.of(h2.events.RequestReceived)
            assert dict(asked.headers).items() >= {':method': 'POST', 'content-length': '100000'}.items()
            there = seen.servers[0]
            for stream in (asked.stream_id, None):
                there.h2.increment_flow_control_window(65_535, stream)
            there.write()
            await until(lambda: seen.of(h2.events.StreamEnded))
            assert received(seen) == 100_000
            there.answer(asked.stream_id)
            there.write()
        assert made.result() == '200'
        with pytest.raises(http2.TunnelError, match='before it had the whole body'):
            await body_of(tunnels.get(user, server, '/up', upload=200_000))

    def received(seen):
        return sum(len(event.data) for event in seen.of(h2.events.DataReceived))

    async def status(exchange):
        async with exchange as response:
            assert await body(response) == b''
            return str(response.status)

    async def body_of(exchange):
        async with exchange as response:
            return await body(response)
    scripted(tmp_path, origin, script, test)


def test_nginx_reads_an_upload_whole(origin):
    """Over HTTP/2, as a user sends it, and the answer has no body."""
    context = http2.context(origin.certificate)

    async def post():
        _, tunnel = await asyncio.get_running_loop().create_connection(
            lambda: http2.Tunnel('s01.test'), '127.0.0.1', origin.ports[1], ssl=context, server_hostname='s01.test')
        tunnels = type('Tunnels', (), {'of': staticmethod(lambda *_: asyncio.sleep(0, tunnel))})
        async with http2.Exchange(tunnels, None, None, '/up/x', upload=3_000_000) as response:
            found = response.status, await body(response)
        tunnel.abort()
        return found
    assert asyncio.run(asyncio.wait_for(post(), 60)) == (200, b'')


def test_a_server_without_http2_is_an_error(tmp_path, origin):
    async def test(tunnels, user, server, _seen):
        with pytest.raises(http2.TunnelError, match='the server does not speak HTTP/2'):
            async with tunnels.get(user, server, '/'):
                pass
    scripted(tmp_path, origin, lambda *_: None, test, protocols=('http/1.1',))


def test_a_tunnel_that_its_owner_closes_is_not_lost(tmp_path, origin):
    async def test(tunnels, user, server, seen):
        tunnel = await tunnels.open(user, server)
        await until(lambda: seen.of(h2.events.RemoteSettingsChanged))
        tunnel.close()
        await until(lambda: seen.of(h2.events.ConnectionTerminated))
        assert dict(tunnels.counts) == {'opened': 1} and not tunnel.open
    scripted(tmp_path, origin, lambda *_: None, test)
