# SPDX-License-Identifier: GPL-2.0-or-later
"""What users send to ports 443 and 80 that is neither TLS nor plain HTTP, with both ends of each conversation.

A *kind* begins with the first bytes of the real protocol, in the real order: who speaks first is what a gateway that
reads greetings must get right. Then the client sends bytes that the server returns. The ends are coroutines for
asyncio.start_server and asyncio.open_connection; the caller closes the client's connection and measures the time.
"""
import asyncio
import base64
import dataclasses
import hashlib
import random
from collections.abc import Awaitable, Callable

TLS_PORT, HTTP_PORT = 443, 80
CLIENT, SERVER = 'client', 'server'
#: Bytes that are returned if the caller of `talk` does not say how many.
ECHO = 3000
#: Seconds for which both ends of the chat say nothing: longer than a gateway waits for a first or next byte.
PAUSE = 0.8


class Differs(Exception):
    """The other end's bytes are not those of the protocol, or the connection ended before them."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """serve(reader, writer): the server's end, for one connection. talk(reader, writer, echo=ECHO): the client's, which
    has `echo` bytes returned; raises Differs, or OSError from the connection."""
    name: str
    port: int
    serve: Callable[..., Awaitable[None]]
    talk: Callable[..., Awaitable[None]]


async def expect(reader, wanted):
    try:
        got = await reader.readexactly(len(wanted))
    except asyncio.IncompleteReadError as end:
        raise Differs(f'the connection ended after {end.partial[:40]!r}, expected {wanted[:40]!r}') from end
    if got != wanted:
        raise Differs(f'expected {wanted[:40]!r}, received {got[:40]!r}')


async def head(reader):
    """The first line of an HTTP message, and its fields by lower-case name."""
    try:
        text = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1')
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as end:
        raise Differs('expected the head of an HTTP message') from end
    first, *fields = text.rstrip().split('\r\n')
    return first, {name.lower(): value.strip() for name, _, value in (field.partition(':') for field in fields)}


def host(writer):
    """The server's address, as in a URL."""
    address = writer.get_extra_info('peername')[0]
    return f'[{address}]' if ':' in address else address


async def play(me, steps, reader, writer):
    """Plays the side `me` of a conversation, and the peer the other. A step is (side, bytes): that side sends them;
    or (side, seconds): that side waits."""
    for who, what in steps:
        if not isinstance(what, bytes):
            await asyncio.sleep(what if who == me else 0)
        elif who == me:
            writer.write(what)
            await writer.drain()
        else:
            await expect(reader, what)


