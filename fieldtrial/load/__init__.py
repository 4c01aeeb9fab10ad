# SPDX-License-Identifier: GPL-2.0-or-later
"""The offered load: the load generator (`python3 -m fieldtrial.load`) and background traffic."""
