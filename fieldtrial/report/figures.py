# SPDX-License-Identifier: GPL-2.0-or-later
"""The panels of the report. Each function takes Measures and returns HTML; None, or StatsError, if there is nothing to
draw."""
import math

import numpy as np
from matplotlib.ticker import MaxNLocator

from ..analysis import stats, wording
from ..analysis.measures import SIZE_LABELS
from ..analysis.paper import UTILISATION_TARGET
from . import svg

BIN_S = 5.0
# Left margins for the name of an arm and of a condition, inches.
ARM_IN, CONDITION_IN = 1.2, 3.2
DASHES = {'stock-pools': (0, (1, 1.2)), 'stock-htb': (0, (4, 1.5)), 'stock-fq_codel': (0, (4, 1, 1, 1)),
          'stock-cake': (0, (2, 1)), 'stock-sqm': (0, (4, 1, 1, 1))}
CURVE_POINTS = 160


def _width(arm):
    return 2.0 if arm == 'msfrs' else 1.2


def _bin_s(cell):
    return BIN_S if cell.cut >= 8 * BIN_S else 1.0


def class_rates(measures):
    """({class: Mbit/s of body per bin}, middles of the bins): from the load's start to the interval's end."""
    cell = measures.cell
    edges = np.arange(0, cell.t_stop + 1e-9, _bin_s(cell))
    series = {name: [] for name in cell.weights}
    for start, stop in zip(edges, edges[1:]):
        for name, amount in measures.class_bytes(start, stop).items():
            series[name].append(amount * 8e-6 / (stop - start))
    return series, (edges[:-1] + edges[1:]) / 2


def throughput(measures):
    """Throughput of the classes over time, and C."""
    cell, top = measures.cell, measures.cell.rate_bps / 1e6
    series, middles = class_rates(measures)

    def paint(axes):
        for number, values in enumerate(series.values()):
            # Keeps overlapping lines visible: the first is the broadest.
            axes.plot(middles, values, color=svg.of_class(number), linewidth=max(1.0, 3.0 - 0.9 * number))
        axes.axhline(top, color=svg.MUTED, linewidth=0.8, linestyle=(0, (3, 2)))
        _measured_from(axes, cell)
        axes.set(title=wording.arm(cell.arm), xlabel='time, s', ylabel='Mbit/s', xlim=(0, cell.t_stop),
                 ylim=(0, max(top, *map(max, series.values())) * 1.06))
    return svg.draw(f'Throughput by class over time, {wording.arm(cell.arm)}', paint)


def _measured_from(axes, cell):
    """Shades the time before the measured interval."""
    if cell.t_start > 0:
        axes.axvspan(0, cell.t_start, color=svg.LINE, alpha=0.35, linewidth=0)


def window(measures):
    """U above, W and W+ below, over time. None for an arm without a window."""
    cell = measures.cell
    if cell.window is None:
        return None
    edges = np.arange(0, cell.t_stop + 1e-9, _bin_s(cell))
    used = [measures.utilisation(start, stop) for start, stop in zip(edges, edges[1:])]
    colour = svg.arm(cell.arm)

    def paint(upper, lower):
        upper.axhline(UTILISATION_TARGET.value, color=svg.MUTED, linewidth=0.6, linestyle=(0, (3, 2)))
        upper.plot((edges[:-1] + edges[1:]) / 2, used, color=colour, linewidth=1.4)
        upper.set(ylabel='U', ylim=(0, 1.08), xlim=(0, cell.t_stop), title=wording.arm(cell.arm))
        upper.set_yticks([0, 0.5, 1])
        times, table = cell.window['t'], cell.window
        within = times <= cell.t_stop
        lower.plot(times[within], table['w'][within], color=svg.MUTED, linewidth=0.9, drawstyle='steps-post', label='W')
        lower.plot(times[within], table['wplus'][within], color=colour, linewidth=1.8, drawstyle='steps-post',
                   label='W+')
        # A third above the lines is for the key.
        top = max(2.0, float(max(table['w'][within].max(), table['wplus'][within].max()))) * 1.35
        lower.set(xlabel='time, s', ylabel='requests', ylim=(0, top))
        lower.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        lower.legend(loc='upper right', ncols=2, frameon=False)
        for axes in (upper, lower):
            _measured_from(axes, cell)
            _cbr_on(axes, cell)
    return svg.draw(f'Utilisation and window over time, {wording.arm(cell.arm)}', paint, heights=(1, 1.4), height=2.7)


