# SPDX-License-Identifier: GPL-2.0-or-later
"""Users of a gateway: requests from their own addresses by every path that a gateway offers, checked byte by byte."""
import asyncio
import contextlib
import itertools
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass

from background import PATIENCE, content, wait_until
from fieldtrial.site import addresses
from fieldtrial.site.host import Host
from fieldtrial.site.world import FORWARD_PORT
from scripted_origin import BESIDE, url_path

RESET = struct.pack('ii', 1, 0)
#: Ways in which a connection can fail.
FAILURES = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError, ValueError, IndexError)


class Fetch:
    """One request and its result so far. Only `abort` and `go_on` change its course."""

    def __init__(self, key, path):
        self.key, self.path = key, path
        self.status = 0             #: of the response; 0: none arrived
        self.headers = {}           #: of the response, names in lower case
        self.received = 0           #: bytes of the body so far
        self.intact = True          #: whether they match those of the key
        self.text = b''             #: the beginning of the body
        self.whole = False          #: whether the end of the response arrived
        self.error = None           #: the exception that ended it early
        self.certificate = None     #: of the server, DER, if there was TLS
        self.port = None            #: of the user's end of the connection
        self.t_start = None         #: monotonic time just before the connection
        self.t_end = None           #: monotonic time of the end
        self._go_on = asyncio.Event()
        self._finished = threading.Event()
        self._task = self._socket = self._loop = None

    @property
    def finished(self):
        return self._finished.is_set()

    @property
    def good(self):
        """Whether the response is complete and correct."""
        return self.finished and self.status == 200 and self.whole and self.intact

    def wait(self, timeout=PATIENCE):
        """Waits for its end; returns itself."""
        assert self._finished.wait(timeout), f'{self} has not ended within {timeout:g} s'
        return self

    def abort(self, reset=False):
        """The user closes or resets the connection."""
        if reset and self._socket:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._loop.call_soon_threadsafe(self._task.cancel)
        self.wait()

    def go_on(self):
        """A stalled client reads the rest."""
        self._loop.call_soon_threadsafe(self._go_on.set)

    def __repr__(self):
        return (f'<{self.path}: status {self.status}, {self.received} bytes, whole {self.whole}, intact {self.intact}, '
                f'{self.error!r}>')


@dataclass(frozen=True)
class Road:
    """The path of a request."""
    source: str
    server: str                     #: the server's address
    proxy: str                      #: the gateway's
    home: Host                      #: the user's host
    name: str | None = None
    #: 'proxy', 'connect' (TLS in a CONNECT tunnel), 'intercept' (directly to the server's port 80), 'tls' (to its port
    #: 443), 'beside' (to a port that is not intercepted), or 'ftp' (ftp:// through the proxy)
    via: str = 'proxy'
    port: int = 443                 #: of a CONNECT
    through: int = FORWARD_PORT     #: the gateway's port for 'proxy', 'connect' and 'ftp'
    ca: str | None = None           #: file of the trusted certificate; None: any is accepted
    header: str | None = None       #: an additional line of the request
    stall_after: int | None = None  #: bytes of the body after which the client stops reading
    body: int | None = None         #: bytes of the body of a POST; None: a GET
    upgrade: bool = False           #: requests a change of protocol

    @property
    def host(self):
        return self.name or (f'[{self.server}]' if ':' in self.server else self.server)


ROAD_OPTIONS = {'via', 'port', 'through', 'ca', 'header', 'stall_after', 'body', 'upgrade'}


