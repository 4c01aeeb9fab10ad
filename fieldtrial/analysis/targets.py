# SPDX-License-Identifier: GPL-2.0-or-later
"""The targets of the field trial, as data: which arms, under which workload, by which figure, within which limit."""
import math
import operator
from dataclasses import dataclass, field
from typing import Callable

from ..base.disturbance import ENDS, LABELS
from . import call, paper, recovery, stats, video, wording, work
from .measures import SIZE_LABELS, Measures
from .stats import StatsError
from .wording import milliseconds, percent, seconds

OURS, PAPER_ARM, STOCK, HTB, EDGE, OFF = 'msfrs', 'msfrs-paper', 'stock', 'stock-htb', 'msfrs-edge', 'off'
AUTO = 'msfrs-auto'
STOCK_QUIC, PARTY = 'stock-quic', 'msfrs-edge-party'
DEEP_BDP = 4.0      # an ISP buffer of at least this many bandwidth-delay products is called deep


@dataclass(frozen=True)
class Figure:
    """A measured figure of a target: its value, its text, a 95 % confidence interval (low, high) of the value or None,
    and the text for a sentence, in which "{other}" stands for the arm compared with; `text` if empty."""

    value: float
    text: str
    interval: tuple = None
    said: str = ''


@dataclass(frozen=True)
class Target:
    """A target that an arm must reach.

    `measure(ours)` or, with `against`, `measure(ours, other)` on Measures gives a Figure. `limit` is a number, or a
    function of the cell. Every cell of `workloads` that passes `only` is judged.
    "{first}" in `name` and `plain` stands for the class with the greatest weight.
    """

    section: str
    name: str
    workloads: tuple
    measure: Callable
    rule: tuple             # (value, limit) -> whether it is reached; limit -> text
    limit: object
    plain: str              # the measured quantity, as the subject of a sentence
    against: str = None
    arm: str = OURS
    only: Callable = field(default=lambda cell: True)
    traced: bool = False    # whether it applies only to links whose rate follows a trace

    def judges(self, cell):
        return cell.workload in self.workloads and bool(cell.trace) == self.traced and self.only(cell)

    def compared(self):
        return f'{wording.arm(self.arm)} / {wording.arm(self.against)}' if self.against else wording.arm(self.arm)


def ratio(value, reference):
    """value / reference for latencies and drops: 0/0 is 0; inf (too few finished to tell) over a number is inf."""
    if math.isinf(value):
        return math.inf
    if reference == 0:
        return 0.0 if value == 0 else math.inf
    return value / reference


# --- figures of single arms ------------------------------------------------------------------------------------------

def of_one(value, form):
    """Figure of one arm: `value` of Measures, as a number and as text formatted by `form`."""
    def measure(measures):
        found = value(measures)
        return Figure(found, form(found))
    return measure


queue_delay, queue_p95 = (of_one(value, milliseconds) for value in (Measures.queue_mean_ms, Measures.queue_p95_ms))
utilisation = of_one(Measures.utilisation, lambda value: percent(value, 2))


def _error(ratios, errors, more=''):
    """Figure of the throughput ratios per user of a class: the largest deviation from the weights."""
    farthest = stats.worst(errors)
    return Figure(abs(farthest), f'{wording.ratios(ratios)} ({wording.signed_percent(farthest, 2)}){more}')


def weights_error(measures):
    """Largest deviation of the throughput ratios per user from the weights."""
    return _error(*measures.ratios())


def bitrate_of_due(measures):
    """The players' bitrate over the bitrate that their share carries, in the class where this is least."""
    value, rates = video.least_of_due(measures)
    return Figure(value, f'{percent(value)}: {video.text(rates)}')


def recovery_error(disturbance):
    """The same from 10 s to 20 s after the end of a disturbance; of several occurrences the worst."""
    def measure(measures):
        worst, fine, count = recovery.farthest(measures, disturbance)
        return Figure(abs(worst.worst),
                      f'{recovery.counted(fine, count)}{worst.text}; {recovery.alone(measures.cell)}')
    return measure


