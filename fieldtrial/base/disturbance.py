# SPDX-License-Identifier: GPL-2.0-or-later
"""Disturbances of a run, in the terms that the load, the site and the analysis share."""
from dataclasses import dataclass

#: Labels for people, by kind.
LABELS = {'rate': 'lower rate', 'down': 'link down', 'cbr': 'CBR burst', 'stall': 'servers stall',
          'tunnels': 'idle tunnels', 'store': 'store stopped'}
#: Kinds during which shares must be right, too, and the label of their end.
ENDS = {'store': 'store back'}
#: Shares must be right again SETTLED_S after the end of a disturbance; they are measured from then until RECOVERED_S
#: after it.
SETTLED_S, RECOVERED_S = 10.0, 20.0


@dataclass(frozen=True)
class Disturbance:
    """A disturbance from t_start to t_end (s since t0): its `kind`, its `value` in the unit of that kind, and a `label`
    for people."""
    kind: str
    label: str
    t_start: float
    t_end: float
    value: float
