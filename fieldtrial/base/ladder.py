# SPDX-License-Identifier: GPL-2.0-or-later
"""The bitrates in which the trial's videos are encoded."""

#: bit/s, ascending: steps of a common ladder.
LADDER = tuple(step * 1e3 for step in (235, 375, 560, 750, 1050, 1400, 1750, 2350, 3000, 4300, 5800))


def highest(bps):
    """The highest step that is at most `bps`, or the lowest of all."""
    return max((step for step in LADDER if step <= bps), default=LADDER[0])
