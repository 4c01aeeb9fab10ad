# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP at a constant bit rate, on and off by turns: downlink traffic that belongs to no class.

    python3 -m fieldtrial.load.stream recv --bind ADDRESS --csv FILE                       behind the gateway
    python3 -m fieldtrial.load.stream send --to ADDRESS --rate BITS --on S --off S --duration S --csv FILE   beyond the link

The rate counts whole Ethernet frames, as the link does. Datagrams carry a number and the time of sending; sender and
receiver stand on one machine, so that time tells the one-way delay. Each writes one row per second; both end at SIGTERM
with the last row written. The receiver sees a loss when a later datagram arrives; what was lost at the very end is the
difference of the two files.
"""
import argparse
import csv
import dataclasses
import ipaddress
import itertools
import json
import os
import signal
import socket
import struct
import sys
import time

from ..base.errors import TrialError

#: Ethernet header, IP header and UDP header, by IP version.
HEADERS = {4: 14 + 20 + 8, 6: 14 + 40 + 8}
DATAGRAM = struct.Struct('!4sIQ')     # MAGIC, number, CLOCK_MONOTONIC in ns at sending
MAGIC = b'mCBR'
SMALLEST_FRAME, LARGEST_FRAME = HEADERS[6] + DATAGRAM.size, 1514
#: A datagram that is later than this is left out and counted: after a pause of the machine, a burst would say more
#: about the machine than about the link.
LATEST_S = 0.02
#: How long a signal may wait.
PATIENCE_S = 0.2
#: Datagrams that are still read after it: about what a socket's buffer holds.
MOST_WAITING = 1_000


@dataclasses.dataclass(frozen=True)
class Schedule:
    """When frames of `packet` bytes leave, at `rate_bps` while on. Times in seconds since t0. off_s 0: always on."""
    rate_bps: float
    packet: int
    on_s: float
    off_s: float
    off_first: bool
    duration_s: float
    bursts: tuple = ()      #: of (start, end): all on periods; then on_s, off_s and off_first mean nothing

    def windows(self):
        """The (start, end) of every on period, in order."""
        if self.bursts:
            yield from self.bursts
            return
        if not self.off_s:
            yield 0.0, self.duration_s
            return
        number, start = 0, self.off_s if self.off_first else 0.0
        while start < self.duration_s:
            yield start, min(start + self.on_s, self.duration_s)
            number += 1
            start = (self.off_s if self.off_first else 0.0) + number * (self.on_s + self.off_s)

    def times(self):
        """The time of every frame."""
        gap = self.packet * 8 / self.rate_bps
        for start, end in self.windows():
            number = 0
            while (when := start + number * gap) < end:
                yield when
                number += 1

    def on_between(self, start, end):
        """Seconds of the interval in which it is on."""
        return sum(max(0.0, min(end, last) - max(start, first)) for first, last in self.windows())


class Loss:
    """Numbers that arrive: what is missing and what came out of order."""

    def __init__(self):
        self.next = self.lost = self.reordered = 0

    def arrived(self, number):
        """A datagram came."""
        if number >= self.next:
            self.lost += number - self.next
            self.next = number + 1
        else:
            self.reordered += 1
            self.lost -= 1


class _Rows:
    """One CSV row per second since t0."""

    def __init__(self, path, columns, t0):
        try:
            self._file = open(path, 'w', encoding='utf-8', newline='', buffering=1)
        except OSError as error:
            raise TrialError(f'{path}: {error.strerror}') from None
        self._writer = csv.writer(self._file, lineterminator='\n')
        self._writer.writerow(columns)
        self._t0, self._second = t0, 0

    def until(self, now, figures):
        """Ends the rows whose second is over at `now` on the monotonic clock."""
        while now >= self._t0 + self._second + 1:
            self.write(figures)

    def write(self, figures):
        """Ends the row: `figures(t)` gives what stands after the time t at which the second began."""
        self._writer.writerow((self._second, *figures(self._second)))
        self._second += 1


class Sender:
    """Sends by a Schedule and counts."""

    def __init__(self, schedule, sock, t0, path):
        self._schedule, self._socket, self._t0 = schedule, sock, t0
        self._rows = _Rows(path, ('t', 'on', 'packets', 'bytes', 'skipped'), t0)
        version = 6 if sock.family == socket.AF_INET6 else 4
        self._padding = bytes(schedule.packet - HEADERS[version] - DATAGRAM.size)
        self._packets = self._skipped = 0
        self.number = 0     #: of the next datagram: those that were skipped take none

    def run(self, stopped):
        """Until the schedule ends or `stopped()` says so."""
        for when in self._schedule.times():
            if not self._wait(self._t0 + when, stopped):
                break
            if time.monotonic() > self._t0 + when + LATEST_S:
                self._skipped += 1
            else:
                self._send()
        else:
            self._wait(self._t0 + self._schedule.duration_s, stopped)
        if self._packets or self._skipped:
            self._rows.write(self._row)

    def _wait(self, until, stopped):
        while (now := time.monotonic()) < until:
            if stopped():
                return False
            self._rows.until(now, self._row)
            time.sleep(min(until - now, PATIENCE_S))
        self._rows.until(time.monotonic(), self._row)
        return not stopped()

    def _row(self, second):
        on = self._schedule.on_between(second, second + 1)
        row = f'{on:.3f}', self._packets, self._packets * self._schedule.packet, self._skipped
        self._packets = self._skipped = 0
        return row

    def _send(self):
        datagram = DATAGRAM.pack(MAGIC, self.number, time.monotonic_ns()) + self._padding
        try:
            self._socket.send(datagram)
        except OSError:     # its own queue is full, or an earlier datagram was answered by ICMP: lost, as on the way
            pass
        self.number = (self.number + 1) & 0xffffffff
        self._packets += 1


class Receiver:
    """Counts what arrives."""

    def __init__(self, sock, t0, path):
        self._socket, self._t0, self._loss = sock, t0, Loss()
        self._rows = _Rows(path, ('t', 'packets', 'bytes', 'lost', 'reordered', 'delay_mean_ms', 'delay_max_ms'), t0)
        self._headers = HEADERS[6 if sock.family == socket.AF_INET6 else 4]
        self.packets = self.bytes = 0
        self._before = (0, 0, 0, 0)
        self._delays, self._longest = 0, 0

    def run(self, stopped):
        """Until `stopped()` says so."""
        self._socket.settimeout(PATIENCE_S)
        while not stopped():
            self._receive()
        self._socket.settimeout(0.0)
        for _ in range(MOST_WAITING):    # what has arrived but was not yet read is not lost
            if not self._receive():
                break
        self._rows.write(self._row)

    def _receive(self):
        try:
            datagram = self._socket.recv(65_536)
        except (TimeoutError, BlockingIOError):
            datagram = b''
        now_ns = time.monotonic_ns()
        self._rows.until(now_ns / 1e9, self._row)
        self.take(datagram, now_ns)
        return datagram

    def take(self, datagram, now_ns):
        """A datagram came at `now_ns`. What is not ours is left alone."""
        if len(datagram) < DATAGRAM.size or datagram[:4] != MAGIC:
            return
        _, number, sent_ns = DATAGRAM.unpack_from(datagram)
        self._loss.arrived(number)
        self.packets += 1
        self.bytes += len(datagram) + self._headers
        delay = max(0, now_ns - sent_ns)
        self._delays += delay
        self._longest = max(self._longest, delay)

    def totals(self):
        """Counts since the start."""
        return {'packets': self.packets, 'bytes': self.bytes, 'lost': self._loss.lost,
                'reordered': self._loss.reordered}

    def _row(self, _second):
        now = tuple(self.totals().values())
        packets, size, lost, reordered = (new - old for new, old in zip(now, self._before))
        mean = f'{self._delays / packets / 1e6:.3f}' if packets else ''
        longest = f'{self._longest / 1e6:.3f}' if packets else ''
        self._before, self._delays, self._longest = now, 0, 0
        return packets, size, lost, reordered, mean, longest


def _stop_flag():
    stopped = []
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: stopped.append(True))
    return lambda: bool(stopped)


def _number(low, high):
    def read(text):
        value = float(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f'{text} is not from {low:g} to {high:g}')
        return value
    read.__name__ = 'number'
    return read


def _bursts(text):
    try:
        found = tuple(tuple(map(float, word.split('-'))) for word in text.split(','))
        flat = [time for start, end in found for time in (start, end)]
    except ValueError:
        flat = []
    if not flat or any(later <= earlier for earlier, later in itertools.pairwise(flat)):
        raise argparse.ArgumentTypeError(f'{text!r}: wanted is START-END,..., in s, each later than the one before it')
    return found


def _arguments(argv):
    parser = argparse.ArgumentParser(prog='fieldtrial.load.stream', description=__doc__.split('\n\n', maxsplit=1)[0])
    what = parser.add_subparsers(dest='what', required=True)
    send, recv = what.add_parser('send', help='send'), what.add_parser('recv', help='receive and count')
    for one, option, said in ((send, '--to', 'address to send to'), (recv, '--bind', 'address to receive at')):
        one.add_argument(option, dest='address', type=ipaddress.ip_address, required=True, help=said)
        one.add_argument('--port', type=int, default=9, help='UDP port (default 9, discard)')
        one.add_argument('--csv', required=True, help='file for one row per second')
        one.add_argument('--t0', type=_number(0, 1e12), help='start of the time axis on CLOCK_MONOTONIC, in s '
                         '(default: now)')
    send.add_argument('--rate', type=_number(1e3, 1e11), required=True, help='bit/s of whole frames while on')
    send.add_argument('--packet', type=int, default=1000, help='bytes of a frame (default 1000)')
    send.add_argument('--on', type=_number(0.1, 86_400), default=1.0, help='s of an on period (default 1)')
    send.add_argument('--off', type=_number(0, 86_400), default=0.0, help='s of an off period (default 0: always on)')
    send.add_argument('--off-first', action='store_true', help='begin with an off period')
    send.add_argument('--bursts', type=_bursts, default=(), metavar='START-END,...',
                      help='s from t0 of each on period, in place of --on and --off')
    send.add_argument('--duration', type=_number(0.1, 86_400), required=True, help='s from t0 to the end')
    arguments = parser.parse_args(argv)
    if arguments.what == 'send' and not SMALLEST_FRAME <= arguments.packet <= LARGEST_FRAME:
        parser.error(f'--packet: {arguments.packet} is not from {SMALLEST_FRAME} to {LARGEST_FRAME}')
    return arguments


def main(argv=None):
    """The program; its exit code."""
    arguments, stopped = _arguments(argv), _stop_flag()
    t0 = time.monotonic() if arguments.t0 is None else arguments.t0
    family = socket.AF_INET6 if arguments.address.version == 6 else socket.AF_INET
    where = (str(arguments.address), arguments.port)
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            if arguments.what == 'send':
                sock.connect(where)
                schedule = Schedule(arguments.rate, arguments.packet, arguments.on, arguments.off,
                                    arguments.off_first, arguments.duration, arguments.bursts)
                sender = Sender(schedule, sock, t0, arguments.csv)
                sender.run(stopped)
                print(json.dumps({'packets': sender.number}))
            else:
                sock.bind(where)
                receiver = Receiver(sock, t0, arguments.csv)
                receiver.run(stopped)
                print(json.dumps(receiver.totals()))
    except OSError as error:
        print(f'cbr: {where[0]} port {where[1]}: {os.strerror(error.errno)}', file=sys.stderr)
        return 1
    except TrialError as error:
        print(f'cbr: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
