# SPDX-License-Identifier: GPL-2.0-or-later
"""Three hosts for measuring a gateway's packet forwarding and the cost of a packet.

    source eth0 --- in0 gateway out0 --- eth0 sink

The gateway has one processor, the sources the others. Its kernel handles packets that arrive by in0 in a separate
thread (threaded NAPI), so that the processor time of forwarding can be told from everything else on the machine.
"""
import contextlib
import os
import pathlib
import time

from fieldtrial.site.netns import HostError, NetnsFabric
from fieldtrial.site.shaping import ETHERNET

SOURCE, INSIDE, OUTSIDE, SINK = '198.18.1.2', '198.18.1.1', '198.18.2.1', '198.18.2.2'
#: Packets to these addresses leave by out0 and end at the sink's interface: no host has the next hop's address.
NOBODY, NOBODY_MAC, FLOOD = '198.18.2.3', '02:00:00:00:00:01', '198.19.0.'
IPTABLES = pathlib.Path(__file__).resolve().parents[3] / 'conf/iptables/msfrs-edge-iptables'
PATIENCE_S = 10.0


class Site:
    def __init__(self, fabric):
        processors = sorted(os.sched_getaffinity(0))
        self.gateway_cpu, self.other_cpus = processors[-1], set(processors[:-1] or processors)
        self.source, self.gateway, self.sink = (fabric.host(role) for role in ('source', 'gw', 'sink'))
        fabric.wire(self.source, 'eth0', self.gateway, 'in0')
        fabric.wire(self.gateway, 'out0', self.sink, 'eth0')
        for host, name, address in ((self.source, 'eth0', SOURCE), (self.gateway, 'in0', INSIDE),
                                    (self.gateway, 'out0', OUTSIDE), (self.sink, 'eth0', SINK)):
            host.run('ip', 'address', 'add', f'{address}/24', 'dev', name)
        self.source.run('ip', 'route', 'add', 'default', 'via', INSIDE, 'congctl', 'cubic')
        self.sink.run('ip', 'route', 'add', 'default', 'via', OUTSIDE)
        self.gateway.run('ip', 'route', 'add', f'{FLOOD}0/24', 'via', NOBODY)
        self.gateway.run('ip', 'neighbour', 'add', NOBODY, 'lladdr', NOBODY_MAC, 'dev', 'out0', 'nud', 'permanent')
        self.gateway.run('sysctl', '-qw', 'net.ipv4.ip_forward=1')
        # Datagrams sent in one call cross the wire as single packets, unless a measurement needs otherwise.
        self.source.run('ethtool', '-K', 'eth0', 'tx-udp-segmentation', 'off')
        self.gateway.run('ethtool', '-K', 'out0', 'tx-udp-segmentation', 'off')
        self._napi = self._own_thread('in0')

    @contextlib.contextmanager
    def undisturbed(self, *pids):
        """Within the block, the gateway's threads and those of these processes have priority over everything else on
        the machine, so that elapsed time is theirs alone. Not for an overloaded gateway."""
        threads = [int(thread) for pid in (self._napi, *pids) for thread in os.listdir(f'/proc/{pid}/task')]
        try:
            for thread in threads:
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))
            yield
        finally:
            for thread in threads:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))

    def _own_thread(self, interface):
        """Moves the handling of packets received by a gateway's interface to a kernel thread; returns its pid."""
        before = set(kernel_threads(f'napi/{interface}'))
        self.gateway.run('ethtool', '-K', interface, 'gro', 'on')   # without it veth has no NAPI
        self.gateway.run('sh', '-c', f'echo 1 > /sys/class/net/{interface}/threaded')
        made = set(kernel_threads(f'napi/{interface}')) - before
        if len(made) != 1:
            raise HostError(f'{interface}: threaded NAPI made {len(made)} kernel threads, not one; it takes Linux 5.12')
        pid = made.pop()
        os.sched_setaffinity(pid, {self.gateway_cpu})
        os.setpriority(os.PRIO_PROCESS, pid, -19)
        return pid

    @contextlib.contextmanager
    def joined(self, *, udp=False, tcp=False):
        """Within the block, the gateway's kernel merges packets of a flow that arrive together, as behind a physical
        NIC; merged TCP packets leave in one piece."""
        switched = []
        if udp:
            switched += [(self.gateway, 'in0', 'rx-udp-gro-forwarding')]
        if tcp:     # the source's stays off: with it, veth bypasses in0's thread
            switched += [(self.source, 'eth0', 'gso'), (self.gateway, 'out0', 'gso'), (self.gateway, 'out0', 'tso')]
        for host, name, feature in switched:
            host.run('ethtool', '-K', name, feature, 'on')
        try:
            yield
        finally:
            for host, name, feature in switched:
                host.run('ethtool', '-K', name, feature, 'off')

    def received(self):
        """Packets and IP bytes that have reached the sink."""
        packets, size = (int(word) for word in self.sink.run(
            'cat', '/sys/class/net/eth0/statistics/rx_packets', '/sys/class/net/eth0/statistics/rx_bytes').split())
        return packets, size - ETHERNET * packets

    def processor_s(self, *pids):
        """Seconds of processor time used by the gateway's forwarding and these processes."""
        return sum(_thread_s(pid, thread) for pid in (self._napi, *pids) for thread in os.listdir(f'/proc/{pid}/task'))


def kernel_threads(prefix):
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/comm') as file:
            if file.read().startswith(prefix):
                yield int(pid)


def _thread_s(pid, thread):
    with open(f'/proc/{pid}/task/{thread}/schedstat') as file:
        return int(file.read().split()[0]) / 1e9


class Edge:
    """msfrs-edge on the gateway, with the rule that queues packets leaving by out0."""

    def __init__(self, site, command, directory, configuration, queue=''):
        """command: its command line, without the file; configuration: that file's text, without queue and user; queue:
        additional fields of the queue line."""
        self._site = site
        self._path = os.path.join(directory, 'edge.conf')
        with open(self._path, 'w') as file:
            file.write(f'{configuration}\nqueue number=0 gso=on fail-open=off conntrack=off {queue}\n')
        self._command = command
        self._log = os.path.join(directory, 'edge.log')

    def __enter__(self):
        gateway = self._site.gateway
        with open(self._log, 'w') as log:
            self._process = gateway.popen(
                ['taskset', '-c', str(self._site.gateway_cpu), 'nice', '-n', '-19', *self._command, self._path],
                stdout=log, stderr=log)
        try:
            end = time.monotonic() + PATIENCE_S
            while not gateway.run('cat', '/proc/net/netfilter/nfnetlink_queue').strip():
                if self._process.poll() is not None or time.monotonic() > end:
                    raise HostError(f'{self._command[0]} does not serve its queue:\n{self._said()}')
                time.sleep(0.05)
            self._rules('up')
        except BaseException:
            self.__exit__()
            raise
        return self

    def _rules(self, command, **how):
        self._site.gateway.run(IPTABLES, command, '--config', 'none', '--link', 'out0=0', '--ipv6', 'no', **how)

    def _said(self):
        with open(self._log) as file:
            return file.read()

    @property
    def pid(self):
        return self._process.pid

    def __exit__(self, *_):
        self._rules('down', check=False)
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()


@contextlib.contextmanager
def site():
    with NetnsFabric('bench') as fabric:
        yield Site(fabric)
