# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception that is shown as a sentence, and the exit codes, which are those of msfrs-iptables."""

DONE, FOUND, WRONG, REFUSED, FAILED = range(5)      #: FOUND: a check found a problem, or what was asked for is absent


class CtlError(Exception):
    """A problem that the user can understand and fix; str() is the whole message. code: exit code."""

    def __init__(self, message, code=REFUSED):
        super().__init__(message)
        self.code = code
