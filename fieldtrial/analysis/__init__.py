# SPDX-License-Identifier: GPL-2.0-or-later
"""The results of a run, computed from its files: runs -> measures (by stats) -> verdict (by targets)."""
