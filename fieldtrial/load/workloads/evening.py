# SPDX-License-Identifier: GPL-2.0-or-later
"""An evening in the boarding house of a school: everybody browses, some watch video or download updates, one calls.
The parts are those of other workloads: `quic-pages`, every tenth user by HTTP/3, `video`, and `call`, to a telephone
that is no user. Updates and uploads have long pauses between them. Videos adapt to what the link leaves and are most of
the bytes.
"""
import asyncio

from ...base.spec import Profile
from ...site import grid
from ..traffic import closed
from ..traffic.workload import Parameter, numbered
from .call import Call
from .pages import PAGES
from .quic import QuicPages
from .video import Video

#: Users of three classes, of a hundred: staff, older pupils, younger ones.
SHARES = (10, 30, 60)
#: Size of an update, bytes, and the mean pause between two of a user, s: together about 7 Mbit/s of 300 users.
UPDATE, UPDATE_PAUSE_S = grid.nearest(10e6), 180.0
#: The same of an uploaded file, the size of a picture: about 2 Mbit/s. The trial does not limit the uplink, so their
#: size and number must. Of the downlink they take only acknowledgements, 2 % of their bytes.
FILE, FILE_PAUSE_S = grid.nearest(2e6), 120.0
HTTP3_PERCENT = 10
#: Parameters that are those of `video`.
OF_VIDEO = ('segment_s', 'buffer_s', 'video_s', 'rule')


def evenly(users, percent, before=0):
    """`percent` of a hundred users of each class, spread over the class; each `before` places before the usual one."""
    return [user for number, user in numbered(users)
            if (number + before) * percent // 100 > (number + before - 1) * percent // 100]


class Evening(QuicPages):
    name = 'evening'
    summary = 'an evening of many users: pages, adaptive video, updates, uploads, HTTP/3 and a call'
    profile = Profile('An evening', rank=1, shared=True, queue=True,
                      answers=(PAGES, *Video.profile.answers, *Call.profile.answers))
    parameters = (
        Parameter('users', 'integer', 300, 'users', 'in all; of three classes the first has a tenth and the last six '
                  'tenths', low=3, high=2000),
        Parameter('players', 'integer', 20, '%', 'of each class who watch video', low=0, high=100),
        Parameter('updates', 'integer', 5, '%', 'of each class who download updates', low=0, high=100),
        Parameter('uploads', 'integer', 5, '%', 'of each class who upload files', low=0, high=100),
        Parameter('think_s', 'number', 60.0, 's', 'mean pause (exponential) between two pages of a user', low=0.0,
                  high=3600.0),
        *(each for each in QuicPages.parameters if each.name in ('objects', 'connections')),
        *(each for each in Video.parameters if each.name in OF_VIDEO))

    def check(self):
        self._video().check()

    def _video(self):
        return Video({name: self.values[name] for name in OF_VIDEO})

    def population(self, classes, per_class):
        shares = SHARES if len(classes) == len(SHARES) else [100 / len(classes)] * len(classes)
        return {name: max(1, round(self.values['users'] * share / 100)) for name, share in zip(classes, shares)}

    def quic_users(self, users):
        return tuple(evenly(users, HTTP3_PERCENT))

    def beside(self, rate_bps, duration_s):
        return Call().beside(rate_bps, duration_s)

    async def run(self, run):
        mine, video = set(run.spec.mine), self._video()
        rules = video.rules(evenly(run.spec.users, self.values['players']))
        # A user who uploads has no video and no updates.
        updating, sending = ([user for user in evenly(run.spec.users, self.values[what], before) if user in mine]
                             for what, before in (('updates', 0), ('uploads', 1)))
        async with asyncio.TaskGroup() as tasks:
            for user in run.spec.mine:
                tasks.create_task(self.browse(run, user))
            for user, rule in rules.items():
                if user in mine:
                    tasks.create_task(video.play(run, user, rule))
            tasks.create_task(closed.run(run, 1, UPDATE_PAUSE_S, self.phases(run.spec), 'update',
                                         self.via, updating, UPDATE))
            for user in sending:
                tasks.create_task(self._upload(run, user))

    async def _upload(self, run, user):
        """The uploads of one user."""
        pause = run.offers.random('pause', user.name)
        for offer in closed.offers_of(run, user, 'upload', FILE):
            await asyncio.sleep(pause.expovariate(1.0 / FILE_PAUSE_S))
            if run.now() >= run.spec.duration_s:
                return
            await run.upload(user, offer)
