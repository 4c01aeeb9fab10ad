# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the machine that ran a cell was fast enough for its figures to reflect the arm.

README.md ("A busy machine") has the reasons. With stalls of 0.56 and 0.59 s in two seconds, U was 0.29 and 0.35, W+
went from 8 to 33, and gold had 0.9 to 1.4 times the bytes of bronze, instead of 4, for ten seconds. So such seconds and
SETTLED_S after each of them are *disturbed*, as after a disturbance of the link.
"""
from functools import lru_cache

import numpy as np

from ..base.disturbance import SETTLED_S
from . import stats
from .stats import StatsError
from .wording import number, percent

#: Stalls below this are the usual time slices of other tasks, s: three or four slices of Linux.
USUAL_S = 0.01
#: A cell is not judged if at least this share of its measured time is disturbed. Shares were off by 45 to 75 % in
#: such time, so this share moves a ratio by the 2 % that the tightest target allows. At half of it, one second in five
#: minutes would count; at twice of it, shares could be wrong by 4 %.
MOST = 0.05


def lateness(measures):
    """Lateness of each wakeup within the measured interval, s. StatsError if it was not recorded."""
    cell = measures.cell
    if cell.stalls is None:
        raise StatsError('the run did not record how late the machine was')
    came, late = cell.stalls['t'], cell.stalls['late_s']
    chosen = (came > cell.t_start) & (came - late < cell.t_stop)
    if not chosen.any():
        raise StatsError('no wakeup in the measured interval')
    return np.minimum(came, cell.t_stop)[chosen] - np.maximum(came - late, cell.t_start)[chosen]


def bridged_s(measures):
    """How long the bytes in flight keep the link busy, s."""
    return float(np.mean(measures.cell.rtts_ms) + measures.queue_mean_ms()) / 1e3


def by_second(measures):
    """(start of each second, stall time within it in s), from SETTLED_S before the measured interval to its end."""
    cell = measures.cell
    ends, long = cell.stalls['t'], cell.stalls['late_s']
    ends, long = ends[long >= USUAL_S], long[long >= USUAL_S]
    times = np.arange(cell.t_start - SETTLED_S, cell.t_stop, 1.0)
    if not len(long):
        return times, np.zeros(len(times))
    edges = np.column_stack((ends - long, ends)).ravel()
    so_far = np.column_stack((np.cumsum(long) - long, np.cumsum(long))).ravel()
    return times, np.interp(times + 1, edges, so_far) - np.interp(times, edges, so_far)


def disturbed(measures):
    """(share of the measured time that stalls disturbed, the stalls of the worst second in s)."""
    cell = measures.cell
    times, stalled = by_second(measures)
    wrong = np.zeros(len(times), bool)
    for second in np.flatnonzero(stalled > bridged_s(measures)):
        wrong[second:second + 1 + int(SETTLED_S)] = True
    return float(wrong[times >= cell.t_start].mean()), float(stalled.max())


@lru_cache(maxsize=1000)    # called for each target of a cell
def why_not_judged(measures):
    """The reason why the cell's figures do not reflect its arm, as text; '' if they do, if the processors are the limit
    on purpose, or if nothing was recorded."""
    if measures.cell.profile.processors or measures.cell.stalls is None:
        return ''
    try:
        share, worst = disturbed(measures)
    except StatsError:
        return ''
    if share < MOST:
        return ''
    return (f'the host stalled for up to {worst * 1e3:.0f} ms in a second; {percent(share, 0)} of the time was in a '
            f'second with more than the {bridged_s(measures) * 1e3:.0f} ms that round trips and queue bridge, or '
            f'within {SETTLED_S:g} s after one')


def lost_share(measures):
    """Share of the time in stalls of any length."""
    return float(lateness(measures).sum()) / measures.cell.seconds


def busy_and_lost(measures):
    """(share of time in which the machine's processors were busy, lost_share). StatsError if it was not recorded."""
    return measures.machine_busy(), lost_share(measures)


def in_brief(busy, lost):
    return f'processors {percent(busy, 0)} busy, stalled {percent(lost)} of the time'


def words(measures):
    """State of the machine, for the tables: 'processors 99.1 % busy, steal 0.0 %, ...'."""
    cell, host = measures.cell, measures.cell.host
    if cell.stalls is None or host is None:
        raise StatsError('the run did not record how busy the machine was')
    late = lateness(measures) * 1e3

    def share(column):
        return stats.increase(host['t'], host[column], cell.t_start, cell.t_stop) / cell.seconds
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
