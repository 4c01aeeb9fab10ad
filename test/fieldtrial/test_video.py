# SPDX-License-Identifier: GPL-2.0-or-later
"""Players: the rules by which they choose bitrates, and their figures from records with known segments."""
import math

import pytest

import synthetic
from fieldtrial.analysis import runs, verdict, video, wording
from fieldtrial.analysis.measures import Measures
from fieldtrial.analysis.stats import StatsError
from fieldtrial.base.ladder import LADDER
from fieldtrial.load.merge import write_csv
from fieldtrial.load.traffic import adaptation
from fieldtrial.load.traffic.records import REQUEST_COLUMNS
from fieldtrial.report import columns, table


# --- rules -----------------------------------------------------------------------------------------------------------

def test_bola_chooses_by_the_papers_formula():
    """In segments of p = 4 s, 7.5 of which a buffer of 30 s holds, with gamma p = 5."""
    utility = {bps: math.log(bps / LADDER[0]) for bps in LADDER}
    v = (7.5 - 1) / (utility[LADDER[-1]] + 5)
    for tenths in range(261):
        held = tenths / 10
        scores = {bps: (v * utility[bps] + v * 5 - held / 4) / bps for bps in LADDER}
        assert adaptation.bola(held, 26.0) == max(scores, key=scores.get)


def test_bola_rises_with_the_buffer_alone():
    chosen = [adaptation.bola(held, 26.0) for held in range(27)]
    assert chosen == sorted(chosen) and chosen[13] == LADDER[0] < chosen[14] and chosen[22] < chosen[23] == LADDER[-1]
    assert adaptation.bola(10.0, 26.0, [1e9]) == LADDER[0]


def test_the_throughput_rule_takes_the_harmonic_mean_of_five():
    assert adaptation.by_throughput(20.0, 26.0, []) == LADDER[0]
    assert adaptation.by_throughput(0.0, 26.0, [1e5, *5 * [1e6]]) == 750e3
    assert adaptation.by_throughput(0.0, 26.0, [*4 * [4e6], 4e5]) == 1400e3     # harmonic 1.43 Mbit/s, mean 3.28


# --- figures ---------------------------------------------------------------------------------------------------------


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


def show(tmp_path, *segments):
    """A cell measured from 10 to 70 s with these requests of players: (user, video, from, to, bit/s, outcome)."""
    measures = cell(tmp_path, {})
    write_csv(measures.cell.path / 'requests.csv', REQUEST_COLUMNS, [
        (begun, begun, ended, user, user.partition('-')[0], 's1', 12, bps / 2, bps / 2 if outcome == 'ok' else 0, 200,
         outcome, page, 'segment', 'h2') for user, page, begun, ended, bps, outcome in segments])
    return Measures(runs.read_cell(measures.cell.path))


def test_quality_is_bitrates_less_switches_and_waiting(tmp_path):
    """A video begins at 20 s; its third segment comes 2 s after the first two have been shown."""
    measures = show(tmp_path, ('gold-1', 'v1', 0, 3, 3e6, 'ok'), ('gold-1', 'v2', 20, 21.5, 1e6, 'ok'),
                    ('gold-1', 'v2', 21.5, 23, 2e6, 'ok'), ('gold-1', 'v2', 23, 31.5, 1e6, 'ok'))
    assert video.startup(measures).mean() == pytest.approx(1.5)
    assert video.stalled_share(measures, 'gold') == pytest.approx(2 / 60)
    assert video.switches_per_minute(measures, 'gold') == 2
    assert video.quality_bps(measures) == pytest.approx((4e6 - 2e6 - 5.8e6 * (1.5 + 2)) / 3)
    with pytest.raises(StatsError, match='nobody of bronze plays video'):
        video.quality_bps(measures, 'bronze')


def test_a_switch_is_between_segments_of_one_video(tmp_path):
    measures = show(tmp_path, *(('gold-1', f'v{number}', 12 + 8 * number + at, 13 + 8 * number + at, bps, 'ok')
                                for number, bps in enumerate((1e6, 2e6, 3e6)) for at in (0, 4)))
    assert video.switches_per_minute(measures) == 0
    assert video.quality_bps(measures) == pytest.approx((2 * 6e6 - 5.8e6 * 3) / 6)


def test_what_never_came_was_waited_for(tmp_path):
    """A segment that is cut at 70 s is a stall since 49 s; a first one is a start-up of at least 20 s."""
    measures = show(tmp_path, ('gold-1', 'v1', 40, 45, 1e6, 'ok'), ('gold-1', 'v1', 45, 70, 1e6, 'unfinished'),
                    ('bronze-1', 'v1', 45, 50, 1e6, 'error'), ('bronze-1', 'v1', 50, 70, 1e6, 'unfinished'))
    assert video.stalled_share(measures, 'gold') == pytest.approx(21 / 60)
    sample = video.startup(measures, 'bronze')
    assert (sample.survival.count, sample.survival.cut, sample.quantile(0.5)) == (1, 1, math.inf)
    assert video.quality_bps(measures) == pytest.approx(1e6 - 5.8e6 * (5 + 21 + 25))


def test_the_report_has_a_row_for_each_class(tmp_path):
    measures = show(tmp_path, *(('gold-1', 'v1', 10 + 4 * n, 11 + 4 * n, 1e6, 'ok') for n in range(15)),
                    ('silver-1', 'v1', 0, 1, 1e6, 'ok'), ('bronze-1', 'v2', 60, 70, 1e6, 'unfinished'))
    (heads, rows), = columns.by_class({'msfrs': [measures]})
    assert [column.head for column in heads] == ['players', 'bitrate', 'stalled', 'start-up', 'switches', 'quality']
    assert rows == [['MSF-RS', 'gold', '1', '1.00', '0.0', '1.00', '0', '0.61'],
                    ['MSF-RS', 'silver', '1', '-', '0.0', '-', '0', '-'],
                    ['MSF-RS', 'bronze', '1', '-', '0.0', '-', '0', '-']]
    assert max(map(len, table.arms_text([{'msfrs': measures}]).splitlines())) <= table.WIDTH


@pytest.mark.parametrize('rule, said', [('both', ''), ('bola', ', all players by bola')])
def test_a_condition_says_if_all_players_have_one_rule(tmp_path, rule, said):
    path = tmp_path / 'msfrs'
    synthetic.make_cell(path, synthetic.OURS, 'video', rate_bps=10e6, segment_s=4.0, players=2, rule=rule)
    assert wording.setting(runs.read_cell(path)) == f'10 Mbit/s{said}, ISP buffer 1.5 BDP'


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
