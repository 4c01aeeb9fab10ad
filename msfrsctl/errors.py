# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception that is shown as a sentence, and exit codes, the same as those of msfrs-iptables."""

DONE, FOUND, WRONG, REFUSED, FAILED = range(5)      #: FOUND: something is amiss, or what was asked for is not there


class CtlError(Exception):
    """Something the user can understand and mend; str() is the whole message. code: exit code."""

    def __init__(self, message, code=REFUSED):
        super().__init__(message)
        self.code = code
