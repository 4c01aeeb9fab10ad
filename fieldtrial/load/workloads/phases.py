# SPDX-License-Identifier: GPL-2.0-or-later
"""Classes that stop and come back. Section 5.2 and fig. 8 of the paper: four phases of equal length (200 s there).

All; the first class stops; the second stops as well; all again. A class that has stopped sends no new requests; its
outstanding responses still arrive.
"""
from ...base.spec import Profile
from ..traffic.workload import Phase
from .backlogged import Backlogged


class Phases(Backlogged):
    name = 'phases'
    summary = 'saturated in four phases of a quarter of the run each: all, without class 1, without 1 and 2, all'
    profile = Profile('Class phases', rank=140, saturated=True)

    def phases(self, spec):
        """See Workload. With only one class the middle phases have no requests."""
        quarter, classes = spec.duration_s / 4, spec.classes
        active = (classes, classes[1:], classes[2:], classes)
        labels = ('all', f'without {classes[0]}', 'without ' + ' and '.join(classes[:2]), 'all again')
        return tuple(Phase(number * quarter, (number + 1) * quarter, on, label)
                     for number, (on, label) in enumerate(zip(active, labels)))
