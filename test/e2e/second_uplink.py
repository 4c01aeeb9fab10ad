# SPDX-License-Identifier: GPL-2.0-or-later
"""A second access link of a slow_link: its own cable to the provider, its own rate, and a route to some servers.

    gw | wan0 === acc0 | isp    all other servers, by the default route
       | wan1 === acc1 |        `servers`, while its route is there
"""
from fieldtrial.site import shaping
from fieldtrial.site.netlink import ReceivedBytes
from fieldtrial.site.world import WAN

WAN1, ACCESS1 = 'wan1', 'acc1'
GATEWAY4, ISP4 = '198.19.254.2', '198.19.254.1'


class SecondUplink:
    """Made before Squid starts. world: of slow_link. servers: those reached by it."""

    def __init__(self, world, fabric, servers, rate_bps):
        self.world, self.servers, self.rate_bps = world, servers, rate_bps
        fabric.wire(world.isp, ACCESS1, world.gateway, WAN1)
        world.isp.run('ip', 'address', 'add', f'{ISP4}/24', 'dev', ACCESS1)
        world.gateway.run('ip', 'address', 'add', f'{GATEWAY4}/24', 'dev', WAN1)
        shaping.bottleneck(world.isp, ACCESS1, rate_bps, world.buffer_bytes)
        self.route()

    def route(self):
        """Policy routing by destination."""
        self.world.gateway.batch([f'route replace {server.v4} via {ISP4} dev {WAN1} congctl cubic'
                                  for server in self.servers])

    def cut(self):
        """No packet passes either way, and its routes go with it."""
        self.world.gateway.run('ip', 'link', 'set', WAN1, 'down')

    def mend(self):
        self.world.gateway.run('ip', 'link', 'set', WAN1, 'up')
        self.route()

    def lines(self, *more):
        """Those of squid.conf from `msfrs on`, with both links; for configuration(on=False)."""
        weights = self.world.weights
        return ['msfrs on', *(f'msfrs_link rate={rate / 1000:.0f}kbit interface={name}{"".join(more)}'
                              for rate, name in ((self.world.rate_bps, WAN), (self.rate_bps, WAN1))),
                *(f'msfrs_class {name} weight={weight:g}' for name, weight in weights.items()),
                'msfrs_class other weight=1 default', *(f'msfrs_access {name} allow {name}' for name in weights)]

    def received(self):
        """Bytes that have arrived on it."""
        counter = ReceivedBytes(self.world.gateway, WAN1)
        try:
            return counter.read()
        finally:
            counter.close()
