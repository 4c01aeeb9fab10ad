# SPDX-License-Identifier: GPL-2.0-or-later
"""The service that users get, as one sentence for each topic of the run's workloads (base.spec.Answer): the figures
of MSF-RS, of unmodified Squid and of the best other remedy under one condition, and whether that is better.
"""
from dataclasses import dataclass
from typing import Callable

import numpy as np

from ..base.spec import FAIRNESS, QUEUE
from . import call, connections, stats, verdict, video, wording
from .measures import Measures
from .stats import StatsError
from .targets import OFF, OURS, STOCK, first_class, mean, ratio_interval

BETTER, SAME, WORSE, UNJUDGED = 'better', 'same', 'worse', verdict.UNJUDGED
#: Values that differ by less are the same: as much as is allowed between the patched Squid with `msfrs off` and the
#: unpatched one (targets.SAME). At half of it, that difference would count; twice of it can be felt on every page.
ALIKE = 0.05


@dataclass(frozen=True)
class Quantity:
    """A figure that people understand. `value` maps Measures and a class, or None for all users, to a number."""

    title: str                  #: of its picture, with the unit of its axis
    value: Callable
    form: Callable              #: a value, or its mean over several seeds, as text
    unit: float = 1.0           #: of the axis, in that of the value
    least: float = 0.0          #: a smaller difference is nothing to users, in the unit of the value
    more: bool = False          #: whether more is better
    by_class: bool = True       #: whether classes differ in it
    sample: Callable = None     #: the Sample whose mean it is, if any: noise is known then
    said: Callable = None       #: a list of Measures, one for each seed, to text, where that says more than the value
    drawn: str = None           #: name of the Quantity that shows more in a picture, if any

    def values(self, measured, name):
        """Its values by seed."""
        return [self.value(measures, name) for measures in measured]

    def mean(self, measured, name):
        return stats.mean_of(self.values(measured, name))


def _of_sample(title, sample):
    # 0.1 s: the delay below which people see an effect as immediate (Nielsen, Usability Engineering, 1993).
    return Quantity(title, lambda m, name: sample(m, name).mean(), wording.seconds, least=0.1, sample=sample)


def _rate_bps(measures, name):
    received = measures.class_bytes()
    amount = sum(received.values()) if name is None else received[name] / max(1, measures.cell.users_of(name))
    return amount * 8 / measures.cell.seconds


def _of_all(value):
    return lambda measures, _name: value(measures)


def _shares_error(measures, _name):
    if measures.paused_classes():
        raise StatsError('some class makes no requests for a while')
    return abs(stats.worst(measures.ratios()[1]))


def _bps(value):
    return wording.rate(float(f'{value:.3g}'))


#: The figures that a workload's sentences may contain, by name.
QUANTITIES = {
    'page': _of_sample('Page load, s', lambda m, name: m.page_sample(name)),
    'fcp': _of_sample('First paint, s', lambda m, name: m.page_sample(name, column='fcp_s')),
    'lcp': _of_sample('Largest paint, s', lambda m, name: m.page_sample(name, column='lcp_s')),
    'small': _of_sample('Objects of up to 16 kB, s', lambda m, name: m.sample(name, 'small')),
    'object': _of_sample('Objects, s', lambda m, name: m.sample(name)),
    'rate': Quantity('Bandwidth of a user, kbit/s', _rate_bps, _bps, unit=1e3, more=True),
    # 3 %: the largest error that the targets of shared links allow.
    'shares': Quantity('Error of the shares', _shares_error, wording.percent, least=0.03, by_class=False, drawn='rate',
                       said=lambda measured: wording.ratios(stats.mean_of([m.ratios()[0] for m in measured]))),
    'bitrate': Quantity('Bitrate of video, Mbit/s', video.bitrate, _bps, unit=1e6, more=True),
    # 1 %: what the target of playback allows.
    'stalled': Quantity('Playback stalled, % of the time', video.stalled_share, wording.percent, unit=0.01, least=0.01),
    # Jitter buffers work in whole packets.
    'delay': Quantity('Delay of voice (p95), ms', _of_all(call.p95_ms), wording.milliseconds, least=call.PACKET_MS,
                      by_class=False),
    # 0.1: half of what the target leaves below an undisturbed call.
    'score': Quantity('Opinion score of the call, 1 to 4.5', _of_all(call.score), '{:.2f}'.format, least=0.1, more=True,
                      by_class=False),
    # 5 ms: the queue that CoDel tolerates.
    'queue': Quantity("Delay in the provider's queue, ms", _of_all(Measures.queue_mean_ms), wording.milliseconds,
                      least=5.0, by_class=False),
    # 0.5 %: with it a TCP connection of 100 ms still reaches 2 Mbit/s (Mathis et al., 1997).
    'drops': Quantity('Packets dropped, %', _of_all(Measures.drop_share), wording.percent, unit=0.01, least=0.005,
                      by_class=False),
    # 0.5 %: half of one kind of a hundred.
    'works': Quantity('Connections that work, %', _of_all(connections.share), wording.percent, unit=0.01, least=0.005,
                      more=True, by_class=False),
    'cpu': Quantity("Squid's processor time, s/GB", _of_all(Measures.cpu_per_gb), wording.per_gb,
                    by_class=False),
}


