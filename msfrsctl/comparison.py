# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether scheduling helps on a link: what slices of time with and without it say, compared in pairs.

Load changes from minute to minute, so a slice is compared only with its neighbour. The order within a pair is random: a
periodic load cannot favour one side. A difference counts if its sign is the same in so many pairs that chance alone
would do that in less than one of twenty comparisons (sign test, two-sided): 6 of 6, 8 of 8 or 9 of 10. It assumes
nothing about how times are distributed. Without I/O: `alternation` takes the samples.
"""
import bisect
import math
import random
from collections import namedtuple
from dataclasses import dataclass, field

#: Fewest pairs that can differ from chance: 6 of 6 have p = 0.03.
FEWEST = 6
CHANCE = 0.05
#: Bytes of a small object: one quantum, so it is never paused.
SMALL = 16384
#: Objects without which a slice says nothing about their times.
ENOUGH = 5
#: Values that differ by less than this part are alike: nobody would notice.
ALIKE = 0.02
#: A second counts as busy from this part of the rate on; scheduling acts on a busy link alone.
BUSY = 0.8
#: Part of the time for which the link must be busy; with less, both halves are alike for nearly all requests.
LOAD = 0.1


#: at: s of a clock; received: bytes that the link has carried so far; classes: {name: bytes so far}; queue: s at the
#: provider, None: unknown; rtt: s of a ping, None: lost or not sent.
Sample = namedtuple('Sample', 'at received classes queue rtt')
#: on: whether requests were scheduled; begin, end: of the measured part, s since 1970; samples: in it.
Slice = namedtuple('Slice', 'on begin end samples')


@dataclass
class Logged:
    """Records of access.log of a class in a slice: their number, the times of small objects, and of all (s)."""
    requests: int = 0
    small: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


class Half:
    """What the slices of one kind say. logged: for each slice {class: Logged}; rate: bit/s of the link; pinged: whether
    pings were sent."""

    def __init__(self, slices, logged, rate, pinged):
        samples = [sample for part in slices for sample in part.samples]
        steps = [(before, after) for part in slices for before, after in zip(part.samples, part.samples[1:])]
        took = sum(after.at - before.at for before, after in steps)
        self.seconds = took
        self.received = _per(sum(after.received - before.received for before, after in steps) * 8, took)
        self.used = _per(self.received, rate)
        self.busy = _per(sum(after.at - before.at for before, after in steps
                             if (after.received - before.received) * 8 >= BUSY * rate * (after.at - before.at)), took)
        queues, trips = (sorted(value for sample in samples if (value := getattr(sample, name)) is not None)
                         for name in ('queue', 'rtt'))
        self.queue, self.queue_p95 = quantile(queues, 0.5), quantile(queues, 0.95)
        self.rtt, self.rtt_p95 = quantile(trips, 0.5), quantile(trips, 0.95)
        self.lost = _per(len(samples) - len(trips), len(samples)) if pinged else None
        names = dict.fromkeys(name for sample in samples for name in sample.classes)
        self.classes = {name: Share(steps, logged, (name,), took) for name in names}
        self.all = Share(steps, logged, names, took)

    def data(self):
        return {**vars(self), 'classes': {name: vars(share) for name, share in self.classes.items()},
                'all': vars(self.all)}


class Share:
    """What some classes had: requests; bytes and rate (bit/s), headers of packets left out; small, small_p50 and
    small_p95: number and times (s) of small objects; mean: time of an object (s). Tunnels have none of these times: the
    end of a response in them is not known. Squid's count of open exchanges cannot replace them: it leaves out those
    whose server is silent, as many are without scheduling on a full link."""

    def __init__(self, steps, logged, names, took):
        before_after = [(before.classes[name], after.classes[name]) for before, after in steps for name in names
                        if name in before.classes and name in after.classes]
        rows = [of[name] for of in logged for name in names if name in of]
        self.requests = sum(row.requests for row in rows)
        # Counters restart with Squid; a step back says nothing.
        self.bytes = sum(max(after - before, 0) for before, after in before_after)
        self.rate = _per(self.bytes * 8, took)
        small, times = (sorted(time for row in rows for time in getattr(row, name)) for name in ('small', 'times'))
        self.small = len(small)
        self.small_p50, self.small_p95 = (quantile(small, share) if len(small) >= ENOUGH else None
                                          for share in (0.5, 0.95))
        self.mean = sum(times) / len(times) if len(times) >= ENOUGH else None


#: What is judged: key, words, whether less is better, and how it is read from a Half.
MEASURES = (('used', 'link used', False, lambda half: half.used),
            ('queue', 'queue at the provider, median', True, lambda half: half.queue),
            ('rtt', 'ping, median', True, lambda half: half.rtt),
            ('rtt_p95', 'ping, p95', True, lambda half: half.rtt_p95),
            ('small_p50', 'small objects, median time', True, lambda half: half.all.small_p50),
            ('small_p95', 'small objects, p95', True, lambda half: half.all.small_p95),
            ('mean', 'objects of any size, mean time', True, lambda half: half.all.mean))


def is_object(record):
    """Whether the time of a record of access.log is that of an object, delivered. A tunnel is also open while idle."""
    return record.method != 'CONNECT' and record.took is not None and record.refusal is None and \
        'ABORTED' not in (record.result or '')


def by_slice(slices, records):
    """{class: Logged} of each slice, by when a request began. slices: in order of time."""
    begins, found = [part.begin for part in slices], [{} for _ in slices]
    for record in records:
        at = bisect.bisect_right(begins, record.began) - 1 if record.began is not None and record.cls else -1
        if at >= 0 and record.began < slices[at].end:
            row = found[at].setdefault(record.cls, Logged())
            row.requests += 1
            if is_object(record):
                row.times.append(record.took)
                if (record.bytes or 0) <= SMALL:
                    row.small.append(record.took)
    return found


def order(pairs, seed):
    """[whether scheduling is on] of 2 * pairs slices."""
    chosen = random.Random(seed)
    return [on for _ in range(pairs) for on in chosen.sample((False, True), 2)]


def compare(slices, records, rate, pinged):
    """{off, on: of a Half; measures: {key: both values and a verdict}; classes: {name: verdict of `mean`};
    busy: part of the time; why_not: sentence if nothing is judged, or None}. slices: in pairs, by time; records: of
    access.log, in any order; rate: of the link, bit/s."""
    parts = list(zip(slices, by_slice(slices, records)))
    off, on = (Half(*zip(*(part for part in parts if part[0].on == wanted)), rate, pinged) for wanted in (False, True))
    pairs = [tuple(Half([part], [logged], rate, pinged) for part, logged in sorted(two, key=lambda part: part[0].on))
             for two in zip(parts[::2], parts[1::2])]
    busy = max(off.busy or 0, on.busy or 0)
    why_not = None if busy >= LOAD else \
        f'the link was at {BUSY:.0%} of its rate or more for {busy:.0%} of the time, and {LOAD:.0%} are needed: ' \
        f'scheduling changes nothing on a link that is not full. Run this in the busy hour'
    times_of = {name: [tuple(half.classes[name].mean if name in half.classes else None for half in pair)
                       for pair in pairs] for name in on.classes}
    return {'off': off.data(), 'on': on.data(), 'busy': busy, 'why_not': why_not,
            'classes': {name: judge(values, True) for name, values in times_of.items()},
            'measures': {key: {'off': read(off), 'on': read(on)} | judge([(read(a), read(b)) for a, b in pairs], less)
                         for key, _, less, read in MEASURES}}


def judge(pairs, less_is_better):
    """{better, of, so} of [(off, on)] values, None: unknown. better: pairs in which `on` was better; of: pairs in which
    both are known; so: better, worse, no difference, or not judged and why. Pairs that are ALIKE say nothing."""
    known = [(off, on) for off, on in pairs if off is not None and on is not None]
    differ = [(off, on) for off, on in known if not math.isclose(off, on, rel_tol=ALIKE)]
    better = sum((on < off) if less_is_better else (on > off) for off, on in differ)
    if len(known) < FEWEST:
        so = f'not judged: {len(known)} of {len(pairs)} pairs have enough samples, {FEWEST} are needed'
    elif sign_test(better, len(differ)) < CHANCE:
        so = 'better' if better * 2 > len(differ) else 'worse'
    else:
        so = 'no difference'
    return {'better': better, 'of': len(known), 'so': so}


def sign_test(better, count):
    """Probability that chance alone is at least as one-sided as this."""
    tail = sum(math.comb(count, number) for number in range(min(better, count - better) + 1)) / 2 ** count
    return min(1.0, 2 * tail)


def quantile(values, share):
    """Of sorted values, the nearest rank; None if there are none."""
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else None


def _per(amount, of):
    return amount / of if of else None
