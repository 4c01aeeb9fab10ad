# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl off: takes the interception away at once. New connections go straight to their servers. Connections that
Squid has are not cut, and Squid keeps running. `msfrsctl on` undoes it, as does the next start of the gateway."""
from .. import interception

HELP = 'send new connections past Squid at once, and cut none'


def gather(_options, site):
    interception.change(site, 'drain')
    return {'interception': False}


def show(_data):
    return ('New connections go straight to their servers. Those that Squid has continue, and are scheduled until they '
            'end.\nUndo with: msfrsctl on')
