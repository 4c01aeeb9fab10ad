# SPDX-License-Identifier: GPL-2.0-or-later
"""One module a paper; each has figures(context), which yields frame.Figure."""
