# SPDX-License-Identifier: GPL-2.0-or-later
"""The field trial: real Squid, nginx, dnsmasq and TCP on a small internet made of network namespaces.

`world` is the scenario (who is connected to whom, with which addresses, rates and delays), `netns` is one way of making
the hosts it needs, `arms` are the ways of running the gateway that are compared, `cell` runs one arm under one
workload, `runner` runs many cells. README.md in this directory has the rest.
"""
