# SPDX-License-Identifier: GPL-2.0-or-later
"""A cell whose link's rate followed a trace: its figures, its targets, and its display."""
import json

import numpy as np
import pytest

import synthetic
from fieldtrial.analysis import runs, stats, verdict, wording
from fieldtrial.analysis.measures import Measures
from fieldtrial.load.merge import write_csv
from fieldtrial.report import table
from fieldtrial.report.build import write_report


def test_what_was_offered_is_summed_up():
    times, rates = np.array([0.0, 10.0, 20.0]), np.array([1.0, 3.0, 0.0])
    assert stats.integral(times, rates, 0.0, 30.0) == 40.0
    assert stats.integral(times, rates, 5.0, 15.0) == 20.0
    assert stats.integral(times, rates, -5.0, 5.0) == 5.0
    assert stats.integral(times, rates, 25.0, 30.0) == 0.0


def test_who_came_waited_until_what_was_before_him_had_gone():
    times = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    sent = np.array([0.0, 100.0, 100.0, 100.0, 200.0])     # the link pauses from 1 to 3 s
    waits = stats.waits_ms(times, sent, np.array([50.0, 50.0, 0.0, 100.0, 10.0]))
    assert waits == pytest.approx([500, 2500, 0, 1000, 0])


def follow(path, rates, seconds, trace='lte', found=None):
    """A link with each of `rates` in turn, for `seconds` each."""
    stat = json.loads((path / 'stat.json').read_text())
    (path / 'stat.json').write_text(json.dumps(stat | {'trace': trace}))
    write_csv(path / 'offered.csv', ('t', 'rate_bps'), [(number * seconds, rate) for number, rate in enumerate(rates)])
    if found:
        write_csv(path / 'found.csv', ('t', 'rate_bps'), [(t, found) for t in range(71)])


AUTO = synthetic.Arm('msfrs-auto', shares=(4, 2, 1), utilisation=0.986, queue_ms=58, window=True)


@pytest.fixture
def variable_rate(tmp_path):
    """2 Mbit/s are carried; 4 and 2 Mbit/s in turn were offered, and 2.4 estimated."""
    for arm in (synthetic.STOCK, synthetic.OURS, AUTO):
        path = tmp_path / 'run' / arm.name
        synthetic.make_cell(path, arm, 'https-backlogged', inflight=4)
        follow(path, [4e6, 2e6] * 7, 5.0, found=2.4e6 if arm is AUTO else None)
    return tmp_path / 'run'


def test_figures_are_of_what_was_offered(variable_rate):
    measures = Measures(runs.read_cell(variable_rate / 'msfrs-auto'))
    assert measures.offered_bps() == pytest.approx(3e6)
    assert measures.utilisation() == pytest.approx(0.986 * 2 / 3, rel=1e-3)
    assert measures.found_share() == pytest.approx(0.8)
    assert measures.queue_mean_ms() == pytest.approx(58 / 0.986, rel=0.05), 'it is emptied by what the link carries'
    assert measures.queue_p95_ms() > 1.3 * measures.queue_mean_ms()
    stock = Measures(runs.read_cell(variable_rate / 'stock'))
    with pytest.raises(stats.StatsError, match='not looked for'):
        stock.found_share()


def test_a_link_that_stays_is_as_it_was(tmp_path):
    synthetic.make_cell(tmp_path / 'cell', synthetic.OURS, 'backlogged')
    measures = Measures(runs.read_cell(tmp_path / 'cell'))
    assert measures.offered_bps() == 2e6 and measures.queue_mean_ms() == pytest.approx(58, rel=0.01)


def test_it_is_judged_by_targets_of_its_own(variable_rate):
    groups = verdict.by_condition([Measures(cell) for cell in runs.read_run(variable_rate).cells])
    assert len(groups) == 1
    judged = verdict.judge(groups)
    rows = {row.name: row for row in judged.rows if row.compared.startswith(wording.arm('msfrs-auto'))}
    assert {name: row.outcome for name, row in rows.items()} == {
        'utilisation of what the link offered': verdict.MISSED, 'delay in the queue, p95': verdict.REACHED,
        'throughput ratio': verdict.REACHED, 'small objects, mean': verdict.MISSED}
    others = [row for row in judged.rows if row.outcome in (verdict.REACHED, verdict.MISSED)]
    assert {row.name for row in others} == {*rows, 'requests refused or failed'}, 'a told rate is judged by no target'
    assert not judged.savings


def test_it_is_shown(variable_rate):
    write_report(variable_rate)
    said = (variable_rate / 'verdicts.txt').read_text()
    assert 'Backlogged over kept tunnels: 2 Mbit/s on average (lte)' in said
    assert 'what the link was taken for, of what it carried: MSF-RS, rate=auto 80.0 %' in said
    group, = verdict.by_condition([Measures(cell) for cell in runs.read_run(variable_rate).cells])
    assert [line for line in table.notes(group) if line.startswith("ISP's queue, p95: unmodified Squid ")]
    page = (variable_rate / 'report.html').read_text()
    assert page.count('Rate of the link over time') == 3 and 'A variable-rate link' in page


def test_cells_of_other_traces_are_not_compared(variable_rate):
    path = variable_rate / 'other'
    synthetic.make_cell(path, AUTO, 'https-backlogged', inflight=4)
    follow(path, [4e6, 2e6] * 7, 5.0, trace='leo')
    assert len(verdict.by_condition([Measures(cell) for cell in runs.read_run(variable_rate).cells])) == 2
