# SPDX-License-Identifier: GPL-2.0-or-later
"""All queries of msfrsctl to the machine, in one object that tests can replace."""
import contextlib
import fcntl
import grp
import itertools
import json
import os
import pwd
import select
import signal
import socket
import sys
import time
from collections import namedtuple

from .errors import WRONG, CtlError
from .text import safe

#: Bytes of the largest response that is read; a report of ten thousand users has less than one million.
LARGEST = 16 << 20
#: Arguments of open() that preserve a text file byte for byte.
AS_IT_IS = {'encoding': 'utf-8', 'errors': 'surrogateescape', 'newline': ''}
#: Bytes of a packet that are examined: the longest IPv4 header and the ports.
HEAD = 64
#: ETH_P_ALL of the kernel.
EVERY_PROTOCOL = 3
#: How an IPv4 address begins as an IPv6 one.
MAPPED = bytes(10) + b'\xff\xff'
#: Exit code for a program that does not exist, as in a shell.
MISSING = 127


class Done(namedtuple('Done', 'code out err', defaults=('', ''))):
    """Result of a command: exit code, stdout, stderr."""
    __slots__ = ()

    def __bool__(self):
        return self.code == 0


class Stat(namedtuple('Stat', 'mode uid gid')):
    """Mode and owner of a file."""
    __slots__ = ()

    def allows(self, who, bit):
        """Whether a user may read (bit 4) or write (bit 2); who: (uid, set of gids)."""
        shift = 6 if who[0] == self.uid else 3 if self.gid in who[1] else 0
        return who[0] == 0 or bool(self.mode >> shift & bit)


def _private(path, flags):
    """Opener for open(): no other user may read the file while it is written."""
    return os.open(path, flags, 0o600)


#: File with the bytes that an interface has received.
RECEIVED = '/sys/class/net/{}/statistics/rx_bytes'


