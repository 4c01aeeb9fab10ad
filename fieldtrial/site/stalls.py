# SPDX-License-Identifier: GPL-2.0-or-later
"""Scheduling latency of the machine: a process that requests a wakeup every 10 ms and records how late each one was.

    python3 -m fieldtrial.site.stalls FILE T0

Runs until SIGTERM. FILE is stalls.csv, T0 on CLOCK_MONOTONIC. A wakeup that comes after the next ones were due replaces
them, so that one stall is one row. A separate process, because a thread of the cell would also wait for the cell's
other threads. It sleeps nearly all the time, and schedulers favour such a process: Squid, which has more work, waits at
least as long on average.
"""
import csv
import math
import signal
import subprocess
import sys
import time

from ..base.errors import TrialError
from ..base.paths import ROOT

#: Interval between wakeups, s: a third of the shortest stall that can matter, 33 ms, with servers 2 ms away. Half of it
#: costs twice as much, 0.8 % of a processor; with twice of it the length of such a stall has an error of a third.
PERIOD_S = 0.01
HEADER = ('t', 'late_s')


def wakeups(now, sleep):
    """Yields (time of a wakeup, its lateness) without end. now, sleep: a clock and a function that waits, s."""
    number = math.ceil(now() / PERIOD_S)
    while True:
        sleep(max(0.0, number * PERIOD_S - now()))
        came = now()
        yield came, max(0.0, came - number * PERIOD_S)
        number = max(number + 1, math.ceil(came / PERIOD_S))


class StallMeter:
    """The process, for as long as a block."""

    def __init__(self, path, t0):
        self._argv = [sys.executable, '-m', 'fieldtrial.site.stalls', str(path), str(t0)]
        self._process = None

    def __enter__(self):
        self._process = subprocess.Popen(['setpriv', '--pdeathsig', 'TERM', *self._argv], cwd=ROOT,
                                         stdin=subprocess.DEVNULL, start_new_session=True)
        return self

    def __exit__(self, *_):
        self.check()
        self._process.terminate()
        self._process.wait()

    def check(self):
        """Raises TrialError if it has ended early."""
        if self._process.poll():
            raise TrialError(f'the stall meter ended with exit code {self._process.returncode}')


def main(path, t0):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open(path, 'w', newline='', encoding='ascii') as file:
        rows = csv.writer(file, lineterminator='\n')
        rows.writerow(HEADER)
        file.flush()    # shows that it runs
        for came, late in wakeups(time.monotonic, time.sleep):
            rows.writerow((f'{came - float(t0):.4f}', f'{late:.6f}'))


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
