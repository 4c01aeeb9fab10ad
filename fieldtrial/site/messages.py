# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages between a host's agent and the trial over a unix socket: a length, JSON, and passed file descriptors."""
import json
import socket
import struct

LENGTH = struct.Struct('=I')
LONGEST = 64 << 20
MOST_FILES = 4


def send(connection, message, files=()):
    """Sends a message (any JSON value); `files`: descriptors to pass to the other side."""
    data = json.dumps(message).encode()
    socket.send_fds(connection, [LENGTH.pack(len(data))], list(files))
    connection.sendall(data)


def receive(connection):
    """(message, descriptors), or (None, []) if the other side has closed. Raises OSError, ValueError."""
    head, files, _, _ = socket.recv_fds(connection, LENGTH.size, MOST_FILES)
    if head and len(head) < LENGTH.size:
        head += _exactly(connection, LENGTH.size - len(head))
    if len(head) < LENGTH.size:
        return None, []
    length, = LENGTH.unpack(head)
    if length > LONGEST:
        raise ValueError(f'a message of {length} bytes: at most {LONGEST} are allowed')
    data = _exactly(connection, length)
    return (json.loads(data), files) if len(data) == length else (None, [])


def _exactly(connection, length):
    parts = []
    while length:
        part = connection.recv(min(length, 1 << 16))
        if not part:
            break
        parts.append(part)
        length -= len(part)
    return b''.join(parts)
