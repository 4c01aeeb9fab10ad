# SPDX-License-Identifier: GPL-2.0-or-later
"""The results of a run: one screen in the terminal, report.html and verdicts.txt."""
