# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a run directory of the field trial: meta.json, and one subdirectory per cell with its CSV files.

A cell is one arm under one workload. All its files count time in seconds since the start of the cell. Every file is
checked line by line. A cell that cannot be used is left out of the run with the reason, so that an interrupted run can
still be judged by its complete cells.
"""
import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..base import typed
from ..base.errors import TrialError
from ..base.spec import UPLOAD, Stat

STAT = 'stat.json'
TEXT = {'user', 'class', 'server', 'outcome', 'page', 'kind', 'scheme', 'why'}
MAY_BE_EMPTY = {'t_first_byte', 'delay_mean_ms', 'delay_max_ms', 'fcp_s', 'lcp_s'}

COLUMNS = {
    'link.csv': ('t', 'rx_bytes', 'backlog_bytes', 'drops', 'sent_bytes', 'sent_packets'),
    'squid.csv': ('t', 'cpu_s', 'rss_kb'),
    'host.csv': ('t', 'idle_s', 'steal_s'),
    'stalls.csv': ('t', 'late_s'),
    'window.csv': ('t', 'w', 'wplus', 'u'),
    'requests.csv': ('t_start', 't_first_byte', 't_end', 'user', 'class', 'rtt_ms', 'size', 'bytes', 'outcome'),
    'pages.csv': ('t_start', 't_end', 'user', 'class', 'outcome'),
    'bytes.csv': ('t',),
    'cbr1-received.csv': ('t', 'bytes'),
    'cbr1-delays.csv': ('t', 'delay_ms'),
    'past.csv': ('t',),
    'connections.csv': ('t_start', 'kind', 'works', 'seconds'),
    'offered.csv': ('t', 'rate_bps'),
    'found.csv': ('t', 'rate_bps'),
}
CUMULATIVE = {'link.csv': ('rx_bytes', 'drops', 'sent_bytes', 'sent_packets'), 'squid.csv': ('cpu_s',)}


class LoadError(TrialError):
    """A file of the run cannot be used; str() names the file, the line, the value found and the value required."""


def _numbers(path, name, cells):
    values = np.empty(len(cells))
    for line, text in enumerate(cells, start=2):
        if text == '' and name in MAY_BE_EMPTY:
            values[line - 2] = np.nan
            continue
        try:
            values[line - 2] = float(text)
        except ValueError:
            raise LoadError(f'{path}:{line}: {name} is {text!r}; a number is needed') from None
    if name not in MAY_BE_EMPTY and not np.isfinite(values).all():
        line = int(np.flatnonzero(~np.isfinite(values))[0]) + 2
        raise LoadError(f'{path}:{line}: {name} is not a finite number')
    return values


def read_table(path):
    """{column: array} of a CSV file with the columns of COLUMNS; additional columns are read too. Text stays text."""
    wanted = COLUMNS[path.name]
    try:
        with open(path, newline='', encoding='utf-8') as stream:
            rows = list(csv.reader(stream))
    except OSError as error:
        raise LoadError(f'{path}: {error.strerror}') from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise LoadError(f'{path}: not CSV: {error}') from None
    if not rows:
        raise LoadError(f"{path}:1: empty; a header with {', '.join(wanted)} is needed")
    header, rows = rows[0], rows[1:]
    for name in wanted:
        if name not in header:
            raise LoadError(f"{path}:1: no column {name}; found {', '.join(header)}")
    for line, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise LoadError(f'{path}:{line}: {len(row)} fields; the header has {len(header)}')
    columns = list(zip(*rows)) if rows else [()] * len(header)
    table = {name: np.array(cells, dtype=str) if name in TEXT else _numbers(path, name, cells)
             for name, cells in zip(header, columns)}
    _check_order(path, table)
    return table


def _check_order(path, table):
    """Samples must be in order of time, and cumulative counters must not fall."""
    rising = CUMULATIVE.get(path.name, ())
    if path.name in ('bytes.csv', 'past.csv', 'host.csv'):
        rising = [name for name in table if name != 't']
    for name in (*(('t',) if 't' in table else ()), *rising):
        falls = np.flatnonzero(np.diff(table[name]) < 0)
        if len(falls):
            line = int(falls[0]) + 3
            raise LoadError(f'{path}:{line}: {name} falls from {table[name][line - 3]:g} to {table[name][line - 2]:g};'
                            ' it must never do so')


@dataclass(frozen=True, kw_only=True)
class Cell(Stat):
    """One arm under one workload: its settings and its records. Tables that were not written are None. `users` are
    those served by Squid."""

    path: Path
    cut: float              # when requests still in flight were cut off, s; at least `t_stop`
    sizes: dict
    phases: list
    direct: dict            # {user: class} of users who bypass Squid
    http3: dict             # {user: class} of users who speak HTTP/3 where QUIC is allowed
    tunnels: dict           # counts: opened, failed, lost prematurely
    link: dict
    squid: dict
    requests: dict          # without uploads
    received: dict
    uploads: dict = None    # requests that sent bytes
    window: dict = None
    pages: dict = None
    beside: dict = None     # bytes of a constant-rate stream in each second
    call: dict = None       # arrival time and delay of each datagram of a call
    connections: dict = None    # of other kinds than requests of the web
    past: dict = None       # bytes of frames for each user that bypassed Squid
    offered: dict = None    # capacity of the link from each time on, if not rate_bps
    host: dict = None       # usage of the machine's processors
    stalls: dict = None     # lateness of each wakeup of the stall meter
    found: dict = None      # estimates of the link's rate, where it is estimated
    repeated: bool = False  # whether the run has the same cell with other seeds

    @property
    def seconds(self):
        """Length of the measured interval, s."""
        return self.t_stop - self.t_start

    def users_of(self, name):
        """Number of users of a class whom Squid serves."""
        return sum(1 for member in self.users.values() if member == name)

    def condition(self):
        """A hashable key of everything that must be equal for two cells to be compared: all but the arm."""
        return (*self.setting(), self.seed)

    def setting(self):
        """The same without the seed."""
        sizes = tuple((name, self.users_of(name), weight) for name, weight in self.weights.items())
        parameters = json.dumps(self.parameters, sort_keys=True)
        return (self.workload, parameters, self.trace, self.rate_bps, self.buffer_bdp, self.buffer_bytes, self.rtts_ms,
                sizes, round(self.seconds), self.gateways, self.at_once)


@dataclass
class Run:
    """A run: its cells in order of their directories, and the reasons for omitted ones {directory: reason}."""

    path: Path
    meta: dict
    cells: list
    left_out: dict
    bench: dict = None


def _chosen(rows, table):
    """The rows of a table that a mask names."""
    return {name: column[rows] for name, column in table.items()}


def _without(users, table):
    """`table` without the rows of `users`."""
    return _chosen(~np.isin(table['user'], list(users)), table)


def read_cell(directory):
    """The Cell in `directory`. TrialError if a required file is missing or wrong."""
    stat, meta = Stat.read(directory / STAT), typed.read(directory / 'meta.json')
    direct = {user: stat.users[user] for user in meta.get('direct') or () if user in stat.users}
    http3 = {user: stat.users[user] for user in meta.get('http3') or () if user in stat.users}
    users = {user: name for user, name in stat.users.items() if user not in direct}

    def table(name):
        """The named table; None if it is missing or has no rows."""
        found = read_table(directory / name) if (directory / name).exists() else None
        return found if found and len(next(iter(found.values()))) else None

    requests = _without(direct, read_table(directory / 'requests.csv'))
    sent = requests.get('kind', requests['user']) == UPLOAD
    return Cell(
        **vars(stat) | {'users': users}, direct=direct, http3=http3, path=directory,
        cut=max(stat.t_stop, meta.get('t_end') or stat.t_stop), sizes=(meta.get('spec') or {}).get('sizes') or {},
        phases=meta.get('phases') or [], tunnels=meta.get('tunnels') or {}, link=read_table(directory / 'link.csv'),
        squid=read_table(directory / 'squid.csv'), requests=_chosen(~sent, requests),
        uploads=_chosen(sent, requests) if sent.any() else None,
        received=read_table(directory / 'bytes.csv'), window=table('window.csv'), pages=table('pages.csv'),
        beside=table('cbr1-received.csv'), call=table('cbr1-delays.csv'), past=table('past.csv'),
        connections=table('connections.csv'),
        offered=table('offered.csv'), found=table('found.csv'), host=table('host.csv'), stalls=table('stalls.csv'))


def read_run(directory):
    """The Run in `directory`. LoadError if it has no cell."""
    directory = Path(directory)
    if not directory.is_dir():
        raise LoadError(f'{directory}: no such directory; give the directory of a run, as in build/trial/<UTC time>')
    meta = typed.read(directory / 'meta.json') if (directory / 'meta.json').exists() else {}
    found = sorted(entry for entry in directory.iterdir() if entry.is_dir())
    if not any((path / STAT).exists() for path in found):
        raise LoadError(f'{directory}: no cell here (no subdirectory holds a {STAT}); was the run stopped at once?')
    cells, left_out = [], {}
    for path in found:
        if not (path / STAT).exists():
            why = str((meta.get('cells_failed') or {}).get(path.name) or '').strip()
            left_out[path.name] = why.splitlines()[-1] if why else f'did not run to its end (no {STAT})'
            continue
        try:
            cells.append(read_cell(path))
        except TrialError as error:
            left_out[path.name] = str(error).replace(f'{directory}/', '')
    if len({cell.seed for cell in cells}) > 1:
        cells = [replace(cell, repeated=True) for cell in cells]
    bench = directory / 'bench.json'
    return Run(directory, meta, cells, left_out, typed.read(bench) if bench.exists() else None)
