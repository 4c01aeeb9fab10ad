# SPDX-License-Identifier: GPL-2.0-or-later
"""Video quality of players: the bitrate they chose and their stall time, derived from the end times of segments."""
import numpy as np

from ..base import ladder
from .stats import StatsError

KIND = 'segment'
#: Share of the link that carries video and not headers: frames of 1,514 bytes with 1,460 of payload, less the
#: overhead of TLS and HTTP/2.
PAYLOAD = 0.955


def _segments(measures):
    """{player: (begins, ends, bytes) of its segments, in order}. StatsError without players."""
    requests = measures.cell.requests
    own = (requests['kind'] == KIND) & (requests['outcome'] == 'ok')
    if not own.any():
        raise StatsError('nobody plays video')
    found = {}
    for user in dict.fromkeys(requests['user'][own]):
        chosen = own & (requests['user'] == user)
        order = np.argsort(requests['t_end'][chosen])
        found[user] = tuple(requests[column][chosen][order] for column in ('t_start', 't_end', 'size'))
    return found


def bitrates(measures):
    """{class: mean bitrate of the segments that its players requested in the measured interval, bit/s}."""
    cell, by_class = measures.cell, {}
    for user, (begun, _, sizes) in _segments(measures).items():
        inside = (begun >= cell.start) & (begun < cell.stop)
        if inside.any():
            by_class.setdefault(cell.users[user], []).append(sizes[inside].mean() * 8 / cell.parameters['segment_s'])
    return {name: float(np.mean(by_class[name])) for name in cell.weights if name in by_class}


def stalled_share(measures, name=None):
    """Mean share of the measured interval in which players, of class `name` or all, stalled with an empty buffer.
    Playback begins with the first segment."""
    cell, shares = measures.cell, []
    for _, ends, _ in (each for user, each in _segments(measures).items() if name in (None, cell.users[user])):
        played = ends[0]                    # when the received video runs out
        stalls = []
        for end in ends[1:]:
            played += cell.parameters['segment_s']
            if end > played:
                stalls.append((played, end))
                played = end
        inside = sum(max(0.0, min(end, cell.stop) - max(begin, cell.start)) for begin, end in stalls)
        shares.append(inside / cell.seconds)
    if not shares:
        raise StatsError(f'nobody of {name} plays video')
    return float(np.mean(shares))


def due(measures):
    """{class: the bitrate that the max-min share of its users carries}; users who do not play are always backlogged."""
    cell = measures.cell
    counts = {name: cell.users_of(name) for name in cell.weights}
    share = PAYLOAD * cell.rate_bps / sum(counts[name] * weight for name, weight in cell.weights.items())
    return {name: ladder.highest(weight * share) for name, weight in cell.weights.items()}


def text(rates):
    """Formatted as text."""
    return ', '.join(f'{name} {rate / 1e3:.0f}' for name, rate in rates.items()) + ' kbit/s'


def least_of_due(measures):
    """(least ratio of a class's bitrate to that of its fair share, bitrates)."""
    rates, wanted = bitrates(measures), due(measures)
    if set(rates) != set(wanted):
        raise StatsError('some class has no player')
    return min(rates[name] / wanted[name] for name in wanted), rates
