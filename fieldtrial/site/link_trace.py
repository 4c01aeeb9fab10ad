# SPDX-License-Identifier: GPL-2.0-or-later
"""Links whose rate follows a trace. The simulator generates the traces and reads files in Mahimahi's format
(src/sim/access/trace.h); this module sets the ISP's rate accordingly.
"""
import itertools
import subprocess

from ..base.errors import TrialError
from ..base.paths import built
from .background import Background

#: Traces generated from a seed; other names are files.
NAMES = ('steps', 'wave', 'lte', 'leo')
PROGRAM = 'msfrs-sim-access'
#: Shortest interval between changes of the rate, s.
STEP_S = 0.1
PATIENCE_S = 60


class LinkTrace:
    """`rates`: bit/s, each for STEP_S, starting at t0."""

    def __init__(self, rates):
        self.rates = tuple(rates)

    @property
    def mean_bps(self):
        """The mean rate, rounded to 1 kbit/s as in squid.conf."""
        return round(sum(self.rates) / len(self.rates), -3)

    def reached_bps(self, share):
        """The rate available for all but `share` (0 to below 1) of the time, rounded to 1 kbit/s and at least 1
        kbit/s."""
        return max(1000.0, round(sorted(self.rates)[int(share * len(self.rates))], -3))

    def changes(self):
        """Yields (time in s, rate in bit/s, duration in s) for each change of the rate."""
        at = 0
        for rate, alike in itertools.groupby(self.rates):
            count = len(list(alike))
            yield at * STEP_S, rate, count * STEP_S
            at += count


def read(text, seconds):
    """The LinkTrace from lines 'seconds rate', each rate valid until the next line; the mean over each STEP_S. Raises
    ValueError."""
    points = [tuple(map(float, line.split())) for line in text.splitlines()]
    ends = [at for at, _ in points[1:]] + [seconds]
    bits = [0.0] * round(seconds / STEP_S)
    for (begin, rate), end in zip(points, ends):
        for place in range(int(begin / STEP_S + 1e-9), len(bits)):
            low, high = place * STEP_S, (place + 1) * STEP_S
            if low >= end:
                break
            bits[place] += rate * max(0.0, min(high, end) - max(low, begin))
    return LinkTrace(round(each / STEP_S) for each in bits)


def make(name, rate_bps, seconds, seed):
    """The LinkTrace of that name, or from a file; for rate_bps see src/sim/access/trace.h. Raises TrialError."""
    program = built(PROGRAM)
    if program is None:
        raise TrialError(f'{PROGRAM}: not built; run make at the top, or ./trial without --no-build')
    try:
        done = subprocess.run(
            [program, 'show=trace', f'trace={name}', f'rate={rate_bps:.0f}bit', f'seconds={seconds:g}', 'warmup=0',
             f'seed={seed}'], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        made = read(done.stdout, seconds)
    except subprocess.CalledProcessError as error:
        raise TrialError(error.stderr.strip()) from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise TrialError(f'{program}: {error}') from None
    if made.mean_bps <= 0:
        raise TrialError(f'{name}: a link that carries nothing')
    return made


class Follower(Background):
    """Sets the rate of a bottleneck from a trace within a block; times count from `t0`."""

    def __init__(self, bottleneck, trace, t0):
        super().__init__(t0)
        self._bottleneck, self._trace = bottleneck, trace

    def _work(self):
        for at, rate, held_s in self._trace.changes():
            if self._until(at):
                return
            self._bottleneck.set_rate(rate, held_s)
