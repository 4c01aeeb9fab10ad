# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: finds the subcommand, runs it, prints text or JSON."""
import argparse
import importlib
import json
import os
import sys

from .errors import DONE, WRONG, CtlError
from .site import Site
from .system import System
from .text import safe

COMMANDS = ('status', 'top', 'why', 'doctor', 'off', 'on', 'set', 'setup', 'prove', 'report', 'watch')
PREFIX = '/opt/msfrs'


def parser_of(names=COMMANDS):
    """The parser; only the subcommands named are imported."""
    parser = argparse.ArgumentParser(prog='msfrsctl', description='Looks at a gateway with msfrs, and changes it while '
                                     'it runs.', epilog='Exit codes: 0 done; 1 found something amiss, or nothing of '
                                     'what was asked for; 2 wrong use or configuration; 3 refused; 4 a step failed.')
    parser.add_argument('--version', action='store_true', help='print the version')
    subparsers = parser.add_subparsers(dest='command', metavar='COMMAND', required=True)
    for name in names:
        module = importlib.import_module(f'.commands.{name}', __package__)
        sub = subparsers.add_parser(name, help=module.HELP, description=module.__doc__)
        sub.add_argument('--json', action='store_true', help='print JSON')
        sub.add_argument('--squid-conf', metavar='FILE', help="Squid's configuration")
        sub.add_argument('--squid', metavar='PROGRAM', help="Squid's program")
        sub.add_argument('--manager', metavar='HOST:PORT', help='where to ask the cache manager; the first http_port')
        sub.add_argument('--etc', metavar='DIR', help='configuration of msfrs-iptables and msfrs-edge (/etc/msfrs)')
        sub.add_argument('--state', metavar='DIR', help='what setup has to remember (/var/lib/msfrs)')
        getattr(module, 'arguments', lambda parser: None)(sub)
        sub.set_defaults(module=module)
    return parser


def words_after(words):
    """Words that may follow these words of a command line, for completion."""
    if not words or words[0] not in COMMANDS:
        return (*COMMANDS, '--version')
    sub = next(action for action in parser_of(words[:1])._actions if action.dest == 'command').choices[words[0]]
    options = [option for action in sub._actions for option in action.option_strings if option.startswith('--')]
    chosen = [choice for action in sub._actions for choice in action.choices or ()
              if not action.option_strings or words[-1] in action.option_strings]
    return chosen if words[-1] in options and chosen else [*chosen, *options]


def main(argv, prefix=PREFIX, system=None, out=None, version='of the source'):
    """Runs a command line; returns the exit code."""
    out = out or sys.stdout
    if argv[:1] == ['--words']:
        print(*words_after(argv[1:]), sep='\n', file=out)
        return DONE
    if argv == ['--version']:
        print('msfrsctl', version, file=out)
        return DONE
        # Importing all subcommands would take as long as the search of access.log.
    named = [word for word in argv[:1] if word in COMMANDS] or COMMANDS
    options = parser_of(named).parse_args(argv or ['--help'])
    site = Site(options, system or System(), prefix)
    try:
        if hasattr(options.module, 'frames'):
            from . import screen
            return screen.run(options.module, options, site, out)
        data = options.module.gather(options, site)
        print(json.dumps(data, indent=2) if options.json else options.module.show(data), file=out)
        out.flush()
        return getattr(options.module, 'code', lambda data: DONE)(data)
    except CtlError as problem:
        if options.json:
            print(json.dumps({'error': str(problem)}), file=out)
        print(f'msfrsctl: {safe(problem, 2000)}', file=sys.stderr)
        return problem.code
    except BrokenPipeError:     # `msfrsctl ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return DONE
    except KeyboardInterrupt:
        return WRONG
