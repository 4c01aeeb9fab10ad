# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception that is shown to the user as a sentence, without a traceback."""


class TrialError(Exception):
    """An error that the user can understand and fix; str() is the whole message."""


class Stopped(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived: tear everything down and exit. Not an Exception, so that no handler for
    ordinary errors swallows it."""

    def __init__(self, signum):
        super().__init__(signum)
        self.signum = signum
