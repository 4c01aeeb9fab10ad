# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges a run of the field trial: load (raw files) -> measures (by stats) -> verdict -> table and report.html."""


def write_report(directory, out=None):
    """See build.write_report. matplotlib is not loaded before it is needed."""
    from . import build
    return build.write_report(directory, out)
