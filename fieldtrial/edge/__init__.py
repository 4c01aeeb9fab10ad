# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets through msfrs-edge: a link with it at the near end, flows over the link, and what is seen beyond it."""
