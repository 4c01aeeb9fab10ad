# SPDX-License-Identifier: GPL-2.0-or-later
"""What makes the access link slow at the ISP's end, and what it says of its queue: the kernel's token bucket, or
msfrs-edge with conf/edge/isp.conf. The same to everybody else."""
from ..base.errors import TrialError
from . import msfrs_edge, shaping
from .netlink import Qdisc, QdiscStats
from .shaping import ETHERNET

NAMES = ('tbf', 'edge')


class TokenBucket:
    """See shaping.bottleneck."""

    name = 'token bucket'

    def __init__(self, host, interface, rate_bps, buffer_bytes):
        shaping.bottleneck(host, interface, rate_bps, buffer_bytes)
        self._host, self._interface, self._buffer_bytes = host, interface, buffer_bytes

    def reader(self):
        """An object whose `read()` gives QdiscStats; to be closed."""
        return Qdisc(self._host, self._interface)

    def set_rate(self, rate_bps):
        """From now on; what waits goes on waiting. Raises TrialError."""
        shaping.bottleneck(self._host, self._interface, rate_bps, self._buffer_bytes, 'change')

    def check(self):
        """Raises TrialError if it is no longer there."""


class Edge:
    """msfrs-edge, and its rules; the buffer is as many full frames as `buffer_bytes` have room for."""

    name = 'msfrs-edge'

    def __init__(self, scenario, host, interface, rate_bps, buffer_bytes, program):
        packets = max(2, buffer_bytes // shaping.FRAME)
        self._daemon = msfrs_edge.start(
            scenario, host, program, msfrs_edge.CONF / 'isp.conf',
            link=f'rate={rate_bps:.0f}bit overhead={ETHERNET}B burst={2 * shaping.FRAME}B', limit=max(1000, packets),
            aqm=f'droptail mode=bytes packet={shaping.FRAME - ETHERNET} limit={packets}')
        msfrs_edge.rules(host, 'up', '--link', f'{interface}=0')
        scenario.when_left(msfrs_edge.rules, host, 'down')

    def set_rate(self, rate_bps):
        raise TrialError('the rate of --isp edge cannot be changed under way')

    def reader(self):
        return EdgeReader(self._daemon.control)

    def check(self):
        self._daemon.check()


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
