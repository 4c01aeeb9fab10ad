# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections of the HTML report that show a run: verdicts, figures of the arms, plots."""
from ..analysis import verdict, wording
from ..analysis.measures import SATURATED
from . import figures, table as text
from .html import arm_key, chip, class_key, element, grid, join, link, listing, paragraph, section, table

THROUGHPUT = SATURATED
LATENCY = ('https-backlogged', 'https-open', 'backlogged', 'unequal', 'open', 'url-list')
QUEUE = ('https-backlogged', 'https-pages', 'https-open', 'few', 'bypass', 'backlogged', 'pages', 'open')


def _cell(group):
    return next(iter(group.values())).cell


def _heading(group):
    return element('h3', wording.condition(_cell(group)))


def _arms(groups):
    return sorted({arm for group in groups for arm in group}, key=wording.arm_order)


def score(judged):
    """The counts, large."""
    boxes = [(verdict.REACHED, 'targets reached'), (verdict.MISSED, 'missed'), (verdict.UNMEASURED, 'not measured')]
    return element('ul', join([element('li', join([element('b', judged.count(outcome)), words]), class_=outcome.replace(
        ' ', '-') if judged.count(outcome) else None) for outcome, words in boxes]), class_='score')


def verdicts(judged):
    """Every target as a row, and what falls short in sentences."""
    rows, before = [], None
    for row in judged.rows:
        if row.section != before:
            rows.append(element('tr', element('th', row.section, colspan=6), class_='section'))
        before = row.section
        measured = join([row.measured, element('div', f'95 %: {wording.interval(row.interval)}', class_='note')
                         if row.interval else None])
        rows.append(element('tr', join([
            element('td', chip(row.outcome, row.uncertain), class_='s'), element('th', row.name),
            element('td', row.where),
            element('td', row.compared), element('td', measured, data_name='measured:'),
            element('td', row.wanted, data_name='wanted:')])))
    head = element('tr', join([element('th', name) for name in ('', 'Target', 'Where', 'Arms', 'Measured', 'Wanted')]))
    short = [row.sentence for row in judged.rows if row.outcome == verdict.MISSED]
    found = [row.sentence for row in judged.rows if row.outcome == verdict.FINDING and row.sentence]
    absent = {row.sentence for row in judged.rows if row.outcome == verdict.UNMEASURED}
    return join([
        section('short', 'What falls short', listing(short) if short else paragraph(
            'Nothing of what was measured.' if judged.count(verdict.REACHED) else 'Nothing was measured.')),
        section('found', "The paper's claim on latency", listing(found)) if found else None,
        section('verdicts', 'Targets', paragraph(
            'A share such as 28 % is the figure of the first arm over that of the second, under the same condition '
            'of this run; behind it stand both figures. 95 %: confidence interval, see ', link('#method', 'Method'),
            '. With a question mark the limit lies within it: another run may well say otherwise.', class_='note'),
            element('table', join([element('thead', head), element('tbody', join(rows, '\n'))]), class_='verdicts'),
            listing(sorted(absent)) if absent else None)])


HEADINGS = {
    'arm': '', 'per user': 'throughput per user', 'link': 'link used, %', 'goodput': 'goodput, % of link',
    'all': 'mean latency, s', '<=16kB': 'up to 16 kB, s', 'page': 'page load, s', 'queue': 'ISP queue, ms',
    'drops': 'drops, % of packets', 'CPU': 'CPU, s/GB', 'RSS': 'RSS, MB',
}


def _overview_table(group):
    columns = text.columns(_cell(group).weights)
    names = [HEADINGS.get(name, f'{name}, up to 16 kB, s') if name != 'page' else f'{unit}, page load, s'
             for name, unit, _, _ in columns]
    rows = [[value(measures) for _, _, _, value in columns] for measures in group.values()]
    kept = [place for place in range(len(names)) if any(row[place] != wording.NONE for row in rows)]
    return table([names[place] for place in kept], [[row[place] for place in kept] for row in rows],
                 range(1, len(kept)), lambda row: row[0] == wording.arm('msfrs'), 'figures')


def overview(groups):
    """The table of the terminal, per condition."""
    parts = []
    for group in groups:
        parts += [_heading(group), _overview_table(group)]
        parts += [paragraph(line, class_='note') for line in text.notes(group)]
    return section('figures', 'Figures of all arms', *parts)


