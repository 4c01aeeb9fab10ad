# SPDX-License-Identifier: GPL-2.0-or-later
"""The service that users get, as pictures: for each topic the figures of its sentence, as bars by class and arm; of
several seeds the mean, with a line from the least to the greatest."""
import math
import re
from typing import NamedTuple

from matplotlib.patches import Patch

from ..analysis import answers, stalls, stats, wording
from ..analysis.answers import quantity
from ..base.errors import TrialError
from . import svg

BAR_IN, GAP_IN = 0.17, 0.12     #: height of a bar and of the gap between two classes, inches
AXIS_IN, KEY_IN = 0.28, 0.17    #: height of the axis' labels, and of a line of the key below them, inches
LEFT_IN = 0.6                   #: room for the name of a class, inches
#: Characters replaced by a hyphen in a file's name: topics come from the records of a run.
NOT_IN_NAMES = re.compile(r'[^a-z0-9]+')


class Picture(NamedTuple):
    """A picture. name: of its file."""

    name: str
    label: str
    svg: str


def _named(group, arm):
    name = 'msfrs' if arm == answers.OURS else wording.arm(arm)
    return f'{name} (not judged)' if any(map(stalls.why_not_judged, group[arm])) else name


def _bars(what, group):
    """{class, or '' for all users: {arm: values by seed}} in the unit of the axis, without what was not measured."""
    cell = next(iter(group.values()))[0].cell
    found = {}
    for name in cell.weights if what.by_class else (None,):
        values = {arm: wording.attempt(what.values, measured, name)[0] for arm, measured in group.items()}
        found[name or ''] = {arm: [each / what.unit for each in seeds] for arm, seeds in values.items()
                             if seeds is not None}
    return {name: values for name, values in found.items() if values}


def _paint(axes, title, group, rows):
    most, place, ticks = max(max(seeds) for values in rows.values() for seeds in values.values()), 0.0, {}
    for name, values in rows.items():
        ticks[name] = place + (len(values) - 1) * BAR_IN / 2
        for arm, seeds in values.items():
            value = stats.mean_of(seeds)
            axes.barh(place, value, height=BAR_IN * 0.86, color=svg.arm(arm), linewidth=0)
            if len(seeds) > 1:
                axes.plot([min(seeds), max(seeds)], [place, place], color=svg.INK, linewidth=1)
            axes.annotate(wording.number(value), (max(seeds), place), xytext=(3, 0), textcoords='offset points',
                          va='center', fontweight='bold' if arm == answers.OURS else 'normal')
            place += BAR_IN
        place += GAP_IN
    axes.set_yticks(list(ticks.values()), list(ticks))
    axes.tick_params(axis='y', labelcolor=svg.INK)
    axes.set(title=title, xlim=(0, most * 1.16 or 1), ylim=(place - GAP_IN - BAR_IN / 2, -BAR_IN / 2))
    axes.grid(axis='y', visible=False)
    axes.set_axisbelow(True)
    axes.legend([Patch(color=svg.arm(arm)) for arm in group], [_named(group, arm) for arm in group], ncols=2,
                loc='upper left', bbox_to_anchor=(0, -AXIS_IN / (place - GAP_IN)), borderaxespad=0, frameon=False,
                handlelength=0.8, handleheight=0.8, columnspacing=1.2)


def drawn(told):
    """[Picture] of the figures of all topics, each once."""
    found = {}
    for each in told:
        for name in each.figures:
            name = quantity(name).drawn or name
            what, rows = quantity(name), _bars(quantity(name), each.group)
            if rows and (each.cell.path, name) not in found:
                place = sum(len(values) * BAR_IN + GAP_IN for values in rows.values()) - GAP_IN
                key = AXIS_IN + KEY_IN * math.ceil(len(each.group) / 2)
                title = f'{each.topic}: {what.title}'
                text = svg.panel(lambda axes: _paint(axes, title, each.group, rows), bottom=key, left=LEFT_IN,
                                 height=0.25 + place + key)
                label = f'{title}, by arm; {each.condition()}'
                file = NOT_IN_NAMES.sub('-', f'{each.topic}-{name}'.lower()) + '.svg'
                found[each.cell.path, name] = Picture(file, label, text)
    return list(found.values())


def write(told, directory):
    """Writes the pictures into a directory, made if it is missing, and returns its path. Raises TrialError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for each in drawn(told):
            (directory / each.name).write_text(each.svg, encoding='utf-8')
    except OSError as error:
        raise TrialError(f'{error.filename}: {error.strerror}; choose a directory that can be written') from None
    return directory
