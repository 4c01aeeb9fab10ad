# SPDX-License-Identifier: GPL-2.0-or-later
"""A web server that follows a script in the request's path, including faults.

    GET /KEY?size=10000&send=5000&then=reset

    size     bytes of the body, recognisable by KEY (background.content). Default: 1000
    send     bytes of it that are really sent; default: all
    then     after them: `reset` or `close` the connection, or `hang`: neither send nor close. Default: the next request
    hints    number of interim responses (103) sent at once. A requested 100 is sent before the body is read
    gate     answer only after the test has opened the gate of this name; a gate never opened makes a dead server
    framing  of the body: `length` (default), `chunked`, `close`, or `upgrade`: 101, then the body, then the end
    chunk    bytes of a piece of the body, and so of a chunk; default: 16384
    pace     bytes of the body in a second, ten pieces of them; default: as fast as possible
    drop     close a reused connection without a response, once for each value of this
    cache    seconds that the response may be cached; default: not at all
    keeps    a conditional request is answered with 304, without a body; default: its condition is ignored

As real servers it takes time before each response (fieldtrial.site.first_byte), unless it is made to answer at once.
"""
import asyncio
import contextlib
import socket
import ssl
import struct
import subprocess
import urllib.parse
from dataclasses import dataclass
from email.utils import formatdate

from background import content
from fieldtrial.site import first_byte
from site_in_namespaces import ANY, AF

PIECE = 16384
#: A port that is not intercepted; HTTP without TLS.
BESIDE = 9000
#: s within which data written before the end of TLS must be sent; asyncio discards it then. Its default is 30 s.
PATIENT_S = 3600.0
#: Of the times until responses begin.
SEED = 1
RESET = struct.pack('ii', 1, 0)                 # SO_LINGER, no time: close() sends a reset


def url_path(key, **script):
    """The path of a request; see the module's description."""
    return f'/{key}?{urllib.parse.urlencode(script)}'


def make_certificate(path, *names, common_name='origin'):
    """Writes a new key and its self-signed certificate to one file."""
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                    '-days', '2', '-subj', f'/CN={common_name}', '-addext',
                    'subjectAltName=' + ','.join(f'DNS:{name}' for name in names), '-keyout', path, '-out', path],
                   check=True, capture_output=True)


@dataclass(frozen=True)
class Seen:
    """A received request."""
    key: str
    client: str
    port: int       #: the client's
    tls: bool
    headers: dict
    body: bytes


class ScriptedOrigin:
    """On every address of a host, IPv4 and IPv6, ports 80, 443 and BESIDE. `certificate`: a file with key and
    certificate. at_once: responses begin at once."""

    def __init__(self, loop, host, certificate, *, at_once=False):
        self._loop, self._host, self._certificate, self._at_once = loop, host, str(certificate), at_once
        self._gates = {}
        self._never = asyncio.Event()   # keeps a reference, or the waiting task would be garbage-collected
        self._dropped = set()
        self._servers = []
        self._tasks = set()
        self.seen = []          #: every request that arrived, as Seen
        self.sent = 0           #: bytes of responses without TLS, headers and bodies
        self.ended = []         #: keys of the requests whose script was carried out
        loop.call(self._listen())

    def keys(self):
        """Keys of the requests that arrived, in order."""
        return [seen.key for seen in list(self.seen)]

    def open_gate(self, name):
        """Releases requests that wait at the gate, now and later."""
        self._loop.call(self._open(name))

    async def _open(self, name):
        self._gate(name).set()

    def _gate(self, name):
        return self._gates.setdefault(name, asyncio.Event())

    async def _listen(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        for family in (4, 6):
            for port, tls in ((80, None), (443, context), (BESIDE, None)):
                with self._host.inside():
                    # asyncio disables Nagle's algorithm only if the protocol is given explicitly.
                    made = socket.socket(AF[family], socket.SOCK_STREAM, socket.IPPROTO_TCP)
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == 6:
                    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                made.bind((ANY[family], port))
                patient = {'ssl_shutdown_timeout': PATIENT_S} if tls else {}
                self._servers.append(await asyncio.start_server(self._serve, sock=made, ssl=tls, backlog=1024,
                                                                **patient))

    async def _serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            used = False
            while await self._answer(reader, writer, used):
                used = True
        writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _answer(self, reader, writer, used):
        """Whether the connection may be reused."""
        head = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1').split('\r\n')
        target = urllib.parse.urlsplit(head[0].split()[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(':') for line in head[1:] if line)}
        key = target.path.lstrip('/')
        script = dict(urllib.parse.parse_qsl(target.query))
        tls = writer.get_extra_info('ssl_object') is not None
        if 'expect' in headers:
            self._write(writer, b'HTTP/1.1 100 Continue\r\n\r\n')
        body = await _read_body(reader, headers)
        self.seen.append(Seen(key, *writer.get_extra_info('peername')[:2], tls, headers, body))
        self._write(writer, b'HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n' * int(script.get('hints', 0)))
        if used and 'drop' in script and script['drop'] not in self._dropped:
            self._dropped.add(script['drop'])
            return False
        if 'gate' in script:
            await self._gate(script['gate']).wait()
        elif not self._at_once:
            await asyncio.sleep(first_byte.wait_s(SEED, head[0].split()[1]))
        if 'keeps' in script and headers.keys() & {'if-modified-since', 'if-none-match'}:
            self._write(writer, f'HTTP/1.1 304 Not Modified\r\nDate: {formatdate(usegmt=True)}\r\n\r\n'.encode())
            await writer.drain()
            self.ended.append(key)
            return headers.get('connection', '').lower() != 'close'
        size = int(script.get('size', 1000))
        framing = script.get('framing', 'length')
        self._write(writer, _head(size, framing, script.get('cache')))
        pace = int(script.get('pace', 0))
        await self._send(writer, key, int(script.get('send', size)), framing == 'chunked',
                         pace // 10 or int(script.get('chunk', PIECE)), 0.1 if pace else 0)
        then = script.get('then', 'close' if framing in ('close', 'upgrade') else '')
        if then == 'hang':
            await self._never.wait()
        if then == 'reset':
            writer.get_extra_info('socket').setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
        elif not then and framing == 'chunked':
            self._write(writer, b'0\r\n\r\n')
        await writer.drain()
        self.ended.append(key)
        return not then and headers.get('connection', '').lower() != 'close'

    def _write(self, writer, data):
        if writer.get_extra_info('ssl_object') is None:
            self.sent += len(data)
        writer.write(data)

    async def _send(self, writer, key, size, chunked, most, pause):
        for offset in range(0, size, most):
            piece = content(key, offset, min(most, size - offset))
            self._write(writer, b'%x\r\n%b\r\n' % (len(piece), piece) if chunked else piece)
            await writer.drain()
            await asyncio.sleep(pause)


async def _read_body(reader, headers):
    if 'chunked' not in headers.get('transfer-encoding', ''):
        return await reader.readexactly(int(headers.get('content-length', 0)))
    body = b''
    while size := int(await reader.readuntil(b'\r\n'), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return body


def _head(size, framing, cache):
    if framing == 'upgrade':
        return b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: e2e/1\r\n\r\n'
    lines = ['HTTP/1.1 200 OK', 'Content-Type: application/octet-stream', f'Date: {formatdate(usegmt=True)}']
    lines.append(f'Cache-Control: max-age={cache}' if cache else 'Cache-Control: no-store')
    lines.append({'length': f'Content-Length: {size}', 'chunked': 'Transfer-Encoding: chunked',
                  'close': 'Connection: close'}[framing])
    return '\r\n'.join([*lines, '', '']).encode()
