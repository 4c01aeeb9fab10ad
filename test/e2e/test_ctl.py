# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl with the patched Squid: its output while requests wait, and its changes."""
import json
import re
import subprocess
import sys
import time

import pytest

from background import PATIENCE
from fieldtrial.base.paths import ROOT
from fieldtrial.site.world import WAN
from gateway import NARROW, OFF, SOON
from page_service import WHY
from test_shares import WARM_UP, assert_shares

FORMAT = ('%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %ssl::>sni %[un %Sh/%<a %msfrs::class %msfrs::user %msfrs::wait '
          '%msfrs::total_wait %msfrs::quanta %msfrs::window/%msfrs::window_limit %msfrs::refusal %master_xaction')


class Ctl:
    """msfrsctl on the gateway of a link."""

    def __init__(self, link):
        self._gateway = link.gateway
        self.own = link.gateway.directory / 'msfrsctl.conf'

    def __call__(self, *words, code=0):
        engine = ['--engine', str(WHY)] if words[0] in ('why', 'status') else []
        engine += ['--seconds', '0'] if words[0] == 'why' else []
        argv = [sys.executable, '-m', 'msfrsctl', *words, *engine,
                '--squid-conf', str(self._gateway.directory / 'squid.conf'), '--squid', str(self._gateway.installation.program), '--etc', str(self._gateway.directory / 'etc'),
                '--state', str(self._gateway.directory / 'state')]
        done = subprocess.run(self._gateway.world.gateway.enter(argv), capture_output=True, text=True, cwd=ROOT,
                              timeout=PATIENCE, check=False)
        assert done.returncode == code, done
        return done.stdout

    def data(self, *words, code=0):
        return json.loads(self(*words, '--json', code=code))


@pytest.fixture
def ctl(slow_link):
    return Ctl(slow_link)


@pytest.fixture
def held(slow_link, ctl):
    """gold's first user waits for a server that does not respond; behind it two requests of bronze wait."""
    slow_link.gateway.start(NARROW, 'msfrs_quantum none', f'logformat ctl {FORMAT}',
                            f'access_log stdio:{slow_link.gateway.directory}/ctl.log logformat=ctl')
    slow_link.first = slow_link.users.get(slow_link.of('gold')[0], gate='open')
    slow_link.gateway.wait_for(queued=0, in_flight=1)
    slow_link.waiting = [slow_link.users.get(slow_link.of('bronze')[0], size=size) for size in (1000, 2000)]
    slow_link.gateway.wait_for(queued=2, in_flight=1)
    yield slow_link
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (slow_link.first, *slow_link.waiting))


def test_status_and_top(held, ctl):
    first, *_, last = ctl('status').splitlines()
    assert re.search(r'\. 1 user waits, for [0-9.]+ m?s, of class bronze\.', first)
    assert last.startswith('for engineers: 2 wait and the window is full (W is 1 of W+ 1.00); 1 of 1.00 responses')
    (frame,) = [json.loads(line) for line in ctl('top', '--count', '1', '--json').splitlines()]
    assert [row['queued'] for row in frame['classes']] == [0, 0, 2]
    assert {row['user'] for row in frame['held']} == {held.of('bronze')[0].v4}


def test_why_now_and_afterwards(held, ctl):
    bronze, gold = held.of('bronze')[0].v4, held.of('gold')[0].v4
    live = ctl.data('why', bronze)['live']
    assert [(row['class'], row['place'], row['of']) for row in live['held']] == [('bronze', 1, 2), ('bronze', 2, 2)]
    said = ctl('why', bronze)
    assert re.search(r': 2 requests of this user wait for a turn, the longest for ',
                     said)
    assert 'For engineers: 2 wait and the window is full' in said and '1 of 1.00 slots' in said
    first, second = (row['id'] for row in live['held'])
    assert int(first) < int(second)
    assert [row['place'] for row in ctl.data('why', second)['live']['held']] == [2]
    held.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in held.waiting)
    held.gateway.rest()
    log = held.gateway.directory / 'ctl.log'
    held.gateway.wait_until(lambda: log.read_text().count(' bronze ') == 2, 'two lines of bronze')
    rows = ctl.data('why', bronze)['log']['requests']
    assert len(rows) == 2 and all(row['wait'] > 0 and row['window_limit'] == 1 for row in rows)
    assert 'gold' in {row['class'] for row in ctl.data('why', bronze)['log']['behind']['classes']}
    assert {row['id'] for row in rows} == {first, second}, 'the same in access.log'
    assert ctl.data('why', rows[0]['id'])['log']['requests'] == [rows[0]]
    assert ctl.data('why', gold)['log']['requests'][0]['cls'] == 'gold'
    assert len(ctl.data('why', held.world.servers[0].v4)['log']['requests']) == 3
    ctl('why', 'nobody.test', code=1)


@pytest.fixture
def settable(slow_link, ctl):
    """The msfrs lines are in the file that msfrsctl may write."""
    whole = slow_link.gateway.configuration('msfrs_window interval=1s', SOON)
    lines = [line for line in whole.splitlines() if line.startswith('msfrs')]
    ctl.own.write_text('\n'.join(lines) + '\n')
    slow_link.gateway.start(f'include {ctl.own}', on=False)
    return slow_link


def weights(link):
    return {name: row['weight'] for name, row in link.gateway.classes().items()}


