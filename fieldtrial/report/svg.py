# SPDX-License-Identifier: GPL-2.0-or-later
"""Small panels as SVG for inlining in HTML: matplotlib draws, colours become CSS variables so that the page's light,
dark and print styles hold in the plots too, and text stays text.
"""
import io
import itertools
import re
from html import escape

import matplotlib
from matplotlib.figure import Figure

# Class and arm colours by their CSS variable. The hexadecimal colours only mark the places in matplotlib's output.
_MARKS = {'ink': '#010203', 'muted': '#010204', 'line': '#010205'}
_ARMS = ('stock', 'stock-pools', 'stock-htb', 'stock-fq_codel', 'stock-cake', 'stock-sqm', 'msfrs-paper',
         'msfrs')
_CLASSES = 6
_OTHERS = 4
_MARKS.update({f'arm-{name}': f'#0102{16 + number:02x}' for number, name in enumerate(_ARMS)})
_MARKS.update({f'arm-other-{number}': f'#0102{32 + number:02x}' for number in range(_OTHERS)})
_MARKS.update({f'class-{number}': f'#0102{48 + number:02x}' for number in range(_CLASSES)})

WIDTH, HEIGHT = 3.9, 2.15       # of a panel, inches; three stand beside one another on a wide page

STYLE = {
    'svg.fonttype': 'none', 'svg.hashsalt': 'msfrs', 'font.family': 'sans-serif', 'font.sans-serif': ['DejaVu Sans'],
    'font.size': 8.5, 'axes.titlesize': 9.5, 'axes.titleweight': 'bold', 'axes.titlelocation': 'left',
    'axes.titlepad': 4.0, 'axes.titley': 1.0, 'axes.labelpad': 2.5,
    'text.color': _MARKS['ink'], 'axes.labelcolor': _MARKS['muted'], 'xtick.color': _MARKS['muted'],
    'ytick.color': _MARKS['muted'], 'axes.edgecolor': _MARKS['line'], 'axes.titlecolor': _MARKS['ink'],
    'axes.spines.top': False, 'axes.spines.right': False, 'axes.grid': True, 'grid.color': _MARKS['line'],
    'grid.linewidth': 0.5, 'xtick.major.size': 0, 'ytick.major.size': 0, 'xtick.minor.size': 0, 'ytick.minor.size': 0,
    'axes.linewidth': 0.8, 'figure.facecolor': 'none', 'axes.facecolor': 'none', 'savefig.facecolor': 'none',
    'path.simplify': True, 'path.simplify_threshold': 0.3, 'lines.solid_capstyle': 'round',
}


def ink(role='ink'):
    """The marking colour of 'ink', 'muted' or 'line'."""
    return _MARKS[role]


def arm_variable(name):
    """Name of the CSS variable with an arm's colour; arms that are not known share four colours."""
    if name in _ARMS:
        return f'arm-{name}'
    return f'arm-other-{sum(name.encode()) % _OTHERS}'


def arm(name):
    """The marking colour of an arm."""
    return _MARKS[arm_variable(name)]


def class_variable(number):
    """Name of the CSS variable with the colour of the class at place `number` in the order of weights."""
    return f'class-{number % _CLASSES}'


def of_class(number):
    """The marking colour of the class at place `number`."""
    return _MARKS[class_variable(number)]


class Panels:
    """Makes the panels of one page; their ids differ."""

    def __init__(self):
        self._numbers = itertools.count(1)

    def draw(self, label, paint, *, heights=(1,), left=0.5, right=0.12, width=WIDTH, height=HEIGHT):
        """SVG text of one panel of `width` times `height` inches, with margins `left` and `right`.

        `paint(*axes)` draws, on one axes for each of `heights` (their proportion), which share x. `label` is for those
        who do not see it.
        """
        # Margins are given, not found: matplotlib's layout engines would take as long as all the rest.
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(width, height))
            rows = figure.subplots(len(heights), sharex=True, squeeze=False, gridspec_kw={
                'height_ratios': heights, 'left': left / width, 'right': 1 - right / width, 'bottom': 0.42 / height,
                'top': 1 - 0.25 / height, 'hspace': 0.2})[:, 0]
            paint(*rows)
            return self._inline(figure, label)

    def _inline(self, figure, label):
        stream = io.StringIO()
        figure.savefig(stream, format='svg', metadata={'Date': None, 'Creator': None, 'Type': None, 'Format': None})
        text = stream.getvalue()
        return tidy(text[text.index('<svg'):], f'p{next(self._numbers)}-', label)


def tidy(text, prefix, label):
    """matplotlib's SVG made fit for inlining: own ids, page's fonts and colours, two decimals, a label."""
    head, rest = text[:text.index('>')], text[text.index('>'):]
    box = re.search(r'viewBox="[^"]*"', head)[0]
    rest = re.sub(r'<metadata>.*?</metadata>', '', rest, flags=re.S)
    rest = re.sub(r'<!--.*?-->', '', rest, flags=re.S)
    rest = re.sub(r'<defs>\s*<style.*?</style>\s*</defs>', '', rest, flags=re.S)
    rest = re.sub(r'<g id="[^"]*"/>', '', rest)
    rest = re.sub(r'<g id="[^"]*"', '<g', rest)
    rest = re.sub(r'\bid="', f'id="{prefix}', rest)
    rest = re.sub(r'url\(#', f'url(#{prefix}', rest)
    rest = re.sub(r'href="#', f'href="#{prefix}', rest)
    rest = re.sub(r"font:\s*([^;\"]*?)([\d.]+)px[^;\"]*", r'font: \1\2px var(--font)', rest)
    rest = re.sub(r'(\d+\.\d{2})\d+', r'\1', rest)
    for name, mark in _MARKS.items():
        rest = rest.replace(mark, f'var(--{name})')
    rest = re.sub(r'\n\s*', '\n', rest)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="{escape(label, quote=True)}"{rest}'
