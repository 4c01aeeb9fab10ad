# SPDX-License-Identifier: GPL-2.0-or-later
"""Periodic disturbances of a gateway under load: reconfigurations, a slower link, a dead one, kill -9 of a worker and
of the daemons beside Squid."""
import collections
import itertools
import time

from fieldtrial.site.background import Background
from fieldtrial.site.disturb import EFFECTS

#: Lines of alternating configurations; each but the first differs from its predecessor in another part.
CONFIGURATIONS = ((), ('msfrs_quantum 32 KB',), ('msfrs_arbiter msfq',), ('msfrs_arbiter drr', 'msfrs_quantum 8 KB'),
                  ('msfrs_arbiter msf favour=0', 'msfrs_window reserve=0%'), ('msfrs_admission droptail',))
#: (kind, duration in seconds, fraction of the rate) of the link's disturbances.
LINK = (('rate', 20.0, 0.5), ('down', 8.0, None))
#: s. Squid's master stops restarting a worker that exited five times within ten seconds of its start.
LEAST_BETWEEN_KILLS = 12.0


class Trouble(Background):
    """Keeps the exception that ended it early: a soak looks for such failures."""

    def _run(self):
        try:
            self._work()
        except Exception as failure:    # an assertion, too
            self.failure = failure


class Reconfigurations(Trouble):
    """One every `period` seconds. alone: a lock that is held meanwhile. done: number of reconfigurations."""

    def __init__(self, gateway, t0, period, alone):
        super().__init__(t0)
        self._gateway, self._period, self._alone = gateway, period, alone
        self.done = 0

    def _work(self):
        for number, lines in enumerate(itertools.cycle((*CONFIGURATIONS[1:], CONFIGURATIONS[0])), start=1):
            if self._until(number * self._period):
                return
            with self._alone:
                self._gateway.reconfigure(*lines)
            self.done += 1


class Link(Trouble):
    """One of LINK every `period` seconds, in the middle of the period."""

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


class Sampling(Trouble):
    """Calls `sample` every `period` seconds, however busy the crowd is."""

    def __init__(self, t0, period, sample):
        super().__init__(t0)
        self._period, self._sample = period, sample

    def _work(self):
        for number in itertools.count():
            if self._until(number * self._period):
                return
            self._sample()


class Killings(Trouble):
    """Each of `victims` once every `period` seconds, in turn. victims: {name: function that kills it, and returns when
    its successor runs}. alone: a lock that is held meanwhile."""

    def __init__(self, t0, period, victims, alone):
        super().__init__(t0)
        if period < LEAST_BETWEEN_KILLS:
            raise ValueError(f'{period:g} s between kills: at least {LEAST_BETWEEN_KILLS:g} s')
        self._period, self._victims, self._alone = period, victims, alone
        self.times = collections.defaultdict(list)      #: {name: [(begin, end)] on CLOCK_MONOTONIC}

    def _work(self):
        for number, (name, kill) in enumerate(itertools.cycle(self._victims.items()), start=1):
            if self._until(number * self._period / len(self._victims)):
                return
            with self._alone:
                begun = time.monotonic()
                self.times[name].append((begun, float('inf')))
                kill()
                self.times[name][-1] = begun, time.monotonic()

    def during(self, name, since, until):
        """Whether a process of that name may have been killed in that time."""
        return any(begun <= until and since <= end for begun, end in list(self.times[name]))

    def longest(self):
        """{name: greatest time until its successor ran, s}"""
        return {name: round(max(end - begun for begun, end in times), 2) for name, times in self.times.items()}
