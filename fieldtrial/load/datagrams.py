# SPDX-License-Identifier: GPL-2.0-or-later
"""What users send to UDP port 443: tunnels and calls that are not QUIC, and QUIC. Both ends of each conversation.

A kind is {datagram of the client: the server's answer}, in order. The datagrams begin with the bytes of the real
protocol, since a gateway tells QUIC from others by them; the rest is random, but always the same.
"""
import asyncio

from .protocols import Differs, MAGIC, SESSION, noise

#: A datagram without an answer is repeated after this time, s (the first time of RFC 9147, 5.8.2).
REPEAT_S = 1.0
DTLS10, DTLS12 = b'\xfe\xff', b'\xfe\xfd'
COOKIE = noise('cookie', 20)
#: QUIC version 1 (RFC 9000, 17.2.2): a client's first datagram is an Initial packet of at least 1200 bytes.
INITIAL = b'\xc3\0\0\0\1\x08' + noise('destination', 8)
INITIAL_BYTES = 1200


def _record(sequence, kind, body, version=DTLS12):
    """A DTLS record with a handshake message (RFC 6347, 4.1 and 4.2.2)."""
    size = len(body).to_bytes(3)
    message = bytes([kind]) + size + sequence.to_bytes(2) + bytes(3) + size + body
    return b'\x16' + version + sequence.to_bytes(8) + len(message).to_bytes(2) + message


def _dtls_hello(sequence, cookie):
    random = noise('dtls', 32)
    return _record(sequence, 1, DTLS12 + random + b'\0' + bytes([len(cookie)]) + cookie + b'\0\2\xc0\x2b\1\0',
                   DTLS10)


def _padded(first, name):
    return first + noise(name, INITIAL_BYTES - len(first))


KINDS = {
    # Handshake initiation and response, transport data (the whitepaper's 5.4).
    'wireguard, UDP 443': {
        b'\1\0\0\0' + noise('initiation', 144): b'\2\0\0\0' + noise('response', 88),
        b'\4\0\0\0' + noise('keepalive', 28): b'\4\0\0\0' + noise('data', 1400)},
    # ClientHello, HelloVerifyRequest; the same with its cookie, ServerHello.
    'dtls, UDP 443': {
        _dtls_hello(0, b''): _record(0, 3, DTLS10 + bytes([len(COOKIE)]) + COOKIE, DTLS10),
        _dtls_hello(1, COOKIE): _record(1, 2, DTLS12 + noise('server', 32) + b'\0\xc0\x2b\0')},
    # P_CONTROL_HARD_RESET_CLIENT_V2 and its answer, as over TCP without the length.
    'openvpn, UDP 443': {
        b'\x38' + SESSION + b'\0' + b'\0\0\0\0': b'\x40' + noise('server', 8) + b'\1\0\0\0\0' + SESSION + b'\0\0\0\0'},
    # Binding request; success with XOR-MAPPED-ADDRESS (RFC 8489).
    'stun, UDP 443': {
        b'\0\1\0\0' + MAGIC + noise('stun', 12): b'\1\1\0\x0c' + MAGIC + noise('stun', 12) + b'\0\x20\0\x08\0\1'
                                                 + noise('address', 6)}}
QUIC = {_padded(INITIAL, 'client initial'): _padded(INITIAL, 'server initial')}


class Server(asyncio.DatagramProtocol):
    """Answers the datagrams of a kind."""

    def __init__(self, answers):
        self._answers, self._transport = answers, None

    def connection_made(self, transport):
        self._transport = transport

    def datagram_received(self, data, address):
        if data in self._answers:
            self._transport.sendto(self._answers[data], address)


class _Arrivals(asyncio.DatagramProtocol):
    def __init__(self):
        self.queue = asyncio.Queue()

    def datagram_received(self, data, _address):
        self.queue.put_nowait(data)

    def error_received(self, error):
        self.queue.put_nowait(error)


async def converse(answers, peer, source):
    """The client's end, from (address, port) `source` to `peer`. Repeats what has no answer, until cancelled. Raises
    Differs, or the OSError of a refusal."""
    transport, arrivals = await asyncio.get_running_loop().create_datagram_endpoint(
        _Arrivals, local_addr=source, remote_addr=peer)
    try:
        for question, wanted in answers.items():
            await _ask(transport, arrivals.queue, question, wanted)
    finally:
        transport.abort()


async def _ask(transport, arrivals, question, wanted):
    while True:
        transport.sendto(question)
        try:
            async with asyncio.timeout(REPEAT_S):
                got = await arrivals.get()
        except TimeoutError:
            continue
        if isinstance(got, OSError):
            raise got
        if got == wanted:
            return
        # The answer to a question that was repeated comes twice.
        if got not in ANSWERS:
            raise Differs(f'expected {wanted[:40]!r}, received {got[:40]!r}')


ANSWERS = frozenset(answer for kind in (*KINDS.values(), QUIC) for answer in kind.values())
