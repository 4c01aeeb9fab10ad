# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts made of network namespaces, and the veth pairs between them.

A fabric makes hosts and wires. Everything done *on* a host goes through `host.Host`, so that a scenario does not depend
on whether a host is a namespace or a container; `containers` is the other fabric, with the same methods.

Names identify the owner: `msfrs-<pid>-<start time of pid>-<number>-<role>`. A namespace whose owner no longer runs is a
leftover, and `sweep` removes it together with the processes inside. A living owner's namespaces are never touched.
"""
import contextlib
import ctypes
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from ..base.errors import TrialError
from . import host as hosts
from .host import HostError

RUN_DIR = '/run/netns'
NAME = re.compile(r'msfrs-(\d+)-(\d+)-(\d+)-([a-z0-9]+)')
#: Parent of temporary directories. Only root can write here, and, unlike a home or $TMPDIR, the daemons' users can
#: enter it.
STATE_DIR = '/run'
DIRECTORY = re.compile(r'msfrs-(\d+)-(\d+)-world-\w+')
CLONE_NEWNET = 0x40000000
# Kernel features that merge segments: when enabled, a qdisc and the byte counters see packets of up to 64 kB.
OFFLOADS = ('tso', 'gso', 'gro')

_libc = ctypes.CDLL(None, use_errno=True)
_number = itertools.count(1)


def _run(argv, *, input=None, timeout=30.0, check=True):
    try:
        done = subprocess.run(argv, input=input, capture_output=True, text=True, timeout=timeout)
    except FileNotFoundError:
        raise HostError(f'{argv[0]}: not found; install it (scripts/install-packages does)') from None
    except subprocess.TimeoutExpired:
        raise HostError(f'no end after {timeout:g} s: {" ".join(argv)}') from None
    if check and done.returncode:
        raise hosts.failed(argv, done.returncode, done.stdout, done.stderr)
    return done


class Host(hosts.Host):
    @property
    def netns_path(self):
        """The file of its network namespace, for programs that join it themselves."""
        return f'{RUN_DIR}/{self.name}'

    def enter(self, argv):
        """The command line that runs `argv` on this host. /sys shows the host's own interfaces."""
        return ['ip', 'netns', 'exec', self.name, *argv]

    def run(self, *argv, input=None, timeout=30.0, check=True):
        return _run(self.enter([str(word) for word in argv]), input=input, timeout=timeout, check=check).stdout

    def popen(self, argv, **how):
        """See host.Host. The process has its own session, so that Ctrl-C reaches only this process, which stops all
        others in order; the kernel kills it if this process dies without stopping it."""
        how.setdefault('start_new_session', True)
        how.setdefault('stdin', subprocess.DEVNULL)
        return subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', *self.enter(argv)], **how)

    def pids(self):
        """Processes that currently run on this host."""
        said = _run(['ip', 'netns', 'pids', self.name], check=False)
        return [int(word) for word in said.stdout.split()]

    @contextlib.contextmanager
    def inside(self):
        """Within the block, this thread makes its sockets in this host's network."""
        with open('/proc/thread-self/ns/net') as home, open(self.netns_path) as there:
            _setns(there.fileno(), self.netns_path)
            try:
                yield
            finally:
                _setns(home.fileno(), 'the own network namespace')

    def open(self, path):
        with self.inside():   # the file belongs to the network it was opened in
            return open(path.replace('/proc/net/', '/proc/thread-self/net/'), encoding='ascii')

    def socket(self, family, kind, protocol=0, *, source=None, peer=None, timeout=None):
        with self.inside():   # the socket stays there when the thread leaves
            return hosts.new_socket(family, kind, protocol, source, peer, timeout)

    def set_kernel(self, settings):
        self.run('sysctl', '-q', '-w', *settings)


def _setns(fd, what):
    if _libc.setns(fd, CLONE_NEWNET):
        code = ctypes.get_errno()
        raise TrialError(f'cannot join {what}: {os.strerror(code)}')


