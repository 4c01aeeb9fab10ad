# SPDX-License-Identifier: GPL-2.0-or-later
"""The results of a run: one screen in the terminal, report.html and verdicts.txt."""


def write_report(directory, out=None, pictures_in=None):
    """See build.write_report. matplotlib is loaded only when it is needed."""
    from . import build
    return build.write_report(directory, out, pictures_in)
