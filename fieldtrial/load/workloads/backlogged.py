# SPDX-License-Identifier: GPL-2.0-or-later
"""Saturation: all users are always backlogged. Section 5.2, first phase, and section 7 (1) of the paper.

With think_s=5 and inflight=1 it is the paper's own simulation of clients, which loads 2 Mbit/s only with many users.
"""
from ...base.spec import Answer, Profile
from ..traffic import closed
from ..traffic.workload import Workload


DOWNLOADS = Answer('Downloads', {'small': 'beside downloads, an object of up to 16 kB takes {}',
                                 'rate': 'all users together receive {}'})


class Backlogged(Workload):
    name = 'backlogged'
    summary = 'saturated: every user keeps requests in flight all the time'
    profile = Profile('Backlogged', rank=120, saturated=True, latency=True, queue=True, work=True,
                      answers=(DOWNLOADS,))
    parameters = closed.PARAMETERS

    async def run(self, run):
        await closed.run(run, self.values['inflight'], self.values['think_s'], self.phases(run.spec),
                         via=self.via)


class HttpsBacklogged(Backlogged):
    """The same requests as in browsers of today: the gateway sees only busy or idle tunnels and cannot assign bytes to
    requests."""

    name = 'https-backlogged'
    summary = 'saturated, over HTTP/2 in TLS tunnels that each user keeps open, one for each server'
    profile = Profile('Backlogged over kept tunnels', rank=10, saturated=True, latency=True, queue=True, work=True,
                      answers=(DOWNLOADS,))
    via = 'h2'
