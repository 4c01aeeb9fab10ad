# SPDX-License-Identifier: GPL-2.0-or-later
"""The ISP's bottleneck (token bucket with a drop-tail queue), and the shapers of arms that shape behind Squid."""
from ..base.errors import TrialError
from .host import HostError

#: A full Ethernet frame without its checksum: the size in a qdisc of 1500 bytes of IP.
FRAME = 1514
#: Depth of a token bucket, bytes: two frames compensate for a late timer and are too few for a burst to matter.
BURST = 2 * FRAME
#: If two frames take less than this, s, the bucket holds the bytes of this time instead: timers are not more precise.
LATE_S = 240e-6
#: Bytes of a frame before the IP header.
ETHERNET = 14
#: Minor number of the first user's leaf in the HTB tree; classes have lower ones.
FIRST_LEAF = 256


def bdp_bytes(rate_bps, rtt_ms):
    return rate_bps * rtt_ms / 8000


def burst_bytes(rate_bps):
    """Depth of a link's token bucket, bytes."""
    return max(BURST, round(rate_bps / 8 * LATE_S))


def bottleneck(host, interface, rate_bps, buffer_bytes):
    """Limits the output of `interface` to `rate_bps`; queues at most `buffer_bytes` and drops the excess."""
    burst = burst_bytes(rate_bps)
    try:
        host.run('tc', 'qdisc', 'replace', 'dev', interface, 'root', 'tbf', 'rate', f'{rate_bps:.0f}bit',
                 'burst', str(burst), 'limit', f'{max(buffer_bytes, burst):.0f}')
    except HostError as error:
        raise TrialError(f'no token bucket for the bottleneck; it takes the kernel module sch_tbf:\n{error}') from None


def htb(host, interface, rate_bps, users, weights):
    """A class for each class of users, in proportion to weight times users, and below it a leaf for each user, so that
    users share by weight, including borrowed bandwidth; each may borrow up to `rate_bps`. Other traffic is not shaped.

    Raises TrialError if the kernel has no HTB or no u32.
    """
    total = sum(weights[user.cls] for user in users)
    lines = [f'qdisc replace dev {interface} root handle 1: htb default 0 r2q 1',
             f'class add dev {interface} parent 1: classid 1:1 htb rate {rate_bps:.0f}bit ceil {rate_bps:.0f}bit']
    numbers = {name: number for number, name in enumerate(weights, start=2)}
    for name, number in numbers.items():
        share = rate_bps * sum(weights[name] for user in users if user.cls == name) / total
        lines.append(f'class add dev {interface} parent 1:1 classid 1:{number:x} htb '
                     f'rate {max(share, 8):.0f}bit ceil {rate_bps:.0f}bit quantum {FRAME * weights[name]:.0f}')
    for number, user in enumerate(users, start=FIRST_LEAF):
        lines.append(f'class add dev {interface} parent 1:{numbers[user.cls]:x} classid 1:{number:x} htb '
                     f'rate {rate_bps * weights[user.cls] / total:.0f}bit ceil {rate_bps:.0f}bit '
                     f'quantum {FRAME * weights[user.cls]:.0f}')
        for protocol, match, address in (('ip', 'ip', f'{user.v4}/32'), ('ipv6', 'ip6', f'{user.v6}/128')):
            lines.append(f'filter add dev {interface} parent 1: protocol {protocol} prio {1 if match == "ip" else 2} '
                         f'u32 match {match} dst {address} flowid 1:{number:x}')
    _batch(host, lines, 'HTB', 'sch_htb and cls_u32')


def _batch(host, lines, what, modules):
    try:
        host.batch(lines, 'tc')
    except HostError as error:
        raise TrialError(f'this kernel has no {what} ({modules}):\n{error}') from None


def codel_ms(rate_bps):
    """(target, interval) of CoDel in front of a link, ms: 5 and 100; on a slow link the target is the time of one and a
    half full frames, and the interval remains 95 ms longer, and at least twice as long. CAKE has the same defaults."""
    target = max(5.0, 1.5 * FRAME * 8000 / rate_bps)
    return target, max(95.0 + target, 2 * target)


def fq_codel(host, interface, rate_bps, users, weights):
    """The same tree with fq_codel in each user's leaf, so that a user's connections share equally. Its target and
    interval are those of the whole rate, which a leaf may borrow. Raises TrialError."""
    htb(host, interface, rate_bps, users, weights)
    _batch(host, [_fq_codel_below(interface, f'{number:x}', rate_bps)
                  for number, _ in enumerate(users, start=FIRST_LEAF)], 'fq_codel', 'sch_fq_codel')


def _fq_codel_below(interface, minor, rate_bps):
    """The tc command for fq_codel in a class of HTB, with the times of this rate."""
    target, interval = (round(1000 * ms) for ms in codel_ms(rate_bps))
    return f'qdisc add dev {interface} parent 1:{minor} fq_codel target {target}us interval {interval}us'


def sqm(host, interface, rate_bps, _users, _weights):
    """One class of HTB with fq_codel in it, as "simple" of sqm-scripts without its priorities: connections share
    equally.
    Raises TrialError."""
    _batch(host, [f'qdisc replace dev {interface} root handle 1: htb default 1 r2q 1',
                  f'class add dev {interface} parent 1: classid 1:1 htb rate {rate_bps:.0f}bit ceil {rate_bps:.0f}bit '
                  f'quantum {FRAME}',
                  _fq_codel_below(interface, '1', rate_bps)],
           'fq_codel', 'sch_htb and sch_fq_codel')


def cake(host, interface, rate_bps, _users, _weights, more=''):
    """CAKE, in which users share equally, and so do the connections of a user; it has no weights. On an interface with
    several queues it is cake_mq, if the kernel has that. more: further words of tc. Raises TrialError."""
    told = f'bandwidth {rate_bps:.0f}bit besteffort dual-dsthost{more}'
    try:
        host.batch([f'qdisc replace dev {interface} root cake_mq {told}'], 'tc')
    except HostError:
        _batch(host, [f'qdisc replace dev {interface} root cake {told}'], 'CAKE', 'sch_cake')