async def return_bytes(reader, writer):
    """Sends back what arrives, to the end."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def have_returned(reader, writer, count):
    data = noise('echo', count)
    writer.write(data)
    await asyncio.gather(writer.drain(), expect(reader, data))


def noise(name, count):
    """Bytes that look like encrypted ones, always the same; without a line end, for which a reader of lines waits."""
    return random.Random(name).randbytes(count).replace(b'\n', b'\x0b')


def scripted(name, port, *steps):
    async def serve(reader, writer):
        await play(SERVER, steps, reader, writer)
        await return_bytes(reader, writer)

    async def talk(reader, writer, echo=ECHO):
        await play(CLIENT, steps, reader, writer)
        await have_returned(reader, writer, echo)
    return Kind(name, port, serve, talk)


def sized(payload, length_bytes=2):
    return len(payload).to_bytes(length_bytes) + payload


def half_close(name, port, length=None):
    """The client ends its direction and then receives the answer, as `nc -N` and many a script do. length: bytes of the
    question, as many as are to be returned if not given."""
    async def serve(reader, writer):
        question = await reader.read(-1)
        writer.write(hashlib.sha256(question).digest() + question)
        await writer.drain()

    async def talk(reader, writer, echo=ECHO):
        question = noise(name, length or echo)
        writer.write(question)
        writer.write_eof()
        await expect(reader, hashlib.sha256(question).digest() + question)
        if await reader.read(1):
            raise Differs('bytes after the end of the answer')
    return Kind(name, port, serve, talk)


def web_socket(name, port):
    """RFC 6455: the client's key, the server's proof."""
    key = base64.b64encode(noise(name, 16)).decode()

    def proof(of):
        return base64.b64encode(hashlib.sha1((of + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()).decode()

    async def serve(reader, writer):
        _, fields = await head(reader)
        if fields.get('upgrade', '').lower() != 'websocket' or 'sec-websocket-key' not in fields:
            writer.write(b'HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: upgrade\r\n'
                         b'Content-Length: 0\r\n\r\n')
            return
        writer.write(f'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
                     f'Sec-WebSocket-Accept: {proof(fields["sec-websocket-key"])}\r\n\r\n'.encode())
        await return_bytes(reader, writer)

    async def talk(reader, writer, echo=ECHO):
        writer.write(f'GET /chat HTTP/1.1\r\nHost: {host(writer)}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
                     f'Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n'.encode())
        first, fields = await head(reader)
        if ' 101 ' not in first or fields.get('sec-websocket-accept') != proof(key):
            raise Differs(f'expected 101 and the proof of the key, received {first}')
        await have_returned(reader, writer, echo)
    return Kind(name, port, serve, talk)


PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
SETTINGS, SETTINGS_ACK = b'\0\0\0\4\0\0\0\0\0', b'\0\0\0\4\1\0\0\0\0'
#: HEADERS of stream 1: GET of http://h2.test/, and :status 200.
GET = b'\0\0\x0c\1\5\0\0\0\1\x82\x84\x86\x41\x07h2.test'
OK = b'\0\0\1\1\4\0\0\0\1\x88'


def h2c_upgrade(name, port):
    """The upgrade to HTTP/2 of RFC 7540, 3.2. A server need not switch, and a proxy may remove the offer: then the
    answer is HTTP/1.1, which the client takes as well."""
    async def serve(reader, writer):
        first, fields = await head(reader)
        body = noise('echo', int(first.split()[1].rpartition('/')[2]))
        if fields.get('upgrade', '').lower() == 'h2c' and 'http2-settings' in fields:
            writer.write(b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n' + SETTINGS)
            await expect(reader, PREFACE + SETTINGS)
            writer.write(SETTINGS_ACK + OK + body)
        else:
            writer.write(f'HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body)
        await writer.drain()

    async def talk(reader, writer, echo=ECHO):
        writer.write(f'GET /{echo} HTTP/1.1\r\nHost: {host(writer)}\r\nConnection: Upgrade, HTTP2-Settings\r\n'
                     f'Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n'.encode())
        first, _ = await head(reader)
        if ' 101 ' in first:
            await expect(reader, SETTINGS)
            writer.write(PREFACE + SETTINGS)
            await expect(reader, SETTINGS_ACK + OK)
        elif ' 200 ' not in first:
            raise Differs(f'expected 101 or 200, received {first}')
        await expect(reader, noise('echo', echo))
    return Kind(name, port, serve, talk)


SSH_CLIENT, SSH_SERVER = b'SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7\r\n', b'SSH-2.0-OpenSSH_10.0p2 Debian-7\r\n'


def kex(name):
    """SSH's first packet: padding, SSH_MSG_KEXINIT, a cookie, algorithms."""
    names = b''.join(sized(text, 4) for text in (b'mlkem768x25519-sha256,curve25519-sha256', b'ssh-ed25519',
                                                 b'aes128-gcm@openssh.com', b'aes128-gcm@openssh.com'))
    return sized(b'\x06\x14' + noise(name, 16) + names + b'\0' * 6, 4)


MAGIC = bytes.fromhex('2112a442')      # of STUN
TURN_TRANSACTION = MAGIC + noise('turn', 12)
SESSION = noise('openvpn', 8)

