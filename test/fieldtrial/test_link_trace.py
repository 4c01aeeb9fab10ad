# SPDX-License-Identifier: GPL-2.0-or-later
"""Links whose rate follows a trace: its source, the timing of changes of the ISP's link, and the cells that run."""
import contextlib
import errno
import math
import threading
import time
import types

import pytest

from fieldtrial import options, plan
from fieldtrial.base.errors import TrialError
from fieldtrial.site import bottleneck, link_trace, netlink, shaping


def test_each_tenth_of_a_second_has_its_mean():
    trace = link_trace.read('0 1000\n0.1 3000\n0.25 0\n0.3 2000\n', 0.5)
    assert trace.rates == (1000, 3000, 1500, 2000, 2000)
    assert list(trace.changes()) == [
        pytest.approx(each) for each in ((0, 1000, 0.1), (0.1, 3000, 0.1), (0.2, 1500, 0.1), (0.3, 2000, 0.2))]


def test_mean_and_what_there_is_nine_tenths_of_the_time():
    trace = link_trace.LinkTrace([5e6] * 8 + [2e6, 1e6])
    assert trace.mean_bps == 4.3e6
    assert trace.reached_bps(0.1) == 2e6
    assert link_trace.LinkTrace([0, 0, 5e6]).reached_bps(0.1) == 1000, 'squid.conf has no rate of 0'


@pytest.mark.parametrize('name', link_trace.NAMES)
def test_the_simulator_makes_each_course(name):
    trace = link_trace.make(name, 5e6, 120.0, 3)
    assert len(trace.rates) == 1200
    assert 1e6 < trace.mean_bps < 9e6 and trace.reached_bps(0.1) < trace.mean_bps
    assert link_trace.make(name, 5e6, 120.0, 3).rates == trace.rates


def test_a_file_is_read_as_the_simulator_reads_it(tmp_path):
    (tmp_path / 'drive').write_text('0\n10\n49\n60\n')
    trace = link_trace.make(str(tmp_path / 'drive'), 1e6, 1.0, 1)
    assert trace.rates == (4 * 1504 * 80,) * 10
    (tmp_path / 'drive').write_text('5\n3\n')
    with pytest.raises(TrialError, match='drive:2 is not allowed: expected times in ms'):
        link_trace.make(str(tmp_path / 'drive'), 1e6, 1.0, 1)


@pytest.mark.parametrize('said, words', [
    ('', 'not enough values'), ('0 0', 'carries nothing'), ('none', 'could not convert')])
def test_what_the_program_cannot_mean_is_refused(tmp_path, monkeypatch, said, words):
    program = tmp_path / 'program'
    program.write_text(f'#!/bin/sh\necho "{said}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(link_trace, 'built', lambda _: program)
    with pytest.raises(TrialError, match=words):
        link_trace.make('steps', 1e6, 1.0, 1)
    monkeypatch.setattr(link_trace, 'built', lambda _: None)
    with pytest.raises(TrialError, match='^msfrs-sim-access: not built; run make'):
        link_trace.make('steps', 1e6, 1.0, 1)


def test_the_link_is_told_each_rate_once_and_for_how_long():
    told, last = [], threading.Event()

    def set_rate(rate, held_s):
        told.append((rate, round(held_s, 6)))
        if rate == 3.0:
            last.set()
    trace = link_trace.LinkTrace([1.0, 1.0, 2.0, 3.0, 4.0] + [4.0] * 36000)
    with link_trace.Follower(types.SimpleNamespace(set_rate=set_rate), trace, time.monotonic() - 0.35) as follower:
        assert last.wait(60)
        follower.check()
    assert told[:3] == [(1.0, 0.2), (2.0, 0.1), (3.0, 0.1)]


class Bucket:
    """Records its calls."""

    def __init__(self, *_):
        self.told = []

    def change(self, rate_bps, burst, limit):
        self.told.append((rate_bps, burst, limit))

    def wake(self):
        self.told.append('awake')


def test_what_a_bucket_is_given_by_changes_is_taken_from_the_rate(monkeypatch):
    made = object.__new__(bottleneck.TokenBucket)
    made._bucket, made._rate_bps, made._buffer_bytes = Bucket(), 4e6, 50_000
    given = 8 * 1.5 * shaping.FRAME
    made.set_rate(4e6)
    made.set_rate(2e6, 0.1)
    made.set_rate(100.0, 0.2)
    made.set_rate(4e6)
    assert made._bucket.told == [
        (4e6, 3028, 50_000), (2e6 - given / 0.1, 3028, 50_000), (8000, 3028, 50_000),
        (4e6, 3028, 50_000), 'awake'], 'a bucket that slept for long is woken'


@pytest.mark.parametrize('code, told', [(errno.ENOBUFS, None), (errno.ENETDOWN, OSError)])
def test_a_full_queue_is_awake(code, told):
    class Frames:
        def send(self, _):
            raise OSError(code, '')
    bucket = object.__new__(netlink.TokenBucket)
    bucket._frames = Frames()
    with pytest.raises(told) if told else contextlib.nullcontext():
        bucket.wake()


def chosen(*argv):
    return plan.chosen(options.read(list(argv)))


def test_each_trace_has_all_that_can_be_told_to_it(tmp_path):
    drive = tmp_path / 'drive.down'
    drive.write_text('1\n')
    found = chosen('--link-trace', f'lte,{drive}', '--seed', '1,2')
    assert [(each.trace, each.seed) for each in found] == [('lte', 1), ('lte', 2), (str(drive), 1), (str(drive), 2)]
    assert all(each.arms == plan.VARIABLE_RATE and each.rate_bps == 5e6 for each in found)
    assert found[0].label() == 'https-backlogged-lte-5M-6.5bdp-s1'
    assert found[2].label() == 'https-backlogged-drive.down-5M-6.5bdp-s1'
    slower, = chosen('--link-trace', 'steps', '--rates', '2', '--workloads', 'backlogged', '--arms', 'msfrs-auto')
    assert (slower.workload, slower.rate_bps, slower.arms) == ('backlogged', 2e6, ('msfrs-auto',))
    seconds = slower.buffer_bdp * shaping.bdp_bytes(2e6, 154) * 8 / 2e6
    assert math.isclose(seconds, 1.0, rel_tol=0.01)


@pytest.mark.parametrize('argv, words', [
    (('--link-trace', 'lte,nowhere'), "'nowhere' is no file, and none of steps, wave, lte, leo"),
    (('--link-trace', 'lte', '--quick'), '--link-trace makes conditions that no plan has'),
    (('--link-trace', 'lte', '--plan-name', 'today'), '--link-trace makes conditions that no plan has'),
    (('--link-trace', 'lte', '--isp', 'edge'), 'the rate of --isp edge cannot be changed under way')])
def test_what_a_trace_does_not_go_with(capsys, argv, words):
    with pytest.raises(SystemExit) as end:
        options.read(list(argv))
    assert end.value.code == 2 and words in capsys.readouterr().err
