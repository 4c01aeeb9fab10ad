# SPDX-License-Identifier: GPL-2.0-or-later
"""Agent in each container of the trial: carries out the trial's requests, received on a unix socket, with only the
rights of the container.

    python3 -m fieldtrial.site.agent ROLE            serves DIRECTORY/ROLE.sock until SIGTERM
    python3 -m fieldtrial.site.agent --group KIND    the same as the first of KIND-1, KIND-2, ... that is free
    python3 -m fieldtrial.site.agent --check ...     for health checks: exit code 0 if it answers and nothing has failed

A connection carries one request (messages.py). A started process lives as long as its connection, so it does not
outlive the requester. Files and sockets are opened here and passed as descriptors.
"""
import argparse
import contextlib
import fcntl
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import threading

from ..base import stopping
from ..base.errors import Stopped
from . import host, messages

#: Shared by the containers of one project only.
DIRECTORY = os.environ.get('MSFRS_HOSTS', '/run/msfrs')
#: Time for a process to end by itself once its requester has gone, seconds.
PATIENCE_S = 3.0


class Agent:
    """Answers requests. `failed` names the processes that ended on their own with an error."""

    def __init__(self):
        self.failed = []
        self._processes = set()

    def serve(self, listener):
        """Serves until the listener is closed."""
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def stop(self):
        for process in list(self._processes):
            _end(process)

    def _answer(self, connection):
        with connection, contextlib.suppress(OSError, ValueError):
            message, files = messages.receive(connection)
            try:
                if message:
                    getattr(self, f'do_{message.pop("do")}')(connection, files, **message)
            except OSError as error:
                messages.send(connection, {'errno': error.errno, 'said': str(error)})
            finally:
                for file in files:
                    os.close(file)

    def do_check(self, connection, _files):
        """Reports failed processes and the name of the machine."""
        messages.send(connection, {'failed': self.failed, 'machine': socket.gethostname()})

    def do_run(self, connection, _files, argv, input=None, timeout=30.0, cwd=None):
        try:
            done = subprocess.run(argv, input=input, capture_output=True, text=True, errors='replace', timeout=timeout,
                                  cwd=cwd, check=False, stdin=None if input is not None else subprocess.DEVNULL)
        except FileNotFoundError:
            messages.send(connection, {'missing': argv[0]})
        except subprocess.TimeoutExpired:
            messages.send(connection, {'late': timeout})
        else:
            messages.send(connection, {'code': done.returncode, 'stdout': done.stdout, 'stderr': done.stderr})

    def do_start(self, connection, files, argv, cwd=None):
        """Starts a process with these files as standard output and standard error. Replies with its pid, then its exit
        code."""
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=files[0], stderr=files[1], cwd=cwd,
                                   start_new_session=True)
        for file in files:
            os.close(file)
        files.clear()
        self._processes.add(process)
        stopped = threading.Event()
        try:
            messages.send(connection, {'pid': process.pid})
            threading.Thread(target=self._obey, args=(connection, process, stopped), daemon=True).start()
            code = process.wait()
            if code and not stopped.is_set():
                self.failed.append(f'{os.path.basename(argv[0])} ended with {code}')
            messages.send(connection, {'code': code})
        finally:
            self._processes.discard(process)
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _obey(connection, process, stopped):
        """Sends the requested signals; ends the process when the requester has gone."""
        with contextlib.suppress(OSError, ValueError):
            while message := messages.receive(connection)[0]:
                stopped.set()
                process.send_signal(message['signal'])
        stopped.set()
        _end(process)

    def do_open(self, connection, _files, path):
        """Opens a file below /proc for reading."""
        if not os.path.normpath(path).startswith('/proc/'):
            raise PermissionError(1, 'only below /proc')
        file = os.open(path.replace('/proc/net/', '/proc/thread-self/net/'), os.O_RDONLY | os.O_CLOEXEC)
        messages.send(connection, {}, [file])
        os.close(file)

    def do_socket(self, connection, _files, **how):
        with host.new_socket(**how) as made:
            messages.send(connection, {}, [made.fileno()])


def _end(process):
    for signum in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S)


def path_of(role):
    return f'{DIRECTORY}/{role}.sock'


def ask(role, message, files=(), timeout=None):
    """Sends a request on a new connection, which is returned. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(path_of(role))
        messages.send(connection, message, files)
    except BaseException:
        connection.close()
        raise
    return connection


def group_roles(kind):
    """The roles KIND-1, KIND-2, ... of agents that run, or that ended without cleaning up."""
    names = os.listdir(DIRECTORY) if os.path.isdir(DIRECTORY) else ()
    matches = (re.fullmatch(rf'{kind}-([1-9][0-9]*)\.sock', name) for name in names)
    return tuple(f'{kind}-{number}' for number in sorted(int(match[1]) for match in matches if match))


def claim(kind):
    """(the first free role KIND-1, KIND-2, ..., the open file that holds its lock). The lock is released with the
    process, so the next container takes the role of one that was killed."""
    for number in itertools.count(1):
        role = f'{kind}-{number}'
        file = open(f'{DIRECTORY}/{role}.lock', 'w', encoding='ascii')
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return role, file
        except BlockingIOError:
            file.close()


def _check(roles, name):
    """Whether the one of these agents that is on this machine answers without failed processes."""
    for role in roles:
        with contextlib.suppress(OSError), ask(role, {'do': 'check'}, timeout=5.0) as connection:
            answer, _ = messages.receive(connection)
            if answer and answer['machine'] == socket.gethostname():
                print('; '.join(answer['failed']) or 'well')
                return int(bool(answer['failed']))
    print(f'{DIRECTORY}: no agent of {name} of this container answers')
    return 1


def _serve(role):
    path, agent = path_of(role), Agent()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Accessible to the trial's group only: a process that can connect has the rights of the container.
    before = os.umask(0o117)
    listener.bind(path)
    os.umask(before)
    listener.listen(64)
    # An exception, not an Event: a handler that sets one while the main thread enters its wait() blocks for ever.
    with contextlib.suppress(Stopped), stopping.by_signals():
        try:
            threading.Thread(target=agent.serve, args=(listener,), daemon=True).start()
            print(f'{role}: ready', flush=True)
            while True:
                signal.pause()
        finally:
            listener.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            agent.stop()
    return 0


def main(argv=None):
    parser = argparse.ArgumentParser(prog='fieldtrial.site.agent', description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--check', action='store_true', help='query the running agent for its state, and end')
    parser.add_argument('--group', action='store_true', help='it is one of several that are alike')
    parser.add_argument('role', help='which host of the trial this is, or with --group of which kind')
    arguments = parser.parse_args(argv)
    kind = arguments.role
    if arguments.check:
        return _check(group_roles(kind) if arguments.group else (kind,), kind)
    role, lock = claim(kind) if arguments.group else (kind, contextlib.nullcontext())
    with lock:
        return _serve(role)


if __name__ == '__main__':
    sys.exit(main())
