# SPDX-License-Identifier: GPL-2.0-or-later
"""The run in detail, as text of 100 columns: a block per condition, the verdicts, and the shortfalls."""
import math
import textwrap
from itertools import zip_longest

from ..analysis import recovery, stalls, verdict, wording, work
from ..analysis.measures import PAINTS
from ..analysis.wording import number, shown

WIDTH = 100
MARKS = {verdict.REACHED: 'ok', verdict.MISSED: 'MISSED', verdict.UNJUDGED: 'unjudged', verdict.FINDING: 'found'}

TOO_BUSY = ('Not judged: the machine was too busy for these figures to say anything. Repeat them on a quiet machine, '
            'or with fewer cells side by side (--lanes 1).')


def wrapped(text, width=WIDTH, first='', others=''):
    """Lines of `text`, wrapped without separating a figure from its unit."""
    lines = textwrap.wrap(wording.units_kept(text), width, initial_indent=first, subsequent_indent=others,
                          break_on_hyphens=False)
    return [line.replace(wording.NO_BREAK, ' ') for line in lines]


def _percent(share):
    return f'{share * 100:.1f}'


def _mean(sample):
    return number(sample.mean())


def _per_user(measures):
    if not measures.saturated():
        return wording.NONE
    return shown(lambda pair: wording.ratios(pair[0]), measures.ratios)


def columns(weights):
    """[(heading, unit, width, text of a Measures)] of the table of arms; `weights` name the first class."""
    first = max(weights, key=weights.get)
    return [
        ('arm', '', 16, lambda m: wording.arm(m.cell.arm)),
        ('per user', '', 15, _per_user),
        ('link', '%', 6, lambda m: shown(_percent, m.utilisation)),
        ('goodput', '%', 8, lambda m: shown(_percent, m.goodput_share)),
        ('all', 's', 6, lambda m: shown(_mean, m.sample)),
        ('<=16kB', 's', 7, lambda m: shown(_mean, m.sample, None, 'small')),
        (first[:6], '<=16kB', 7, lambda m: shown(_mean, m.sample, first, 'small')),
        ('page', first[:6], 7, lambda m: shown(_mean, m.page_sample, first)),
        ('queue', 'ms', 6, lambda m: shown(lambda ms: f'{ms:.0f}', m.queue_mean_ms)),
        ('drops', '%', 6, lambda m: shown(_percent, m.drop_share)),
        ('CPU', 's/GB', 6, lambda m: shown(lambda cpu: f'{cpu:.1f}', m.cpu_per_gb)),
        ('RSS', 'MB', 5, lambda m: shown(lambda rss: f'{rss:.0f}', m.peak_rss_mb)),
    ]


def _line(cells, widths):
    first, *others = zip(cells, widths)
    return f'{first[0]:<{first[1]}}' + ''.join(f'{text:>{width}}' for text, width in others)


def _share(measure, least, digits):
    share, _ = wording.attempt(measure)
    return wording.percent(share, digits) if share and share >= least else ''


def _known(form, measure, measures):
    value, _ = wording.attempt(measure, measures)
    return '' if value is None else form(value)


def _ten_seconds(measures):
    error = wording.attempt(recovery.undisturbed, measures)[0] if measures.cell.window is not None else None
    return '' if error is None else f'{wording.percent(error)} ({recovery.alone(measures.cell)})'


def _busy(measures):
    squid = wording.percent(measures.cpu_seconds() / measures.cell.seconds)
    return f'{shown(wording.percent, measures.machine_busy)} and {squid}'


def _together(found):
    ratios, _, count = found
    return wording.ratios(ratios) + (f' ({count} times)' if count > 1 else '')


def _tunnels(measures):
    counts = [f'{measures.cell.tunnels.get(word, 0)} {word}' for word in ('lost', 'failed')]
    return '' if counts == ['0 lost', '0 failed'] else ', '.join(counts)


def notes(group):
    """Lines with notes on a block that its figures do not show."""
    cell = next(iter(group.values())).cell
    here = len(cell.users) / (len(cell.users) + len(cell.direct))
    told = [
        (f'of C, bodies of the users through Squid ({wording.percent(here, 0)} of all users)',
         lambda m: wording.percent(m.served_share()) if m.cell.direct else ''),
        ('answers that went by HTTP/3, to those who speak it',
         lambda m: shown(wording.percent, m.http3_share) if m.cell.http3 else ''),
        *((f'had of what is due to them, in {what}', lambda m, of_link=of_link: shown(
            wording.due_shares, m.due_shares, of_link) if m.cell.http3 and m.saturated() else '')
          for what, of_link in (('bytes of the link', True), ('bodies', False))),
        ("ISP's queue, p95", lambda m: shown(lambda ms: f'{ms:.0f} ms', m.queue_p95_ms) if m.cell.trace else ''),
        ('what the link was taken for, of what it carried', lambda m: shown(wording.percent, m.found_share)
            if m.cell.found else ''),
        ('not judged', stalls.why_not_judged),
        ('machine', lambda m: shown(str, stalls.words, m) if m.cell.stalls is not None else ''),
        ("busy: the machine's processors, and Squid as a share of one", lambda m: _busy(m)
            if m.cell.workload == 'scale' else ''),
        ('unfinished work (asked for, not received), mean over time',
         lambda m: _known(wording.kilobytes, work.unfinished_bytes, m)),
        ('of C, carried while a request was under way',
         lambda m: _known(wording.percent, work.used_while_waiting, m)),
        ('off the weights in ten seconds, on average', _ten_seconds),
        ('per user in each phase', lambda m: shown(lambda found: ' | '.join(
            wording.ratios(ratios) for _, ratios, _ in found), m.phase_ratios) if m.paused_classes() else ''),
        *((f'per user, 10 to 20 s after: {name}', lambda m, name=name: shown(_together, recovery.together, m, name))
          for name in dict.fromkeys(phase['after'] for phase in cell.phases if phase.get('after'))),
        ('requests refused or failed', lambda m: _share(m.failed_share, 0, 2)),
        ('tunnels lost before their time, or not opened', _tunnels),
        ('requests unfinished at the end', lambda m: _share(m.unfinished_share, 0.05, 1))]
    for text, words in told:
        said = [f'{wording.arm(arm)} {found}' for arm, measures in group.items() if (found := words(measures))]
        if said:
            yield f'{text}: {", ".join(said)}'


