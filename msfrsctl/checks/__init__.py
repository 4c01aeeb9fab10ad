# SPDX-License-Identifier: GPL-2.0-or-later
"""The checks of `msfrsctl doctor`. A check is a function of a Site that yields findings; a CtlError that it raises is
a finding as well."""
from dataclasses import dataclass

OK, NOTE, WARNING, ERROR = LEVELS = ('ok', 'note', 'warning', 'error')


@dataclass(frozen=True)
class Finding:
    """level: one of LEVELS; what: a sentence; do: what to do about it, empty if nothing."""
    level: str
    what: str
    do: str = ''
