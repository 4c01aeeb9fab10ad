# SPDX-License-Identifier: GPL-2.0-or-later
"""Constant bit rate: the schedule of frames, what counts as lost, and a stream over loopback."""
import csv
import json
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
    times = list(stream.times(share * capacity, bursts))
    for start, end in bursts:
        count = sum(start <= t < end for t in times)
        assert count * 8000 / (end - start) == pytest.approx(share * capacity, rel=1e-3)
    assert len(times) == sum(any(start <= t < end for start, end in bursts) for t in times)
    assert times == sorted(times)


def test_bursts():
    bursts = ((5.0, 7.5), (20.0, 21.0))
    assert [stream.on_between(bursts, second, second + 1) for second in (4, 5, 7, 20, 21)] == [0, 1, 0.5, 1, 0]
    times = list(stream.times(1e6, bursts))
    assert len(times) == 438 and all(5 <= when < 7.5 or 20 <= when < 21 for when in times)


@pytest.mark.parametrize('text', ['5', '5-4', '1-3,2-4', '1-2,', 'a-b'])
def test_bursts_that_mean_nothing_are_refused(text, capsys):
    with pytest.raises(SystemExit):
        stream.main(['send', '--to', '::1', '--rate', '1e6', '--csv', 'x', '--bursts', text])
    assert f'{text!r}: wanted is START-END,..., in s, each later than the one before it' in capsys.readouterr().err


@pytest.fixture(name='receiver')
def _receiver(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        yield stream.Receiver(sock, 0.0, f'{tmp_path}/r.csv')


def test_receiver_counts_frames_and_leaves_strangers_alone(receiver):
    receiver.take(stream.DATAGRAM.pack(stream.MAGIC, 2, 10) + bytes(100), 5_000_010)
    for stranger in (b'', b'mCBR', b'hello, world, this is not ours'):
        receiver.take(stranger, 0)
    assert receiver.totals == {'packets': 1, 'bytes': 42 + 16 + 100, 'lost': 2, 'reordered': 0}


def test_numbers_that_are_missing_or_out_of_order(receiver):
    for number in (0, 1, 2, 5, 4, 6, 9):
        receiver.take(stream.DATAGRAM.pack(stream.MAGIC, number, 0), 0)
    assert (receiver.totals['lost'], receiver.totals['reordered']) == (3, 1)


@pytest.mark.parametrize('address, rate, message', [('x', '1e6', 'argument --to: invalid'),
                                                    ('::1', '-1', '-1 is not from 1000 to 1e+11')])
def test_refused(capsys, address, rate, message):
    with pytest.raises(SystemExit) as end:
        stream.main(['send', '--to', address, '--rate', rate, '--bursts', '0-1', '--csv', 'x'])
    assert end.value.code == 2 and message in capsys.readouterr().err


def _start(*arguments):
    return subprocess.Popen([sys.executable, '-m', 'fieldtrial.load.stream', *arguments], stdout=subprocess.PIPE,
                            text=True)


def _rows(path):
    with open(path, encoding='utf-8') as file:
        return list(csv.DictReader(file))


def _bound(family, address):
    """A UDP port that is free now."""
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 0))
        return sock.getsockname()[1]


def _listens(port):
    """Whether a UDP socket is bound to the port, as the kernel tells."""
    ends = []
    for name in ('udp', 'udp6'):
        with open(f'/proc/net/{name}', encoding='ascii') as file:
            ends += [line.split()[1] for line in file.readlines()[1:]]
    return any(int(end.rpartition(':')[2], 16) == port for end in ends)


@pytest.mark.parametrize('family, address', [(socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')])
def test_over_loopback(tmp_path, family, address):
    port = _bound(family, address)
    receiver = _start('recv', '--bind', address, '--port', str(port), '--csv', f'{tmp_path}/r.csv')
    while not _listens(port):
        assert receiver.poll() is None
    sender = _start('send', '--to', address, '--port', str(port), '--rate', '800000',
                    '--bursts', '0-0.1,0.2-0.3,0.4-0.5', '--csv', f'{tmp_path}/s.csv')
    sent = json.loads(sender.communicate(timeout=60)[0])
    receiver.send_signal(signal.SIGTERM)
    got = json.loads(receiver.communicate(timeout=60)[0])
    rows = _rows(f'{tmp_path}/s.csv')
    # Three times 0.1 s at 100 frames per second; what a busy machine made late is counted, not sent.
    assert sum(int(row['packets']) + int(row['skipped']) for row in rows) == 30
    assert sum(int(row['packets']) for row in rows) == sent['packets'] == got['packets'] > 0
    assert got['bytes'] == 1000 * got['packets']     # headers counted, of IPv4 or of IPv6
    assert (got['lost'], got['reordered']) == (0, 0)
    received = _rows(f'{tmp_path}/r.csv')
    assert sum(int(row['packets']) for row in received) == got['packets']
    assert all(float(row['delay_mean_ms']) <= float(row['delay_max_ms']) for row in received if row['delay_mean_ms'])


def test_sender_stops_at_once_when_told(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(('127.0.0.1', 0))
        sender = _start('send', '--to', '127.0.0.1', '--port', str(sock.getsockname()[1]), '--rate', '800000',
                        '--bursts', '0-3600', '--csv', f'{tmp_path}/s.csv')
        sock.settimeout(60)
        for number in range(3):
            assert stream.DATAGRAM.unpack_from(sock.recv(2000))[1] == number
        sender.send_signal(signal.SIGTERM)
        sent = json.loads(sender.communicate(timeout=60)[0])
    assert sender.returncode == 0
    assert sum(int(row['packets']) for row in _rows(f'{tmp_path}/s.csv')) == sent['packets'] >= 3


def test_port_in_use_is_said(tmp_path, capsys):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(('127.0.0.1', 0))
        port = sock.getsockname()[1]
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        try:
            assert stream.main(['recv', '--bind', '127.0.0.1', '--port', str(port), '--csv', f'{tmp_path}/r.csv']) == 1
        finally:
            for signum, handler in zip((signal.SIGTERM, signal.SIGINT), before):
                signal.signal(signum, handler)
    assert capsys.readouterr().err == f'stream: 127.0.0.1 port {port}: Address already in use\n'


def test_times_lie_on_the_given_axis(tmp_path):
    sender = _start('send', '--to', '127.0.0.1', '--port', str(_bound(socket.AF_INET, '127.0.0.1')), '--rate', '8000',
                    '--bursts', '0-2', '--t0', f'{time.monotonic() - 10:.3f}', '--csv', f'{tmp_path}/s.csv')
    assert json.loads(sender.communicate(timeout=60)[0]) == {'packets': 0}     # all of it lies in the past
    rows = _rows(f'{tmp_path}/s.csv')
    assert [row['t'] for row in rows[:3]] == ['0', '1', '2'] and sum(int(row['skipped']) for row in rows) == 2
