# SPDX-License-Identifier: GPL-2.0-or-later
"""The scenario for packets: senders, a router with msfrs-edge, receivers.

    senders --- distance --- router out0 ===== eth0 receivers
    own addresses            msfrs-edge        own addresses

All data goes from left to right, so the only queue is in front of out0. TCP is cubic, set by route.

    with EdgeLink(rtts_ms=(10, 200), receivers=2) as link:
        link.start_edge('conf/edge/uplink.conf')
        with Wire(link.receivers_host, 'eth0') as wire:
            flows.run(link, [Flow(link.senders[0], link.receivers[0])], seconds=5)
"""
import pathlib
from dataclasses import dataclass

from fieldtrial.base.paths import PROGRAMS
from fieldtrial.site import addresses, delay, msfrs_edge
from fieldtrial.site.netns import NetnsFabric
from fieldtrial.site.scenario import Scenario
from fieldtrial.site.world import SYSCTLS

#: IN: towards the first sender, if it has no distance.
IN, OUT = 's1', 'out0'


@dataclass(frozen=True)
class End:
    """Additional addresses of a sender or receiver; None: no address of that family."""
    v4: str = None
    v6: str = None


class EdgeLink(Scenario):
    """Built on entry, torn down on exit.

    rtts_ms: one sender for each, with that round-trip time; 0: without distance.
    receivers: number of addresses at the other end. mtu: of out0. prefix: where the programs are installed.
    """

    def __init__(self, *, rtts_ms=(0,), receivers=1, mtu=1500, prefix=None):
        super().__init__()
        self.senders = addresses.servers(rtts_ms)
        self.receivers = addresses.users(['all'], (receivers,))
        self._mtu = mtu
        self._prefix = pathlib.Path(prefix or PROGRAMS.parent)
        self.distance = None
        self.senders_host = self.router = self.receivers_host = None

    def _build(self):
        fabric = self._stack.enter_context(NetnsFabric('edge'))
        self.directory = pathlib.Path(self._stack.enter_context(fabric.directory()))
        self.senders_host, self.router, self.receivers_host = map(fabric.host, ('senders', 'router', 'receivers'))
        for host in (self.senders_host, self.router, self.receivers_host):
            host.set_kernel(SYSCTLS)
        fabric.wire(self.router, OUT, self.receivers_host, 'eth0')
        self.router.batch([f'link set {OUT} mtu {self._mtu}', f'addr add {addresses.GATEWAY_IN4}/16 dev {OUT}',
                           f'addr add {addresses.GATEWAY_IN6}/49 dev {OUT} nodad'])
        lines = [f'link set eth0 mtu {self._mtu}']
        for receiver in self.receivers:
            lines += [f'addr add {receiver.v4}/16 dev eth0', f'addr add {receiver.v6}/49 dev eth0 nodad']
        self.receivers_host.batch(lines + [f'route add default via {addresses.GATEWAY_IN4} congctl cubic',
                                           f'route add ::/0 via {addresses.GATEWAY_IN6} congctl cubic'])
        self.distance = delay.choose('auto', self.router, str(self._prefix / 'sbin/msfrs-delayline'), self.senders)
        self._stack.callback(self.distance.close)
        self.distance.connect(fabric, self.router, {self.senders_host: self.senders}, self.directory)

    def sender(self, v4=None, v6=None):
        """A sender with the given addresses. Only for senders without distance."""
        for address, via in ((v4, addresses.GATEWAY_IN4), (v6, addresses.GATEWAY_IN6)):
            if address:
                self._address(address, self.senders_host, IN, IN)
                # Also if it lies in the network of the receivers.
                self.receivers_host.run('ip', 'route', 'add', address, 'via', via, 'congctl', 'cubic')
        return End(v4, v6)

    def receiver(self, v4=None, v6=None):
        """The same for a receiver."""
        for address in filter(None, (v4, v6)):
            self._address(address, self.receivers_host, 'eth0', OUT)
        return End(v4, v6)

    def _address(self, address, host, interface, towards):
        length = 128 if ':' in address else 32
        host.run('ip', 'addr', 'add', f'{address}/{length}', 'dev', interface, *(['nodad'] if length == 128 else []))
        self.router.run('ip', 'route', 'add', f'{address}/{length}', 'dev', towards)

    def take(self, queues='0'):
        """Sends the output of out0 to a queue, or to queues FIRST-LAST."""
        msfrs_edge.rules(self.router, 'up', '--link', f'{OUT}={queues}')

    def start_edge(self, conf, **how):
        """Starts msfrs-edge on the router; see msfrs_edge.start."""
        return msfrs_edge.start(self, self.router, self._prefix / 'sbin/msfrs-edge', conf, **how)

    def queues(self):
        """Numbers of the queues that a process on the router reads."""
        with self.router.open('/proc/thread-self/net/netfilter/nfnetlink_queue') as file:
            return [int(line.split()[0]) for line in file]
