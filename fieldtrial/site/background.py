# SPDX-License-Identifier: GPL-2.0-or-later
"""Background work of a cell, in a thread that lives as long as a block."""
import threading
import time

from ..base.errors import TrialError


class Background:
    """A derived class implements `_work`, which waits with `_until`; its times count from `t0` on CLOCK_MONOTONIC."""

    def __init__(self, t0):
        self._t0 = t0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__, daemon=True)
        self.failure = None     #: the error that ended it early

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()     # its effects must be undone before the caller continues

    def check(self):
        """Raises TrialError if it has ended early."""
        if self.failure:
            raise TrialError(f'{type(self).__name__}: {self.failure}')

    def _until(self, when):
        """Waits until `when`; whether the block was left before that."""
        return self._over.wait(max(0.0, self._t0 + when - time.monotonic()))

    def _work(self):
        raise NotImplementedError

    def _run(self):
        try:
            self._work()
        except (TrialError, OSError, ValueError) as error:
            self.failure = error
