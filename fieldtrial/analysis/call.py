# SPDX-License-Identifier: GPL-2.0-or-later
"""Quality of a voice call from the delay and loss of its datagrams: the E-model, ITU-T G.107 (06/2015)."""
import numpy as np

from . import stats
from .stats import StatsError

PACKET_MS = 20          #: packetisation delay
BEST_R = 93.2           #: of G.711 without impairments (G.107, table 3)
ROBUSTNESS = 25.1       #: Bpl of G.711 with concealment (G.113, appendix I)
#: Shares of the datagrams that the receiver's jitter buffer waits for. A long buffer delays all of them; a short one
#: discards those that arrive later.
IN_TIME = np.linspace(0.5, 1, 101)


def delays_ms(measures):
    """Delays of the datagrams that arrived in the measured interval. StatsError if there was no call."""
    cell = measures.cell
    if cell.call is None:
        raise StatsError('the run recorded no call')
    came = cell.call['delay_ms'][stats.in_interval(cell.call['t'], cell.t_start, cell.t_stop)]
    if not len(came):
        raise StatsError('nothing came of the call')
    return came


def p95_ms(measures):
    """Delay that 95 % of the datagrams do not exceed, ms."""
    return float(np.quantile(delays_ms(measures), 0.95))


def lost_share(measures, buffer_ms=np.inf):
    """Share of the datagrams that were dropped, or arrived too late for a jitter buffer of `buffer_ms`."""
    late = float((delays_ms(measures) > buffer_ms).mean())
    lost, came = measures.beside_sum('lost'), measures.beside_sum('packets')
    dropped = max(lost, 0.0) / max(lost + came, 1.0)
    return dropped + (1 - dropped) * late


def of_rating(r):
    """Mean opinion score, 1 to 4.5, of a transmission rating R (G.107, annex B)."""
    if r <= 0:
        return 1.0
    return min(4.5, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def mos(delay_ms, lost):
    """Mean opinion score of a one-way delay from mouth to ear and a share of packets lost at random."""
    echo = 0.024 * delay_ms + max(0.0, 0.11 * (delay_ms - 177.3))   # Id, as simplified by Cole and Rosenbluth (2001)
    lossy = 95 * 100 * lost / (100 * lost + ROBUSTNESS)             # Ie-eff, G.107, equation 7-29, Ie = 0
    return of_rating(BEST_R - echo - lossy)


def score(measures):
    """Mean opinion score of the call with the jitter buffer that gives the best score."""
    return max(mos(PACKET_MS + float(buffer_ms), lost_share(measures, buffer_ms))
               for buffer_ms in np.quantile(delays_ms(measures), IN_TIME))
