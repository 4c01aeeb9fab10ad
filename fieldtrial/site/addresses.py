# SPDX-License-Identifier: GPL-2.0-or-later
"""Assignment of addresses. Pure functions; all addresses are from the benchmarking ranges 198.18.0.0/15 (RFC 2544) and
2001:2::/48 (RFC 5180), which no network routes.

    users     198.18.0.0/16, 2001:2::/49        class c: 198.18.(16 c).0/20 and 2001:2:0:c000::/52
    servers   198.19.0.0/17, 2001:2:0:8000::/50         of the web .1.0 and .2.0, none .3.0, others .4.0
    links     198.19.255.0/24, 2001:2:0:ffff::/64
    store     198.19.253.0/24                   of several gateways
"""
from dataclasses import dataclass, replace

LAN4, LAN6 = '198.18.0.0/16', '2001:2::/49'
GATEWAY_IN4, GATEWAY_IN6 = '198.18.0.1', '2001:2::1'
NAMES4, NAMES6 = '198.18.0.2', '2001:2::2'   #: of the users' name server, if it has its own host
GATEWAY_NAMES4, GATEWAY_NAMES6 = '198.18.0.3', '2001:2::3'   #: of the gateway's, on the same host
SINK4, SINK6 = '198.18.0.9', '2001:2::9'   #: behind the gateway, of no class
GATEWAY_OUT4, GATEWAY_OUT6 = '198.19.255.2', '2001:2:0:ffff::2'    #: of the first gateway, see outside()
ISP4, ISP6 = '198.19.255.1', '2001:2:0:ffff::1'
SERVERS4, SERVERS6 = '198.19.0.0/17', '2001:2:0:8000::/50'
STORES4, STORE4 = '198.19.253.0/24', '198.19.253.1'     #: where several gateways exchange messages
#: Servers also answer plain HTTP here; no gateway intercepts it.
DIRECT_PORT = 8080
MOST_CLASSES = 7
MOST_USERS = 4000
MOST_GATEWAYS = 7    #: capacity of msfrs-share
#: Unix users from this number on run the programs of the trial's users: Debian assigns none of 65000 to 65533.
FIRST_UID, LAST_UID = 65000, 65533
#: RTTs up to here are "domestic", above "overseas".
DOMESTIC_MS = 150.0


@dataclass(frozen=True)
class Addressed:
    """A holder of addresses; None: none of that family."""

    name: str
    v4: str | None = None
    v6: str | None = None

    @property
    def addresses(self):
        return [each for each in (self.v4, self.v6) if each]


@dataclass(frozen=True, kw_only=True)
class User(Addressed):
    cls: str


@dataclass(frozen=True, kw_only=True)
class Server(Addressed):
    group: str
    rtt_ms: float


#: The addresses of no host: the ISP drops packets to them, and says nothing.
SILENT = Server('silent.test', '198.19.3.1', '2001:2:0:8003::1', group='none', rtt_ms=0.0)
#: The addresses of the ISP, where nothing listens: connections are refused.
REFUSING = Server('refusing.test', ISP4, ISP6, group='none', rtt_ms=0.0)
PRIVACY_ADDRESSES = 4
#: MTU of the narrowest hop on some ways to servers, bytes, as by a tunnel.
NARROW_MTU = 1400


def privacy(user):
    """The IPv6 privacy addresses of a user (RFC 8981), all in its /64."""
    return [f'{user.v6.removesuffix("::2")}::7{number}:2' for number in range(PRIVACY_ADDRESSES)]


def others(count, rtt_ms):
    """Servers besides those of the web."""
    return [Server(f'o{index:02d}.test', f'198.19.4.{index}', f'2001:2:0:8004::{index:x}', group='domestic',
                   rtt_ms=rtt_ms) for index in range(1, count + 1)]


def elsewhere(servers):
    """The servers as another resolver knows them: under their names the addresses of others, as in pools that rotate.
    Each has those of the next; a single one has REFUSING's."""
    others = [*servers[1:], servers[0]] if len(servers) > 1 else [REFUSING]
    return [replace(server, v4=other.v4, v6=other.v6) for server, other in zip(servers, others)]


def outside(number):
    """IPv4 and IPv6 address of a gateway on the access link, by its number, from 0."""
    return f'198.19.255.{2 + number}', f'2001:2:0:ffff::{2 + number}'


def at_store(number):
    """IPv4 address of that gateway on its link to the store."""
    return f'198.19.253.{2 + number}'


def class_prefixes(number):
    """IPv4 and IPv6 prefix of the class with this number, 1 to MOST_CLASSES."""
    return f'198.18.{16 * number}.0/20', f'2001:2:0:{number}000::/52'


def users(classes, counts):
    """All users: `counts[i]` of `classes[i]`, each with a /64 of its own in IPv6."""
    if len(classes) > MOST_CLASSES:
        raise ValueError(f'{len(classes)} classes: at most {MOST_CLASSES} have addresses')
    made = []
    for number, (cls, count) in enumerate(zip(classes, counts, strict=True), start=1):
        if not 0 <= count <= MOST_USERS:
            raise ValueError(f'{count} users in class {cls}: allowed are 0 to {MOST_USERS}')
        for index in range(1, count + 1):
            made.append(User(f'{cls}-{index}', f'198.18.{16 * number + index // 256}.{index % 256}',
                             f'2001:2:0:{number}{index:03x}::2', cls=cls))
    return made


def uid(number):
    """The Unix user whose connections have the address of a user, by its number among all users, from 0."""
    if FIRST_UID + number > LAST_UID:
        raise ValueError(f'user {number}: only {LAST_UID - FIRST_UID + 1} users can have a Unix user')
    return FIRST_UID + number


def servers(rtts_ms):
    """One server for each round-trip time."""
    if not 1 <= len(rtts_ms) <= 200:
        raise ValueError(f'{len(rtts_ms)} servers: allowed are 1 to 200')
    made = []
    for index, rtt in enumerate(rtts_ms, start=1):
        near = rtt <= DOMESTIC_MS
        made.append(Server(f's{index:02d}.test', f'198.19.{1 if near else 2}.{index}',
                           f'2001:2:0:800{1 if near else 2}::{index:x}', group='domestic' if near else 'overseas',
                           rtt_ms=float(rtt)))
    return made
