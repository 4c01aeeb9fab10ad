# SPDX-License-Identifier: GPL-2.0-or-later
"""Values as written by people and in squid.conf."""
import re

from .errors import WRONG, CtlError

#: bit/s of the units of squid.conf, the largest first.
UNITS = {'Gbit': 10**9, 'Mbit': 10**6, 'kbit': 10**3, 'bit': 1}
PREFIXES = {'G': 'giga', 'M': 'mega', 'k': 'kilo', '': ''}
#: Range of rates in msfrs_link, bit/s: squid-patches/directives.toml.
LEAST, MOST = 8_000, 400_000_000_000
TIMES = {'s': 1, 'min': 60, 'h': 3600, 'd': 86400}
NUMBER = r'(\d{1,12}(?:\.\d{1,6})?)'
#: A number, a prefix, the unit, and `per second`: `20Mbit`, `5 Mbit/s`, `5Mbps`, `5M`, `2.5 MB/s`. Group bytes: `B`,
#: which all but careless people use for bytes; unsure: `mb`, which people use for either.
RATE = re.compile(NUMBER + r'''\s*
    (?P<prefix>(?i:kilo|mega|giga)(?=[\s-]?(?i:bit|byte))|[kKmMgG]?)
    (?:(?P<bits>[\s-]?(?i:bits?)|bps|BPS(?!\S)|(?<=[MG])b(?!\w))|(?P<bytes>[\s-]?(?i:bytes?)|B(?:ps)?)|(?P<unsure>b))?
    (?P<each>(?<=[a-zA-Z])\s*(?i:/\s*s(?:ec(?:ond)?)?|p/?s|\s*per\s+sec(?:ond)?))?''', re.VERBOSE)


def rate_of(text, name='rate'):
    """bit/s of a rate as people write it. A CtlError that states what is wrong and what would be right. name: that of
    the rate, for the message."""
    match = RATE.fullmatch(text.strip())
    if not match:
        raise CtlError(f"{name} '{text}' must be a number and kbit, Mbit or Gbit, such as 20Mbit", WRONG)
    number, unit = match[1], (match['prefix'] or '')[:1]
    unit = 'k' if unit in 'kK' and unit else unit.upper()
    bits = float(number) * UNITS[f'{unit}bit']
    in_bytes = match['bytes'] and match['each']     # `MB/s`; `MB` and `MBps` are ambiguous
    if match['unsure'] or match['bytes'] and not in_bytes:
        raise CtlError(f"{name} '{text}' may be in bits or in bytes: write {canonical(8 * bits)} if you mean "
                       f"{PREFIXES[unit]}bytes a second, {number}{unit}bit if you mean {PREFIXES[unit]}bits", WRONG)
    if not unit and not match['bits'] and not in_bytes:
        raise CtlError(f"{name} '{text}' has no unit: write {number}Mbit or {number}kbit", WRONG)
    bits *= 8 if in_bytes else 1
    if not LEAST <= bits <= MOST:
        raise CtlError(f"{name} '{text}' must be from {canonical(LEAST)} to {canonical(MOST)}", WRONG)
    return bits


def canonical(bits):
    """A rate as Squid and the daemons read it, whole numbers: `20Mbit`, `5500kbit`."""
    whole = round(bits)
    return next(f'{whole // size}{unit}' for unit, size in UNITS.items() if whole % size == 0 and whole >= size or
                size == 1)


def typed_rate(text, name='rate'):
    """A rate as people type it, with a decimal comma, too, in the form that files have."""
    return canonical(rate_of(text.replace(',', '.'), name))


def is_weight(text):
    """Whether a text is a weight that Squid takes."""
    return bool(re.fullmatch(NUMBER, text)) and 0.001 <= float(text) <= 10000


def time_of(text):
    """Seconds of `90s`, `30min`, `1h`, `2d`. From a minute to 30 days, the range of changes of `set`."""
    match = re.fullmatch(NUMBER + r'\s*(s|min|h|d|(?:second|minute|hour|day)s?)', text.strip())
    unit = match and {'second': 's', 'minute': 'min', 'hour': 'h', 'day': 'd'}.get(match[2].rstrip('s'), match[2])
    value = float(match[1]) * TIMES[unit] if match else None
    if value is None or not 60 <= value <= 30 * 86400:
        raise CtlError(f"time '{text}' must be a number and s, min, h or d, from 1min to 30d, such as 1h", WRONG)
    return value
