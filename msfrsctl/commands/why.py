# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl why: what holds a user, a host or a request now, and what held it during the last day.

The explanation comes from msfrs-why, from the same sources as the page of msfrs-page, in the same sentences.
"""
import contextlib
import threading
import time

from .. import accesslog, bypass, overall, text
from ..errors import DONE, FOUND, WRONG, CtlError
from ..manager import SilentError
from ..users import user_of

HELP = 'what held a user, a host or a request: now, and during the last day'
DAY = 86400.0
#: Seconds that the search of access.log may take; the whole answer then takes less than 0.2 s.
BUDGET = 0.12


def arguments(parser):
    parser.add_argument('name', metavar='USER|HOST|ID',
                        help='a user as msfrs counts (address, login), a host or domain, a URL, or a transaction '
                             '(%%master_xaction in the logformat)')
    parser.add_argument('--last', type=int, default=5, metavar='N', help='requests of access.log that are shown (5)')
    parser.add_argument('--all', action='store_true', help='search the whole day, however long it takes')
    parser.add_argument('--seconds', type=float, default=5.0, metavar='S',
                        help='over which the rate of a user whom Squid knows is measured, 0 to 60 (5); 0: answer at '
                             'once, without that rate')
    parser.add_argument('--engine', metavar='PROGRAM', help='where msfrs-why is')


def gather(options, site):
    if not 0 <= options.seconds <= 60:
        raise CtlError(f'--seconds {options.seconds:g} must be from 0 to 60', WRONG)
    if options.last < 1:
        raise CtlError(f'--last {options.last} must be 1 or more', WRONG)
    data, wrong = {'name': options.name, 'live': None, 'log': None, 'bypass': None, 'notes': []}, {}

    def answer(part, ask):
        try:
            data[part] = ask(options, site)
        except Exception as problem:    # also those of the other thread; raised below
            wrong[part] = problem
    # While Squid prepares its reports, the log is searched.
    search = threading.Thread(target=answer, args=('log', logged))
    search.start()
    answer('live', live)
    search.join()
    with contextlib.suppress(CtlError):     # a silent Squid is reported already
        past = bypass.look(site)
        data['bypass'] = past and past._asdict()
    for problem in map(wrong.get, ('live', 'log')):
        if isinstance(problem, CtlError):
            data['notes'].append(str(problem))
        elif problem:
            raise problem
    if data['live'] is None and data['log'] is None:
        raise CtlError('; '.join(data['notes']))
    return data


def code(data):
    now = data['live'] or {}
    return DONE if now.get('held') or now.get('classes') or data['log'] and data['log']['requests'] else FOUND


def live(options, site):
    """Result of msfrs-why for Squid's present state: the same as /user.json of msfrs-page."""
    user = user_of(options.name, site.conf)
    try:
        sections = overall.look(site, overall.PAGES)
        # If Squid does not know the user, there is no rate to wait for.
        if options.seconds and any(name in sections[-1][2] for name in (options.name, user)):
            site.system.sleep(options.seconds)
            sections += overall.look(site, overall.PAGES)
    except SilentError:
        sections = overall.silent(site)
    return overall.explain(site, options.name, sections, options.engine)


def logged(options, site):
    """The entries of access.log about the name."""
    log = accesslog.log_of(site.conf)
    clock, now = site.system.monotonic, site.system.now()
    until = float('inf') if options.all else clock() + BUDGET
    try:
        found = accesslog.search(log, options.name, now - DAY, options.last, clock, until,
                                 user_of(options.name, site.conf))
        behind = None
        if found.hits and found.hits[0][0].wait and clock() < until:
            others, whole = accesslog.served_while(log, *found.hits[0])
            behind = {'whole': whole, 'classes': _by_class(others)}
    except OSError as problem:
        raise CtlError(f'cannot read {log.path}: {problem.strerror}; run msfrsctl as root') from None
    return {'file': log.path, 'explains': log.explains, 'reached': found.reached, 'whole': found.whole,
            'requests': [{**record._asdict(), 'began': record.began} for record, _, _ in found.hits],
            'behind': behind, 'full': len(found.hits) == options.last}


def _by_class(records):
    """By class: number of requests, their bytes, number of users, and the user with the most bytes."""
    summed = {}
    for record in records:
        row = summed.setdefault(record.cls, {'requests': 0, 'bytes': 0, 'of': {}})
        row['requests'] += 1
        row['bytes'] += record.bytes or 0
        row['of'][record.user] = row['of'].get(record.user, 0) + (record.bytes or 0)
    return [{'class': name, 'requests': row['requests'], 'bytes': row['bytes'], 'users': len(row['of']),
             'most': max(row['of'], key=row['of'].get)}
            for name, row in sorted(summed.items(), key=lambda pair: -pair[1]['bytes'])]


