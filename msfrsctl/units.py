# SPDX-License-Identifier: GPL-2.0-or-later
"""Values as squid.conf and the command line have them."""
import re

from .errors import WRONG, CtlError

RATES = {'bit': 1, 'kbit': 1e3, 'mbit': 1e6, 'gbit': 1e9}
TIMES = {'s': 1, 'min': 60, 'h': 3600, 'd': 86400}
NUMBER = r'(\d{1,12}(?:\.\d{1,6})?)'


def rate_of(text):
    """bit/s of `20Mbit`, or None."""
    match = re.fullmatch(NUMBER + r'([kMG]?bit)', text, re.IGNORECASE)
    return float(match[1]) * RATES[match[2].lower()] if match else None


def time_of(text):
    """Seconds of `90s`, `30min`, `1h`, `2d`. From a minute to 30 days, as changes of `set` last."""
    match = re.fullmatch(NUMBER + r'(s|min|h|d)', text)
    value = float(match[1]) * TIMES[match[2]] if match else None
    if value is None or not 60 <= value <= 30 * 86400:
        raise CtlError(f"time '{text}' must be a number and s, min, h or d, from 1min to 30d, such as 1h", WRONG)
    return value
