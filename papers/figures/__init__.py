# SPDX-License-Identifier: GPL-2.0-or-later
"""One module per paper; each has figures(context), which yields frame.Figure."""
