# SPDX-License-Identifier: GPL-2.0-or-later
"""A parent cache at the provider, which many customers must use: the gateway's Squid sends all requests to it
(cache_peer), across the narrow link. MSF-RS then schedules requests to a peer."""
import signal

from . import squidconf
from .addresses import GATEWAY_OUT4, GATEWAY_OUT6
from .processes import listens
from .world import FORWARD_PORT, SYSCTLS

CABLE = 'p0'
ISP4, ISP6 = '198.19.254.1', '2001:2:0:fffe::1'
PARENT4, PARENT6 = '198.19.254.2', '2001:2:0:fffe::2'

#: Lines for the gateway's squid.conf.
DIRECTIVES = f'''
cache_peer {PARENT4} parent {FORWARD_PORT} 0 no-query no-digest no-netdb-exchange name=provider
never_direct allow all
'''

CONFIGURATION = '''\
http_port {port}
visible_hostname parent.test
dns_nameservers 127.0.0.1
acl gateway src {customers}
http_access allow gateway
http_access deny all
cache_mem 32 MB
{files}'''


def start(world, fabric, program):
    """Starts a host with the parent; returns its daemons. `program` is the Squid it runs, without scheduling."""
    host = fabric.host('peer')
    host.set_kernel(SYSCTLS)
    fabric.wire(world.isp, CABLE, host, CABLE)
    world.isp.batch([f'addr add {ISP4}/30 dev {CABLE}', f'addr add {ISP6}/64 dev {CABLE} nodad'])
    host.batch([f'addr add {PARENT4}/30 dev {CABLE}', f'addr add {PARENT6}/64 dev {CABLE} nodad',
                f'route add default via {ISP4} congctl cubic', f'route add default via {ISP6} congctl cubic'])
    directory = world.directory / 'parent'
    host.run('install', '-d', '-o', 'proxy', '-g', 'proxy', '-m', '2775', directory)
    conf = world.directory / 'parent.conf'
    conf.write_text(CONFIGURATION.format(port=FORWARD_PORT, files=squidconf.files(directory),
                                         customers=f'{GATEWAY_OUT4} {GATEWAY_OUT6}'))
    squid = world.start(host, [str(program), '-N', '-n', 'parent', '-f', str(conf)], 'parent.out',
                        command='the parent cache', stop_signal=signal.SIGINT)
    squid.wait_until(lambda: listens(host, FORWARD_PORT), f'listening on port {FORWARD_PORT}')
    return [world.start_names_of(host), squid]
