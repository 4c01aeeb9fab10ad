# SPDX-License-Identifier: GPL-2.0-or-later
"""The run in detail, as text of 100 columns: a block per condition, the verdicts, and the shortfalls."""
import textwrap
from itertools import zip_longest

from ..analysis import recovery, stalls, verdict, wording, work
from ..analysis.wording import shown
from . import columns

WIDTH = 100
MARKS = {verdict.REACHED: 'ok', verdict.MISSED: 'MISSED', verdict.UNJUDGED: 'unjudged', verdict.FINDING: 'found'}

TOO_BUSY = ('Not judged: the machine was too busy for these figures to say anything. Repeat them on a quiet machine, '
            'or with fewer cells side by side (--lanes 1).')


def wrapped(text, width=WIDTH, first='', others=''):
    """Lines of `text`, wrapped without separating a figure from its unit."""
    lines = textwrap.wrap(wording.units_kept(text), width, initial_indent=first, subsequent_indent=others,
                          break_on_hyphens=False)
    return [line.replace(wording.NO_BREAK, ' ') for line in lines]


def _by_class_lines(group):
    """The same as lines."""
    for table, rows in columns.by_class(group):
        heads = (['arm', 'class', *(column.head for column in table)], ['', '', *(column.unit for column in table)])
        yield ''
        yield from (_line(row, (16, 8, *(column.width for column in table))) for row in (*heads, *rows))


def _of_kinds_lines(group):
    """The table of connections by kind."""
    heads, rows = columns.of_kinds(group) or ([], [])
    for row in (heads, *rows):
        if row:
            yield _line(row, (36, *(len(row) - 1) * [20]))


def _line(cells, widths):
    first, *others = zip(cells, widths)
    return f'{first[0]:<{first[1]}}' + ''.join(f'{text:>{width}}' for text, width in others)


def _share(measure, least, digits):
    share, _ = wording.attempt(measure)
    return wording.percent(share, digits) if share and share >= least else ''


def _ten_seconds(measures):
    error = wording.attempt(recovery.undisturbed, measures)[0] if measures.cell.window is not None else None
    return '' if error is None else f'{wording.percent(error)} ({recovery.alone(measures.cell)})'


def _busy(measures):
    squid = wording.percent(measures.cpu_seconds() / measures.cell.seconds)
    return f'{shown(wording.percent, measures.machine_busy)} and {squid}'


def _upload(measures):
    sample = measures.sample_of(measures.cell.uploads)
    return f'{wording.seconds(sample.mean())} ({sample.survival.count})'


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
         lambda m: shown(wording.kilobytes, work.unfinished_bytes, m, none='')),
        ('of C, carried while a request was under way',
         lambda m: shown(wording.percent, work.used_while_waiting, m, none='')),
        ('off the weights in ten seconds, on average', _ten_seconds),
        ('per user in each phase', lambda m: shown(lambda found: ' | '.join(
            wording.ratios(ratios) for _, ratios, _ in found), m.phase_ratios) if m.paused_classes() else ''),
        *((f'per user, 10 to 20 s after: {name}', lambda m, name=name: shown(_together, recovery.together, m, name))
          for name in dict.fromkeys(phase['after'] for phase in cell.phases if phase.get('after'))),
        ('of the bytes of bodies', lambda m: ' | '.join(
            f'{kind} {wording.percent(share, 0)}' for kind, share in m.kinds().items()) if m.cell.uploads else ''),
        ('uploads, mean time', lambda m: shown(str, _upload, m) if m.cell.uploads else ''),
        ('requests refused or failed', lambda m: _share(m.failed_share, 0, 2)),
        ('tunnels lost before their time, or not opened', _tunnels),
        ('requests unfinished at the end', lambda m: _share(m.unfinished_share, 0.05, 1))]
    for text, words in told:
        said = [f'{wording.arm(arm)} {found}' for arm, measures in group.items() if (found := words(measures))]
        if said:
            yield f'{text}: {", ".join(said)}'


def seeds(groups):
    """The condition of groups that differ in the seed alone, as text."""
    return wording.over_seeds([next(iter(group.values())).cell for group in groups])


def seeds_text(groups):
    """A block of lines: each figure of each arm over `groups`, which differ in the seed alone."""
    group = verdict.merged(groups)
    yield ''
    yield from wrapped(f'{seeds(groups)} (least to greatest)', others='  ')
    figures = [(column.name(), {wording.arm(arm): column.text(measured) for arm, measured in group.items()})
               for column in columns.of_arms(next(iter(group.values()))[0].cell.weights)]
    for table, rows in columns.by_class(group):
        for place, column in enumerate(table, start=2):
            for name in dict.fromkeys(row[1] for row in rows):
                figures.append((f'{name}: {column.name()}', {row[0]: row[place] for row in rows if row[1] == name}))
    for name, of_arms in figures:
        known = [f'{arm} {text}' for arm, text in of_arms.items() if text != wording.NONE]
        if known:
            yield from wrapped(f'{name}: {", ".join(known)}', WIDTH, '  ', '    ')


def alone(group):
    """{arm: [Measures]} of {arm: Measures}."""
    return {arm: [measures] for arm, measures in group.items()}


def arms_text(groups):
    """The blocks of figures, one per condition of verdict.by_condition."""
    lines = []
    for group in groups:
        cell = next(iter(group.values())).cell
        table = columns.of_arms(cell.weights)
        widths = [16, *(column.width for column in table)]
        heading = f'{wording.condition(cell)}, weights {wording.plain(cell.weights)}'
        lines += ['', *wrapped(heading, others='  '), _line(['arm', *(column.head for column in table)], widths),
                  _line(['', *(column.unit for column in table)], widths)]
        lines += [_line([wording.arm(arm), *(column.text([measures]) for column in table)], widths)
                  for arm, measures in group.items()]
        lines += [*_by_class_lines(alone(group)), *_of_kinds_lines(alone(group))]
        for note in notes(group):
            lines += wrapped(note, WIDTH, '  ', '    ')
    for same in verdict.over_seeds(groups):
        if len(same) > 1:
            lines += seeds_text(same)
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
    return '\n\n'.join(filter(None, (arms_text(groups), verdicts_text(judged)))) + '\n'
