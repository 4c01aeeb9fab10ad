# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics against values that can be worked out by hand."""
import math

import numpy as np
import pytest

from fieldtrial.analysis import stats
from fieldtrial.analysis.stats import StatsError, Survival


def test_counter_is_linear_between_samples():
    times, counts = np.array([0.0, 10.0, 20.0]), np.array([0.0, 100.0, 100.0])
    assert stats.increase(times, counts, 2.0, 15.0) == 80.0


def test_counter_is_not_extrapolated():
    times, counts = np.array([0.0, 10.0]), np.array([0.0, 100.0])
    assert stats.increase(times, counts, 0.0, 10.9) == 100.0       # a sampler may stop slightly early
    with pytest.raises(StatsError, match=r'cover 0\.0 to 10\.0 s, 12\.0 s is outside'):
        stats.increase(times, counts, 0.0, 12.0)
    with pytest.raises(StatsError, match='no samples'):
        stats.increase(np.array([]), np.array([]), 0.0, 1.0)
    with pytest.raises(StatsError, match='is empty'):
        stats.increase(times, counts, 5.0, 5.0)


def test_utilisation_of_a_full_link_is_one():
    assert stats.utilisation(2_500_000, 10.0, 2e6) == 1.0


def test_ratios_per_user_and_their_errors():
    # 24, 4 and 4 users; each user of class 1 has four times the bytes of one of class 3, each of class 2 2.1 times.
    ratios, errors = stats.per_user_ratios({'a': 96, 'b': 8.4, 'c': 4}, {'a': 24, 'b': 4, 'c': 4},
                                           {'a': 4, 'b': 2, 'c': 1})
    assert ratios == pytest.approx({'a': 4, 'b': 2.1, 'c': 1})
    assert errors == pytest.approx({'a': 0, 'b': 0.05, 'c': 0})
    assert stats.worst({'a': 0.01, 'b': -0.05}) == -0.05


def test_ratios_need_a_reference():
    with pytest.raises(StatsError, match='class c received nothing'):
        stats.per_user_ratios({'a': 1, 'c': 0}, {'a': 1, 'c': 1}, {'a': 4, 'c': 1})
    with pytest.raises(StatsError, match='no class'):
        stats.per_user_ratios({}, {}, {})


def test_backlog_as_delay():
    assert stats.queue_delay_ms(25_000, 2e6) == 100


def test_mean_and_quantile_over_time():
    times, values = np.array([0.0, 1.0, 9.0]), np.array([0.0, 100.0, 0.0])
    held = stats.holding_times(times, 10.0)
    assert held.tolist() == [1, 8, 1]
    assert stats.weighted_mean(values, held) == 80
    assert stats.weighted_quantile(values, held, 0.2) == 0
    assert stats.weighted_quantile(values, held, 0.21) == 100


def test_survival_without_cuts_is_ordinary():
    sample = Survival([4, 1, 3, 2], [True] * 4)
    assert sample.mean(100) == pytest.approx(2.5)
    assert sample.quantile(0.5) == 2
    assert sample.quantile(0.95) == 4
    assert sample.quantile(0.25) == 1


def test_survival_counts_the_unfinished():
    # By hand: S falls to 3/4 at 1; 2 is censored; of the two remaining, one ends at 3: 3/8; the last at 4: 0.
    sample = Survival([1, 2, 3, 4], [True, False, True, True])
    assert sample.surviving == pytest.approx([0.75, 0.75, 0.375, 0])
    assert sample.mean(100) == pytest.approx(1 + 0.75 * 2 + 0.375)
    assert sample.cut == 1


def test_survival_of_what_never_finishes():
    sample = Survival([1, 5, 5, 5], [True, False, False, False])
    assert sample.quantile(0.25) == 1
    assert sample.quantile(0.5) == math.inf
    assert sample.mean(9) == pytest.approx(1 + 0.75 * 8)           # extends to the horizon


def test_survival_mean_is_restricted_to_the_horizon():
    assert Survival([1, 10], [True, True]).mean(4) == pytest.approx(2.5)


def test_leaving_out_the_unfinished_would_flatter():
    fast, starved = [0.1] * 90, [60.0] * 10
    sample = Survival(fast + starved, [True] * 90 + [False] * 10)
    assert np.mean(fast) == pytest.approx(0.1)
    assert sample.mean(60) == pytest.approx(6.09)


def test_survival_completions_come_before_cuts_of_the_same_age():
    assert Survival([2, 2], [False, True]).surviving.tolist() == [0.5, 0.5]


def test_survival_refuses_nonsense():
    for durations, finished, why in (([], [], 'no request'), ([-1], [True], 'negative'),
                                     ([math.nan], [True], 'missing')):
        with pytest.raises(StatsError, match=why):
            Survival(durations, finished)


def test_curve_rises_to_the_share_that_finished():
    latencies, shares = Survival([1, 2, 3, 3], [True, True, False, False]).curve()
    assert latencies.tolist() == [0, 1, 2, 3, 3]
    assert shares == pytest.approx([0, 0.25, 0.5, 0.5, 0.5])


def test_blocks_of_time():
    numbers, blocks = stats.block_numbers([10, 14.9, 15, 29.9, 30], 10, 30, 5)
    assert blocks == 4
    assert numbers.tolist() == [0, 0, 1, 3, 3]


def test_bootstrap_covers_the_mean_of_known_blocks():
    values = np.arange(20.0)
    low, high = stats.bootstrap(lambda drawn: values[drawn].mean(), 20, seed=1)
    assert low < values.mean() < high
    # Standard error of the mean of 20 blocks is 1.29: the interval is about +-1.96 of these.
    assert high - low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(20), rel=0.2)
    assert stats.bootstrap(lambda drawn: values[drawn].mean(), 20, seed=1) == (low, high)


def test_bootstrap_needs_blocks_and_numbers():
    assert stats.bootstrap(lambda drawn: 1.0, 7, seed=1) is None
    assert stats.bootstrap(lambda drawn: math.nan, 20, seed=1) is None
