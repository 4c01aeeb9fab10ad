# SPDX-License-Identifier: GPL-2.0-or-later
"""Unfinished work, and the link's utilisation while users wait, for cells that can be computed by hand."""
import dataclasses

import numpy as np
import pytest
import synthetic

from fieldtrial.analysis import runs, verdict, work
from fieldtrial.analysis.measures import Measures
from fieldtrial.analysis.stats import StatsError
from fieldtrial.report import table


def with_requests(tmp_path, arm, asked, link=((0, 0), (70, 0)), workload='open', **parameters):
    """Measures of a cell measured from 10 to 70 s. asked: (start, end, size, bytes received, outcome) of gold-1's
    requests, each of which arrives evenly from start to end. link: (t, bytes sent by then)."""
    directory = tmp_path / 'run' / arm.name
    synthetic.make_cell(directory, arm, workload, counts=(1, 1, 1), **parameters)
    cell = runs.read_cell(directory)
    columns = zip(*((start, start, end, 'gold-1', 'gold', 12, size, got, how) for start, end, size, got, how in asked))
    names = 't_start', 't_first_byte', 't_end', 'user', 'class', 'rtt_ms', 'size', 'bytes', 'outcome'
    times = np.arange(0, 70.25, 0.5)
    came = sum(got * np.clip((times - start) / (end - start), 0, 1) for start, end, _, got, _ in asked)
    nothing = np.zeros(len(times))
    at, sent = map(np.array, zip(*link))
    return Measures(dataclasses.replace(
        cell, requests={name: np.array(column) for name, column in zip(names, columns)},
        received={'t': times, 'gold-1': came, 'silver-1': nothing, 'bronze-1': nothing},
        link=cell.link | {'t': at.astype(float), 'sent_bytes': sent.astype(float)}))


def test_an_object_counts_with_what_is_left_of_it(tmp_path):
    """Half of it, on average, while it arrives evenly."""
    one = with_requests(tmp_path, synthetic.OURS, [(20, 50, 120_000, 120_000, 'ok')])
    assert work.unfinished_bytes(one) == pytest.approx(60_000 * 30 / 60)


@pytest.mark.parametrize('asked, mean', [
    # Only the interval from 10 to 70 s counts: of the first object its second half.
    ([(0, 20, 100_000, 100_000, 'ok')], 25_000 * 10 / 60),
    ([(60, 80, 100_000, 50_000, 'unfinished')], 87_500 * 10 / 60),
    # Before it, and after.
    ([(2, 8, 100_000, 100_000, 'ok')], 0),
    # One without any bytes counts as a whole until it ends; then its user has given up.
    ([(30, 36, 100_000, 0, 'error')], 100_000 * 6 / 60),
    # Two at once add up.
    ([(20, 40, 60_000, 60_000, 'ok'), (30, 50, 60_000, 60_000, 'ok')], 2 * 30_000 * 20 / 60)])
def test_unfinished_work_over_the_interval(tmp_path, asked, mean):
    assert work.unfinished_bytes(with_requests(tmp_path, synthetic.OURS, asked)) == pytest.approx(mean, abs=1e-6)


def test_records_that_contradict_each_other_are_no_figure(tmp_path):
    measures = with_requests(tmp_path, synthetic.OURS, [(20, 50, 120_000, 120_000, 'ok')])
    measures.cell.received['gold-1'] += 1e6
    with pytest.raises(StatsError, match='received more than they had asked for'):
        work.unfinished_bytes(measures)


def test_the_times_in_which_somebody_waits_are_joined(tmp_path):
    asked = [(start, end, 1000, 1000, 'ok') for start, end in
             ((0, 12), (15, 20), (16, 18), (19, 25), (25, 26), (30, 31), (65, 69.5), (66, 67))]
    assert work.waiting(with_requests(tmp_path, synthetic.OURS, asked)) == [(10, 12), (15, 26), (30, 31), (65, 69.5)]


def test_the_link_counts_only_while_somebody_waits(tmp_path):
    """Full from 20 to 30 s and from 40 to 45, and half used from 30 to 35, while requests were under way from 20 to
    40 s; 2 Mbit/s are 250,000 bytes a second."""
    link = ((0, 0), (20, 0), (30, 2.5e6), (35, 3.125e6), (40, 3.125e6), (45, 4.375e6), (70, 4.375e6))
    asked = [(20, 34, 10_000, 10_000, 'ok'), (33, 40, 10_000, 10_000, 'ok')]
    assert work.used_while_waiting(with_requests(tmp_path, synthetic.OURS, asked, link)) == pytest.approx(12.5 / 20)


def test_without_a_request_there_is_no_such_time(tmp_path):
    with pytest.raises(StatsError, match='^nothing was under way$'):
        work.used_while_waiting(with_requests(tmp_path, synthetic.OURS, [(2, 8, 1000, 1000, 'ok')]))


@pytest.mark.parametrize('name', ('scale', 'disturbed', 'bypass'))
def test_other_workloads_have_none(tmp_path, name):
    with pytest.raises(StatsError, match='in this workload$'):
        work.unfinished_bytes(with_requests(tmp_path, synthetic.OURS, [(2, 8, 1000, 1000, 'ok')], workload=name))


@pytest.mark.parametrize('workload', ('open', 'https-open'))
@pytest.mark.parametrize('lasts, outcome', [(20.8, verdict.REACHED), (21.2, verdict.MISSED)])
def test_it_is_judged_against_stock_in_open_cells(tmp_path, workload, lasts, outcome):
    group = {arm.name: with_requests(tmp_path, arm, [(20, 20 + took, 60_000, 60_000, 'ok')], workload=workload,
                                     load=0.95)
             for arm, took in ((synthetic.STOCK, 20), (synthetic.OURS, lasts))}
    found, = (row for row in verdict.judge([group]).rows if row.name == 'unfinished work')
    assert (found.outcome, found.wanted) == (outcome, 'at most 105 %')
    assert found.measured == f'{lasts * 5:.1f} % ({lasts / 2:.1f} kB / 10.0 kB)'
    notes = list(table.notes(group))
    assert ('unfinished work (asked for, not received), mean over time: unmodified Squid 10.0 kB, MSF-RS '
            f'{lasts / 2:.1f} kB') in notes
    assert 'of C, carried while a request was under way: unmodified Squid 0.0 %, MSF-RS 0.0 %' in notes
