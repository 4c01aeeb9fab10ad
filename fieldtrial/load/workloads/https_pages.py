# SPDX-License-Identifier: GPL-2.0-or-later
"""Page loads over kept tunnels, as a browser of today makes them: the document on the user's tunnel to the server, then
all other objects at once as streams of the same tunnel. Sizes, servers and think times are those of `pages`.

Beside the tunnels that pages use each user keeps `idle` others, to pages that were left open in other tabs: opened at
the start, agreed on TLS and HTTP/2, silent until the end.
"""
import asyncio

from ..traffic import idle
from ..traffic.workload import Parameter
from .pages import Pages


class HttpsPages(Pages):
    """Pages over kept tunnels."""

    name = 'https-pages'
    summary = 'page loads over HTTP/2 in TLS tunnels that each user keeps open, beside others that are idle'
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


WORKLOAD = HttpsPages
