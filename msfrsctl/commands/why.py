# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl why: what holds a user, a host or a request now, and what held it during the last day."""
import threading
import time

from .. import accesslog, text
from ..errors import DONE, FOUND, CtlError
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


def gather(options, site):
    data, wrong = {'name': options.name, 'live': None, 'log': None, 'notes': []}, {}

    def answer(part, ask):
        try:
            data[part] = ask(options, site)
        except Exception as problem:    # of the other thread, too; raised below
            wrong[part] = problem
    # Squid takes some time to say what it knows, in which the log can be searched.
    search = threading.Thread(target=answer, args=('log', logged))
    search.start()
    answer('live', live)
    search.join()
    for problem in map(wrong.get, ('live', 'log')):
        if isinstance(problem, CtlError):
            data['notes'].append(str(problem))
        elif problem:
            raise problem
    if data['live'] is None and data['log'] is None:
        raise CtlError('; '.join(data['notes']))
    return data


def code(data):
    return DONE if data['live'] and data['live']['requests'] or data['log'] and data['log']['requests'] else FOUND


def live(options, site):
    """What Squid says of it now."""
    lower, names = options.name.lower(), {options.name, user_of(options.name, site.conf)}
    reports = [report for report in site.manager.reports() if report['scheduling']]
    answer = {'scheduling': bool(reports), 'holding': [report['holding'] for report in reports], 'requests': [],
              'classes': [], 'users': [], 'quotas': []}
    for report in reports:
        rows = {row['name']: row for row in report['classes']}
        for place, entry in enumerate(report['held'], 1):
            host = str(entry['host']).lower()
            if names.isdisjoint({str(entry['user']), str(entry.get('id'))}) and host != lower and \
                    not host.endswith('.' + lower):
                continue
            ahead = report['held'][:place - 1]
            answer['requests'].append({
                **entry, 'place': place, 'of': len(report['held']), 'weight': rows[entry['class']]['weight'],
                'longer_of_class': sum(other['class'] == entry['class'] for other in ahead),
                'longer_of_user': sum(other['user'] == entry['user'] for other in ahead),
                'window': report['window']['outstanding'], 'window_limit': report['window']['limit']})
        answer['users'] += [user for user in report['top_users'] if str(user['user']) in names]
        answer['quotas'] += [{**row['quota'], 'class': row['name'], 'had': user['bytes']}
                             for row in report['classes'] if row.get('quota')
                             for user in row['quota_users'] if str(user['user']) in names]
        if not answer['classes']:
            answer['classes'] = [{key: row[key] for key in ('name', 'weight', 'in_flight', 'queued', 'paused',
                                                            'users', 'service')} for row in report['classes']]
    return answer


def logged(options, site):
    """What access.log has of it."""
    log = accesslog.log_of(site.conf)
    clock, now = site.system.monotonic, site.system.now()
    until = float('inf') if options.all else clock() + BUDGET
    try:
        found = accesslog.search(log, options.name, now - DAY, max(options.last, 1), clock, until,
                                 user_of(options.name, site.conf))
        behind = None
        if found.hits and found.hits[0][0].wait and clock() < until:
            others, whole = accesslog.served_while(log, *found.hits[0])
            behind = {'whole': whole, 'classes': _by_class(others)}
    except OSError as problem:
        raise CtlError(f'cannot read {log.path}: {problem.strerror}; run msfrsctl as root') from None
    return {'file': log.path, 'explains': log.explains, 'reached': found.reached, 'whole': found.whole,
            'requests': [{**record._asdict(), 'began': record.began} for record, _, _ in found.hits],
            'behind': behind, 'full': len(found.hits) == max(options.last, 1)}


def _by_class(records):
    """class: how many of them, their bytes, how many users, the one with the most bytes."""
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
    lines = [f'note: {text.safe(note, 300)}' for note in data['notes']]
    if data['live'] is not None:
        lines += _show_live(data['name'], data['live'])
    if data['log'] is not None:
        lines += _show_log(data['name'], data['log'])
    return '\n'.join(lines)


def _show_live(name, live_):
    if not live_['scheduling']:
        return ['now: msfrs is off, nothing is held']
    quotas = [f'  {text.safe(name)} has had {text.amount(row["had"])} of the {text.quota(row)} of class '
              f'{text.safe(row["class"])}'
              + (f', and goes on in {text.safe(row["over"])} for another {text.duration(row["ends_in"])}'
                 if row['had'] >= row['bytes'] else '') for row in live_['quotas']]
    if not live_['requests']:
        held = '; '.join(text.safe(said, 200) for said in live_['holding'])
        return [f'now: nothing of {text.safe(name)} is held ({held})', *quotas]
    first = live_['requests'][0]
    lines = [f'now: {text.count(len(live_["requests"]), "request")} of {text.safe(name)} held; '
             f'{first["window"]:g} of {first["window_limit"]:.2f} places of the window are taken, by '
             + (', '.join(f'{row["in_flight"]} of {text.safe(row["name"])}' for row in live_['classes']
                          if row['in_flight']) or 'nobody')]
    for row in live_['requests']:
        what = {'request': 'waits to go out', 'exchange': 'waits for its next turn',
                'response': 'is paused between two quanta'}.get(row['what'], text.safe(row['what']))
        lines.append(f'  {text.safe(row["host"])} of {text.safe(row["user"])}, class {text.safe(row["class"])} (weight '
                     f'{row["weight"]:g}), {what} for {text.seconds(row["waited"])}: place {row["place"]} of '
                     f'{row["of"]} by waiting time; {row["longer_of_class"]} of its class and {row["longer_of_user"]} '
                     f'of its user have waited longer')
    turn = sorted((row for row in live_['classes'] if row['queued'] or row['paused']), key=lambda row: row['service'])
    if turn:
        lines.append('  the class with the least service goes first: '
                     + ', '.join(f'{text.safe(row["name"])} ({row["queued"] + row["paused"]} wait)' for row in turn))
    return lines + quotas


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
        return f'{line}not scheduled ({text.safe(row["result"] or "no class")})'
    if row['refusal']:
        return f'{line}class {text.safe(row["cls"])}, refused: {text.safe(row["refusal"])}, after ' \
               f'{text.seconds(row["total_wait"] or 0)}'
    if row['wait'] is None:
        return f'{line}class {text.safe(row["cls"])}, never went out; waited {text.seconds(row["total_wait"] or 0)}'
    line += f'class {text.safe(row["cls"])}'
    if row['over_quota']:
        line += f' (the quota of {text.safe(row["over_quota"])} is used up)'
    line += f', waited {text.seconds(row["wait"])}'
    if row['window'] is not None and row['window_limit'] is not None:
        line += f' (window {row["window"]:g} of {row["window_limit"]:.2f} when it went out)'
    pauses = (row['total_wait'] or 0) - row['wait'] - (row['exchange_wait'] or 0)
    if pauses >= 0.001:
        line += f', paused {text.seconds(pauses)} in all'
    if row['exchange_wait']:
        line += f', its later exchanges waited {text.seconds(row["exchange_wait"])}'
    if row['quanta'] is not None:
        line += f', {text.amount(row["bytes"] or 0)} in {row["quanta"]} quanta'
    return line + (f', {text.seconds(row["took"])} in all' if row['took'] is not None else '')


def _clock(stamp):
    return '-' if stamp is None else time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(stamp))