def pooled_error(disturbance):
    """The same over the ten seconds of all occurrences together."""
    def measure(measures):
        ratios, errors, count = recovery.together(measures, disturbance)
        if count == 1:
            raise StatsError('the disturbance occurred once; disturbed.repeat repeats it')
        return _error(ratios, errors, f' over {count} occurrences')
    return measure


def phases_error(measures):
    """The same in each phase; the worst of all."""
    phases = measures.phase_ratios()
    if not phases:
        raise StatsError('no phase has two active classes')
    farthest = max((stats.worst(errors) for _, _, errors in phases), key=abs)
    words = ' | '.join(wording.ratios(ratios) for _, ratios, _ in phases)
    return Figure(abs(farthest), f'{words} ({wording.signed_percent(farthest, 2)})')


def beside_error(measures):
    """Deviation of the first user's total, requests and stream together, from the mean of the others of its class."""
    by_request, beside, fair = measures.with_beside()
    error = (by_request + beside) / fair - 1
    return Figure(abs(error), f'{percent(by_request / fair)} by request and '
                              f'{percent(beside / fair)} beside ({wording.signed_percent(error)})')


def due_error(of_link):
    """Largest deviation from the fair share of the users of a class who speak HTTP/3, or of those who do not, in bytes
    on the link or in bodies."""
    def measure(measures):
        shares = measures.due_shares(of_link)
        farthest = max((share - 1 for share in shares.values()), key=abs)
        return Figure(abs(farthest), f'{wording.due_shares(shares)} ({wording.signed_percent(farthest)})')
    return measure


def lacking_beside_flood(measures):
    """How far the others' share of the link is below the part that a flood leaves if all of it is delivered, of C."""
    left, had = 1 - measures.cell.parameters['flood'], measures.others_share()
    return Figure(max(0.0, left - had), f'{percent(left - had)} ({percent(left)} left, {percent(had)} had)')


# --- figures of two arms ---------------------------------------------------------------------------------------------

def _compared(value, reference, form, interval=None):
    share = ratio(value, reference)
    words = percent(share) if math.isfinite(share) else 'more'
    return Figure(share, f'{words} ({form(value)} / {form(reference)})', interval,
                  f"{form(value)}, {words} of {{other}}'s {form(reference)}")


def _relative(statistic, mine, theirs, interval=True):
    """Figure of two Samples: the ratio of their `statistic`."""
    return _compared(statistic(mine), statistic(theirs), seconds,
                     ratio_interval(statistic, mine, theirs) if interval else None)


def ratio_interval(resample, ours, other):
    """Bootstrap interval of the ratio of a statistic of two samples; both runs had the same offered load, so the same
    blocks are drawn from both."""
    if ours.blocks != other.blocks:
        return None

    def drawn_ratio(drawn):
        try:
            value, reference = resample(ours, ours.redrawn(drawn)), resample(other, other.redrawn(drawn))
        except StatsError:
            return math.nan
        return math.nan if math.isinf(reference) else ratio(value, reference)
    return stats.bootstrap(drawn_ratio, ours.blocks, seed=1)


def mean(sample, survival=None):
    """The statistic of most targets of latency: the mean of a Sample, or of what is redrawn of it."""
    return sample.mean(survival)


def _p95(sample, survival=None):
    return sample.quantile(0.95, survival)


def _class(name, measures):
    return name(measures.cell.weights) if callable(name) else name


def latency(statistic, name=None, size=None, of_all=False):
    """Figure of two arms: `statistic` of the latency of a class (`name`, or a function that picks it from the weights)
    and a size, relative to the same of the other arm, or to all classes of the other arm (`of_all`)."""
    def measure(ours, other):
        chosen = _class(name, ours)
        return _relative(statistic, ours.sample(chosen, size), other.sample(None if of_all else chosen, size))
    return measure


def relative_mean(ours, other, name=None, size=None, near=None):
    """Figure of two arms: mean latency of a class, a size or a group of servers; with an interval only for all
    requests, because each interval takes hundreds of draws."""
    which = name, size, near
    return _relative(mean, ours.sample(*which), other.sample(*which), interval=which == (None, None, None))


