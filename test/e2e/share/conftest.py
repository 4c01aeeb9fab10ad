# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the tests of msfrs-share, beside those of the whole directory."""
import contextlib
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gateways import Gateway, Store  # noqa: E402 (needs the path above)


@pytest.fixture
def host(fabric):
    """A host of its own: gateways and store meet on its loopback."""
    return fabric.host('link')


@pytest.fixture
def stack():
    with contextlib.ExitStack() as made:
        yield made


@pytest.fixture
def store(host, tmp_path, stack):
    """A Redis or Valkey that runs."""
    return stack.enter_context(Store(host, tmp_path))


@pytest.fixture
def make(host, open_path, stack):
    """Makes a gateway: a segment in which a worker lives, and an msfrs-share that is not started yet. It removes its
    socket as its user."""

    def gateway(name, *others, **how):
        return stack.enter_context(Gateway(host, open_path, name, others, **how))
    return gateway


@pytest.fixture
def pair(store, make):
    """Two gateways of one link; both run and have heard of each other."""
    a, b = make('a', 'b', share=75), make('b', 'a', share=25)
    for gateway in (a, b):
        gateway.start()
    a.wait_for('b')
    b.wait_for('a')
    return a, b
