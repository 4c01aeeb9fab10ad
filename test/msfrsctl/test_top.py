# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl top: rates between two updates, shares, and how it ends."""
import json

import pytest
import yaml
from conftest import BUSY, OFF


@pytest.fixture
def growing(gateway):
    """Each update finds 100 kB more of gold."""
    report = yaml.safe_load(BUSY)

    def fetch(host, port, path, timeout=5.0):
        report['classes'][0]['bytes'] += 100_000
        report['top_users'][0]['bytes'] += 100_000
        return 200, yaml.safe_dump(report)
    gateway.machine.fetch = fetch
    gateway.machine.keys = []
    return gateway


def looks(gateway, *words):
    return [json.loads(line) for line in gateway.run('top', '--json', *words)[1].splitlines()]


def test_rates_and_shares(growing):
    first, second = looks(growing, '--count', '2', '--interval', '4')
    assert [row['rate'] for row in first['classes']] == [None, None, None]
    assert [row['rate'] for row in second['classes']] == [200_000, 0, 0]
    assert [row['share'] for row in second['classes']] == [0.8, 0, 0.2]
    assert (second['users'][0]['user'], second['users'][0]['rate']) == ('198.18.16.1', 200_000)
    assert [row['user'] for row in second['held']] == ['198.18.48.1', '198.18.48.1', '198.18.16.1']


def test_what_is_shown(growing):
    said = growing.run('top', '--count', '2')[1]
    assert said.count('now      3 wait') == 2
    assert '400 kbit/s' in said and '100%' in said and '80%' in said and '45 ms' in said
    assert '\x1b' not in said, 'not a terminal'


def test_the_key_q_ends_it(growing):
    growing.machine.keys = ['', 'x', 'q']
    assert len(looks(growing)) == 3


def test_workers_are_added_up(gateway):
    gateway.machine.pages['msfrs'] = f'---\nkid: 1\n{BUSY}---\nkid: 2\n{BUSY}'
    (frame,) = looks(gateway, '--count', '1')
    assert [row['queued'] for row in frame['classes']] == [2, 0, 4]
    assert [row['held_p95'] for row in frame['classes']] == [0.0453, 0, 0.0453], 'the longest of all'
    assert len(frame['held']) == 6 and frame['users'][0]['queued'] in (2, 4)


def test_nothing_is_scheduled(gateway):
    gateway.machine.pages['msfrs'] = OFF
    assert gateway.run('top', '--count', '1')[1] == 'now      msfrs is off\n\n'


def test_a_squid_that_is_started_again(gateway):
    def key(seconds):
        gateway.machine.pages['msfrs'] = BUSY if gateway.machine.pages['msfrs'] != BUSY else ConnectionRefusedError()
        return ''
    gateway.machine.key = key
    assert [frame['scheduling'] for frame in looks(gateway, '--count', '3')] == [True, False, True]
    gateway.machine.pages['msfrs'] = ConnectionRefusedError()
    assert gateway.run('top', '--count', '1')[0] == 3


def test_counters_that_went_back(gateway):
    from msfrsctl.commands import top
    assert top._rate(5, 9, 1) is None and top._rate(9, 5, 2) == 16 and top._rate(9, None, 2) is None


@pytest.mark.parametrize('interval', ['0.1', '4000', 'nan'])
def test_a_wrong_interval(gateway, interval):
    assert gateway.run('top', '--interval', interval)[0] == 2
