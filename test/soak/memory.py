# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a process's memory stays flat."""
import statistics

#: Share of a run that is warm-up, and how much the memory may grow over the rest.
WARM_UP, GROWTH = 0.3, 0.02
#: Samples at either end of the rest that are compared.
END = 0.2
LEAST = 20


def growth(samples):
    """By what share the memory grew after the warm-up: medians of the last and the first fifth of what is left, so that
    one moment decides nothing. samples: at equal distances, in any unit, above 0. None: fewer than LEAST."""
    rest = samples[round(len(samples) * WARM_UP):]
    if len(rest) < LEAST:
        return None
    part = max(1, round(len(rest) * END))
    return statistics.median(rest[-part:]) / statistics.median(rest[:part]) - 1
