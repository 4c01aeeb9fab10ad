# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m fieldtrial.report RUNDIR: prints the service that users got, and writes report.html and verdicts.txt
again from the raw files of a run."""
import argparse
import sys

from ..analysis import verdict
from ..base.errors import TrialError
from .build import write_report

EPILOG = (f'exit status: {verdict.EXIT_REACHED} written, 1 the directory cannot be read, 2 wrong usage; with --strict '
          f'{verdict.EXIT_MISSED} at least one target is missed, {verdict.EXIT_UNJUDGED} none is, but the machine was '
          f'too busy to judge some, {verdict.EXIT_NOTHING} none could be measured')


def main(arguments=None):
    """The program; returns its exit status."""
    parser = argparse.ArgumentParser(prog='python3 -m fieldtrial.report', description=__doc__.partition(': ')[2],
                                     epilog=EPILOG)
    parser.add_argument('directory', metavar='RUNDIR', help='directory of a run, build/trial/<UTC time>')
    parser.add_argument('--pictures', metavar='DIR', help="also write the report's first pictures into DIR, as SVG")
    parser.add_argument('--strict', action='store_true', help='let the targets decide the exit status')
    options = parser.parse_args(arguments)
    try:
        return write_report(options.directory, pictures_in=options.pictures).exit_status(options.strict)
    except TrialError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
