# SPDX-License-Identifier: GPL-2.0-or-later
"""Does to a world what a workload's disturbances say, each in its time, and undoes it, whatever happens."""
import contextlib
import signal
import threading
import time

from ..base.errors import TrialError

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
def _stalled(world, _value):
    """Connections stay, and the kernel acknowledges what arrives; nobody answers."""
    with contextlib.ExitStack() as undo:
        for daemon in world.stalling:
            undo.callback(daemon.signal_group, signal.SIGCONT)
            daemon.signal_group(signal.SIGSTOP)
        yield


#: What is done here; the rest is the load's, or that of a stream beside it.
EFFECTS = {'rate': _slower, 'down': _down, 'stall': _stalled}


class Disturber:
    """A thread that does it, within a block. Times of the disturbances count from `t0`, on CLOCK_MONOTONIC."""

    def __init__(self, world, disturbances, t0):
        self._world, self._t0 = world, t0
        self._disturbances = [each for each in disturbances if each.kind in EFFECTS]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name='Disturber', daemon=True)
        self.failure = None     #: the TrialError that ended it early

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()     # what it has done must be undone before anybody goes on

    def check(self):
        """Raises TrialError if something could not be done."""
        if self.failure:
            raise self.failure

    def _run(self):
        try:
            for each in self._disturbances:
                if self._wait(each.t_start):
                    return
                with EFFECTS[each.kind](self._world, each.value):
                    self._wait(each.t_end)
        except TrialError as error:
            self.failure = error

    def _wait(self, when):
        return self._over.wait(max(0.0, self._t0 + when - time.monotonic()))
