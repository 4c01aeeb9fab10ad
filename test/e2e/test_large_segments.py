# SPDX-License-Identifier: GPL-2.0-or-later
"""A server on the gateway itself, such as a cache_peer or an origin: its segments have up to 64 KB."""
import time

import pytest

from fieldtrial.site import addresses
from gateway import SOON
from scripted_origin import ScriptedOrigin
from test_shares import WARM_UP

SIZE, COUNT = 300_000, 6    #: bytes of a download, several times the largest window here; number of downloads


LINES = ('msfrs_window interval=1s', SOON)


@pytest.fixture
def link(slow_link):
    slow_link.gateway.start(*LINES)
    slow_link.near = ScriptedOrigin(slow_link.loop, slow_link.world.gateway, slow_link.certificates.origin)
    return slow_link


def test_no_download_stalls_whose_servers_segments_are_large(link):
    """Each connects while it is alone, so that its window is wide and its server's segments large. Others arrive before
    they are answered, and the share of each becomes small. Squid has a short timeout for silent servers; a pause by
    Squid itself does not count."""
    user, *others = link.world.users
    downloads = []
    for number in range(COUNT):
        downloads.append(link.users.get(user, name=addresses.GATEWAY_IN4, size=SIZE, gate='others are there'))
        link.gateway.wait_for(in_flight=0, silent=number + 1)
    link.gateway.reconfigure(*LINES, 'read_timeout 2 seconds')
    load = link.users.load(others, size=1_000_000)
    time.sleep(WARM_UP)
    link.near.open_gate('others are there')
    for download in downloads:
        download.wait(60.0)
    load.stop(abort=True)
    assert all(download.good for download in downloads), downloads
