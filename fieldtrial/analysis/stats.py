# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics of the field trial: pure functions on numpy arrays, no files, no clock.

Units: times and latencies in seconds, sizes and backlogs in bytes, rates in bit/s, shares as fractions of 1. A figure
that cannot be computed raises StatsError with the reason; nothing is guessed, clamped or extrapolated.
"""
import math

import numpy as np

# Samplers start and stop slightly outside the interval; a counter is assumed constant over this many seconds.
EDGE_S = 1.0


class StatsError(ValueError):
    """The samples do not allow this figure; str() is the reason."""


def counter_at(times, counts, when):
    """Value of a cumulative counter at `when`, linear between samples, constant up to EDGE_S outside them."""
    if len(times) == 0:
        raise StatsError('no samples')
    if when < times[0] - EDGE_S or when > times[-1] + EDGE_S:
        raise StatsError(f'samples cover {times[0]:.1f} to {times[-1]:.1f} s, {when:.1f} s is outside')
    return float(np.interp(when, times, counts))


def increase(times, counts, start, stop):
    """How much a cumulative counter grew in [start, stop]."""
    if not stop > start:
        raise StatsError(f'the interval from {start:g} to {stop:g} s is empty')
    return counter_at(times, counts, stop) - counter_at(times, counts, start)


def counter_mean(times, counts, start, stop):
    """Mean of a cumulative counter over the time from `start` to `stop`, linear between samples."""
    inside = (times > start) & (times < stop)
    edges = np.concatenate(([start], times[inside], [stop]))
    values = np.concatenate(([counter_at(times, counts, start)], counts[inside], [counter_at(times, counts, stop)]))
    return float(np.sum((values[1:] + values[:-1]) / 2 * np.diff(edges)) / (stop - start))


def utilisation(link_bytes, seconds, rate_bps):
    """Share of the capacity `rate_bps` that `link_bytes` (with headers) used in `seconds`."""
    return link_bytes * 8 / (seconds * rate_bps)


def per_user_ratios(throughput, users, weights):
    """Accuracy of weighted fairness among users.

    `throughput` {class: bytes or bit/s}, `users` {class: active users}, `weights` {class: weight}; the classes of
    `throughput` are compared. Returns (ratios, errors): throughput per user over that of a user of the class with the
    least weight, and ratio / (ratio of the weights) - 1. 4:2:1 kept exactly: ratios 4, 2, 1 and errors 0.
    """
    if not throughput:
        raise StatsError('no class had users')
    rate = {name: amount / users[name] for name, amount in throughput.items()}
    last = min(rate, key=lambda name: weights[name])
    if rate[last] <= 0:
        raise StatsError(f'class {last} received nothing')
    ratios = {name: value / rate[last] for name, value in rate.items()}
    errors = {name: ratio / (weights[name] / weights[last]) - 1 for name, ratio in ratios.items()}
    return ratios, errors


def mean_of(values):
    """Mean of numbers, or of dictionaries of the same keys by key."""
    first, *_ = values
    if isinstance(first, dict):
        return {key: mean_of([each[key] for each in values]) for key in first}
    return sum(values) / len(values)


def worst(errors):
    """The error farthest from 0, with its sign."""
    return max(errors.values(), key=abs)


def in_interval(times, start, stop):
    """Mask of the samples in [start, stop]; StatsError if there is none."""
    chosen = (times >= start) & (times <= stop)
    if not chosen.any():
        raise StatsError(f'no sample between {start:g} and {stop:g} s')
    return chosen


def holding_times(times, stop):
    """How long each sample held: until the next one; the last one until `stop`."""
    return np.diff(np.append(times, max(stop, times[-1])))


def weighted_mean(values, weights):
    total = np.sum(weights)
    if total <= 0:
        return float(np.mean(values))
    return float(np.sum(values * weights) / total)


def weighted_quantile(values, weights, share):
    """The least value at which at least `share` (0..1) of the weight lies at or below."""
    order = np.argsort(values, kind='stable')
    reached = np.cumsum(np.asarray(weights, float)[order])
    if reached[-1] <= 0:
        return float(np.quantile(values, share, method='inverted_cdf'))
    index = np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))
    return float(np.asarray(values)[order][index])


def queue_delay_ms(backlog_bytes, rate_bps):
    """Milliseconds that a packet behind `backlog_bytes` waits on a link of `rate_bps`."""
    return backlog_bytes * 8e3 / rate_bps


def integral(times, values, start, stop):
    """Integral over [start, stop] of a step function: each of `values` holds until the next one's time; 0 before the
    first."""
    edges = np.clip(np.append(times, max(stop, times[-1])), start, stop)
    return float(np.sum(values * np.diff(edges)))


def waits_ms(times, sent_bytes, backlog_bytes):
    """Queueing delay in ms of a packet arriving at each of `times` on a variable-rate link: the time until
    `sent_bytes`, a monotonic counter, has grown by the backlog ahead of it; if it never does, at least the time until
    the last sample."""
    wanted = sent_bytes + backlog_bytes
    after = np.minimum(np.searchsorted(sent_bytes, wanted, side='left'), len(times) - 1)
    before = np.maximum(after - 1, 0)
    grown = sent_bytes[after] - sent_bytes[before]
    part = np.where(grown > 0, (np.minimum(wanted, sent_bytes[after]) - sent_bytes[before]) / np.maximum(grown, 1), 1)
    return np.maximum(times[before] + part * (times[after] - times[before]) - times, 0) * 1e3


class Survival:
    """Latencies of which some are only known to exceed an age: Kaplan-Meier.

    `durations` in s; `finished` marks the complete ones. A latency cut off at the end of the run counts as "took at
    least that long": leaving it out would flatter an arm that starves long requests. If all finished, mean and
    quantiles are the ordinary ones. The only assumption is that the cut does not depend on the latency, which holds
    because every request is cut at the same instant.
    """

    def __init__(self, durations, finished):
        durations, finished = np.asarray(durations, float), np.asarray(finished, bool)
        if len(durations) == 0:
            raise StatsError('no request')
        if np.any(~np.isfinite(durations)) or np.any(durations < 0):
            raise StatsError('a latency is negative or missing')
        # A request cut at the same age as a completion was still running: completions first.
        order = np.lexsort((~finished, durations))
        ended = finished[order]
        at_risk = np.arange(len(durations), 0, -1)
        self.times = durations[order]
        self.surviving = np.cumprod(1 - ended / at_risk)
        self.count, self.cut = len(durations), int(np.count_nonzero(~finished))

    def quantile(self, share):
        """Latency that `share` (0..1) of the requests do not exceed; math.inf if too few finished to tell."""
        index = np.searchsorted(-self.surviving, -(1 - share) - 1e-12)
        return float(self.times[index]) if index < len(self.times) else math.inf

    def mean(self, horizon):
        """Mean in s, restricted to `horizon` s: longer latencies count as `horizon`. Beyond the longest observed
        latency, unfinished requests count as running until `horizon`."""
        within = self.times < horizon
        edges = np.concatenate(([0.0], self.times[within], [horizon]))
        heights = np.concatenate(([1.0], self.surviving[within]))
        return float(np.sum(np.diff(edges) * heights))

    def curve(self):
        """(latencies, share finished by then), steps upwards, for a plot."""
        return np.concatenate(([0.0], self.times)), np.concatenate(([0.0], 1 - self.surviving))


def block_numbers(times, start, stop, block_s):
    """Index of the block of `block_s` seconds that contains each time, and the number of blocks."""
    blocks = max(1, math.ceil((stop - start) / block_s - 1e-9))
    return np.clip(((np.asarray(times) - start) // block_s).astype(int), 0, blocks - 1), blocks


def bootstrap(statistic, blocks, seed, repeats=300, level=0.95):
    """Confidence interval of `statistic` by resampling blocks of time.

    Requests and bytes close in time are correlated, so whole blocks are drawn, not single requests.
    `statistic(drawn)` takes an array of block numbers (with repeats) and returns a number; nan and inf are left out.
    Returns (low, high), or None with fewer than 8 blocks or if most draws gave no number.
    """
    if blocks < 8:
        return None
    random = np.random.default_rng(seed)
    drawn = (statistic(random.integers(0, blocks, blocks)) for _ in range(repeats))
    values = [value for value in drawn if math.isfinite(value)]
    if len(values) < repeats / 2:
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
