# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a host for scenarios, independent of its kind: `netns` makes hosts of network namespaces,
`containers` of containers."""
import abc
import socket

from ..base.errors import TrialError


class HostError(TrialError):
    """A command on a host failed; the message has the command and its output."""


def failed(argv, code, stdout, stderr):
    """The HostError of a command that ended with this exit code."""
    said = stderr.strip() or stdout.strip() or 'nothing was said'
    return HostError(f'exit code {code} from: {" ".join(argv)}\n  {said}')


def new_socket(family, kind, protocol=0, source=None, peer=None, timeout=None):
    """A socket in the caller's network; see Host.socket."""
    made = socket.socket(family, kind, protocol)
    try:
        made.settimeout(timeout)
        if source:
            made.bind((source, 0))
        if peer:
            made.connect(tuple(peer))
    except BaseException:
        made.close()
        raise
    return made


class Host(abc.ABC):
    def __init__(self, role, name):
        self.role = role    #: its name in the scenario, e.g. 'gw'
        self.name = name    #: its name in the system

    @abc.abstractmethod
    def run(self, *argv, input=None, timeout=30.0, check=True):
        """Runs a command to its end; its output as text. Raises HostError if it fails and `check` is set."""

    @abc.abstractmethod
    def popen(self, argv, **how):
        """Starts a long-lived process, which does not outlive this one. The result has `pid` (in the host's namespace),
        `stdout`, `poll`, `wait`, `send_signal` and `kill` of subprocess.Popen; `how` are stdin, stdout, stderr and cwd
        of that class."""

    @abc.abstractmethod
    def open(self, path):
        """Opens a file below the host's /proc (/proc/net is that of its network), for reading as text."""

    @abc.abstractmethod
    def socket(self, family, kind, protocol=0, *, source=None, peer=None, timeout=None):
        """A socket in this host's network, bound to address `source` and connected to `peer` where given. Raises
        OSError."""

    @abc.abstractmethod
    def set_kernel(self, settings):
        """Ensures that the network has these settings, each 'net.name=value' in the syntax of sysctl(8)."""

    def batch(self, lines, *tool):
        """Runs many commands of `ip` (or of `tool`, e.g. 'tc' or 'ip', '-6') in one process: `lines` without its
        name."""
        text = ''.join(f'{line}\n' for line in lines)
        # The addresses of ten thousand users exceed the timeout of one command: some 10 ms each on a busy machine.
        self.run(*(tool or ('ip',)), '-batch', '-', input=text, timeout=30.0 + 0.01 * text.count('\n'))
