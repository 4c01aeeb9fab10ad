# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the tests of msfrs-edge, in addition to those of test/e2e."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from edge_daemon import EdgeDaemon, queue_rule  # noqa: E402 (needs the path above)


@pytest.fixture
def edge(site, open_path):
    """Makes an EdgeDaemon on the site's gateway, for traffic to the server; not yet started. It rereads its file after
    dropping privileges."""
    queue_rule(site.gateway, '-A')

    def make(text):
        return EdgeDaemon(site.gateway, open_path, text)
    return make