def worst_class(statistic, size=None):
    """Figure of two arms: the class with the greatest ratio of `statistic` to the same class of the other arm."""
    def measure(ours, other):
        figures = {name: latency(statistic, name, size)(ours, other) for name in ours.cell.weights
                   if ours.cell.users_of(name)}
        name = max(figures, key=lambda key: figures[key].value)
        figure = figures[name]
        return Figure(figure.value, f'{name}: {figure.text}', figure.interval, f'{figure.said} in {name}')
    return measure


def pages(name=None, http3=False, statistic=mean):
    """Figure of two arms: page load time of one class, as for latency(); `http3`: only of users who speak it."""
    def measure(ours, other):
        return _relative(statistic, *(side.page_sample(_class(name, side), http3) for side in (ours, other)))
    return measure


def of_both(value, form):
    """Figure of two arms: ratio of a method of Measures, without an interval."""
    return lambda ours, other: _compared(value(ours), value(other), form)


def alike(value, form):
    """Figure of two arms: relative difference between the two arms' values."""
    def measure(ours, other):
        if not other.cell.squid_is_stock:
            raise StatsError('stock is the patched Squid in this run')
        mine, theirs = value(ours), value(other)
        apart = mine / theirs - 1
        return Figure(abs(apart), f'{wording.signed_percent(apart)} ({form(mine)} / {form(theirs)})')
    return measure


def taken_from_others(ours, other):
    """Figure of two arms: the loss of all but the flooded user relative to the other arm, as a share of C."""
    mine, theirs = ours.others_share(), other.others_share()
    return Figure(theirs - mine, f'{percent(theirs - mine)} ({percent(mine)} / {percent(theirs)})')


def first_class(weights):
    return max(weights, key=weights.get)


# --- the targets -----------------------------------------------------------------------------------------------------

AT_MOST = operator.le, lambda limit: f'at most {percent(limit, 0)}'
AT_LEAST = operator.ge, lambda limit: f'at least {percent(limit, 2)}'
WITHIN = operator.le, lambda limit: f'within {percent(limit, 0)}'
BELOW = operator.lt, lambda limit: f'below {percent(limit, 0)}'
MOST_MS = operator.le, lambda limit: f'at most {limit:g} ms'
SCORE = operator.ge, lambda limit: f'at least {limit:g}'
NOT_LESS = operator.ge, lambda limit: f'at least {percent(limit, 0)}'

TUNNELS, DISTURBED, SAME = 'Over kept tunnels', 'After a disturbance', 'Patched, and off'
FEW, VIDEO, CALL = 'Few users', 'Video', 'A call'
SHARING, CBR, SMALL, OPEN = 'Sharing and utilisation', 'CBR beside', 'Small objects, backlogged', 'Open arrivals'
SCALE = 'A fast link, and many users'
BESIDE, VARIABLE_RATE = 'Traffic beside Squid', 'A variable-rate link'
QUIC = 'HTTP/3 beside TCP'
SILENT = 'Servers that are silent, slow or steady'
PAGES, QUEUE, COST, TRUST, CLAIM = 'Page loads', "The ISP's queue", 'Cost', 'Requests lost', "The paper's claim"
RATIO = "The ratio of the classes' throughput"

QUEUE_OF_BOTH = of_both(Measures.queue_mean_ms, milliseconds)
WORK_OF_BOTH = of_both(work.unfinished_bytes, wording.kilobytes)
DROPS_OF_BOTH = of_both(Measures.drops_per_mb, lambda count: f'{wording.number(count)}/MB')
CPU_OF_BOTH = of_both(Measures.cpu_per_gb, wording.per_gb)


def _flood(cell):
    """Rate of the unresponsive UDP beside Squid, of C."""
    return cell.parameters.get('flood', 0)


def _calm(cell):
    return not _flood(cell)


def _some_left(cell):
    return 0 < _flood(cell) < 1


def _many(cell):
    return len(cell.users) >= 2000


