# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns the signals that end the trial into an exception, so that every `with` on the way out tears down its
objects."""
import contextlib
import signal

from .errors import Stopped

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def by_signals():
    """Within the block the first SIGINT, SIGTERM or SIGHUP raises Stopped; later ones are ignored, because the
    tear-down must not be interrupted (SIGKILL still works; `netns.sweep` cleans up after it)."""

    def stop(signum, _frame):
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(signum)

    before = {each: signal.signal(each, stop) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
