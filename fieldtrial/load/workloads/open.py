# SPDX-License-Identifier: GPL-2.0-or-later
"""Open arrivals: Poisson, each by a user drawn at random, sizes lognormal. traffic/arrivals.py computes the load.

A user opens as many connections as there are requests, so nothing queues in the client. Give the run a drain time, so
that late requests can end; requests that do not are recorded as unfinished.
"""
from ...base.spec import Profile
from ..traffic import arrivals
from ..traffic.workload import Workload


class Open(Workload):
    name = 'open'
    summary = 'open arrivals (Poisson) at a share of the link, by users drawn at random'
    profile = Profile('Open arrivals', rank=160, latency=True, queue=True, work=True)
    parameters = (arrivals.LOAD,)
    _arrivals = ()

    def prepare(self, offers):
        spec = offers.spec
        self._arrivals = arrivals.draw(self.wanted(offers), offers.random('gaps'), self.values['load'],
                                       spec.rate_bps, spec.duration_s)
        return arrivals.offered(self._arrivals, spec.rate_bps, spec.duration_s)

    def wanted(self, offers):
        """Endless sequence of (user, Offer, path) in the order of arrival."""
        users, draw = offers.spec.users, offers.random('user')
        own = {user.name: offers.of(user) for user in users}
        while True:
            user = draw.choice(users)
            yield user, next(own[user.name]), None

    async def run(self, run):
        await arrivals.play(run, self._arrivals, self.via)


class HttpsOpen(Open):
    """Over persistent tunnels: each object is a stream on the user's one tunnel to its server. The load is computed as
    in `open`, so it is comparable; HTTP/2 frames and TLS records add less than 1 % to it."""

    name = 'https-open'
    summary = 'open arrivals (Poisson), each a stream of HTTP/2 on the tunnel that the user keeps to its server'
    profile = Profile('Open arrivals over kept tunnels', rank=30, latency=True, queue=True, work=True)
    via = 'h2'
