# SPDX-License-Identifier: GPL-2.0-or-later
"""Saturation of a link that is too fast for the load generator's own client: a process of curl for each user. Plain
HTTP/1, so that clients and servers take as little processor time as possible."""
from ...base.spec import Profile
from ...site import grid
from ..traffic import curl
from ..traffic.closed import PARAMETERS
from ..traffic.workload import Parameter, Workload


class Scale(Workload):
    name = 'scale'
    summary = 'saturated; requests are made by curl, for links faster than the load generator'
    profile = Profile('Many users of a fast link', rank=110, saturated=True, latency=True, queue=True, processors=True)
    parameters = PARAMETERS[:1] + (
        Parameter('size', 'integer', 0, 'bytes', 'size of every object; 0: as drawn', low=0, high=grid.HIGH),)

    async def run(self, run):
        await curl.run(run, self.values['inflight'], grid.nearest(self.values['size']) if self.values['size'] else None)
