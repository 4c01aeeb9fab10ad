# SPDX-License-Identifier: GPL-2.0-or-later
"""What came out of a run, as functions of its files: runs -> measures (by stats) -> verdict (by targets)."""
