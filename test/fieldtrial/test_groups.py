# SPDX-License-Identifier: GPL-2.0-or-later
"""Users in several groups, each with a load generator: which users are where, that the load does not depend on it, and
that the parts are joined to one set of records."""
import csv
import json

import pytest

from fieldtrial.load import merge, workloads
from fieldtrial.site import addresses, groups
from simulated import Answer, Outcome

CLASSES = ['gold', 'silver', 'bronze']


def names(dealt):
    return [' '.join(user.name for user in users) for users in dealt]


@pytest.mark.parametrize('count, expected', [
    (1, ['gold-1 gold-2 silver-1 silver-2 bronze-1 bronze-2']),
    (2, ['gold-1 gold-2 silver-1 silver-2', 'bronze-1 bronze-2']),
    (3, ['gold-1 gold-2', 'silver-1 silver-2', 'bronze-1 bronze-2']),
    (5, ['gold-1 gold-2', 'silver-1', 'silver-2', 'bronze-1', 'bronze-2']),
    (9, ['gold-1', 'gold-2', '', 'silver-1', 'silver-2', '', 'bronze-1', 'bronze-2', '']),
])
def test_classes_are_kept_apart_as_far_as_there_are_groups(count, expected):
    assert names(groups.by_class(addresses.users(CLASSES, (2, 2, 2)), count)) == expected


@pytest.mark.parametrize('count, expected', [
    (2, ['gold-1 gold-3 silver-1 bronze-1', 'gold-2 silver-2 bronze-2']),
    (3, ['gold-1 gold-3 silver-1 bronze-1', 'gold-2 silver-2 bronze-2', '']),
])
def test_dealt_evenly_each_group_has_all_classes(count, expected):
    assert names(groups.evenly(addresses.users(CLASSES, (3, 2, 2)), count)) == expected


def test_dealt_in_turn_there_are_as_many_in_each():
    assert names(groups.in_turn(addresses.users(CLASSES, (2, 1, 2)), 2)) == [
        'gold-1 silver-1 bronze-2', 'gold-2 bronze-1']


@pytest.mark.parametrize('deal', [groups.by_class, groups.evenly, groups.in_turn])
@pytest.mark.parametrize('count', range(1, 12))
def test_everybody_is_somewhere_and_nobody_twice(deal, count):
    users = addresses.users(CLASSES, (24, 4, 1))
    dealt = deal(users, count)
    assert len(dealt) == count and dealt[0]
    assert sorted(user.name for group in dealt for user in group) == sorted(user.name for user in users)


def answer(user, server, size):
    """Some are slow, some fail: this determines how long a user waits, and so what it requests next."""
    return Answer(wait=0.05 + size % 7 / 20 + server.rtt_ms / 1e3, transfer=size / 1e6,
                  status=503 if size % 11 == 5 and user.cls == 'silver' else 200)


def run(directory, mine=None, **how):
    directory.mkdir(parents=True)
    return Outcome(directory, answer, mine=mine, **how)


def read(path):
    with open(path, encoding='utf-8', newline='') as file:
        return list(csv.DictReader(file))


def in_order(rows):
    return sorted(tuple(row.items()) for row in rows)


@pytest.fixture(name='url_list')
def _url_list(tmp_path):
    path = tmp_path / 'urls'
    path.write_text(''.join(f'http://h{number % 5}.example/{number} {1000 * number}\n' for number in range(40)))
    return {'list': str(path)}


@pytest.mark.parametrize('count', [2, 3, 6])
@pytest.mark.parametrize('workload', [name for name in workloads.names()
                                      if name not in ('browser', 'internet', 'scale')])  # their clients are real
