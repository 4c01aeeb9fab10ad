# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares of a link while all flows are backlogged."""
import time

from edgetrial.iperf import running
from edgetrial.wire import Wire

#: Seconds before the measurement begins: time for TCP to fill its windows, with room for a busy machine.
WARM_UP = 3.0
#: Seconds over which shares are measured.
MEASURED = 4.0


def rates(link, flows, warm_up=WARM_UP, measured=MEASURED):
    """Bits per second of each flow at the receiver, in whole IP packets, and the Wire that captured them."""
    with Wire(link.receivers_host, 'eth0') as wire, running(link, flows, warm_up + measured + 5):
        start = time.monotonic() + warm_up
        _until(start + measured)
    return [wire.rate_bps(flow, start, start + measured) for flow in flows], wire


def _until(when):
    while (left := when - time.monotonic()) > 0:
        time.sleep(left)
