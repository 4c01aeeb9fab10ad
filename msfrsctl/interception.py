# SPDX-License-Identifier: GPL-2.0-or-later
"""Interception on and off, by the script msfrs-iptables."""
from .errors import FAILED, REFUSED, CtlError
from .journal import PATIENCE
from .start import EDGE, EDGE_RULES, SQUIDS, unit_of

UNIT = 'msfrs-iptables'


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


def stop_unit(site):
    """Ends the unit of interception, whose rules are gone, so that it is not active without them. It would add them
    again when the firewall's unit is restarted."""
    if unit_of(site, UNIT) and site.system.run('systemctl', 'is-active', '--quiet', UNIT):
        site.system.run('systemctl', 'stop', '--no-block', UNIT)


def start_units(site):
    """Starts the units of the rules again, and puts back those of msfrs-edge where it runs. Raises CtlError."""
    for unit, needs in ((UNIT, SQUIDS), (EDGE_RULES, (EDGE,))):
        runs = unit_of(site, unit) and any(site.system.run('systemctl', 'is-active', '--quiet', each) for each in needs)
        if runs and not (done := site.system.run('systemctl', 'reload-or-restart', unit, timeout=PATIENCE)):
            raise CtlError(done.err.strip() or f'systemctl reload-or-restart {unit}: exit code {done.code}', FAILED)
    if not unit_of(site, EDGE_RULES) and site.system.exists(site.edge_iptables_conf) and \
            site.system.run(site.edge, '--ask', 'status', site.edge_conf):
        done = site.system.run(site.edge_script, 'up', '--config', site.edge_iptables_conf)
        if not done:
            raise CtlError(done.err.strip() or f'{site.edge_script} up: exit code {done.code}', done.code)
