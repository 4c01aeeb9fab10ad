# SPDX-License-Identifier: GPL-2.0-or-later
"""Web pages in real browsers next to downloads: the first users of each class browse, the others keep the link full.
A user visits a site, loads `visit` of its pages with a pause before each, and goes to another site."""
import asyncio
import contextlib
import itertools

from ...base.spec import Answer, Profile
from ...site import pages
from ..traffic import beside, browsing
from ..traffic.run import PAUSE_AFTER_FAILURE_S
from ..traffic.workload import Parameter


class Browser(beside.BesideDownloads):
    name = 'browser'
    summary = 'web pages in Chromium, beside users who keep downloads in flight'
    profile = Profile('Pages in a browser', rank=25, queue=True, answers=(Answer('Painting', {
        'fcp:first': "a {first} user's page shows something in {}", 'fcp': 'that of any user in {}',
        'lcp': 'its largest part in {}', 'page': 'all of it is loaded in {}'}),))
    first = 'browsers'
    parameters = (
        Parameter('browsers', 'integer', 2, 'users', 'users of each class who have a browser', low=1, high=20),
        *beside.PARAMETERS,
        Parameter('visit', 'integer', 3, 'pages', 'pages of a site that a user loads one after the other', low=1,
                  high=pages.PAGES),
        Parameter('think_s', 'number', 5.0, 's', 'mean pause (exponential) before a page', low=0.0, high=3600.0))

    def browsers(self, users):
        return self.firsts(users)

    def visits(self, run, user):
        """The endless sequence of (server, number of a page, pause before it in s) of a user."""
        draw, think_s = run.offers.random('browser', user.name), self.values['think_s']
        while True:
            server = draw.choice(run.offers.reachable(user))
            for number in draw.sample(range(pages.PAGES), self.values['visit']):
                yield server, number, draw.expovariate(1.0 / think_s) if think_s else 0.0

    async def act(self, run, user):
        async with contextlib.aclosing(browsing.Browser(run, user)) as browser:
            await browser.start()
            for count, (server, number, pause_s) in zip(itertools.count(1), self.visits(run, user)):
                await asyncio.sleep(pause_s)
                if run.now() >= run.spec.duration_s:
                    return
                if not await browser.load(f'{user.name}-p{count}', server, number):
                    await asyncio.sleep(PAUSE_AFTER_FAILURE_S)
