# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the tests of msfrs-share, in addition to those of test/e2e."""
import contextlib
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gateways import Gateway, Store  # noqa: E402 (needs the path above)


@pytest.fixture
def host(fabric):
    """A separate host: gateways and store communicate over its loopback."""
    return fabric.host('link')


@pytest.fixture
def stack():
    with contextlib.ExitStack() as made:
        yield made


@pytest.fixture
def store(host, tmp_path, stack):
    """A running Redis or Valkey."""
    return stack.enter_context(Store(host, tmp_path))


@pytest.fixture
def make(host, open_path, stack):
    """Makes a gateway: a segment with a live worker, and an msfrs-share that is not yet started. It removes its socket
    as its unprivileged user."""

    def gateway(name, *others, **how):
        return stack.enter_context(Gateway(host, open_path, name, others, **how))
    return gateway


@pytest.fixture
def pair(store, make):
    """Two running gateways of one link that have heard from each other."""
    a, b = make('a', 'b', share=75), make('b', 'a', share=25)
    for gateway in (a, b):
        gateway.start()
    a.wait_for('b')
    b.wait_for('a')
    return a, b
