# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP at a constant bit rate, in bursts: downlink traffic that belongs to no class.

    python3 -m fieldtrial.load.stream recv ADDRESS PORT T0 FILE.csv [DELAYS.csv]       behind the gateway
    python3 -m fieldtrial.load.stream send ADDRESS PORT T0 RATE FRAME START-END,...    beyond the link

T0 is on CLOCK_MONOTONIC in s, bursts are s after it. RATE in bit/s counts whole Ethernet frames, as the link does, and
FRAME is their size in bytes. Each datagram carries a sequence number, so that the receiver, which writes one row per
second, detects losses, and its send time: both ends are on one machine and share its clock. Both end at SIGTERM. Not
iperf3: it negotiates each test over TCP, which a full link delays by seconds, so that no burst would be on time.
"""
import contextlib
import csv
import itertools
import signal
import socket
import struct
import sys
import time

from ..base.paths import ROOT
from ..site.addresses import SINK4
from ..site.processes import Daemon

FIRST_PORT = 9      #: discard
#: Ethernet header, IP header and UDP header, by IP version.
HEADERS = {socket.AF_INET: 14 + 20 + 8, socket.AF_INET6: 14 + 40 + 8}
NUMBER = struct.Struct('!Qd')   #: sequence number and send time
#: A datagram that is later than this is skipped and counted: a catch-up burst after a stall of the machine would
#: measure the machine rather than the link.
LATEST_S = 0.02
#: Longest delay in handling a signal.
PATIENCE_S = 0.2
#: Datagrams that are still read after it: about the capacity of a socket's buffer.
MOST_WAITING = 1_000


def daemons(world, streams, t0):
    """Yields the Daemons of these CbrStreams, receiver and sender of each, started when they are taken. Receivers write
    their rows into the world's directory."""
    for number, stream in enumerate(streams, start=1):
        user = None if stream.receiver is None else world.users[stream.receiver]
        address, host = (SINK4, world.users_host) if user is None else (user.v4, world.host_of(user))
        where = f'{world.directory}/cbr{number}'
        bursts = ','.join(f'{start:g}-{end:g}' for start, end in stream.bursts)
        delays = [f'{where}-delays.csv'] if stream.timed else []
        for name, on, word, more in (('received', host, 'recv', [f'{where}-received.csv', *delays]),
                                     ('sent', world.farm, 'send', [f'{stream.rate_bps:.0f}', str(stream.frame), bursts])):
            yield Daemon(on, [sys.executable, '-m', 'fieldtrial.load.stream', word, address,
                              str(FIRST_PORT + number - 1), f'{t0:.6f}', *more], f'{where}-{name}.log', cwd=ROOT,
                         command=f'CBR stream ({name})')


def times(rate_bps, frame, bursts):
    """Send times of the frames, in seconds since t0."""
    gap = frame * 8 / rate_bps
    for start, end in bursts:
        yield from itertools.takewhile(lambda when, end=end: when < end, (start + n * gap for n in itertools.count()))


def send(sock, t0, rate_bps, frame, bursts, stopped):
    """Sends until the last burst has ended or `stopped()` is true. Returns the numbers sent and skipped."""
    padding = bytes(frame - HEADERS[sock.family] - NUMBER.size)
    sent = skipped = 0
    for when in times(rate_bps, frame, bursts):
        while not stopped() and (early := t0 + when - time.monotonic()) > 0:
            time.sleep(min(early, PATIENCE_S))
        if stopped():
            break
        if time.monotonic() > t0 + when + LATEST_S:
            skipped += 1
            continue
        with contextlib.suppress(OSError):  # queue full, or an ICMP error for an earlier one: counts as lost
            sock.send(NUMBER.pack(sent, time.monotonic()) + padding)
        sent += 1
    return sent, skipped


class Receiver:
    """Counts arriving datagrams and writes a row for each second since t0."""

    def __init__(self, sock, t0, file, delays=None):
        """delays: a file for the arrival time and delay of each datagram; None: not recorded."""
        self._socket, self._t0, self._rows = sock, t0, csv.writer(file, lineterminator='\n')
        self._delays = delays and csv.writer(delays, lineterminator='\n')
        if delays:
            self._delays.writerow(('t', 'delay_ms'))
        self._rows.writerow(('t', 'packets', 'bytes', 'lost'))
        self._second = self._next = 0
        self.counts = [0, 0, 0]     #: packets, bytes of frames and lost packets of the second

    def run(self, stopped):
        """Receives until `stopped()` is true."""
        self._socket.settimeout(PATIENCE_S)
        while not stopped():
            self._receive()
        self._socket.settimeout(0.0)
        for _ in range(MOST_WAITING):    # buffered datagrams are not lost
            if not self._receive():
                break
        self._write()

    def _receive(self):
        try:
            datagram = self._socket.recv(65_536)
        except (TimeoutError, BlockingIOError):
            datagram = b''
        while time.monotonic() >= self._t0 + self._second + 1:
            self._write()
        if len(datagram) >= NUMBER.size:
            self.take(datagram)
        return datagram

    def take(self, datagram):
        """Counts one datagram. A reordered one has been counted as lost before."""
        number, sent = NUMBER.unpack_from(datagram)
        if self._delays:
            now = time.monotonic()
            self._delays.writerow((f'{now - self._t0:.6f}', f'{1e3 * (now - sent):.3f}'))
        missing = number - self._next
        for place, count in enumerate((1, len(datagram) + HEADERS[self._socket.family], max(missing, -1))):
            self.counts[place] += count
        self._next = max(self._next, self._next + missing + 1)

    def _write(self):
        self._rows.writerow((self._second, *self.counts))
        self._second, self.counts = self._second + 1, [0, 0, 0]


def main(word, address, port, t0, *more):
    stopped = []
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: stopped.append(True))
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        if word == 'send':
            rate, frame, bursts = more
            bursts = [tuple(map(float, burst.split('-'))) for burst in bursts.split(',')]
            sock.connect((address, int(port)))
            sent, skipped = send(sock, float(t0), float(rate), int(frame), bursts, lambda: bool(stopped))
            print(f'{sent} sent, {skipped} left out because the machine was late')
        else:
            sock.bind((address, int(port)))
            with contextlib.ExitStack() as stack:
                files = [stack.enter_context(open(path, 'w', encoding='ascii', newline='', buffering=1)) for path in more]
                Receiver(sock, float(t0), *files).run(lambda: bool(stopped))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
