# SPDX-License-Identifier: GPL-2.0-or-later
"""Constant bit rate: the schedule of frames, the count of losses, and a stream over loopback."""
import csv
import io
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from fieldtrial.load import stream


@pytest.mark.parametrize('share', [0.2, 0.4, 0.6])
@pytest.mark.parametrize('capacity', [2e6, 10e6])
def test_rate_is_exact_in_a_burst(share, capacity):
    bursts = ((40.0, 80.0), (120.0, 160.0))
    times = list(stream.times(share * capacity, 1000, bursts))
    for start, end in bursts:
        count = sum(start <= t < end for t in times)
        assert count * 8000 / (end - start) == pytest.approx(share * capacity, rel=1e-3)
    assert len(times) == sum(any(start <= t < end for start, end in bursts) for t in times)
    assert times == sorted(times)


def test_bursts():
    times = list(stream.times(1e6, 1000, ((5.0, 7.5), (20.0, 21.0))))
    assert len(times) == 438 and all(5 <= when < 7.5 or 20 <= when < 21 for when in times)


def test_frames_are_counted_and_what_is_missing_or_out_of_order():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        receiver = stream.Receiver(sock, 0.0, io.StringIO())
        for number in (0, 1, 2, 5, 4, 6, 9):
            receiver.take(stream.NUMBER.pack(number, 0.0) + bytes(100))
    assert receiver.counts == [7, 7 * (42 + 16 + 100), 3]


def test_the_delay_of_each_datagram_is_recorded_where_somebody_wants_to_know():
    delays = io.StringIO()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        receiver = stream.Receiver(sock, 0.0, io.StringIO(), delays)
        receiver.take(stream.NUMBER.pack(0, time.monotonic() - 0.25))
    head, row = csv.reader(delays.getvalue().splitlines())
    assert head == ['t', 'delay_ms'] and 250 <= float(row[1]) < 10_000


def _start(*arguments):
    return subprocess.Popen([sys.executable, '-m', 'fieldtrial.load.stream', *arguments], stdout=subprocess.PIPE,
                            text=True)


def _rows(path):
    with open(path, encoding='utf-8') as file:
        return [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]


def _free(family, address):
    """A UDP port that is free now."""
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 0))
        return str(sock.getsockname()[1])


def _listens(port):
    """Whether a UDP socket is bound to the port, according to the kernel."""
    ends = []
    for name in ('udp', 'udp6'):
        with open(f'/proc/net/{name}', encoding='ascii') as file:
            ends += [line.split()[1] for line in file.readlines()[1:]]
    return any(int(end.rpartition(':')[2], 16) == int(port) for end in ends)


@pytest.mark.parametrize('family, address', [(socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')])
def test_over_loopback(tmp_path, family, address):
    port, t0 = _free(family, address), f'{time.monotonic():.6f}'
    receiver = _start('recv', address, port, t0, f'{tmp_path}/r.csv')
    while not _listens(port):
        assert receiver.poll() is None
    said = _start('send', address, port, f'{time.monotonic() + 1:.6f}', '800000', '1000',
                  '0-0.1,0.2-0.3,0.4-0.5').communicate(
        timeout=60)[0]
    sent, skipped = map(int, re.match(r'(\d+) sent, (\d+) left out', said).groups())
    receiver.send_signal(signal.SIGTERM)
    assert receiver.wait(60) == 0
    # Three times 0.1 s at 100 frames per second; frames delayed by a busy machine are counted, not sent.
    assert sent + skipped == 30
    rows = _rows(f'{tmp_path}/r.csv')
    assert [row['t'] for row in rows] == list(range(len(rows)))
    assert sum(row['packets'] for row in rows) == sent > 0
    assert sum(row['bytes'] for row in rows) == 1000 * sent     # headers counted, of IPv4 or of IPv6
    assert sum(row['lost'] for row in rows) == 0


def test_sender_stops_at_once_when_told():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(('127.0.0.1', 0))
        sender = _start('send', '127.0.0.1', str(sock.getsockname()[1]), f'{time.monotonic():.6f}', '800000', '1000',
                        '0-3600')
        sock.settimeout(60)
        for number in range(3):
            assert stream.NUMBER.unpack_from(sock.recv(2000))[0] == number
        sender.send_signal(signal.SIGTERM)
        assert sender.wait(60) == 0
        sender.stdout.close()


def test_what_lies_in_the_past_is_not_sent():
    said = _start('send', '127.0.0.1', _free(socket.AF_INET, '127.0.0.1'), f'{time.monotonic() - 10:.3f}', '8000', '1000',
                  '0-2').communicate(timeout=60)[0]
    assert said.startswith('0 sent, 2 left out')