def test_the_load_is_the_same_however_many_groups_there_are(tmp_path, workload, count, url_list):
    """The same users, objects, times and servers; in open arrivals and in closed loops with the same response times."""
    disturbed = {'first_s': 3, 'rate_s': 0, 'down_s': 0, 'cbr_s': 0, 'stall_s': 0, 'tunnels_s': 5}
    parameters = {'url-list': url_list, 'disturbed': disturbed, 'evening': {'think_s': 5}}.get(workload, {})
    how = {'workload': workload, 'parameters': parameters, 'duration_s': 30,
           'drain_s': 60, 'tls_share': 0.0}
    whole = run(tmp_path / 'whole', **how)
    parts = [run(tmp_path / f'part{number}', [user.name for user in users], **how)
             for number, users in enumerate(groups.by_class(whole.spec.users, count))]
    assert len(whole.requests) > 50
    for part in parts:
        assert part.offered == whole.offered and part.requests
    assert in_order(row for part in parts for row in part.requests) == in_order(whole.requests)
    assert in_order(row for part in parts for row in part.pages) == in_order(whole.pages)


def written(directory, rows=(), samples=(), users=('a',), **meta):
    """A part, as written by a load generator."""
    directory.mkdir()
    (directory / 'requests.csv').write_text('t_end,user\n' + ''.join(f'{row}\n' for row in rows))
    (directory / 'pages.csv').write_text('t_start,t_end,user\n')
    (directory / 'bytes.csv').write_text(','.join(['t', *users]) + '\n' + ''.join(f'{row}\n' for row in samples))
    found = {'spec': {'seed': 1}, 'requests': {'ok': 1}, 'pages': {}, 'payload_bytes': {}, 'errors': {},
             'tunnels': {'opened': 2}, 'quic': {'failed': 1}, 'most_in_flight': 1, 'cpu_s': 0.5, 'memory_kb': 10,
             'stopped': None, 't_end': 1.0} | meta
    (directory / 'meta.json').write_text(json.dumps(found))
    return directory


def test_parts_become_one_set_of_records(tmp_path):
    parts = [written(tmp_path / 'one', ['0.9,a', '10.5,a'], ['0.0,0', '0.5,100', '1.0,200', '1.2,200'],
                     payload_bytes={'gold': 200}, requests={'ok': 2}, errors={'x': 1}),
             written(tmp_path / 'two', ['1.0,b', '9.5,c'], ['0.01,0,7', '0.51,100,7'], users=('b', 'c'), t_end=2.5,
                     payload_bytes={'gold': 5, 'bronze': 0}, requests={'ok': 1, 'error': 1}, stopped='SIGTERM')]
    merge.merge(parts, tmp_path)
    # In numeric order of time, not in order of text.
    assert (tmp_path / 'requests.csv').read_text() == 't_end,user\n0.9,a\n1.0,b\n9.5,c\n10.5,a\n'
    assert (tmp_path / 'pages.csv').read_text() == 't_start,t_end,user\n'
    # The rows of the part that lasted longest, with the others' bytes at those times; ended parts keep the last value.
    assert (tmp_path / 'bytes.csv').read_text() == ('t,a,b,c\n0.0,0,0,7\n0.5,100,98,7\n1.0,200,100,7\n'
                                                    '1.2,200,100,7\n')
    meta = json.loads((tmp_path / 'meta.json').read_text())
    assert meta == {'spec': {'seed': 1}, 'requests': {'ok': 3, 'error': 1}, 'pages': {}, 'errors': {'x': 1},
                    'tunnels': {'opened': 4}, 'quic': {'failed': 2},
                    'payload_bytes': {'gold': 205, 'bronze': 0}, 'most_in_flight': 2, 'cpu_s': 1.0, 'memory_kb': 20,
                    'stopped': 'SIGTERM', 't_end': 2.5}


def test_one_part_is_the_whole(tmp_path):
    part = written(tmp_path / 'one', ['0.9,a'], ['0.0,0'])
    merge.merge([part], tmp_path)
    for path in part.iterdir():
        assert (tmp_path / path.name).read_text() == path.read_text()
