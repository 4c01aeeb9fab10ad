# SPDX-License-Identifier: GPL-2.0-or-later
"""The ISP's bottleneck (token bucket with a drop-tail queue), and the HTB tree of the arm that shapes behind Squid."""
from ..base.errors import TrialError
from .host import HostError

#: A full Ethernet frame without its checksum: what a qdisc counts for 1500 bytes of IP.
FRAME = 1514
#: Bytes of a frame before the IP header.
ETHERNET = 14


def bdp_bytes(rate_bps, rtt_ms):
    """Bandwidth-delay product in bytes."""
    return rate_bps * rtt_ms / 8000


def bottleneck(host, interface, rate_bps, buffer_bytes, verb='replace'):
    """Rate-limits what leaves `interface` to `rate_bps`; at most `buffer_bytes` wait, what exceeds that is dropped.

    The bucket holds two frames: enough to make up for a late timer, too little for a burst to matter. verb: 'change'
    keeps what waits and the counters.
    """
    try:
        host.run('tc', 'qdisc', verb, 'dev', interface, 'root', 'tbf', 'rate', f'{rate_bps:.0f}bit',
                 'burst', str(2 * FRAME), 'limit', f'{max(buffer_bytes, 2 * FRAME):.0f}')
    except HostError as error:
        raise TrialError(f'no token bucket for the bottleneck; it takes the kernel module sch_tbf:\n{error}') from None


def htb(host, interface, rate_bps, users, weights):
    """A class for each class of users, in proportion to weight times users, and below it a leaf for each user, so that
    users share by weight, what is borrowed too; everybody may borrow up to `rate_bps`. Other traffic is not shaped.

    Raises TrialError where the kernel has no HTB or no u32.
    """
    total = sum(weights[user.cls] for user in users)
    lines = [f'qdisc replace dev {interface} root handle 1: htb default 0 r2q 1',
             f'class add dev {interface} parent 1: classid 1:1 htb rate {rate_bps:.0f}bit ceil {rate_bps:.0f}bit']
    numbers = {name: number for number, name in enumerate(weights, start=2)}
    for name, number in numbers.items():
        share = rate_bps * sum(weights[name] for user in users if user.cls == name) / total
        lines.append(f'class add dev {interface} parent 1:1 classid 1:{number:x} htb '
                     f'rate {max(share, 8):.0f}bit ceil {rate_bps:.0f}bit quantum {FRAME * weights[name]:.0f}')
    for number, user in enumerate(users, start=256):
        lines.append(f'class add dev {interface} parent 1:{numbers[user.cls]:x} classid 1:{number:x} htb '
                     f'rate {rate_bps * weights[user.cls] / total:.0f}bit ceil {rate_bps:.0f}bit '
                     f'quantum {FRAME * weights[user.cls]:.0f}')
        for protocol, match, address in (('ip', 'ip', f'{user.v4}/32'), ('ipv6', 'ip6', f'{user.v6}/128')):
            lines.append(f'filter add dev {interface} parent 1: protocol {protocol} prio {1 if match == "ip" else 2} '
                         f'u32 match {match} dst {address} flowid 1:{number:x}')
    try:
        host.batch(lines, 'tc')
    except HostError as error:
        raise TrialError('cannot set HTB up; it takes the kernel modules sch_htb and cls_u32 (leave the arm out with '
                         f'--arms):\n{error}') from None
