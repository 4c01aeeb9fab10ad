# SPDX-License-Identifier: GPL-2.0-or-later
"""Interception on and off, by the script msfrs-iptables."""
from .errors import REFUSED, CtlError


def change(site, command):
    """Runs the script with this command, for the gateway's configuration file. Its last line. Raises CtlError."""
    script = site.iptables_script
    if script is None:
        raise CtlError('msfrs-iptables is not installed: nothing is intercepted, and browsers decide by themselves '
                       'whether they use the proxy', REFUSED)
    done = site.system.run(script, command, '--config', site.interception_conf)
    if done.code:
        raise CtlError(done.err.strip() or f'{script} {command} ended with exit code {done.code}', done.code)
    return (done.out.strip().splitlines() or [''])[-1].partition(': ')[2]
