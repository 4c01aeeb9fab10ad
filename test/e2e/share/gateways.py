# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of gateways that share a link: a segment as src/ledger/segment.h describes it, with a live worker in it;
msfrs-share; a store; and a slow path to the store."""
import ctypes
import itertools
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from background import wait_until
from our_daemon import until_ready
from site_in_namespaces import sh

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get('MSFRS_TEST_BUILD', ROOT / 'build/obj')) / 'msfrs-share'
PATIENCE = 20.0
PASSWORD = 'correct horse'

MAGIC, VERSION = 0x4c5352464d534d01, 3
HEADER, SLOT, SLOTS, USER, USERS = 64, 960, 64, 128, 65536
DIRECTORY = 64 * 321 + 65536 * 64
QUOTAS = 64 + 65536 // 8 + 256 * 64 + 65536 * 192
SIZE = HEADER + SLOTS * SLOT + USERS * USER + DIRECTORY + QUOTAS
WORKER, GATEWAY = 1, 3
FIELDS = ('life', 'heartbeat', 'places', 'waiting', 'queued', 'tag', 'demand', 'rank', 'received', 'metered', 'limit',
          'own', 'rate', 'utilisation', 'pid', 'config')
REALS = ('tag', 'demand', 'limit', 'rate', 'utilisation')
_number = itertools.count(1)


def bits(value):
    return struct.unpack('<Q', struct.pack('<d', value))[0]


def column(kib, waiting, items):
    """A party's column in the row of a user."""
    return kib << 34 | waiting << 12 | items


def real(word):
    return struct.unpack('<d', struct.pack('<Q', word))[0]


class Slot:
    """One party of a segment, by the names of its fields."""

    def __init__(self, words, number):
        self._words, self._at, self.number = words, (HEADER + number * SLOT) // 8, number

    def __getattr__(self, name):
        word = self._words[self._at + FIELDS.index(name)]
        return real(word) if name in REALS else word

    def set(self, **fields):
        for name, value in fields.items():
            self._words[self._at + FIELDS.index(name)] = bits(value) if name in REALS else int(value)

    def set_class(self, n, key, served, demand):
        at = self._at + len(FIELDS) + 3 * n
        self._words[at + 1], self._words[at + 2], self._words[at] = served, bits(demand), key

    @property
    def classes(self):
        at = self._at + len(FIELDS)
        rows = (self._words[at + 3 * n:at + 3 * n + 3] for n in range(32))
        return {row[0]: (row[1], real(row[2])) for row in rows if row[0]}

    @property
    def kind(self):
        return self.life & 0xff

    def lives(self):
        return self.kind and self.heartbeat > time.monotonic_ns() - 1e9


_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p
_libc.shmat.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_int
IPC_CREAT, IPC_EXCL, IPC_RMID = 0o1000, 0o2000, 0


def key_of(name):
    """The key of System V's shared memory, computed as in src/ledger/mapping.h."""
    found = 0xcbf29ce484222325
    for byte in name.encode():
        found = (found ^ byte) * 0x100000001b3 % 2**64
    found = (found ^ found >> 32) * 0x9e3779b97f4a7c15 % 2**64
    return ctypes.c_int32((found ^ found >> 29) | 1).value


def checked(answer):
    if answer in (-1, 2**64 - 1):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


