# SPDX-License-Identifier: GPL-2.0-or-later
"""Code shared by the workloads: sizes, offers, the HTTP clients, the records, closed and open arrivals."""
