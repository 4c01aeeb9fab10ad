# SPDX-License-Identifier: GPL-2.0-or-later
"""A name server on a host of a test. It gives configured answers and records the queries."""
import contextlib
import ipaddress
import socket
import struct
import threading

NXDOMAIN, SERVFAIL = 3, 2       #: RFC 1035, 4.1.1
SILENT = None
#: Queries for addresses: RFC 1035, RFC 3596.
TYPES = {4: 1, 6: 28}


class Resolver:
    """answer: for every name a list of addresses, NXDOMAIN, SERVFAIL or SILENT; may be changed meanwhile. asked: the
    names in the order of queries, those of both families twice."""

    def __init__(self, answer=NXDOMAIN):
        self.answer, self.asked, self._ended = answer, [], False

    @contextlib.contextmanager
    def on(self, host, address='127.0.0.1'):
        """Serves UDP port 53 of the host."""
        with host.inside():
            listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with listening:
            listening.bind((address, 53))
            serving = threading.Thread(target=self._serve, args=(listening,), daemon=True)
            serving.start()
            try:
                yield self
            finally:
                self._ended = True
                with host.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waking:
                    waking.sendto(b'', (address, 53))
                serving.join()

    def _serve(self, listening):
        while True:
            query, client = listening.recvfrom(512)
            if self._ended:
                return
            if reply := self._reply(query):
                listening.sendto(reply, client)

    def _reply(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        self.asked.append('.'.join(labels))
        if self.answer is SILENT:
            return None
        question, (kind,) = query[12:at + 5], struct.unpack_from('>H', query, at + 1)
        failed = self.answer if isinstance(self.answer, int) else 0
        addresses = [] if failed else [one for one in map(ipaddress.ip_address, self.answer)
                                       if TYPES[one.version] == kind]
        return (query[:2] + struct.pack('>HHHHH', 0x8180 | failed, 1, len(addresses), 0, 0) + question +
                b''.join(struct.pack('>HHHIH', 0xc00c, kind, 1, 60, len(one.packed)) + one.packed
                         for one in addresses))
