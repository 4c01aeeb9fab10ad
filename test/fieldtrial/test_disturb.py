# SPDX-License-Identifier: GPL-2.0-or-later
"""Disturbances of a world, and their end, in a world that only records its calls."""
import signal
import threading
import time
import types

import pytest

from fieldtrial.base.disturbance import Disturbance
from fieldtrial.base.errors import TrialError
from fieldtrial.load import stream, workloads
from fieldtrial.site import bottleneck, disturb
from fieldtrial.site.addresses import SINK4


class World:
    """Records its calls."""

    rate_bps = 2e6

    def __init__(self, fail=None):
        self.done, self._fail = [], fail
        self.bottleneck = types.SimpleNamespace(set_rate=lambda rate: self._do('rate', rate))
        self.isp = types.SimpleNamespace(run=lambda *words: self._do(*words))
        self.stalling = [types.SimpleNamespace(signal_group=lambda signum, name=name: self._do(name, signum))
                         for name in ('near', 'far')]
        self.store = types.SimpleNamespace(signal_group=lambda signum: self._do('store', signum))

    def _do(self, *words):
        self.done.append(words)
        if words == self._fail:
            raise TrialError('no')


UNDONE = {
    'rate': (0.5, [('rate', 1e6)], [('rate', 2e6)]),
    'down': (0.0, [('ip', '-4', 'rule', 'add', 'pref', 10, 'blackhole'),
                   ('ip', '-6', 'rule', 'add', 'pref', 10, 'blackhole')],
             [('ip', '-6', 'rule', 'del', 'pref', 10), ('ip', '-4', 'rule', 'del', 'pref', 10)]),
    'stall': (0.0, [('near', signal.SIGSTOP), ('far', signal.SIGSTOP)],
              [('far', signal.SIGCONT), ('near', signal.SIGCONT)]),
    'store': (0.0, [('store', signal.SIGSTOP)], [('store', signal.SIGCONT)]),
}


def until(ready):
    end = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < end
        threading.Event().wait(0.002)


@pytest.mark.parametrize('kind', UNDONE)
def test_done_in_its_time_and_undone(kind):
    value, done, undone = UNDONE[kind]
    world = World()
    with disturb.Disturber(world, [Disturbance(kind, '', 0.0, 0.05, value)], time.monotonic()) as disturber:
        until(lambda: len(world.done) == len(done) + len(undone))
        disturber.check()
    assert world.done == done + undone


@pytest.mark.parametrize('kind', UNDONE)
def test_undone_when_the_cell_ends_before_its_time(kind):
    value, done, undone = UNDONE[kind]
    world = World()
    with disturb.Disturber(world, [Disturbance(kind, '', 0.0, 3600.0, value)], time.monotonic()):
        until(lambda: len(world.done) == len(done))
    assert world.done == done + undone


def test_what_was_half_done_is_undone_and_said():
    value, done, _ = UNDONE['down']
    world = World(fail=done[1])
    with disturb.Disturber(world, [Disturbance('down', '', 0.0, 3600.0, value)], time.monotonic()) as disturber:
        until(lambda: disturber.failure)
        with pytest.raises(TrialError, match='^Disturber: no$'):
            disturber.check()
    assert world.done == done + [('ip', '-4', 'rule', 'del', 'pref', 10)]


def test_nothing_before_its_time_and_nothing_of_what_the_load_does():
    world = World()
    disturbances = [Disturbance('tunnels', '', 0.0, 3600.0, 200), Disturbance('rate', '', 3600.0, 3700.0, 0.5)]
    with disturb.Disturber(world, disturbances, time.monotonic()):
        pass
    assert world.done == []


def test_the_rate_of_the_edge_cannot_be_changed():
    with pytest.raises(TrialError, match='^the rate of --isp edge cannot be changed under way$'):
        bottleneck.Edge.set_rate(None, 1e6)


def test_bursts_are_those_of_one_stream(tmp_path, monkeypatch):
    """However many: a separate sender for each would be as many waiting processes."""
    told = []
    monkeypatch.setattr(stream, 'Daemon', lambda _host, argv, *_, **__: told.append(argv))
    world = types.SimpleNamespace(directory=tmp_path, users_host=None, farm=None)
    workload = workloads.get('disturbed')({'repeat': 2, 'only': 'cbr'})
    list(stream.daemons(world, workload.beside(2e6, 400.0), 5.0))
    receiver, sender = told
    assert sender[3:] == ['send', SINK4, '9', '5.000000', '1000000', '1000', '50-70,95-115']
    # The tables of a cell have one axis.
    assert receiver[3:] == ['recv', SINK4, '9', '5.000000', f'{tmp_path}/cbr1-received.csv']
