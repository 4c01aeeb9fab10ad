# SPDX-License-Identifier: GPL-2.0-or-later
"""What the workloads share: sizes, offers, the HTTP clients, the records, closed and open arrivals."""
