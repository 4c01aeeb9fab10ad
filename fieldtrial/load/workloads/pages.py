# SPDX-License-Identifier: GPL-2.0-or-later
"""Page loads as in a browser: first the document, then the other objects over several connections at once.

A page is on one server; its connections are kept open for the next page there. The page load time runs from the request
for the document to the last byte of the last object. The user thinks (exponentially) before the next page. Whether the
link is saturated follows from users, objects and think time: 12 users with 12 objects and 5 s offer 3.3 times the
capacity of 2 Mbit/s. `background` adds requests in flight of every user that belong to no page.
"""
import asyncio

from ...base.spec import Answer, Profile
from ..traffic import closed, idle
from ..traffic.run import PAUSE_AFTER_FAILURE_S
from ..traffic.workload import Parameter, Workload


PAGES = Answer('Pages', {'page:first': "a {first} user's page loads in {}", 'page': 'a page of any user in {}'})


class Pages(Workload):
    name = 'pages'
    summary = 'page loads: a document, then its objects over six connections, then think time'
    profile = Profile('Page loads', rank=150, queue=True, work=True, answers=(PAGES,))
    parameters = (
        Parameter('objects', 'integer', 12, 'objects', 'objects of a page, the document counted', low=1, high=1000),
        Parameter('connections', 'integer', 6, 'connections', 'requests of a page in flight at once', low=1, high=64),
        Parameter('think_s', 'number', 5.0, 's', 'mean pause (exponential) between two pages of a user', low=0.0,
                  high=3600.0),
        Parameter('background', 'integer', 0, 'requests', 'requests in flight of every user beside its pages', low=0,
                  high=256))

    def way(self, _run, _user):
        """How the pages of a user are requested, see run.Run.fetch."""
        return self.via

    async def run(self, run):
        async with asyncio.TaskGroup() as tasks:
            for user in run.spec.mine:
                tasks.create_task(self.browse(run, user))
            if self.values['background']:
                tasks.create_task(closed.run(run, self.values['background'], 0.0, self.phases(run.spec), 'background',
                                             self.via))

    async def browse(self, run, user):
        pages, think_s = run.offers.pages(user, self.values['objects']), self.values['think_s']
        via = self.way(run, user)
        think = run.offers.random('think', user.name)
        await asyncio.sleep(think.uniform(0.0, think_s))    # otherwise all would start at the same instant
        number = 0
        while run.now() < run.spec.duration_s:
            number += 1
            if not await self._page(run, user, f'{user.name}-p{number}', next(pages), via):
                await asyncio.sleep(PAUSE_AFTER_FAILURE_S)
            await asyncio.sleep(think.expovariate(1.0 / think_s) if think_s else 0.0)

    async def _page(self, run, user, page, offers, via):
        """Loads one page and records it; whether it completed."""
        started, requests, outcome = run.now(), [], 'unfinished'
        rest = iter(offers[1:])

        async def connection():
            for offer in rest:      # shared: each connection takes the next object not yet requested
                requests.append(await run.fetch(user, offer, 'object', page, via=via))

        try:
            requests.append(await run.fetch(user, offers[0], 'document', page, via=via))
            if requests[0].outcome == 'ok':
                async with asyncio.TaskGroup() as tasks:
                    for _ in range(self.values['connections']):
                        tasks.create_task(connection())
            outcome = 'ok' if all(request.outcome == 'ok' for request in requests) else 'error'
        finally:
            run.records.page(user, page, started, run.now(), requests, outcome)
        return outcome == 'ok'


class HttpsPages(Pages):
    """Over persistent tunnels, as in a browser of today. In addition each user keeps `idle` tunnels, to pages left open
    in other tabs: opened at the start with TLS and HTTP/2 negotiated, idle until the end."""

    name = 'https-pages'
    summary = 'page loads over HTTP/2 in TLS tunnels that each user keeps open, beside others that are idle'
    profile = Profile('Page loads over kept tunnels', rank=5, queue=True, work=True, answers=(PAGES,))
    via = 'h2'
    parameters = tuple(parameter for parameter in Pages.parameters if parameter.name != 'connections') + (
        Parameter('connections', 'integer', 64, 'streams', 'requests of a page in flight at once, all on one tunnel',
                  low=1, high=128),
        Parameter('idle', 'integer', 20, 'tunnels', 'idle tunnels of every user', low=0, high=200))

    async def run(self, run):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(super().run(run))
            if self.values['idle']:
                counts = dict.fromkeys(run.spec.mine, self.values['idle'])
                tasks.create_task(idle.hold(run, counts, 0.0, run.spec.duration_s))
