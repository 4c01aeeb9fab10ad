# SPDX-License-Identifier: GPL-2.0-or-later
"""Response sizes: the distributions that they are drawn from, and the bytes of a response on the wire.

The origin serves plain files, so sizes are rounded to its grid (site/grid.py). Every requested, served and recorded
size is a size of the grid; means and percentiles below are exact for the grid, not estimates.
"""
import math

from ...base.errors import TrialError
from ...site import grid

#: The paper's response sizes, lognormal (section 5.1, after Barford and Crovella 1998). It gives their mean as 27,656
#: bytes; exp(M + S^2/2) is 27,600.
PAPER_M, PAPER_S = 9.357, 1.318
#: The tail is capped at the bytes that the link carries in this time; this lowers the mean by 0.14 % at 2 Mbit/s.
CAP_SECONDS = 8.0
#: Names of distributions and ranges of their parameters, in order; trailing ones may be left out.
KINDS = {'lognormal': ((0.0, 20.0), (0.01, 10.0), (grid.LOW, grid.HIGH)), 'fixed': ((grid.LOW, grid.HIGH),)}
NEEDED = {'lognormal': 2, 'fixed': 1}

#: A response on the wire: origin's response header, and per segment Ethernet 14 + IPv4 20 + TCP with timestamps 32.
RESPONSE_HEADER, SEGMENT, SEGMENT_HEADER = 272, 1448, 66


def wire_bytes(size):
    """Bytes on the link, frames with their Ethernet header, for a response body of `size` bytes, sent once."""
    stream = size + RESPONSE_HEADER
    return stream + SEGMENT_HEADER * math.ceil(stream / SEGMENT)


class _Distribution:
    """Sizes with their probabilities, from which the mean and the percentiles are computed."""

    def __init__(self, weights):
        self.weights = tuple(weights)   #: ((size, probability), ...), ascending

    def mean(self, cost=lambda size: size):
        """Mean of `cost(size)`, by default of the size itself, in bytes."""
        return sum(cost(size) * share for size, share in self.weights)

    def percentile(self, share):
        """The smallest size not exceeded by at least `share` (0..1) of the responses."""
        total = 0.0
        for size, weight in self.weights:
            total += weight
            if total >= share - 1e-12:
                return size
        return self.weights[-1][0]

    def summary(self):
        """For meta.json: mean, percentiles and the largest, in bytes."""
        return {'mean': round(self.mean(), 1), 'p50': self.percentile(0.5), 'p95': self.percentile(0.95),
                'p99': self.percentile(0.99), 'max': self.weights[-1][0]}


class LogNormal(_Distribution):
    """exp(N(m, s^2)) bytes, at most `cap`, on the grid."""

    def __init__(self, m=PAPER_M, s=PAPER_S, cap=2_000_000):
        self.m, self.s, self.cap = m, s, cap
        kept = [size for size in grid.sizes() if size <= grid.nearest(cap)]
        upper = [grid.LOW * grid.STEP ** (k + 0.5) for k in range(len(kept) - 1)]
        below = [self._below(edge) for edge in upper] + [1.0]
        super().__init__((size, high - low) for size, low, high in zip(kept, [0.0] + below, below))

    def _below(self, size):
        return 0.5 * (1.0 + math.erf((math.log(size) - self.m) / (self.s * math.sqrt(2.0))))

    def draw(self, random):
        """One size in bytes."""
        return grid.nearest(min(random.lognormvariate(self.m, self.s), self.cap))


class Fixed(_Distribution):
    """Always the same size: the grid's nearest to `size`."""

    def __init__(self, size):
        self.size = grid.nearest(size)
        super().__init__([(self.size, 1.0)])

    def draw(self, _random):
        """One size in bytes."""
        return self.size


def read(text, rate_bps):
    """The distribution named by a text: lognormal:M:S[:MAX] or fixed:BYTES. Without text the paper's; without MAX no
    size exceeds the bytes that a link of `rate_bps` carries in CAP_SECONDS, or 100 kB. Raises TrialError."""
    kind, *words = (text or f'lognormal:{PAPER_M}:{PAPER_S}').split(':')
    limits = KINDS.get(kind, ())
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if not NEEDED.get(kind, 1) <= len(numbers) <= len(limits) or \
            not all(low <= number <= high for number, (low, high) in zip(numbers, limits)):
        raise TrialError(f'{text!r}: expected lognormal:M:S or lognormal:M:S:MAX, M up to 20 and S from 0.01 to 10, '
                         f'or fixed:BYTES; sizes are {grid.LOW} to {grid.HIGH} bytes')
    if kind == 'fixed':
        return Fixed(int(numbers[0]))
    cap = min(max(round(rate_bps / 8 * CAP_SECONDS), 100_000), grid.HIGH)
    return LogNormal(*numbers[:2], *map(int, numbers[2:] or [cap]))
