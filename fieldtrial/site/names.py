# SPDX-License-Identifier: GPL-2.0-or-later
"""Queries a name server from a host of the scenario, as a program there would (RFC 1035, one question over UDP)."""
import ipaddress
import socket
import struct

from ..base.errors import TrialError

HEADER = struct.Struct('!6H')
ID, RECURSION_DESIRED, A, IN = 0x6d73, 0x0100, 1, 1
#: Answer record that refers to the question's name by a pointer: pointer, type, class, time to live, length.
ANSWER = struct.Struct('!HHHIH')


def look_up(host, source, nameserver, name, timeout=5.0):
    """The IPv4 address of `name`, queried from address `source` of `host`. Raises TrialError."""
    labels = b''.join(bytes([len(label)]) + label.encode() for label in name.split('.'))
    question = labels + b'\0' + struct.pack('!HH', A, IN)
    try:
        with host.socket(socket.AF_INET, socket.SOCK_DGRAM, source=source, peer=(nameserver, 53),
                         timeout=timeout) as asking:
            asking.send(HEADER.pack(ID, RECURSION_DESIRED, 1, 0, 0, 0) + question)
            answer = asking.recv(512)
    except OSError as error:
        raise TrialError(f'{source} asked {nameserver} for {name}: {error}') from None
    at = HEADER.size + len(question)
    if len(answer) >= at + ANSWER.size + 4 and HEADER.unpack_from(answer)[0] == ID:
        _, kind, _, _, length = ANSWER.unpack_from(answer, at)
        if (kind, length) == (A, 4):
            return str(ipaddress.IPv4Address(answer[at + ANSWER.size:at + ANSWER.size + 4]))
    raise TrialError(f'{source} asked {nameserver} for {name}, and the answer has no address in it: {answer.hex()}')
