# SPDX-License-Identifier: GPL-2.0-or-later
"""Feng, Huang, Chu: A routing system using minimum starting-tag fair queueing: the bounds (5) on delay and (6) on
fairness, next to the greatest values observed with `msfq`. (The paper's own measurements are of web servers, in bars
without numbers.) The tests in test/sched prove the bounds in exact arithmetic; this module shows them."""
from collections.abc import Iterator

import numpy as np

from ..frame import Context, Figure, Row
from ..shop import ARRIVED, FINISH, FIRST, FLOW, TICKS, Shop

RATE = 10_000_000  # C, bit/s, of every link
BYTE = 8 * TICKS // RATE  # ticks per byte
SHORTEST, LONGEST = 64, 1500  # bytes
MILLISECOND = TICKS // 1000


def figure_6(context: Context) -> Figure:
    """Equation (6): six flows of different rates are always backlogged, six others come and go."""
    random = np.random.default_rng(1)
    packets = 1000 if context.quick else 10_000
    rates = np.array([1, 2, 3, 5, 8, 13, 1, 2, 3, 5, 8, 13]) / 64 * RATE / 8  # bytes/s; the sum is C
    longest = np.array([1500, 300, 1500, 900, 1500, 200, 1500, 1500, 100, 700, 1500, 1500])
    offered = []
    with Shop(context.build, "msfq", 1, RATE) as shop:
        for flow, rate in enumerate(rates):
            shop.flow(rate)
            if flow < 6:
                offered.append(int(packets * rate / rates.max()) + 100)
                for size in random.integers(SHORTEST, longest[flow] + 1, offered[flow]):
                    shop.arrive(flow, 0, (int(size),))
            else:
                for burst in random.integers(0, packets * MILLISECOND, packets // 40):
                    for size in random.integers(SHORTEST, longest[flow] + 1, 20):
                        shop.arrive(flow, int(burst), (int(size),))
        # Until one of the six flows is completely served.
        rows = shop.run(until=packets * MILLISECOND // 4)
    assert all(0 < served < count for served, count in zip(np.bincount(rows[:, FLOW]), offered))  # still backlogged
    service = rows[:, FIRST] / BYTE / rates[rows[:, FLOW]] * 1000  # ms of the flow's own rate
    tags = longest / rates * 1000
    pairs, ours, bounds = [], [], []
    for f in range(6):
        for m in range(f):
            difference = np.cumsum(np.where(rows[:, FLOW] == f, service, 0) - np.where(rows[:, FLOW] == m, service, 0))
            pairs.append(f"{m + 1}-{f + 1}")
            ours.append(max(difference.max(), 0) - min(difference.min(), 0))
            bounds.append(tags.max() + max(tags[f], tags[m]))
    ours, bounds = np.array(ours), np.array(bounds)
    worst = int(np.argmax(ours / bounds))

    def plot(canvas):
        axis = canvas.subplots()
        x = np.arange(len(pairs))
        axis.bar(x, ours, label="greatest difference over all intervals, ours")
        axis.plot(x, bounds, "k_", ms=14, mew=2, label="paper's bound (6)")
        axis.set(xticks=x, xticklabels=pairs, xlabel="flows f-m", ylabel="|W_f / r_f - W_m / r_m|, ms",
                 ylim=(0, 1.25 * bounds.max()))
        axis.legend(fontsize="small")

    return Figure("msfq-eq6", "MSFQ, equation (6): fairness of two backlogged flows over any interval", [
        Row(f"flows {pairs[worst]}, the pair nearest to its bound", "ms", bounds[worst], ours[worst], bound="most"),
    ], plot, "Twelve flows with r from 1/64 to 13/64 of C = 10 Mbit/s, largest packets from 100 to 1500 bytes. Six of "
             "them are backlogged all the time, the others come and go.")


class LeakyBucket:
    """A source that never sends more than sigma + rho t bytes in t seconds, and reaches this limit in bursts."""

    def __init__(self, sigma: int, rho: float, longest: int):
        self.sigma, self.rho, self.longest = sigma, rho, longest

    def packets(self, random: np.random.Generator, seconds: float) -> list[tuple[int, int]]:
        """(ticks, bytes) of its packets. After a burst of all its tokens it either pauses until its bucket is full, or
        continues at its rate for a while."""
        now, tokens, all_ = 0.0, float(self.sigma), []
        while now < seconds:
            for _ in range(random.integers(1, 30)):
                size = int(random.integers(SHORTEST, self.longest + 1))
                if tokens < size:
                    wait = (size - tokens) / self.rho
                    now, tokens = now + wait, tokens + wait * self.rho
                tokens -= size
                all_.append((int(np.ceil(now * TICKS)), size))
            rest = random.choice([0.0, (self.sigma - tokens) / self.rho])
            now, tokens = now + rest, min(tokens + rest * self.rho, self.sigma)
        return all_


def through(context: Context, hops: int, seconds: float) -> tuple[np.ndarray, float]:
    """Flow f passes `hops` links; on each of them nine other flows enter from outside and leave again.
    Returns the delays of its packets and the bound (5), in ms."""
    random = np.random.default_rng(hops)
    own = LeakyBucket(6000, 0.1 * RATE / 8, LONGEST)
    others = [LeakyBucket(int(random.integers(2000, 20_000)), rho * RATE / 8, LONGEST)
              for rho in (0.2, 0.15, 0.15, 0.1, 0.1, 0.08, 0.06, 0.04, 0.02)]
    sent = own.packets(random, seconds)
    times = np.array([when for when, _ in sent])
    for _ in range(hops):
        with Shop(context.build, "msfq", 1, RATE) as shop:
            flow = shop.flow(own.rho)
            for when, (_, size) in zip(times, sent):
                shop.arrive(flow, int(when), (size,))
            for other in others:
                number = shop.flow(other.rho)
                for when, size in other.packets(random, seconds):
                    shop.arrive(number, when, (size,))
            rows = shop.run()
        rows = rows[rows[:, FLOW] == flow]
        assert (rows[:, ARRIVED] == times).all()  # a flow's packets keep their order
        times = rows[:, FINISH]
    delays = (times - np.array([when for when, _ in sent])) / MILLISECOND
    bound = (own.sigma + (hops - 1) * own.longest) / own.rho + hops * LONGEST * 8 / RATE
    return delays, bound * 1000


def figure_5(context: Context) -> Figure:
    seconds = 5 if context.quick else 20
    measured = {hops: through(context, hops, seconds) for hops in (1, 2, 3)}
    rows = [Row(f"greatest delay over M = {hops} links", "ms", bound, delays.max(), bound="most")
            for hops, (delays, bound) in measured.items()]

    def plot(canvas):
        axis = canvas.subplots()
        for n, (hops, (delays, bound)) in enumerate(measured.items()):
            color = f"C{n}"
            axis.step(np.sort(delays), np.arange(1, len(delays) + 1)[::-1] / len(delays), where="post", color=color,
                      label=f"M = {hops}")
            axis.axvline(bound, color=color, ls=":", label=f"paper's bound (5), M = {hops}")
        axis.set(xlabel="delay, ms", ylabel="part of the packets with more", yscale="log", xlim=(0, None))
        axis.legend(fontsize="small")

    return Figure("msfq-eq5", "MSFQ, equation (5): delay of a leaky-bucket flow", rows, plot,
                  "r_f = 1/10 of C = 10 Mbit/s, sigma = 6000 bytes, packets of up to 1500 bytes; on each link nine "
                  "other leaky-bucket flows take the other 9/10. A burst of sigma takes 48 ms at r_f.")


def figures(context: Context) -> Iterator[Figure]:
    yield figure_6(context)
    yield figure_5(context)
