# SPDX-License-Identifier: GPL-2.0-or-later
"""Carries out the visits of a plan in time, and records their results."""
import collections
import heapq
import itertools
import time

#: Most visits under way. A plan that offers more than the link carries must not fill memory: further visits are
#: skipped and counted.
MOST = 400
#: Failed visits that are described; more are only counted.
KEPT = 20


class Crowd:
    """ask(user, how): starts the request of a visit. plan: a Plan. excuse(fetch): why a failed visit may fail, or ''.
    """

    def __init__(self, ask, plan, excuse):
        self._ask, self._plan, self._excuse = ask, plan, excuse
        self._under_way = []
        self._later = []                #: heap of (time, number, function to call)
        self._numbers = itertools.count()
        self.ended = collections.Counter()   #: by kind
        self.excused = collections.defaultdict(list)    #: visits by excuse
        self.turned_away = 0
        self.wrong = 0
        self.words = []                 #: descriptions of the first failed ones
        self.received = collections.Counter()           #: bytes of bodies by path

    def run(self, until, each=lambda: None):
        """Runs until the monotonic time `until`. `each` is called some ten times a second."""
        began = time.monotonic()
        at, visit = self._plan.next()
        while (now := time.monotonic()) < until:
            if began + at <= now:       # one at a time, so that departures do not wait for overdue arrivals
                self._come(visit, now)
                at, visit = self._plan.next()
            self._call(now)
            self._see_off()
            each()
            time.sleep(max(0.0, min(0.1, began + at - time.monotonic())))

    def go(self, patience):
        """Starts no more visits; waits for those under way. Returns those that did not end within `patience` s."""
        end = time.monotonic() + patience
        while (self._under_way or self._later) and (now := time.monotonic()) < end:
            self._call(now)
            self._see_off()
            time.sleep(0.05)
        return self._under_way

    def _come(self, visit, now):
        if len(self._under_way) >= MOST:
            self.turned_away += 1
            return
        visit.fetch = self._ask(visit.user, visit.how)
        self._under_way.append(visit)
        if visit.leaves is not None:
            self._after(now + visit.leaves, lambda: visit.fetch.finished or visit.fetch.abort(visit.reset))
        if visit.resumes is not None:
            self._after(now + visit.resumes, visit.fetch.go_on)

    def _after(self, when, what):
        heapq.heappush(self._later, (when, next(self._numbers), what))

    def _call(self, now):
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()

    def _see_off(self):
        gone = [visit for visit in self._under_way if visit.fetch.finished]
        if not gone:
            return
        self._under_way = [visit for visit in self._under_way if not visit.fetch.finished]
        for visit in gone:
            self.ended[visit.kind] += 1
            self.received[visit.how['via']] += visit.fetch.received
            why = visit.wrong()
            excuse = why and self._excuse(visit.fetch)
            if excuse:
                self.excused[excuse].append(visit)
            elif why:
                self.blame(visit, why)

    def blame(self, visit, why):
        self.wrong += 1
        if len(self.words) < KEPT:
            self.words.append(f'{visit.kind}, {visit.user.name}, {visit.how["via"]}: {why}')
