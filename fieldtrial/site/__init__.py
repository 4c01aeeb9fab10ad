# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts and links, namespaces or containers, and the programs that run on them."""
