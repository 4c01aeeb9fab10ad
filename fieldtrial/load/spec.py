# SPDX-License-Identifier: GPL-2.0-or-later
"""What a load generator is told: the cell that it makes the load of, and its part in it; a JSON file."""
import dataclasses
from functools import cached_property

from ..base.spec import CellSpec
from ..site.addresses import DIRECT_PORT, Server, User
from . import workloads
from .traffic import sizes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec(CellSpec):
    """A cell with those who are in it. `mine` are the users whose requests this generator makes; what they offer is
    drawn with all of them."""

    users: tuple[User, ...]
    servers: tuple[Server, ...]
    mine: tuple[User, ...] = ()
    out: str = ''               #: the directory for the records
    t0_monotonic: float         #: when the run begins; 0: now
    tls_ca: str | None = None   #: the file with the servers' certificates; None where there is no TLS
    port: int = 80
    tls_port: int = 443
    direct_port: int = DIRECT_PORT      #: of servers, plain; nobody intercepts it

    @property
    def classes(self):
        """Their names, that of the greatest weight first."""
        return tuple(self.weights)

    @cached_property
    def model(self):
        """The Workload. Raises TrialError if there is no such workload, or it does not take these parameters."""
        return workloads.get(self.workload)(self.parameters)

    @cached_property
    def distribution(self):
        """Of the sizes. Raises TrialError."""
        return sizes.read(self.sizes, self.rate_bps)

    def said(self):
        """What meta.json says of it, the same whoever makes which part."""
        told = dataclasses.asdict(self)
        del told['mine'], told['out']
        return told | {'parameters': self.model.values, 'sizes': self.distribution.summary()}
