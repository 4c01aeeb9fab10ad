# SPDX-License-Identifier: GPL-2.0-or-later
"""Base of scenarios: built on entry, torn down on exit in any case."""
import contextlib

from .processes import Daemon


class Scenario:
    """`_build` of a derived class registers its objects on `_stack` and sets `directory`, where daemons keep their
    files."""

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
        """Calls `what` when the scenario ends, before earlier registrations: for state on hosts that outlive it."""
        self._stack.callback(what, *arguments, **named)

    def start(self, host, argv, log, **how):
        """Starts a daemon that is stopped when the scenario ends; `log` is a file name in its directory."""
        return self._stack.enter_context(Daemon(host, argv, self.directory / log, **how))
