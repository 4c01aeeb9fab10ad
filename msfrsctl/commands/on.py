# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl on: intercepts again, after `msfrsctl off`, as the configuration of msfrs-iptables says. Connections that
were made meanwhile stay with their servers until they end."""
from .. import interception

HELP = 'send new connections through Squid again, after off'


def gather(_options, site):
    # Raises CtlError if Squid does not answer: intercepted connections would be refused.
    scheduling = any(report['scheduling'] for report in site.reports)
    return {'interception': True, 'scheduling': scheduling, 'how': interception.change(site, 'up')}


def show(data):
    off = '' if data['scheduling'] else '\nSquid does not schedule them: squid.conf says msfrs off.'
    return f'New connections go through Squid again: {data["how"]}{off}'
