# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m fieldtrial.report RUNDIR: prints the service that users got, and writes report.html and verdicts.txt
again from the raw files of a run."""
import argparse
import sys

from ..analysis import verdict
from ..base.errors import TrialError
from .build import write_report

EPILOG = (f'exit codes: {verdict.EXIT_REACHED} every measured target reached, {verdict.EXIT_MISSED} at least one '
          f'missed, {verdict.EXIT_UNJUDGED} the machine was too busy to judge some, {verdict.EXIT_NOTHING} none could '
          'be measured, 1 the directory cannot be read, 2 wrong usage')


def main(arguments=None):
    """The program; returns its exit code."""
    parser = argparse.ArgumentParser(prog='python3 -m fieldtrial.report', description=__doc__.partition(': ')[2],
                                     epilog=EPILOG)
    parser.add_argument('directory', metavar='RUNDIR', help='directory of a run, build/trial/<UTC time>')
    parser.add_argument('--pictures', metavar='DIR', help="also write the report's first pictures into DIR, as SVG")
    options = parser.parse_args(arguments)
    try:
        return write_report(options.directory, pictures_in=options.pictures).exit_code
    except TrialError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
