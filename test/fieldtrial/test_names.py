# SPDX-License-Identifier: GPL-2.0-or-later
"""Queries to a name server, over loopback."""
import contextlib
import socket
import threading

import pytest

from fieldtrial.base.errors import TrialError
from fieldtrial.site import addresses, host, names

QUESTION = bytes.fromhex('6d730100000100000000000003733031047465737400 00010001')
ADDRESS = bytes.fromhex('c00c 0001 0001 00000e10 0004 c6130101')


class Here(host.Host):
    """This machine, with a name server on a separate port."""

    def __init__(self, port):
        super().__init__('here', 'here')
        self._port = port

    def socket(self, family, kind, protocol=0, *, source=None, peer=None, timeout=None):
        return host.new_socket(family, kind, protocol, source, (peer[0], self._port), timeout)

    run = popen = open = set_kernel = None


@contextlib.contextmanager
def answering(answer):
    """A host whose name server gives this answer, and the list of its queries with their transports."""
    asked = []

    def serve():
        question, peer = server.recvfrom(512)
        asked.append((question, peer[0]))
        server.sendto(answer, peer)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(('127.0.0.1', 0))
        thread = threading.Thread(target=serve)
        thread.start()
        yield Here(server.getsockname()[1]), asked
        thread.join(60)


def test_a_name_is_asked_for_and_understood():
    with answering(b'\x6d\x73\x81\x80\0\x01\0\x01\0\0\0\0' + QUESTION[12:] + ADDRESS) as (here, asked):
        assert names.look_up(here, '127.0.0.5', '127.0.0.1', 's01.test') == '198.19.1.1'
    assert asked == [(QUESTION, '127.0.0.5')]


@pytest.mark.parametrize('answer', [
    b'', b'\x6d\x73\x81\x83\0\x01\0\0\0\0\0\0' + QUESTION[12:],                      # no such name
    b'\0\0\x81\x80\0\x01\0\x01\0\0\0\0' + QUESTION[12:] + ADDRESS,                   # answer to another question
    b'\x6d\x73\x81\x80\0\x01\0\x01\0\0\0\0' + QUESTION[12:] + ADDRESS.replace(b'\0\x01\0\x01', b'\0\x1c\0\x01'),
    b'\x6d\x73\x81\x80\0\x01\0\x01\0\0\0\0' + QUESTION[12:] + ADDRESS[:-1]])
def test_an_answer_without_an_address_is_refused(answer):
    with answering(answer) as (here, _), pytest.raises(TrialError, match='asked 127.0.0.1 for s01.test, and the answer '
                                                                         'has no address in it: '):
        names.look_up(here, None, '127.0.0.1', 's01.test')


def test_another_resolver_knows_none_of_the_addresses_of_a_server():
    servers = addresses.servers((10.0, 20.0, 200.0))
    for known in (servers, servers[:1]):
        others = addresses.elsewhere(known)
        assert [server.name for server in others] == [server.name for server in known]
        for server, other in zip(known, others):
            assert not set(server.addresses) & set(other.addresses)
    assert addresses.elsewhere(servers[:1])[0].v4 == addresses.REFUSING.v4
