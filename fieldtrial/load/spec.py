# SPDX-License-Identifier: GPL-2.0-or-later
"""The specification of a load generator: the cell that it makes load for, and its part of that load; a JSON file."""
import dataclasses
from functools import cached_property

from ..base.spec import CellSpec
from ..site.addresses import DIRECT_PORT, Server, User
from . import internet, workloads
from .traffic import sizes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec(CellSpec):
    """A cell with its users and servers. `mine` are the users whose requests this generator makes; their load is drawn
    together with that of all others."""

    users: tuple[User, ...]
    servers: tuple[Server, ...]
    mine: tuple[User, ...] = ()
    out: str = ''               #: the directory for the records
    t0_monotonic: float         #: start of the run; 0: now
    tls_ca: str | None = None   #: the file with the servers' certificates; None without TLS
    port: int = 80
    tls_port: int = 443
    direct_port: int = DIRECT_PORT      #: of servers, plain HTTP; not intercepted

    @property
    def classes(self):
        """Names of the classes, that of the greatest weight first."""
        return tuple(self.weights)

    @cached_property
    def model(self):
        """The Workload. Raises TrialError if it does not exist or does not take these parameters."""
        return workloads.get(self.workload)(self.parameters)

    @property
    def conversations(self):
        """Names of the kinds of connections that converse() can make."""
        return tuple(kind.name for kind in internet.KINDS)

    @staticmethod
    async def converse(number, source, draw):
        """A connection of the nth of these kinds, from the address `source`. Raises OSError."""
        await internet.converse(internet.KINDS[number], internet.places()[number], source, draw)

    @cached_property
    def distribution(self):
        """The distribution of response sizes. Raises TrialError."""
        return sizes.read(self.sizes, self.rate_bps)

    def said(self):
        """Its entry in meta.json, independent of which generator makes which part."""
        told = dataclasses.asdict(self)
        del told['mine'], told['out']
        return told | {'parameters': self.model.values, 'sizes': self.distribution.summary()}
