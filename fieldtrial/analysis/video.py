# SPDX-License-Identifier: GPL-2.0-or-later
"""Video quality of players, derived from the times of their segments: bitrate, stalls, start-up, switches, and the
quality of experience of Yin, Jindal, Sekar, Sinopoli (SIGCOMM 2015), which is their weighted sum.

A video is the segments of a user with the same `page`. Playback begins with its first segment and stalls while the
buffer is empty. Everything is of the measured interval of the cell; a video that begins in it has a start-up.
"""
from typing import NamedTuple

import numpy as np

from ..base import ladder
from .stats import StatsError

KIND = 'segment'
#: Share of the link that carries video and not headers: frames of 1,514 bytes with 1,460 of payload, less the
#: overhead of TLS and HTTP/2.
PAYLOAD = 0.955
#: Yin et al.'s balanced weights: the cost of a switch, in the difference of the two bitrates, and of a second without
#: playback costs, by a stall or at start-up: the highest bitrate.
SWITCH, WAIT_BPS = 1.0, ladder.LADDER[-1]


class _Video(NamedTuple):
    """Times of the requests of a video in the order of their ends, s; bitrates of those that are `ok`, bit/s."""
    user: str
    begun: np.ndarray
    ended: np.ndarray
    ok: np.ndarray
    bps: np.ndarray

    def started(self):
        """When its first segment had come; None if none has."""
        return self.ended[self.ok][0] if self.ok.any() else None

    def stalls(self, segment_s):
        """Yields (from, to) of each time without playback, without the start-up. Of a segment that has not come it is
        known how long it was waited for."""
        runs_out = self.started()
        for ended, ok in zip(self.ended, self.ok) if runs_out is not None else ():
            if ended > runs_out:
                yield runs_out, ended
                runs_out = ended
            runs_out += segment_s * ok

    def in_order(self):
        """(begins, bitrates) of its segments that came, in the order in which they are shown."""
        begun, bps = self.begun[self.ok], self.bps[self.ok]
        order = np.argsort(begun, kind='stable')
        return begun[order], bps[order]


def _videos(measures, name=None):
    """The videos of players of class `name` or all. StatsError without players."""
    cell, requests = measures.cell, measures.cell.requests
    own, found = np.flatnonzero(requests['kind'] == KIND), {}
    if not len(own):
        raise StatsError('nobody plays video')
    for place in own[np.argsort(requests['t_end'][own], kind='stable')]:
        user = requests['user'][place]
        if name in (None, cell.users[user]):
            found.setdefault((user, requests['page'][place]), []).append(place)
    if not found:
        raise StatsError(f'nobody of {name} plays video')
    return [_Video(user, requests['t_start'][places], requests['t_end'][places], requests['outcome'][places] == 'ok',
                   requests['size'][places] * 8 / cell.parameters['segment_s'])
            for (user, _), places in found.items()]


def _inside(measures, begin, end):
    """How much of the time from `begin` to `end` was measured, s."""
    return max(0.0, min(end, measures.cell.t_stop) - max(begin, measures.cell.t_start))


def players(measures, name=None):
    """Number of players of class `name` or all."""
    return len({video.user for video in _videos(measures, name)})


def bitrates(measures):
    """{class: mean over its players of the mean bitrate of their segments, bit/s}."""
    cell, of_user = measures.cell, {}
    for video in _videos(measures):
        begun, bps = video.in_order()
        of_user.setdefault(video.user, []).extend(bps[(begun >= cell.t_start) & (begun < cell.t_stop)])
    by_class = {}
    for user, bps in of_user.items():
        if bps:
            by_class.setdefault(cell.users[user], []).append(np.mean(bps))
    return {name: float(np.mean(by_class[name])) for name in cell.weights if name in by_class}


def bitrate(measures, name=None):
    """The same of one class, or the mean of all classes."""
    rates = bitrates(measures)
    if name not in (None, *rates):
        raise StatsError(f'nobody of {name} plays video')
    return rates[name] if name else float(np.mean(list(rates.values())))


def _stalled_s(measures, videos):
    return sum(_inside(measures, *stall) for video in videos
               for stall in video.stalls(measures.cell.parameters['segment_s']))


def stalled_share(measures, name=None):
    """Mean share of the time in which players, of class `name` or all, stalled with an empty buffer."""
    return _stalled_s(measures, _videos(measures, name)) / players(measures, name) / measures.cell.seconds


def startup(measures, name=None):
    """Sample of the start-up delays: from the first request of a video to the end of its first segment."""
    cell, videos = measures.cell, _videos(measures, name)
    started = [video.started() for video in videos]
    table = {'t_start': np.array([video.begun.min() for video in videos]),
             't_end': np.array([cell.cut if end is None else end for end in started]),
             'outcome': np.array(['unfinished' if end is None else 'ok' for end in started])}
    return measures.sample_of(table)


def _changes(measures, video):
    """Differences between the bitrates of successive segments, of which the later was measured, bit/s; 0: none."""
    begun, bps = video.in_order()
    return np.abs(np.diff(bps))[(begun[1:] >= measures.cell.t_start) & (begun[1:] < measures.cell.t_stop)]


def switches_per_minute(measures, name=None):
    """Changes of the bitrate in a minute of a player, on average."""
    count = sum(np.count_nonzero(_changes(measures, video)) for video in _videos(measures, name))
    return count * 60 / players(measures, name) / measures.cell.seconds


def quality_bps(measures, name=None):
    """Quality of experience for each segment, bit/s, of class `name` or all: the bitrates of the segments, less SWITCH
    times their changes, less WAIT_BPS times the seconds of stalls and start-ups, over the number of segments. At most
    the highest bitrate; less than 0 if playback stalls for longer than it runs."""
    cell, videos = measures.cell, _videos(measures, name)
    shown = [bps[(begun >= cell.t_start) & (begun < cell.t_stop)] for begun, bps in map(_Video.in_order, videos)]
    count = sum(map(len, shown))
    if not count:
        raise StatsError('no segment began in the measured interval')
    waited = _stalled_s(measures, videos) + sum(
        _inside(measures, video.begun.min(), cell.cut if video.started() is None else video.started())
        for video in videos)
    changed = sum(_changes(measures, video).sum() for video in videos)
    return float(sum(map(np.sum, shown)) - SWITCH * changed - WAIT_BPS * waited) / count


def due(measures):
    """{class: the bitrate that the max-min share of its users carries}; users who do not play are always backlogged."""
    cell = measures.cell
    counts = {name: cell.users_of(name) for name in cell.weights}
    share = PAYLOAD * cell.rate_bps / sum(counts[name] * weight for name, weight in cell.weights.items())
    return {name: ladder.highest(weight * share) for name, weight in cell.weights.items()}


def text(rates):
    return ', '.join(f'{name} {rate / 1e3:.0f}' for name, rate in rates.items()) + ' kbit/s'


def least_of_due(measures):
    """(least ratio of a class's bitrate to that of its fair share, bitrates)."""
    rates, wanted = bitrates(measures), due(measures)
    if set(rates) != set(wanted):
        raise StatsError('some class has no player')
    return min(rates[name] / wanted[name] for name in wanted), rates
