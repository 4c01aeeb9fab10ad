# SPDX-License-Identifier: GPL-2.0-or-later
"""Cables with several ends, such as those on the users' side of a gateway, and the addresses there."""
from ..base.errors import TrialError
from . import addresses
from .host import HostError
from .netns import whole_packets

LAN, HOME = 'lan0', 'home0'
#: The kernel's neighbour tables hold about a thousand entries for all namespaces together (gc_thresh3). Users beyond
#: this number are behind the first of them, as behind a router.
MOST_NEIGHBOURS = 500


def connect(fabric, centre, members, here=LAN, there=HOME):
    """Connects interface `here` of a host to `there` of each of these hosts. With more than one of them `here` is a
    switch, as in an office network; all other code sees an ordinary interface.

    If the kernel passes bridged frames to iptables (bridge-nf-call-iptables), REDIRECT still works: frames that enter
    at a port appear on LAN. TPROXY would not: the bridge discards the socket that it has assigned.
    """
    if len(members) == 1:
        fabric.wire(centre, here, members[0], there)
        return
    # No snooping: neighbour discovery uses multicast, and no host here sends membership queries.
    try:
        centre.run('ip', 'link', 'add', here, 'type', 'bridge', 'mcast_snooping', '0')
    except HostError as error:
        raise TrialError(f'{centre.role}: no switch between {len(members)} hosts; it takes the kernel module bridge:\n'
                         f'  {error}') from None
    for number, member in enumerate(members, start=1):
        port = f'{here}p{number}'
        fabric.wire(centre, port, member, there)
        centre.run('ip', 'link', 'set', port, 'master', here)
    whole_packets(centre, here)
    centre.run('ip', 'link', 'set', here, 'up')


def _towards(members):
    """The gateway's routes to its users. Raises TrialError."""
    four, six = (f'route add {{}} dev {LAN} scope link src {addresses.GATEWAY_IN4} congctl cubic',
                 f'route add {{}} dev {LAN} congctl cubic')
    (own, *others) = members.values()
    if len(own) + sum(map(len, others)) <= MOST_NEIGHBOURS:
        return [four.format(addresses.LAN4), six.format(addresses.LAN6)]
    if others:
        raise TrialError(f'more than {MOST_NEIGHBOURS} users behind a gateway must be on one host, and are on '
                         f'{len(members)}')
    v4, v6 = own[0]
    return [four.format(v4), six.format(v6), f'route add {addresses.LAN4} via {v4} congctl cubic',
            f'route add {addresses.LAN6} via {v6} congctl cubic']


def follow_uid(host, sources):
    """Gives connections from a host that bind no address that of their process's Unix user. sources: {uid: (IPv4,
    IPv6)}."""
    for family, gateway, place in (('-4', addresses.GATEWAY_IN4, 0), ('-6', addresses.GATEWAY_IN6, 1)):
        host.batch([line for uid, source in sources.items() for line in (
            f'route add default via {gateway} dev {HOME} src {source[place]} congctl cubic table {uid}',
            f'rule add uidrange {uid}-{uid} lookup {uid}')], 'ip', family)


def address(gateway, members):
    """Sets up addresses and routes. members: {host: [(IPv4, IPv6)]}."""
    gateway.batch([
        f'addr add {addresses.GATEWAY_IN4}/16 dev {LAN} noprefixroute',
        f'addr add {addresses.GATEWAY_IN6}/49 dev {LAN} nodad noprefixroute', *_towards(members)])
    for host, own in members.items():
        lines = []
        for v4, v6 in own:
            lines += [f'addr add {v4}/32 dev {HOME}', f'addr add {v6}/128 dev {HOME} nodad']
        host.batch(lines + [f'route add {addresses.LAN4} dev {HOME}', f'route add {addresses.LAN6} dev {HOME}',
                            f'route add default via {addresses.GATEWAY_IN4} congctl cubic',
                            f'route add default via {addresses.GATEWAY_IN6} congctl cubic'])
