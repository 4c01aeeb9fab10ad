# SPDX-License-Identifier: GPL-2.0-or-later
"""Which versions took part, for the report."""
import platform
import re
import subprocess

#: What is asked, and where in the answer the version stands.
ASKED = {'nginx': (['nginx', '-v'], r'nginx/(\S+)'), 'dnsmasq': (['dnsmasq', '--version'], r'version (\S+)'),
         'iproute2': (['ip', '-V'], r'iproute2-(\S+?)[,\s]'), 'iptables': (['iptables', '-V'], r'v(\S+ \(\w+\))')}


def _ask(argv, pattern):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(pattern, done.stdout + done.stderr)
    return match and match[1]


def of_world(world, squid):
    """The same of the programs that a world's hosts run."""

    def ask(host, argv, pattern):
        match = re.search(pattern, host.run('sh', '-c', 'exec "$@" 2>&1', 'sh', *argv, check=False))
        return match and match[1]

    asked = {'squid': ([squid, '-v'], r'Version (\S+)'), **ASKED}
    return {'kernel': platform.release(), 'python': platform.python_version(),
            **{name: ask(world.farm if name == 'nginx' else world.gateway, *how) for name, how in asked.items()}}


def all_of(squid):
    """{what: version}; what cannot be asked is None."""
    found = {'squid': _ask([str(squid), '-v'], r'Version (\S+)'), 'kernel': platform.release(),
             'python': platform.python_version()}
    return found | {name: _ask(argv, pattern) for name, (argv, pattern) in ASKED.items()}
