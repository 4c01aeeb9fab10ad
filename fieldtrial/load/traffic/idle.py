# SPDX-License-Identifier: GPL-2.0-or-later
"""Idle tunnels, of which browsers keep dozens: TLS and HTTP/2 are negotiated, then neither side sends anything."""
import asyncio
import itertools

#: Time over which they are opened, so that not all start at one instant.
OPENING_S = 3.0


async def hold(run, counts, t_start, t_end):
    """Opens `counts[user]` tunnels for each user of this generator, to servers in turn, from `t_start` on, and closes
    them at `t_end`. If cancelled, it closes those it has opened."""
    held = []

    async def open_one(user, server, when):
        await run.sleep_until(when)
        if tunnel := await run.open_tunnel(user, server):
            held.append(tunnel)

    try:
        async with asyncio.TaskGroup() as tasks:
            for user in run.spec.mine:
                servers = itertools.cycle(run.offers.reachable(user))
                for number, server in zip(range(counts[user]), servers):
                    when = t_start + OPENING_S * number / counts[user]
                    tasks.create_task(open_one(user, server, when))
        await run.sleep_until(t_end)
    finally:
        for tunnel in held:
            tunnel.close()
