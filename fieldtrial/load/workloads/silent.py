# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers that are silent, slow or steady: do they take the link from other users?

Beside users with large downloads, the first user of each class loads small pages of one object, one after the other.
The users who follow the downloaders in the last class use little of the link: one makes requests to a server whose
address drops every packet, and others that a server answers late; each of the rest watches a stream of a constant rate
over TLS, as a call, a remote desktop or a WebSocket has it.
"""
import asyncio
import itertools

from ...base.errors import TrialError
from ...base.spec import Profile
from ...site import grid
from ..traffic import closed
from ..traffic.offers import Offer
from ..traffic.workload import Parameter, Workload, numbered
from .pages import PAGES

DOWNLOAD_S = 4.0    #: size of a download: what the link carries in this time
PAGE = 20_000       #: bytes
PAUSE_S = 0.5       #: mean pause (exponential) between two pages of a user
ANSWER = 1_000      #: bytes of a late answer
LATE = 'late'       #: the kind of these requests


class Silent(Workload):
    name = 'silent'
    summary = 'downloads and small pages, beside a user who asks silent or slow servers, and steady streams'
    profile = Profile('Silent, slow and steady servers', rank=72, shared=True, queue=True, answers=(PAGES,))
    parameters = (
        Parameter('dead', 'number', 100.0, 'requests/s', 'requests of one user to a server that drops every packet',
                  low=0.0, high=1000.0),
        Parameter('thinking', 'number', 0.0, 'requests/s', 'requests of this user that are answered late', low=0.0,
                  high=1000.0),
        Parameter('thinks_s', 'number', 2.0, 's', 'time to the first byte of these', low=0.0, high=60.0),
        Parameter('streams', 'integer', 0, 'users', 'users who watch a stream each', low=0, high=100),
        Parameter('stream_bps', 'number', 48_000.0, 'bit/s', 'rate of each stream', low=1_000.0, high=1e8),
        Parameter('beside', 'integer', 2, 'users', 'users of each class with downloads', low=0, high=100),
        Parameter('inflight', 'integer', 2, 'downloads', 'that each of these keeps in flight', low=1, high=64))

    def population(self, classes, per_class):
        last = self.values['streams'] + 1
        return {name: 1 + self.values['beside'] + (last if name == classes[-1] else 0) for name in classes}

    def tunnels(self):
        return self.values['streams'] > 0

    def prepare(self, offers):
        """See Workload. Only servers that take time have streams and late answers."""
        if offers.spec.at_once and (self.values['thinking'] or self.values['streams']):
            raise TrialError('workload silent: with --at-once no server answers late or sends streams; leave it out')

    async def run(self, run):
        beside, last = self.values['beside'], run.spec.classes[-1]
        downloads = []
        async with asyncio.TaskGroup() as tasks:
            for number, user in numbered(run.spec.users):
                if user not in run.spec.mine:
                    continue
                if number == 1:
                    tasks.create_task(self._browse(run, user))
                elif number <= 1 + beside:
                    downloads.append(user)
                elif number == 2 + beside and user.cls == last:
                    tasks.create_task(self._ask(run, user))
                else:
                    tasks.create_task(self._watch(run, user))
            tasks.create_task(closed.run(run, self.values['inflight'], 0.0, self.phases(run.spec), via='http',
                                         users=downloads, size=grid.nearest(DOWNLOAD_S * run.spec.rate_bps / 8)))

    @staticmethod
    async def _browse(run, user):
        draw = run.offers.random('browse', user.name)
        for number in itertools.count(1):
            await asyncio.sleep(draw.expovariate(1.0 / PAUSE_S))
            if run.now() >= run.spec.duration_s:
                return
            page, started, requests = f'{user.name}-p{number}', run.now(), []
            offer = Offer(draw.choice(run.offers.reachable(user)), grid.nearest(PAGE), False)
            try:
                requests.append(await run.fetch(user, offer, 'document', page, via='http'))
            finally:
                run.records.page(user, page, started, run.now(), requests,
                                 requests[0].outcome if requests else 'unfinished')

    async def _ask(self, run, user):
        """The requests to dead servers and to those that answer late, each at a constant rate."""
        servers, made = run.offers.of(user, LATE), {'dead': 0, 'thinking': 0}
        async with asyncio.TaskGroup() as tasks:
            while due := {name: made[name] / self.values[name] for name in made if self.values[name]}:
                name = min(due, key=due.get)
                if due[name] >= run.spec.duration_s:
                    return
                await run.sleep_until(due[name])
                made[name] += 1
                if name == 'dead':
                    run.ask_silent(user, '/b/64/dead', 'http')
                else:
                    tasks.create_task(self._late(run, user, servers))

    async def _late(self, run, user, servers):
        """servers: endless iterator of Offers."""
        size, thinks_s = grid.nearest(ANSWER), self.values['thinks_s']
        await run.fetch(user, Offer(next(servers).server, size, False), LATE,
                        path=f'/w/{size}/{thinks_s:g}/{run.name(user, LATE)}', via='http')

    async def _watch(self, run, user):
        rate = self.values['stream_bps']
        size = round(rate / 8 * (run.spec.duration_s - run.now()))
        server = run.offers.random('watch', user.name).choice(run.offers.reachable(user))
        await run.fetch(user, Offer(server, size, True), 'stream', path=f'/s/{size}/{rate:g}/{user.name}', via='h2')
