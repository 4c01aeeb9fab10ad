# SPDX-License-Identifier: GPL-2.0-or-later
"""ClientHellos as users send them, as raw bytes: names of every form, extensions of today, split in every way.

A gateway that reads the name must pass on all of them. The bytes are valid TLS (RFC 8446, RFC 5246), with random keys,
so a server sees a real client begin; nobody can complete the handshake. `KINDS` maps the name of each kind to its maker.
"""
import dataclasses
import struct

HANDSHAKE, APPLICATION_DATA = 22, 23        #: content types of TLS records
MOST = 1 << 14                              #: bytes in a record (RFC 8446, 5.1)
TLS10, TLS12, TLS13 = 0x0301, 0x0303, 0x0304
#: Code points: extensions, groups and their key lengths in bytes (draft-ietf-tls-ecdhe-mlkem: 1184 + 32).
SERVER_NAME, GROUPS, POINTS, SIGNATURES, ALPN, PADDING, TICKET = 0, 10, 11, 13, 16, 21, 35
PSK, EARLY_DATA, VERSIONS, PSK_MODES, KEY_SHARE, ECH = 41, 42, 43, 45, 51, 0xfe0d
X25519, SECP256R1, X25519MLKEM768 = 29, 23, 4588
KEY_BYTES = {X25519: 32, X25519MLKEM768: 1216}
#: One value of RFC 8701 (GREASE), of the sixteen that clients choose from.
GREASE = 0x8a8a
CIPHERS13 = (0x1301, 0x1302, 0x1303)
CIPHERS12 = (0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x002f)


@dataclasses.dataclass(frozen=True)
class Hello:
    """What a client sends first."""
    pieces: tuple       #: bytes of each segment; the client pauses before every one but the first
    name: str           #: the name inside, as it is written there; empty: none

    @property
    def bytes(self):
        return b''.join(self.pieces)


def _vector(length_bytes, *parts):
    body = b''.join(parts)
    return len(body).to_bytes(length_bytes, 'big') + body


def _numbers(values):
    return b''.join(struct.pack('>H', value) for value in values)


def _extension(kind, body=b''):
    return struct.pack('>H', kind) + _vector(2, body)


def _server_name(name):
    return _extension(SERVER_NAME, _vector(2, b'\0', _vector(2, name.encode())))


def _key_shares(rng, groups):
    return _extension(KEY_SHARE, _vector(2, *(
        struct.pack('>H', group) + _vector(2, rng.randbytes(KEY_BYTES.get(group, 1))) for group in groups)))


def records(body, kind=HANDSHAKE, most=MOST):
    """The body in TLS records of at most that many bytes."""
    return b''.join(struct.pack('>BH', kind, TLS10 if kind == HANDSHAKE else TLS12) + _vector(2, body[at:at + most])
                    for at in range(0, len(body), most))


def client_hello(name, rng, *, versions=(TLS13, TLS12), groups=(X25519, SECP256R1), shares=(X25519,), ciphers=(),
                 more=(), last=()):
    """A ClientHello as a handshake message, without records. name: for SNI; None: without that extension. versions:
    without TLS13 there are no extensions of 1.3. more: extensions after the common ones; last: after all others."""
    modern = TLS13 in versions
    extensions = [
        *([] if name is None else [_server_name(name)]),
        _extension(GROUPS, _vector(2, _numbers(groups))), _extension(POINTS, _vector(1, b'\0')),
        _extension(SIGNATURES, _vector(2, _numbers((0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501)))),
        _extension(ALPN, _vector(2, _vector(1, b'h2'), _vector(1, b'http/1.1'))),
        *([_extension(VERSIONS, _vector(1, _numbers(versions))), _extension(PSK_MODES, _vector(1, b'\1')),
           _key_shares(rng, shares)] if modern else []),
        *more, *last]
    body = b''.join((struct.pack('>H', TLS12), rng.randbytes(32), _vector(1, rng.randbytes(32) if modern else b''),
                     _vector(2, _numbers((*ciphers, *(CIPHERS13 if modern else ()), *CIPHERS12))), _vector(1, b'\0'),
                     _vector(2, *extensions)))
    return b'\1' + _vector(3, body)


def _whole(name, rng, **how):
    return Hello((records(client_hello(name, rng, **how)),), name or '')


def _split(hello, *offsets):
    """The same bytes with a pause at each offset; those below 0 count from the end."""
    data = hello.bytes
    cuts = [0, *sorted(offset % len(data) for offset in offsets), len(data)]
    return Hello(tuple(data[start:end] for start, end in zip(cuts, cuts[1:])), hello.name)


def _grease(name, rng):
    return _whole(name, rng, versions=(GREASE, TLS13, TLS12), groups=(GREASE, X25519, SECP256R1),
                  shares=(GREASE, X25519), ciphers=(GREASE,), more=[_extension(GREASE)],
                  last=[_extension(0xdada, b'\0')])


def _ech(name, rng):
    """Its SNI is the outer name; the payload would be the encrypted inner ClientHello."""
    payload = (b'\0', struct.pack('>HHB', 1, 1, rng.randrange(256)), _vector(2, rng.randbytes(32)),
               _vector(2, rng.randbytes(208)))
    return _whole(name, rng, more=[_extension(ECH, b''.join(payload))])


def _post_quantum(name, rng):
    return _whole(name, rng, groups=(X25519MLKEM768, X25519, SECP256R1), shares=(X25519MLKEM768, X25519),
                  more=[_extension(PADDING, bytes(200))])


def _inside_the_name(name, rng):
    hello = _post_quantum(name, rng)
    middle = hello.bytes.index(name.encode()) + len(name) // 2
    return _split(hello, 1, 4, 5, 9, middle, -1)


def _many_records(name, rng):
    return Hello((records(client_hello(name, rng), most=64),), name)


def _resumed(name, rng, early=b''):
    """TLS 1.3 with a ticket of 200 bytes; early: bytes of 0-RTT data, which follow at once."""
    offered = _vector(2, _vector(2, rng.randbytes(200)) + rng.randbytes(4)) + _vector(2, _vector(1, rng.randbytes(32)))
    message = client_hello(name, rng, more=[_extension(EARLY_DATA)] if early else (), last=[_extension(PSK, offered)])
    return Hello((records(message) + (records(early, APPLICATION_DATA) if early else b''),), name)


#: {kind: maker(name, rng)}: the Hello of a client that wants the server `name`. rng: a random.Random.
KINDS = {
    'tls1.3': _whole,
    'tls1.2': lambda name, rng: _whole(name, rng, versions=(TLS12,)),
    'tls1.2-ticket': lambda name, rng: _whole(name, rng, versions=(TLS12,),
                                              more=[_extension(TICKET, rng.randbytes(1500))]),
    'capitals': lambda name, rng: _whole(name.upper(), rng),
    'final-dot': lambda name, rng: _whole(f'{name}.', rng),
    'ipv4-literal': lambda _, rng: _whole('192.0.2.1', rng),
    'ipv6-literal': lambda _, rng: _whole('2001:db8::1', rng),
    'no-name': lambda _, rng: _whole(None, rng),
    'grease': _grease,
    'ech': _ech,
    'resumption': _resumed,
    'early-data': lambda name, rng: _resumed(name, rng, rng.randbytes(900)),
    'post-quantum': _post_quantum,
    'two-pieces': lambda name, rng: _split(_post_quantum(name, rng), 1400),
    'odd-pieces': _inside_the_name,
    'many-records': _many_records,
}
