# SPDX-License-Identifier: GPL-2.0-or-later
"""What is offered: the load generator (`python3 -m fieldtrial.load`), and what is sent beside it."""