class System:
    now = staticmethod(time.time)               #: seconds since 1970
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)
    euid = staticmethod(os.geteuid)

    def key(self, seconds):
        """Waits, and returns a key that was pressed meanwhile, or ''."""
        if not sys.stdin.isatty():
            self.sleep(seconds)
            return ''
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return os.read(sys.stdin.fileno(), 1).decode(errors='replace') if ready else ''

    def run(self, *argv, timeout=30, input=None):
        """Runs a program with messages in the C locale and the system's directories in its path."""
        import subprocess       # imported here, so that `why` does not load it
        environment = {**os.environ, 'LC_ALL': 'C',
                       'PATH': f'{os.environ.get("PATH", "/usr/bin:/bin")}:/usr/sbin:/sbin'}
        try:
            done = subprocess.run([str(word) for word in argv], input=input, capture_output=True, text=True,
                                  errors='replace', timeout=timeout, env=environment, check=False,
                                  start_new_session=True,   # Ctrl-C is for msfrsctl, which may have to put back
                                  stdin=None if input is not None else subprocess.DEVNULL)
        except FileNotFoundError:
            return Done(MISSING, '', f'{argv[0]}: not found')
        except (OSError, subprocess.TimeoutExpired) as problem:
            return Done(MISSING, '', str(problem))
        return Done(done.returncode, done.stdout, done.stderr)

    def ip(self, *words):
        """The parsed output of `ip -j`; [] if it fails."""
        done = self.run('ip', '-j', *words)
        try:
            return json.loads(done.out or '[]') if done else []
        except ValueError:
            return []

    def read(self, path):
        """The text of a file, or None if it cannot be read. `write` restores the same bytes, whatever their encoding.
        """
        try:
            with open(path, **AS_IT_IS) as file:
                return file.read()
        except OSError:
            return None

    def tail(self, path, most):
        """The last `most` bytes of a file as text, or None."""
        try:
            with open(path, 'rb') as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - most))
                return file.read(most).decode(errors='replace')
        except OSError:
            return None

    def stat(self, path):
        """A Stat, or None."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        return Stat(found.st_mode & 0o7777, found.st_uid, found.st_gid)

    def ids(self, user):
        """(uid, set of gids) of a user, or None."""
        try:
            found = pwd.getpwnam(user)
        except KeyError:
            return None
        return found.pw_uid, {found.pw_gid} | {group.gr_gid for group in grp.getgrall() if user in group.gr_mem}

    def exists(self, path):
        return os.path.exists(path)

    def write(self, path, text, mode=None):
        """Replaces a whole file atomically and keeps its owner and mode; mode: of a new file."""
        path = os.path.realpath(path)       # a symbolic link stays one
        made = os.path.join(os.path.dirname(path), f'.{os.path.basename(path)}.{os.getpid()}')
        try:
            before = os.stat(path) if os.path.exists(path) else None
            try:
                with open(made, 'x', **AS_IT_IS, opener=_private) as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                    os.fchmod(file.fileno(), before.st_mode & 0o7777 if before else mode or 0o644)
                    if before and self.euid() == 0:
                        os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.replace(made, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(made)
                raise
        except OSError as problem:
            raise CtlError(f'cannot write {path}: {problem.strerror}; run msfrsctl as root') from None

    def missing(self, path):
        """The directories that make_directory() would make, topmost first."""
        made = []
        while path and not self.exists(path):
            made.insert(0, path)
            path = os.path.dirname(path)
        return made

    def remove_empty(self, path):
        """Removes a directory, if it is there and empty."""
        with contextlib.suppress(OSError):
            os.rmdir(path)

    def make_directory(self, path):
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as problem:
            raise CtlError(f'cannot make {path}: {problem.strerror}; run msfrsctl as root') from None

    def ask(self, question, default):
        """The user's answer, or the default."""
        print(f'{question} [{default}]: ' if default else f'{question}: ', end='', file=sys.stderr, flush=True)
        said = ''
        try:
            said = sys.stdin.buffer.readline().decode(errors='replace')    # a terminal of another encoding
        finally:
            if not said:        # Ctrl-C or Ctrl-D: what follows has a line of its own
                print(file=sys.stderr)
        if not said:
            raise CtlError('nobody answers; give all with flags, and --yes', WRONG)
        return said.strip() or default

    def say(self, text):
        """Prints a message for the user who answers the questions."""
        print(safe(text, 400), file=sys.stderr)

    @contextlib.contextmanager
    def uninterrupted(self):
        """Ctrl-C is ignored meanwhile."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def remove(self, path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def take(self, directory, ending, most):
        """Removes files of a directory that need not be trusted, at most so many, and returns their names without the
        ending. Files are not opened, and files of other endings stay."""
        try:
            held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            return []
        try:
            with os.scandir(held) as entries:
                names = [entry.name for entry in itertools.islice(entries, most) if entry.name.endswith(ending)]
            taken = []
            for name in sorted(names):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=held)
                    taken.append(name.removesuffix(ending))
            return taken
        finally:
            os.close(held)

    @contextlib.contextmanager
    def lock(self, directory, wait=True):
        """One process at a time has it. wait: until it is free; otherwise yields whether it was."""
        try:
            held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as problem:
            raise CtlError(f'cannot open {directory}: {problem.strerror}') from None
        try:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(held)

    def tcp_peers(self):
        """(address in network order, port) of the other ends of this machine's TCP connections."""
        found = set()
        for line in ((self.read('/proc/net/tcp') or '') + (self.read('/proc/net/tcp6') or '')).splitlines():
            address, colon, port = line.split()[2].partition(':')
            if colon:       # not in a heading; 32-bit words in the machine's byte order
                words = (int(address[at:at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(address), 8))
                found.add((b''.join(words).removeprefix(MAPPED), int(port, 16)))
        return found

    def packets(self, interfaces, seconds, take):
        """Calls take(head, length) for each IP packet sent on one of the interfaces, for the given time. False if the
        packets cannot be captured."""
        until = self.monotonic() + seconds
        head = bytearray(HEAD)
        with contextlib.ExitStack() as stack:
            try:
                sockets = [stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM,
                                                             socket.htons(EVERY_PROTOCOL))) for _ in interfaces]
                for each, interface in zip(sockets, interfaces):
                    each.bind((interface, EVERY_PROTOCOL))
            except OSError:
                sockets = []
            while (left := until - self.monotonic()) > 0:
                for each in select.select(sockets, [], [], left)[0]:
                    try:
                        length, address = each.recvfrom_into(head, HEAD, socket.MSG_TRUNC)
                    except OSError:     # its interface has gone
                        sockets.remove(each)
                        continue
                    if address[2] == socket.PACKET_OUTGOING:
                        take(bytes(head[:min(length, HEAD)]), length)
        return bool(sockets)

    def download(self, url, interface, path):
        """[(seconds, number in the file `path`)] while the URL is downloaded through an interface, bounded as `measure`
        says. Raises CtlError."""
        from .download import samples       # imported here, so that `why` does not load it
        return samples(url, interface, lambda: int(self.read(path) or 0))

    def free(self, path):
        """Bytes that an ordinary user may still write to the file system of a file, or None."""
        try:
            found = os.statvfs(path)
        except OSError:
            return None
        return found.f_bavail * found.f_frsize

    def ends(self, host, port, timeout):
        """Whether a connection that sends nothing and closes its half is closed, or answered, by the other end in time.
        True if there is no connection."""
        try:
            with socket.create_connection((host, port), timeout) as connection:
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
        except TimeoutError:
            return False
        except OSError:
            pass
        return True

    def fetch(self, host, port, path, timeout=5.0):
        """(status, body) of an HTTP request. Raises OSError."""
        status, _, body = self.request(host, port, path, f'{host}:{port}', timeout)
        return status, body

    def request(self, host, port, target, name, timeout):
        """(status, {field: value}, body) of an HTTP request for a path of a server or a URL of a proxy; name: value of
        the Host field. Raises OSError. (Importing http.client alone would take as long.)"""
        until = self.monotonic() + timeout
        with socket.create_connection((host, port), timeout) as connection:
            connection.sendall(f'GET {target} HTTP/1.0\r\nHost: {name}\r\nConnection: close\r\n\r\n'.encode())
            answer = bytearray()
            while len(answer) < LARGEST:
                left = until - self.monotonic()
                if left <= 0:
                    raise TimeoutError(f'no whole answer within {timeout:g} s')
                connection.settimeout(left)
                piece = connection.recv(1 << 16)
                if not piece:
                    break
                answer += piece
        head, _, body = bytes(answer).partition(b'\r\n\r\n')
        words = head.split(None, 2)
        if len(words) < 2 or not words[0].startswith(b'HTTP/') or not words[1].isdigit():
            raise OSError('what answers there does not speak HTTP')
        lines = (line.partition(':') for line in head.decode(errors='replace').splitlines()[1:])
        return int(words[1]), {name.lower(): value.strip() for name, _, value in lines}, body.decode(errors='replace')
