# SPDX-License-Identifier: GPL-2.0-or-later
"""What every scenario is: built by entering it, taken down by leaving it, whatever happened in between."""
import contextlib

from .processes import Daemon


class Scenario:
    """`_build` of a derived class puts what it makes on `_stack`, and sets `directory`, where daemons keep files."""

    def __init__(self):
        self._stack = contextlib.ExitStack()
        self.directory = None  #: pathlib.Path, once entered

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _build(self):
        raise NotImplementedError

    def when_left(self, what, *arguments, **named):
        """Calls `what` when the scenario goes, before what was there already: for what hosts keep that outlive it."""
        self._stack.callback(what, *arguments, **named)

    def start(self, host, argv, log, **how):
        """A daemon that is stopped when the scenario goes; `log` is a file name in its directory."""
        return self._stack.enter_context(Daemon(host, argv, self.directory / log, **how))
