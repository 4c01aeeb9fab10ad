# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of msfrs-edge with packets, on the hosts of the field trial: `edge_link` is the scenario, `iperf` makes flows,
`wire` captures arriving packets, `faba` repeats the simulations of the FABA paper. See README.md."""
