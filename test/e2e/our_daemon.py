# SPDX-License-Identifier: GPL-2.0-or-later
"""One of our daemons on a host of a test."""
import selectors
import signal
import subprocess

from background import PATIENCE


def until_ready(process, why):
    """Waits for its `ready`; without it the daemon is killed, and why() gives the reason."""
    with selectors.DefaultSelector() as waiting:     # select() accepts no descriptor above 1023
        waiting.register(process.stdout, selectors.EVENT_READ)
        readable = waiting.select(PATIENCE)
    if (process.stdout.readline() if readable else '') != 'ready\n':
        process.kill()
        raise AssertionError(f'{process.args} did not get ready: {why()}')


class OurDaemon:
    """A process of the derived class's `command`; a context manager."""

    def __init__(self, host):
        self.host = host
        self.process = None

    def command(self):
        raise NotImplementedError

    def start(self):
        """Returns itself when it is ready."""
        self.process = self.host.popen(self.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until_ready(self.process, lambda: self.process.communicate()[1])
        return self

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Ends it regularly; returns its standard error."""
        self.signal(signal.SIGTERM)
        process, said = self.process, self._gone()
        assert process.returncode == 0, said
        return said

    def kill(self):
        """Returns its standard error."""
        self.signal(signal.SIGKILL)
        return self._gone()

    def _gone(self):
        said = self.process.communicate(timeout=PATIENCE)[1]
        self.process = None
        return said

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if self.process is None:
            return
        if kind:
            print(self.kill())
        else:
            self.end()
