# SPDX-License-Identifier: GPL-2.0-or-later
"""What the workloads share: the spec they are given, sizes, the HTTP client, the records, closed and open arrivals."""
