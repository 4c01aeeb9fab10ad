# SPDX-License-Identifier: GPL-2.0-or-later
"""Versions of the programs in a run, for the report."""
import platform
import re

#: Commands, and the patterns of the version in their output.
ASKED = {'nginx': (['nginx', '-v'], r'nginx/(\S+)'), 'dnsmasq': (['dnsmasq', '--version'], r'version (\S+)'),
         'iproute2': (['ip', '-V'], r'iproute2-(\S+?)[,\s]'), 'iptables': (['iptables', '-V'], r'v(\S+ \(\w+\))')}


def of_world(world, squid):
    """{program: version} of the programs that a world's hosts run; None if unknown."""
    found = {'kernel': platform.release(), 'python': platform.python_version()}
    for name, (argv, pattern) in {'squid': ([squid, '-v'], r'Version (\S+)'), **ASKED}.items():
        host = world.farm if name == 'nginx' else world.gateway
        match = re.search(pattern, host.run('sh', '-c', 'exec "$@" 2>&1', 'sh', *argv, check=False))
        found[name] = match and match[1]
    return found
