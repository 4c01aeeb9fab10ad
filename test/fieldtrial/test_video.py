# SPDX-License-Identifier: GPL-2.0-or-later
"""Players' figures, from records with known segments."""
import pytest

import synthetic
from fieldtrial.analysis import runs, verdict, video
from fieldtrial.analysis.measures import Measures
from fieldtrial.analysis.stats import StatsError


def cell(tmp_path, bitrates, late=0.0, players=2):
    """10 Mbit/s, four users in each class; a segment of 4 s begins every 4 s, and the one of 40 s ends `late` s after
    its deadline."""
    path = tmp_path / 'run' / 'msfrs'
    synthetic.make_cell(path, synthetic.Arm('msfrs'), 'video', rate_bps=10e6, counts=(4, 4, 4), segment_s=4.0,
                        players=players)
    synthetic.play(path, bitrates, late, players)
    return Measures(runs.read_cell(path))


def test_of_the_share_of_a_user_the_ladder_gives_what_is_due(tmp_path):
    measures = cell(tmp_path, {'gold': 1.05e6, 'silver': 560e3, 'bronze': 235e3})
    assert video.due(measures) == {'gold': 1.05e6, 'silver': 560e3, 'bronze': 235e3}      # 1364, 682, 341 kbit/s
    least, rates = video.least_of_due(measures)
    assert least == pytest.approx(1, rel=0.01)
    assert video.text({'gold': 1.05e6, 'silver': 560e3}) == 'gold 1050, silver 560 kbit/s'
    assert list(rates) == ['gold', 'silver', 'bronze']


def test_the_class_that_has_least_of_its_share_counts(tmp_path):
    least, _ = video.least_of_due(cell(tmp_path, {'gold': 560e3, 'silver': 560e3, 'bronze': 235e3}))
    assert least == pytest.approx(560 / 1050, rel=0.02)


def test_a_player_stands_still_from_the_end_of_its_buffer_to_the_next_segment(tmp_path):
    assert video.stalled_share(cell(tmp_path, {'gold': 1e6, 'silver': 5e5, 'bronze': 2e5})) == 0
    measures = cell(tmp_path / 'late', {'gold': 1e6, 'silver': 5e5, 'bronze': 2e5}, late=2.0)
    # The previous segment lasts to 43 s; the late one arrives at 49 s, after its successor, at 47 s.
    assert video.stalled_share(measures) == pytest.approx(4.0 / 60, rel=0.01)


def test_without_players_there_is_nothing_to_tell(tmp_path):
    with pytest.raises(StatsError, match='nobody plays video'):
        video.bitrates(cell(tmp_path, {}))
    with pytest.raises(StatsError, match='some class has no player'):
        video.least_of_due(cell(tmp_path / 'two', {'gold': 1e6, 'silver': 5e5}))


def test_it_is_judged(tmp_path):
    cell(tmp_path, {'gold': 1.05e6, 'silver': 560e3, 'bronze': 235e3}, late=2.0)
    groups = verdict.by_condition([Measures(each) for each in runs.read_run(tmp_path / 'run').cells])
    rows = {row.name: row for row in verdict.judge(groups).rows if row.section == 'Video'}
    assert rows['bitrate of the class that has least of its share'].outcome == verdict.REACHED
    assert (rows['playback stalls'].outcome, rows['playback stalls'].measured) == (verdict.MISSED, '6.7 %')
