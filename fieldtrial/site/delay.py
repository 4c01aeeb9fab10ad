# SPDX-License-Identifier: GPL-2.0-or-later
"""Distance: connects the ISP and the servers so that each server has its own round-trip time.

Half of the round-trip time is spent in each direction. There are two implementations with the same interface: netem if
the kernel has it, otherwise the project's delay line.
"""
import subprocess

from ..base.errors import TrialError
from .addresses import SERVERS4, SERVERS6
from .host import HostError
from .processes import Daemon

#: Packets in flight or queued in one direction: never the bottleneck.
QUEUE = 10000
#: The ISP's address on cables to servers.
CORE4, CORE6 = '198.19.0.1', 'fe80::1'
#: Routing tables of the ISP: for packets from servers, and for packets whose delay has elapsed.
BACK, DUE = 91, 92


def _addresses(server, interface):
    return [f'addr add {server.v4}/32 dev {interface}', f'addr add {server.v6}/128 dev {interface} nodad']


def _to_core(cable, where=''):
    """Default routes of a host of servers."""
    return [f'route add default via {CORE4} dev {cable} onlink {where} congctl cubic',
            f'route add ::/0 via {CORE6} dev {cable} {where} congctl cubic']


class DelayLine:
    """A pair of TUN interfaces at the ISP with the project's program between them, and a cable to each host of servers.
    A packet is routed there twice: by its incoming interface and, once its delay has elapsed, by its destination."""

    name = 'delay line'

    def __init__(self, program):
        self._program = program
        self._daemon = None

    def connect(self, fabric, isp, farms, directory):
        """Sets up addresses and routes on all hosts, and the delays. farms: {host: its servers}. `directory` holds the
        table and the program's log."""
        self._start(isp, [server for servers in farms.values() for server in servers], directory)
        isp.batch([*(f'link set {tun} txqueuelen {QUEUE} up' for tun in ('near', 'far')),
                   f'route add {SERVERS4} dev far', f'route add {SERVERS6} dev far',
                   f'route add default dev near table {BACK}', f'route add ::/0 dev near table {BACK}'])
        for number, (farm, servers) in enumerate(farms.items(), start=1):
            cable = f's{number}'
            fabric.wire(isp, cable, farm, cable)
            isp.batch([f'addr add {CORE4}/32 dev {cable}', f'addr add {CORE6}/64 dev {cable} nodad',
                       *(line for server in servers for line in (
                           f'route add {server.v4}/32 dev {cable} table {DUE} src {CORE4}',
                           f'route add {server.v6}/128 dev {cable} table {DUE}'))])
            farm.batch([line for server in servers for line in _addresses(server, cable)] + _to_core(cable))
            self._rule(isp, cable, BACK)
        self._rule(isp, 'near', DUE)

    @staticmethod
    def _rule(isp, interface, table):
        for family in ((), ('-6',)):
            isp.batch([f'rule add iif {interface} lookup {table}'], 'ip', *family)

    def _start(self, isp, servers, directory):
        table = f'{directory}/delays.txt'
        with open(table, 'w') as file:
            for server in servers:
                for address in server.addresses:
                    file.write(f'{address} {server.rtt_ms / 2:.3f}ms\n')
        try:
            self._daemon = Daemon(isp, [self._program, '--tun', 'near', '--tun', 'far', '--table', table],
                                  f'{directory}/delayline.log', stdout=subprocess.PIPE)
        except OSError as error:
            raise TrialError(f'{self._program}: {error.strerror}; build it with `make` at the top') from None
        if self._daemon.stdout.readline() != b'ready\n':
            self._daemon.wait(5)
            self._daemon.check()

    def check(self):
        """Raises TrialError if the program has ended."""
        self._daemon.check()

    def close(self):
        if self._daemon:
            self._daemon.stop()


class Cables:
    """A separate cable for each server, without delay. Replies leave by the cable of their source address (policy
    routing), so any number of servers works without classful qdiscs and filters."""

    name = 'none'

    def _delay(self, host, cable, delay_ms):
        pass

    def connect(self, fabric, isp, farms, directory):
        everywhere = [(farm, server) for farm, servers in farms.items() for server in servers]
        for index, (farm, server) in enumerate(everywhere, start=1):
            cable, table = f's{index}', 100 + index
            fabric.wire(isp, cable, farm, cable)
            for host in (isp, farm):
                self._delay(host, cable, server.rtt_ms / 2)
            isp.batch([f'addr add {CORE4}/32 dev {cable}', f'addr add {CORE6}/64 dev {cable} nodad',
                       f'route add {server.v4}/32 dev {cable} src {CORE4}',
                       f'route add {server.v6}/128 dev {cable}'])
            farm.batch([*_addresses(server, cable), f'rule add from {server.v4} lookup {table}',
                        *_to_core(cable, f'table {table}')])
            farm.batch([f'rule add from {server.v6} lookup {table}'], 'ip', '-6')
            if server == farms[farm][0]:   # for packets without a source address yet
                farm.batch(_to_core(cable))

    def check(self):
        pass

    def close(self):
        pass


class Netem(Cables):
    """Cables with netem at both ends."""

    name = 'netem'

    def _delay(self, host, cable, delay_ms):
        host.run('tc', 'qdisc', 'add', 'dev', cable, 'root', *self.qdisc(delay_ms).split())

    def qdisc(self, delay_ms):
        return f'netem delay {delay_ms:.3f}ms limit {QUEUE}'


def has_netem(host):
    """Whether this kernel has netem, determined by a trial on this host."""
    try:
        host.run('tc', 'qdisc', 'add', 'dev', 'lo', 'root', 'netem', 'delay', '1ms')
    except HostError:
        return False
    host.run('tc', 'qdisc', 'del', 'dev', 'lo', 'root')
    return True


def choose(how, isp, program, servers=()):
    """The implementation. how: 'netem', 'delayline', or 'auto' (netem if the kernel has it; no delay if all servers are
    nearby)."""
    if how == 'auto' and servers and not any(server.rtt_ms for server in servers):
        return Cables()
    if how == 'delayline' or (how == 'auto' and not has_netem(isp)):
        return DelayLine(program)
    if how == 'netem' and not has_netem(isp):
        raise TrialError('this kernel has no netem (sch_netem); use the delay line: --delay delayline')
    return Netem()