KINDS = (
    scripted('ssh', TLS_PORT, (CLIENT, SSH_CLIENT), (SERVER, SSH_SERVER), (CLIENT, kex('client')),
             (SERVER, kex('server'))),
    # PuTTY and libssh wait for the server's version.
    scripted('ssh, server first', TLS_PORT, (SERVER, SSH_SERVER), (CLIENT, SSH_CLIENT + kex('client')),
             (SERVER, kex('server'))),
    # P_CONTROL_HARD_RESET_CLIENT_V2 and its answer.
    scripted('openvpn', TLS_PORT, (CLIENT, sized(b'\x38' + SESSION + b'\0' + b'\0\0\0\0')),
             (SERVER, sized(b'\x40' + noise('server', 8) + b'\1\0\0\0\0' + SESSION + b'\0\0\0\0'))),
    # Obfuscated: 64 random bytes hold the key, the rest is encrypted with it.
    scripted('mtproto', TLS_PORT, (CLIENT, noise('mtproto', 64 + 44)), (SERVER, noise('resPQ', 88))),
    # WhatsApp's: a version, then a Noise XX handshake in frames of a protocol buffer.
    scripted('noise', TLS_PORT, (CLIENT, b'WA\x06\x03' + sized(b'\x12\x22\x0a\x20' + noise('ephemeral', 32), 3)),
             (SERVER, sized(b'\x1a\xf6\x01' + noise('server hello', 246), 3)), (CLIENT, sized(noise('finish', 180), 3))),
    # Allocate with REQUESTED-TRANSPORT, answered by 401 with REALM.
    scripted('turn', TLS_PORT, (CLIENT, b'\0\3\0\x08' + TURN_TRANSACTION + b'\0\x19\0\4\x11\0\0\0'),
             (SERVER, b'\1\x13\0\x18' + TURN_TRANSACTION + b'\0\x09\0\4\0\0\4\1' + b'\0\x14\0\x0cturn.example')),
    scripted('xmpp', TLS_PORT,
             (CLIENT, b"<?xml version='1.0'?><stream:stream to='im.test' xmlns='jabber:client' "
                      b"xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"),
             (SERVER, b"<?xml version='1.0'?><stream:stream from='im.test' id='1' version='1.0'><stream:features>"
                      b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:features>")),
    # Minecraft's: protocol version, name and port of the server, next state; then the player's name.
    scripted('game', TLS_PORT, (CLIENT, sized(b'\0\xff\5' + sized(b'play.test', 1) + b'\x01\xbb\2', 1)),
             (CLIENT, sized(b'\0' + sized(b'steve', 1) + noise('uuid', 16), 1)),
             (SERVER, sized(b'\3\x80\2', 1))),
    scripted('smtp, server first', TLS_PORT, (SERVER, b'220 mail.test ESMTP ready\r\n'), (CLIENT, b'EHLO client\r\n'),
             (SERVER, b'250-mail.test\r\n250 STARTTLS\r\n')),
    scripted('irc', TLS_PORT, (CLIENT, b'CAP LS 302\r\n'), (CLIENT, b'NICK ada\r\nUSER ada 0 * :Ada\r\n'),
             (SERVER, b':irc.test CAP * LS :sasl\r\n:irc.test 001 ada :Welcome\r\n'), (SERVER, b'PING :1\r\n'),
             (CLIENT, b'PONG :1\r\n')),
    # Two bytes without an end of line, after which the client waits; later both are silent.
    scripted('chat that pauses', TLS_PORT, (CLIENT, PAUSE), (CLIENT, b'hi'), (SERVER, b'hello'), (CLIENT, PAUSE),
             (CLIENT, b'are you there?'), (SERVER, PAUSE), (SERVER, b'yes')),
    half_close('half-close', TLS_PORT),
    web_socket('websocket, port 80', HTTP_PORT),
    scripted('h2c, port 80', HTTP_PORT, (CLIENT, PREFACE + SETTINGS), (SERVER, SETTINGS + SETTINGS_ACK),
             (CLIENT, SETTINGS_ACK + GET), (SERVER, OK)),
    h2c_upgrade('h2c by upgrade, port 80', HTTP_PORT),
    scripted('mtproto, port 80', HTTP_PORT, (CLIENT, noise('mtproto', 64 + 44)), (SERVER, noise('resPQ', 88))),
    scripted('ssh, server first, port 80', HTTP_PORT, (SERVER, SSH_SERVER), (CLIENT, SSH_CLIENT + kex('client')),
             (SERVER, kex('server'))),
)