def paints(group):
    """(head, rows) of what browsers measured: in each arm and class the pages, and median and p95 until the first and
    the largest paint and the load event, s, NONE where too few pages came so far. No rows where no browser was."""
    head = ['arm', 'class', 'pages', 'cut', 'failed',
            *(text for what in ('FCP', 'LCP', 'load') for text in (f'{what} s', 'p95'))]
    rows = []
    for arm, measures in group.items():
        for name in measures.cell.weights:
            first, _ = wording.attempt(measures.page_sample, name, False, PAINTS[0])
            if first is None:
                continue
            counts = measures.page_outcomes(name)
            samples = first, *(measures.page_sample(name, column=column) for column in (PAINTS[1], None))
            values = (sample.quantile(share) for sample in samples for share in (0.5, 0.95))
            rows.append([wording.arm(arm), name, str(sum(counts.values())),
                         *(str(counts.get(outcome, 0)) for outcome in ('unfinished', 'error')),
                         *(wording.NONE if math.isinf(value) else number(value) for value in values)])
    return head, rows


def _paints_lines(group):
    """The same as lines."""
    head, rows = paints(group)
    return ['', *(_line(row, (16, 8, 6, 6, 7, *6 * [9])) for row in (head, *rows))] if rows else []


def arms_text(groups):
    """The blocks of figures, one per condition of verdict.by_condition."""
    lines = []
    for group in groups:
        cell = next(iter(group.values())).cell
        table = columns(cell.weights)
        widths = [width for _, _, width, _ in table]
        heading = f'{wording.condition(cell)}, weights {wording.plain(cell.weights)}'
        lines += ['', *wrapped(heading, others='  '),
                  _line([name for name, _, _, _ in table], widths), _line([unit for _, unit, _, _ in table], widths)]
        lines += [_line([text(measures) for _, _, _, text in table], widths) for measures in group.values()]
        lines += _paints_lines(group)
        for note in notes(group):
            lines += wrapped(note, WIDTH, '  ', '    ')
    return '\n'.join(lines).lstrip('\n')


def _row_lines(row):
    mark = f"  {MARKS[row.outcome] + (' ?' if row.uncertain else ''):<9}"
    where, measured = wrapped(row.where, 49), wrapped(row.measured, 38)
    for place, (left, right) in enumerate(zip_longest(where, measured, fillvalue='')):
        yield f"{' ' * 11 if place else mark}{left:<50} {right}".rstrip()


def verdicts_text(judged):
    """The verdict rows by target, and the sentences on missed targets."""
    lines, before = [], (None, None)
    for row in judged.rows:
        if row.section != before[0]:
            lines += ['', row.section]
        heading = (row.section, f'{row.name}: {row.wanted} ({row.compared})')
        if heading != before:
            lines.append(f'  {heading[1]}')
        before = heading
        lines += _row_lines(row)
    lines += ['', summary(judged)]
    if any(row.uncertain for row in judged.rows):
        lines.append('  ? the limit lies within the 95 % confidence interval: another run may well say otherwise')
    if judged.count(verdict.UNJUDGED):
        lines += wrapped(TOO_BUSY, WIDTH, '  ', '  ')
    sentences = [row.sentence for row in judged.rows
                 if row.outcome in (verdict.MISSED, verdict.FINDING, verdict.UNJUDGED) and row.sentence]
    for sentence in dict.fromkeys(sentences):       # a cell that is not judged has several rows
        lines += wrapped(sentence, WIDTH, '  * ', '    ')
    return '\n'.join(lines).lstrip('\n')


def summary(judged):
    """'31 of 33 targets reached, 2 missed'; then, if any, '5 not judged'."""
    reached, missed, unjudged = map(judged.count, (verdict.REACHED, verdict.MISSED, verdict.UNJUDGED))
    return (f'{reached} of {reached + missed} targets reached, {missed} missed'
            + (f', {unjudged} not judged' if unjudged else ''))


def text(groups, judged):
    """The whole text."""
    return '\n\n'.join(filter(None, (arms_text(groups), verdicts_text(judged)))) + '\n'
