# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' figures next to ours. See README.md."""
