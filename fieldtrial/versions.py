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


def all_of(squid):
    """{what: version}; what cannot be asked is None."""
    found = {'squid': _ask([str(squid), '-v'], r'Version (\S+)'), 'kernel': platform.release(),
             'python': platform.python_version()}
    return found | {name: _ask(argv, pattern) for name, (argv, pattern) in ASKED.items()}
