# SPDX-License-Identifier: GPL-2.0-or-later
"""Stalls of the machine: their measurement, and that a cell is not judged where they are too long."""
import io
import itertools
import time
import types

import pytest
import synthetic

from fieldtrial.analysis import runs, stalls, verdict
from fieldtrial.analysis.measures import Measures
from fieldtrial.report import table
from fieldtrial.report.build import write_report
from fieldtrial.site import meters, processes, stalls as meter

#: Stall that the synthetic cells bridge, ms: servers of 12 to 296 ms, 128 on average, and a queue of 58.
BRIDGED = 186


# --- how they are measured -------------------------------------------------------------------------------------------

class Clock:
    """Wakes as late as the test sets, s."""

    def __init__(self, *late):
        self.now, self._late = 100.0, itertools.chain(late, itertools.repeat(0.0))

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds + next(self._late)


def test_a_wakeup_is_asked_for_every_ten_milliseconds():
    clock = Clock(0, 0.003, 0, 0)
    found = list(itertools.islice(meter.wakeups(clock, clock.sleep), 4))
    assert [came for came, _ in found] == pytest.approx([100.0, 100.013, 100.02, 100.03])
    assert [late for _, late in found] == pytest.approx([0, 0.003, 0, 0], abs=1e-9)


def test_one_stall_is_one_row_however_many_wakeups_it_takes():
    clock = Clock(0, 0.255)
    found = list(itertools.islice(meter.wakeups(clock, clock.sleep), 4))
    assert [came for came, _ in found] == pytest.approx([100.0, 100.265, 100.27, 100.28])
    assert [late for _, late in found] == pytest.approx([0, 0.255, 0, 0], abs=1e-9)


def test_the_program_writes_each_wakeup(tmp_path, monkeypatch):
    def wakeups(*_):
        yield 107.5, 0.0001
        yield 107.762, 0.252
        raise SystemExit(0)
    monkeypatch.setattr(meter, 'wakeups', wakeups)
    monkeypatch.setattr(meter.signal, 'signal', lambda *_: None)
    with pytest.raises(SystemExit):
        meter.main(tmp_path / 'stalls.csv', '100.0')
    assert (tmp_path / 'stalls.csv').read_text().splitlines() == ['t,late_s', '7.5000,0.000100', '7.7620,0.252000']
    assert runs.read_table(tmp_path / 'stalls.csv')['late_s'].tolist() == [0.0001, 0.252]


def test_the_program_runs_as_long_as_its_block(tmp_path):
    path, end = tmp_path / 'stalls.csv', time.monotonic() + 60
    with meter.StallMeter(path, time.monotonic()) as running:
        while not (path.exists() and path.read_text()):
            running.check()
            assert time.monotonic() < end
    assert path.read_text().startswith('t,late_s\n')
    running.check()


@pytest.mark.parametrize('pressure', (12.5, None))
def test_the_host_is_recorded_as_far_as_the_kernel_tells(tmp_path, monkeypatch, pressure):
    squid, load = types.SimpleNamespace(waited=lambda: 0.25), types.SimpleNamespace(waited=lambda: 1.5)
    monkeypatch.setattr(meters, 'processor_seconds', lambda: (40.0, 2.0))
    monkeypatch.setattr(meters, 'pressure_seconds', lambda: pressure)
    monkeypatch.setattr(meters.os.path, 'exists', lambda path: path == '/proc/self/schedstat')
    monkeypatch.setattr(meters.time, 'monotonic', lambda: 95.0)
    host = meters.HostMeter(tmp_path / 'host.csv', 90.0, {'squid': [squid, squid], 'load': [load]})
    host.sample()
    host._file.close()
    extra = (',pressure_s', ',12.500') if pressure else ('', '')
    assert (tmp_path / 'host.csv').read_text().splitlines() == [
        f't,idle_s,steal_s{extra[0]},squid_wait_s,load_wait_s', f'5.000,40.000,2.000{extra[1]},0.500,1.500']


def test_what_a_process_waited_for_a_processor_is_kept_when_it_ends(tmp_path):
    """Its children included: the sum never decreases."""
    files = {'/proc/7/task/7/children': '8 9', '/proc/7/schedstat': '5 1000000000 3',
             '/proc/8/schedstat': '5 200000000 3', '/proc/9/schedstat': '5 30000000 3'}

    def opened(path):
        if path not in files:
            raise FileNotFoundError(path)
        return io.StringIO(files[path])
    host = types.SimpleNamespace(open=opened, popen=lambda argv, **_: types.SimpleNamespace(pid=7, stdout=None))
    daemon = processes.Daemon(host, ['x'], tmp_path / 'log')
    assert daemon.waited() == pytest.approx(1.23)
    files['/proc/7/task/7/children'] = '9'
    files['/proc/9/schedstat'] = '5 40000000 3'
    assert daemon.waited() == pytest.approx(1.24)
    files.clear()
    assert daemon.waited() == pytest.approx(1.24)


