# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads counters of a host's network and sets the rate of its token bucket without starting a process: cheap enough for
ten times a second.

Sources: rtnetlink(7), linux/gen_stats.h, linux/pkt_sched.h.
"""
import errno
import fcntl
import os
import socket
import struct
from dataclasses import dataclass

from ..base.errors import TrialError

RTM_NEWQDISC, RTM_GETQDISC, NLMSG_ERROR = 36, 38, 2
NLM_F_REQUEST, NLM_F_ACK = 0x1, 0x4
NLM_F_ECHO = 0x8     #: older kernels reply only if an echo is requested
TC_H_ROOT = 0xFFFFFFFF
TCA_STATS2, TCA_STATS_BASIC, TCA_STATS_QUEUE = 7, 1, 3
TCA_KIND, TCA_OPTIONS, TCA_TBF_PARMS, TCA_TBF_BURST = 1, 2, 1, 6
#: tc_tbf_qopt: two tc_ratespecs, the second (peak rate) unused; limit, buffer, mtu.
TBF, TC_LINKLAYER_ETHERNET = struct.Struct('=BBHhHI12xIII'), 1
ETH_P_LOCAL = 0x88B5     #: for experiments: hosts ignore such frames
SIOCGIFINDEX, IFREQ_INDEX = 0x8933, struct.Struct('=16si20x')
HEADER, TCMSG = struct.Struct('=IHHII'), struct.Struct('=BxxxiIII')


@dataclass(frozen=True)
class QdiscStats:
    sent_bytes: int
    sent_packets: int
    queued_packets: int
    backlog_bytes: int
    drops: int


class Qdisc:
    """The root qdisc of one interface."""

    def __init__(self, host, interface):
        self._socket = host.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE, timeout=2.0)
        index = IFREQ_INDEX.unpack(fcntl.ioctl(self._socket, SIOCGIFINDEX, IFREQ_INDEX.pack(interface.encode(), 0)))[1]
        self._root = TCMSG.pack(socket.AF_UNSPEC, index, 0, TC_H_ROOT, 0)
        self._what = f'{interface} of {host.role}'

    def _asked(self, kind, flags, body=b''):
        """The kernel's reply to a request."""
        size = HEADER.size + len(self._root) + len(body)
        self._socket.send(HEADER.pack(size, kind, NLM_F_REQUEST | flags, 1, 0) + self._root + body)
        return self._socket.recv(1 << 16)

    def read(self):
        """The current QdiscStats. Raises TrialError if the interface no longer has a root qdisc."""
        data = self._asked(RTM_GETQDISC, NLM_F_ECHO)
        length, kind, *_ = HEADER.unpack_from(data)
        if kind == NLMSG_ERROR:
            raise TrialError(f'{self._what}: no root qdisc')
        found = _attributes(_attributes(data[HEADER.size + TCMSG.size:length]).get(TCA_STATS2, b''))
        sent, packets = struct.unpack_from('=QI', found[TCA_STATS_BASIC])
        return QdiscStats(sent, packets, *struct.unpack_from('=III', found[TCA_STATS_QUEUE]))

    def close(self):
        self._socket.close()


class TokenBucket(Qdisc):
    """A root qdisc that must be a tbf."""

    def __init__(self, host, interface):
        super().__init__(host, interface)
        self._frames = host.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._frames.bind((interface, 0))

    def change(self, rate_bps, burst, limit):
        """Changes the values (bit/s, bytes, bytes). Queued packets and counters stay, and the bucket becomes full.
        Raises TrialError."""
        parms = TBF.pack(0, TC_LINKLAYER_ETHERNET, 0, 0, 0, min(max(1, round(rate_bps / 8)), 0xFFFFFFFF), round(limit),
                         0, 0)
        options = _attribute(TCA_TBF_PARMS, parms) + _attribute(TCA_TBF_BURST, struct.pack('=I', burst))
        answer = self._asked(RTM_NEWQDISC, NLM_F_ACK,
                             _attribute(TCA_KIND, b'tbf\0') + _attribute(TCA_OPTIONS, options))
        _, kind, *_ = HEADER.unpack_from(answer)
        code, = struct.unpack_from('=i', answer, HEADER.size)
        if kind != NLMSG_ERROR or code:
            raise TrialError(f'{self._what}: the token bucket cannot be changed: {os.strerror(-code)}')

    def wake(self):
        """Sends a dummy frame of 60 bytes. The bucket sleeps until a frame conforms at the old rate, or until another
        frame arrives; one that finds the queue full wakes it, too."""
        try:
            self._frames.send(b'\xff' * 6 + bytes(6) + struct.pack('!H', ETH_P_LOCAL) + bytes(46))
        except OSError as error:
            if error.errno != errno.ENOBUFS:    # packet(7): the queue refused the frame
                raise

    def close(self):
        super().close()
        self._frames.close()


def _attribute(kind, value):
    return struct.pack('=HH', 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _attributes(data):
    """{kind: value} of netlink attributes, which are aligned to four bytes."""
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from('=HH', data, at)
        found[kind & 0x3FFF] = data[at + 4:at + length]
        at += max(4, (length + 3) & ~3)
    return found


class ReceivedBytes:
    """Bytes received by an interface, with link headers: the unit of the token bucket in front of it."""

    def __init__(self, host, interface):
        self._file = host.open('/proc/net/dev')
        self._key = f'{interface}:'
        self._what = f'{interface} of {host.role}'

    def read(self):
        for line in os.pread(self._file.fileno(), 1 << 16, 0).decode().splitlines():
            words = line.split()
            if words and words[0] == self._key:
                return int(words[1])
        raise TrialError(f'{self._what}: no such interface any more')

    def close(self):
        self._file.close()
