# SPDX-License-Identifier: GPL-2.0-or-later
"""Adaptive video next to downloads: the first users of each class play, the others keep the link full.

A player requests segments of `segment_s` one after the other over the user's persistent tunnel to one server, each at
the highest bitrate of the ladder that is at most the harmonic mean of the last MEAN_OF throughputs (the throughput rule
of dash.js). It pauses while its buffer holds `buffer_s`. Stalls are derived from the times when segments ended
(analysis/video.py).
"""
import asyncio
import statistics

from ...base.spec import Answer, Profile
from ...base import ladder
from ...site import grid
from ..traffic import beside
from ..traffic.offers import Offer
from ..traffic.run import PAUSE_AFTER_FAILURE_S
from ..traffic.workload import Parameter

MEAN_OF = 5     #: segments


def rung(throughputs_bps):
    """The bitrate of the next segment, bit/s, given the throughputs of earlier segments."""
    return ladder.highest(statistics.harmonic_mean(throughputs_bps[-MEAN_OF:]) if throughputs_bps else 0.0)


class Video(beside.BesideDownloads):
    """Players of adaptive video, and users with downloads."""

    name = 'video'
    summary = 'players of adaptive video, beside users who keep downloads in flight'
    profile = Profile('Video beside downloads', rank=60, queue=True, answers=(Answer('Video', {
        'bitrate:first': "a {first} user's video has {}", 'stalled': 'playback stalls {} of the time'}),))
    first = 'players'
    parameters = (
        Parameter('players', 'integer', 2, 'users', 'users of each class who play', low=1, high=100),
        *beside.PARAMETERS,
        Parameter('segment_s', 'number', 4.0, 's', 'length of a segment', low=0.5, high=60.0),
        Parameter('buffer_s', 'number', 30.0, 's', 'what a player buffers at most', low=1.0, high=600.0))

    async def act(self, run, user):
        """The player of one user."""
        server = run.offers.random('video', user.name).choice(run.offers.reachable(user))
        segment_s, throughputs, held, since = self.values['segment_s'], [], 0.0, run.now()
        while run.now() < run.spec.duration_s:
            size = grid.nearest(rung(throughputs) * segment_s / 8)
            request = await run.fetch(user, Offer(server, size, True), 'segment', via=self.via)
            if request.outcome != 'ok':
                await asyncio.sleep(PAUSE_AFTER_FAILURE_S)
                continue
            throughputs.append(size * 8 / max(request.t_end - request.t_start, 1e-3))
            held = max(0.0, held - (run.now() - since)) + segment_s
            since = run.now()
            await asyncio.sleep(max(0.0, held + segment_s - self.values['buffer_s']))
