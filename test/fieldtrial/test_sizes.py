# SPDX-License-Identifier: GPL-2.0-or-later
"""The grid of sizes, the lognormal distribution on it, and the bytes of a response on the link."""
import math
import random
import statistics

import pytest

from fieldtrial.load.traffic import sizes
from fieldtrial.site import grid


def test_grid_rises_in_steps_of_two_percent():
    every = grid.sizes()
    assert every[0] == 64
    assert grid.HIGH / 1.02 < every[-1] <= grid.HIGH
    for low, high in zip(every, every[1:]):
        assert 1.0 < high / low <= 1.02 + 1.0 / low     # whole bytes


@pytest.mark.parametrize('size', [64, 100, 1_000, 11_585, 16_384, 65_536, 1_000_000, 99_999_999])
def test_nearest_is_within_one_percent(size):
    assert grid.nearest(size) in grid.sizes()
    assert abs(grid.nearest(size) / size - 1) <= 0.01 + 0.5 / size


def test_nearest_beyond_the_ends_is_the_end():
    assert grid.nearest(0) == grid.nearest(1) == 64
    assert grid.nearest(10 ** 12) == grid.sizes()[-1]


def test_mean_is_the_formulas():
    exact = math.exp(sizes.PAPER_M + sizes.PAPER_S ** 2 / 2)
    assert sizes.LogNormal(cap=grid.HIGH).mean() == pytest.approx(exact, rel=5e-4)
    assert exact == pytest.approx(27_656, rel=0.003)    # the paper's value


def test_cap_takes_little_off():
    capped = sizes.LogNormal(cap=2_000_000)
    assert capped.summary()['max'] == grid.nearest(2_000_000)
    assert 0.997 < capped.mean() / sizes.LogNormal(cap=grid.HIGH).mean() < 0.9999


def test_probabilities_are_those_of_the_draws():
    distribution, draw = sizes.LogNormal(cap=200_000), random.Random(1)
    assert sum(share for _, share in distribution.weights) == pytest.approx(1.0, abs=1e-12)
    drawn = sorted(distribution.draw(draw) for _ in range(40_000))
    assert set(drawn) <= {size for size, _ in distribution.weights}
    assert statistics.mean(drawn) == pytest.approx(distribution.mean(), rel=0.02)
    for share in (0.1, 0.5, 0.95):
        assert drawn[int(share * len(drawn))] == pytest.approx(distribution.percentile(share), rel=0.04)


def test_fixed():
    fixed = sizes.Fixed(16_384)
    assert {fixed.draw(random.Random(1)), fixed.mean(), fixed.percentile(0.99)} == {grid.nearest(16_384)}


def test_wire_bytes():
    header = sizes.RESPONSE_HEADER
    assert sizes.wire_bytes(1448 - header) == 1448 + 66
    assert sizes.wire_bytes(1449 - header) == 1449 + 2 * 66
    assert sizes.wire_bytes(100_000) == 100_000 + header + 70 * 66
