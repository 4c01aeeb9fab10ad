# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP at a constant bit rate, in bursts: downlink traffic that belongs to no class.

    python3 -m fieldtrial.load.stream recv --bind ADDRESS --csv FILE                             behind the gateway
    python3 -m fieldtrial.load.stream send --to ADDRESS --rate BITS --bursts S-S,... --csv FILE  beyond the link

The rate counts whole Ethernet frames, as the link does. Datagrams carry a number and the time of sending; sender and
receiver stand on one machine, so that time tells the one-way delay. Each writes one row per second; both end at SIGTERM
with the last row written. The receiver sees a loss when a later datagram arrives; what was lost at the very end is the
difference of the two files.
"""
import argparse
import csv
import ipaddress
import itertools
import json
import signal
import socket
import struct
import sys
import time

from ..base.errors import TrialError
from ..base.paths import ROOT
from ..site.addresses import SINK4
from ..site.processes import Daemon

FIRST_PORT = 9      #: discard
#: Ethernet header, IP header and UDP header, by IP version.
HEADERS = {socket.AF_INET: 14 + 20 + 8, socket.AF_INET6: 14 + 40 + 8}
FRAME = 1000        #: bytes
DATAGRAM = struct.Struct('!4sIQ')     # MAGIC, number, CLOCK_MONOTONIC in ns at sending
MAGIC = b'mCBR'
#: A datagram that is later than this is left out and counted: after a pause of the machine, a burst would say more
#: about the machine than about the link.
LATEST_S = 0.02
#: How long a signal may wait.
PATIENCE_S = 0.2
#: Datagrams that are still read after it: about what a socket's buffer holds.
MOST_WAITING = 1_000


def daemons(world, streams, t0):
    """The Daemons of these CbrStreams, receiver and sender of each, started as they are taken. They write their rows
    into the world's directory."""
    for number, stream in enumerate(streams, start=1):
        port, where = str(FIRST_PORT + number - 1), world.directory / f'cbr{number}'
        user = None if stream.receiver is None else world.users[stream.receiver]
        address, host = (SINK4, world.users_host) if user is None else (user.v4, world.host_of(user))
        bursts = ','.join(f'{start:g}-{end:g}' for start, end in stream.bursts)
        for name, on, does in (('received', host, ['recv', '--bind', address]), ('sent', world.farm, [
                'send', '--to', address, '--rate', f'{stream.rate_bps:.0f}', '--bursts', bursts])):
            yield Daemon(on, [sys.executable, '-m', 'fieldtrial.load.stream', *does, '--port', port,
                              '--t0', f'{t0:.6f}', '--csv', f'{where}-{name}.csv'], f'{where}-{name}.log', cwd=ROOT,
                         command=f'CBR stream ({name})')


def times(rate_bps, bursts):
    """When frames leave, in seconds since t0."""
    gap = FRAME * 8 / rate_bps
    for start, end in bursts:
        yield from itertools.takewhile(lambda when, end=end: when < end, (start + n * gap for n in itertools.count()))


