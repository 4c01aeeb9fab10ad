# SPDX-License-Identifier: GPL-2.0-or-later
"""Open arrivals: requests start at times drawn before the run, regardless of earlier requests.

The offered load is  arrivals per second * mean wire_bytes(size) * 8 / C:  frames with all headers, each byte once, no
retransmissions, no handshakes, no acknowledgements. With heavy tails a short Poisson sequence easily offers several
percent more or less than it should, which dominates at 0.95. Therefore sizes are drawn until they make up the load of
the whole run, and the (exponential) gaps are scaled so that these requests fill it. Every arm sees the same arrivals.
"""
import asyncio
import dataclasses

from ...base.errors import TrialError
from .sizes import wire_bytes
from .workload import Parameter

LOAD = Parameter('load', 'number', 0.85, '', 'offered load as a share of C, with all headers', low=0.01, high=2.0)
MOST_ARRIVALS = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Arrival:
    """A future request, `t` seconds after t0, by `user`; `path` as for Run.fetch."""
    t: float
    user: object
    offer: object
    path: str = None


def draw(offers, random, load, rate_bps, duration_s):
    """Poisson arrivals over [0, duration_s) that offer `load` of `rate_bps` (to within half a response).

    offers: endless iterator of (user, Offer, path). random: generator for the gaps.
    """
    budget = load * rate_bps / 8 * duration_s
    chosen, gaps = [], []
    while budget > 0:
        user, offer, path = next(offers)
        cost = wire_bytes(offer.size)
        budget -= cost
        chosen.append((user, offer, path))
        gaps.append(random.expovariate(1.0))
        if len(chosen) > MOST_ARRIVALS:
            raise TrialError(f'more than {MOST_ARRIVALS} arrivals in {duration_s:g} s: '
                             'use a shorter run, larger sizes or a lower load')
    if -budget > cost / 2 and len(chosen) > 1:     # nearer to the load without the last one
        chosen.pop()
        gaps.pop()
    # n arrivals of a Poisson process in an interval divide it by n + 1 gaps.
    scale, t, arrivals = duration_s / (sum(gaps) + random.expovariate(1.0)), 0.0, []
    for gap, (user, offer, path) in zip(gaps, chosen):
        t += gap * scale
        arrivals.append(Arrival(t, user, offer, path))
    return arrivals


def offered(arrivals, rate_bps, duration_s):
    """The offered load, for meta.json."""
    payload = sum(arrival.offer.size for arrival in arrivals)
    wire = sum(wire_bytes(arrival.offer.size) for arrival in arrivals)
    return {'arrivals': len(arrivals), 'payload_bytes': payload, 'wire_bytes': wire,
            'overhead': round(wire / payload - 1, 6), 'load': round(wire * 8 / rate_bps / duration_s, 6)}


async def play(run, arrivals, via=None):
    """Makes this generator's part of the requests at their times and waits for all responses. `via` as for
    Run.fetch."""
    mine = set(run.spec.mine)
    async with asyncio.TaskGroup() as tasks:
        for arrival in (each for each in arrivals if each.user in mine):
            await run.sleep_until(arrival.t)
            tasks.create_task(run.fetch(arrival.user, arrival.offer, path=arrival.path, wanted_at=arrival.t,
                                        via=via))
