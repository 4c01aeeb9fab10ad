# SPDX-License-Identifier: GPL-2.0-or-later
"""Saturation next to UDP that belongs to no class. Section 6, table 1 and fig. 14 of the paper.

The stream switches between off and on every `period_s`, off first, as in fig. 14; the rate counts whole frames. It is
sent and counted by `fieldtrial.load.stream`, to an address behind the gateway that no user has.
"""
import itertools

from ...base.spec import Profile
from ..traffic.workload import CbrStream, Parameter
from .backlogged import Backlogged


class Cbr(Backlogged):
    name = 'cbr'
    summary = 'saturated, with on/off UDP at a constant rate of 20, 40 or 60 % of the link beside it'
    profile = Profile('On/off CBR beside', rank=170, saturated=True, shared=True)
    parameters = Backlogged.parameters + (
        Parameter('share', 'number', 0.4, '', 'rate of the stream while it is on, as a share of C', low=0.01,
                  high=0.95),
        Parameter('period_s', 'number', 40.0, 's', 'length of each off and each on period', low=1.0, high=3600.0))

    def beside(self, rate_bps, duration_s):
        """See Workload. None if the run ends before the first burst."""
        period = self.values['period_s']
        begins = (period * number for number in itertools.count(1, 2))
        bursts = tuple((begin, min(begin + period, duration_s))
                       for begin in itertools.takewhile(lambda begin: begin < duration_s, begins))
        return (CbrStream(self.values['share'] * rate_bps, bursts),) if bursts else ()
