# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules by which a player chooses the bitrate of its next segment. Pure: bitrates in bit/s, times in s.

A rule is called with the video that the player holds (s), the most at which it requests another segment (s; a full
buffer less that segment), and the throughputs of earlier segments.
"""
import math
import statistics

from ...base import ladder

MEAN_OF = 5     #: segments
#: Gamma p of BOLA, the weight of playback without stalls against utility; the paper evaluates 5. With segments of 4 s
#: and a buffer of 30 s the lowest bitrate is chosen below 13 s of video, and the highest from 22 s on. Half of it makes
#: that 8 and 21 s, twice of it 18 and 24 s.
GAMMA_P = 5.0


def by_throughput(_held_s, _full_s, throughputs_bps):
    """The highest bitrate that the harmonic mean of the last throughputs carries; the lowest if nothing is known."""
    return ladder.highest(statistics.harmonic_mean(throughputs_bps[-MEAN_OF:]) if throughputs_bps else 0.0)


def bola(held_s, full_s, _throughputs_bps=()):
    """BOLA-BASIC (Spiteri, Urgaonkar, Sitaraman, INFOCOM 2016): the bitrate with the greatest score
    (V (v + gamma p) - Q) / S, with the utility v = ln(S / least S). V is such that all scores are negative, and BOLA
    waits, only beyond `full_s`."""
    least, *_, top = ladder.LADDER
    v = full_s / (math.log(top / least) + GAMMA_P)
    return max(ladder.LADDER, key=lambda bps: (v * (math.log(bps / least) + GAMMA_P) - held_s) / bps)


#: By name, in the order in which players are given them.
RULES = {'throughput': by_throughput, 'bola': bola}