def quantity(name):
    """The Quantity of that name. `pages.COLUMN` is the time in a column of pages.csv (s, empty where it was not
    reached), so that a workload can tell of times of its own."""
    table, _, column = name.partition('.')
    if table == 'pages' and column:
        return _of_sample(f'{column.removesuffix("_s")}, s', lambda m, cls: m.page_sample(cls, column=column))
    if name not in QUANTITIES:
        raise StatsError(f'{name} is no figure of this version')
    return QUANTITIES[name]


@dataclass(frozen=True)
class Told:
    """A sentence on a topic. why: why it is not judged; '' if it is."""

    topic: str
    clauses: tuple
    mark: str
    why: str
    group: dict             #: {arm: [Measures]}, one for each seed
    figures: tuple          #: names of its Quantities

    @property
    def cell(self):
        return self.group[OURS][0].cell

    @property
    def seeds(self):
        """How many seeds its figures are means of."""
        return len(self.group[OURS])

    def condition(self):
        return wording.over_seeds([measures.cell for measures in self.group[OURS]])

    def sentence(self, most=None):
        """The text, of at most so many clauses."""
        text = '; '.join(self.clauses[:most])
        return f'{text[0].upper()}{text[1:]}.'


def _stock(group):
    """The arm that the others are compared with."""
    return next((arm for arm in (STOCK, OFF) if arm in group), None)


def _peers(group):
    """The arms that others would use instead, as far as they are judged."""
    return [arm for arm, measured in group.items() if arm.startswith(('stock-', 'router-')) and arm != 'stock-quic'
            and not verdict.unjudged(*measured)]


def _compared(what, name, ours, stock):
    """BETTER, SAME or WORSE. Several seeds are the noise; of one it is known if the figure has a sample."""
    mine, theirs = what.values(ours, name), what.values(stock, name)
    gains = [(one - other) if what.more else (other - one) for one, other in zip(mine, theirs)]
    gain = stats.mean_of(gains)
    if gain == 0 or abs(gain) < max(what.least, ALIKE * abs(stats.mean_of(theirs))):
        return SAME
    if any(each * gain <= 0 for each in gains):
        return SAME
    if what.sample and len(gains) == 1:
        noise = ratio_interval(mean, what.sample(ours[0], name), what.sample(stock[0], name))
        if noise and noise[0] <= 1 <= noise[1]:
            return SAME
    return BETTER if gain > 0 else WORSE


def _clause(figure, text, group, leads):
    """(the clause, its mark or ''). StatsError if MSF-RS has no such figure."""
    what, stock = quantity(figure.partition(':')[0]), _stock(group)
    weights = group[OURS][0].cell.weights
    first = first_class(weights)
    name = first if figure.endswith(':first') else None

    def shown(arm):
        return what.said(group[arm]) if what.said else what.form(what.mean(group[arm], name))
    what.mean(group[OURS], name)       # refuses where the text alone would not
    try:
        said = text.format(shown(OURS), first=first, weights=wording.plain(weights))
    except (AttributeError, IndexError, KeyError, ValueError):
        raise StatsError(f'{text}: no sentence of this version') from None      # records may be of another one
    if stock is None or (theirs := wording.attempt(shown, stock)[0]) is None:
        return said, ''
    said += f' instead of {theirs}' + (' with unmodified Squid' if leads else '')
    values = {arm: wording.attempt(what.mean, group[arm], name)[0] for arm in _peers(group) if leads}
    known = {arm: value for arm, value in values.items() if value is not None}
    if known:
        best = (max if what.more else min)(known, key=known.get)
        said += f' ({wording.arm(best)}: {shown(best)})'
    return said, _compared(what, name, group[OURS], group[stock])


def _told(answer, group):
    """The Told of one Answer under one condition; None if its leading figure was not measured."""
    clauses, marks, figures = [], [], []
    for figure, text in answer.clauses.items():
        try:
            said, mark = _clause(figure, text, group, leads=not clauses)
        except StatsError:
            if not clauses:
                return None
            continue
        clauses.append(said)
        marks.append(mark)
        figures.append(figure.partition(':')[0])
    stock = _stock(group)
    why = verdict.unjudged(*(measures for arm in (OURS, stock) if arm for measures in group[arm]))
    if not why and '' in marks:
        why = 'Not judged: this run has no such figure of unmodified Squid.'
    mark = UNJUDGED if why else next((each for each in (WORSE, BETTER) if each in marks), SAME)
    return Told(answer.topic, tuple(clauses), mark, why, group, tuple(dict.fromkeys(figures)))


def _best(groups):
    """{arm: [Measures]} of those of `groups`, which differ in the seed alone, that tell most: the judged ones with both
    Squids, if there are any. An arm that is not in all of them is left out."""
    full = [group for group in groups if _stock(group)]
    judged = [group for group in full if not verdict.unjudged(group[OURS], group[_stock(group)])]
    taken = judged or full or groups
    return {arm: measured for arm, measured in verdict.merged(taken).items() if len(measured) == len(taken)}


def told(groups):
    """[Told], one for each topic of the run, over all seeds of a condition. Of several conditions that have a topic,
    the first in order is taken that has both Squids and is judged. A sentence is worse if any clause is, and better if
    none is and some clause is."""
    found = {}
    for group in map(_best, verdict.over_seeds([group for group in groups if OURS in group])):
        for answer in group[OURS][0].cell.profile.told():
            new, old = _told(answer, group), found.get(answer.topic)
            if new and (old is None or old.mark == UNJUDGED != new.mark):
                found[answer.topic] = new
    # Topics that many workloads share come last.
    return sorted(found.values(), key=lambda each: (each.topic == FAIRNESS.topic) + 2 * (each.topic == QUEUE.topic))
