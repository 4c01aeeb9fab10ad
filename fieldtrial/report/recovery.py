# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares in the ten seconds from ten seconds after each disturbance: of every occurrence, of all together, and what
quanta alone make of so short a time."""
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fieldtrial.load.workload import RECOVERED_S, SETTLED_S
from fieldtrial.report import stats, wording
from fieldtrial.report.stats import StatsError

#: Bytes of a quantum, the default of msfrs_quantum.
QUANTUM = 16 * 1024
#: Beginnings and lengths of a window that are tried.
STEPS = 97
#: What a share may be off, and how many occurrences say so.
LIMIT, WANTED = 0.03, 20


@dataclass(frozen=True)
class Occurrence:
    """The time after one disturbance: `ratios` and `errors` of stats.per_user_ratios, and `bytes` {class: received}.
    Where a class received nothing there are no ratios, and every error is infinite."""

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
        """In words."""
        if not self.ratios:
            return 'a class received nothing'
        return f'{wording.ratios(self.ratios)} ({wording.signed_percent(self.worst, 2)})'


@lru_cache(maxsize=None)
def granularity(rates, total, quantum=QUANTUM):
    """What the ratios are off in a window of about `total` bytes, when whole quanta of `quantum` bytes are served one
    after the other, each to the class that has least of its share: an order without fault. (mean, greatest, share of
    the windows beyond LIMIT) of the error of the class that is farthest off. `rates`: of each class weight times users,
    a tuple. Over windows that begin at any moment of such an order, and whose length is `total` to within half of the
    round in which every class has its turns: how the two meet is chance."""
    shares = np.array(rates, float) / sum(rates)
    around = quantum / shares.min()
    served = np.zeros((int(np.ceil((total + 2 * around) / quantum)) + 2, len(rates)))
    for number in range(1, len(served)):
        served[number] = served[number - 1]
        served[number, np.argmin(served[number] / shares)] += quantum
    times = np.arange(len(served)) * float(quantum)
    begin, length = np.meshgrid(np.linspace(0, around, STEPS), total + np.linspace(-around / 2, around / 2, STEPS))
    got = np.array([np.interp(begin + length, times, column) - np.interp(begin, times, column)
                    for column in served.T])
    least = int(np.argmin(rates))
    if total <= around or (got[least] <= 0).any():
        raise StatsError('the window is so short that a class may have nothing in it')
    errors = np.abs(got / shares[:, None, None] / (got[least] / shares[least]) - 1).max(axis=0)
    return float(errors.mean()), float(errors.max()), float((errors > LIMIT).mean())


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
    """(ratios, errors, how many) of all occurrences of a disturbance as if they were one time. Raises StatsError."""
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
    """In words, what quanta alone make of so long a time on a full link."""
    rates = tuple(weight * cell.users_of(name) for name, weight in cell.weights.items() if cell.users_of(name))
    found, _ = wording.attempt(granularity, rates, cell.rate_bps / 8 * (RECOVERED_S - SETTLED_S))
    if found is None:
        return 'too few quanta for any order to be right'
    mean, most, beyond = found
    return (f'quanta alone: {wording.percent(mean)} on average, up to {wording.percent(most)}, beyond '
            f'{wording.percent(LIMIT, 0)} in {wording.percent(beyond, 0)} of such times')


def counted(fine, count):
    """In words, how many were right; nothing for a single one."""
    return f'{fine} of {count} right, farthest ' if count > 1 else ''
