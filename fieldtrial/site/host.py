# SPDX-License-Identifier: GPL-2.0-or-later
"""What a scenario may do on a host, whatever the host is made of: `netns` makes hosts of network namespaces,
`containers` of containers."""
import abc
import socket

from ..base.errors import TrialError


class HostError(TrialError):
    """A command on a host failed; the message has the command and what it said."""


def failed(argv, code, stdout, stderr):
    """The HostError of a command that ended with this exit code."""
    said = stderr.strip() or stdout.strip() or 'nothing was said'
    return HostError(f'exit code {code} from: {" ".join(argv)}\n  {said}')


def new_socket(family, kind, protocol=0, source=None, peer=None, timeout=None):
    """A socket of the network that the caller is in; see Host.socket."""
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
    """One machine of the scenario."""

    netns_path = None   #: the file that stands for its network, if programs can join it by themselves

    def __init__(self, role, name):
        self.role = role    #: what the scenario calls it, e.g. 'gw'
        self.name = name    #: what the system calls it

    @abc.abstractmethod
    def run(self, *argv, input=None, timeout=30.0, check=True):
        """Runs a command to its end; its output as text. Raises HostError if it fails and `check` is set."""

    @abc.abstractmethod
    def popen(self, argv, **how):
        """Starts a long-lived process, which does not outlive this one. What is returned has `pid` (as the host sees
        it), `stdout`, `poll`, `wait`, `send_signal` and `kill` of subprocess.Popen; `how` are that one's stdin,
        stdout, stderr and cwd."""

    @abc.abstractmethod
    def open(self, path):
        """A file below /proc as the host has it (/proc/net is that of its network), for reading as text."""

    @abc.abstractmethod
    def socket(self, family, kind, protocol=0, *, source=None, peer=None, timeout=None):
        """A socket of this host's network, bound to address `source` and connected to `peer` where given. Raises
        OSError."""

    @abc.abstractmethod
    def set_kernel(self, settings):
        """Sees to it that the network has these settings, 'net.name=value' each, as sysctl(8) takes them."""

    def batch(self, lines, *tool):
        """Many commands of `ip` (or of `tool`, e.g. 'tc' or 'ip', '-6') in one process: `lines` without its name."""
        text = ''.join(f'{line}\n' for line in lines)
        # The addresses of ten thousand users take longer than one command may: some 10 ms each on a busy machine.
        self.run(*(tool or ('ip',)), '-batch', '-', input=text, timeout=30.0 + 0.01 * text.count('\n'))
