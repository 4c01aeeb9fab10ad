# SPDX-License-Identifier: GPL-2.0-or-later
"""The base of workloads in which the first users of each class do something of their own, and the others keep the link
full with downloads."""
import asyncio

from . import closed
from .workload import Parameter, Workload, numbered

PARAMETERS = (
    Parameter('beside', 'integer', 2, 'users', 'users of each class with downloads', low=0, high=100),
    Parameter('inflight', 'integer', 4, 'requests', 'downloads that each of these keeps in flight', low=1, high=64))


class BesideDownloads(Workload):
    """A derived class adds PARAMETERS to its own, and defines the actions of the first users."""

    first = ''      #: the parameter with their number
    via = 'h2'

    def population(self, classes, per_class):
        return dict.fromkeys(classes, self.values[self.first] + self.values['beside'])

    def firsts(self, users):
        """The first users of each class."""
        return tuple(user for number, user in numbered(users) if number <= self.values[self.first])

    async def act(self, run, user):
        """The actions of one of them until the end of the run."""
        raise NotImplementedError

    async def run(self, run):
        firsts = self.firsts(run.spec.users)
        async with asyncio.TaskGroup() as tasks:
            for user in run.spec.mine:
                if user in firsts:
                    tasks.create_task(self.act(run, user))
            tasks.create_task(closed.run(run, self.values['inflight'], 0.0, self.phases(run.spec), via=self.via,
                                         users=[user for user in run.spec.mine if user not in firsts]))
