# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP/3 with a scripted QUIC server over loopback, and the fallback where QUIC is blocked, with a real nginx for TCP.
"""
import asyncio
import contextlib
import itertools
import json
import socket

import pytest

import simulated
from fieldtrial.load import http3 as servers
from fieldtrial.load.traffic import http2
from loopback import serving
from test_http2 import body, until
from test_loadgen import finish, results, spec, start

http3 = pytest.importorskip('fieldtrial.load.traffic.http3')     # its message says where aioquic is
from aioquic.asyncio import QuicConnectionProtocol, serve  # noqa: E402
from aioquic.h3.connection import H3_ALPN, H3Connection  # noqa: E402
from aioquic.h3.events import HeadersReceived  # noqa: E402
from aioquic.quic import events  # noqa: E402
from aioquic.quic.configuration import QuicConfiguration  # noqa: E402

SOURCE = '127.0.0.2'


@pytest.fixture(name='origin', scope='module')
def _origin():
    with serving() as running:
        yield running


class Server(QuicConnectionProtocol):
    """Answers each request by `script(server, stream)`; records what it saw of the client."""

    def __init__(self, seen, script, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http, self._script, self._seen = H3Connection(self._quic), script, seen
        seen.servers.append(self)

    @property
    def quic(self):
        return self._quic

    def quic_event_received(self, event):
        self._seen.events.append(event)
        for news in self.http.handle_event(event):
            if isinstance(news, HeadersReceived):
                self._seen.requests.append(dict(news.headers))
                self._script(self, news.stream_id)
                self.transmit()

    def answer(self, stream, content=b'', end=True):
        self.http.send_headers(stream, [(b':status', b'200')])
        self.http.send_data(stream, content, end_stream=end)
        self.transmit()


class Seen:
    def __init__(self):
        self.servers, self.events, self.requests = [], [], []

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def beside(tmp_path, origin, test, script=None):
    """Runs the coroutine `test(quic, user, server, seen)`, `quic` being the user's Connections, with nginx at the
    server's TCP port and, with a script, a QUIC server at the UDP port of the same number."""
    port = origin.ports[1]

    async def run():
        made = simulated.spec(tmp_path, workload='quic-pages', tls_port=port, tls_ca=origin.certificate,
                              users=[simulated.user('a', 'gold', SOURCE)], servers=[simulated.server('s01.test')])

        def road(user, server):
            return user.addresses[0], server.addresses[0]
        tunnels, seen = http2.Tunnels(made, road), Seen()
        quic = http3.Connections(made, road, tunnels)
        listener = None
        if script:
            told = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
            told.load_cert_chain(origin.certificate, origin.certificate.replace('tls.crt', 'tls.key'))
            listener = await serve('127.0.0.1', port, configuration=told,
                                   create_protocol=lambda *of, **named: Server(seen, script, *of, **named))
        try:
            async with asyncio.timeout(60):
                await test(quic, made.users[0], made.servers[0], seen)
        finally:
            await quic.close()
            await tunnels.close()
            if listener:
                listener.close()
    asyncio.run(run())


async def get(quic, user, server, path='/b/64/x'):
    """(way of the request, the body)."""
    async with quic.get(user, server, path) as response:
        assert response.status == 200
        return response.via, await body(response)


def test_one_connection_for_many_requests(tmp_path, origin):
    async def test(quic, user, server, seen):
        answers = await asyncio.gather(*(get(quic, user, server) for _ in range(5)))
        assert {via for via, _ in answers} == {'h3'} and {content for _, content in answers} == {b'abc' * 9999}
        assert len(seen.servers) == 1 and len(seen.requests) == 5
        assert seen.requests[0] == {
            b':method': b'GET', b':scheme': b'https', b':authority': f's01.test:{origin.ports[1]}'.encode(),
            b':path': b'/b/64/x', b'user-agent': b'msfrs-fieldtrial', b'accept': b'*/*',
            b'accept-encoding': b'identity'}
        assert dict(quic.counts) == {'opened': 1}
    beside(tmp_path, origin, test, lambda server, stream: server.answer(stream, b'abc' * 9999))


def test_a_connection_that_was_silent_for_long_is_not_trusted(tmp_path, origin, monkeypatch):
    async def test(quic, user, server, seen):
        await get(quic, user, server)
        await get(quic, user, server)
        assert dict(quic.counts) == {'opened': 1}
        monkeypatch.setattr(http3, 'FRESH_S', 0.0)
        assert await get(quic, user, server) == ('h3', b'x')
        assert dict(quic.counts) == {'opened': 2} and len(seen.servers) == 2
    beside(tmp_path, origin, test, lambda server, stream: server.answer(stream, b'x'))