# --- what they say of a cell -----------------------------------------------------------------------------------------

def often(length, share, seconds=70.0):
    """Stalls of one length that take a share of the time."""
    every = length / share
    return [(round(number * every, 2), length) for number in range(1, int(seconds / every))]


def measures_of(path, **options):
    """A cell of 60 s."""
    synthetic.make_cell(path, synthetic.OURS, options.pop('workload', 'backlogged'), **options)
    return Measures(runs.read_cell(path))


def test_what_is_under_way_bridges_short_stalls(tmp_path):
    assert stalls.bridged_s(measures_of(tmp_path / 'a', stalls=())) == pytest.approx(BRIDGED / 1e3, rel=0.01)
    assert stalls.why_not_judged(measures_of(tmp_path / 'b', stalls=often(0.15, 0.1))) == ''
    assert stalls.why_not_judged(measures_of(tmp_path / 'c', stalls=often(0.15, 0.3))) != ''


def test_turns_of_other_tasks_are_no_stalls(tmp_path):
    """A compiler running beside delays nearly every wakeup by some milliseconds."""
    assert stalls.why_not_judged(measures_of(tmp_path / 'cell', stalls=often(0.009, 0.45))) == ''


@pytest.mark.parametrize('ends, share', [((), 0), ((60.5,), 0), ((60.5, 63.5), 0), ((60.5, 90.5), 7),
                                         ((60.5, 60.9), 0)])
def test_a_second_with_long_stalls_disturbs_the_ten_after_it(tmp_path, ends, share):
    """Of 300 s, 11 are 4 % and 22 are 7 %."""
    found = stalls.why_not_judged(measures_of(tmp_path / 'cell', seconds=300.0, stalls=[(end, 0.25) for end in ends]))
    said = (f'the host stalled for up to 250 ms in a second; {share} % of the time was in a second with more than the '
            '186 ms that round trips and queue bridge, or within 10 s after one')
    assert found == (said if share else '')


def test_a_stall_counts_in_each_second_that_it_lasts(tmp_path):
    times, stalled = stalls.by_second(measures_of(tmp_path / 'cell', stalls=[(30.2, 0.1), (33.5, 2.7)]))
    found = {round(t): round(float(long), 3) for t, long in zip(times, stalled) if long}
    assert found == {30: 0.3, 31: 1.0, 32: 1.0, 33: 0.5}
    assert stalled.sum() == pytest.approx(2.8)


def test_what_is_over_ten_seconds_before_the_measured_interval_does_not_count(tmp_path):
    """The interval is from 30 to 90 s."""
    for end, counts in ((15.5, False), (29.5, True), (89.5, False), (95.0, False), (80.5, True)):
        found = stalls.why_not_judged(measures_of(tmp_path / f'{end}', warm_up=30.0, stalls=[(end, 0.4)]))
        assert bool(found) == counts, end


def test_where_the_processors_are_the_limit_they_may_be_busy(tmp_path):
    assert stalls.why_not_judged(measures_of(tmp_path / 'cell', workload='scale', stalls=often(0.5, 0.2))) == ''


def test_runs_from_before_are_judged_as_before(tmp_path):
    measures = measures_of(tmp_path / 'cell')
    assert stalls.why_not_judged(measures) == ''
    assert not [note for note in table.notes({'msfrs': measures}) if note.startswith('machine')]


def test_how_the_machine_was_is_shown_for_each_cell(tmp_path):
    measures = measures_of(tmp_path / 'cell', stalls=often(0.15, 0.3))
    note, = (note for note in table.notes({'msfrs': measures}) if note.startswith('machine'))
    assert note == ('machine: MSF-RS processors 75 % busy; steal 2.0 %; wakeups late by 150 ms (p99) and 150 ms '
                    '(most), 30.5 % of the time; waited for a processor: squid 10.0 %, load 30.0 %')


# --- the verdict -----------------------------------------------------------------------------------------------------

BUSY = often(0.4, 0.1)


def run_of(tmp_path, *cells):
    """A run of (arm, workload, options), written and judged: (verdict, verdicts.txt, page)."""
    for number, (arm, workload, options) in enumerate(cells):
        synthetic.make_cell(tmp_path / 'run' / f'{number}', arm, workload, **options)
    judged = write_report(tmp_path / 'run', io.StringIO())
    return judged, *((tmp_path / 'run' / name).read_text() for name in ('verdicts.txt', 'report.html'))


