# SPDX-License-Identifier: GPL-2.0-or-later
"""Saturation with many more users in the first class. Section 5.4 and fig. 10 of the paper: 24 users against 4 and 4.

Weights are per user, so the ratio between two users of two classes must not depend on how many there are.
"""
from ...base.spec import Profile
from ..traffic.workload import Parameter
from .backlogged import Backlogged


class Unequal(Backlogged):
    name = 'unequal'
    summary = 'saturated, with 24 users in the first class against the usual number in the others'
    profile = Profile('Unequal users', rank=130, saturated=True, latency=True, work=True)
    parameters = Backlogged.parameters + (
        Parameter('first', 'integer', 24, 'users', 'users of the first class', low=1, high=1000),)

    def population(self, classes, per_class):
        return {**super().population(classes, per_class), classes[0]: self.values['first']}
