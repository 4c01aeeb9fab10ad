# SPDX-License-Identifier: GPL-2.0-or-later
"""The E-model, and the figures of a call with known delays."""
import pytest

import synthetic
from fieldtrial.analysis import call, runs
from fieldtrial.analysis.measures import Measures
from fieldtrial.analysis.stats import StatsError


def measures(tmp_path, delays_ms=None, lost=0):
    """A cell with a call; see synthetic.talk."""
    path = tmp_path / 'run' / 'msfrs'
    synthetic.make_cell(path, synthetic.Arm('msfrs'), 'call')
    if delays_ms:
        synthetic.talk(path, delays_ms, lost)
    return Measures(runs.read_cell(path))


@pytest.mark.parametrize('rating, score', [(90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58), (0, 1), (-5, 1)])
def test_scores_of_ratings_are_those_of_the_standard(rating, score):
    assert call.of_rating(rating) == pytest.approx(score, abs=0.01)     # G.107, table B.1


def test_delay_hurts_more_beyond_177_ms_and_loss_at_once():
    assert call.mos(0, 0) == call.of_rating(93.2)
    assert call.mos(177, 0) - call.mos(277, 0) > 3 * (call.mos(77, 0) - call.mos(177, 0))
    assert call.mos(50, 0.01) < call.mos(50, 0) - 0.05 and call.mos(5000, 0.5) == 1


def test_delay_counts_and_what_is_lost_or_comes_too_late(tmp_path):
    short = measures(tmp_path / 'short', [30.0] * 60)
    assert (call.p95_ms(short), call.lost_share(short)) == (30.0, 0)
    assert call.score(short) == call.mos(50, 0)
    late = measures(tmp_path / 'late', [30.0] * 54 + [400.0] * 6)
    assert call.p95_ms(late) == 400
    assert call.lost_share(late, 30) == pytest.approx(0.1) and call.lost_share(late) == 0
    lossy = measures(tmp_path / 'lossy', [30.0] * 60, lost=12)
    assert call.lost_share(lossy) == pytest.approx(12 / 120)
    assert call.score(lossy) < 3.5 < 4.3 < call.score(short)


def test_where_there_was_none_it_is_said(tmp_path):
    with pytest.raises(StatsError, match='the run recorded no call'):
        call.score(measures(tmp_path))


def test_the_jitter_buffer_is_the_one_that_suits_the_call(tmp_path):
    few = measures(tmp_path / 'few', [30.0] * 57 + [400.0] * 3)
    assert call.score(few) == call.mos(50, 0.05) > call.mos(420, 0)       # a short buffer, which loses late datagrams
    many = measures(tmp_path / 'many', [30.0] * 30 + [80.0] * 30)
    assert call.score(many) == call.mos(100, 0) > call.mos(50, 0.5)       # one that waits for all