def rate(measures):
    """Capacity, throughput and estimated rate of the link over time. None if the capacity is constant."""
    cell = measures.cell
    if cell.offered is None and cell.found is None:
        return None
    edges = np.arange(0, cell.t_stop + 1e-9, 1.0)
    could, did = (np.array([each(start, stop) for start, stop in zip(edges, edges[1:])]) / 1e6
                  for each in (measures.offered_bps, measures.link_bps))

    def paint(axes):
        axes.fill_between(edges[:-1], could, step='post', color=svg.LINE, linewidth=0)
        axes.plot(edges[:-1], did, color=svg.MUTED, linewidth=0.9, drawstyle='steps-post')
        if cell.found is not None:
            axes.plot(cell.found['t'], cell.found['rate_bps'] / 1e6, color=svg.arm(cell.arm), linewidth=1.2)
        axes.set(title=wording.arm(cell.arm), xlabel='time, s', ylabel='Mbit/s', xlim=(0, cell.t_stop),
                 ylim=(0, 1.15 * max(could.max(), did.max())))
    return svg.draw(f'Rate of the link over time, {wording.arm(cell.arm)}', paint)


def _cbr_on(axes, cell):
    """Marks the periods in which the CBR stream is on: off first, both of equal length."""
    period = cell.parameters.get('period_s')
    if cell.workload != 'cbr' or not period:
        return
    begin = period
    while begin < cell.t_stop:
        axes.axvspan(begin, min(begin + period, cell.t_stop), ymax=0.05, color=svg.MUTED, linewidth=0)
        begin += 2 * period


def _points(sample):
    """(latencies, shares) of a Sample's cumulative curve, thinned out."""
    times, shares = sample.survival.curve()
    reached = np.linspace(0, shares[-1], CURVE_POINTS)
    return np.maximum(times[np.minimum(np.searchsorted(shares, reached), len(times) - 1)], 1e-3), reached


