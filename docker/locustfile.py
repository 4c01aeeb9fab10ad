# SPDX-License-Identifier: GPL-2.0-or-later
"""The load of the profile `live`: Locust users, of the classes of the trial, each from an address of its own, who load
objects of the paper's sizes from all servers. How many there are is changed on Locust's page.

The same file is for the master, which has the page, and for its workers, one in each group of users, which make the
load from that group's addresses. Environment: MSFRS_GROUP, a worker's group; LIVE_WAIT_S (docker/.env), a user's
longest pause between two objects in seconds.
"""
import collections
import json
import os
import pathlib
import random
import time

import locust.runners
import requests.adapters
from locust import HttpUser, between, events, task

from fieldtrial.load.traffic import sizes

STATE = pathlib.Path(os.environ.get('MSFRS_HOSTS', '/run/msfrs')) / 'live.json'
GROUP = os.environ.get('MSFRS_GROUP')
WAIT_S = float(os.environ.get('LIVE_WAIT_S', '1'))
if not 0 <= WAIT_S <= 3600:
    raise SystemExit(f'LIVE_WAIT_S is {WAIT_S:g}: allowed are 0 to 3600 seconds (docker/.env)')

# Debian's package does not know its own version, and a master takes a worker that tells none for one of old; this is
# what workers in other languages tell.
locust.runners.__version__ = locust.runners.__version__ or -1

# A worker that is not heard of for three seconds is left out, and comes back as another: on a busy machine the master
# falls over that. Here it is as patient as a worker is with its master; who has ended is told by the trial.
locust.runners.HEARTBEAT_LIVENESS = locust.runners.MASTER_HEARTBEAT_TIMEOUT

while not STATE.exists():   # the world is still being built
    time.sleep(0.5)
WORLD = json.loads(STATE.read_text())
#: Of this group, and how many Locust users have each address.
HERE, TAKEN = [user for user in WORLD['users'] if user['group'] == GROUP], collections.Counter()
SIZES = sizes.LogNormal(cap=sizes.CAP_SECONDS * WORLD['rate_bps'] / 8)


class FromAddress(requests.adapters.HTTPAdapter):
    """Connections that come from one address of this host."""

    def __init__(self, address):
        self._address = address
        super().__init__()

    def init_poolmanager(self, *args, **kwargs):
        """See HTTPAdapter."""
        super().init_poolmanager(*args, **kwargs, source_address=(self._address, 0))


class User(HttpUser):
    """One user, of the class that the address has. One class of Locust's for all: it deals its classes over its workers
    one after the other, so with as many workers as classes each worker had one class alone."""

    host = 'http://servers.test'
    wait_time = between(0, WAIT_S)

    def on_start(self):
        """Takes an address that fewest have."""
        self._user = min(HERE, key=lambda user: TAKEN[user['name']])
        TAKEN[self._user['name']] += 1
        self.client.mount('http://', FromAddress(self._user['v4']))

    def on_stop(self):
        """Gives it back."""
        TAKEN[self._user['name']] -= 1

    @task
    def load(self):
        """One object of one server."""
        server, size = random.choice(WORLD['servers']), SIZES.draw(random)
        kind = 'small' if size <= 16384 else 'large'
        self.client.get(f'http://{server["v4"]}/b/{size}/{random.getrandbits(64):x}',
                        name=f'{self._user["class"]}, {kind}', headers={'Host': server['name']})


@events.init.add_listener
def _(environment, **_how):
    """The master begins when all groups are there."""
    environment.parsed_options.expect_workers = len(WORLD['groups'])
