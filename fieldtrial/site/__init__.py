# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts and links, namespaces or containers, and what runs on them."""
