# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a run directory of the field trial: meta.json, and one subdirectory per cell with its CSV files.

A cell is one arm under one workload. Its times are seconds since the cell's own start, the same in all its files. Every
file is checked line by line; a cell that cannot be used is left out of the run with the reason, so that a run that was
stopped half-way can still be judged by what it has.
"""
import csv
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..base.errors import TrialError

STAT = 'stat.json'
TEXT = {'user', 'class', 'server', 'outcome', 'page', 'kind', 'scheme'}
MAY_BE_EMPTY = {'t_first_byte', 'delay_mean_ms', 'delay_max_ms'}

COLUMNS = {
    'link.csv': ('t', 'rx_bytes', 'backlog_bytes', 'drops', 'sent_bytes', 'sent_packets'),
    'squid.csv': ('t', 'cpu_s', 'rss_kb'),
    'window.csv': ('t', 'w', 'wplus', 'u'),
    'requests.csv': ('t_start', 't_first_byte', 't_end', 'user', 'class', 'size', 'bytes', 'outcome'),
    'pages.csv': ('t_start', 't_end', 'user', 'class', 'outcome'),
    'bytes.csv': ('t',),
    'cbr1-received.csv': ('t', 'bytes'),
}
CUMULATIVE = {'link.csv': ('rx_bytes', 'drops', 'sent_bytes', 'sent_packets'), 'squid.csv': ('cpu_s',)}


class LoadError(TrialError):
    """A file of the run cannot be used; str() names file, line, what was found and what is needed."""


def read_json(path):
    """The object in a JSON file."""
    try:
        content = json.loads(path.read_text(encoding='utf-8'))
    except OSError as error:
        raise LoadError(f'{path}: {error.strerror}') from None
    except ValueError as error:
        raise LoadError(f'{path}: not JSON: {error}') from None
    if not isinstance(content, dict):
        raise LoadError(f'{path}: an object in braces is needed, found {type(content).__name__}')
    return content


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
    """{column: array} of a CSV file with the columns of COLUMNS; further columns are read too. Text stays text."""
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
    if path.name == 'bytes.csv':
        rising = [name for name in table if name != 't']
    for name in (*(('t',) if 't' in table else ()), *rising):
        falls = np.flatnonzero(np.diff(table[name]) < 0)
        if len(falls):
            line = int(falls[0]) + 3
            raise LoadError(f'{path}:{line}: {name} falls from {table[name][line - 3]:g} to {table[name][line - 2]:g};'
                            ' it must never do so')


@dataclass
class Cell:
    """One arm under one workload: what was set, and what was recorded. Tables that were not written are None."""

    path: Path
    arm: str
    workload: str
    parameters: dict
    rate_bps: float
    weights: dict           # {class: weight}, highest class first
    users: dict             # {user: class} of those who are served by Squid
    seed: int
    start: float            # the measured interval, s
    stop: float
    cut: float              # when what was still in flight was cut, s; at least `stop`
    buffer_bdp: float = None
    buffer_bytes: float = None
    rtts_ms: tuple = ()
    versions: dict = field(default_factory=dict)
    squid_conf: str = ''
    unpatched: bool = None  # whether Squid was the unpatched program; None: not recorded
    sizes: dict = field(default_factory=dict)
    phases: list = field(default_factory=list)
    direct: dict = field(default_factory=dict)      # {user: class} of those who bypass Squid
    tunnels: dict = field(default_factory=dict)     # counts: opened, failed, lost before their time
    link: dict = None
    squid: dict = None
    window: dict = None
    requests: dict = None
    pages: dict = None
    received: dict = None
    beside: dict = None     # each second's bytes of a constant-rate stream
    repeated: bool = False  # whether the run has it with other seeds too

    @property
    def seconds(self):
        """Length of the measured interval, s."""
        return self.stop - self.start

    def users_of(self, name):
        """Number of users of a class whom Squid serves."""
        return sum(1 for member in self.users.values() if member == name)

    def condition(self):
        """What must be equal for two cells to be compared: everything but the arm. A hashable key."""
        sizes = tuple((name, self.users_of(name), weight) for name, weight in self.weights.items())
        parameters = json.dumps(self.parameters, sort_keys=True)
        return (self.workload, parameters, self.rate_bps, self.buffer_bdp, self.buffer_bytes, self.rtts_ms, sizes,
                self.seed, round(self.seconds))


@dataclass
class Run:
    """A run: its cells in order of their directories, and why others were left out {directory: reason}."""

    path: Path
    meta: dict
    cells: list
    left_out: dict
    bench: dict = None


def _number(stat, key, where, low=0.0):
    value = stat.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= low:
        raise LoadError(f'{where}: {key} is {value!r}; a number of at least {low:g} is needed')
    return value


def _mapping(stat, key, where):
    value = stat.get(key)
    if not isinstance(value, dict) or not value:
        raise LoadError(f'{where}: {key} is {value!r}; an object with at least one entry is needed')
    return value


def _without(users, table):
    """`table` without the rows of `users`."""
    kept = ~np.isin(table['user'], list(users))
    return {name: column[kept] for name, column in table.items()}


def read_cell(directory):
    """The Cell in `directory`. LoadError if something needed is missing or wrong."""
    where = directory / STAT
    stat = read_json(where)
    meta = read_json(directory / 'meta.json')
    for key in ('arm', 'workload'):
        if not isinstance(stat.get(key), str):
            raise LoadError(f'{where}: {key} is {stat.get(key)!r}; a name is needed')
    weights, users = _mapping(stat, 'weights', where), _mapping(stat, 'users', where)
    for user, name in users.items():
        if name not in weights:
            raise LoadError(f"{where}: user {user} is of class {name!r}; weights has {', '.join(weights)}")
    for name in weights:
        if _number(weights, name, f'{where}: weights') <= 0:
            raise LoadError(f'{where}: the weight of {name} is 0; it must be above 0')
    direct = {user: users[user] for user in meta.get('direct') or () if user in users}
    start, stop = _number(stat, 't_start', where), _number(stat, 't_stop', where)
    if not stop > start:
        raise LoadError(f'{where}: t_stop is {stop:g}; it must lie after t_start, {start:g}')

    def table(name, needed=True):
        return read_table(directory / name) if needed or (directory / name).exists() else None

    cell = Cell(
        path=directory, arm=stat['arm'], workload=stat['workload'], parameters=stat.get('parameters') or {},
        rate_bps=_number(stat, 'rate_bps', where, 1), weights=weights,
        users={user: name for user, name in users.items() if user not in direct}, direct=direct, seed=stat.get('seed'),
        start=start, stop=stop, cut=max(stop, meta.get('t_end') or stop),
        buffer_bdp=stat.get('buffer_bdp'), buffer_bytes=stat.get('buffer_bytes'),
        rtts_ms=tuple(stat.get('rtts_ms') or ()), versions=stat.get('versions') or {},
        squid_conf=stat.get('squid_conf') or '', unpatched=stat.get('squid_is_stock'),
        sizes=meta.get('sizes') or {}, phases=meta.get('phases') or [],
        tunnels=meta.get('tunnels') or {},
        link=table('link.csv'), squid=table('squid.csv', False),
        window=table('window.csv', False), requests=_without(direct, table('requests.csv')),
        pages=table('pages.csv', False), received=table('bytes.csv', False),
        beside=table('cbr1-received.csv', False))
    if cell.window is not None and len(cell.window['t']) == 0:
        cell.window = None
    if cell.pages is not None and len(cell.pages['t_start']) == 0:
        cell.pages = None
    return cell


def read_run(directory):
    """The Run in `directory`. LoadError if there is no cell at all."""
    directory = Path(directory)
    if not directory.is_dir():
        raise LoadError(f'{directory}: no such directory; give the directory of a run, as in build/trial/<UTC time>')
    meta = read_json(directory / 'meta.json') if (directory / 'meta.json').exists() else {}
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
        except LoadError as error:
            left_out[path.name] = str(error).replace(f'{directory}/', '')
    for cell in cells:
        cell.repeated = len({each.seed for each in cells}) > 1
    bench = directory / 'bench.json'
    return Run(directory, meta, cells, left_out, read_json(bench) if bench.exists() else None)
