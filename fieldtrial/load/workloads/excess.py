# SPDX-License-Identifier: GPL-2.0-or-later
"""Saturation, and one user also receives UDP that bypasses Squid. Section 6 (2) of the paper: traffic of a class that
no request of the gateway caused still counts as service of that class.

The stream goes to the first user all the time. Its rate should be below the user's fair share of the link, which at
weights 4:2:1 with four users each is 14 % for a user of the first class. Then the user can, and should, have exactly
the remainder of its share through Squid.
"""
from ...base.spec import Profile
from ..traffic.workload import CbrStream, Parameter
from .backlogged import Backlogged


class Excess(Backlogged):
    name = 'excess'
    summary = 'saturated, and the first user also receives UDP at a constant rate beside Squid'
    profile = Profile('One user served beside Squid', rank=180, saturated=True, shared=True)
    parameters = Backlogged.parameters + (
        Parameter('share', 'number', 0.1, '', 'rate of the stream, as a share of C', low=0.01, high=0.95),)

    def beside(self, rate_bps, duration_s):
        return (CbrStream(self.values['share'] * rate_bps, ((0.0, duration_s),), receiver=0),)
