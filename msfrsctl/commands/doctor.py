# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl doctor: checks everything that scheduling depends on, and tells you how to fix what is wrong."""
from dataclasses import asdict

from .. import text
from ..checks import ERROR, LEVELS, NOTE, OK, WARNING, Finding, machine, network, squid
from ..errors import DONE, FOUND, CtlError

HELP = 'check everything that scheduling depends on, and say what to do'
#: In display order.
CHECKS = {'bypass': network.bypassing, 'squid.conf': squid.configuration, 'running': squid.running,
          'version': squid.version, 'access.log': squid.access_log, 'cache.log': squid.cache_log,
          'interface': network.interface, 'rate': network.rate, 'interception': network.interception,
          'ipv6': network.ipv6, 'offloads': network.offloads, 'buffers': network.buffers,
          'descriptors': machine.descriptors, 'names': machine.names, 'clock': machine.clock, 'rights': machine.rights}


def arguments(parser):
    parser.add_argument('--only', action='append', choices=CHECKS, metavar='CHECK',
                        help='make this check alone; may be given again: ' + ', '.join(CHECKS))
    parser.add_argument('--probe-name', default='www.debian.org', metavar='NAME',
                        help='a name that can be resolved (%(default)s)')
    parser.add_argument('--quiet', action='store_true', help='leave out what is in order')


def gather(options, site):
    site.probe_name = options.probe_name
    found = [row for row in findings(site, options.only or CHECKS) if not options.quiet or row['level'] != OK]
    return {'findings': found, **{level: sum(row['level'] == level for row in found) for level in LEVELS}}


def findings(site, names):
    """The findings of the named checks, as dicts; each sentence once, since several checks query the same Squid."""
    said = set()
    for name in names:
        for finding in _made(CHECKS[name], site):
            if finding.what not in said:
                said.add(finding.what)
                yield {'check': name, **asdict(finding)}


def _made(check, site):
    try:
        yield from check(site)
    except CtlError as problem:
        yield Finding(ERROR, str(problem))


def code(data):
    return FOUND if data[ERROR] or data[WARNING] else DONE


def show(data):
    lines = []
    width = max((len(found['check']) for found in data['findings']), default=0)
    for found in data['findings']:
        lines.append(f'{found["level"]:7}  {found["check"]:{width}}  {text.safe(found["what"], 400)}')
        if found['do']:
            lines.append(f'{"":9}{"":{width}}  do: {text.safe(found["do"], 400)}')
    counted = {ERROR: 'error', WARNING: 'warning', NOTE: 'note', OK: 'check'}
    lines.append(', '.join(text.count(data[level], noun) for level, noun in counted.items()) + ' in order')
    return '\n'.join(lines)
