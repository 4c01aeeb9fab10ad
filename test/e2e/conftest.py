# SPDX-License-Identifier: GPL-2.0-or-later
"""What every end-to-end test may use: hosts in network namespaces, and a small site made of them.

The tests run as root. Whatever happens, SIGINT, SIGTERM and SIGHUP included, the namespaces and the processes in them
are gone at the end; what a killed earlier run left behind is removed at the start.
"""
import os
import pathlib
import signal
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from fieldtrial.netns import NetnsFabric, sweep  # noqa: E402 (needs the path above)
from site_in_namespaces import Site  # noqa: E402


def pytest_configure(config):
    if os.geteuid():
        raise pytest.UsageError('the end-to-end tests make network namespaces: run them as root')
    # The default action would end the process without running any fixture's clean-up.
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _interrupt)
    sweep()


def _interrupt(signum, _frame):
    raise KeyboardInterrupt(f'signal {signum}')


@pytest.fixture
def fabric():
    """Makes hosts and wires (see fieldtrial.netns) that live as long as the test."""
    with NetnsFabric('e2e') as made:
        yield made


@pytest.fixture
def site(fabric):
    """A client, a gateway and a server, IPv4 and IPv6, routed (see site_in_namespaces)."""
    return Site(fabric)
