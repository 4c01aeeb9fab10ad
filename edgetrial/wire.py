# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures packets that arrive at an interface: time, flow, length, and DSCP and ECN marks."""
import collections
import select
import socket
import struct
import threading
import time

from fieldtrial.base.errors import TrialError

ETH_P_ALL = 3                   # linux/if_ether.h
ETH_P_IP, ETH_P_IPV6 = 0x0800, 0x86dd
PACKET_OUTGOING = 4             # linux/if_packet.h
PACKET_STATISTICS, SOL_PACKET = 6, 263
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35     # asm-generic/socket.h
TIMESPEC = struct.Struct('=qq')
#: IPv6 extension headers with a length field (RFC 8200).
_OPTIONS = (0, 43, 60)
_FRAGMENT = 44
BUFFER = 16 << 20

#: at: CLOCK_MONOTONIC, s. length: bytes of the IP packet. dscp, ecn: of its TOS or traffic class. Ports are None if
#: there are none, as in later fragments. offset: of a fragment, in bytes. payload: start of the UDP payload in `data`,
#: the packet.
Packet = collections.namedtuple(
    'Packet', 'at source destination protocol from_port to_port dscp ecn length offset payload data')


def parse(data, at=0.0):
    """The Packet; None if this is not a valid IP packet."""
    try:
        return _parse4(data, at) if data[0] >> 4 == 4 else _parse6(data, at) if data[0] >> 4 == 6 else None
    except (IndexError, ValueError, struct.error):     # truncated
        return None


def _parse4(data, at):
    tos, length, fragment, protocol = struct.unpack_from('!xBHxxHxBxx', data)
    return _made(data, at, tos, length, protocol, (fragment & 0x1fff) * 8, (data[0] & 15) * 4,
                 socket.inet_ntop(socket.AF_INET, data[12:16]), socket.inet_ntop(socket.AF_INET, data[16:20]))


def _parse6(data, at):
    first, length, protocol = struct.unpack_from('!IHB', data)
    here, offset = 40, 0
    while protocol in _OPTIONS or protocol == _FRAGMENT:
        if protocol == _FRAGMENT:
            offset, size = struct.unpack_from('!H', data, here + 2)[0] & 0xfff8, 8
        else:
            size = (data[here + 1] + 1) * 8
        protocol, here = data[here], here + size
    return _made(data, at, first >> 20 & 255, length + 40, protocol, offset, here,
                 socket.inet_ntop(socket.AF_INET6, data[8:24]), socket.inet_ntop(socket.AF_INET6, data[24:40]))


def _made(data, at, tos, length, protocol, offset, here, source, destination):
    ports = (None, None)
    if protocol in (socket.IPPROTO_TCP, socket.IPPROTO_UDP) and not offset and len(data) >= here + 4:
        ports = struct.unpack_from('!HH', data, here)
    return Packet(at, source, destination, protocol, *ports, tos >> 2, tos & 3, length, offset, here + 8, data)


class Wire:
    """Captures the input of an interface of a host within its block. Usable with `with`; leaving it raises TrialError
    if packets arrived faster than they were read and some are missing."""

    def __init__(self, host, interface, snap=128):
        """snap: bytes kept of each packet."""
        with host.inside():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
            # Time of arrival instead of reading, which can be tenths of a second later on a busy machine.
            self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            self._socket.bind((interface, ETH_P_ALL))
        self._snap = snap
        self._epoch = time.time() - time.monotonic()
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._read, name='wire', daemon=True)
        self.packets = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.close()
        self._thread.join()
        self._stopped.close()
        _, lost = struct.unpack('=II', self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self._socket.close()
        if lost:
            raise TrialError(f'{lost} packets came faster than they could be read: what was counted is too little')

    def _read(self):
        while True:
            ready, _, _ = select.select((self._socket, self._stopped), (), ())
            if self._socket in ready:
                data, ancillary, _, (_, kind, direction, *_) = self._socket.recvmsg(self._snap, 64)
                if direction != PACKET_OUTGOING and kind in (ETH_P_IP, ETH_P_IPV6):
                    seconds, nanoseconds = TIMESPEC.unpack(ancillary[0][2])
                    packet = parse(data, seconds - self._epoch + nanoseconds / 1e9)
                    if packet:
                        self.packets.append(packet)
            elif ready:
                return

    def of(self, flow, start=0.0, end=float('inf')):
        """The packets of a flow that arrived at or after `start` and before `end`."""
        return [packet for packet in self.packets if start <= packet.at < end and flow.is_packet(packet)]

    def rate_bps(self, flow, start, end):
        """A flow's rate on the link, counting whole IP packets."""
        return sum(packet.length for packet in self.of(flow, start, end)) * 8 / (end - start)
