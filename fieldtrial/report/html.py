# SPDX-License-Identifier: GPL-2.0-or-later
"""The pieces that the HTML report is made of, and the page around them. Everything that comes from files is escaped."""
from html import escape
from pathlib import Path
from string import Template

from ..analysis import wording
from . import svg

TEMPLATE = Path(__file__).with_name('template.html')


class Markup(str):
    """Text that is HTML already."""


def esc(value):
    """`value` as HTML: escaped, a figure and its unit kept on one line; Markup as it is."""
    return value if isinstance(value, Markup) else Markup(wording.units_kept(escape(str(value), quote=True)))


def element(name, content='', **attributes):
    """<name attributes>content</name>; a trailing _ of an attribute's name is dropped, other _ become -."""
    said = ''.join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value), quote=True)}"'
                   for key, value in attributes.items() if value is not None)
    return Markup(f'<{name}{said}>{esc(content)}</{name}>')


def join(parts, between=''):
    """Markup of `parts` in a row; None is left out."""
    return Markup(between.join(esc(part) for part in parts if part is not None))


def paragraph(*parts, **attributes):
    """<p> of text and Markup."""
    return element('p', join(parts), **attributes)


def section(identity, title, *parts):
    """A heading that can be linked to, and what stands below it; nothing at all without parts."""
    content = join(parts, '\n')
    return join([element('h2', title, id=identity), content], '\n') if content else Markup('')


def listing(items):
    """<ul>."""
    return element('ul', join([element('li', item) for item in items], '\n'))


def table(head, rows, numeric=(), ours=None, kind=None):
    """A table that scrolls by itself when it is too wide. `rows` are lists of cells, the first one a heading; columns
    `numeric` are set right; `ours(row)` marks a row; `kind` is a class of the style sheet."""
    def cell(name, place, content):
        return element(name, content, class_='n' if place in numeric else None)
    top = element('tr', join([cell('th', place, text) for place, text in enumerate(head)]))
    body = []
    for row in rows:
        cells = [cell('td' if place else 'th', place, content) for place, content in enumerate(row)]
        body.append(element('tr', join(cells), class_='ours' if ours and ours(row) else None))
    return element('div', element('table', join([element('thead', top), element('tbody', join(body, '\n'))], '\n'),
                                  class_=kind), class_='scroll')


def chip(outcome, uncertain=False):
    """A verdict as a coloured word, with a question mark if another run may well say otherwise."""
    kind = outcome if outcome in ('reached', 'missed', 'finding') else 'unmeasured'
    return element('span', f'{outcome} ?' if uncertain else outcome, class_=f'chip {kind}')


def grid(panels, kind='grid'):
    """Panels beside one another, as many as fit; None for those that could not be drawn. None if none could.

    `kind` is a class of the style sheet.
    """
    drawn = [element('div', Markup(panel)) for panel in panels if panel]
    return element('div', join(drawn, '\n'), class_=kind) if drawn else None


def _key(entries):
    return element('ul', join([element('li', join([element('i', style=f'background: var(--{variable})'), text]))
                               for variable, text in entries]), class_='key')


def arm_key(arms):
    """Which colour is which arm."""
    return _key([(svg.arm_variable(arm), wording.arm(arm)) for arm in arms])


def class_key(weights):
    """Which colour is which class."""
    return _key([(svg.class_variable(number), f'{name}, weight {weight:g}')
                 for number, (name, weight) in enumerate(weights.items())])


def link(target, text):
    """<a>."""
    return element('a', text, href=target)


def page(title, parts):
    """The whole page as text."""
    template = Template(TEMPLATE.read_text(encoding='utf-8'))
    return template.substitute(title=esc(title), body=join(parts, '\n'))