def test_where_udp_is_rejected_tcp_is_taken_at_once_and_for_minutes(tmp_path, origin, monkeypatch):
    """No socket is at the UDP port: loopback reports that by ICMP, like a gateway that rejects."""
    for how_long in ('HANDSHAKE_S', 'IDLE_S'):
        monkeypatch.setattr(http3, how_long, 3600.0)

    async def test(quic, user, server, _seen):
        assert await get(quic, user, server) == ('h2', bytes(64))
        assert await get(quic, user, server) == ('h2', bytes(64))
        assert dict(quic.counts) == {'failed': 1}
    beside(tmp_path, origin, test)


def test_after_minutes_quic_is_tried_again(tmp_path, origin, monkeypatch):
    monkeypatch.setattr(http3, 'BROKEN_S', 0.0)

    async def test(quic, user, server, _seen):
        assert [(await get(quic, user, server))[0] for _ in range(3)] == ['h2', 'h2', 'h2']
        assert dict(quic.counts) == {'failed': 3}
    beside(tmp_path, origin, test)


def test_a_server_that_says_nothing_is_asked_by_tcp(tmp_path, origin, monkeypatch):
    monkeypatch.setattr(http3, 'HANDSHAKE_S', 0.01)

    async def test(quic, user, server, _seen):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(('127.0.0.1', origin.ports[1]))
            assert await get(quic, user, server) == ('h2', bytes(64))
        assert dict(quic.counts) == {'failed': 1}
    beside(tmp_path, origin, test)


def test_a_request_that_is_cut_stops_its_stream_alone(tmp_path, origin):
    streams = itertools.count()

    async def test(quic, user, server, seen):
        cut = asyncio.ensure_future(get(quic, user, server))
        await until(lambda: seen.requests)
        cut.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await cut
        await until(lambda: seen.of(events.StopSendingReceived))
        assert [event.error_code for event in seen.of(events.StopSendingReceived)] == [http3.CANCELLED]
        assert await get(quic, user, server) == ('h3', b'x')
        assert dict(quic.counts) == {'opened': 1}
    beside(tmp_path, origin, test, lambda server, stream: server.answer(stream, b'x', end=bool(next(streams))))


def test_a_connection_that_is_lost_is_an_error_and_made_again(tmp_path, origin):
    def script(server, stream):
        if len(server._seen.requests) == 1:
            server.answer(stream, b'half', end=False)
            server.quic.close(error_code=http3.NO_ERROR, reason_phrase='enough')
        else:
            server.answer(stream, b'x')

    async def test(quic, user, server, _seen):
        with pytest.raises(http2.TunnelError, match='enough'):
            await get(quic, user, server)
        assert await get(quic, user, server) == ('h3', b'x')
        assert dict(quic.counts) == {'opened': 2, 'lost': 1}
    beside(tmp_path, origin, test, script)


def test_the_load_generator_says_how_requests_went(tmp_path, origin):
    """Without a server at the UDP port, all requests use tunnels; those of HTTP/3 users are recorded as attempts."""
    users = [simulated.user(f'{name}-{number}', name, f'127.0.0.{2 * place + number}')
             for place, name in enumerate(('gold', 'silver', 'bronze'), start=1) for number in (1, 2)]
    code, said = finish(start(spec(tmp_path, origin.ports[0], workload='quic-pages', tls_port=origin.ports[1],
                                   tls_ca=origin.certificate, users=users, duration_s=2, drain_s=100,
                                   parameters={'think_s': 0.5, 'objects': 2}, sizes='fixed:500')))
    assert code == 0, said
    requests, _, meta = results(tmp_path)
    assert meta['http3'] == ['gold-2', 'silver-2', 'bronze-2']
    assert meta['requests'] == {'ok': len(requests)} and meta['errors'] == {}
    assert {row['scheme'] for row in requests} == {'h2'}
    asked = {row['user'] for row in requests} & set(meta['http3'])
    assert asked and meta['quic'] == {'failed': len(asked)}


def test_caddy_serves_what_nginx_does(tmp_path):
    told = json.loads(json.dumps(servers.configuration(tmp_path / 'own', tmp_path / 'content')))
    origin = told['apps']['http']['servers']['origin']
    assert origin['listen'] == [':4443'] and origin['automatic_https'] == {'disable': True}
    (route,) = origin['routes']
    assert route['handle'][-1] == {'handler': 'file_server', 'root': f'{tmp_path}/content'}
    assert told['apps']['tls']['certificates']['load_files'] == [
        {'certificate': f'{tmp_path}/own/tls.crt', 'key': f'{tmp_path}/own/tls.key'}]
