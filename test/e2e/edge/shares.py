# SPDX-License-Identifier: GPL-2.0-or-later
"""Who had how much of a link, while everybody wanted more."""
import time

from edgetrial.iperf import running
from edgetrial.wire import Wire

#: Seconds before which nothing is counted: what TCP takes to fill its windows, with room for a busy machine.
WARM_UP = 3.0
#: Seconds over which shares are told.
MEASURED = 4.0


def rates(link, flows, warm_up=WARM_UP, measured=MEASURED):
    """Bits per second of each flow, as they arrive, whole IP packets counted, and the Wire that saw them."""
    with Wire(link.receivers_host, 'eth0') as wire, running(link, flows, warm_up + measured + 5):
        start = time.monotonic() + warm_up
        _until(start + measured)
    return [wire.rate_bps(flow, start, start + measured) for flow in flows], wire


def _until(when):
    while (left := when - time.monotonic()) > 0:
        time.sleep(left)
