# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl status: whether requests are held and why, the link, the window, the classes."""
from .. import bypass, overall, text
from ..errors import FAILED, CtlError
from ..manager import SilentError

HELP = 'whether requests are held and why, the link, the window, the classes'


def arguments(parser):
    parser.add_argument('--engine', metavar='PROGRAM', help='where msfrs-why is')


def gather(options, site):
    try:
        said = overall.verdict(site, options.engine)
    except CtlError as problem:
        if problem.code != FAILED:
            raise
        said = {'light': 'amber', 'text': str(problem)}      # without msfrs-why the figures are as good
    try:
        past = bypass.look(site)
    except SilentError as problem:
        raise CtlError(said['text'], problem.code) from None if said['light'] == 'red' else problem
    return {'overall': said, 'bypass': past and past._asdict(), 'workers': site.reports}


def show(data):
    lines = [text.safe(data['overall']['text'], 600)]
    lines += [f'beside     {bypass.Bypass(**data["bypass"])}'] if data['bypass'] else []
    for report in data['workers']:
        if 'kid' in report:
            lines.append(f'worker {report["kid"]}')
        lines += _worker(report)
    return '\n'.join(lines)


def _worker(report):
    if not report['scheduling']:
        return [f'now        {text.because(report)}']
    return [f'link       {link(report)}', *_alone(report), '', *classes(report), *_refusals(report), *_quotas(report),
            '', f'for engineers: {text.because(report)}; {window(report)}']


def link(report):
    said, window_ = report['link'], report['window']
    line = f'{text.rate(said["rate"])} at {text.safe(said["interface"] or "no interface")}, ' \
           f'{window_["utilisation"]:.0%} used'
    if window_.get('own') is not None:
        line += f' ({window_["own"]:.0%} scheduled)'
    if window_.get('queue') is not None:
        line += f', {text.seconds(window_["queue"])} queue at the provider'
    if not said['metered'] and said['interface']:
        line += '; the interface is not there: bytes of responses are counted instead'
    if found := said.get('auto'):
        line += f'; rate found between {text.rate(found["min"])} and {text.rate(found["max"])}'
    return line


def window(report):
    said = report['window']
    line = f'{said["outstanding"]:g} of {said["limit"]:.2f} responses under way'
    if said.get('changed'):
        line += f'; changed {text.seconds(said["changed"]["ago"])} ago, because ' \
                f'{text.safe(said["changed"]["because"], 200)}'
    return line


def _alone(report):
    why = report.get('alone')
    return [f'ledger     degraded: workers schedule alone, {text.safe(why, 300)}'] if why else []


def classes(report):
    """The lines of a table."""
    rows = [(text.safe(row['name']) + (' (default)' if row['default'] else ''), f'{row["weight"]:g}', row['users'],
             row['queued'], row['paused'], row['in_flight'], row['silent'], row['requests'],
             text.amount(row['bytes'] + row['excess']), text.seconds(row['held_p50']), text.seconds(row['held_p95']),
             '-' if row['held_per_mb'] is None else text.seconds(row['held_per_mb']))
            for row in report['classes']]
    return text.table(('class', 'weight', 'users', 'queued', 'paused', 'served', 'silent', 'requests', 'bytes',
                       'held p50', 'p95', 'per MB'), rows)


def _refusals(report):
    lines = []
    for row in report['classes']:
        said = [f'{count} {reason}' for reason, count in row['refused'].items() if count]
        if said:
            lines.append(f'refused    {text.safe(row["name"])}: {", ".join(said)}')
    return lines


def _quotas(report):
    return [f'quota      {text.safe(row["name"])}: {text.quota(said)} for each user; used up by '
            f'{said["users_over"]} of {text.count(said["users"], "user")}, in class {text.safe(said["over"])} for '
            f'another {text.duration(said["ends_in"])}' for row in report['classes'] if (said := row.get('quota'))]
