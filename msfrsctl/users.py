# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is a user: what msfrs_user makes of an address (Classify.cc of squid-patches says the same)."""
import ipaddress

#: Bits of an IPv6 address that make a user, unless msfrs_user says src6/NN.
NETWORK_BITS = 64


def user_of(name, conf):
    """What msfrs calls the user that an IPv6 address belongs to: the address, or its network. Other names are as they
    are. conf: a SquidConf."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    bits = network_bits(conf)
    return str(address if address.version == 4 or bits == 128 else ipaddress.ip_network((address, bits), strict=False))


def network_bits(conf):
    """How many bits of an IPv6 address make a user."""
    rule = conf.value('msfrs_user', 'src')
    if rule == 'mac':
        return 128
    return int(rule[5:]) if rule.startswith('src6/') and rule[5:].isdecimal() else NETWORK_BITS
