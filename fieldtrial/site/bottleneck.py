# SPDX-License-Identifier: GPL-2.0-or-later
"""What makes the access link slow at the ISP's end, and what it says of its queue: the kernel's token bucket, or
msfrs-edge with conf/edge/isp.conf. The same to everybody else."""
import math

from ..base.errors import TrialError
from . import msfrs_edge, netlink, shaping
from .netlink import Qdisc, QdiscStats
from .shaping import ETHERNET

NAMES = ('tbf', 'edge')
#: A link that stands still carries this, bit/s: a token bucket cannot have none.
SLOWEST_BPS = 8000.0
#: Who sends a frame in less time need not be woken, s.
LATE_S = 0.02
#: Bytes that a change gives to a bucket on a full link: it is full then, and had half a frame on average.
GIVEN = 1.5 * shaping.FRAME


class TokenBucket:
    """See shaping.bottleneck."""

    name = 'token bucket'

    def __init__(self, host, interface, rate_bps, buffer_bytes):
        shaping.bottleneck(host, interface, rate_bps, buffer_bytes)
        self._host, self._interface, self._buffer_bytes = host, interface, buffer_bytes
        self._rate_bps, self._bucket = rate_bps, None

    def reader(self):
        """An object whose `read()` gives QdiscStats; to be closed."""
        return Qdisc(self._host, self._interface)

    def set_rate(self, rate_bps, held_s=math.inf):
        """From now on, for about so long; what waits goes on waiting. What the bucket is given by changes that come one
        after another is taken from the rate. Raises TrialError."""
        self._bucket = self._bucket or netlink.TokenBucket(self._host, self._interface)
        told = max(rate_bps - 8 * GIVEN / held_s, SLOWEST_BPS)
        burst = shaping.burst_bytes(told)
        self._bucket.change(told, burst, max(self._buffer_bytes, burst))
        if 8 * shaping.FRAME / self._rate_bps > LATE_S:
            self._bucket.wake()
        self._rate_bps = told

    def check(self):
        """Raises TrialError if it is no longer there."""

    def close(self):
        """What set_rate() has opened."""
        if self._bucket:
            self._bucket.close()


class Edge:
    """msfrs-edge, and its rules; the buffer is as many full frames as `buffer_bytes` have room for."""

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
        return EdgeReader(self._daemon.control)

    def check(self):
        self._daemon.check()

    def close(self):
        pass


class EdgeReader:
    """Counters of msfrs-edge, as a queueing discipline would count: whole frames."""

    def __init__(self, control):
        self._control = control

    def read(self):
        """QdiscStats now."""
        found = msfrs_edge.totals(self._control)
        sent, queued = found['passed_packets_total'], found['queued_packets']
        return QdiscStats(round(found['passed_bytes_total'] + ETHERNET * sent), round(sent), round(queued),
                          round(found['queued_bytes'] + ETHERNET * queued), round(found['dropped_packets_total']))

    def close(self):
        pass
