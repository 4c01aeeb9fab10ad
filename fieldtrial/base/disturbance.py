# SPDX-License-Identifier: GPL-2.0-or-later
"""What goes wrong in a run, in the words that the load, the site and the analysis share."""
from dataclasses import dataclass

#: For people, by kind.
LABELS = {'rate': 'lower rate', 'down': 'link down', 'cbr': 'CBR burst', 'stall': 'servers stall',
          'tunnels': 'idle tunnels', 'store': 'store stopped'}
#: Kinds in whose time shares are to be right, too, and what the end of one is called.
ENDS = {'store': 'store back'}
#: Shares are right again so long after the end of a disturbance, and are measured from then until RECOVERED_S after it.
SETTLED_S, RECOVERED_S = 10.0, 20.0


@dataclass(frozen=True)
class Disturbance:
    """Something that goes wrong from t_start to t_end (s since t0): `kind` says what, `value` how much, in the unit
    that the kind has; `label` is for people."""
    kind: str
    label: str
    t_start: float
    t_end: float
    value: float
