# SPDX-License-Identifier: GPL-2.0-or-later
"""The smallest site: a client, a gateway that routes, a server. For tests that need no bottleneck and no delay.

    client eth0 --- in0 gateway out0 --- eth0 server
"""
import contextlib
import socket
import subprocess

CLIENT = {4: '198.18.1.2', 6: '2001:2:0:1::2'}
INSIDE = {4: '198.18.1.1', 6: '2001:2:0:1::1'}
OUTSIDE = {4: '198.18.2.1', 6: '2001:2:0:2::1'}
SERVER = {4: '198.18.2.2', 6: '2001:2:0:2::2'}
ANY = {4: '0.0.0.0', 6: '::'}
AF = {4: socket.AF_INET, 6: socket.AF_INET6}
PREFIX = {4: 24, 6: 64}

IP_TRANSPARENT, IPV6_TRANSPARENT = 19, 75       # linux/in.h, linux/in6.h; not in Python's socket module
#: Seconds that any expected event may take; far more than needed.
PATIENCE = 10.0
#: Seconds to wait for an event that must not happen; the control in the same test takes milliseconds.
SILENCE = 0.5


class Site:
    def __init__(self, fabric):
        self.client, self.gateway, self.server = (fabric.host(role) for role in ('client', 'gw', 'server'))
        for host in (self.client, self.gateway, self.server):
            addresses_at_once(host)
        fabric.wire(self.client, 'eth0', self.gateway, 'in0')
        fabric.wire(self.gateway, 'out0', self.server, 'eth0')
        for host, interface, addresses in ((self.client, 'eth0', CLIENT), (self.gateway, 'in0', INSIDE),
                                           (self.gateway, 'out0', OUTSIDE), (self.server, 'eth0', SERVER)):
            host.batch([f'address add {addresses[4]}/{PREFIX[4]} dev {interface}',
                        f'address add {addresses[6]}/{PREFIX[6]} dev {interface} nodad'])
        for host, via in ((self.client, INSIDE), (self.server, OUTSIDE)):
            host.run('ip', '-4', 'route', 'add', 'default', 'via', via[4])
            host.run('ip', '-6', 'route', 'add', 'default', 'via', via[6])
        set_sysctl(self.gateway, 'net/ipv4/ip_forward', 1)
        set_sysctl(self.gateway, 'net/ipv6/conf/all/forwarding', 1)


def addresses_at_once(host):
    """Makes IPv6 addresses of new interfaces usable at once, without the second or two of duplicate detection."""
    set_sysctl(host, 'net/ipv6/conf/default/accept_dad', 0)


def sh(host, *argv, input=None, timeout=60, **how):
    """Runs a command on a host; CompletedProcess with text, whatever its exit code."""
    return subprocess.run(host.enter(argv), input=input, capture_output=True, text=True, timeout=timeout, **how)


def sysctl(host, path):
    with host.inside(), open(f'/proc/sys/{path}') as file:
        return file.read().strip()


def set_sysctl(host, path, value):
    with host.inside(), open(f'/proc/sys/{path}', 'w') as file:
        file.write(str(value))


@contextlib.contextmanager
def listener(host, family, port, address=None, *, transparent=False, kind=socket.SOCK_STREAM):
    """A socket bound on a host, and listening if TCP; on any address by default."""
    with host.inside():
        made = socket.socket(AF[family], kind)
    with made:
        made.settimeout(PATIENCE)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == 6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if transparent:
            be_transparent(made, family)
        made.bind((address or ANY[family], port))
        if kind == socket.SOCK_STREAM:
            made.listen()
        yield made


@contextlib.contextmanager
def connection(host, family, address, port, *, source=None, timeout=PATIENCE):
    """A TCP connection from a host, from a foreign address if `source` is given; errors are those of socket."""
    with host.inside():
        made = socket.socket(AF[family], socket.SOCK_STREAM)
    with made:
        made.settimeout(timeout)
        if source:
            be_transparent(made, family)
            made.bind((source, 0))
        made.connect((address, port))
        yield made


def be_transparent(made, family):
    if family == 4:
        made.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
    else:
        made.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
