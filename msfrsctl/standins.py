# SPDX-License-Identifier: GPL-2.0-or-later
"""Reserved addresses that stand in for real ones.

Addresses of one network that a text names, or of one /24 or /64, share a network afterwards. Prefix lengths are not
preserved, as few addresses are available. Each network gets as many as it has members, rounded up to a power of two. A
hash with a random key assigns them within the network, so that their order reveals nothing.
"""
import collections
import hashlib
import hmac
import ipaddress

#: For documentation (RFC 5737, RFC 3849); once IPv4's 768 are used up, the reserved block, routed nowhere (RFC 1112).
POOLS = {version: [ipaddress.ip_network(said) for said in pools] for version, pools in (
    (4, ('192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4')), (6, ('2001:db8::/32',)))}
#: Prefix lengths of the networks that are assumed if a text does not name them.
USUAL = {4: 24, 6: 64}
#: Fewest addresses of a network, so that it does not look like a single host.
LEAST = 4


class StandIns:
    """For addresses and networks that are known beforehand; later ones belong to no network."""

    def __init__(self, known, key):
        """known: texts of addresses and networks, `10.20.1.7`, `10.20.1.0/24`, `10.20.1.1/24`; other texts are ignored.
        key: bytes."""
        self._key = key
        self._made = {}         # an address or network: its stand-in
        self._free = {version: [_Range(int(pool.network_address), pool.num_addresses) for pool in pools]
                      for version, pools in POOLS.items()}
        hosts, networks = set(), set()
        for found in filter(None, map(interface_of, known)):
            networks |= {found.network} if found.network.prefixlen < found.max_prefixlen else set()
            if found.ip != found.network.network_address or found.network.prefixlen == found.max_prefixlen:
                hosts.add(found.ip)
        usual = [ipaddress.ip_network((host, USUAL[host.version]), strict=False) for host in hosts]
        networks |= {network for network, members in collections.Counter(usual).items() if members > 1}
        for version in POOLS:
            self._deal_out([host for host in hosts if host.version == version],
                           [network for network in networks if network.version == version], version)

    def of(self, text):
        """The stand-in of an address or network, with its prefix if it has one; None for other text and for loopback
        and unspecified addresses."""
        found = interface_of(text)
        if found is None:
            return None
        if '/' not in text:
            return str(self._host(found.ip))
        network = self._made.get(found.network) or ipaddress.ip_network(self._host(found.network.network_address))
        if found.ip == found.network.network_address:
            return str(network)
        return f'{self._host(found.ip)}/{network.prefixlen}'

    def _host(self, address):
        if address not in self._made:
            self._made[address] = self._at(address.version, self._take(address.version, 1))
        return self._made[address]

    def _deal_out(self, hosts, networks, version):
        """Nests the networks, and places the hosts in them."""
        inside = {network: [] for network in networks}
        outermost = []
        by_prefix = sorted(networks, key=lambda network: -network.prefixlen)
        lengths = sorted({network.prefixlen for network in networks}, reverse=True)
        for member in (*by_prefix, *hosts):
            own = member.prefixlen if member in inside else member.max_prefixlen + 1
            first = member.network_address if member in inside else member
            around = (ipaddress.ip_network((first, length), strict=False) for length in lengths if length < own)
            inside.get(next((network for network in around if network in inside), None), outermost).append(member)
        sizes = {}
        for network in by_prefix:       # inner ones first; the network's own address is not assigned to a host
            needed = 1 + sum(sizes.get(member, 1) for member in inside[network])
            sizes[network] = max(LEAST, 1 << (needed - 1).bit_length())

        def place(members, take):
            for member in sorted(members, key=lambda member: (-sizes.get(member, 1), self._hash(member))):
                size = sizes.get(member, 1)
                first = take(size)
                if member not in inside:
                    self._made[member] = self._at(version, first)
                    continue
                self._made[member] = ipaddress.ip_network(
                    (self._at(version, first), member.max_prefixlen - size.bit_length() + 1))
                place(inside[member], _Range(first, size).take)
        place(outermost, lambda size: self._take(version, size))

    def _take(self, version, size):
        return next(first for pool in self._free[version] if (first := pool.take(size)) is not None)

    @staticmethod
    def _at(version, number):
        return ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number)

    def _hash(self, member):
        return hmac.new(self._key, str(member).encode(), hashlib.sha256).digest()


def interface_of(text):
    """The ip_interface of a text; None for other text and for loopback and unspecified addresses."""
    try:
        found = ipaddress.ip_interface(text)
    except ValueError:
        return None
    return None if found.ip.is_loopback or found.ip.is_unspecified else found


class _Range:
    """Allocates numbers of a range in ascending order."""

    def __init__(self, first, size):
        self._first = self._next = first
        self._end = first + size

    def take(self, size):
        """The first of `size` numbers, a power of two, aligned to it; or None. A single number is never the range's
        first, which is the network's address."""
        first = -(-(self._next + (size == 1 and self._next == self._first)) // size) * size
        if first + size > self._end:
            return None
        self._next = first + size
        return first
