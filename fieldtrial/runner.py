# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the cells of a plan, several side by side, reports progress, and leaves a run directory behind.

    build/trial/<UTC>/meta.json        the options, the list of cells and how they ended
    build/trial/<UTC>/<cell>/...       see cell
"""
import json
import os
import pathlib
import subprocess
import sys
import time

from .base.errors import TrialError
from .base.paths import ROOT
from .plan import schedule_seconds
from .site import netns
from .site.processes import tail

QUIET_PROGRESS_S = 30.0


class Running:
    def __init__(self, spec, lanes):
        self.spec, self.lanes = spec, lanes     # at most the existing lanes
        self.start = time.monotonic()
        self.log = pathlib.Path(spec.directory) / 'cell.log'
        spec_file = pathlib.Path(spec.directory) / 'cell.json'
        spec.store(spec_file)
        with open(self.log, 'wb') as log:
            # Ends with its parent, by a signal that it handles, because it must tear down its world.
            self.process = subprocess.Popen(
                ['setpriv', '--pdeathsig', 'TERM', sys.executable, '-m', 'fieldtrial.cell', str(spec_file)], cwd=ROOT,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def seconds(self):
        return time.monotonic() - self.start

    def stop(self):
        """Asks the process to end and waits until it has torn down its world."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(30.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Runner:
    """Runs CellSpecs. `directory` must exist. `out` gets the progress."""

    def __init__(self, cells, directory, lanes, meta, out=sys.stdout):
        self._waiting, self._running = list(cells), []
        self._all = len(self._waiting)
        self.done = []          #: names of the cells that are complete
        self.failed = {}        #: {name of a cell: reason}
        self._lanes, self._directory, self._meta = lanes, pathlib.Path(directory), meta
        self._out, self._live, self._told = out, out.isatty(), 0.0

    def run(self):
        """Runs all cells, or those that start before a signal. However it ends, no process and no world is left."""
        self._write_meta(complete=False)
        try:
            while self._waiting or self._running:
                self._start_what_fits()
                time.sleep(0.5)
                self._collect()
                self._progress()
        finally:
            self._clear_line()
            for each in self._running:
                each.stop()
            netns.sweep()
            self._write_meta(complete=not self._waiting and not self._running and not self.failed)

    def _start_what_fits(self):
        while self._waiting:
            spec = self._waiting[0]
            wants = min(spec.lanes, self._lanes)
            if sum(each.lanes for each in self._running) + wants > self._lanes:
                return
            self._waiting.pop(0)
            pathlib.Path(spec.directory).mkdir(parents=True)
            self._running.append(Running(spec, wants))
            # Start one after the other: building a world is the busiest phase and would disturb another start.
            time.sleep(1.0)

    def _collect(self):
        for each in [each for each in self._running if each.process.poll() is not None]:
            self._running.remove(each)
            code = each.process.returncode
            if code == 0:
                self.done.append(each.spec.name)
                self._say(f'done    {each.spec.name}  ({each.seconds():.0f} s{host_of(each.spec.directory)})')
            else:
                why = tail(each.log, 25)
                self.failed[each.spec.name] = why
                how = f'ended by signal {-code}' if code < 0 else f'exit code {code}'
                self._say(f'FAILED  {each.spec.name}  ({how})\n{why}')
                netns.sweep()   # a killed cell could not clean up

    def seconds_left(self):
        """Estimated remaining time, s."""
        running = [(max(each.spec.wanted_s - each.seconds(), 2.0), each.lanes) for each in self._running]
        return schedule_seconds(running + [(spec.wanted_s, spec.lanes) for spec in self._waiting], self._lanes)

    def _progress(self):
        now = time.monotonic()
        if not self._live and now - self._told < QUIET_PROGRESS_S:
            return
        self._told = now
        parts = [f'{each.spec.name} {min(each.seconds(), each.spec.wanted_s):.0f}/{each.spec.wanted_s:.0f} s'
                 for each in self._running]
        ended = len(self.done) + len(self.failed)
        line = f'{ended} of {self._all} cells, about {minutes(self.seconds_left())} to go: {", ".join(parts)}'
        if self._live:
            width = os.get_terminal_size(self._out.fileno()).columns
            self._out.write('\r\033[K' + line[:max(width - 1, 20)])
        else:
            self._out.write(line + '\n')
        self._out.flush()

    def _say(self, text):
        self._clear_line()
        self._out.write(text + '\n')
        self._out.flush()

    def _clear_line(self):
        if self._live:
            self._out.write('\r\033[K')
            self._out.flush()

    def _write_meta(self, complete):
        meta = {**self._meta, 'complete': complete, 'cells_done': self.done, 'cells_failed': self.failed,
                'cells_left_out': [each.name for each in (*self._waiting, *(each.spec for each in self._running))]}
        path = self._directory / 'meta.json'
        path.with_suffix('.new').write_text(json.dumps(meta, indent=1) + '\n')
        path.with_suffix('.new').rename(path)


def host_of(directory):
    """How busy the machine was during a cell, to follow its time; '' if that is not known."""
    from .analysis import measures, runs, stalls    # imports numpy: only after the check that it is installed
    try:
        cell = measures.Measures(runs.read_cell(pathlib.Path(directory)))
        said = stalls.in_brief(*stalls.busy_and_lost(cell))
    except (TrialError, stalls.StatsError):
        return ''
    return f'; {said}{"; too busy to judge it" if stalls.why_not_judged(cell) else ""}'


def minutes(seconds):
    return f'{seconds / 60:.0f} min' if seconds >= 90 else f'{seconds:.0f} s'


def new_directory(base):
    """Makes a directory below `base`, named by the time in UTC. Raises TrialError."""
    stamp = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
    for number in range(100):
        path = pathlib.Path(base) / (stamp if number == 0 else f'{stamp}-{number}')
        try:
            path.mkdir(parents=True)
            return path.resolve()
        except FileExistsError:
            continue
        except OSError as error:
            raise TrialError(f'{path}: {error.strerror}') from None
    raise TrialError(f'{base}: a hundred runs have begun in this second')


def meta_of(options, argv, conditions, not_run):
    """The entries of meta.json other than how the cells ended. not_run: sentences on arms that the kernel cannot
    run."""
    return {'version': 1, 'argv': list(argv), 'utc': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
            'quick': options.quick, 'seed': options.seeds[0], 'lanes': options.lanes, 'processors': os.cpu_count(),
            'conditions': len(conditions), 'not_run': not_run}
