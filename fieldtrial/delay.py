# SPDX-License-Identifier: GPL-2.0-or-later
"""Distance: the ISP and the servers connected so that each server has its own round-trip time.

Half of the round-trip time is spent in each direction. Two ways, the same to everybody else: netem where the kernel has
it, the project's delay line where not.
"""
import subprocess

from .addresses import SERVERS4, SERVERS6
from .errors import TrialError
from .netns import HostError
from .processes import Daemon

#: Packets that may be under way or waiting in one direction: never the bottleneck.
QUEUE = 10000


class DelayLine:
    """One pair of TUN interfaces with the project's program between them."""

    name = 'delay line'

    def __init__(self, program):
        self._program = program
        self._daemon = None

    def connect(self, fabric, isp, farm, servers, directory):
        """Addresses and routes on both hosts, and the delays. `directory` takes the table and the program's log."""
        table = f'{directory}/delays.txt'
        with open(table, 'w') as file:
            for server in servers:
                for address in server.addresses:
                    file.write(f'{address} {server.rtt_ms / 2:.3f}ms\n')
        try:
            self._daemon = Daemon(farm, [self._program, '--tun', 'near', '--tun', f'far@{isp.netns_path}', '--table',
                                         table], f'{directory}/delayline.log', stdout=subprocess.PIPE)
        except OSError as error:
            raise TrialError(f'{self._program}: {error.strerror}; build it with `make` at the top') from None
        if self._daemon.stdout.readline() != b'ready\n':
            self._daemon.wait(5)
            self._daemon.check()
        for host, tun in ((isp, 'far'), (farm, 'near')):
            host.batch([f'link set {tun} txqueuelen {QUEUE} up'])
        isp.batch([f'route add {SERVERS4} dev far', f'route add {SERVERS6} dev far'])
        farm.batch([f'addr add {server.v4}/32 dev near' for server in servers] +
                   [f'addr add {server.v6}/128 dev near nodad' for server in servers] +
                   ['route add default dev near congctl cubic', 'route add ::/0 dev near congctl cubic'])

    def check(self):
        """Raises TrialError if the program has ended."""
        self._daemon.check()

    def close(self):
        if self._daemon:
            self._daemon.stop()


class Netem:
    """A cable of its own for each server, with netem at both ends. Replies leave by the cable of the address they
    come from (policy routing), so any number of servers does without classful qdiscs and filters."""

    name = 'netem'

    def qdisc(self, delay_ms):
        """The arguments of `tc qdisc add`."""
        return f'netem delay {delay_ms:.3f}ms limit {QUEUE}'

    def connect(self, fabric, isp, farm, servers, directory):
        for index, server in enumerate(servers, start=1):
            cable, table = f's{index}', 100 + index
            fabric.wire(isp, cable, farm, cable)
            for host in (isp, farm):
                host.run('tc', 'qdisc', 'add', 'dev', cable, 'root', *self.qdisc(server.rtt_ms / 2).split())
            isp.batch([f'addr add 198.19.0.1/32 dev {cable}', f'addr add fe80::1/64 dev {cable} nodad',
                       f'route add {server.v4}/32 dev {cable} src 198.19.0.1',
                       f'route add {server.v6}/128 dev {cable}'])
            farm.batch([f'addr add {server.v4}/32 dev {cable}', f'addr add {server.v6}/128 dev {cable} nodad',
                        f'rule add from {server.v4} lookup {table}',
                        f'route add default via 198.19.0.1 dev {cable} onlink table {table} congctl cubic',
                        f'route add ::/0 via fe80::1 dev {cable} table {table} congctl cubic'])
            farm.batch([f'rule add from {server.v6} lookup {table}'], 'ip', '-6')
            if index == 1:   # for packets that have no source address yet
                farm.batch([f'route add default via 198.19.0.1 dev {cable} onlink congctl cubic',
                            f'route add ::/0 via fe80::1 dev {cable} congctl cubic'])

    def check(self):
        pass

    def close(self):
        pass


def has_netem(fabric):
    """Whether this kernel has netem; tried on a host of its own."""
    host = fabric.host('probe')
    try:
        host.run('tc', 'qdisc', 'add', 'dev', 'lo', 'root', 'netem', 'delay', '1ms')
        return True
    except HostError:
        return False


def choose(how, fabric, program):
    """how: 'netem', 'delayline', or 'auto' (netem where the kernel has it)."""
    if how == 'delayline' or (how == 'auto' and not has_netem(fabric)):
        return DelayLine(program)
    if how == 'netem' and not has_netem(fabric):
        raise TrialError('this kernel has no netem (sch_netem); use the delay line: --delay delayline')
    return Netem()
