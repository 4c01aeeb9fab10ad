# SPDX-License-Identifier: GPL-2.0-or-later
"""One-way delay of packets, from datagrams that carry the time at which they were sent."""
import socket
import statistics
import struct
import time

STAMP = struct.Struct('!4sQ')   # MAGIC, CLOCK_MONOTONIC in ns
MAGIC = b'mEDG'


class Probe:
    """Datagrams from an address of the senders to one of the receivers. A context manager.

    tos: the TOS byte or traffic class. size: bytes of payload.
    """

    def __init__(self, link, source, destination, port, *, tos=0, size=100):
        version6 = ':' in source
        with link.senders_host.inside():
            self._socket = socket.socket(socket.AF_INET6 if version6 else socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((source, 0))
        self._socket.setsockopt(*((socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if version6 else
                                  (socket.IPPROTO_IP, socket.IP_TOS)), tos)
        self._to, self._rest = (destination, port), bytes(size - STAMP.size)
        self.from_port, self.port = self._socket.getsockname()[1], port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self):
        """Sends one datagram now."""
        self._socket.sendto(STAMP.pack(MAGIC, time.monotonic_ns()) + self._rest, self._to)

    def is_packet(self, packet):
        """Whether a packet seen by Wire is one of these."""
        return (packet.from_port, packet.to_port, packet.protocol) == (self.from_port, self.port, socket.IPPROTO_UDP)

    def delays(self, wire):
        """One-way delay of each datagram that has arrived, in seconds."""
        return [packet.at - STAMP.unpack_from(packet.data, packet.payload)[1] / 1e9 for packet in wire.of(self)]

    def median_delay(self, wire):
        """Seconds; inf if none has arrived."""
        return statistics.median(self.delays(wire) or [float('inf')])


def send_for(probes, seconds, gap=0.02):
    """Sends one datagram of each probe every `gap` seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for probe in probes:
            probe.send()
        time.sleep(gap)
