# SPDX-License-Identifier: GPL-2.0-or-later
"""Other schedulers of a world's link: msfrs-edge, and another gateway through msfrs-share. Each can be killed, and is
restarted at once, as by its unit."""
import contextlib
import os
import pathlib
import signal
import sys

from fieldtrial.base.paths import PROGRAMS
from fieldtrial.site import msfrs_edge, squidconf
from fieldtrial.site.world import LAN

sys.path.append(str(pathlib.Path(__file__).resolve().parent / 'share'))

import gateways  # noqa: E402 (needs the path above)

#: Seconds within which a killed process must have exited.
SOON = 10.0


class Edge:
    """msfrs-edge reporting to Squid the traffic that bypasses it; for a world whose Squid has `line` in squid.conf."""
    program = PROGRAMS / 'msfrs-edge'
    log = 'beside.log'

    def __init__(self, world):
        self._world = world
        self._socket = squidconf.excess_socket(world)
        self.line = f'msfrs_excess {self._socket}'
        self._daemon = msfrs_edge.tell(world, LAN, self.program, self._socket)

    def _start(self):
        return msfrs_edge.start_telling(self._world, self.program, self._socket)

    @property
    def pid(self):
        return self._daemon.pid

    def kill(self):
        """Returns when its successor reads the queue."""
        os.kill(self.pid, signal.SIGKILL)
        assert self._daemon.wait(SOON) == -signal.SIGKILL
        self._daemon = self._start()

    def totals(self):
        """Its metrics, by name."""
        return msfrs_edge.totals(self._daemon.control)

    def said(self):
        """Lines of its log."""
        return (self._world.directory / self.log).read_text().splitlines()


class Party(Edge):
    """msfrs-edge as a party of the ledger, which limits traffic that bypasses Squid to users' fair shares."""
    log = 'downlink.log'
    line = ''

    def __init__(self, world):
        self._world = world
        self._daemon = msfrs_edge.hold(world, LAN, self.program)

    def _start(self):
        return msfrs_edge.start_holding(self._world, self.program)


class Shared(gateways.Gateway):
    """The msfrs-share of a Squid's gateway."""

    @property
    def pid(self):
        """0 while none runs; other threads may call it meanwhile."""
        process = self.process
        return process.pid if process else 0

    def kill(self):
        """Returns when its successor runs."""
        super().kill()
        self.start()


@contextlib.contextmanager
def another_gateway(gateway, directory):
    """A second gateway of the link, without demand yet, and a store: yields (the Shared of `gateway`, the
    gateways.Gateway of the other)."""
    host = gateway.world.gateway
    with contextlib.ExitStack() as stack:
        stack.enter_context(gateways.Store(host, directory))
        here = stack.enter_context(Shared(host, directory, 'here', ('there',), user='proxy',
                                          segment=gateways.Memory(gateway.ledger).map()))
        there = stack.enter_context(gateways.Gateway(host, directory, 'there', ('here',)))
        here.start()
        there.start()
        here.wait_for('there')
        yield here, there
