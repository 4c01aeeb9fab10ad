# SPDX-License-Identifier: GPL-2.0-or-later
"""Few users, each with a few large downloads at once, and still a full link: with so few responses in service a window
that is only slightly too wide does not restrain any of them.

The downloads of a user use persistent tunnels, each to a server drawn at random; two to the same server share a tunnel.
"""
from ...base.spec import Profile
from ...site import grid
from ..traffic import closed
from ..traffic.workload import Parameter, Workload


class Few(Workload):
    """A closed loop of large downloads by one user in each class."""

    name = 'few'
    summary = 'saturated by few: one user in each class, with one to three large downloads at a time'
    profile = Profile('Few users', rank=50, saturated=True, queue=True)
    via = 'h2'
    parameters = (
        Parameter('downloads', 'integer', 3, 'downloads', 'that each user keeps in flight', low=1, high=64),
        Parameter('size_s', 'number', 4.0, 's', 'size of a download: what the link carries in this time', low=0.1,
                  high=600.0),
        Parameter('users', 'integer', 1, 'users', 'users of each class', low=1, high=100))

    def population(self, classes, per_class):
        return dict.fromkeys(classes, self.values['users'])

    async def run(self, run):
        await closed.run(run, self.values['downloads'], 0.0, self.phases(run.spec), via=self.via,
                         size=grid.nearest(self.values['size_s'] * run.spec.rate_bps / 8))
