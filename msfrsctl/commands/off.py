# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl off: takes the interception away at once. New connections go straight to their servers. Connections that
Squid has are not cut, and Squid keeps running. It lasts until `msfrsctl on` or `msfrsctl setup`: a restart of Squid, of
the machine or of the packages does not end it."""
from .. import faults, interception

HELP = 'send new connections past Squid at once, until on; cut none'


def gather(_options, site):
    interception.change(site, 'drain')
    if not site.system.exists(site.off_path):
        site.system.write(site.off_path, f'{site.system.now():.0f}\n')
    interception.stop_unit(site)
    faults.publish_again(site)
    return {'interception': False}


def show(_data):
    return ('New connections go straight to their servers. Those that Squid has continue, and are scheduled until they '
            'end.\nThis lasts until: msfrsctl on')
