# SPDX-License-Identifier: GPL-2.0-or-later
"""The content of the page's sections: plots and rows. Their layout is in template.html."""
import shlex
from typing import Callable, NamedTuple

from markupsafe import Markup

from ..analysis import verdict, wording, work
from ..analysis.measures import Measures
from . import columns, figures


def cell_of(group):
    """A cell of a condition; its cells differ only in the arm."""
    return next(iter(group.values())).cell


def arms(groups):
    """All arms of the run, in order."""
    return sorted({arm for group in groups for arm in group}, key=wording.arm_order)


class Plots(NamedTuple):
    """A section of plots. key: meaning of the colours, 'class', 'arm' or ''. draw: maps a condition's {arm: Measures}
    to its panels. kind: which workloads have it, by base.spec.Profile; None: any may."""

    id: str
    title: str
    intro: str
    key: str
    draw: Callable
    kind: str = None


def _of_each(draw):
    """The panels of the arms of a condition; None for an arm that has not recorded what is drawn."""
    return lambda group: [wording.attempt(draw, measures)[0] for measures in group.values()]


def _queue(group):
    top = figures.queue_top_ms(group)
    return [*_of_each(lambda measures: figures.queue(measures, top))(group), figures.queue_curves(group)]


_PLOTS = (
    Plots('throughput', 'Throughput by class', "Bytes of bodies that the users of a class received. Dashed: the link's "
          'capacity C, headers included, so that bodies alone stay some 5 % below. Grey: not measured.', 'class',
          _of_each(figures.throughput), 'saturated'),
    Plots('window', 'Utilisation and window', 'Above: share of C that the link carried. Below: released requests W and '
          'the window W+. Dark bars at the bottom: CBR on.', '', _of_each(figures.window)),
    Plots('rate', 'A variable-rate link', 'Area: what the link could carry. Grey line: what it did. Coloured: what '
          'it was taken for, where that was looked for.', '', _of_each(figures.rate)),
    Plots('latency', 'Latency by class and by size', 'Share of requests finished within a time, by class and by size; '
          'logarithmic; dashed: p95. A curve that ends below 1 belongs to requests that were unfinished at the end.',
          'arm', figures.latency_panels, 'latency'),
    Plots('pages', 'Page loads', "From the page's first request to its last byte. Dot and figure: mean; line: median "
          'to p95, to the edge of the plot where too few finished to know p95.', '',
          lambda group: [figures.page_loads(group, name) for name in cell_of(group).weights]),
    Plots('queue', "The ISP's queue", "How long a packet that arrives at the ISP's queue has to wait: backlog over C. "
          'Line: mean of each interval drawn; area: its greatest value.', 'arm', _queue, 'queue'),
)


def plots(groups):
    """Yields (Plots, [(a condition's {arm: Measures}, its panels)]) for each section with content. In sections open to
    all workloads, conditions without panels are left out."""
    for plot in _PLOTS:
        parts = [(group, [panel for panel in plot.draw(group) if panel]) for group in groups
                 if plot.kind is None or getattr(cell_of(group).profile, plot.kind)]
        parts = [(group, drawn) for group, drawn in parts if drawn or plot.kind]
        if parts:
            yield plot, parts


def cost(groups):
    """Panels of unfinished work, drops, goodput, CPU and memory of all arms under all conditions."""
    drawn = (figures.dots(groups, *of) for of in (
        ('Unfinished work', 'kB, mean over time', lambda m: work.unfinished_bytes(m) / 1e3),
        ('Packets dropped by the ISP', 'packets per MB', Measures.drops_per_mb),
        ('Goodput', '% of the bytes on the link', lambda m: m.goodput_share() * 100),
        ("Squid's CPU time", 's per GB of bodies', Measures.cpu_per_gb),
        ("Squid's memory", 'MB resident, peak', Measures.peak_rss_mb)))
    return [panel for panel in drawn if panel]


def _below(text):
    """A figure with its spread below, where there is one (wording.spread)."""
    mean, bracket, spread = text.partition(' (')
    return Markup('{}<div class="note">{}</div>').format(mean, spread.removesuffix(')')) if bracket else text