def _table_1(cell):
    """The paper's utilisation for this cell; StatsError for a share that table 1 does not have."""
    found = paper.cbr_utilisation(cell.parameters.get('share', math.nan), cell.parameters.get('period_s', math.nan))
    if found is None:
        raise StatsError("the paper's table 1 has no CBR of this share")
    return found[0]


def _over_tunnels():
    """Targets of today's traffic: https-backlogged, https-pages, https-open."""
    yield Target(TUNNELS, 'throughput ratio, kept tunnels', ('https-backlogged',), weights_error, WITHIN, 0.03, RATIO)
    for name, which, against, word, limit in (('{first}', first_class, STOCK, 'stock', 0.60),
                                              ('{first}', first_class, HTB, 'HTB', 0.85),
                                              ('all pages', None, STOCK, 'stock', 1.00)):
        yield Target(TUNNELS, f'{name} against {word}, kept tunnels', ('https-pages',), pages(which), AT_MOST, limit,
                     f'The mean page load of {name}', against=against)
    yield Target(TUNNELS, 'mean delay in the queue, pages', ('https-pages',), QUEUE_OF_BOTH, AT_MOST, 0.50,
                 "The mean delay in the ISP's queue", against=STOCK)
    yield Target(TUNNELS, 'drops per MB, pages', ('https-pages',), DROPS_OF_BOTH, AT_MOST, 0.10,
                 'The number of packets dropped per megabyte', against=STOCK)
    for name, which, limit in (('{first}', first_class, 0.40), ('all objects', None, 0.85)):
        yield Target(TUNNELS, f'{name}, open arrivals, mean', ('https-open',), latency(mean, which), AT_MOST, limit,
                     f'The mean latency of {name}', against=STOCK)
    saturated = ('https-backlogged', 'backlogged')
    yield Target(QUEUE, 'mean delay, saturated', saturated, queue_delay, MOST_MS, 60.0,
                 "The mean delay in the ISP's queue")
    yield Target(QUEUE, 'utilisation, saturated', saturated, utilisation, AT_LEAST, 0.985,
                 'The utilisation of the link')


def _off_is_stock():
    """Targets that show that the patched Squid may stand for the unpatched one; judged if a run has both."""
    for name, value, form in (('mean latency', lambda m: m.sample().mean(), seconds),
                              ('utilisation', Measures.utilisation, percent),
                              ('CPU seconds per byte', Measures.cpu_per_gb, wording.per_gb)):
        yield Target(SAME, f'{name}, off against unpatched', ('https-backlogged', 'https-open', 'backlogged', 'open'),
                     alike(value, form), WITHIN, 0.05, f'The {name} of the patched Squid with msfrs off',
                     against=STOCK, arm=OFF)


def _http3_beside_tcp():
    """Users of HTTP/3 next to users of TCP: QUIC rejected, so that all traffic passes Squid, or scheduled by
    msfrs-edge; against QUIC that bypasses an unmodified Squid."""
    for arm, words in ((OURS, 'QUIC rejected'), (PARTY, 'QUIC scheduled')):
        for what, of_link in (('the link', True), ('bodies', False)):
            yield Target(QUIC, f"users' shares of {what}, {words}", ('quic-backlogged',), due_error(of_link), WITHIN,
                         0.05, f'What the users of a class had, in shares of {what}, of what is due to them', arm=arm,
                         only=_calm)
        yield Target(QUIC, f'{{first}}, users of HTTP/3, {words}', ('quic-pages',), pages(first_class, http3=True),
                     AT_MOST, 0.70, 'The mean page load of users of HTTP/3 in {first}', against=STOCK_QUIC, arm=arm)
        yield Target(QUIC, f'what a flood takes from others, {words}', ('quic-backlogged',), taken_from_others, AT_MOST,
                     0.02, 'What a flood took from others, of the link', against=STOCK_QUIC, arm=arm,
                     only=lambda cell: _flood(cell) >= 1)
        yield Target(QUIC, f'what others lack of what a flood leaves, {words}', ('quic-backlogged',),
                     lacking_beside_flood, AT_MOST, 0.02, 'What others lacked of what a flood left, of the link',
                     arm=arm, only=_some_left)
        yield Target(QUIC, f"others' shares beside a flood, {words}", ('quic-backlogged',), due_error(True), WITHIN,
                     0.05, 'What the users of a class had beside a flood, of what is due to them', arm=arm,
                     only=_some_left)
    yield Target(QUIC, 'mean delay in the queue, QUIC scheduled', ('quic-backlogged', 'quic-pages'), QUEUE_OF_BOTH,
                 AT_MOST, 1.30, "The mean delay in the ISP's queue", against=OURS, arm=PARTY, only=_calm)