class Users:
    """Makes requests for the users of a world."""

    def __init__(self, loop, world):
        self._loop, self._world = loop, world
        self._numbers = itertools.count(1)
        self._tasks = set()         # the loop holds only weak references to its tasks
        self.open = True            #: whether requests may still be made
        self._loads = []

    def get(self, user, key=None, *, family=4, server=0, name=None, path=None, **how):
        """Starts a request of a user; returns its Fetch.

        name: name of the server (host, SNI) in place of its address. path: in place of the path that `how` gives for a
        scripted_origin. how: fields of Road, and parameters of a scripted_origin.
        """
        key = key or f'k{next(self._numbers)}'
        where = self._world.servers[server]
        address, source = (where.v4, user.v4) if family == 4 else (where.v6, user.v6)
        road = Road(source=source, server=address, proxy=addresses.GATEWAY_IN4 if family == 4 else addresses.GATEWAY_IN6,
                    home=self._world.host_of(user), name=name,
                    **{field: how.pop(field) for field in ROAD_OPTIONS & how.keys()})
        fetch = Fetch(key, path or url_path(key, **how))
        fetch._loop = self._loop.loop

        async def start():
            task = fetch._task = asyncio.ensure_future(self._run(fetch, road))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._loop.call(start())
        return fetch

    async def _run(self, fetch, road):
        writer = None
        fetch.t_start = time.monotonic()
        try:
            reader, writer = await self._connect(fetch, road)
            if road.via == 'connect':
                writer.write(_head(f'CONNECT {road.host}:{road.port} HTTP/1.1', f'Host: {road.host}:{road.port}'))
                await _read_head(reader, fetch)
                if fetch.status != 200:
                    await _read_body(reader, fetch, None)
                    return
            if road.via in ('connect', 'tls'):
                await writer.start_tls(_context(road.ca), server_hostname=road.name or '')
                fetch.certificate = writer.get_extra_info('ssl_object').getpeercert(binary_form=True)
            base = {'proxy': f'http://{road.host}', 'ftp': f'ftp://{road.host}'}.get(road.via, '')
            writer.write(_head(
                f'{"GET" if road.body is None else "POST"} {base}{fetch.path} HTTP/1.1', f'Host: {road.host}',
                'Connection: Upgrade\r\nUpgrade: e2e/1' if road.upgrade else 'Connection: close', road.header,
                None if road.body is None else f'Content-Length: {road.body}') + content(fetch.key, 0, road.body or 0))
            await _read_head(reader, fetch)
            await _read_body(reader, fetch, road.stall_after)
        except asyncio.CancelledError:
            if writer:
                writer.transport.abort()
        except FAILURES as error:
            fetch.error = error
        finally:
            if writer:
                writer.close()
            fetch.t_end = time.monotonic()
            fetch._finished.set()

    async def _connect(self, fetch, road):
        made = fetch._socket = self._socket(road.home, road.source)
        fetch.port = made.getsockname()[1]
        made.setblocking(False)
        if road.stall_after is not None:    # so that the kernel does not buffer for a client that has stopped reading
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        direct = {'intercept': 80, 'tls': 443, 'beside': BESIDE}.get(road.via)
        try:
            await asyncio.get_running_loop().sock_connect(
                made, (road.server, direct) if direct else (road.proxy, road.through))
        except OSError:
            made.close()
            raise
        return await asyncio.open_connection(sock=made, limit=65536 if road.stall_after is None else 4096)

    @staticmethod
    def _socket(home, source):
        """A socket in the users' network, bound to a user's address."""
        family = socket.AF_INET6 if ':' in source else socket.AF_INET
        with home.inside():
            made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.bind((source, 0))
        return made

    def say(self, user, address, port, words):
        """Connects directly to an address, sends some bytes that are not a request, and disconnects."""
        with self._socket(self._world.host_of(user), user.v6 if ':' in address else user.v4) as made:
            made.settimeout(PATIENCE)
            made.connect((address, port))
            made.sendall(words)

    def load(self, users, **how):
        """Keeps the users busy from now on; see Load."""
        self._loads.append(Load(self, users, **how))
        return self._loads[-1]

    def close(self):
        """Ends all loads: no further requests."""
        self.open = False
        for load in self._loads:
            load.join()


class Load:
    """Users who always have `inflight` requests of `size` bytes open; `how` as in Users.get."""

    def __init__(self, users, who, *, inflight=4, **how):
        self._users, self._how = users, how if 'path' in how else {'size': 60_000, **how}
        self._running = True
        self.fetches = {user: [] for user in who}      #: every request so far, by user
        self._threads = [threading.Thread(target=self._keep_busy, args=(user, inflight), daemon=True) for user in who]
        for thread in self._threads:
            thread.start()

    def _keep_busy(self, user, inflight):
        under_way = []
        while self._running and self._users.open:
            under_way = [fetch for fetch in under_way if not fetch.finished]
            while self._running and self._users.open and len(under_way) < inflight:
                fetch = self._users.get(user, **self._how)
                under_way.append(fetch)
                self.fetches[user].append(fetch)
            time.sleep(0.02)

    def join(self):
        for thread in self._threads:
            thread.join(PATIENCE)

    def bytes(self):
        """Bytes of bodies that each user has received so far."""
        return {user: sum(fetch.received for fetch in list(fetches)) for user, fetches in self.fetches.items()}

    def since(self, before):
        """The same, less an earlier result of bytes()."""
        return {user: got - before.get(user, 0) for user, got in self.bytes().items()}

    def all(self):
        return [fetch for fetches in self.fetches.values() for fetch in list(fetches)]

    def stop(self, abort=False):
        """Makes no further requests; open ones are completed, or aborted. Returns all requests."""
        self._running = False
        self.join()
        for fetch in self.all():
            if abort and not fetch.finished:
                fetch.abort()
        wait_until(lambda: all(fetch.finished for fetch in self.all()), 'all requests of the load have ended',
                   2 * PATIENCE)
        return self.all()


def _context(ca):
    context = ssl.create_default_context(cafile=ca)
    context.check_hostname = False
    if not ca:
        context.verify_mode = ssl.CERT_NONE
    return context


def _head(*lines):
    return '\r\n'.join([*(line for line in lines if line), '', '']).encode()


async def _read_head(reader, fetch):
    first, *lines = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1').split('\r\n')
    fetch.status = int(first.split()[1])
    pairs = (line.partition(':') for line in lines if line)
    fetch.headers = {name.lower(): value.strip() for name, _, value in pairs}


async def _read_body(reader, fetch, stall_after):
    if 'chunked' in fetch.headers.get('transfer-encoding', ''):
        while size := int(await reader.readuntil(b'\r\n'), 16):
            await _read_piece(reader, fetch, size, stall_after)
            await reader.readexactly(2)
        await reader.readexactly(2)
    elif 'content-length' in fetch.headers:
        await _read_piece(reader, fetch, int(fetch.headers['content-length']), stall_after)
    else:
        with contextlib.suppress(asyncio.IncompleteReadError):
            await _read_piece(reader, fetch, 1 << 40, stall_after)
    fetch.whole = True


async def _read_piece(reader, fetch, size, stall_after):
    while size:
        if stall_after is not None and fetch.received >= stall_after:
            await fetch._go_on.wait()
            stall_after = None
        data = await reader.read(min(size, 65536))
        if not data:
            raise asyncio.IncompleteReadError(b'', size)
        if len(fetch.text) < 4096:
            fetch.text += data[:4096]
        fetch.intact = fetch.intact and data == content(fetch.key, fetch.received, len(data))
        fetch.received += len(data)
        size -= len(data)
