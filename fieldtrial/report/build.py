# SPDX-License-Identifier: GPL-2.0-or-later
"""From a run directory to the table in the terminal and the report beside the raw files."""
import os
import re
import sys
from pathlib import Path

from ..analysis import runs, verdict
from ..analysis.measures import Measures
from . import appendix, beside, html, sections, svg, table

REPORT = 'report.html'
HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>')


def _head(run, judged):
    when = run.meta.get('utc') or run.path.resolve().name
    kind = 'Quick run' if run.meta.get('quick') else 'Run'
    parts = [html.paragraph('msfrs field trial', class_='lead'), html.element('h1', table.summary(judged)),
             html.paragraph(f'{kind} of {when}, {len(run.cells)} cells. ',
                            'Short cells have wide confidence intervals.' if run.meta.get('quick') else '',
                            class_='lead'),
             sections.score(judged)]
    if run.left_out:
        parts.append(html.paragraph(f'{len(run.left_out)} cells could not be used and are ',
                                    html.link('#raw', 'left out'), '.'))
    return html.join(parts, '\n')


def page(run, groups, judged):
    """The report as text."""
    panels = svg.Panels()
    body = [
        sections.verdicts(judged), sections.throughput(groups, panels),
        sections.window(groups, panels), sections.latency(groups, panels), sections.pages(groups, panels),
        sections.queue(groups, panels), sections.cost(groups, panels), sections.overview(groups),
        sections.claim(judged.savings), beside.beside(groups), appendix.method(), appendix.parameters(run, groups),
        appendix.again(run), appendix.raw(run)]
    contents = [html.link(f'#{name}', html.Markup(title)) for name, title in HEADING.findall(html.join(body))]
    return html.page('msfrs field trial', [_head(run, judged), html.element('nav', html.listing(contents)), *body])


def write_report(directory, out=None):
    """Judges the run in `directory`, writes its table to the stream `out` (standard output) and its report.html.

    Returns the Verdict, whose exit_code is the program's. Raises runs.LoadError if there is nothing to judge.
    """
    out = out or sys.stdout
    run = runs.read_run(directory)
    measured = [Measures(cell) for cell in run.cells]
    groups = verdict.by_condition(measured)
    judged = verdict.judge(groups, run.bench)
    table.write(groups, judged, out)
    target = Path(directory) / REPORT
    partial = target.with_suffix('.new')
    partial.write_text(page(run, groups, judged), encoding='utf-8')
    os.replace(partial, target)
    for name, reason in run.left_out.items():
        out.write(f'left out: {name}: {reason}\n')
    out.write(f'report: {target}\n')
    return judged