def _after_disturbances():
    lasting = [LABELS[kind] for kind in ENDS]
    for label in (*LABELS.values(), *ENDS.values()):
        rule = WITHIN, 0.05 if label in lasting else 0.03

        def times(cell, label=label):
            return [phase.get('after') for phase in cell.phases].count(label)
        yield Target(DISTURBED, f'all occurrences together: {label}', ('disturbed',), pooled_error(label), *rule,
                     f'{RATIO} 10 to 20 s after all such disturbances', only=lambda cell, times=times: times(cell) > 1)
        yield Target(DISTURBED, f'throughput ratio after: {label}', ('disturbed',), recovery_error(label), *rule,
                     f'{RATIO} 10 to 20 s after the disturbance', only=times)


def _small_objects():
    size = SIZE_LABELS['small']
    for word, statistic in (('mean', mean), ('p95', _p95)):
        for who, measure, limit in (('{first}', latency(statistic, first_class, 'small'), 0.30),
                                    ('all classes', latency(statistic, None, 'small'), 0.40),
                                    ('every class', worst_class(statistic, 'small'), 0.60)):
            yield Target(SMALL, who + f', {word}', ('backlogged',), measure, AT_MOST, limit,
                         f'The {word} latency of objects {size} (' + who + ')', against=STOCK)


def _silent_servers():
    """Servers that take nothing or little of the link do not take it from others; pages as with no scheduling at all,
    but for one request held for a round trip. On a link that is not full nothing is left to use."""
    yield Target(SILENT, 'utilisation', ('silent',), utilisation, AT_LEAST, 0.95, 'The utilisation of the link',
                 only=lambda cell: cell.parameters.get('beside', 2))
    yield Target(SILENT, 'pages, p95', ('silent',), pages(statistic=_p95), AT_MOST, 1.50,
                 'The p95 of page loads', against=OFF)


def _traced():
    """A variable-rate link whose rate is estimated."""
    def target(*what, **more):
        return Target(VARIABLE_RATE, what[0], ('https-backlogged', 'backlogged'), *what[1:], arm=AUTO, traced=True,
                      **more)
    yield target('utilisation of what the link offered', utilisation, AT_LEAST, 0.85, 'The utilisation of the link')
    yield target('delay in the queue, p95', queue_p95, MOST_MS, 250.0, "The p95 of the delay in the ISP's queue")
    yield target('throughput ratio', weights_error, WITHIN, 0.05, RATIO)
    yield target('small objects, mean', latency(mean, None, 'small'), AT_MOST, 0.50,
                 f'The mean latency of objects {SIZE_LABELS["small"]}', against=STOCK)


def _scale():
    """The cost of scheduling if processors are the limit, and fairness with many users."""
    for name, measure, rule in (
            ('throughput, msfrs against off', of_both(Measures.served_share, percent), (NOT_LESS, 0.95)),
            ('CPU seconds per byte, msfrs against off', CPU_OF_BOTH, (AT_MOST, 1.05))):
        yield Target(SCALE, name, ('scale',), measure, *rule, f'The {name}', against=OFF)
    yield Target(SCALE, 'throughput ratio, 2,000 users', ('backlogged',), weights_error, WITHIN, 0.03, RATIO,
                 only=_many)
    yield Target(SCALE, 'small objects, 2,000 users', ('backlogged',), latency(mean, None, 'small'), AT_MOST, 0.30,
                 f'The mean latency of objects {SIZE_LABELS["small"]}', against=STOCK, only=_many)