def test_set_and_what_ends_it(settable, ctl):
    before = ctl.own.read_text()
    assert weights(settable)['gold'] == 4
    settable.gateway.told(ctl, 'set', 'weight', 'gold=8')
    settable.gateway.told(ctl, 'set', 'rate', '1Mbit', '--keep')
    assert weights(settable)['gold'] == 8 and settable.gateway.report()['link']['rate'] == 1e6
    user = settable.of('bronze')[0]
    settable.gateway.told(ctl, 'set', 'boost', user.v4)
    assert settable.users.get(user).wait().good
    assert settable.gateway.access_log(1)[-1]['class'] == 'gold'
    ctl.own.write_text(re.sub(r'"until": [\d.]+', '"until": 1', ctl.own.read_text()))
    undone = settable.gateway.told(ctl.data, 'set', '--expire')['undone']
    assert {change['what'] for change in undone} == {'weight', 'boost'}
    assert weights(settable)['gold'] == 4
    assert settable.users.get(user).wait().good
    assert settable.gateway.access_log(2)[-1]['class'] == 'bronze'
    settable.gateway.told(ctl, 'set', '--undo', 'all')
    assert ctl.own.read_text() == before


@pytest.mark.link(rate_bps=4e6, rtts_ms=(5.0, 20.0))
def test_a_boost_acts_on_open_downloads(settable, ctl):
    """1:1 becomes 4:1 during downloads, and 1:1 again when it is undone; no download is interrupted."""
    gateway, (user, other) = settable.gateway, settable.of('bronze')
    loads = [settable.users.load([user, other], size=30_000_000, inflight=2, via=via) for via in ('proxy', 'connect')]

    def shares():
        time.sleep(4.0)
        before = [load.bytes() for load in loads]
        time.sleep(10.0)
        got = [load.since(was) for load, was in zip(loads, before, strict=True)]
        return {who: sum(part[who] for part in got) for who in (user, other)}
    time.sleep(WARM_UP)
    before = shares()
    gateway.told(ctl, 'set', 'boost', user.v4)
    boosted = shares()
    assert gateway.classes()['gold']['users'] == 1
    gateway.told(ctl, 'set', '--undo', 'all')
    after = shares()
    assert_shares(before, {user: 1, other: 1})
    assert_shares(boosted, {user: 4, other: 1})
    assert_shares(after, {user: 1, other: 1})
    for load in loads:
        assert not any(fetch.finished for fetch in load.all())
        load.stop(abort=True)
    gateway.rest()


@pytest.mark.parametrize('workers', [pytest.param(count, marks=pytest.mark.link(rate_bps=4e6, workers=count,
                                                                             at_once=True))
                                     for count in (1, 2)])
def test_nobody_is_refused_while_something_is_set(settable, ctl, workers):
    """Users who open connections all the time."""
    assert settable.world.workers == workers
    load = settable.users.load(settable.world.users, size=2000)
    settable.gateway.wait_until(lambda: all(got > 20_000 for got in load.bytes().values()), 'traffic')
    for words in (('weight', 'gold=8'), ('rate', '3Mbit'), ('boost', settable.of('bronze')[0].v4), ('--undo', 'all')):
        settable.gateway.told(ctl, 'set', *words)
    fetches = load.stop()
    assert len(fetches) > 200
    assert [fetch for fetch in fetches if not fetch.good] == []
    settable.gateway.rest()


def test_what_squid_refuses_is_put_back(settable, ctl):
    ctl.own.write_text(ctl.own.read_text() + 'msfrs_queue max_wait=oops\n')
    before = ctl.own.read_text()
    ctl('set', 'rate', '1Mbit', code=4)
    assert ctl.own.read_text() == before


def test_doctor_and_report(held, ctl, tmp_path):
    said = ctl.data('doctor', '--probe-name', 'localhost', code=1)['findings']
    found = {(row['check'], row['level']) for row in said}
    assert {('squid.conf', 'ok'), ('running', 'ok'), ('version', 'ok'), ('access.log', 'ok')} <= found
    out = tmp_path / 'report.tar.gz'
    assert 'mgr-msfrs.txt' in ctl.data('report', '--output', str(out), '--probe-name', 'localhost')['contents']
    ctl('report', '--output', str(out), code=3)


def test_setup_and_back(slow_link, ctl):
    """On a running Squid without scheduling: setup enables it, and undo disables it."""
    gateway = slow_link.gateway.start(on=False)
    conf = gateway.directory / 'squid.conf'
    before = conf.read_text()
    said = slow_link.gateway.told(ctl, 'setup', '--yes', '--rate', '2Mbit', '--outside', WAN, '--inside', 'lan0',
                                  '--users', '198.18.0.0/16', '--class', 'gold=4=198.18.16.0/20',
                                  '--class', 'bronze=1', '--edge', 'no', '--probe',
                                  f'http://{slow_link.world.servers[0].v4}/')
    assert f'wrote {ctl.own}' in said
    assert weights(slow_link) == {'gold': 4, 'bronze': 1}
    assert slow_link.users.get(slow_link.of('gold')[0]).wait().good
    slow_link.gateway.told(ctl, 'setup', '--undo')
    assert conf.read_text() == before and not ctl.own.exists()
    assert gateway.report() == OFF