class NetnsFabric(contextlib.AbstractContextManager):
    """Makes hosts and wires, and removes them all on `close`. Usable with `with`."""

    groups = ('users',)  #: roles of the hosts that users may be on
    names = None         #: the role of the name server's host; None: the gateway
    places = ('farm',)   #: roles of the hosts that servers may be on
    given = ()           #: roles of hosts that were not made here
    probe = 'probe'      #: the role of a host for probing features of the kernel
    uncounted = 0        #: bytes of a frame not counted by the interfaces' receive counters
    lasting = False      #: whether hosts outlive a scenario and must be restored

    def __init__(self, label=None):
        """`label` is for people only: a prefix of every role in the names (letters and digits)."""
        self._label = label or ''
        self._hosts = []
        self._lock = threading.Lock()

    def __exit__(self, *_):
        self.close()

    def host(self, role):
        """A new host with only a loopback interface. Raises TrialError if namespaces are not permitted."""
        name = f'{_owned()}-{next(_number)}-{self._label}{role}'
        if not NAME.fullmatch(name):
            raise ValueError(f'role {role!r}, label {self._label!r}: only lower-case letters and digits')
        host = Host(role, name)
        try:
            _run(['ip', 'netns', 'add', name])
        except HostError as error:
            _run(['ip', 'netns', 'del', name], check=False)
            raise TrialError('cannot make a network namespace; it takes root, and in a container the right to mount '
                             f'and CAP_SYS_ADMIN (docker run --privileged):\n  {error}') from None
        with self._lock:
            self._hosts.append(host)
        host.run('ip', 'link', 'set', 'lo', 'up')
        return host

    def wire(self, a, name_a, b, name_b):
        """Connects interface `name_a` of host a to `name_b` of host b by an Ethernet cable: up at both ends, no
        offloads, a queue of 1000 packets at each end that nothing shapes (the kernel's default)."""
        _run(['ip', '-n', a.name, 'link', 'add', name_a, 'type', 'veth', 'peer', 'name', name_b, 'netns', b.name])
        for host, name in ((a, name_a), (b, name_b)):
            whole_packets(host, name)
            host.run('ip', 'link', 'set', name, 'up')

    def directory(self):
        """A context with a directory visible to all hosts, removed at the end."""
        return temporary_directory()

    def close(self):
        """Ends all processes on the hosts and removes the hosts. Safe to call twice, and after a failure."""
        with self._lock:
            hosts, self._hosts = self._hosts, []
        for host in hosts:
            _remove(host)


def whole_packets(host, interface):
    """Disables offloads, so that packets are queued and counted as they are on a wire."""
    host.run('ethtool', '-K', interface, *(word for name in OFFLOADS for word in (name, 'off')))


@contextlib.contextmanager
def temporary_directory():
    """A directory that other users may enter, removed at the end, or by `sweep` if this process is killed."""
    path = tempfile.mkdtemp(prefix=f'{_owned()}-world-', dir=STATE_DIR)
    os.chmod(path, 0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def sweep():
    """Removes namespaces, processes in them and temporary directories of owners that no longer run. Returns their
    names."""
    gone = []
    for name in _names_in(RUN_DIR):
        match = NAME.fullmatch(name)
        if match and not _owner_runs(match):
            _remove(Host(match[4], name))
            gone.append(name)
    for name in _names_in(STATE_DIR):
        match = DIRECTORY.fullmatch(name)
        if match and not _owner_runs(match):
            shutil.rmtree(f'{STATE_DIR}/{name}', ignore_errors=True)
            gone.append(f'{STATE_DIR}/{name}')
    return gone


def _names_in(directory):
    with contextlib.suppress(FileNotFoundError):
        return os.listdir(directory)
    return []


def _owned():
    """The prefix of names made by this process."""
    return f'msfrs-{os.getpid()}-{start_time(os.getpid())}'


def _owner_runs(match):
    return start_time(int(match[1])) == int(match[2])


def _remove(host):
    _end_processes(host)
    _run(['ip', 'netns', 'del', host.name], check=False)


def _end_processes(host, patience=2.0):
    """Ends the processes in a namespace, which would otherwise persist. All of them were started by its owner."""
    for signum in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + patience
        pids = host.pids()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)
        while pids and time.monotonic() < end:
            time.sleep(0.02)
            pids = host.pids()
        if not pids:
            return


def start_time(pid):
    """Start time of a process, in clock ticks since boot; -1 if it does not run. A pid alone may have been reused."""
    try:
        with open(f'/proc/{pid}/stat') as file:
            fields = file.read().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return -1
    return -1 if fields[0] in 'ZX' else int(fields[19])
