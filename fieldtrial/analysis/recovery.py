# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares from 10 s to 20 s after each disturbance: of every occurrence and of all together; and the error that the
granularity of quanta alone causes over so short a time."""
import heapq
import math
import random
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..base.disturbance import RECOVERED_S, SETTLED_S
from . import stats, wording
from .stats import StatsError

#: Bytes of a quantum, the default of msfrs_quantum.
QUANTUM = 16 * 1024
#: Number of windows evaluated, and the span of their starts in multiples of a window's length.
STARTS, SPAN = 2000, 20
#: Allowed error of a share, and the number of occurrences required.
LIMIT, WANTED = 0.03, 20


@dataclass(frozen=True)
class Occurrence:
    """The time after one disturbance: `ratios` and `errors` of stats.per_user_ratios, and `bytes` {class: received}.
    If a class received nothing, there are no ratios, and every error is infinite."""

    ratios: dict
    errors: dict
    bytes: dict

    @property
    def worst(self):
        """The error farthest from 0, with its sign."""
        return stats.worst(self.errors)

    @property
    def fine(self):
        """Whether the shares were right."""
        return abs(self.worst) <= LIMIT

    @property
    def text(self):
        if not self.ratios:
            return 'a class received nothing'
        return f'{wording.ratios(self.ratios)} ({wording.signed_percent(self.worst, 2)})'


@lru_cache(maxsize=None)
def granularity(rates, total, places=1, quantum=QUANTUM):
    """Error of the ratios in a window of `total` bytes under an ideal order, because service comes in quanta and not in
    bytes: (mean, greatest, share of the windows beyond LIMIT) of the error of the class farthest off.

    `rates`: a tuple with weight times users of each class. `places` quanta are in flight at once and progress equally
    fast; the next one goes to the class that has been granted least relative to its share, counting quanta in flight.
    Quanta are of 0 to `quantum` bytes, since objects end. The windows start throughout SPAN of their lengths. Raises
    StatsError if a class may receive nothing in a window.
    """
    shares = np.array(rates, float) / sum(rates)
    times, got = _served(shares, quantum, places, (SPAN + 1) * total)
    begin = np.linspace(times[-1] - (SPAN + 1) * total, times[-1] - total, STARTS)
    brought = np.array([np.interp(begin + total, times, each) - np.interp(begin, times, each) for each in got])
    if (brought <= 0).any():
        raise StatsError('the window is so short that a class may have nothing in it')
    normal = brought / shares[:, None]
    errors = np.abs(normal / normal[int(np.argmin(rates))] - 1).max(axis=0)
    return float(errors.mean()), float(errors.max()), float((errors > LIMIT).mean())


def _served(shares, quantum, places, total):
    """(times, bytes by class) of such an order over at least `total` bytes; time is the bytes of all classes."""
    chance = random.Random(1)
    given, under_way = [0.0] * len(shares), [0] * len(shares)
    running, progress = [], 0.0     # (progress at which it ends, class); progress: bytes per slot so far
    times, rows, got = [0.0], [[0.0] * len(shares)], [0.0] * len(shares)
    while times[-1] < total or len(running) < places:
        if len(running) == places:
            end, done = heapq.heappop(running)
            got = [amount + count * (end - progress) for amount, count in zip(got, under_way)]
            progress, under_way[done] = end, under_way[done] - 1
            times.append(sum(got))
            rows.append(got)
        chosen = min(range(len(shares)), key=lambda number: given[number] / shares[number])
        size = quantum * (1.0 - chance.random())
        given[chosen] += size
        under_way[chosen] += 1
        heapq.heappush(running, (progress + size, chosen))
    return np.array(times), np.array(rows).T


def occurrences(measures):
    """{disturbance: [Occurrence]}, in order of time."""
    found = {}
    for phase in measures.cell.phases:
        if phase.get('after'):
            window = phase['t_start'] + SETTLED_S, phase['t_start'] + RECOVERED_S
            received = measures.class_bytes(*window)
            figures, _ = wording.attempt(measures.ratios, *window)
            found.setdefault(phase['after'], []).append(
                Occurrence(*(figures or ({}, dict.fromkeys(received, math.inf))), received))
    return found


def together(measures, disturbance):
    """(ratios, errors, count) of all occurrences of a disturbance, taken as one interval. Raises StatsError."""
    found = _of(measures, disturbance)
    received = {name: sum(each.bytes[name] for each in found) for name in measures.cell.weights}
    users = {name: measures.cell.users_of(name) for name in received}
    return *stats.per_user_ratios({name: amount for name, amount in received.items() if users[name]}, users,
                                  measures.cell.weights), len(found)


def _of(measures, disturbance):
    found = occurrences(measures).get(disturbance)
    if not found:
        raise StatsError('the run had no such disturbance')
    return found


def farthest(measures, disturbance):
    """(the Occurrence that is farthest off, how many were right, how many there were). Raises StatsError."""
    found = _of(measures, disturbance)
    return max(found, key=lambda each: abs(each.worst)), sum(each.fine for each in found), len(found)


def alone(cell):
    """As text, the error that quanta alone cause over this time on a full link, with the cell's number in flight."""
    rates = tuple(weight * cell.users_of(name) for name, weight in cell.weights.items() if cell.users_of(name))
    places = _places(cell)
    found, _ = wording.attempt(granularity, rates, cell.rate_bps / 8 * (RECOVERED_S - SETTLED_S), places)
    if found is None:
        return 'too few quanta for any order to be right'
    mean, most, beyond = found
    return (f'quanta alone, {places} under way: {wording.percent(mean)} on average, up to {wording.percent(most)}, '
            f'beyond {wording.percent(LIMIT, 0)} in {wording.percent(beyond, 0)} of such times')


def _places(cell):
    """Mean number of responses in service; 1 if it was not recorded."""
    if cell.window is None:
        return 1
    chosen = (cell.window['t'] >= cell.t_start) & (cell.window['t'] <= cell.t_stop)
    return max(1, round(float(cell.window['w'][chosen].mean()))) if chosen.any() else 1


def undisturbed(measures):
    """Mean of the farthest error over consecutive ten-second windows of the measured interval, regardless of
    disturbances in them: the error of that window length without a disturbance. Raises StatsError with fewer than four
    windows, if users were not always backlogged, or if a class received nothing in a window."""
    length, cell = RECOVERED_S - SETTLED_S, measures.cell
    begins = np.arange(cell.t_start, cell.t_stop - length + 1e-9, length)
    if not measures.saturated() or cell.workload == 'disturbed' or len(begins) < 4:
        raise StatsError('no four times of ten seconds that are alike')
    return float(np.mean([abs(stats.worst(measures.ratios(begin, begin + length)[1])) for begin in begins]))


def counted(fine, count):
    """As text, how many were within the limit; empty for a single one."""
    return f'{fine} of {count} right, farthest ' if count > 1 else ''