TARGETS = (
    *_over_tunnels(),
    *_silent_servers(),
    *_traced(),
    Target(FEW, 'throughput ratio, few users', ('few',), weights_error, WITHIN, 0.03, RATIO),
    Target(BESIDE, 'what the users through Squid have', ('bypass',), of_both(Measures.served_share, percent), NOT_LESS,
           0.90, 'The share of the link that users through Squid had beside users who bypass it', against=STOCK),
    Target(BESIDE, 'throughput ratio of the users through Squid', ('bypass',), weights_error, WITHIN, 0.03,
           f'{RATIO} through Squid'),
    Target(VIDEO, 'bitrate of the class that has least of its share', ('video',), bitrate_of_due, AT_LEAST, 0.95,
           "The bitrate of players, of what their users' max-min share carries"),
    Target(VIDEO, 'playback stalls', ('video',), of_one(video.stalled_share, percent), AT_MOST, 0.01,
           'The share of the time in which playback stood still'),
    Target(CALL, 'delay, p95', ('call',), of_one(call.p95_ms, milliseconds), MOST_MS, 100,
           'The 95th percentile of the delay of the call'),
    Target(CALL, 'mean opinion score', ('call',), of_one(call.score, '{:.2f}'.format), SCORE, 4.2,
           'The score of the call'),
    *_http3_beside_tcp(),
    *_after_disturbances(),
    *_off_is_stock(),
    *_scale(),
    Target(SHARING, 'throughput ratio', ('backlogged',), weights_error, WITHIN, 0.02, RATIO),
    Target(SHARING, 'ratio per user', ('unequal',), weights_error, WITHIN, 0.02,
           'The ratio of the throughput per user'),
    Target(SHARING, 'ratio in every phase', ('phases',), phases_error, WITHIN, 0.02,
           'The ratio of the throughput in the worst phase'),
    *(Target(SHARING, f'utilisation, {title}', (name,), utilisation, AT_LEAST, 0.98, 'The utilisation of the link')
      for name, title in (('backlogged', 'backlogged'), ('unequal', 'unequal users'), ('phases', 'class phases'))),
    Target(CBR, 'utilisation', ('cbr',), utilisation, AT_LEAST, _table_1, 'The utilisation of the link under CBR'),
    Target(BESIDE, 'with what comes beside Squid, a fair share', ('excess',), beside_error, WITHIN, 0.05,
           'What a user had who also received traffic beside Squid', arm=EDGE),
    *_small_objects(),
    Target(OPEN, 'all objects, mean', ('open',), latency(mean), AT_MOST, 1.00, 'The mean latency of all objects',
           against=STOCK),
    Target(OPEN, 'unfinished work', ('https-open', 'open'), WORK_OF_BOTH, AT_MOST, 1.05,
           'The unfinished work, on average over time,', against=STOCK),
    Target(OPEN, "{first} against stock's mean of all", ('open',), latency(mean, first_class, of_all=True), AT_MOST,
           0.65, 'The mean latency of {first}', against=STOCK),
    Target(OPEN, 'better than HTB in every class', ('open',), worst_class(mean), BELOW, 1.00,
           'The mean latency of the class that does worst', against=HTB),
    Target(PAGES, '{first} against stock', ('pages',), pages(first_class), AT_MOST, 0.70,
           'The mean page load of {first}', against=STOCK),
    Target(PAGES, '{first} against HTB', ('pages',), pages(first_class), AT_MOST, 0.90,
           'The mean page load of {first}', against=HTB),
    Target(QUEUE, 'mean delay, deep buffer', ('backlogged', 'pages'), QUEUE_OF_BOTH, AT_MOST, 0.50,
           "The mean delay in the ISP's queue", against=STOCK, only=lambda cell: cell.buffer_bdp >= DEEP_BDP),
    Target(QUEUE, 'drops per MB', ('backlogged', 'pages'), DROPS_OF_BOTH, AT_MOST, 1 / 3,
           'The number of packets dropped per megabyte', against=STOCK),
    Target(COST, 'CPU seconds per byte', ('backlogged',), CPU_OF_BOTH, AT_MOST, 0.75,
           "Squid's CPU time for the same bytes", against=STOCK),
)
