# SPDX-License-Identifier: GPL-2.0-or-later
"""Applies a workload's disturbances to a world, each at its time, and undoes them in any case."""
import contextlib
import signal

from .background import Background

#: Before all other rules of the ISP except the one for its own addresses.
BLACKHOLE_PREF = 10


@contextlib.contextmanager
def _slower(world, share):
    world.bottleneck.set_rate(share * world.rate_bps)
    try:
        yield
    finally:
        world.bottleneck.set_rate(world.rate_bps)


@contextlib.contextmanager
def _down(world, _value):
    """As behind a modem that has lost its line: no interface goes down, no packet passes. Packets in the ISP's queue
    are still delivered."""
    rule = ['rule', 'add', 'pref', BLACKHOLE_PREF, 'blackhole']
    with contextlib.ExitStack() as undo:
        for family in ('-4', '-6'):
            world.isp.run('ip', family, *rule)
            undo.callback(world.isp.run, 'ip', family, 'rule', 'del', 'pref', BLACKHOLE_PREF)
        yield


@contextlib.contextmanager
def _stopped(daemons):
    """Connections stay open and the kernel acknowledges data, but no process answers."""
    with contextlib.ExitStack() as undo:
        for daemon in daemons:
            undo.callback(daemon.signal_group, signal.SIGCONT)
            daemon.signal_group(signal.SIGSTOP)
        yield


#: Disturbances made here; the load or a stream makes the others.
EFFECTS = {'rate': _slower, 'down': _down, 'stall': lambda world, _value: _stopped(world.stalling),
           'store': lambda world, _value: _stopped([world.store] if world.store else [])}


class Disturber(Background):
    """Applies the disturbances within a block; their times count from `t0`."""

    def __init__(self, world, disturbances, t0):
        super().__init__(t0)
        self._world = world
        self._disturbances = [each for each in disturbances if each.kind in EFFECTS]

    def _work(self):
        for each in self._disturbances:
            if self._until(each.t_start):
                return
            with EFFECTS[each.kind](self._world, each.value):
                self._until(each.t_end)
