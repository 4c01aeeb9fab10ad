# SPDX-License-Identifier: GPL-2.0-or-later
"""QUIC that bypasses Squid: ngtcp2's example server on the servers, and its client for each download, both with cubic.

The programs are those of Debian's ngtcp2-client and ngtcp2-server. The trial does not install them, because the latter
sets up a listening service. If they are missing, conditions that need them are left out.
"""
import shutil

from ..base.errors import TrialError
from ..site.processes import Daemon
from .workloads.bypass import BULK

CLIENT, SERVER, PORT = 'gtlsclient', 'gtlsserver', 443
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
#: Files of a download, all in one connection: it should outlast the run.
FILES = 8
#: Frames leave one by one, as they arrive over a real distance; quiet, since each would be logged.
SERVER_OPTIONS = ('--quiet', '--no-quic-dump', '--no-http-dump', '--max-gso-dgrams=1', '--cc=cubic', '--timeout=300s')
CLIENT_OPTIONS = ('--quiet', '--no-quic-dump', '--no-http-dump', '--cc=cubic', '--timeout=300s',
                  '--handshake-timeout=60s')


def missing():
    """As text, the programs that this machine lacks; empty if it has both."""
    absent = ' and '.join(name for name in (CLIENT, SERVER) if not shutil.which(name, path=PATH))
    return absent and f'{absent} not found (Debian: ngtcp2-client, ngtcp2-server)'


def start_servers(world):
    """Starts one on each host of servers, with the files of a started origin. Daemons of the world. Raises
    TrialError."""
    if missing():
        raise TrialError(f'QUIC past Squid: {missing()}')
    for host in world.farms:
        origin = world.directory / f'origin-{host.role}'
        # Not '*': with that it listens on IPv6 only, where available.
        server = world.start(host, [SERVER, *SERVER_OPTIONS, '-d', str(origin / 'content'), '0.0.0.0', str(PORT),
                                    str(origin / 'tls.key'), str(origin / 'tls.crt')], f'quic-{host.role}.log')
        server.wait_until(lambda host=host: host.run('ss', '-Hlun', 'sport', '=', str(PORT)).strip(),
                          f'listening on UDP port {PORT}')


def downloads(world, wanted):
    """Yields a Daemon for each (user, server), started when it is taken."""
    for number, (user, server) in enumerate(wanted, start=1):
        url = f'https://{server.name}/{BULK}'
        yield Daemon(world.host_of(user), [CLIENT, *CLIENT_OPTIONS, '-n', str(FILES), server.v4, str(PORT), url],
                     world.directory / f'quic-client{number}.log', command='QUIC client')
