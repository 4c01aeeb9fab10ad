# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload `internet`: both ends of its kinds on loopback, its records, and their table."""
import asyncio
import collections
import csv
import dataclasses
import random
import types

import numpy as np
import pytest

from fieldtrial.analysis import connections
from fieldtrial.load import datagrams, internet
from fieldtrial.report import columns
from fieldtrial.site.addresses import Server
from simulated import Outcome

HERE = Server('here', '127.0.0.1', group='', rtt_ms=0.0)
#: Other kinds are those of test_protocols, and one takes two seconds.
KINDS = [kind for kind in internet.KINDS
         if kind.name.startswith(('TLS', 'upload')) or kind.before is not None]
BY_UDP = [kind for kind in internet.KINDS if kind.answers]


async def conversation(kind, serve, answers=None):
    server = await asyncio.start_server(internet._served(serve), '127.0.0.1', 0)
    port = server.sockets[0].getsockname()[1]
    transport = await internet.serve_datagrams(answers, ('127.0.0.1', port)) if answers else None
    async with server:
        kind = dataclasses.replace(kind, port=port, before=kind.before and dataclasses.replace(HERE, v4='127.0.0.9'))
        try:
            await internet.converse(kind, HERE, '127.0.0.1', random.Random(1))
        finally:
            if transport:
                transport.abort()


def person(cls, number):
    return {'name': f'{cls}-{number}', 'cls': cls, 'v4': f'198.18.16.{number}', 'v6': f'2001:2:0:100{number}::2'}


@pytest.mark.parametrize('kind', KINDS, ids=lambda kind: kind.name)
def test_both_ends_agree_and_another_answer_is_an_error(kind):
    async def close(reader, _writer):
        await reader.read(1)
    asyncio.run(conversation(kind, kind.serve))     # of two addresses the first refuses
    with pytest.raises(OSError):
        asyncio.run(conversation(kind, close))


@pytest.mark.parametrize('kind', BY_UDP, ids=lambda kind: kind.name)
def test_both_ends_agree_by_udp_and_another_answer_is_an_error(kind):
    asyncio.run(conversation(kind, kind.serve, kind.answers))
    with pytest.raises(OSError, match='received'):
        asyncio.run(conversation(kind, kind.serve, dict.fromkeys(kind.answers, b'another')))


def test_where_quic_is_refused_tcp_is_used_and_nothing_else_works_then():
    """Nothing listens at the UDP port."""
    *others, quic = BY_UDP
    asyncio.run(conversation(quic, quic.serve))
    for kind in others:
        with pytest.raises(ConnectionRefusedError):
            asyncio.run(conversation(kind, kind.serve))


def test_a_datagram_that_is_lost_is_sent_again_and_the_second_answer_is_no_error(monkeypatch):
    """Of the first two datagrams of a client, and of its third, the answer is lost."""
    class Loses(datagrams.Server):
        count = 0

        def datagram_received(self, data, address):
            Loses.count += 1
            if Loses.count not in (1, 2, 4):
                super().datagram_received(data, address)
                super().datagram_received(data, address)
    monkeypatch.setattr(datagrams, 'Server', Loses)
    monkeypatch.setattr(datagrams, 'REPEAT_S', 0.05)
    kind = next(kind for kind in BY_UDP if kind.name.startswith('wireguard'))
    asyncio.run(conversation(kind, kind.serve, kind.answers))
    assert Loses.count == 5


def test_only_quic_begins_like_quic():
    """By which gateways tell it: a long header with the fixed bit (RFC 9000, 17.2) in at least 1200 bytes."""
    for kind in BY_UDP:
        for datagram in kind.answers:
            assert (len(datagram) >= 1200 and datagram[0] & 0xc0 == 0xc0) == (kind.answers is datagrams.QUIC)


def test_every_kind_has_a_name_and_a_place_of_its_own():
    assert len(internet.KINDS) == len({kind.name for kind in internet.KINDS}) == 42
    assert len({address for place in internet.places() for address in place.addresses}) == 2 * 42


def test_each_connection_is_recorded(tmp_path, monkeypatch):
    """Of each kind as many as wanted; one that is not over after ten seconds has failed."""
    async def converse(kind, _place, source, _draw):
        asked.append(source)
        if kind.name == 'irc':
            raise ConnectionResetError('reset')
        await asyncio.sleep(20 if kind.name == 'ssh' else 0.5)
    asked = []
    monkeypatch.setattr(internet, 'converse', converse)
    users = [person('gold', 1)]
    Outcome(tmp_path, workload='internet', users=users, parameters={'connections': 8}, drain_s=10)
    rows = list(csv.DictReader((tmp_path / 'connections.csv').open()))
    assert collections.Counter(row['kind'] for row in rows) == dict.fromkeys((kind.name for kind in internet.KINDS), 8)
    for row in rows:
        assert row['works'] == ('0' if row['kind'] in ('irc', 'ssh') else '1')
    assert {row['why'] for row in rows} == {'', 'TimeoutError: ', 'ConnectionResetError: reset'}
    assert set(asked) == {'198.18.16.1', *(f'2001:2:0:1001::7{number}:2' for number in range(4))}


def test_every_second_user_downloads_and_the_others_make_the_connections(tmp_path, monkeypatch):
    async def converse(*_):
        pass
    monkeypatch.setattr(internet, 'converse', converse)
    done = Outcome(tmp_path, workload='internet', parameters={'connections': 3, 'downloads': 3}, drain_s=10,
                   users=[person(cls, number) for cls in ('gold', 'silver', 'bronze') for number in (1, 2)])
    assert {row['user'] for row in done.requests} == {'gold-2', 'silver-2', 'bronze-2'}
    assert set(done.clients.most.values()) == {3} and set(done.clients.ways) == {'http'}
    assert {row['user'] for row in csv.DictReader((tmp_path / 'connections.csv').open())} == {'gold-1', 'silver-1',
                                                                                             'bronze-1'}


def test_the_table_has_a_row_for_each_kind():
    def measured(*works):
        table = {'t_start': np.array([2.0, 1.0, 3.0]), 'kind': np.array(['ssh', 'irc', 'ssh']),
                 'works': np.array(works), 'seconds': np.array([0.5, 0.2, 1.5])}
        return types.SimpleNamespace(cell=types.SimpleNamespace(connections=table))
    heads, rows = columns.of_kinds({'router': [measured(1, 1, 1)], 'msfrs': [measured(0, 0, 1), measured(1, 0, 1)]})
    assert heads == ['connections that work, median time', 'router alone', 'MSF-RS']
    assert rows == [['irc', '1 of 1, 0.200 s', '0 of 2'], ['ssh', '2 of 2, 1.00 s', '3 of 4, 1.50 s']]
    assert connections.share(measured(1, 0, 1)) == pytest.approx(2 / 3)
    router = types.SimpleNamespace(cell=types.SimpleNamespace(connections=None))
    assert columns.of_kinds({'router': [router]}) is None
