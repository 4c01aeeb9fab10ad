# SPDX-License-Identifier: GPL-2.0-or-later
"""The paper's figures next to those of the run, as rows; and the differences between the conditions."""
from ..analysis import paper, wording
from ..analysis.stats import StatsError
from ..analysis.wording import number, percent, seconds, shown

ARMS = ('stock', 'msfrs-paper', 'msfrs')
PAPER_CPU_S = 200.0     # duration of table 3, s


def _class_rates(measures):
    received = measures.class_bytes()
    return ' / '.join(f'{amount * 8e-6 / measures.cell.seconds:.2f}' for amount in received.values()) + ' Mbit/s'


def _user_rates(measures):
    cell, received = measures.cell, measures.class_bytes()
    return ' / '.join(f'{amount * 8e-3 / cell.seconds / cell.users_of(name):.0f}'
                      for name, amount in received.items() if cell.users_of(name)) + ' kbit/s'


def _mean(measures):
    return seconds(measures.sample().mean())


def _cpu(measures):
    """CPU seconds scaled to the duration of table 3."""
    return f'{number(measures.cpu_seconds() * PAPER_CPU_S / measures.cell.seconds)} s'


def _window(cell, chosen=lambda times: times >= 0):
    """W+ in the measured interval, at the chosen times. StatsError without such samples."""
    if cell.window is None:
        raise StatsError('no window')
    times = cell.window['t']
    found = cell.window['wplus'][(times >= cell.t_start) & (times <= cell.t_stop) & chosen(times)]
    if not len(found):
        raise StatsError('no sample of the window')
    return found


def window_by_cbr(measures):
    """(mean W+ while CBR was on, mean W+ while it was off), of the second half of each period, since W+ needs the first
    half to adapt. StatsError without such samples."""
    period = measures.cell.parameters.get('period_s')
    if not period:
        raise StatsError('no CBR')
    return tuple(float(_window(measures.cell, lambda times, on=on: (
        times % period >= period / 2) & ((times // period) % 2 == on)).mean()) for on in (1, 0))


def _window_range(measures):
    values = _window(measures.cell)
    return f'W+ {values.min():.1f} to {values.max():.1f}, U {percent(measures.utilisation())}'


def _of(workload, rate_bps=None):
    return lambda cell: cell.workload == workload and rate_bps in (None, cell.rate_bps)


def _paper_cbr(cell):
    found = paper.cbr_utilisation(cell.parameters['share'], cell.parameters['period_s'])
    return f'{percent(found[0], 2)} (period {found[1]} s)'


def _paper_cpu(cell):
    row = paper.CPU_SECONDS.value[cell.rate_bps]
    return (f"{row['ordinary']:g} s stock, {row['msfrs, 10 classes']:g} s MSF-RS "
            f'({percent(paper.cpu_ratio(cell.rate_bps), 0)})')


def _milliseconds(value):
    """Milliseconds in the format of table 2."""
    return f'{value * 1e3:.1f} ms'


def _both_latencies(pair, form):
    before, after = pair['ordinary'].value, pair['msfrs'].value
    return f'{form(before)} stock, {form(after)} MSF-RS ({wording.signed_percent(after / before - 1, 0)})'


# (subject, the paper's figure as text or a function of the cell, its source, test of a cell, figure of a Measures)
ROWS = (
    ('Throughput ratio (simulation)', ':'.join(f'{value:g}' for value in paper.FAIRNESS_SIMULATION.value),
     paper.FAIRNESS_SIMULATION.source, _of('backlogged'), lambda m: wording.ratios(m.ratios()[0])),
    ('Throughput of the classes (trial)',
     ' / '.join(f'{rate / 1e6:.2f}' for rate in paper.FAIRNESS_TRIAL.value) + ' Mbit/s',
     paper.FAIRNESS_TRIAL.source, _of('backlogged', 2e6), _class_rates),
    ('Ratio when classes stop and come back', '4:2:1 | 2:1 | 4:2:1 kept', 'section 5.2, fig. 8a', _of('phases'),
     lambda m: ' | '.join(wording.ratios(ratios) for _, ratios, _ in m.phase_ratios())),
    ('Throughput per user',
     f'{paper.USER_RATE_CLASS1.value / 1e3:g} kbit/s in class 1 with 4 users; ratio kept with 24',
     paper.USER_RATE_CLASS1.source, lambda cell: _of('unequal')(cell) or _of('backlogged', 2e6)(cell), _user_rates),
    ('Mean latency (simulation)', _both_latencies(paper.LATENCY_SIMULATION, seconds),
     paper.LATENCY_SIMULATION['msfrs'].source, _of('backlogged', 2e6), _mean),
    ('Mean latency (trial)', _both_latencies(paper.LATENCY_TRIAL, _milliseconds) +
     f', {_milliseconds(paper.LATENCY_TRIAL["queueing"].value)} of it queued', paper.LATENCY_TRIAL['msfrs'].source,
     _of('open'), _mean),
    ('Utilisation under on/off CBR', _paper_cbr, paper.CBR_UTILISATION.source,
     lambda cell: _of('cbr')(cell) and paper.cbr_utilisation(cell.parameters.get('share', 0), 40),
     lambda m: percent(m.utilisation(), 2)),
    ('W+ with and without CBR', '7 with 40 %, 13 without', paper.WINDOW_CBR.source, _of('cbr'),
     lambda m: '{:.1f} with, {:.1f} without'.format(*window_by_cbr(m))),
    ('W+ while requests are too few', paper.WINDOW_FEW.value, paper.WINDOW_FEW.source, _of('open'), _window_range),
    ("Squid's CPU seconds in 200 s", _paper_cpu, paper.CPU_SECONDS.source,
     lambda cell: _of('backlogged')(cell) and cell.rate_bps in paper.CPU_SECONDS.value, _cpu),
)


def rows(groups):
    """[[subject, paper's figure, source, condition here, figure of each arm of ARMS]]"""
    made = []
    for subject, published, source, test, figure in ROWS:
        for group in groups:
            cell = next(iter(group.values())).cell
            here = [shown(str, figure, group[arm]) if arm in group else wording.NONE for arm in ARMS]
            if test(cell) and set(here) != {wording.NONE}:
                text = published(cell) if callable(published) else published
                made.append([subject, text, source, wording.condition(cell), *here])
    return _thinned(made)


def _thinned(made):
    """Blanks repeated subjects, figures and sources, so that the groups are visible."""
    before = [None] * 3
    for row in made:
        here = row[:3]
        if here == before:
            row[:3] = ['', '', '']
        elif here[0] == before[0]:
            row[0] = ''
        before = here
    return made
