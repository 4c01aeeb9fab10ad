# SPDX-License-Identifier: GPL-2.0-or-later
"""The workloads by name. To add one, write a file with its class here: its profile has its title, the properties of its
figures and its position in reports."""
import importlib
import pkgutil

from ...base.errors import TrialError
from ..traffic.workload import Workload

_MODULES = [importlib.import_module(f'{__name__}.{module.name}') for module in pkgutil.iter_modules(__path__)]
_ALL = {each.name: each for each in sorted(
    (value for module in _MODULES for value in vars(module).values()
     if isinstance(value, type) and issubclass(value, Workload) and value.__module__ == module.__name__),
    key=lambda workload: workload.profile.rank)}


def names():
    """The names of all workloads, in display order."""
    return list(_ALL)


def get(name):
    """The class of the workload `name`. Raises TrialError."""
    if name not in _ALL:
        raise TrialError(f'workload {name!r}: there are {", ".join(_ALL)}')
    return _ALL[name]
