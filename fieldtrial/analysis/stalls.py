# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the machine that ran a cell was fast enough for its figures to say anything about the arm.

A process that asks for a wakeup every 10 ms tells how late the machine runs what is due (stalls.csv). A stall shorter
than what is under way does not show: while Squid, the servers or the users do not run, the link carries what is in
flight, and the provider's queue. That lasts the mean round trip of the servers plus the mean delay in the queue. In the
simulator, stalls of Squid within that cost nothing, and longer ones cost the link no more than their time: with 20 % of
the time in stalls of 100 ms on average (exponential), 2.4 % of it in such beyond 214 ms, utilisation falls by 1.6 %.
"""
from functools import lru_cache

import numpy as np

from . import stats, workloads
from .stats import StatsError
from .wording import number, percent

#: Share of the time in stalls too long to be bridged from which a cell is not judged. Of what the targets leave a
#: saturated link (98.5 %, and ratios within 2 or 3 %), half of it could not turn a verdict; twice of it could.
MOST = 0.01


def lateness(measures):
    """For how long of the measured interval each wakeup was late, s. StatsError where that was not recorded."""
    cell = measures.cell
    if cell.stalls is None:
        raise StatsError('the run did not record how late the machine was')
    came, late = cell.stalls['t'], cell.stalls['late_s']
    chosen = (came > cell.start) & (came - late < cell.stop)
    if not chosen.any():
        raise StatsError('no wakeup in the measured interval')
    return np.minimum(came, cell.stop)[chosen] - np.maximum(came - late, cell.start)[chosen]


def bridged_s(measures):
    """For how long what is under way keeps the link busy, s."""
    return float(np.mean(measures.cell.rtts_ms) + measures.queue_mean_ms()) / 1e3


def too_long(measures):
    """(share of the time in stalls longer than what is under way bridges, the longest stall in s)."""
    late = lateness(measures)
    return float(late[late > bridged_s(measures)].sum()) / measures.cell.seconds, float(late.max())


@lru_cache(maxsize=1000)    # each target of a cell asks
def why_not_judged(measures):
    """Why the cell says nothing about its arm, in words; '' where it does, where the processors are the limit on
    purpose, and where nothing was recorded."""
    if workloads.of(measures.cell).processors or measures.cell.stalls is None:
        return ''
    try:
        share, longest = too_long(measures)
    except StatsError:
        return ''
    if share < MOST:
        return ''
    return (f'the host stalled for up to {number(longest * 1e3)} ms, in {percent(share)} of the time for longer than '
            f'the {bridged_s(measures) * 1e3:.0f} ms that round trips and queue bridge')


def lost_share(measures):
    """Share of the time in stalls of any length."""
    return float(lateness(measures).sum()) / measures.cell.seconds


def words(measures):
    """How the machine was, for the tables: 'processors 99.1 % busy, steal 0.0 %, ...'."""
    cell, host = measures.cell, measures.cell.host
    if cell.stalls is None or host is None:
        raise StatsError('the run did not record how busy the machine was')
    late = lateness(measures) * 1e3

    def share(column):
        return stats.increase(host['t'], host[column], cell.start, cell.stop) / cell.seconds
    told = [f'processors {percent(1 - share("idle_s"), 0)} busy', f'steal {percent(share("steal_s"))}']
    if 'pressure_s' in host:
        told.append(f'pressure {percent(share("pressure_s"), 0)}')
    p99, most = float(np.quantile(late, 0.99)), float(late.max())
    told.append(f'wakeups late by {number(p99)} ms (p99) and {number(most)} ms (most), '
                f'{percent(lost_share(measures))} of the time')
    waits = {name.removesuffix('_wait_s'): share(name) for name in host if name.endswith('_wait_s')}
    if waits:
        told.append('waited for a processor: ' + ', '.join(f'{name} {percent(each)}' for name, each in waits.items()))
    return '; '.join(told)
