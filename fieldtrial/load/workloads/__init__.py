# SPDX-License-Identifier: GPL-2.0-or-later
"""The workloads by name. To add one, write a file with its class, name it here, and say in analysis/workloads.py what
can be read off it."""
from ...base.errors import TrialError
from . import (backlogged, bypass, call, cbr, disturbed, excess, few, open as open_arrivals, pages, phases, quic, scale,
               unequal, url_list, video)

_ALL = {each.name: each for each in (
    backlogged.HttpsBacklogged, pages.HttpsPages, open_arrivals.HttpsOpen, disturbed.Disturbed, few.Few, video.Video,
    call.Call, bypass.Bypass, quic.QuicBacklogged, quic.QuicPages, scale.Scale, backlogged.Backlogged, unequal.Unequal,
    phases.Phases, pages.Pages, open_arrivals.Open, cbr.Cbr, excess.Excess, url_list.UrlList)}


def names():
    """The names of all workloads, in the order in which they are shown."""
    return list(_ALL)


def get(name):
    """The class of the workload `name`. Raises TrialError."""
    if name not in _ALL:
        raise TrialError(f'workload {name!r}: there are {", ".join(_ALL)}')
    return _ALL[name]
