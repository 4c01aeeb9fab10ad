# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns a run directory into one screen in the terminal, and the report and the verdicts next to the raw files."""
import itertools
import operator
import os
import re
import sys
from pathlib import Path

import jinja2

from ..analysis import answers, measures, paper, recovery, runs, stalls, verdict, wording
from . import beside, columns, pictures, screen, sections, svg, table

REPORT, VERDICTS = 'report.html', 'verdicts.txt'
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
                        picture=lambda each: svg.img(each.label, each.svg),
                        groups_by=lambda rows, name: itertools.groupby(rows, operator.attrgetter(name)))
    made.globals.update(beside=beside, columns=columns, measures=measures, notes=table.notes, paper=paper,
                        recovery=recovery, screen=screen, sections=sections, stalls=stalls, svg=svg, table_text=table,
                        verdict=verdict, wording=wording)
    return made


def page(run, groups, judged, told):
    return _environment().get_template('template.html').render(
        run=run, groups=groups, judged=judged, told=told, pictures=pictures.drawn(told), summary=table.summary(judged))


def _write(target, text):
    partial = target.with_suffix('.new')
    partial.write_text(text, encoding='utf-8')
    os.replace(partial, target)


def _short(path):
    """`path` as people type it: relative to the working directory, if it is below that."""
    here = Path.cwd()
    return path.resolve().relative_to(here) if path.resolve().is_relative_to(here) else path


def write_report(directory, out=None, pictures_in=None):
    """Judges the run in `directory`, writes its report.html and verdicts.txt there, and one screen to the stream `out`
    (default: standard output); before it, what could not be run or used. pictures_in: a directory for the report's
    first pictures, as SVG files; None: none.

    Returns the Verdict, whose exit_status is the program's. Raises TrialError if there is nothing to judge, or if a file
    cannot be written.
    """
    out = out or sys.stdout
    run = runs.read_run(directory)
    measured = [measures.Measures(cell) for cell in run.cells]
    groups = verdict.by_condition(measured)
    judged = verdict.judge(groups, run.bench)
    told = answers.told(groups)
    files = {what: Path(directory) / name for what, name in (('verdicts', VERDICTS), ('report', REPORT))}
    _write(files['verdicts'], table.text(groups, judged))
    _write(files['report'], page(run, groups, judged, told))
    absent = [*run.meta.get('not_run', ()), *(f'left out: {name}: {why}' for name, why in run.left_out.items())]
    out.writelines(f'{line}\n' for line in absent)
    shown = {what: _short(path) for what, path in files.items()}
    if pictures_in is not None:
        shown['pictures'] = pictures.write(told, Path(pictures_in))
    out.write(screen.text(told, groups, judged, shown, screen.colours_wanted(out)) + '\n')
    return judged
