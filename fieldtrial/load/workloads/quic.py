# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP/3 next to TCP: every second user of each class has a browser that speaks HTTP/3, the others' speak HTTP/2.
The figures are of all users, whichever way their bytes took."""
import asyncio

from ...base.spec import Profile
from ..traffic import closed
from ..traffic.workload import CbrStream, Parameter
from .backlogged import HttpsBacklogged
from .pages import HttpsPages, Pages


class QuicBacklogged(HttpsBacklogged):
    """A closed loop of every user. Users of HTTP/3 also make some requests over TCP, as to servers without HTTP/3; both
    must be charged to the same user. With `flood` the first user, who speaks TCP, is sent unresponsive UDP."""

    name = 'quic-backlogged'
    summary = 'saturated: every second user by HTTP/3 where QUIC is let through, the others over tunnels'
    profile = Profile('Backlogged, HTTP/3 beside TCP', rank=90, saturated=True, latency=True, queue=True, work=True)
    http3 = True
    parameters = closed.PARAMETERS[:1] + (
        Parameter('tcp', 'integer', 1, 'requests', 'of those that a user of HTTP/3 keeps in flight, over TCP all the '
                  'same', low=0, high=256),
        Parameter('flood', 'number', 0.0, '', 'UDP to the first user that heeds nothing, as a share of C', low=0.0,
                  high=10.0))

    def beside(self, rate_bps, duration_s):
        flood = self.values['flood'] * rate_bps
        return (CbrStream(flood, ((0.0, duration_s),), receiver=0),) if flood else ()

    async def run(self, run):
        speak = self.quic_users(run.spec.users)
        ways = {True: lambda slot: 'h2' if slot < self.values['tcp'] else 'h3', False: 'h2'}
        async with asyncio.TaskGroup() as tasks:
            for quic, via in ways.items():
                users = [user for user in run.spec.mine if (user in speak) == quic]
                tasks.create_task(closed.run(run, self.values['inflight'], 0.0, self.phases(run.spec), via=via,
                                             users=users))


class QuicPages(HttpsPages):
    """Page loads of every user, each page over one connection. No idle tunnels."""

    name = 'quic-pages'
    summary = 'page loads: every second user by HTTP/3 where QUIC is let through, the others over tunnels'
    profile = Profile('Page loads, HTTP/3 beside TCP', rank=100, queue=True, work=True)
    parameters = tuple(parameter for parameter in HttpsPages.parameters if parameter.name != 'idle')
    http3 = True
    run = Pages.run

    def way(self, run, user):
        return 'h3' if user in self.quic_users(run.spec.users) else 'h2'
