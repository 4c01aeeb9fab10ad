# SPDX-License-Identifier: GPL-2.0-or-later
"""The results of a run, as a table in the terminal and as report.html."""


def write_report(directory, out=None):
    """See build.write_report. matplotlib is loaded only when it is needed."""
    from . import build
    return build.write_report(directory, out)
