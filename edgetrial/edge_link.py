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

OUT = 'out0'
NEAR4, NEAR6 = '198.19.0.1', '2001:2:0:8000::1'     #: of the router, for senders without distance


@dataclass(frozen=True)
class End:
    """Additional addresses of a sender or receiver; None: no address of that family."""
    v4: str = None
    v6: str = None


class Cable:
    """No distance: a cable connects the senders to the router."""

    name = 'cable'

    def connect(self, fabric, isp, farms, directory):
        (farm, servers), = farms.items()
        fabric.wire(isp, 'in0', farm, 'eth0')
        isp.batch([f'addr add {NEAR4}/17 dev in0', f'addr add {NEAR6}/50 dev in0 nodad'])
        farm.batch([line for server in servers for line in (f'addr add {server.v4}/17 dev eth0',
                                                            f'addr add {server.v6}/50 dev eth0 nodad')] +
                   [f'route add default via {NEAR4} congctl cubic', f'route add ::/0 via {NEAR6} congctl cubic'])

    def check(self):
        pass

    def close(self):
        pass


class EdgeLink(Scenario):
    """Built on entry, torn down on exit.

    rtts_ms: one sender for each, with that round-trip time; None for a sender without distance (all or none).
    receivers: number of addresses at the other end. mtu: of out0. prefix: where the programs are installed.
    """

    def __init__(self, *, rtts_ms=(None,), receivers=1, mtu=1500, prefix=None):
        super().__init__()
        near = all(rtt is None for rtt in rtts_ms)
        if not near and None in rtts_ms:
            raise ValueError(f'rtts_ms {rtts_ms}: either all senders have a round-trip time or none')
        self.senders = addresses.servers([rtt or 0 for rtt in rtts_ms])
        self.receivers = addresses.users(['all'], (receivers,))
        self._near, self._mtu = near, mtu
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
        self.distance = Cable() if self._near else \
            delay.choose('auto', self.router, str(self._prefix / 'sbin/msfrs-delayline'))
        self._stack.callback(self.distance.close)
        self.distance.connect(fabric, self.router, {self.senders_host: self.senders}, self.directory)

    def sender(self, v4=None, v6=None):
        """A sender with the given addresses. Only for senders without distance."""
        for address, via in ((v4, addresses.GATEWAY_IN4), (v6, addresses.GATEWAY_IN6)):
            if address:
                self._address(address, self.senders_host, 'eth0', 'in0', self.receivers_host, via)
        return End(v4, v6)

    def receiver(self, v4=None, v6=None):
        """The same for a receiver."""
        for address, via in ((v4, NEAR4), (v6, NEAR6)):
            if address:
                self._address(address, self.receivers_host, 'eth0', OUT, self.senders_host, via)
        return End(v4, v6)

    def _address(self, address, host, interface, towards, opposite, via):
        length = 128 if ':' in address else 32
        host.run('ip', 'addr', 'add', f'{address}/{length}', 'dev', interface, *(['nodad'] if length == 128 else []))
        self.router.run('ip', 'route', 'add', f'{address}/{length}', 'dev', towards)
        opposite.run('ip', 'route', 'add', f'{address}/{length}', 'via', via, 'congctl', 'cubic')

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
