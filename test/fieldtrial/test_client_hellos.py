# SPDX-License-Identifier: GPL-2.0-or-later
"""The ClientHellos of fieldtrial/load/client_hellos.py: OpenSSL accepts each, and finds the name in it."""
import random
import ssl
import subprocess

import pytest

from fieldtrial.load import client_hellos

NAME = 'www.example.test'


@pytest.fixture(scope='module')
def certificate(tmp_path_factory):
    path = tmp_path_factory.mktemp('tls') / 'server.pem'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=server',
                    '-keyout', path, '-out', path], check=True, capture_output=True)
    return path


def test_sixteen_kinds():
    assert len(client_hellos.KINDS) == 16


@pytest.mark.parametrize('kind', client_hellos.KINDS)
def test_a_server_answers_and_sees_the_name(kind, certificate):
    names = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _, name, __: names.append(name)
    hello = client_hellos.KINDS[kind](NAME, random.Random(7))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    for piece in hello.pieces:
        incoming.write(piece)
        with pytest.raises(ssl.SSLWantReadError):
            server.do_handshake()
        assert (outgoing.pending > 0) == (piece is hello.pieces[-1]), 'an answer only to the whole ClientHello'
    assert outgoing.read()[0] == client_hellos.HANDSHAKE
    assert names == [hello.name or None]


def test_what_the_kinds_differ_in():
    def made(kind, seed=7):
        return client_hellos.KINDS[kind](NAME, random.Random(seed))
    assert made('capitals').name == NAME.upper() and made('final-dot').name == f'{NAME}.'
    assert len(made('post-quantum').bytes) > 1460, 'more than a segment'
    assert made('odd-pieces').bytes == made('two-pieces').bytes == made('post-quantum').bytes
    assert max(map(len, made('two-pieces').pieces)) < 1460 and len(made('odd-pieces').pieces) == 7
    assert all(NAME.encode() not in piece for piece in made('odd-pieces').pieces)
    assert made('early-data').bytes.startswith(bytes((client_hellos.HANDSHAKE, 3, 1)))
    assert made('tls1.3').bytes != made('tls1.3', 8).bytes
