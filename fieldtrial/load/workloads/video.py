# SPDX-License-Identifier: GPL-2.0-or-later
"""Adaptive video next to downloads: the first users of each class play, the others keep the link full.

A player shows one video after the other, each from another server. It requests segments of `segment_s` one by one over
the user's persistent tunnel to the server, at the bitrate that its rule chooses (traffic/adaptation.py), and waits
while its buffer holds `buffer_s`. Their first videos began before the run: only a random rest of each is played. The
figures are derived from the times of segments (analysis/video.py).
"""
import asyncio
import itertools

from ...base.errors import TrialError
from ...base.spec import Answer, Profile
from ...site import grid
from ..traffic import adaptation, beside
from ..traffic.offers import Offer
from ..traffic.run import PAUSE_AFTER_FAILURE_S
from ..traffic.workload import Parameter, numbered

BOTH = 'both'       #: rules, by turns


class Video(beside.BesideDownloads):
    name = 'video'
    summary = 'players of adaptive video, beside users who keep downloads in flight'
    profile = Profile('Video beside downloads', rank=60, queue=True, answers=(Answer('Video', {
        'bitrate:first': "a {first} user's video has {}", 'stalled': 'playback stalls {} of the time'}),))
    first = 'players'
    parameters = (
        Parameter('players', 'integer', 2, 'users', 'users of each class who play', low=1, high=100),
        *beside.PARAMETERS,
        Parameter('segment_s', 'number', 4.0, 's', 'length of a segment', low=0.5, high=60.0),
        Parameter('buffer_s', 'number', 30.0, 's', 'what a player buffers at most', low=1.0, high=600.0),
        Parameter('video_s', 'number', 120.0, 's', 'length of a video', low=1.0, high=86400.0),
        Parameter('rule', 'text', BOTH, '', f'how players choose bitrates, {", ".join(adaptation.RULES)} or {BOTH}, '
                  'each for half of the players of a class'))

    def check(self):
        if self.values['rule'] not in (*adaptation.RULES, BOTH):
            raise TrialError(f'workload {self.name}: rule: {self.values["rule"]!r} is not '
                             f'{", ".join(adaptation.RULES)} or {BOTH}')
        if self.values['buffer_s'] < 2 * self.values['segment_s']:
            raise TrialError(f'workload {self.name}: buffer_s: {self.values["buffer_s"]:g} s hold less than two '
                             f'segments of {self.values["segment_s"]:g} s (segment_s)')

    def rules(self, players):
        """{player: its rule}; of the players of a class every second one has the same."""
        names = list(adaptation.RULES) if self.values['rule'] == BOTH else [self.values['rule']]
        return {user: adaptation.RULES[names[(number - 1) % len(names)]] for number, user in numbered(players)}

    async def act(self, run, user):
        await self.play(run, user, self.rules(self.firsts(run.spec.users))[user])

    async def play(self, run, user, rule):
        """The player of one user: one video after the other, until the end of the run."""
        draw, throughputs = run.offers.random('video', user.name), []
        whole = max(1, round(self.values['video_s'] / self.values['segment_s']))
        for number in itertools.count(1):
            server = draw.choice(run.offers.reachable(user))
            segments = draw.randint(1, whole) if number == 1 else whole
            await self._show(run, user, f'{user.name}-v{number}', server, segments, rule, throughputs)
            if run.now() >= run.spec.duration_s:
                return

    async def _show(self, run, user, video, server, segments, rule, throughputs):
        """Plays one video, or as much of it as the run has time for. throughputs: of the player's segments, bit/s;
        appended to."""
        segment_s = self.values['segment_s']
        full_s = self.values['buffer_s'] - segment_s
        runs_out = run.now()        # when playback reaches the end of the buffer
        while segments:
            await run.sleep_until(runs_out - full_s)
            if run.now() >= run.spec.duration_s:
                return
            size = grid.nearest(rule(max(0.0, runs_out - run.now()), full_s, throughputs) * segment_s / 8)
            request = await run.fetch(user, Offer(server, size, True), 'segment', video, via=self.via)
            if request.outcome != 'ok':
                await asyncio.sleep(PAUSE_AFTER_FAILURE_S)
                continue
            throughputs.append(size * 8 / max(request.t_end - request.t_start, 1e-3))
            runs_out = max(runs_out, run.now()) + segment_s
            segments -= 1
        await run.sleep_until(min(runs_out, run.spec.duration_s))
