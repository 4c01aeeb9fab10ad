# SPDX-License-Identifier: GPL-2.0-or-later
"""Closed loop: each user keeps a number of requests in flight; a new one starts when one has ended."""
import asyncio
import dataclasses

from .run import PAUSE_AFTER_FAILURE_S
from .workload import Parameter

PARAMETERS = (
    Parameter('inflight', 'integer', 4, 'requests', 'requests that each user keeps in flight', low=1, high=256),
    Parameter('think_s', 'number', 0.0, 's', 'mean pause (exponential) between an answer and the next request of the '
              'same slot; the paper has one slot and 5 s', low=0.0, high=3600.0),
)


def offers_of(run, user, kind='object', size=None):
    """The endless sequence of a user's offers; size: see run()."""
    offers = run.offers.of(user, kind)
    return offers if size is None else (dataclasses.replace(offer, size=size) for offer in offers)


async def run(run, inflight, think_s, phases, kind='object', via=None, users=None, size=None):
    """This generator's users, or those of `users`, make requests in the phases that name their class, until the phases
    are over and all responses have ended. via: as for Run.fetch, or a function that maps the number of a slot to it.
    size: of every response, bytes of the grid; None: as drawn."""
    async with asyncio.TaskGroup() as tasks:
        for user in run.spec.mine if users is None else users:
            offers = offers_of(run, user, kind, size)
            own = [phase for phase in phases if user.cls in phase.classes]
            for slot in range(inflight):
                think = run.offers.random('think', kind, user.name, slot)
                way = via(slot) if callable(via) else via
                tasks.create_task(_slot(run, user, offers, think, think_s, own, kind, way))


async def _slot(run, user, offers, think, think_s, phases, kind, via):
    for phase in phases:
        await run.sleep_until(phase.t_start)
        if think_s:     # otherwise all would start at the same instant
            await asyncio.sleep(think.expovariate(1.0 / think_s))
        while run.now() < phase.t_end:
            request = await run.fetch(user, next(offers), kind, via=via)
            if request.outcome != 'ok':
                await asyncio.sleep(PAUSE_AFTER_FAILURE_S)
            elif think_s:
                await asyncio.sleep(think.expovariate(1.0 / think_s))
