# SPDX-License-Identifier: GPL-2.0-or-later
"""The user that msfrs_user makes of an address (the same as Classify.cc of squid-patches)."""
import ipaddress

#: Bits of an IPv6 address that identify a user, unless msfrs_user sets src6/NN.
NETWORK_BITS = 64


def user_of(name, conf):
    """msfrs's name of the user that an IPv6 address belongs to: the address, or its network. Other names are returned
    unchanged. conf: a SquidConf."""
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    bits = network_bits(conf)
    return str(address if address.version == 4 or bits == 128 else ipaddress.ip_network((address, bits), strict=False))


def network_bits(conf):
    rule = conf.value('msfrs_user', 'src')
    if rule == 'mac':
        return 128
    return int(rule[5:]) if rule.startswith('src6/') and rule[5:].isdecimal() else NETWORK_BITS
