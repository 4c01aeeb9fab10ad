# SPDX-License-Identifier: GPL-2.0-or-later
"""Small panels by matplotlib, as SVG; on the page each is in its own <img>, so that it cannot interfere with the page
or another panel."""
import base64
import io
import re
from html import escape

import matplotlib
from matplotlib.figure import Figure

INK, MUTED, LINE = '#1b1f24', '#59636e', '#d5dae0'
ARMS = {'stock': '#6a6f76', 'stock-quic': '#6a6f76', 'stock-pools': '#a8479b', 'stock-htb': '#1f8a70',
        'stock-fq_codel': '#5d7a1f', 'stock-htb-least': '#1f8a70', 'stock-cake': '#a0623c', 'stock-sqm': '#3d6b57',
        'router': '#9aa0a6', 'router-cake': '#a0623c', 'router-cake-ingress': '#c98a5e', 'router-sqm': '#3d6b57',
        'router-fq_codel': '#5d7a1f', 'msfrs-paper': '#58a0dc', 'msfrs-least': '#58a0dc',
        'msfrs-auto': '#c0392b', 'msfrs': '#0b4fb3',
        'msfrs-edge-party': '#c0392b'}
OTHERS = ('#b5651d', '#8a8d00', '#c0392b', '#4b3f72')
CLASSES = ('#d08700', '#66738a', '#8f3f1d', '#2a7f62', '#7b4ea3', '#1f77a8')

WIDTH, HEIGHT = 3.9, 2.15       # of a panel, inches; three fit side by side on a wide page

STYLE = {
    'svg.fonttype': 'none', 'svg.hashsalt': 'msfrs', 'font.family': 'sans-serif', 'font.sans-serif': ['DejaVu Sans'],
    'font.size': 8.5, 'axes.titlesize': 9.5, 'axes.titleweight': 'bold', 'axes.titlelocation': 'left',
    'axes.titlepad': 4.0, 'axes.titley': 1.0, 'axes.labelpad': 2.5, 'text.color': INK, 'axes.labelcolor': MUTED,
    'xtick.color': MUTED, 'ytick.color': MUTED, 'axes.edgecolor': LINE, 'axes.titlecolor': INK,
    'axes.spines.top': False, 'axes.spines.right': False, 'axes.grid': True, 'grid.color': LINE,
    'grid.linewidth': 0.5, 'xtick.major.size': 0, 'ytick.major.size': 0, 'xtick.minor.size': 0, 'ytick.minor.size': 0,
    'axes.linewidth': 0.8, 'path.simplify': True, 'path.simplify_threshold': 0.3, 'lines.solid_capstyle': 'round',
}


def arm(name):
    """The colour of an arm; unknown arms share four."""
    return ARMS.get(name) or OTHERS[sum(name.encode()) % len(OTHERS)]


def of_class(number):
    """The colour of the class at place `number` in the order of weights."""
    return CLASSES[number % len(CLASSES)]


def panel(paint, *, heights=(1,), left=0.5, right=0.12, bottom=0.42, width=WIDTH, height=HEIGHT):
    """SVG of one panel of `width` times `height` inches, with margins `left`, `right` and `bottom`.

    `paint(*axes)` draws, on one axes for each of `heights` (their proportion), which share x.
    """
    # Margins are fixed: matplotlib's layout engines would take as long as everything else.
    with matplotlib.rc_context(STYLE):
        figure, stream = Figure(figsize=(width, height)), io.StringIO()
        rows = figure.subplots(len(heights), sharex=True, squeeze=False, gridspec_kw={
            'height_ratios': heights, 'left': left / width, 'right': 1 - right / width, 'bottom': bottom / height,
            'top': 1 - 0.25 / height, 'hspace': 0.2})[:, 0]
        paint(*rows)
        figure.savefig(stream, format='svg', metadata={'Date': None, 'Creator': None, 'Type': None, 'Format': None})
    return re.sub(r'(\d+\.\d{2})\d+', r'\1', stream.getvalue())    # finer than visible


def img(label, text):
    """HTML of a panel. label: text for readers who cannot see it."""
    return f'<img alt="{escape(label)}" src="data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}">'


def draw(label, paint, **layout):
    return img(label, panel(paint, **layout))
