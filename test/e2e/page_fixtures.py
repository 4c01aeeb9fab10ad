# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the tests of msfrs-page: a gateway with a cache manager."""
import contextlib
import pathlib

import pytest

from fieldtrial.site.netns import temporary_directory
from page_service import Manager

TOKEN = '0123456789abcdef'
HOSTILE = '<img src=x onerror="document.title=1">\'"&\u202e\u2028${x}'
#: gold's quota, which two users have used up.
QUOTA = 'bytes: 1048576, period: day, over: "bronze", ends_in: 12000, users: 3, users_over: 2, passed: 2'


@pytest.fixture
def gateway(fabric):
    return fabric.host('gw')


@pytest.fixture
def directory():
    with temporary_directory() as made:
        yield pathlib.Path(made)


@pytest.fixture
def manager(gateway):
    with contextlib.closing(Manager(gateway)) as made:
        yield made