def rows_of(judged, *names):
    return [row.outcome for row in judged.rows if row.name in names and row.measured != '-']


@pytest.mark.parametrize('shares', [(2.2, 1.3, 1), (4, 2, 1)])
def test_a_cell_that_the_machine_disturbed_is_neither_missed_nor_reached(tmp_path, shares):
    judged, text, page = run_of(tmp_path, (synthetic.Arm('msfrs', shares=shares), 'phases', {
        'phases': synthetic.four_phases(70.0), 'stalls': BUSY}))
    found, = (row for row in judged.rows if row.name == 'ratio in every phase')
    assert found.outcome == verdict.UNJUDGED and found.measured.startswith(f'{shares[0]:.2f}:')
    assert found.sentence.startswith('Not judged: the host stalled for up to 400 ms in a second; 100 % of the time ')
    assert {row.outcome for row in judged.rows} == {verdict.UNJUDGED}
    assert judged.exit_status(strict=True) == verdict.EXIT_UNJUDGED
    assert 'MISSED' not in text and '\n  ok ' not in text and '\n  unjudged ' in text
    assert f'\n0 of 0 targets reached, 0 missed, {judged.count(verdict.UNJUDGED)} not judged\n' in text
    assert '  Not judged: the machine was too busy for these figures to say anything.' in text
    assert text.count('* Not judged: the host stalled') == 1, 'once for a cell, not for each of its targets'
    assert 'id="unjudged"' in page and page.count('the host stalled for up to') == 2 and 'chip not-judged' in page


def test_on_a_quiet_machine_the_same_is_missed(tmp_path):
    judged, text, page = run_of(tmp_path, (synthetic.Arm('msfrs', shares=(2.2, 1.3, 1)), 'phases', {
        'phases': synthetic.four_phases(70.0), 'stalls': ()}))
    assert rows_of(judged, 'ratio in every phase') == [verdict.MISSED]
    assert judged.exit_status(strict=True) == verdict.EXIT_MISSED
    assert 'not judged' not in text and 'id="unjudged"' not in page


def test_a_comparison_needs_both_arms(tmp_path):
    judged, _, _ = run_of(tmp_path, (synthetic.STOCK, 'backlogged', {'stalls': BUSY}),
                          (synthetic.OURS, 'backlogged', {'stalls': ()}))
    assert rows_of(judged, 'throughput ratio') == [verdict.REACHED]
    assert rows_of(judged, 'CPU seconds per byte', 'drops per MB') == [verdict.UNJUDGED] * 2
    assert judged.savings == []
    assert judged.exit_status(strict=True) == verdict.EXIT_UNJUDGED


def test_what_is_missed_elsewhere_is_missed(tmp_path):
    judged, _, _ = run_of(tmp_path, (synthetic.OURS, 'backlogged', {'stalls': BUSY}),
                          (synthetic.Arm('msfrs', shares=(2, 1, 1)), 'unequal', {'counts': (24, 4, 4), 'stalls': ()}))
    assert rows_of(judged, 'throughput ratio') == [verdict.UNJUDGED]
    assert judged.exit_status(strict=True) == verdict.EXIT_MISSED


def test_occurrences_in_disturbed_cells_do_not_count(tmp_path):
    phases = synthetic.disturbances(400.0, only='down', repeat=10)
    cells = [(synthetic.OURS, 'disturbed', {'seconds': 390, 'seed': seed, 'phases': phases, 'stalls': stalled})
             for seed, stalled in ((1, ()), (2, [(200.0, 30.0)]))]
    judged, _, _ = run_of(tmp_path, *cells)
    found, = (row for row in judged.rows if row.name == 'right again after: link down')
    assert (found.outcome, found.measured) == (verdict.UNJUDGED, '10 of 10 times within 3 %')


def test_requests_lost_on_a_busy_machine_are_not_held_against_anybody(tmp_path):
    judged, _, _ = run_of(tmp_path, (synthetic.OURS, 'backlogged', {'stalls': BUSY}))
    found, = (row for row in judged.rows if row.name == 'requests refused or failed')
    assert found.outcome == verdict.UNJUDGED


def test_host_files_are_checked(tmp_path):
    synthetic.make_cell(tmp_path / 'run' / 'cell', synthetic.OURS, 'backlogged', stalls=())
    (tmp_path / 'run' / 'cell' / 'stalls.csv').write_text('t,late\n')
    assert runs.read_run(tmp_path / 'run').left_out == {'cell': 'cell/stalls.csv:1: no column late_s; found t, late'}
