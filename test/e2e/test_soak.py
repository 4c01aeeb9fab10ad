# SPDX-License-Identifier: GPL-2.0-or-later
"""A short soak (test/soak): it runs, and it can detect faults."""
import fcntl
import os
import pathlib
import sys
import types

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / 'soak'))

import crowd  # noqa: E402 (needs the path above)
import memory  # noqa: E402
import neighbours  # noqa: E402
import soaking  # noqa: E402
import visits  # noqa: E402
from fieldtrial.site.disturb import EFFECTS  # noqa: E402
from our_daemon import until_ready  # noqa: E402


@pytest.mark.parametrize('party', (False, True), ids=('edge-tells', 'edge-holds'))
def test_a_short_one_finds_nothing_wrong(party):
    found = soaking.soak(soaking.Soak(seconds=30, users=60, rate_bps=4e6, load=0.6, reconfigure_s=6, falter_s=16,
                                      kill_s=12, party=party))
    assert not found.wrong
    assert found.figures['visits'] > 100 and len(found.figures['by kind']) == len(visits.SHARES)
    assert found.figures['reconfigurations'] >= 3 and found.figures['falterings of the link'] >= 1
    kills = found.figures['kills']
    assert set(kills) == {'worker', 'edge', 'share'} and min(kills.values()) >= 2


def test_a_reset_that_the_link_loses(slow_link):
    """A reset is not repeated, so that Squid waits for its read_timeout; a soak must not give up before."""
    gateway, origin = slow_link.gateway, slow_link.origin
    timeout, = [int(line.split()[1]) for line in soaking.SQUID if line.startswith('read_timeout ')]
    assert 2 * timeout < soaking.PATIENCE
    gateway.early = *soaking.SQUID, 'read_timeout 3 seconds'
    gateway.start()
    visit = slow_link.users.get(slow_link.world.users[0], 'lost', gate='down', send=0, then='reset')
    gateway.wait_until(lambda: 'lost' in origin.keys(), 'the request has arrived')
    with EFFECTS['down'](slow_link.world, None):
        origin.open_gate('down')
        gateway.wait_until(lambda: not slow_link.world.farm.run('ss', '-Htn', 'state', 'established'),
                           'the server has reset the connection')
    assert visit.wait().status == 504, visit
    gateway.rest()


@pytest.fixture
def hasty_asyncio(monkeypatch):
    """Without an explicit timeout, TLS has almost no time to end; used before slow_link, whose servers have one."""
    monkeypatch.setattr('asyncio.constants.SSL_SHUTDOWN_TIMEOUT', 0.01)


@pytest.mark.parametrize('via', ('connect', 'tls'))
def test_a_server_sends_all_before_it_ends_tls(hasty_asyncio, slow_link, via):
    slow_link.gateway.start().intercept_tls()
    visit = slow_link.users.get(slow_link.world.users[0], via=via, size=2_000_000)
    assert visit.wait().good, visit


@pytest.mark.parametrize('samples, expected', (
    ([100] * 19, None), ([100] * 100, 0), ([50] * 30 + [100] * 70, 0), ([100] * 60 + [110] * 40, 0.1),
    ([100] * 99 + [200], 0)), ids=('few', 'flat', 'warm-up', 'grown', 'a-moment'))
def test_growth(samples, expected):
    assert memory.growth(samples) == (expected if expected is None else pytest.approx(expected))


def test_only_who_lived_throughout_is_judged():
    sizes = memory.Sizes()
    sizes.sample({os.getpid(): 'lives', 0: 'gone'})
    assert sizes.growths() == {'lives': None} and sizes.last()['lives'][0] > 1000
    sizes.lives.update(lives={2: [100] * 40 + [110] * 40}, killed={3: [50] * 40, 4: [100] * 40})
    assert sizes.growths() == {'lives': pytest.approx(0.1)} and sizes.last() == {'lives': [110], 'killed': [50, 100]}


def test_who_has_just_been_killed_is_not_sampled():
    """Another thread samples while msfrs-share restarts."""
    sizes = memory.Sizes()
    sizes.sample({neighbours.Shared.pid.fget(types.SimpleNamespace(process=None)): 'msfrs-share'})
    assert not sizes.last()


def test_a_daemon_may_start_beside_a_thousand_connections():
    """Which hold the lower descriptors."""
    here, there = os.pipe()
    os.write(there, b'ready\n')
    with open(fcntl.fcntl(here, fcntl.F_DUPFD_CLOEXEC, 1024), encoding='ascii') as said:
        until_ready(types.SimpleNamespace(stdout=said), None)
    os.close(here)
    os.close(there)


def test_what_is_in_use():
    page = ''.join(f'by kid{kid} {{\nCurrent memory usage:\nPool\t Obj Size\t\nTicket   \t  520' + '\t 7' * 12
                   + f'\t {count}\t 3\nnothing\t\n}} by kid{kid}\n\n' for kid, count in ((1, 5), (2, 0)))
    none = dict.fromkeys(memory.OF_REQUESTS, 0)
    held = memory.in_use(page)
    assert held == {1: {**none, 'Ticket': 5}, 2: none}
    assert memory.more(held, {1: none, 2: none}) == {}
    many = {1: held[1], 2: {**none, 'Ticket': memory.SPARE + 3}}
    assert memory.more(many, held) == {2: {'Ticket': memory.SPARE + 3}}
    assert memory.more(many, {1: none, 2: {**none, 'Ticket': 3}}) == {}


def fetch(**how):
    return types.SimpleNamespace(**{'intact': True, 'received': 10, 'good': True, 'status': 200, **how})


@pytest.mark.parametrize('how, got, wrong', (
    ({}, {}, False), ({}, {'good': False}, True), ({}, {'intact': False}, True),
    ({'leaves': 1}, {'good': False}, False), ({'leaves': 1}, {'intact': False}, True),
    ({'cut': 10}, {'good': False}, False), ({'cut': 9}, {'good': False}, True),
    ({'cut': 9}, {'good': False, 'status': 502, 'intact': False}, False)))
def test_what_must_become_of_a_visit(how, got, wrong):
    assert bool(visits.Visit('plain', None, {}, fetch=fetch(**got), **how).wrong()) is wrong


def test_who_goes_does_not_wait_for_those_who_come():
    """Ten are due at once, as when the machine was busy; each leaves at once."""
    said, due = [], iter([0.0] * 10)

    def ask(user, how):
        said.append('comes')
        return types.SimpleNamespace(finished=False, abort=lambda reset: said.append('goes'))

    def check():
        assert len(said) < 20, 'all have come and gone'
    plan = types.SimpleNamespace(next=lambda: (next(due, 1e9), visits.Visit('leaves', None, {}, leaves=0.0)))
    with pytest.raises(AssertionError, match='come and gone'):
        crowd.Crowd(ask, plan, None).run(float('inf'), check)
    assert said == ['comes', 'goes'] * 10


def test_the_same_seed_draws_the_same_visits():
    def drawn(seed):
        plan = visits.Plan(['a', 'b'], 10, seed)
        return [plan.next() for _ in range(300)]
    assert drawn(1) == drawn(1) != drawn(2)
    times = [at for at, _ in drawn(1)]
    assert times == sorted(times) and 20 < times[-1] < 40
    assert {visit.kind for _, visit in drawn(1)} == set(visits.SHARES)
