# SPDX-License-Identifier: GPL-2.0-or-later
"""The file sizes on the servers: steps of 2 %, so that rounding to them causes an error of at most 1 %."""
import functools
import math

#: LOW * STEP^k bytes, rounded, up to HIGH.
LOW, HIGH, STEP = 64, 128_000_000, 1.02


def _steps(size):
    return math.log(size / LOW) / math.log(STEP)


@functools.lru_cache(maxsize=None)
def sizes():
    """All sizes of the grid in bytes, ascending."""
    return tuple(round(LOW * STEP ** k) for k in range(math.floor(_steps(HIGH)) + 1))


def nearest(size):
    """The grid's size nearest to `size` bytes by ratio; clamped to its ends."""
    return sizes()[min(max(round(_steps(max(size, 1))), 0), len(sizes()) - 1)]
