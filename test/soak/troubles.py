# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens to a gateway under load, again and again: reconfigurations, a slower link, a dead one."""
import itertools
import time

from fieldtrial.site.background import Background
from fieldtrial.site.disturb import EFFECTS

#: Lines of the configurations that take turns; each one but the first differs from the one before in another part.
CONFIGURATIONS = ((), ('msfrs_quantum 32 KB',), ('msfrs_arbiter msfq',), ('msfrs_arbiter drr', 'msfrs_quantum 8 KB'),
                  ('msfrs_arbiter msf favour=0', 'msfrs_window reserve=0%'), ('msfrs_admission droptail',))
#: (kind, seconds that it lasts, share of the rate) of what the link does.
LINK = (('rate', 20.0, 0.5), ('down', 8.0, None))


class Reconfigurations(Background):
    """One every `period` seconds. done: how many there were."""

    def __init__(self, gateway, t0, period):
        super().__init__(t0)
        self._gateway, self._period = gateway, period
        self.done = 0

    def _work(self):
        for number, lines in enumerate(itertools.cycle((*CONFIGURATIONS[1:], CONFIGURATIONS[0])), start=1):
            if self._until(number * self._period):
                return
            self._gateway.reconfigure(*lines)
            self.done += 1


class Link(Background):
    """One of LINK every `period` seconds, in the middle between two."""

    def __init__(self, world, t0, period):
        super().__init__(t0)
        self._world, self._period = world, period
        self.done = 0

    def _work(self):
        for number, (kind, lasts, value) in enumerate(itertools.cycle(LINK)):
            if self._until((number + 0.5) * self._period):
                return
            with EFFECTS[kind](self._world, value):
                self._until(time.monotonic() - self._t0 + lasts)
            self.done += 1
