# SPDX-License-Identifier: GPL-2.0-or-later
"""Idle tunnels, as browsers keep dozens: TLS and HTTP/2 have been agreed on, and then nobody says anything."""
import asyncio
import itertools

#: Over how long they are opened: not all in one instant.
OPENING_S = 3.0


async def hold(run, counts, t_start, t_end):
    """Opens `counts[user]` tunnels of each user that this generator plays, to servers in turn, from `t_start` on, and
    closes them at `t_end`. Cancelled, it closes what it has opened."""
    held = []
    try:
        async with asyncio.TaskGroup() as tasks:
            for user in run.spec.mine:
                servers = itertools.cycle(run.offers.reachable(user))
                for number, server in zip(range(counts[user]), servers):
                    when = t_start + OPENING_S * number / counts[user]
                    tasks.create_task(_open(run, user, server, when, held))
        await run.sleep_until(t_end)
    finally:
        for tunnel in held:
            tunnel.close()


async def _open(run, user, server, when, held):
    await run.sleep_until(when)
    tunnel = await run.open_tunnel(user, server)
    if tunnel:
        held.append(tunnel)
