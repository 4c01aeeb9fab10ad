# SPDX-License-Identifier: GPL-2.0-or-later
"""Flows of iperf3 over a link: bulk TCP, and UDP at a constant rate."""
import contextlib
import dataclasses
import itertools
import json
import subprocess
import time

from fieldtrial.base.errors import TrialError
from fieldtrial.site.processes import listens

#: First port of a run; ports also identify flows on the wire.
FIRST_PORT = 5201
#: Timeout for iperf3's exchange of results, s, over a link that is still full of other packets.
PATIENCE = 20.0


@dataclasses.dataclass
class Flow:
    """The traffic of one iperf3 from a sender to a receiver.

    rate_bps: None for TCP; for UDP the rate of whole IP packets. streams: connections (with UDP, each at that rate).
    packet: bytes of an IP packet; for TCP the maximum, None: limited by the MTU. For TCP, None for the system's
    default: window, bytes of iperf3's --window, and congestion, the name of its congestion control. tos: the TOS byte,
    DSCP and ECN.
    """
    sender: object
    receiver: object
    rate_bps: float = None
    streams: int = 1
    family: int = 4
    packet: int = None
    window: int = None
    congestion: str = None
    tos: int = 0
    port: int = 0           #: of the receiver; 0: chosen by `run`
    result: dict = None     #: iperf3's report at its end

    @property
    def udp(self):
        return self.rate_bps is not None

    def addresses(self):
        """The addresses of sender and receiver."""
        return [getattr(end, f'v{self.family}') for end in (self.sender, self.receiver)]

    def arguments(self, seconds):
        """The arguments of iperf3 as client."""
        source, destination = self.addresses()
        words = ['--client', destination, '--bind', source, '--port', str(self.port), '--time', str(seconds), '--json',
                 '--parallel', str(self.streams), '--tos', str(self.tos)]
        header = (20 if self.family == 4 else 40) + (8 if self.udp else 20)
        if self.udp:
            payload = (self.packet or 1028) - header
            rate = self.rate_bps * payload / (payload + header)
            return words + ['--udp', '--bitrate', f'{rate:.0f}', '--length', str(payload)]
        words += ['--set-mss', str(self.packet - header)] if self.packet else []
        words += ['--congestion', self.congestion] if self.congestion else []
        return words + (['--window', str(self.window)] if self.window else [])

    def is_packet(self, packet):
        """Whether a packet seen by `Wire` is data of this flow."""
        return packet.to_port == self.port and packet.protocol == (17 if self.udp else 6)

    @property
    def goodput_bps(self):
        """Rate of TCP payload, counted by the receiver; the sum of the streams."""
        return self.result['end']['sum_received']['bits_per_second']

    @property
    def retransmits(self):
        """Number of TCP retransmissions."""
        return self.result['end']['sum_sent']['retransmits']


@contextlib.contextmanager
def running(link, flows, seconds):
    """Runs flows for the duration of the block, all of them started at its beginning, and for `seconds` at most.

    Does not wait for their results; see `run`. UDP flows begin first: their set-up uses TCP, which must not meet a full
    queue.
    """
    processes = []
    try:
        for port, flow in zip(itertools.count(FIRST_PORT), flows):
            flow.port = flow.port or port
            processes.append(link.receivers_host.popen(
                ['iperf3', '--server', '--one-off', '--bind', flow.addresses()[1], '--port', str(flow.port)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        _wait(lambda: all(listens(link.receivers_host, flow.port) for flow in flows), 'iperf3 to listen')
        clients = []
        for flow in sorted(flows, key=lambda flow: not flow.udp):
            clients.append((flow, link.senders_host.popen(['iperf3', *flow.arguments(seconds)], text=True,
                                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)))
            processes.append(clients[-1][1])
            if flow.udp:
                _wait(lambda: _has_begun(link.receivers_host, flow), f'UDP to port {flow.port}')
        yield clients
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def run(link, flows, seconds):
    """Runs the flows for `seconds` and fills in their results. Raises TrialError if iperf3 reports a failure."""
    with running(link, flows, seconds) as clients:
        for flow, client in clients:
            try:
                said, _ = client.communicate(timeout=seconds + PATIENCE)
            except subprocess.TimeoutExpired:
                raise TrialError(f'iperf3 to port {flow.port} does not end') from None
            flow.result = json.loads(said)
            if 'error' in flow.result:
                raise TrialError(f'iperf3 to port {flow.port}: {flow.result["error"]}')


def _has_begun(host, flow):
    """Whether iperf3's first datagram has been answered, which is never retransmitted; by then the server has connected
    its socket."""
    rows = []
    for name in ('udp', 'udp6'):
        with host.open(f'/proc/thread-self/net/{name}') as table:
            rows += [line.split() for line in table]
    return any(row[1].endswith(f':{flow.port:04X}') and row[3] == '01' for row in rows)


def _wait(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TrialError(f'waited {PATIENCE:g} s for {what}')
        time.sleep(0.02)
