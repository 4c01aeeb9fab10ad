# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP/1 for many users in one process: each has its own source addresses and persistent connections. HTTP/2 is in
http2, HTTP/3 in http3.

Requests are plain (origin form, no proxy): the gateway intercepts them. Bodies are read in pieces and discarded. A
connection never has more than one request outstanding, and the number of a user's connections is not limited here: the
workload decides how many requests are in flight, so a request never waits inside the client. Newer aiohttp (3.10 and
later, as in Debian 13) retries a GET once if a persistent connection turns out to be dead before the response begins,
as browsers do; this is still one request in the records.
"""
import socket
import ssl

import aiohttp
from aiohttp.abc import AbstractResolver

from . import http2
from ...base.errors import TrialError
from ...site.addresses import SILENT

#: The client closes connections that are idle for longer, before nginx (75 s) or Squid (120 s) do: no request is sent
#: on a connection that is about to close.
KEEP_OPEN_S = 30.0
HEADERS = {'User-Agent': 'msfrs-fieldtrial', 'Accept': '*/*', 'Accept-Encoding': 'identity'}


class _Table(AbstractResolver):
    """Resolves from the servers' known addresses, without any query."""

    def __init__(self, addresses):
        self._addresses = addresses    # {name: (address, ...)}

    async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
        found = [{'hostname': host, 'host': address, 'port': port, 'family': family_of(address), 'proto': 0,
                  'flags': socket.AI_NUMERICHOST}
                 for address in self._addresses.get(host, ()) if family in (socket.AF_UNSPEC, family_of(address))]
        if not found:
            raise OSError(f'{host}: no address')
        return found

    async def close(self):
        pass


def family_of(address):
    return socket.AF_INET6 if ':' in address else socket.AF_INET


class Clients:
    """The connections of all users."""

    def __init__(self, spec):
        """Raises TrialError if a user can reach no server."""
        self._spec, self._sessions = spec, {}
        self._table = _Table({server.name: server.addresses for server in (*spec.servers, SILENT)})
        self._tls = ssl.create_default_context(cafile=spec.tls_ca) if spec.tls_ca else None
        #: http2.Tunnels; None if the workload has none.
        self.tunnels = http2.Tunnels(spec, self.road) if spec.model.tunnels() else None
        #: http3.Connections; None if no user speaks HTTP/3.
        self.quic = self._http3() if spec.model.quic_users(spec.users) else None
        for user in spec.users:
            if not self.reachable(user):
                raise TrialError(f'user {user.name}: no server has an address of the family of {user.addresses}')

    def _http3(self):
        from . import http3     # here, because its dependencies may be missing
        return http3.Connections(self._spec, self.road, self.tunnels)

    def reachable(self, user):
        """The servers that share an address family with the user."""
        return [server for server in self._spec.servers if self.road(user, server)]

    @staticmethod
    def road(user, server):
        """The addresses (from, to) between a user and a server; None if there are none."""
        return next(((source, address) for source, address in ((user.v4, server.v4), (user.v6, server.v6))
                     if source and address), None)

    def post(self, user, server, path, size):
        """An upload of `size` bytes on the user's tunnel to the server, as a context manager like that of `get`."""
        return self.tunnels.get(user, server, path, upload=size)

    def get(self, user, server, path, via):
        """The request, by one of run.WAYS, as a context manager of aiohttp: entering it waits for the header."""
        if via in ('h2', 'h3'):
            return (self.tunnels if via == 'h2' else self.quic).get(user, server, path)
        source, _ = self.road(user, server)
        session = self._sessions.get((user.name, source))
        if session is None:
            session = self._sessions[user.name, source] = self._session(source)
        scheme, port, usual = {'http': ('http', self._spec.port, 80), 'https': ('https', self._spec.tls_port, 443),
                               'direct': ('http', self._spec.direct_port, 80)}[via]
        where = server.name if port == usual else f'{server.name}:{port}'
        return session.get(f'{scheme}://{where}{path}', allow_redirects=False)

    def _session(self, source):
        connector = aiohttp.TCPConnector(
            limit=0, limit_per_host=0, local_addr=(source, 0), family=family_of(source), resolver=self._table,
            use_dns_cache=False, keepalive_timeout=KEEP_OPEN_S, ssl=self._tls)
        return aiohttp.ClientSession(
            connector=connector, headers=HEADERS, cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None), auto_decompress=False, trust_env=False)

    async def ask_silent(self, user, path, via):
        """A request to a server that never answers, on a connection of its own, until the gateway ends it. Raises
        OSError or ClientError."""
        if via in ('h2', 'h3'):     # a browser without an answer by QUIC has begun by TCP, too
            (await self.tunnels.open(user, SILENT)).close()
        else:
            async with self.get(user, SILENT, path, via) as response:
                await response.read()

    async def close(self):
        for kept in filter(None, (self.quic, self.tunnels)):
            await kept.close()
        for session in self._sessions.values():
            await session.close()
