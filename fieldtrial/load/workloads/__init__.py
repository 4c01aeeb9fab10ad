# SPDX-License-Identifier: GPL-2.0-or-later
"""The workloads by name. One workload is one file with one class; to add one, write the file, name it here, and say
in analysis/workloads.py what can be read off it."""
import importlib

from ...base.errors import TrialError

_NAMES = ('https-backlogged', 'https-pages', 'https-open', 'disturbed', 'few', 'bypass', 'backlogged', 'unequal',
          'phases', 'pages', 'open', 'cbr', 'excess', 'url-list')


def names():
    """The names of all workloads, in the order in which they are shown."""
    return list(_NAMES)


def get(name):
    """The class of the workload `name`. Raises TrialError."""
    if name not in _NAMES:
        raise TrialError(f'workload {name!r}: there are {", ".join(_NAMES)}')
    return importlib.import_module('.' + name.replace('-', '_'), __name__).WORKLOAD