def on_between(bursts, start, end):
    """Seconds of the interval that lie in a burst."""
    return sum(max(0.0, min(end, last) - max(start, first)) for first, last in bursts)


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
    """Sends and counts. bursts: (start, end) of each, s since t0."""

    def __init__(self, rate_bps, bursts, sock, t0, path):
        self._times, self._bursts, self._socket, self._t0 = times(rate_bps, bursts), bursts, sock, t0
        self._rows = _Rows(path, ('t', 'on', 'packets', 'bytes', 'skipped'), t0)
        self._padding = bytes(FRAME - HEADERS[sock.family] - DATAGRAM.size)
        self._packets = self._skipped = 0
        self.number = 0     #: of the next datagram: those that were skipped take none

    def run(self, stopped):
        """Until the last burst has ended or `stopped()` says so."""
        for when in self._times:
            if not self._wait(self._t0 + when, stopped):
                break
            if time.monotonic() > self._t0 + when + LATEST_S:
                self._skipped += 1
            else:
                self._send()
        else:
            self._wait(self._t0 + self._bursts[-1][1], stopped)
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
        row = f'{on_between(self._bursts, second, second + 1):.3f}', self._packets, self._packets * FRAME, self._skipped
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
        self._socket = sock
        self._rows = _Rows(path, ('t', 'packets', 'bytes', 'lost', 'reordered', 'delay_mean_ms', 'delay_max_ms'), t0)
        #: Since the start.
        self.totals = {'packets': 0, 'bytes': 0, 'lost': 0, 'reordered': 0}
        self._before = dict(self.totals)
        self._next = 0
        self._delays = []

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
        missing = number - self._next
        for name, count in (('packets', 1), ('bytes', len(datagram) + HEADERS[self._socket.family]),
                            ('lost', max(missing, -1)), ('reordered', missing < 0)):
            self.totals[name] += count
        self._next = max(self._next, number + 1)
        self._delays.append(max(0, now_ns - sent_ns) / 1e6)

    def _row(self, _second):
        row = [self.totals[name] - before for name, before in self._before.items()]
        row += [f'{sum(self._delays) / row[0]:.3f}', f'{max(self._delays):.3f}'] if row[0] else ['', '']
        self._before, self._delays = dict(self.totals), []
        return row


def _stop_flag():
    stopped = []
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: stopped.append(True))
    return lambda: bool(stopped)


def _bursts(text):
    try:
        found = tuple(tuple(map(float, word.split('-'))) for word in text.split(','))
        flat = [when for start, end in found for when in (start, end)]
    except ValueError:
        flat = []
    if not flat or any(later <= earlier for earlier, later in itertools.pairwise(flat)):
        raise argparse.ArgumentTypeError(f'{text!r}: wanted is START-END,..., in s, each later than the one before it')
    return found


def _rate(text):
    if not 1e3 <= float(text) <= 1e11:
        raise argparse.ArgumentTypeError(f'{text} is not from 1000 to 1e+11')
    return float(text)


def _arguments(argv):
    parser = argparse.ArgumentParser(prog='fieldtrial.load.stream', description=__doc__.split('\n\n', maxsplit=1)[0])
    what = parser.add_subparsers(dest='what', required=True)
    send, recv = what.add_parser('send', help='send'), what.add_parser('recv', help='receive and count')
    for one, option, said in ((send, '--to', 'address to send to'), (recv, '--bind', 'address to receive at')):
        one.add_argument(option, dest='address', type=ipaddress.ip_address, required=True, help=said)
        one.add_argument('--port', type=int, default=FIRST_PORT, help='UDP port (default %(default)s)')
        one.add_argument('--csv', required=True, help='file for one row per second')
        one.add_argument('--t0', type=float, default=time.monotonic(),
                         help='start of the time axis on CLOCK_MONOTONIC, in s (default: now)')
    send.add_argument('--rate', type=_rate, required=True, help='bit/s of whole frames in a burst')
    send.add_argument('--bursts', type=_bursts, required=True, metavar='START-END,...', help='s from t0 of each')
    return parser.parse_args(argv)


def main(argv=None):
    """The program; its exit code."""
    arguments, stopped = _arguments(argv), _stop_flag()
    where = str(arguments.address), arguments.port
    try:
        with socket.socket(socket.AF_INET6 if ':' in where[0] else socket.AF_INET, socket.SOCK_DGRAM) as sock:
            if arguments.what == 'send':
                sock.connect(where)
                sender = Sender(arguments.rate, arguments.bursts, sock, arguments.t0, arguments.csv)
                sender.run(stopped)
                print(json.dumps({'packets': sender.number}))
            else:
                sock.bind(where)
                receiver = Receiver(sock, arguments.t0, arguments.csv)
                receiver.run(stopped)
                print(json.dumps(receiver.totals))
    except OSError as error:
        print(f'stream: {where[0]} port {where[1]}: {error.strerror}', file=sys.stderr)
        return 1
    except TrialError as error:
        print(f'stream: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
