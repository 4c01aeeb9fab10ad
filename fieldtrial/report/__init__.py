# SPDX-License-Identifier: GPL-2.0-or-later
"""What the analysis of a run says, as a table in the terminal and as report.html."""


def write_report(directory, out=None):
    """See build.write_report. matplotlib is not loaded before it is needed."""
    from . import build
    return build.write_report(directory, out)
