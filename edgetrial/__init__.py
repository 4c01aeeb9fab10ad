# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets through msfrs-edge, on the hosts of the field trial: `edge_link` is the scenario, `iperf` makes flows, `wire`
sees what arrives, `faba` runs what the FABA paper simulated. README.md has the rest."""
