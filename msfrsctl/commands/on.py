# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl on: intercepts again, after `msfrsctl off` or when rules are gone, as the configuration of msfrs-iptables
says; puts back the rules of msfrs-edge, too. Connections that were made meanwhile stay with their servers until they
end. Refused, and nothing is changed, if the firewall would keep users from Squid."""
from .. import faults, firewall, interception
from ..errors import CtlError

HELP = 'send new connections through Squid again, after off'


def gather(_options, site):
    with site.system.lock(site.conf.directory):      # against msfrsctl watch
        return _on(site)


def _on(site):
    # Raises CtlError if Squid does not answer: intercepted connections would be refused.
    scheduling = any(report['scheduling'] for report in site.reports)
    notes = need_path(site)
    before = site.system.read(site.off_path)
    site.system.remove(site.off_path)
    try:
        how = interception.change(site, 'up')
        interception.start_units(site)
    except CtlError:
        if before is not None:
            site.system.write(site.off_path, before)
        raise
    faults.publish(site, *(fault for fault in faults.published(site) or ()
                           if fault.code not in (faults.OFF, faults.UNREACHABLE, faults.EDGE)))
    return {'interception': True, 'scheduling': scheduling, 'how': how, 'notes': notes}


def need_path(site):
    """A CtlError if users would not reach Squid; else notes for the user."""
    if site.iptables_script is None:
        return []
    try:
        blocked = firewall.look(site, planned=True)
    except CtlError as problem:
        return [f'whether the firewall lets users reach Squid is not known: {problem}']
    if blocked:
        raise CtlError('; '.join(f'{each}. To do: {each.do}' for each in blocked) + '. Nothing was changed')
    return []


def show(data):
    off = '' if data['scheduling'] else '\nSquid does not schedule them: squid.conf says msfrs off.'
    notes = ''.join(f'\nnote: {note}' for note in data['notes'])
    return f'New connections go through Squid again: {data["how"]}{off}{notes}'
