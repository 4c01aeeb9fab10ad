# SPDX-License-Identifier: GPL-2.0-or-later
"""The columns of the tables of figures, for the text and for the page: of arms, and of arms by class."""
import math
from typing import Callable, NamedTuple

from ..analysis import connections, video, wording
from ..analysis.measures import PAINTS, Measures
from ..analysis.stats import StatsError
from ..analysis.targets import first_class
from ..analysis.wording import number, shown


class Column(NamedTuple):
    """A column of figures. value: of Measures and, in a table by class, the name of a class; form: it as text; title:
    its heading on the page, if that is not name()."""

    head: str
    unit: str
    width: int
    form: Callable
    value: Callable
    title: str = ''

    def name(self):
        return f'{self.head}, {self.unit}' if self.unit else self.head

    def text(self, measured, *of):
        """The figure of a list of Measures that differ in the seed alone, see wording.spread; NONE if one lacks it."""
        return shown(lambda values: wording.spread(self.form, values),
                     lambda: [self.value(measures, *of) for measures in measured])


def _percent(share):
    return f'{share * 100:.1f}'


def _whole(value):
    return f'{value:.0f}'


def _megabits(bps):
    return f'{bps / 1e6:.2f}'


def _reached(value):
    """A quantile, which too few pages may have reached."""
    return wording.NONE if math.isinf(value) else number(value)


def _per_user(measures):
    if not measures.saturated():
        raise StatsError('throughput shows the demand')
    return measures.ratios()[0]


def of_arms(weights):
    """The Columns of the table of arms; `weights` name the first class."""
    first = first_class(weights)
    return [
        Column('per user', '', 15, wording.ratios, _per_user, 'throughput per user'),
        Column('link', '%', 6, _percent, Measures.utilisation, 'link used, %'),
        Column('goodput', '%', 8, _percent, Measures.goodput_share, 'goodput, % of link'),
        Column('all', 's', 6, number, lambda m: m.sample().mean(), 'mean latency, s'),
        Column('<=16kB', 's', 7, number, lambda m: m.sample(None, 'small').mean(), 'up to 16 kB, s'),
        Column(first[:6], '<=16kB', 7, number, lambda m: m.sample(first, 'small').mean(),
               f'{first[:6]}, up to 16 kB, s'),
        Column('page', first[:6], 7, number, lambda m: m.page_sample(first).mean(), f'{first[:6]}, page load, s'),
        Column('queue', 'ms', 6, _whole, Measures.queue_mean_ms, 'ISP queue, ms'),
        Column('drops', '%', 6, _percent, Measures.drop_share, 'drops, % of packets'),
        Column('CPU', 's/GB', 6, '{:.1f}'.format, Measures.cpu_per_gb, 'CPU, s/GB'),
        Column('RSS', 'MB', 5, _whole, Measures.peak_rss_mb, 'RSS, MB'),
    ]


class ByClass(NamedTuple):
    """A table with a row for each arm and class. present: of Measures and a class; StatsError if they have no row."""

    present: Callable
    columns: tuple


def _outcomes(*wanted):
    """Pages of a class with these outcomes, all if none is named."""
    return lambda m, name: sum(count for outcome, count in m.page_outcomes(name).items()
                               if not wanted or outcome in wanted)


def _quantile(share, column):
    return lambda m, name: m.page_sample(name, column=column).quantile(share)


#: Measured by browsers: pages, and median and p95 until the first and the largest paint and the load event. What
#: players showed: the median start-up, and the quality of Yin et al., for each segment.
BY_CLASS = (
    ByClass(lambda m, name: m.page_sample(name, column=PAINTS[0]), (
        Column('pages', '', 6, _whole, _outcomes()), Column('cut', '', 6, _whole, _outcomes('unfinished')),
        Column('failed', '', 7, _whole, _outcomes('error')),
        *(Column(head, 's', 9, _reached, _quantile(share, column))
          for what, column in zip(('FCP', 'LCP', 'load'), (*PAINTS, None))
          for head, share in ((what, 0.5), (f'{what} p95', 0.95))))),
    ByClass(video.players, (
        Column('players', '', 9, _whole, video.players), Column('bitrate', 'Mbit/s', 9, _megabits, video.bitrate),
        Column('stalled', '%', 9, _percent, video.stalled_share),
        Column('start-up', 's', 10, _reached, lambda m, name: video.startup(m, name).quantile(0.5)),
        Column('switches', '/min', 10, number, video.switches_per_minute),
        Column('quality', 'Mbit/s', 9, _megabits, video.quality_bps))))


def of_kinds(group):
    """(heads, rows) of the table of connections by kind and arm, `group` being {arm: [Measures]}; None without any."""
    if any(measures.cell.connections is None for measured in group.values() for measures in measured):
        return None

    def text(measured, kind):
        works, count, median = connections.of_kind(measured, kind)
        return f'{works} of {count}' + ('' if median is None else f', {wording.seconds(median)}')
    return (['connections that work, median time', *map(wording.arm, group)],
            [[kind, *(text(measured, kind) for measured in group.values())]
             for kind in connections.kinds([each for measured in group.values() for each in measured])])


def by_class(group):
    """Yields (Columns, rows) of each table of BY_CLASS with rows, `group` being {arm: [Measures]}. Rows begin with arm
    and class."""
    for table in BY_CLASS:
        rows = [[wording.arm(arm), name, *(column.text(measured, name) for column in table.columns)]
                for arm, measured in group.items() for name in measured[0].cell.weights
                if wording.attempt(table.present, measured[0], name)[0] is not None]
        if rows:
            yield table.columns, rows
