# SPDX-License-Identifier: GPL-2.0-or-later
"""The load of the profile `live`: Locust users, of the classes of the trial, each from an address of its own, who load
objects of the paper's sizes from all servers. How many there are is changed on Locust's page.

The same file is for the master, which has the page, and for its workers, one in each group of users, which make the
load from that group's addresses. Environment: MSFRS_GROUP, a worker's group; LIVE_WAIT_S (docker/.env), a user's
longest pause between two objects in seconds.
"""
import itertools
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

while not STATE.exists():   # the world is still being built
    time.sleep(0.5)
WORLD = json.loads(STATE.read_text())
SIZES = sizes.LogNormal(cap=sizes.CAP_SECONDS * WORLD['rate_bps'] / 8)


class FromAddress(requests.adapters.HTTPAdapter):
    """Connections that come from one address of this host."""

    def __init__(self, address):
        self._address = address
        super().__init__()

    def init_poolmanager(self, *args, **kwargs):
        """See HTTPAdapter."""
        super().init_poolmanager(*args, **kwargs, source_address=(self._address, 0))


def user_class(name):
    """The Locust users of one class of the trial. When there are more of them here than addresses, these are shared."""
    addresses = itertools.cycle([user['v4'] for user in WORLD['users']
                                 if user['class'] == name and user['group'] == GROUP])

    class Member(HttpUser):
        """One user."""

        host = 'http://servers.test'
        wait_time = between(0, WAIT_S)

        def on_start(self):
            """Takes an address."""
            self.client.mount('http://', FromAddress(next(addresses)))

        @task
        def load(self):
            """One object of one server."""
            server, size = random.choice(WORLD['servers']), SIZES.draw(random)
            kind = 'small' if size <= 16384 else 'large'
            self.client.get(f'http://{server["v4"]}/b/{size}/{random.getrandbits(64):x}', name=f'{name}, {kind}',
                            headers={'Host': server['name']})

    Member.__name__ = name.capitalize()
    Member.weight = sum(user['class'] == name for user in WORLD['users'])
    return Member


for _name in WORLD['weights']:
    globals()[_name.capitalize()] = user_class(_name)


@events.init.add_listener
def _(environment, **_how):
    """The master begins when all groups are there."""
    environment.parsed_options.expect_workers = len(WORLD['groups'])
