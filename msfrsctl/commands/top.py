# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl top: shows classes, users and waiting requests, updated continuously. The key q ends it."""
import itertools

from .. import text
from ..errors import WRONG, CtlError
from .status import link, window

HELP = 'classes, users and who waits, live'
#: Most lines of users, and of waiting requests.
MOST = 10


def arguments(parser):
    parser.add_argument('--interval', type=float, default=2.0, metavar='S',
                        help='seconds between two looks, 0.5 to 3600 (2); a look costs Squid about a millisecond')
    parser.add_argument('--count', type=int, metavar='N', help='end after N looks')


def frames(options, site):
    """One dict for each update. Rates (bit/s) are means since the previous update; null in the first."""
    if not 0.5 <= options.interval <= 3600:
        raise CtlError(f'--interval {options.interval:g} must be from 0.5 to 3600 seconds', WRONG)
    if options.count is not None and options.count < 1:
        raise CtlError(f'--count {options.count} must be 1 or more', WRONG)
    before = None
    for number in itertools.count(1):
        now = site.system.monotonic()
        try:
            frame = _frame(site.manager.reports(), before, now)
        except CtlError as problem:
            if number == 1:
                raise
            frame = {**_frame([], None, now), 'holding': [str(problem)]}     # Squid may be restarting
        yield frame
        before = now, {row['name']: row['bytes'] for row in frame['classes']}, \
            {row['user']: row['bytes'] for row in frame['users']}
        if number == options.count or site.system.key(options.interval) in ('q', 'Q'):
            return


def _frame(reports, before, now):
    on = [report for report in reports if report['scheduling']]
    classes, users = {}, {}
    for report in on:
        for row in report['classes']:
            kept = classes.setdefault(row['name'], {'name': row['name'], 'weight': row['weight'], 'users': 0,
                                                    'queued': 0, 'paused': 0, 'in_flight': 0, 'bytes': 0,
                                                    'held_p95': 0.0})
            for key in ('users', 'queued', 'paused', 'in_flight'):
                kept[key] += row[key]
            kept['bytes'] += row['bytes'] + row['excess']
            kept['held_p95'] = max(kept['held_p95'], row['held_p95'])
        for row in report['top_users']:
            kept = users.setdefault(row['user'], {**row, 'bytes': 0, 'queued': 0, 'in_flight': 0})
            for key in ('bytes', 'queued', 'in_flight'):
                kept[key] += row[key]
    parts = sum(row['weight'] * row['users'] for row in classes.values())
    for rows, was in ((classes, before and before[1]), (users, before and before[2])):
        for name, row in rows.items():
            row['rate'] = _rate(row['bytes'], (was or {}).get(name), now - before[0] if before else 0)
    for row in classes.values():
        row['share'] = row['weight'] * row['users'] / parts if parts else 0.0
    held = sorted((entry for report in on for entry in report['held']), key=lambda entry: -entry['waited'])
    return {'scheduling': bool(on), 'holding': [report.get('holding') for report in reports],
            'link': [link(report) for report in on], 'window': [window(report) for report in on],
            'classes': list(classes.values()), 'held': held,
            'users': sorted(users.values(), key=lambda row: (-(row['rate'] or 0), -row['bytes']))}


def _rate(now, before, seconds):
    # A counter that has decreased was reset: Squid was restarted, or the user was forgotten.
    return (now - before) * 8 / seconds if before is not None and seconds > 0 and now >= before else None


def show(frame):
    lines = [f'now      {text.because({"holding": said})}' for said in frame['holding']]
    if not frame['scheduling']:
        return '\n'.join(lines)
    lines += [f'link     {said}' for said in frame['link']] + [f'window   {said}' for said in frame['window']]
    total = sum(row['rate'] or 0 for row in frame['classes'])
    titles = ('class', 'weight', 'users', 'queued', 'paused', 'served', 'rate', 'share', 'fair share', 'held p95')
    lines += ['', *text.table(titles, [
        (text.safe(row['name']), f'{row["weight"]:g}', row['users'], row['queued'], row['paused'], row['in_flight'],
         _said(row['rate']), f'{(row["rate"] or 0) / total:.0%}' if total else '-', f'{row["share"]:.0%}',
         text.seconds(row['held_p95']))
        for row in frame['classes']])]
    lines += ['', *text.table(('user', 'class', 'rate', 'bytes', 'queued', 'served'), [
        (text.safe(row['user']), text.safe(row['class']), _said(row['rate']), text.amount(row['bytes']), row['queued'],
         row['in_flight']) for row in frame['users'][:MOST]])]
    lines += ['', *text.table(('waits', 'class', 'host', 'for', 'what'), [
        (text.safe(row['user']), text.safe(row['class']), text.safe(row['host']), text.seconds(row['waited']),
         row['what']) for row in frame['held'][:MOST]])]
    if len(frame['held']) > MOST:
        lines.append(f'and {len(frame["held"]) - MOST} more')
    return '\n'.join(lines)


def _said(rate):
    return '-' if rate is None else text.rate(rate)