def show(data):
    lines = [text.safe(data['live']['overall'], 400)] if data['live'] is not None else []
    lines += [str(bypass.Bypass(**data['bypass']))] if data['bypass'] else []
    lines += [f'note: {text.safe(note, 300)}' for note in data['notes']]
    if data['live'] is not None:
        lines += _show_live(data['name'], data['live'])
    if data['log'] is not None:
        lines += _show_log(data['name'], data['log'])
    return '\n'.join(lines)


def _show_live(name, now):
    verdict, *more = (text.safe(said, 400) for said in now['why'])
    lines = [f'{text.safe(name)}: {verdict}', *(f'  {said}' for said in more)]
    for row in now['held']:
        what = {'request': 'waits for its turn', 'exchange': 'waits for its next turn',
                'response': 'is paused until its next turn'}.get(row['what'], text.safe(row['what']))
        lines.append(f'  {text.safe(row["host"])} of {text.safe(row["user"])}, class {text.safe(row["class"])}, {what} '
                     f'for {text.seconds(row["waited"])}: {row["place"]} of {row["of"]} by waiting time')
    return lines


def _show_log(name, log):
    lines = []
    if not log['explains']:
        lines.append(f'note: {text.safe(log["file"], 200)} has no %msfrs:: codes, so it cannot say what was held; use '
                     f'the logformat of the example squid.conf')
    reached = f' since {_clock(log["reached"])}' if log['reached'] else ''
    if not log['requests']:
        lines.append(f'access.log: nothing of {text.safe(name)}{reached if not log["whole"] else " in the last day"}')
    else:
        lines.append(f'access.log: the last {text.count(len(log["requests"]), "request")} of {text.safe(name)}')
    lines += [f'  {_request(row, log["explains"])}' for row in log['requests']]
    if log['behind'] and log['behind']['classes']:
        lines.append('  in service while the first of these waited'
                     + ('' if log['behind']['whole'] else ' (not all were looked at)') + ':')
        lines += [f'    {text.safe(row["class"])}: {text.count(row["requests"], "response")} of '
                  f'{text.count(row["users"], "user")}, {text.amount(row["bytes"])}, most of {text.safe(row["most"])}'
                  for row in log['behind']['classes']]
    if not log['whole'] and not log['full']:
        lines.append(f'  searched back to {_clock(log["reached"]) if log["reached"] else "its end"}; --all searches '
                     f'the whole day')
    return lines


def _request(row, explains):
    """A line about a record. explains: whether its format has the codes of msfrs."""
    line = f'{_clock(row["ended"])} {text.safe(row["host"] or row["url"] or "-")} of {text.safe(row["user"] or "-")}: '
    if not explains:
        return f'{line}{text.safe(row["result"] or "-")}, ' \
               f'{text.seconds(row["took"]) if row["took"] is not None else "-"}'
    if row['cls'] is None:
        return f'{line}answered by Squid itself ({text.safe(row["result"] or "no result")})'
    if row['refusal']:
        return f'{line}class {text.safe(row["cls"])}, refused: {text.safe(row["refusal"])}, after ' \
               f'{text.seconds(row["total_wait"] or 0)}'
    if row['wait'] is None:
        return f'{line}class {text.safe(row["cls"])}, never went out; waited {text.seconds(row["total_wait"] or 0)}'
    line += f'class {text.safe(row["cls"])}'
    if row['over_quota']:
        line += f' (the quota of {text.safe(row["over_quota"])} is used up)'
    line += f', waited {text.seconds(row["wait"])}'
    pauses = (row['total_wait'] or 0) - row['wait'] - (row['exchange_wait'] or 0)
    if pauses >= 0.001:
        line += f', paused {text.seconds(pauses)} in all'
    if row['exchange_wait']:
        line += f', its later exchanges waited {text.seconds(row["exchange_wait"])}'
    if row['bytes'] is not None:
        line += f', received {text.amount(row["bytes"])}'
    if row['took'] is not None:
        # A tunnel also stays open while it is idle.
        server = max(0.0, row['took'] - max(row['total_wait'] or 0, row['wait']))
        line += f'; of {text.seconds(row["took"])} in all, {text.seconds(server)} were server, transfer and idle'
    figures = [f'{row["quanta"]} quanta'] if row['quanta'] is not None else []
    if row['window'] is not None and row['window_limit'] is not None:
        figures.append(f'{row["window"]:g} of {row["window_limit"]:.2f} responses under way at its release')
    return f'{line}; for engineers: {", ".join(figures)}' if figures else line


def _clock(stamp):
    return '-' if stamp is None else time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(stamp))