def throughput(groups, panels):
    """Throughput by class over time, an arm beside the other."""
    parts = []
    for group in groups:
        cell = _cell(group)
        if cell.workload in THROUGHPUT:
            drawn = [figures.throughput(panels, measures, cell.rate_bps / 1e6) for measures in group.values()]
            parts += [_heading(group), class_key(cell.weights), grid(drawn)]
    intro = paragraph("Bytes of bodies that the users of a class received. Dashed: the link's capacity C, headers "
                      'included, so that bodies alone stay some 5 % below. Grey: not measured.', class_='note')
    return section('throughput', 'Throughput by class', intro, *parts) if parts else ''


def window(groups, panels):
    """U, W and W+ of the arms that have a window."""
    parts = []
    for group in groups:
        drawn = grid([figures.window(panels, measures) for measures in group.values()])
        parts += [_heading(group), drawn] if drawn else []
    intro = paragraph('Above: share of C that the link carried. Below: released requests W and the window W+. '
                      'Dark bars at the bottom: CBR on.', class_='note')
    return section('window', 'Utilisation and window', intro, *parts) if parts else ''


def latency(groups, panels):
    """Cumulative latency by class and by size."""
    parts = []
    for group in groups:
        if _cell(group).workload in LATENCY:
            parts += [_heading(group), arm_key(group), grid(figures.latency_panels(panels, group))]
    intro = paragraph('Share of requests finished within a time, by class and by size; logarithmic; dashed: p95. A '
                      'curve that ends below 1 belongs to requests that were unfinished at the end.', class_='note')
    return section('latency', 'Latency by class and by size', intro, *parts) if parts else ''


def pages(groups, panels):
    """Page loads by class."""
    parts = []
    for group in groups:
        cell = _cell(group)
        drawn = grid([figures.page_loads(panels, group, name) for name in cell.weights])
        parts += [_heading(group), drawn] if drawn else []
    intro = paragraph("From the page's first request to its last byte. Dot and figure: mean; line: median to p95, to "
                      'the edge of the plot where too few finished to know p95.', class_='note')
    return section('pages', 'Page loads', intro, *parts) if parts else ''


def queue(groups, panels):
    """The ISP's queue over time and as a cumulative curve."""
    parts = []
    for group in groups:
        if _cell(group).workload in QUEUE:
            top = figures.queue_top_ms(group)
            drawn = [figures.queue(panels, measures, top) for measures in group.values()]
            parts += [_heading(group), arm_key(group), grid([*drawn, figures.queue_curves(panels, group)])]
    intro = paragraph("How long a packet that arrives at the ISP's queue has to wait: backlog over C. Line: mean of "
                      'each interval drawn; area: its greatest value.', class_='note')
    return section('queue', "The ISP's queue", intro, *parts) if parts else ''


def cost(groups, panels):
    """Drops, CPU and memory of all arms under all conditions."""
    drawn = grid([
        figures.dots(panels, groups, 'Packets dropped by the ISP', 'packets per MB', lambda m: m.drops_per_mb()),
        figures.dots(panels, groups, 'Goodput', '% of the bytes on the link', lambda m: m.goodput_share() * 100),
        figures.dots(panels, groups, "Squid's CPU time", 's per GB of bodies', lambda m: m.cpu_per_gb()),
        figures.dots(panels, groups, "Squid's memory", 'MB resident, peak', lambda m: m.peak_rss_mb())], 'grid wide')
    return section('cost', 'Drops, goodput, CPU, memory', arm_key(_arms(groups)), drawn) if drawn else ''


def _saved(figure):
    if isinstance(figure, str):
        return element('span', wording.NONE, title=figure)
    share = 1 - figure.value
    kind = 'more' if share >= 0.23 else 'less' if share < 0 else None
    detail = f'{figure.text}' + (f'; ratio 95 %: {wording.interval(figure.interval)}' if figure.interval else '')
    return element('span', wording.signed_percent(share, 0), class_=kind, title=detail)


def claim(savings):
    """Where the paper's 23 to 30 % less mean latency than stock Squid holds."""
    if not savings:
        return ''
    head = ['Condition', 'Arm', *savings[0].figures]
    rows = [[f'{wording.workload(saving.cell)}: {wording.setting(saving.cell)}', wording.arm(saving.cell.arm),
             *map(_saved, saving.figures.values())] for saving in savings]
    return section(
        'claim', 'Where is mean latency saved?',
        paragraph('Mean latency saved against stock Squid of the same run: by class, size of object and distance of '
                  "the server (near: at or below the median round-trip time). Green: 23 % or more, as in the paper's "
                  'abstract; red: worse than stock. In a closed loop on a full link the mean over all objects can '
                  "hardly differ between arms (Little's law): what one gains another loses. Open arrivals show more.",
                  class_='note'),
        table(head, rows, range(2, len(head)), lambda row: row[1] == wording.arm('msfrs')))
