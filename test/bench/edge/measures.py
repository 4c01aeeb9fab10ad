# SPDX-License-Identifier: GPL-2.0-or-later
"""The measurements: each function returns the figures of one run. Runs are as short as the figures allow."""
import contextlib
import ctypes
import socket
import statistics
import struct
import time

import traffic
from bench_site import FLOOD, Edge

#: Everything enabled. The rates of link and policer exceed the load: every packet is processed, none is held.
RULES = f'''flooded from=198.18.0.0/15 to={FLOOD}0/24 protocol=udp rate=100Gbit depth=10MB mark=af21
web protocol=tcp to-port=443 rate=100Gbit depth=10MB mark=af11
files protocol=tcp rate=100Gbit depth=10MB mark=af41
'''
FULL = '''rules bench.rules
mark shift=24
scheduler drr
aqm faba
limit 1000
link rate={rate}
'''
BARE = 'scheduler fifo\nlink rate=none\nlimit 1000\n'
UNLIMITED = '100Gbit'

#: Packets a second offered in turn; the least cost a packet counts. So neither an idle gateway, which wakes for every
#: packet, nor a flooded one, which drops, represents its capacity.
OFFERED = (100_000, 200_000, 400_000, 800_000)
SETTLE_S, FORWARD_S, TCP_S = 0.2, 0.6, 2.0


class Arms:
    """The gateway without msfrs-edge, with msfrs-edge passing packets through, and with all functions."""

    def __init__(self, site, command, directory):
        self._site, self._command, self._directory = site, command, directory
        with open(f'{directory}/bench.rules', 'w') as file:
            file.write(RULES)

    def plain(self):
        return contextlib.nullcontext()

    def bare(self):
        return Edge(self._site, self._command, self._directory, BARE)

    @contextlib.contextmanager
    def htb(self):
        """The kernel's own scheduler on the link, at the same rate."""
        link = ('dev', 'out0')
        self._site.gateway.run('tc', 'qdisc', 'add', *link, 'root', 'handle', '1:', 'htb', 'default', '1')
        try:
            self._site.gateway.run('tc', 'class', 'add', *link, 'parent', '1:', 'classid', '1:1', 'htb',
                                   'rate', '100gbit', 'quantum', '60000')
            yield None
        finally:
            self._site.gateway.run('tc', 'qdisc', 'del', *link, 'root')

    def full(self, rate=UNLIMITED, queue=''):
        return Edge(self._site, self._command, self._directory, FULL.format(rate=rate), queue)

    def late(self):
        """All functions, but without real-time priority."""
        return self.full(queue='realtime=off')


def pids(edge):
    return (edge.pid,) if edge else ()


def cost(site, edge, seconds):
    """Packets and bytes that pass in a time, and processor seconds that the gateway uses for them."""
    time.sleep(SETTLE_S)
    (packets, size), spent, start = site.received(), site.processor_s(*pids(edge)), time.monotonic()
    time.sleep(seconds)
    (packets_then, size_then), spent_then = site.received(), site.processor_s(*pids(edge))
    return packets_then - packets, size_then - size, spent_then - spent, time.monotonic() - start


def packets_per_core(site, edge, size):
    """Packets of `size` bytes that the gateway forwards in a second of processor time, at its best load."""
    best = 0.0
    for offered in OFFERED:
        with traffic.flood(site, size, offered):
            packets, _, spent, _ = cost(site, edge, FORWARD_S)
        best = max(best, packets / spent)
    return best


def forwarding(site, arms, size, rounds):
    """For each arm the median over rounds of packets_per_core(), with arms alternating."""
    found = {'plain': [], 'bare': [], 'full': []}
    for _ in range(rounds):
        for name, results in found.items():
            with getattr(arms, name)() as edge:
                results.append(packets_per_core(site, edge, size))
    return {name: statistics.median(results) for name, results in found.items()}


def tcp_rate(site, arms, rounds):
    """Bit/s of TCP through each arm, and bit/s in a second of the gateway's processor time; medians."""
    found = {'plain': [], 'full': []}
    with site.joined(tcp=True):
        for _ in range(rounds):
            for name, results in found.items():
                with getattr(arms, name)() as edge, traffic.tcp(site):
                    _, size, spent, taken = cost(site, edge, TCP_S)
                    results.append((8 * size / taken, 8 * size / spent))
    return {name: tuple(map(statistics.median, zip(*results))) for name, results in found.items()}


def pacing(site, arms, rate_bps, seconds):
    """Throughput of an overloaded link relative to its rate: 1 is exact."""
    size = 1400
    with arms.full(f'{rate_bps}bit') as edge, site.undisturbed(*pids(edge)), \
            traffic.flood(site, size, 1.2 * rate_bps / 8 / size, realtime=True):
        time.sleep(max(SETTLE_S, 20 * 8 * size / rate_bps))
        (_, begin), start = site.received(), time.monotonic()
        time.sleep(seconds)
        (_, end), stop = site.received(), time.monotonic()
    return 8 * (end - begin) / (stop - start) / rate_bps


PROBE_PORT, PROBES, PROBE_GAP_S = 7, 1500, 0.002
SO_TIMESTAMPNS, SO_ATTACH_FILTER, ETH_P_ALL = 35, 26, 3


def latencies(site, edge_context, background, busy):
    """Seconds that probes spend in the gateway, from in0 to out0 by the kernel's clock, beside `background` packets a
    second; lost ones are infinite. `busy`: beside programs that keep every processor busy."""
    with edge_context as edge, contextlib.ExitStack() as stack:
        stack.enter_context(site.undisturbed())     # the kernel's part; msfrs-edge has the priority that it requests
        if busy:
            stack.enter_context(traffic.spinning(site))
        with site.gateway.inside():
            taps = [stack.enter_context(_tap(name)) for name in ('in0', 'out0')]
        with site.source.inside():
            probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        stack.enter_context(traffic.flood(site, 1400, background, realtime=True))
        time.sleep(SETTLE_S)
        for number in range(PROBES):
            probe.sendto(struct.pack('!I', number), (f'{FLOOD}200', PROBE_PORT))
            time.sleep(PROBE_GAP_S)
        time.sleep(SETTLE_S)
        came, went = (dict(_stamps(tap)) for tap in taps)
    return sorted((went[number] - at) / 1e9 if number in went else float('inf') for number, at in came.items())


def _tap(interface):
    """A packet socket that captures the probes on an interface of this network."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    # ldb [9]; jne 17; ldh [22]; jne PROBE_PORT; accept: offsets from the IP header, which has no options
    code = [(0x30, 0, 0, 9), (0x15, 0, 3, 17), (0x28, 0, 0, 22), (0x15, 0, 1, PROBE_PORT), (6, 0, 0, 0xffff),
            (6, 0, 0, 0)]
    filters = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
    made.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                    struct.pack('HL', len(code), ctypes.addressof(filters)))
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    made.bind((interface, ETH_P_ALL))
    made.setblocking(False)
    return made


def _stamps(tap):
    """(number, nanoseconds) of each probe that a tap has captured."""
    with contextlib.suppress(BlockingIOError):
        while True:
            data, ancillary, _, _ = tap.recvmsg(100, 100)
            for _, kind, value in ancillary:
                if kind == SO_TIMESTAMPNS:
                    seconds, nanoseconds = struct.unpack('qq', value)
                    yield struct.unpack_from('!I', data, 28)[0], seconds * 1_000_000_000 + nanoseconds
