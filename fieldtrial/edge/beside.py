# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-edge on a world's gateway, which tells Squid what comes for the users beside it: conf/edge/excess.conf."""
from ..addresses import LAN4, LAN6
from . import daemon

QUEUE = 1


def tell(world, interface, program, socket):
    """Starts it: what is forwarded to the users by `interface` is counted, and told to Squid's `socket`. Its Daemon."""
    edge = daemon.start(world, world.gateway, program, daemon.CONF / 'excess.conf', name='beside',
                        queue=f'number={QUEUE}', inside=f'{LAN4} {LAN6}', excess=f'socket={socket}')
    daemon.rules(world.gateway, 'up', '--link', f'{interface}={QUEUE}', '--own', 'no', '--mark-shift', 'none')
    return edge
