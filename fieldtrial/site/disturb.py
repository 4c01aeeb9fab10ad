# SPDX-License-Identifier: GPL-2.0-or-later
"""Does to a world what a workload's disturbances say, each in its time, and undoes it, whatever happens."""
import contextlib
import signal

from .background import Background

#: Before all other rules of the ISP's but the one for its own addresses.
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
    """As behind a modem that has lost its line: no interface says so, nothing comes through. What waits in the ISP's
    queue still comes."""
    rule = ['rule', 'add', 'pref', BLACKHOLE_PREF, 'blackhole']
    with contextlib.ExitStack() as undo:
        for family in ('-4', '-6'):
            world.isp.run('ip', family, *rule)
            undo.callback(world.isp.run, 'ip', family, 'rule', 'del', 'pref', BLACKHOLE_PREF)
        yield


@contextlib.contextmanager
def _stopped(daemons):
    """Connections stay, and the kernel acknowledges what arrives; nobody answers."""
    with contextlib.ExitStack() as undo:
        for daemon in daemons:
            undo.callback(daemon.signal_group, signal.SIGCONT)
            daemon.signal_group(signal.SIGSTOP)
        yield


#: What is done here; the rest is the load's, or that of a stream beside it.
EFFECTS = {'rate': _slower, 'down': _down, 'stall': lambda world, _value: _stopped(world.stalling),
           'store': lambda world, _value: _stopped([world.store] if world.store else [])}


class Disturber(Background):
    """Does it within a block; times of the disturbances count from `t0`."""

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
