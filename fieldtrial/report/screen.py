# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of a run in the terminal: one screen of 80 columns and 24 lines, with a sentence for each topic."""
import os

from ..analysis import answers, stalls, wording
from .table import summary, wrapped

WIDTH, LINES = 80, 24
TOPIC, MARK = 11, 10            #: columns of the topic and of the mark
COLOURS = {answers.BETTER: '32', answers.WORSE: '31', answers.UNJUDGED: '33', answers.SAME: '2'}
TITLE = 'What users get with msfrs'
UNPATCHED = ' (unmodified Squid: the patched one with msfrs off)'


def colours_wanted(out):
    """Whether `out` is a terminal that may have colours (https://no-color.org)."""
    return out.isatty() and not os.environ.get('NO_COLOR') and os.environ.get('TERM') != 'dumb'


def _entry(name, text, width=WIDTH):
    """Lines of `text` behind the name of a topic."""
    return wrapped(text, width, f'{name:<{TOPIC}}', ' ' * TOPIC)


def _topic(each, clauses, colour):
    lines = _entry(each.topic, each.sentence(clauses), WIDTH - MARK - 1)
    mark = f'\x1b[{COLOURS[each.mark]}m{each.mark}\x1b[0m' if colour else each.mark
    return [f'{lines[0]:<{WIDTH - MARK}}{mark}', *lines[1:]]


def _cells(groups):
    return [measures for group in groups for measures in group.values()]


def host(groups):
    """How busy the machine was during the cells, as one sentence; '' if that was not recorded."""
    measured = _cells(groups)
    known = [pair for each in measured if (pair := wording.attempt(stalls.busy_and_lost, each)[0])]
    if not known:
        return ''
    busy, lost = (sum(each) / len(known) for each in zip(*known))
    unjudged = sum(1 for each in measured if stalls.why_not_judged(each))
    return stalls.in_brief(busy, lost) + (
        f'; {unjudged} of {len(measured)} cells cannot be judged because of that: repeat them on a quiet machine, or '
        'with fewer --lanes' if unjudged else '')


def text(told, groups, judged, files, colour=False):
    """The screen. told: as from answers.told; groups: as from verdict.by_condition; judged: the Verdict; files: {what
    it is: path}. Where the sentences take more than LINES, the longest lose their last clauses."""
    stock = [each.cell for each in _cells(groups) if each.cell.arm == answers.STOCK]
    title = TITLE + (UNPATCHED if stock and not any(cell.squid_is_stock for cell in stock) else '')
    end = _entry('Host', f'{said}.') if (said := host(groups)) else []
    seeds = max((each.seeds for each in told), default=1)
    if seeds > 1:
        end += _entry('Seeds', f'Means of up to {seeds} seeds; the report has the spread.')
    end += [*_entry('Targets', f'{summary(judged)}.'), *(f'{what}: {path}' for what, path in files.items())]
    if not told:
        return '\n'.join(['This run compared nothing that users would notice.', *end])
    clauses = {each.topic: len(each.clauses) for each in told}
    while True:
        topics = [_topic(each, clauses[each.topic], colour) for each in told]
        lines = [title, *(line for topic in topics for line in topic), '', *end]
        long = [(len(topic), each.topic) for topic, each in zip(topics, told) if clauses[each.topic] > 1]
        if len(lines) <= LINES or not long:
            return '\n'.join(lines)
        clauses[max(long)[1]] -= 1
