# SPDX-License-Identifier: GPL-2.0-or-later
"""The bottleneck of the access link at the ISP's end, and the statistics of its queue: the kernel's token bucket, or
msfrs-edge with conf/edge/isp.conf. Both have the same interface."""
import math

from ..base.errors import TrialError
from . import msfrs_edge, netlink, shaping
from .netlink import Qdisc, QdiscStats
from .shaping import ETHERNET

NAMES = ('tbf', 'edge')
#: Rate of a stopped link, bit/s: a token bucket cannot have rate 0.
SLOWEST_BPS = 8000.0
#: A bucket that sends a frame in less time need not be woken, s.
LATE_S = 0.02
#: Tokens, bytes, that a change adds to a bucket on a full link: it is full afterwards and held half a frame on average.
GIVEN = 1.5 * shaping.FRAME


class TokenBucket:
    """See shaping.bottleneck."""

    name = 'token bucket'

    def __init__(self, host, interface, rate_bps, buffer_bytes):
        shaping.bottleneck(host, interface, rate_bps, buffer_bytes)
        self._host, self._interface, self._buffer_bytes = host, interface, buffer_bytes
        self._rate_bps, self._bucket = rate_bps, None

    def reader(self):
        """An object whose `read()` returns QdiscStats; the caller closes it."""
        return Qdisc(self._host, self._interface)

    def set_rate(self, rate_bps, held_s=math.inf):
        """Sets the rate from now on, for about `held_s`; queued packets stay. The tokens that successive changes add to
        the bucket are taken from the rate. Raises TrialError."""
        self._bucket = self._bucket or netlink.TokenBucket(self._host, self._interface)
        told = max(rate_bps - 8 * GIVEN / held_s, SLOWEST_BPS)
        burst = shaping.burst_bytes(told)
        self._bucket.change(told, burst, max(self._buffer_bytes, burst))
        if 8 * shaping.FRAME / self._rate_bps > LATE_S:
            self._bucket.wake()
        self._rate_bps = told

    def check(self):
        """Raises TrialError if it no longer exists."""

    def close(self):
        if self._bucket:
            self._bucket.close()


class Edge:
    """msfrs-edge and its rules; the buffer is the number of full frames that fit into `buffer_bytes`."""

    name = 'msfrs-edge'

    def __init__(self, scenario, host, interface, rate_bps, buffer_bytes, program):
        packets, burst = max(2, buffer_bytes // shaping.FRAME), shaping.burst_bytes(rate_bps)
        self._daemon = msfrs_edge.start(
            scenario, host, program, msfrs_edge.CONF / 'isp.conf',
            link=f'rate={rate_bps:.0f}bit overhead={ETHERNET}B burst={burst}B', limit=max(1000, packets),
            aqm=f'droptail mode=bytes packet={shaping.FRAME - ETHERNET} limit={packets}')
        msfrs_edge.rules(host, 'up', '--link', f'{interface}=0')
        scenario.when_left(msfrs_edge.rules, host, 'down')

    def set_rate(self, rate_bps, held_s=math.inf):
        raise TrialError('the rate of --isp edge cannot be changed under way')

    def reader(self):
        return self

    def check(self):
        self._daemon.check()

    def read(self):
        """The current QdiscStats, in the units of a queueing discipline: whole frames."""
        found = msfrs_edge.totals(self._daemon.control)
        sent, queued = found['passed_packets_total'], found['queued_packets']
        return QdiscStats(round(found['passed_bytes_total'] + ETHERNET * sent), round(sent), round(queued),
                          round(found['queued_bytes'] + ETHERNET * queued), round(found['dropped_packets_total']))

    def close(self):
        pass
