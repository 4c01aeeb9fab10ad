# SPDX-License-Identifier: GPL-2.0-or-later
"""The field trial: real Squid, nginx, dnsmasq and TCP on a small internet made of network namespaces.

`site` has the hosts, links and daemons, `load` the traffic, `analysis` the figures, `report` their presentation;
test/fieldtrial/test_packages.py defines which may import which. The modules here combine them: `cell` runs one arm
under one workload, `runner` runs many cells. See README.md in this directory.
"""
