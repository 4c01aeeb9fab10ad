# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers that never answer must not take the link from the users of others."""
import threading
import time

import pytest

from gateway import SOON
from test_shares import measure

RATE = 100                      # requests a second
WARM_UP, MEASURED = 6.0, 10.0   # s
PATIENCE = 3.0                  # s, of the client that asks


class Flood:
    """A user who asks RATE times a second, and gives each request up after PATIENCE."""

    def __init__(self, link, user):
        self._link, self._user, self._running = link, user, True
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self):
        under_way, began, asked = [], time.monotonic(), 0
        while self._running:
            while asked < (time.monotonic() - began) * RATE:
                under_way.append((time.monotonic(), self._link.users.get(self._user, gate='never opened')))
                asked += 1
            while under_way and time.monotonic() - under_way[0][0] > PATIENCE:
                under_way.pop(0)[1].abort()
            time.sleep(0.01)
        for _, fetch in under_way:
            fetch.abort()

    def stop(self):
        self._running = False
        self._thread.join()


@pytest.mark.link(users=(2, 2, 3), rate_bps=5e6)
def test_a_flood_to_silent_servers_leaves_the_link_to_others(slow_link):
    """Six users with two downloads each fill the link while a bronze one asks servers that do not answer."""
    slow_link.gateway.start('msfrs_window interval=1s', SOON)
    *others, flooder = slow_link.world.users
    load = slow_link.users.load(others, inflight=2, size=5_000_000)
    flood = Flood(slow_link, flooder)
    time.sleep(WARM_UP)
    got, utilisation = measure(slow_link, load, MEASURED)
    flood.stop()
    load.stop(abort=True)
    assert utilisation > 0.9, f'{utilisation}: they had {got}'
    slow_link.gateway.rest()
