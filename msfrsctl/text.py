# SPDX-License-Identifier: GPL-2.0-or-later
"""Output to a terminal: text from outside cannot control it."""
import unicodedata

#: Control and format characters (direction marks among them), line separators, surrogates, private and unassigned.
HIDDEN = ('Cc', 'Cf', 'Cn', 'Co', 'Cs', 'Zl', 'Zp')
#: Characters of a name that a table shows.
WIDEST = 64


def safe(value, most=WIDEST):
    """A text from outside (user, host, URL) with non-printable characters escaped, cut at `most` characters."""
    text = str(value)
    shown = ''.join(_escape(character) if unicodedata.category(character) in HIDDEN else character
                    for character in text[:most])
    return shown + '...' if len(text) > most else shown


def _escape(character):
    code = ord(character)
    return f'\\x{code:02x}' if code < 0x100 else f'\\u{code:04x}' if code < 0x10000 else f'\\U{code:08x}'


def table(header, rows, indent=''):
    """Lines of a table. Cells are texts or numbers; numbers are right-aligned, header words in capitals."""
    shown = [[word.upper() for word in header]] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(len(header))]
    right = [bool(rows) and all(_numeric(row[column]) for row in rows) for column in range(len(header))]
    return [(indent + '  '.join(cell.rjust(width) if to_right else cell.ljust(width)
                                for cell, width, to_right in zip(row, widths, right))).rstrip() for row in shown]


def _numeric(cell):
    return not isinstance(cell, str) or cell[:1].isdigit() or cell == '-'


def rate(bits):
    """A rate in bit/s, for people."""
    for size, unit in ((1e9, 'Gbit/s'), (1e6, 'Mbit/s'), (1e3, 'kbit/s')):
        if bits >= size:
            return f'{bits / size:.3g} {unit}'
    return f'{bits:.0f} bit/s'


def amount(number):
    """Bytes, for people; powers of 1024, as in squid.conf."""
    for size, unit in ((1 << 30, 'GB'), (1 << 20, 'MB'), (1 << 10, 'KB')):
        if number >= size:
            return f'{number / size:.1f} {unit}'
    return f'{number:.0f} B'


def seconds(value):
    """A time, for people."""
    if 0 < value < 0.0005:
        return '< 1 ms'     # 0 ms would say that there is none
    if value < 1:
        return f'{value * 1000:.0f} ms'
    return f'{value:.1f} s' if value < 100 else duration(value)


def duration(value):
    """A longer time: 2 h 5 min."""
    minutes, hours = int(value // 60) % 60, int(value // 3600)
    if hours >= 48:
        return f'{hours // 24} days'
    return f'{hours} h {minutes} min' if hours else f'{minutes} min {int(value) % 60} s'


def count(number, noun):
    """`1 request`, `2 requests`."""
    return f'{number} {noun}' + ('' if number == 1 else 'es' if noun.endswith('s') else 's')


def because(report):
    """The reasons in mgr:msfrs why requests are held or not, without the leading yes or no."""
    holding = str(report.get('holding', 'no'))
    return safe(holding.partition(', because ')[2] or holding, 300)


def quota(row):
    """`1.0 GB per day`, of a quota in mgr:msfrs."""
    return f'{amount(row["bytes"])} per {safe(row["period"])}'
