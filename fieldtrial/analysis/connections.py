# SPDX-License-Identifier: GPL-2.0-or-later
"""How many connections of each kind work, and how long one takes, from connections.csv of the workload `internet`."""
import numpy as np

from .stats import StatsError


def _recorded(measures):
    if measures.cell.connections is None:
        raise StatsError('this workload has no connections of other kinds')
    return measures.cell.connections


def share(measures):
    """Share of all connections that work."""
    return float(_recorded(measures)['works'].mean())


def kinds(measured):
    """Names of the kinds, in the order of their first connections."""
    return list(dict.fromkeys(str(kind) for each in measured
                              for kind in _recorded(each)['kind'][np.argsort(_recorded(each)['t_start'])]))


def of_kind(measured, kind):
    """(connections that work, all connections, median time in s of those that work or None), over several seeds."""
    works, seconds = (np.concatenate([_recorded(each)[column][_recorded(each)['kind'] == kind] for each in measured])
                      for column in ('works', 'seconds'))
    took = seconds[works == 1]
    return len(took), len(works), float(np.median(took)) if len(took) else None