class Memory:
    """A segment in shared memory that another process creates."""

    def __init__(self, name):
        self.name = name
        self.words = None

    def map(self):
        """Maps the segment that exists now; returns itself."""
        address = checked(_libc.shmat(checked(_libc.shmget(key_of(self.name), 0, 0)), None, 0))
        self.words = memoryview((ctypes.c_uint64 * (SIZE // 8)).from_address(address)).cast('B').cast('Q')
        return self

    def remove(self):
        """Removes its name; existing mappings stay valid."""
        identifier = _libc.shmget(key_of(self.name), 0, 0)
        if identifier >= 0:
            checked(_libc.shmctl(identifier, IPC_RMID, None))

    def make(self, size):
        """Creates an empty segment in place of any earlier one."""
        self.remove()
        checked(_libc.shmget(key_of(self.name), size, IPC_CREAT | IPC_EXCL | 0o666))

    def slot(self, number):
        return Slot(self.words, number)

    def gateways(self):
        """The slots of other live gateways."""
        slots = (self.slot(number) for number in range(1, SLOTS))
        return [slot for slot in slots if slot.kind == GATEWAY and slot.lives()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Segment(Memory):
    """A segment of the test's own, with a worker in slot 0 that updates its heartbeat every 50 ms."""

    def __init__(self):
        super().__init__(f'/msfrs-test-{os.getpid()}-{next(_number)}')
        self._running = False
        self.make()

    def make(self, size=SIZE):
        super().make(size)
        self.map()
        self.words[1], self.words[2], self.words[0] = VERSION, SIZE, MAGIC
        self.worker = self.slot(0)
        self.worker.set(heartbeat=time.monotonic_ns(), rank=1, limit=8.0, rate=8e6, metered=1)
        self.worker.set(life=1 << 8 | WORKER)

    def __enter__(self):
        self._running = True
        self._thread = threading.Thread(target=self._beat)
        self._thread.start()
        return self

    def _beat(self):
        while self._running:
            self.worker.set(heartbeat=time.monotonic_ns())
            time.sleep(0.05)

    def __exit__(self, *_):
        self._running = False
        self._thread.join()
        self.remove()

    def users(self):
        """{key: (bit set of the parties where it has work, columns)}"""
        first = (HEADER + SLOTS * SLOT) // 8
        found = {}
        for at in range(first, first + USERS * USER // 8, USER // 8):
            if self.words[at]:
                found[self.words[at]] = self.words[at + 1], list(self.words[at + 2:at + USER // 8])
        return found

    def user(self, key, column, active=True):
        """The worker has charged a user; column: see `column`."""
        at = (HEADER + SLOTS * SLOT + (key % USERS) * USER) // 8
        self.words[at] = key
        self.words[at + 2] = column
        self.words[at + 1] = self.words[at + 1] & ~1 | active


class Gateway:
    """A segment, and an msfrs-share for it; `with` ends both."""

    def __init__(self, host, directory, name, others, *, share=50, port=6379, store='', segment=None,
                 user='nobody'):
        self.host, self.name = host, name
        self.segment = segment or Segment()
        self.file = pathlib.Path(directory) / f'{name}.conf'
        self.log = pathlib.Path(directory) / f'{name}.log'
        self.control = pathlib.Path(directory) / f'{name}.run/socket'
        self.process = None
        self.configure(f'link test\ngateway {name} share={share}%\n' + ''.join(f'other {o}\n' for o in others) +
                       f'store host=127.0.0.1 port={port} {store}\nsegment {self.segment.name}\n'
                       f'control {self.control}\nuser {user}\n')

    def configure(self, text):
        self.file.write_text(text)

    def command(self, *words):
        return [str(PROGRAM), *words, str(self.file)]

    def start(self):
        with open(self.log, 'a') as log:
            self.process = self.host.popen(self.command(), stdout=subprocess.PIPE, stderr=log, text=True)
        until_ready(self.process, self.said)
        return self

    def said(self):
        """Lines of its standard error, without the program's name."""
        return [line.removeprefix('msfrs-share: ') for line in self.log.read_text().splitlines()]

    def ask(self, what):
        done = sh(self.host, *self.command('--ask', what))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def metrics(self):
        """{(name, labels as a sorted tuple): value}"""
        return {(sample.name.removeprefix('msfrs_share_'), *sorted(sample.labels.items())): sample.value
                for family in text_string_to_metric_families(self.ask('metrics')) for sample in family.samples}

    def state(self):
        found = self.metrics()
        return next(name for name in ('together', 'last', 'static') if found[('state', ('state', name))])

    def other(self):
        """The slot of the only other gateway, or None."""
        found = self.segment.gateways()
        assert len(found) < 2
        return found[0] if found else None

    def other_has(self, places):
        """Waits until the only other gateway is there and has this many places."""
        wait_until(lambda: [slot.places for slot in self.segment.gateways()] == [places], lambda: self.ask('status'))

    def wait_for(self, name):
        wait_until(lambda: f'gateway {name}: is present' in self.said(), lambda: self.said())

    def says(self, line, times=1):
        wait_until(lambda: self.said().count(line) >= times, lambda: f'{line!r} in {self.said()}')

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self._reap()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        process = self.process
        self._reap()
        assert process.returncode == 0, self.said()

    def _reap(self):
        self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.process = None

    def __enter__(self):
        self.segment.__enter__()
        return self

    def __exit__(self, kind, *_):
        if self.process:
            self.kill() if kind else self.end()
        self.segment.__exit__()


class Store:
    """Debian's server, without persistence."""

    def __init__(self, host, directory, port=6379, *options):
        self.host, self.port, self._directory, self._options = host, port, directory, options
        self._program = shutil.which('valkey-server') or shutil.which('redis-server')
        assert self._program, 'neither valkey-server nor redis-server is installed (scripts/install-packages check)'

    def start(self):
        self.process = self.host.popen([self._program, '--port', str(self.port), '--bind', '127.0.0.1', '--save', '',
                                        '--appendonly', 'no', '--dir', str(self._directory), *self._options],
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if 'eady to accept connections' in line:
                return self
        raise AssertionError('the store does not start')

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    __enter__ = start

    def __exit__(self, *_):
        self.end()

    def do(self, *words):
        """Sends one command; returns the first bytes of its reply."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        with self.host.socket(socket.AF_INET, socket.SOCK_STREAM, peer=('127.0.0.1', self.port), timeout=5) as client:
            client.sendall(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(word), word) for word in words))
            return client.recv(4096)


class SlowWay:
    """Another port of the store, with delay in both directions."""

    def __init__(self, host, port, to, seconds):
        self._to, self._seconds, self._host = to, seconds, host
        with host.inside():
            self._listener = socket.create_server(('127.0.0.1', port))
        self._open, self._threads = [], []

    def __enter__(self):
        self._go(self._accept)
        return self

    def _go(self, work, *args):
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = self._host.socket(socket.AF_INET, socket.SOCK_STREAM, peer=('127.0.0.1', self._to))
            self._open += [client, server]
            self._go(self._carry, client, server)
            self._go(self._carry, server, client)

    def _carry(self, source, sink):
        try:
            while piece := source.recv(65536):
                time.sleep(self._seconds)
                sink.sendall(piece)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        for end in (self._listener, *self._open):
            end.close()
        for thread in self._threads:
            thread.join(PATIENCE)
