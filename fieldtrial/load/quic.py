# SPDX-License-Identifier: GPL-2.0-or-later
"""QUIC past Squid: ngtcp2's example server on the servers, and its client for each download, both with cubic.

The programs are those of Debian's ngtcp2-client and ngtcp2-server. They are not installed for the trial: the latter
sets up a service that listens. Where they are missing, what needs them is left out.
"""
import shutil

from ..base.errors import TrialError
from ..site.processes import Daemon
from .workloads.bypass import BULK

CLIENT, SERVER, PORT = 'gtlsclient', 'gtlsserver', 443
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
#: Files of a download, all in one connection: it should not be over before the run.
FILES = 8
#: Frames leave one by one, as they come over a real distance; quiet, since each would be written out.
SERVER_OPTIONS = ('--quiet', '--no-quic-dump', '--no-http-dump', '--max-gso-dgrams=1', '--cc=cubic', '--timeout=300s')
CLIENT_OPTIONS = ('--quiet', '--no-quic-dump', '--no-http-dump', '--cc=cubic', '--timeout=300s',
                  '--handshake-timeout=60s')


def missing():
    """In words, which of the programs this machine has not; empty if it has both."""
    absent = ' and '.join(name for name in (CLIENT, SERVER) if not shutil.which(name, path=PATH))
    return absent and f'{absent} not found (Debian: ngtcp2-client, ngtcp2-server)'


def start_servers(world):
    """One on each host of servers, in a started origin's files. Daemons of the world. Raises TrialError."""
    if missing():
        raise TrialError(f'QUIC past Squid: {missing()}')
    for host in world.farms:
        origin = world.directory / f'origin-{host.role}'
        # Not '*', which it takes for IPv6 alone where that is to be had.
        server = world.start(host, [SERVER, *SERVER_OPTIONS, '-d', str(origin / 'content'), '0.0.0.0', str(PORT),
                                    str(origin / 'tls.key'), str(origin / 'tls.crt')], f'quic-{host.role}.log')
        server.wait_until(lambda host=host: _bound(host), f'listening on UDP port {PORT}')


def _bound(host):
    """Whether somebody has the UDP port."""
    return bool(host.run('ss', '-Hlun', 'sport', '=', str(PORT)).strip())


def downloads(world, wanted):
    """A Daemon for each (user, server), started as it is taken."""
    for number, (user, server) in enumerate(wanted, start=1):
        url = f'https://{server.name}/{BULK}'
        yield Daemon(world.host_of(user), [CLIENT, *CLIENT_OPTIONS, '-n', str(FILES), server.v4, str(PORT), url],
                     world.directory / f'quic-client{number}.log', command='QUIC client')
