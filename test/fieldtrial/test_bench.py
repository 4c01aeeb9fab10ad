# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of the report from Google Benchmark's output."""
import json

import pytest

from fieldtrial import bench

OUTPUT = {'benchmarks': [
    {'name': 'Scheduler/msf_release/1000/100000/iterations:300/manual_time', 'real_time': 812.5, 'time_unit': 'ns'},
    {'name': 'Scheduler/msf_release/100/10000/iterations:300/manual_time', 'real_time': 1.0, 'time_unit': 'ns'},
    {'name': 'Memory/iterations:1', 'real_time': 5.0, 'bytes_per_queued_item': 160.0, 'bytes_per_queued_request': 360.0},
]}


def test_the_figures_of_the_report():
    assert bench.read(json.dumps(OUTPUT)) == {'ns_per_release': 812.5, 'classes': 1000, 'queued': 100_000,
                                              'bytes_per_queued_request': 360.0}


@pytest.mark.parametrize('missing', (0, 2))
def test_a_figure_that_is_not_there(tmp_path, monkeypatch, capsys, missing):
    """The report is written without it, and mentions that."""
    rows = [row for number, row in enumerate(OUTPUT['benchmarks']) if number != missing]
    fake = tmp_path / 'request_bench'
    fake.write_text(f'#!/bin/sh\ncat <<E\n{json.dumps({"benchmarks": rows})}\nE\n')
    fake.chmod(0o755)
    monkeypatch.setattr(bench, 'built', lambda _: fake)
    bench.measure(tmp_path)
    assert not (tmp_path / 'bench.json').exists()
    assert 'left out of the report' in capsys.readouterr().out


def test_it_is_written_where_the_report_looks(tmp_path, monkeypatch):
    fake = tmp_path / 'request_bench'
    fake.write_text(f'#!/bin/sh\ncat <<E\n{json.dumps(OUTPUT)}\nE\n')
    fake.chmod(0o755)
    monkeypatch.setattr(bench, 'built', lambda _: fake)
    bench.measure(tmp_path)
    assert json.loads((tmp_path / 'bench.json').read_text())['ns_per_release'] == 812.5