def _latency_panel(title, curves, limits):
    """Cumulative curves {arm: (latencies, shares)} on a logarithmic axis of seconds."""
    def paint(axes):
        for arm, (latencies, shares) in curves.items():
            axes.plot(latencies, shares, color=svg.arm(arm), linewidth=_width(arm), linestyle=DASHES.get(arm, 'solid'))
        axes.set_xscale('log')
        axes.set(title=title, ylim=(0, 1.02), xlim=limits, xlabel='latency, s', ylabel='share finished')
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        ticks = [tick for tick in (0.001, 0.01, 0.1, 1, 10, 100, 1000) if limits[0] <= tick <= limits[1]]
        axes.set_xticks(ticks, [f'{tick:g}' for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.axhline(0.95, color=svg.MUTED, linewidth=0.6, linestyle=(0, (2, 2)))
    return svg.draw(f'Cumulative latency, {title}', paint)


def latency_panels(group):
    """[panel]: cumulative latencies of all arms of a condition, by class, then by size, on one scale."""
    weights = next(iter(group.values())).cell.weights
    subjects = {name: (name, None) for name in weights} | {label: (None, size) for size, label in SIZE_LABELS.items()}
    found = {}
    for title, which in subjects.items():
        samples = {arm: wording.attempt(measures.sample, *which)[0] for arm, measures in group.items()}
        curves = {arm: _points(sample) for arm, sample in samples.items() if sample}
        if curves:
            found[title] = curves
    if not found:
        return []
    every = [latencies for curves in found.values() for latencies, _ in curves.values()]
    limits = (min(each[CURVE_POINTS // 50] for each in every) * 0.8, max(each[-1] for each in every) * 1.2)
    return [_latency_panel(title, curves, limits) for title, curves in found.items()]


def page_loads(group, name):
    """Page loads of one class: median to p95 as a line, the mean as a dot with its value, one row for each arm."""
    found = {}
    for arm, measures in group.items():
        sample, _ = wording.attempt(measures.page_sample, name)
        if sample:
            found[arm] = (sample.mean(), sample.quantile(0.5), sample.quantile(0.95))
    if not found:
        return None

    def paint(axes):
        limit = max(value for triple in found.values() for value in triple if math.isfinite(value)) * 1.12
        for row, (arm, (mean, median, high)) in enumerate(found.items()):
            colour, end = svg.arm(arm), min(high, limit)
            axes.plot([min(median, limit), end], [row, row], color=colour, linewidth=3, alpha=0.45)
            axes.plot([median], [row], marker='|', markersize=9, color=colour, markeredgewidth=2)
            axes.plot([mean], [row], marker='o', markersize=5.5, color=colour)
            axes.annotate(wording.number(mean), (mean, row), xytext=(0, 6), textcoords='offset points', ha='center',
                          fontweight='bold', color=colour)
        axes.set_yticks(range(len(found)), [wording.arm(arm) for arm in found])
        axes.set(title=name, xlabel='page load, s', xlim=(0, limit), ylim=(len(found) - 0.5, -0.75))
        axes.grid(axis='y', visible=False)
    return svg.draw(f'Page loads of {name} by arm', paint, left=ARM_IN)


def queue(measures, top_ms):
    """Delay in the ISP's queue over time: mean of each second, and the greatest as a pale area."""
    cell = measures.cell
    times, delays, _ = measures.queue_samples
    step = max(1.0, round(cell.seconds / 150))
    number = ((times - cell.t_start) // step).astype(int)
    present = np.unique(number)
    means = [delays[number == place].mean() for place in present]
    peaks = [delays[number == place].max() for place in present]
    colour = svg.arm(cell.arm)

    def paint(axes):
        at = cell.t_start + (present + 0.5) * step
        axes.fill_between(at, peaks, color=colour, alpha=0.22, linewidth=0)
        axes.plot(at, means, color=colour, linewidth=1.5)
        mean = measures.queue_mean_ms()
        axes.annotate(f'mean {wording.number(mean)} ms', (0.99, 0.97), xycoords='axes fraction', ha='right', va='top',
                      fontweight='bold', color=colour)
        axes.set(title=wording.arm(cell.arm), xlabel='time, s', ylabel='ms', ylim=(0, top_ms),
                 xlim=(cell.t_start, cell.t_stop))
    return svg.draw(f"Delay in the ISP's queue over time, {wording.arm(cell.arm)}", paint)


def queue_top_ms(group):
    """Upper end of the axis that the queue panels of a condition share, ms."""
    return max(1.0, max((delays.max() for _, delays, _ in _queues(group).values()), default=1.0) * 1.22)


def _queues(group):
    """{arm: Measures.queue_samples} of the arms that have them."""
    found = {arm: wording.attempt(lambda measures=measures: measures.queue_samples)[0]
             for arm, measures in group.items()}
    return {arm: samples for arm, samples in found.items() if samples}


def queue_curves(group):
    """Cumulative delay in the ISP's queue over time, all arms."""
    shares = np.linspace(0, 1, 100)
    found = {arm: [stats.weighted_quantile(delays, held, share) for share in shares]
             for arm, (_, delays, held) in _queues(group).items()}
    if not found:
        return None

    def paint(axes):
        for arm, delays in found.items():
            axes.plot(delays, shares, color=svg.arm(arm), linewidth=_width(arm), linestyle=DASHES.get(arm, 'solid'))
        axes.set(title='All arms', xlabel='delay, ms', ylabel='share of time', ylim=(0, 1.02), xlim=(0, None))
    return svg.draw("Cumulative delay in the ISP's queue", paint)


def dots(groups, title, unit, value):
    """One figure of all arms under all conditions: a row per condition, a dot per arm."""
    rows = []
    for group in groups:
        values = {arm: wording.attempt(value, measures)[0] for arm, measures in group.items()}
        if any(number is not None for number in values.values()):
            rows.append((next(iter(group.values())).cell, values))
    if not rows:
        return None

    def paint(axes):
        for row, (_, values) in enumerate(rows):
            known = {arm: number for arm, number in values.items() if number is not None}
            axes.plot([min(known.values()), max(known.values())], [row, row], color=svg.LINE, linewidth=1.5,
                      zorder=1)
            for place, (arm, number) in enumerate(known.items()):
                # Slightly offset vertically, so that equal values stay visible.
                axes.plot([number], [row + 0.5 * (place + 0.5) / len(known) - 0.25], marker='o',
                          markersize=6 if arm == 'msfrs' else 4.5, color=svg.arm(arm), markeredgewidth=0)
        axes.set_yticks(range(len(rows)), [_short_condition(cell) for cell, _ in rows])
        most = max(number for _, values in rows for number in values.values() if number is not None)
        axes.set(title=title, xlabel=unit, xlim=(0, most * 1.04 or 1), ylim=(len(rows) - 0.5, -0.5))
        axes.grid(axis='y', visible=False)
    return svg.draw(title, paint, left=CONDITION_IN, right=0.2, width=6.3, height=0.7 + 0.26 * len(rows))


def _short_condition(cell):
    """A short name of a condition, for an axis."""
    words = [wording.workload(cell), wording.rate(cell.rate_bps).replace('bit/s', '')]
    if 'load' in cell.parameters:
        words.append(f"load {cell.parameters['load']:g}")
    if 'share' in cell.parameters:
        words.append(f"{cell.parameters['share'] * 100:g} %")
    return ', '.join([*words, f'{cell.buffer_bdp:g} BDP'])
