# SPDX-License-Identifier: GPL-2.0-or-later
"""The runner with simulated cells and a simulated clock: lanes, failures, signals, output files."""
import io
import json
import os
import socket
import types

import pytest
import synthetic

from fieldtrial import cell, runner
from fieldtrial.base.errors import Stopped


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Machine:
    """Replaces runner.Running: records which cells run side by side, ends each cell when its time is over."""

    def __init__(self, clock, codes):
        self.clock, self.codes = clock, codes
        self.running, self.most, self.order, self.stopped = [], 0, [], []

    def __call__(self, spec, lanes):
        machine, started = self, self.clock.now

        class Process:
            returncode = None

            def poll(self):
                if machine.clock.now >= started + spec.wanted_s and self.returncode is None:
                    self.returncode = machine.codes.get(spec.name, 0)
                    machine.running.remove(cell)
                return self.returncode

        cell = types.SimpleNamespace(
            spec=spec, lanes=lanes, log=spec.directory + '/cell.log', process=Process(),
            seconds=lambda: machine.clock.now - started, stop=lambda: machine.stopped.append(spec.name))
        open(cell.log, 'w').write(f'{spec.name} said this')
        self.running.append(cell)
        self.order.append(spec.name)
        self.most = max(self.most, sum(each.lanes for each in self.running))
        return cell


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(runner, 'time', made)
    monkeypatch.setattr(runner.netns, 'sweep', lambda: [])
    return made


def trial(tmp_path, monkeypatch, clock, cells, lanes, codes=None):
    """A Runner of [(name, seconds, lanes)], its machine and its output."""
    machine, out = Machine(clock, codes or {}), io.StringIO()
    monkeypatch.setattr(runner, 'Running', machine)
    specs = [types.SimpleNamespace(name=name, directory=str(tmp_path / name), wanted_s=seconds, lanes=wants)
             for name, seconds, wants in cells]
    return runner.Runner(specs, tmp_path, lanes, {'version': 1, 'seed': 7}, out), machine, out


def meta(tmp_path):
    return json.loads((tmp_path / 'meta.json').read_text())


def test_cells_run_in_order_as_many_as_fit(tmp_path, monkeypatch, clock):
    made, machine, out = trial(tmp_path, monkeypatch, clock,
                               [('a', 50, 1), ('b', 50, 1), ('c', 50, 2), ('d', 50, 1), ('e', 50, 9)], 2)
    made.run()
    assert machine.order == ['a', 'b', 'c', 'd', 'e']
    assert machine.most == 2
    assert 200 <= clock.now < 220, 'a beside b, then c, then d, then e with all lanes'
    assert len(made.done) == 5 and not made.failed
    assert meta(tmp_path) == {'version': 1, 'seed': 7, 'complete': True, 'cells_done': [*'abcde'], 'cells_failed': {},
                              'cells_left_out': []}
    assert '5 cells' in out.getvalue() and 'done    e' in out.getvalue()


def test_a_failed_cell_is_told_with_its_words_and_the_others_run_on(tmp_path, monkeypatch, clock):
    made, _, out = trial(tmp_path, monkeypatch, clock, [('a', 5, 1), ('b', 5, 1), ('c', 5, 1)], 1, {'a': 1, 'b': -9})
    made.run()
    assert list(made.failed) == ['a', 'b'] and made.done == ['c']
    assert 'FAILED  a  (exit code 1)\n  | a said this' in out.getvalue()
    assert 'FAILED  b  (ended by signal 9)' in out.getvalue()
    assert not meta(tmp_path)['complete']
    assert 'a said this' in meta(tmp_path)['cells_failed']['a']


def test_a_signal_stops_what_runs_and_says_what_was_left_out(tmp_path, monkeypatch, clock):
    made, machine, _ = trial(tmp_path, monkeypatch, clock, [('a', 5, 1), ('b', 500, 1), ('c', 5, 1)], 1)

    def sleep(seconds):
        clock.now += seconds
        if clock.now > 20:
            raise Stopped(2)
    monkeypatch.setattr(clock, 'sleep', sleep)
    with pytest.raises(Stopped):
        made.run()
    assert machine.stopped == ['b']
    assert meta(tmp_path) == {'version': 1, 'seed': 7, 'complete': False, 'cells_done': ['a'], 'cells_failed': {},
                              'cells_left_out': ['c', 'b']}


def test_run_directories_never_collide(tmp_path, monkeypatch):
    monkeypatch.setattr(runner.time, 'strftime', lambda *_: '20260101T000000Z')
    names = [runner.new_directory(tmp_path / 'trial').name for _ in range(3)]
    assert names == ['20260101T000000Z', '20260101T000000Z-1', '20260101T000000Z-2']


@pytest.mark.parametrize('stalls, said', [
    ((), '; processors 75 % busy, stalled 1.0 % of the time'),
    ([(4.0 * number, 0.4) for number in range(1, 17)],
     '; processors 75 % busy, stalled 10.2 % of the time; too busy to judge it'),
    (None, '')])
def test_each_cell_ends_with_how_busy_the_machine_was(tmp_path, stalls, said):
    synthetic.make_cell(tmp_path / 'cell', synthetic.OURS, 'backlogged', stalls=stalls)
    assert runner.host_of(tmp_path / 'cell') == said


def test_a_cell_without_records_says_nothing_of_the_machine(tmp_path):
    assert runner.host_of(tmp_path) == ''


def test_keep_copies_files_and_leaves_out_sockets_pipes_and_content(tmp_path):
    world = types.SimpleNamespace(directory=tmp_path / 'world')
    (world.directory / 'farm' / 'content').mkdir(parents=True)
    (world.directory / 'farm' / 'nginx.conf').write_text('events {}')
    os.mkfifo(world.directory / 'farm' / 'pipe')
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(world.directory / 'farm' / 'sink'))
        cell._keep_files(types.SimpleNamespace(keep=True), world, tmp_path / 'kept')
    assert [path.name for path in (tmp_path / 'kept' / 'world' / 'farm').iterdir()] == ['nginx.conf']
