# SPDX-License-Identifier: GPL-2.0-or-later
"""Daemons of the trial: started on a host, waited for until they answer, stopped by pid, with the end of their logs
kept for messages."""
import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time

from ..base.errors import TrialError

TICKS = os.sysconf('SC_CLK_TCK')
PAGE = os.sysconf('SC_PAGE_SIZE')
TCP_LISTEN = '0A'   # linux/tcp_states.h


class Daemon(contextlib.AbstractContextManager):
    """One long-lived process on a host; its output goes to `log`.

    command: its name in messages. stop_signal: the signal for a clean exit. Usable with `with`: leaving the block stops
    it.
    """

    def __init__(self, host, argv, log, *, command=None, stop_signal=signal.SIGTERM, **how):
        self._host, self._stop_signal = host, stop_signal
        self.name = command or os.path.basename(argv[0])
        self.logs = [log]   #: files with the reason for its end
        with open(log, 'ab') as file:
            self._process = host.popen(argv, stdout=how.pop('stdout', file), stderr=file, **how)
        self.pid = self._process.pid
        self.stdout = self._process.stdout
        self._waited = {}   # s, by pid

    def __exit__(self, *_):
        self.stop()

    def poll(self):
        """Exit code (negative: the signal), None while it runs."""
        return self._process.poll()

    def check(self):
        """Raises TrialError with the end of the logs if the process has ended."""
        code = self.poll()
        if code is not None:
            how = f'was ended by signal {-code}' if code < 0 else f'ended with exit code {code}'
            raise TrialError(f'{self.name} {how}; {self.last_words()}')

    def wait_until(self, ready, what, timeout=20.0):
        """Waits until ready() is true. Raises TrialError if the process ends before that, or after `timeout` s."""
        end = time.monotonic() + timeout
        while not ready():
            self.check()
            if time.monotonic() > end:
                raise TrialError(f'{self.name}: {what} did not happen within {timeout:g} s; {self.last_words()}')
            time.sleep(0.02)

    def last_words(self):
        return '\n'.join(f'the end of {log}:\n{tail(log)}' for log in self.logs)

    def wait(self, timeout=None):
        """Waits for the process to end; its exit code, or None after `timeout` seconds."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, patience=5.0):
        """Ends the process: its stop signal first, SIGKILL after `patience` seconds. Returns its exit code."""
        if self.poll() is None:
            self._process.send_signal(self._stop_signal)
            if self.wait(patience) is None:
                self._process.kill()
                self.wait()
        if self.stdout:
            self.stdout.close()
        return self.poll()

    def signal_group(self, signum):
        """Sends a signal to the process and to all others in its session."""
        self._host.run('sh', '-c', f'kill -s {signal.Signals(signum).name.removeprefix("SIG")} -- -{self.pid}')

    def usage(self):
        """(CPU seconds in user and kernel mode, resident kB) since its start, including its children; None once it has
        ended."""
        try:
            fields = [_stat(self._host, self.pid)]
            children = _text(self._host, f'/proc/{self.pid}/task/{self.pid}/children').split()
        except OSError:
            return None
        for child in children:
            with contextlib.suppress(OSError):
                fields.append(_stat(self._host, child))
        ticks = sum(sum(map(int, each[11:15])) for each in fields)      # includes children that have ended
        return ticks / TICKS, sum(int(each[21]) for each in fields) * PAGE // 1024

    def waited(self):
        """Seconds that it and its children, including ended ones, were ready to run and waited for a processor. 0 if
        the kernel does not provide it."""
        with contextlib.suppress(OSError):
            for pid in (self.pid, *_text(self._host, f'/proc/{self.pid}/task/{self.pid}/children').split()):
                # Documentation/scheduler/sched-stats.rst: ns on a processor, ns waited for one, times on one.
                self._waited[pid] = int(_text(self._host, f'/proc/{pid}/schedstat').split()[1]) / 1e9
        return sum(self._waited.values())


def _stat(host, pid):
    """The fields of /proc/PID/stat after the name."""
    return _text(host, f'/proc/{pid}/stat').rpartition(')')[2].split()


def _text(host, path):
    with host.open(path) as file:
        return file.read()


def fetch(host, peer, path, source=None, timeout=5.0, header=None):
    """Requests `path` from `peer` (address, port) on a host: (status, body, header fields). Raises OSError or
    HTTPException."""
    connection = http.client.HTTPConnection(*peer)
    connection.sock = host.socket(socket.AF_INET6 if ':' in peer[0] else socket.AF_INET, socket.SOCK_STREAM,
                                  source=source, peer=peer, timeout=timeout)
    with contextlib.closing(connection):
        connection.request('GET', path, headers=header or {})
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())


def tail(path, lines=15):
    """The last lines of a text file, each indented, for messages."""
    try:
        with open(path, errors='replace') as file:
            last = file.read()[-8000:].splitlines()[-lines:]
    except OSError as error:
        return f'  ({error})'
    return '\n'.join(f'  | {line}' for line in last) or '  (empty)'


def listens(host, port, address=None):
    """Whether a process accepts TCP connections to `port` on `host`, of the IPv4 `address` if given. Looked up in /proc:
    a test connection would appear in the daemon's log, and an intercepting Squid would report an error."""
    # The kernel shows the address as a number of the machine's byte order.
    shown = '' if address is None else f'{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}'
    wanted = f'{shown}:{port:04X}'
    tables = [_text(host, f'/proc/net/{name}') for name in ('tcp', 'tcp6')]
    rows = (line.split() for table in tables for line in table.splitlines()[1:])
    return any(row[1].endswith(wanted) and row[3] == TCP_LISTEN for row in rows)