def overview(group):
    """(head, rows) of the terminal's table without empty columns, `group` being {arm: [Measures]}."""
    arms_columns = columns.of_arms(next(iter(group.values()))[0].cell.weights)
    names = ['', *(column.title for column in arms_columns)]
    rows = [[wording.arm(arm), *(_below(column.text(measured)) for column in arms_columns)]
            for arm, measured in group.items()]
    kept = [place for place in range(len(names)) if any(row[place] != wording.NONE for row in rows)]
    return [names[place] for place in kept], [[row[place] for place in kept] for row in rows]


def by_class(group):
    """Yields (head, rows) of the tables by arm and class, see columns.by_class."""
    for heads, rows in columns.by_class(group):
        yield ['', 'class', *(column.name() for column in heads)], [[*row[:2], *map(_below, row[2:])] for row in rows]


def savings(found):
    """Rows of verdict.savings: the saving of each subject, marked by whether it agrees with the paper, or none."""
    return [[f'{wording.workload(saving.cell)}: {wording.setting(saving.cell)}', wording.arm(saving.cell.arm),
             *map(_saved, saving.figures.values())] for saving in found]


def _saved(figure):
    if isinstance(figure, str):
        return Markup('<span title="{}">{}</span>').format(figure, wording.NONE)
    share = 1 - figure.value
    kind = Markup(' class="more"') if share >= 0.23 else Markup(' class="less"') if share < 0 else ''
    detail = f'{figure.text}' + (f'; ratio 95 %: {wording.interval(figure.interval)}' if figure.interval else '')
    return Markup('<span{} title="{}">{}</span>').format(kind, detail, wording.signed_percent(share, 0))


def sentences(judged):
    """{outcome: sentences}."""
    found = {outcome: [row.sentence for row in judged.rows if row.outcome == outcome]
             for outcome in (verdict.MISSED, verdict.FINDING, verdict.UNJUDGED)}
    found[verdict.FINDING] = [sentence for sentence in found[verdict.FINDING] if sentence]
    found[verdict.UNJUDGED] = list(dict.fromkeys(found[verdict.UNJUDGED]))
    return found


def _value(value):
    if isinstance(value, dict):
        return ', '.join(f'{name} {_value(inner)}' for name, inner in value.items()) or wording.NONE
    if isinstance(value, (list, tuple)):
        return ', '.join(map(_value, value)) or wording.NONE
    return f'{value:g}' if isinstance(value, float) else str(value)


def settings(groups):
    for cell in map(cell_of, groups):
        yield [wording.condition(cell), wording.plain(cell.weights), _value(cell.parameters),
               f'{cell.buffer_bytes / 1e3:g} kB', f'{cell.t_start:g} to {cell.t_stop:g} s', _value(cell.sizes),
               cell.seed]


def versions(run):
    found = {}
    for cell in run.cells:
        for name, version in cell.versions.items():
            if version:
                found.setdefault(name, {})[version] = None
    return [[name, ', '.join(each)] for name, each in found.items()]


def rtts(run):
    """The round-trip times of the servers, each distinct set once."""
    return '; '.join(_value([f'{rtt:.0f}' for rtt in each]) for each in sorted({cell.rtts_ms for cell in run.cells}))


def command(run):
    return shlex.join(['sudo', './trial', *map(str, run.meta.get('argv') or [])])


def stock_programs(run):
    """Which Squids the stock arms ran, as text."""
    return sorted({'the unpatched program of the same version' if cell.squid_is_stock else
                   'the patched program with msfrs off' for cell in run.cells if cell.arm.startswith('stock')})


def confs(run):
    """{arm: squid.conf of its first cell}."""
    found = {}
    for cell in run.cells:
        found.setdefault(cell.arm, cell.squid_conf)
    return found


def raw(run):
    """Rows of links to the files of each cell, relative to the page."""
    for cell in run.cells:
        names = sorted(path.name for path in cell.path.iterdir() if path.suffix in ('.csv', '.json', '.yaml'))
        yield [wording.condition(cell), wording.arm(cell.arm), Markup(', ').join(
            Markup('<a href="{0}/{1}">{1}</a>').format(cell.path.name, name) for name in names)]
