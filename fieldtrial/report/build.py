# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns a run directory into the table in the terminal and the report next to the raw files."""
import itertools
import operator
import os
import re
import sys
from pathlib import Path

import jinja2

from ..analysis import measures, paper, recovery, runs, stalls, verdict, wording
from . import beside, sections, svg, table

REPORT = 'report.html'
HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>')
#: Text whose blanks are preserved.
VERBATIM = re.compile('(<pre>.*?</pre>)', re.DOTALL)


def _units(text):
    """HTML in which no figure is separated from its unit by a line break."""
    return ''.join(part if VERBATIM.fullmatch(part) else wording.units_kept(part) for part in VERBATIM.split(text))


def _environment():
    """The template environment; all text from files is escaped."""
    made = jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True,
                              undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters.update(units=_units, headings=HEADING.findall, arm=wording.arm,
                        groups_by=lambda rows, name: itertools.groupby(rows, operator.attrgetter(name)))
    made.globals.update(beside=beside, measures=measures, notes=table.notes, paper=paper, recovery=recovery,
                        sections=sections, stalls=stalls, svg=svg, table_text=table, verdict=verdict, wording=wording)
    return made


def page(run, groups, judged):
    """The report as text."""
    return _environment().get_template('template.html').render(
        run=run, groups=groups, judged=judged, summary=table.summary(judged))


def write_report(directory, out=None):
    """Judges the run in `directory` and writes its table to the stream `out` (default: standard output) and its
    report.html.

    Returns the Verdict, whose exit_code is the program's. Raises TrialError if there is nothing to judge.
    """
    out = out or sys.stdout
    run = runs.read_run(directory)
    measured = [measures.Measures(cell) for cell in run.cells]
    groups = verdict.by_condition(measured)
    judged = verdict.judge(groups, run.bench)
    table.write(groups, judged, out, run.meta.get('not_run', ()))
    target = Path(directory) / REPORT
    partial = target.with_suffix('.new')
    partial.write_text(page(run, groups, judged), encoding='utf-8')
    os.replace(partial, target)
    for name, reason in run.left_out.items():
        out.write(f'left out: {name}: {reason}\n')
    out.write(f'report: {target}\n')
    return judged
