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
from fieldtrial.load import internet
from fieldtrial.report import columns
from fieldtrial.site.addresses import Server
from simulated import Outcome

HERE = Server('here', '127.0.0.1', group='', rtt_ms=0.0)
#: Other kinds are those of test_protocols, and one takes two seconds.
KINDS = [kind for kind in internet.KINDS
         if kind.name.startswith(('TLS', 'upload')) or kind.before is not None]


async def conversation(kind, serve):
    server = await asyncio.start_server(internet._served(serve), '127.0.0.1', 0)
    async with server:
        kind = dataclasses.replace(kind, port=server.sockets[0].getsockname()[1],
                                   before=kind.before and dataclasses.replace(HERE, v4='127.0.0.9'))
        await internet.converse(kind, HERE, '127.0.0.1', random.Random(1))


@pytest.mark.parametrize('kind', KINDS, ids=lambda kind: kind.name)
def test_both_ends_agree_and_another_answer_is_an_error(kind):
    async def close(reader, _writer):
        await reader.read(1)
    asyncio.run(conversation(kind, kind.serve))     # of two addresses the first refuses
    with pytest.raises(OSError):
        asyncio.run(conversation(kind, close))


def test_every_kind_has_a_name_and_a_place_of_its_own():
    assert len(internet.KINDS) == len({kind.name for kind in internet.KINDS}) == 37
    assert len({address for place in internet.places() for address in place.addresses}) == 2 * 37


def test_each_connection_is_recorded(tmp_path, monkeypatch):
    """Of each kind as many as wanted; one that is not over after ten seconds has failed."""
    async def converse(kind, _place, source, _draw):
        asked.append(source)
        if kind.name == 'irc':
            raise ConnectionResetError('reset')
        await asyncio.sleep(20 if kind.name == 'ssh' else 0.5)
    asked = []
    monkeypatch.setattr(internet, 'converse', converse)
    users = [{'name': 'gold-1', 'cls': 'gold', 'v4': '198.18.16.1', 'v6': '2001:2:0:1001::2'}]
    Outcome(tmp_path, workload='internet', users=users, parameters={'connections': 8}, drain_s=10)
    rows = list(csv.DictReader((tmp_path / 'connections.csv').open()))
    assert collections.Counter(row['kind'] for row in rows) == dict.fromkeys((kind.name for kind in internet.KINDS), 8)
    for row in rows:
        assert row['works'] == ('0' if row['kind'] in ('irc', 'ssh') else '1')
    assert {row['why'] for row in rows} == {'', 'TimeoutError: ', 'ConnectionResetError: reset'}
    assert set(asked) == {'198.18.16.1', *(f'2001:2:0:1001::7{number}:2' for number in range(4))}


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
