# SPDX-License-Identifier: GPL-2.0-or-later
"""The field trial: real Squid, nginx, dnsmasq and TCP on a small internet made of network namespaces.

`site` has hosts, links and what runs on them, `load` what is offered, `analysis` what came out, `report` how that is
shown; test/fieldtrial/test_packages.py says which may import which. The modules here put them together: `cell` runs one
arm under one workload, `runner` many cells. README.md in this directory has the rest.
"""
