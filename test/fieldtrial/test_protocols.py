# SPDX-License-Identifier: GPL-2.0-or-later
"""The protocols besides TLS and HTTP: both ends of each understand each other, and notice what a gateway changes."""
import asyncio
import collections

import pytest

from fieldtrial.load import protocols
from fieldtrial.load.protocols import KINDS, Differs

PATIENCE_S = 20.0


async def spoken(serve, talk, **how):
    """One connection on loopback."""
    server = await asyncio.start_server(serve_and_close(serve), '127.0.0.1', 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            await asyncio.wait_for(talk(reader, writer, **how), PATIENCE_S)
        finally:
            writer.close()


def serve_and_close(serve):
    async def answer(reader, writer):
        try:
            await serve(reader, writer)
        except Differs:
            pass
        finally:
            writer.close()
    return answer


def test_there_are_seventeen_of_names_of_their_own():
    assert len({kind.name for kind in KINDS}) == len(KINDS) == 17
    assert collections.Counter(kind.port for kind in KINDS) == {443: 12, 80: 5}


@pytest.mark.parametrize('kind', KINDS, ids=lambda kind: kind.name)
def test_both_ends_agree(kind):
    asyncio.run(spoken(kind.serve, kind.talk, echo=100_000))


@pytest.mark.parametrize('kind', KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize('answer', (b'', b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n' + bytes(200)))
def test_another_answer_is_noticed(kind, answer):
    async def refuse(reader, writer):
        writer.write(answer)
        writer.write_eof()
        await reader.read(-1)

    with pytest.raises((Differs, ConnectionError)):
        asyncio.run(spoken(refuse, kind.talk))


def test_a_proxy_may_remove_the_offer_of_http2():
    [kind] = (kind for kind in KINDS if 'upgrade' in kind.name)

    async def serve(reader, writer):
        first, fields = await protocols.head(reader)
        less = asyncio.StreamReader()
        less.feed_data(f'{first}\r\nhost: {fields["host"]}\r\n\r\n'.encode())
        await kind.serve(less, writer)
    asyncio.run(spoken(serve, kind.talk))


def test_a_web_socket_without_the_offer_is_refused():
    [kind] = (kind for kind in KINDS if 'websocket' in kind.name)

    async def talk(reader, writer):
        writer.write(b'GET /chat HTTP/1.1\r\nHost: x\r\n\r\n')
        first, _ = await protocols.head(reader)
        assert ' 426 ' in first
    asyncio.run(spoken(kind.serve, talk))
