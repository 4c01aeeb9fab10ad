# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether processes' memory stays flat."""
import collections
import contextlib
import os
import pathlib
import statistics

#: Share of a run that is warm-up, and how much the memory may grow over the rest.
WARM_UP, GROWTH = 0.3, 0.02
#: Samples at either end of the rest that are compared.
END = 0.2
LEAST = 20
PAGE_KB = os.sysconf('SC_PAGE_SIZE') // 1024


def growth(samples):
    """By what share the memory grew after the warm-up: medians of the last and the first fifth of what is left, so that
    one moment decides nothing. samples: at equal distances, in any unit, above 0. None: fewer than LEAST."""
    rest = samples[round(len(samples) * WARM_UP):]
    if len(rest) < LEAST:
        return None
    part = max(1, round(len(rest) * END))
    return statistics.median(rest[-part:]) / statistics.median(rest[:part]) - 1


class Sizes:
    """Resident memory of processes, sampled together, without what they share: of the ledger's 8 MB a page counts from
    when a user first falls on it, which takes hours. One that was killed and started again has several lives."""

    def __init__(self):
        self.lives = collections.defaultdict(dict)      #: {name: {pid: [kB]}}

    def sample(self, processes):
        """processes: {pid: name}."""
        for pid, name in processes.items():
            with contextlib.suppress(OSError):      # killed a moment ago
                _, resident, shared, *_ = map(int, pathlib.Path(f'/proc/{pid}/statm').read_text().split())
                if resident > shared:
                    self.lives[name].setdefault(pid, []).append((resident - shared) * PAGE_KB)

    def last(self):
        """{name: kB of each life at its end}"""
        return {name: [samples[-1] for samples in lives.values()] for name, lives in self.lives.items()}

    def growths(self):
        """{name: growth} of the processes that lived throughout."""
        return {name: growth(samples) for name, lives in self.lives.items() if len(lives) == 1
                for samples in lives.values()}
