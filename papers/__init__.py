# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' figures beside ours. See README.md."""
