# SPDX-License-Identifier: GPL-2.0-or-later
"""Half of the users of each class bypass Squid: responsive traffic that is not scheduled, next to traffic that is.

Every second user of a class downloads one large file after the other, directly: by TCP from a port that is not
intercepted, or with quic=yes by QUIC (HTTP/3, cubic), whose downloads are daemons of the cell (`load/quic.py`). The
others are a closed loop over persistent tunnels through Squid. The figures are the link share of the latter relative to
the same load with unmodified Squid, where they are as many plain TCP connections, and whether they divide it by weight.
"""
import asyncio

from ...base.spec import Profile
from ...site import grid
from ..traffic import closed
from ..traffic.offers import Offer
from ..traffic.run import PAUSE_AFTER_FAILURE_S
from ..traffic.workload import Parameter, Workload, every_second

#: Bytes of a file that bypasses Squid: the largest on the servers. At 2 Mbit/s it takes eight minutes.
BULK = grid.nearest(grid.HIGH)


class Bypass(Workload):
    """A closed loop of half of the users; bulk downloads of the others, bypassing Squid."""

    name = 'bypass'
    summary = 'saturated, and every second user bypasses Squid with a bulk download, by TCP or QUIC'
    profile = Profile('Half bypass Squid', rank=80, saturated=True, shared=True, queue=True)
    via = 'h2'
    parameters = closed.PARAMETERS[:1] + (
        Parameter('connections', 'integer', 1, 'connections', 'of each user who bypasses Squid, one download on each',
                  low=1, high=16),
        Parameter('quic', 'yes/no', False, '', 'whether these use QUIC instead of TCP'))

    def direct(self, users):
        return every_second(users)

    def quic_downloads(self, users, servers):
        return self._downloads(users, lambda _user: servers) if self.values['quic'] else ()

    def _downloads(self, users, reachable):
        """(user, server) of each download, spread over all servers."""
        wanted = [user for user in self.direct(users) for _ in range(self.values['connections'])]
        return tuple((user, reachable(user)[number * len(reachable(user)) // len(wanted)])
                     for number, user in enumerate(wanted))

    async def run(self, run):
        spec = run.spec
        beside = self.direct(spec.users)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(closed.run(run, self.values['inflight'], 0.0, self.phases(spec), via=self.via,
                                         users=[user for user in spec.mine if user not in beside]))
            if not self.values['quic']:
                for user, server in self._downloads(spec.users, run.offers.reachable):
                    if user in spec.mine:
                        tasks.create_task(_download(run, user, server))


async def _download(run, user, server):
    """Downloads one file after the other until the end of the run."""
    while run.now() < run.spec.duration_s:
        request = await run.fetch(user, Offer(server, BULK, False), 'bulk', via='direct')
        if request.outcome != 'ok':
            await asyncio.sleep(PAUSE_AFTER_FAILURE_S)
