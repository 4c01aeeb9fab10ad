# SPDX-License-Identifier: GPL-2.0-or-later
"""Unfinished work, from the records of the load, so that it is the same figure for every arm; and the utilisation of
the link while there was any.

Unfinished work at a time is  the sizes of all requests made by then  less  the body bytes that users have received by
then  less  the missing bytes of requests that have ended without the whole body.  The first and the last term are
exact: a request is recorded with its size, its start and end time and the bytes received. The second is exact twice a
second (bytes.csv) and interpolated linearly in between. Retransmissions and headers do not count. A failed request
counts until it ends; `Measures.failed_share` gives their share.
"""
import numpy as np

from . import stats
from .stats import StatsError


def _recorded(cell):
    if not cell.profile.work:
        raise StatsError('what is under way is not recorded, or does not depend on the arm, in this workload')
    return cell.requests


def unfinished_bytes(measures):
    """Unfinished work of all users whom Squid serves, mean over the measured interval, bytes."""
    cell, requests = measures.cell, _recorded(measures.cell)

    def time_since(when):
        """Part of the interval after each of `when`, s."""
        return cell.t_stop - np.clip(when, cell.t_start, cell.t_stop)
    asked = float(np.sum(requests['size'] * time_since(requests['t_start'])))
    given_up = float(np.sum((requests['size'] - requests['bytes']) * time_since(requests['t_end'])))
    times = cell.received['t']
    received = sum((cell.received[user] for user in cell.users if user in cell.received), np.zeros(len(times)))
    left = (asked - given_up) / cell.seconds - stats.counter_mean(times, received, cell.t_start, cell.t_stop)
    if left < 0:
        raise StatsError('the records contradict each other: users received more than they had asked for')
    return left


def waiting(measures):
    """[(from, to)] of the measured interval in which some request was in progress, in order, s."""
    cell, requests = measures.cell, _recorded(measures.cell)
    starts, ends = (np.clip(requests[name], cell.t_start, cell.t_stop) for name in ('t_start', 't_end'))
    order = np.argsort(starts, kind='stable')
    starts, latest = starts[order], np.maximum.accumulate(ends[order])
    first = np.flatnonzero(np.concatenate(([True], starts[1:] > latest[:-1])))
    last = np.concatenate((first[1:] - 1, [len(starts) - 1]))
    return [(begin, end) for begin, end in zip(starts[first], latest[last]) if end > begin]


def used_while_waiting(measures):
    """Share of C that the link carried while some request was in progress. Less than 1 for any arm where users come one
    after the other: a lone request receives nothing in its first round trip."""
    times = waiting(measures)
    offered = sum(measures.offered_bps(begin, end) * (end - begin) for begin, end in times)
    if offered <= 0:
        raise StatsError('nothing was under way')
    return sum(measures.link_bytes(begin, end) for begin, end in times) * 8 / offered
