# SPDX-License-Identifier: GPL-2.0-or-later
"""The ways of running the gateway that are compared. All listen alike and see the same load."""
from dataclasses import dataclass
from typing import Callable

from ..base.errors import TrialError
from ..base.paths import PROGRAMS
from . import msfrs_edge, shaping, squidconf
from .world import LAN

#: What HTB leaves free, so that its queue and not the ISP's is the bottleneck: as much as MSF-RS' U+ does.
HTB_SHARE = 0.98
EDGE = PROGRAMS / 'msfrs-edge'


@dataclass(frozen=True)
class Arm:
    name: str
    title: str
    configuration: Callable             #: World -> text of squid.conf
    scheduled: bool = False             #: whether it has a window to record
    patched: bool = False               #: whether it needs the patched Squid all the same
    prepare: Callable = lambda world: None   #: done to the world before Squid starts


def _htb(world):
    shaping.htb(world.gateway, LAN, HTB_SHARE * world.rate_bps, world.users, world.weights)


def _told(world):
    msfrs_edge.tell(world, LAN, EDGE, squidconf.excess_socket(world))


ARMS = {arm.name: arm for arm in (
    Arm('stock', 'Squid as it comes', squidconf.stock),
    Arm('off', 'the patched Squid, with msfrs off', squidconf.stock, patched=True),
    Arm('stock-pools', 'Squid with a delay pool for each class', squidconf.pools),
    Arm('stock-htb', 'Squid, and HTB at 98 % of the link behind it', squidconf.stock, prepare=_htb),
    Arm('msfrs-paper', 'MSF-RS as in the paper', squidconf.msfrs_paper, scheduled=True),
    Arm('msfrs', 'MSF-RS with its defaults', squidconf.msfrs, scheduled=True),
    Arm('msfrs-edge', 'MSF-RS, told by msfrs-edge what comes beside Squid', squidconf.msfrs_told, scheduled=True,
        prepare=_told),
    Arm('sjf', 'the least left of a response first, whoever wants it', squidconf.shortest_first, scheduled=True),
    Arm('fifo', 'whole responses, in the order of arrival', squidconf.queueing('fifo'), scheduled=True),
    Arm('drr', 'whole responses, deficit round robin by class', squidconf.queueing('drr'), scheduled=True),
    Arm('msfq', 'whole responses, minimum starting tag by class', squidconf.queueing('msfq'), scheduled=True),
)}


def get(name):
    """The arm of that name. Raises TrialError."""
    if name not in ARMS:
        raise TrialError(f'arm {name!r}: there are {", ".join(ARMS)}')
    return ARMS[name]
