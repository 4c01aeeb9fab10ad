# SPDX-License-Identifier: GPL-2.0-or-later
"""The workloads by name. One workload is one file with one class; to add one, write the file and name it here."""
import importlib

_MODULES = {'https-backlogged': 'https_backlogged', 'https-pages': 'https_pages', 'https-open': 'https_open',
            'disturbed': 'disturbed', 'few': 'few', 'bypass': 'bypass', 'backlogged': 'backlogged',
            'unequal': 'unequal', 'phases': 'phases', 'pages': 'pages', 'open': 'open', 'cbr': 'cbr',
            'excess': 'excess', 'url-list': 'url_list'}


def names():
    """The names of all workloads, in the order in which they are shown."""
    return list(_MODULES)


def get(name):
    """The class of the workload `name`. Raises KeyError."""
    return importlib.import_module(f'.{_MODULES[name]}', __name__).WORKLOAD
