# SPDX-License-Identifier: GPL-2.0-or-later
"""The arms: the configurations of the gateway that are compared. All listen alike and see the same load."""
import functools
import operator
from dataclasses import dataclass
from typing import Callable

from ..base.errors import TrialError
from ..base.paths import PROGRAMS
from . import msfrs_edge, shaping, squidconf
from .world import LAN

#: HTB's share of the link, so that its queue and not the ISP's is the bottleneck: as much as MSF-RS' U+.
HTB_SHARE = 0.98
#: Share of the link in SQM's recommendations; swept for CAKE from 85 to 98 %, docs/user/comparison.md has the figures.
SQM_SHARE = 0.95
EDGE = PROGRAMS / 'msfrs-edge'


@dataclass(frozen=True)
class Arm:
    name: str
    title: str
    configuration: Callable             #: World -> text of squid.conf; None: no Squid, the gateway is a router
    scheduled: bool = False             #: whether it has a window to record
    finds: bool = False                 #: whether it estimates the rate of the link
    patched: bool = False               #: whether it needs the patched Squid although it does not schedule
    quic: bool = False                  #: whether QUIC is forwarded, bypassing Squid; else it is rejected
    prepare: Callable = lambda world: ()     #: prepares the world before Squid starts; returns its Daemons
    qdisc: Callable = None              #: of the shaper, which a kernel may lack
    stand_in: str = None                #: the arm that replaces it then
    alone: bool = False                 #: whether it supports one gateway only: one interface, or one Squid


def _behind(qdisc, share, rate=operator.attrgetter('rate_bps')):
    """The fields of an arm with a shaping queueing discipline on the users' side, at a share of the link, or of another
    rate of the world."""
    def prepare(world):
        host, interface = world.shaper
        qdisc(host, interface, share * rate(world), world.users, world.weights)
        (world.directory / 'qdisc.txt').write_text(host.run('tc', 'qdisc', 'show', 'dev', interface))
        return ()
    return {'qdisc': qdisc, 'prepare': prepare, 'alone': True}


def _sqm(world):
    rate = SQM_SHARE * world.rate_bps
    return [msfrs_edge.shape(world, LAN, rate, EDGE, shaping.codel_ms(rate))]


def _told(world):
    return [msfrs_edge.tell(world, LAN, EDGE, squidconf.excess_socket(world))]


def _party(world):
    # The time of 21 full frames at an even share, and four times that until the first drop, since the queue is most of
    # the round trip: QUIC without ECN begins with 32 packets, and dropped packets have already crossed the link.
    target_ms = 21 * shaping.FRAME * 8000 / (world.rate_bps / len(world.users))
    return [msfrs_edge.hold(world, LAN, EDGE, aqm=f'codel target={target_ms:.0f} interval={4 * target_ms:.0f}')]


ARMS = {arm.name: arm for arm in (
    Arm('stock', 'unmodified Squid', squidconf.stock),
    Arm('stock-quic', 'unmodified Squid, and QUIC past it', squidconf.stock, quic=True),
    Arm('off', 'the patched Squid, with msfrs off', squidconf.stock, patched=True),
    Arm('stock-pools', 'Squid with a delay pool for each class', squidconf.pools, alone=True),
    Arm('stock-htb', 'Squid, and HTB at 98 % of the link behind it', squidconf.stock,
        **_behind(shaping.htb, HTB_SHARE)),
    Arm('stock-htb-least', 'the same at 98 % of what a variable-rate link carries nine tenths of the time',
        squidconf.stock, **_behind(shaping.htb, HTB_SHARE, operator.attrgetter('least_bps'))),
    Arm('stock-fq_codel', 'HTB at 95 % of the link, with fq_codel in the leaf of each user', squidconf.stock,
        stand_in='stock-sqm', **_behind(shaping.fq_codel, SQM_SHARE)),
    Arm('stock-cake', 'Squid, and CAKE at 95 % of the link behind it: users share alike', squidconf.stock,
        **_behind(shaping.cake, SQM_SHARE)),
    Arm('stock-sqm', 'Squid, and msfrs-edge with fq and codel at 95 % of the link behind it, users by weight',
        squidconf.stock, prepare=_sqm, alone=True),
    Arm('router', 'no Squid, and nothing that shapes', None, quic=True),
    Arm('router-cake', 'no Squid, and CAKE: users share alike', None, quic=True,
        **_behind(shaping.cake, SQM_SHARE)),
    Arm('router-cake-ingress', 'the same, and what CAKE drops counts as carried (ingress)', None, quic=True,
        **_behind(functools.partial(shaping.cake, more=' ingress'), SQM_SHARE)),
    Arm('router-sqm', 'no Squid, and HTB with fq_codel, as in sqm-scripts: connections share alike', None, quic=True,
        **_behind(shaping.sqm, SQM_SHARE)),
    Arm('router-fq_codel', 'no Squid, and HTB with fq_codel in the leaf of each user: users by weight', None, quic=True,
        **_behind(shaping.fq_codel, SQM_SHARE)),
    Arm('msfrs-paper', 'MSF-RS as in the paper', squidconf.paper('msf wake=paper users=fifo'), scheduled=True),
    Arm('msfrs', 'MSF-RS with its defaults', squidconf.msfrs, scheduled=True),
    Arm('msfrs-least', 'the same, told what a variable-rate link carries nine tenths of the time',
        lambda world: squidconf.msfrs(world, rate=squidconf.kbit(world.least_bps)), scheduled=True),
    # Bounds so wide that they give almost no information.
    Arm('msfrs-auto', 'the same, with rate=auto', lambda world: squidconf.msfrs(
        world, rate=f'auto min={squidconf.kbit(world.rate_bps / 10)} max={squidconf.kbit(world.rate_bps * 20)}'),
        scheduled=True, finds=True, alone=True),
    Arm('msfrs-edge', 'MSF-RS, told by msfrs-edge what comes beside Squid', lambda world: squidconf.msfrs(
        world, extra=(f'msfrs_excess {squidconf.excess_socket(world)}',)), scheduled=True, prepare=_told, alone=True),
    Arm('msfrs-edge-party', 'MSF-RS, and msfrs-edge for QUIC and all else past Squid, on one account',
        squidconf.configured(link=' shared'), scheduled=True, quic=True, prepare=_party, alone=True),
    # Windows and quanta as with the defaults; its effect on the mean and on the shares is the price of fairness.
    Arm('sjf', 'the response with the least remaining first, of any user',
        squidconf.configured(extra=('msfrs_arbiter msf order=remaining ahead=inf',)), scheduled=True),
    Arm('fifo', 'whole responses, in the order of arrival', squidconf.paper('fifo'), scheduled=True),
    Arm('drr', 'whole responses, deficit round robin by class', squidconf.paper('drr'), scheduled=True),
    Arm('msfq', 'whole responses, minimum starting tag by class', squidconf.paper('msfq'), scheduled=True),
)}


def get(name):
    """The arm of that name. Raises TrialError."""
    if name not in ARMS:
        raise TrialError(f'arm {name!r}: there are {", ".join(ARMS)}')
    return ARMS[name]
