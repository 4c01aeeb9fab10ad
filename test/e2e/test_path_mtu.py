# SPDX-License-Identifier: GPL-2.0-or-later
"""Path MTU discovery of Squid's connections to servers and to clients. A router with a smaller MTU reports it by ICMP,
which must reach Squid's sockets, whatever address these have; else a transfer stops at the first full segments."""
import threading

import pytest

from iptables_script import HTTP_PORT, MODES, up
from site_in_namespaces import (CLIENT, PATIENCE, PREFIX, SERVER, addresses_at_once, connection, listener, set_sysctl)

BOTH_MODES = pytest.mark.parametrize('mode', MODES)
FAMILIES = pytest.mark.parametrize('family', (4, 6))
FAR = {4: '198.18.3.2', 6: '2001:2:0:3::2'}
HOP = {4: '198.18.3.1', 6: '2001:2:0:3::1'}
NETWORK = {4: '198.18.3.0/24', 6: '2001:2:0:3::/64'}
NARROW = 1400
SIZE = 400_000


def beyond(fabric, site, router, address):
    """A host at FAR behind the client or the server of a site, which then routes. Its own end of the cable has the
    usual MTU, so that its TCP offers the usual segment size."""
    far = fabric.host('far')
    addresses_at_once(far)
    fabric.wire(far, 'eth0', router, 'narrow0')
    router.batch([f'link set narrow0 mtu {NARROW}', f'address add {HOP[4]}/{PREFIX[4]} dev narrow0',
                  f'address add {HOP[6]}/{PREFIX[6]} dev narrow0 nodad'])
    far.batch([f'address add {FAR[4]}/{PREFIX[4]} dev eth0', f'address add {FAR[6]}/{PREFIX[6]} dev eth0 nodad'])
    set_sysctl(router, 'net/ipv4/ip_forward', 1)
    set_sysctl(router, 'net/ipv6/conf/all/forwarding', 1)
    for family in (4, 6):
        far.run('ip', f'-{family}', 'route', 'add', 'default', 'via', HOP[family])
        site.gateway.run('ip', f'-{family}', 'route', 'add', NETWORK[family], 'via', address[family])
    return far


def transferred(sending, receiving):
    """Sends SIZE bytes, then the end; returns how many arrived before it, or before a silence of PATIENCE."""
    def send():
        sending.sendall(bytes(SIZE))
        sending.shutdown(1)
    threading.Thread(target=send, daemon=True).start()
    receiving.settimeout(PATIENCE)
    arrived = 0
    try:
        while piece := receiving.recv(65536):
            arrived += len(piece)
    except TimeoutError:
        pass
    return arrived


@BOTH_MODES
@FAMILIES
def test_upload_to_a_server_behind_a_smaller_mtu(fabric, site, mode, family):
    far = beyond(fabric, site, site.server, SERVER)
    up(site.gateway, '--mode', mode)
    with (listener(far, family, 80) as server,
          connection(site.gateway, family, FAR[family], 80,
                     source=CLIENT[family] if mode == 'tproxy' else None) as fetching):
        with server.accept()[0] as accepted:
            assert transferred(fetching, accepted) == SIZE


@BOTH_MODES
@FAMILIES
def test_download_by_a_client_behind_a_smaller_mtu(fabric, site, mode, family):
    far = beyond(fabric, site, site.client, CLIENT)
    up(site.gateway, '--mode', mode)
    with (listener(site.gateway, family, HTTP_PORT[mode], transparent=mode == 'tproxy') as proxy,
          connection(far, family, SERVER[family], 80) as client):
        with proxy.accept()[0] as accepted:
            assert transferred(accepted, client) == SIZE
