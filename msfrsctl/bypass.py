# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic on the link that belongs to no request through Squid, and its receivers: for status, doctor and why.

Its amount is the difference between the bytes that the interface received and those of Squid's requests. Its receivers
come from the headers of packets sent to the users, whether or not msfrs-edge or any other program counts them; only
root can see them. Packets of this machine's own connections, Squid's among them, are left out. Ports do not tell them
from others: after `msfrsctl off`, and for clients that are never intercepted, servers answer from ports 80 and 443, too.
"""
import socket
from collections import Counter, namedtuple

from .system import RECEIVED

#: Share of the link's rate from which bypassing traffic is reported. The size of responses on the link is an estimate
#: (overhead= of msfrs_link), and acknowledgements of uploads belong to no response: both errors stay below a tenth.
MUCH = 0.1
#: Seconds of a measurement: some hundred quanta of a narrow link. Over half of it, a burst turns 19 % into 29 %; twice
#: as long would keep the administrator waiting.
LOOK = 4.0
TCP = 6


class Bypass(namedtuple('Bypass', 'share user part own held')):
    """share: of the link's rate; user: the address that receives most, None if it cannot be seen; part: that user's
    share of the bypassing traffic; own: most goes to this machine; held: msfrs-edge limits it to its share."""
    __slots__ = ()

    def __str__(self):
        to = ', most of it to this machine itself' if self.own else \
            ' (root sees who has most of it)' if self.user is None else \
            f', most of it to {self.user}' if self.part >= 0.5 else \
            f', {self.part:.0%} of that to {self.user}, more than to anybody else'
        return f'{self.share:.0%} of the link bypasses Squid{to}' \
            + ('; msfrs-edge holds it to its share' if self.held else '; no weight holds for it')


#: Advice if msfrs-edge does not limit it.
DO = 'msfrsctl setup, which configures msfrs-edge to hold it to its share'


def look(site):
    """A Bypass, or None if there is too little to report or the amount is unknown. Takes LOOK seconds if Squid's own
    figures of its last interval are suspicious; otherwise returns at once."""
    reports = [report for report in site.reports if report['scheduling']]
    if not any(map(_suspicious, reports)):
        return None
    interface, rate = reports[0]['link']['interface'], reports[0]['link']['rate']
    before = _counts(site, interface)
    to, own = _Receivers(), site.system.tcp_peers()
    seen = site.system.packets(site.inside, LOOK, to.take)
    received = to.without(own | site.system.tcp_peers())
    after = _counts(site, interface)
    if None in (before, after):
        return None
    took, carried, squids = (now - then for now, then in zip(after, before))
    past = carried - squids
    if past * 8 / took < MUCH * rate:
        return None
    most = max(received, key=received.get, default=None)
    forwarded = sum(received.values())
    return Bypass(past * 8 / took / rate, most if seen else None, received[most] / forwarded if most else 0.0,
                  bool(seen) and forwarded < past / 2, any(map(_edges, reports)))


def _edges(report):
    """Rows of msfrs-edge as a party of the link."""
    return [row for row in report.get('parties', ()) if row['kind'] == 'edge' and row['live']]


def _suspicious(report):
    window = report['window']
    others = window['utilisation'] - window['own'] if window.get('own') is not None else 0.0
    # The window does not count traffic through msfrs-edge as others': that has a share according to its users.
    return bool(report['link']['interface']) and (others > MUCH or any(row['share'] > MUCH for row in _edges(report)))


def _counts(site, interface):
    """(time, bytes received by the interface, bytes of Squid's requests with their headers on the link), or None."""
    squids = sum(row['bytes'] * (1 + report['link']['overhead']) for report in site.manager.reports()
                 if report['scheduling'] for row in report['classes'])
    received = site.system.read(RECEIVED.format(interface))
    return received and (site.system.monotonic(), int(received), squids)


class _Receivers:
    """Sums the bytes of packets sent to the users, by address and, for TCP, port."""

    def __init__(self):
        self._bytes = Counter()

    def take(self, head, length):
        """head: the beginning of an IP packet; length: that of the whole packet."""
        if head[:1] and head[0] >> 4 == 4 and len(head) >= 20:
            protocol, to, ports = head[9], head[16:20], (head[0] & 15) * 4
        elif head[:1] and head[0] >> 4 == 6 and len(head) >= 40:
            protocol, to, ports = head[6], head[24:40], 40
        else:
            return
        port = int.from_bytes(head[ports + 2:ports + 4], 'big') if protocol == TCP else None
        self._bytes[to, port] += length

    def without(self, own):
        """Bytes by address, without packets to the (address, port) of `own`."""
        received = Counter()
        for (to, port), count in self._bytes.items():
            if (to, port) not in own:
                received[socket.inet_ntop(socket.AF_INET if len(to) == 4 else socket.AF_INET6, to)] += count
        return received
