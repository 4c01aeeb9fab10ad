# SPDX-License-Identifier: GPL-2.0-or-later
"""The load generator as a program, over loopback: real connections, real signals. No test waits for time to pass."""
import collections
import csv
import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from fieldtrial.load import __main__ as loadgen
from fieldtrial.load.traffic import curl, records
from fieldtrial.load.traffic.run import PAUSE_AFTER_FAILURE_S
from fieldtrial.site import grid
from loopback import free_ports, serving
from simulated import data, server, user

SOURCES = ['127.0.0.2', '127.0.0.3', '127.0.0.4']


@pytest.fixture(name='origin', scope='module')
def _origin():
    with serving() as running:
        yield running


def spec(tmp_path, port, **more):
    """Writes spec.json: three users on loopback addresses of their own, the server s01.test on 127.0.0.1."""
    out = tmp_path / 'out'
    out.mkdir()
    users = [user(name, name, address) for name, address in zip(('gold', 'silver', 'bronze'), SOURCES)]
    made = data(out, **{'users': users, 'servers': [server('s01.test')], 'port': port} | more)
    (tmp_path / 'spec.json').write_text(json.dumps(made))
    return tmp_path / 'spec.json'


def start(path):
    """The running program."""
    return subprocess.Popen([sys.executable, '-m', 'fieldtrial.load', str(path)], stderr=subprocess.PIPE, text=True)


def finish(program):
    """(exit code, output) after it has ended."""
    said = program.communicate(timeout=120)[1]
    return program.returncode, said


def results(tmp_path):
    """(requests, rows of bytes.csv, meta)."""
    tables = []
    for name in ('requests.csv', 'bytes.csv'):
        with open(tmp_path / 'out' / name, encoding='utf-8') as file:
            tables.append(list(csv.DictReader(file)))
    return *tables, json.loads((tmp_path / 'out' / 'meta.json').read_text())


def open_run(tmp_path, port, **more):
    """Open arrivals for a moment, with time to complete: ends when all are answered, however slow the machine is."""
    code, said = finish(start(spec(tmp_path, port, workload='open', duration_s=0.5, drain_s=100, rate_bps=20e6,
                                   sizes='lognormal:9.357:1.318:200000', **more)))
    assert code == 0, said
    return results(tmp_path)


def test_open_run_gets_every_byte(tmp_path, origin):
    requests, received, meta = open_run(tmp_path, origin.ports[0])
    assert tuple(requests[0]) == records.REQUEST_COLUMNS
    assert len(requests) == meta['offered']['arrivals'] > 10
    assert meta['requests'] == {'ok': len(requests)} and meta['errors'] == {} and meta['stopped'] is None
    for row in requests:
        assert row['size'] == row['bytes'] and int(row['size']) in grid.sizes()
        assert float(row['t_start']) <= float(row['t_first_byte']) <= float(row['t_end']) <= meta['t_end']
        assert (row['status'], row['server'], row['rtt_ms'], row['scheme'], row['kind'], row['page']) == \
            ('200', 's01.test', '0.1', 'http', 'object', '')
    assert list(received[-1]) == ['t', 'gold', 'silver', 'bronze']
    for name in ('gold', 'silver', 'bronze'):
        got = sum(int(row['bytes']) for row in requests if row['user'] == name)
        assert int(received[-1][name]) == got == meta['payload_bytes'].get(name, 0)
        assert [int(row[name]) for row in received] == sorted(int(row[name]) for row in received)
    assert abs(meta['t0_monotonic'] - time.monotonic()) < 600 and abs(meta['t0_unix'] - time.time()) < 600
    assert meta['phases'] == [{'t_start': 0.0, 't_end': 0.5, 'classes': ['gold', 'silver', 'bronze'], 'label': 'all',
                               'after': ''}]


def test_the_same_seed_offers_the_same(tmp_path, origin):
    offered = []
    for name in ('a', 'b'):
        (tmp_path / name).mkdir()
        requests = open_run(tmp_path / name, origin.ports[0])[0]
        offered.append(sorted((row['t_start'], row['user'], row['size']) for row in requests))
    assert offered[0] == offered[1]


def test_tls_is_verified(tmp_path, origin):
    requests, _, meta = open_run(tmp_path, origin.ports[0], tls_share=0.5, tls_port=origin.ports[1],
                                 tls_ca=origin.certificate)
    schemes = collections.Counter(row['scheme'] for row in requests)
    assert schemes['https'] > 3 and schemes['http'] > 3 and meta['requests'] == {'ok': len(requests)}


def test_tls_with_a_strangers_certificate_is_an_error(tmp_path, origin):
    requests, _, meta = open_run(tmp_path, origin.ports[0], tls_share=1.0, tls_port=origin.ports[1],
                                 tls_ca=origin.certificate, servers=[server('no.test')])
    assert meta['requests'] == {'error': len(requests)}
    assert all('CERTIFICATE_VERIFY_FAILED' in text for text in meta['errors'])
    assert {(row['bytes'], row['status'], row['t_first_byte']) for row in requests} == {('0', '0', '')}


def test_ipv6(tmp_path, origin):
    _, _, meta = open_run(tmp_path, origin.ports[0], servers=[server('s01.test', '127.0.0.9', '::1')],
                          users=[user('six', 'gold', '::1')])
    assert list(meta['requests']) == ['ok']


def test_nobody_answers(tmp_path):
    port, = free_ports(1)
    requests, _, meta = open_run(tmp_path, port)
    assert meta['requests'] == {'error': len(requests)} and 'Connect call failed' in next(iter(meta['errors']))


def until_rows(tmp_path, program, count):
    """Waits until requests.csv has this many rows."""
    path = tmp_path / 'out/requests.csv'
    while not path.exists() or len(path.read_text().splitlines()) <= count:
        assert program.poll() is None
        time.sleep(0.05)


def curls(port):
    """Command lines of curl processes that use this port."""
    found = [path.read_bytes() for path in pathlib.Path('/proc').glob('[0-9]*/cmdline') if path.exists()]
    return [each for each in found if each.startswith(b'curl') and f':{port}:'.encode() in each]


def test_requests_by_curl(tmp_path, origin):
    """More requests than a process's first list, all recorded alike; after a stop, no process remains."""
    program = start(spec(tmp_path, origin.ports[0], workload='scale', duration_s=1000, sizes='fixed:20000'))
    until_rows(tmp_path, program, 3 * 4 * curl.FIRST)
    program.send_signal(signal.SIGTERM)
    code, said = finish(program)
    assert code == 0 and curls(origin.ports[0]) == [], said
    requests, received, meta = results(tmp_path)
    assert meta['requests'] == {'ok': len(requests)} and meta['errors'] == {} and meta['stopped'] == 'SIGTERM'
    for row in requests:
        assert (row['status'], row['server'], row['scheme'], row['bytes']) == ('200', 's01.test', 'http', row['size'])
        assert 0 <= float(row['t_start']) < float(row['t_first_byte']) <= float(row['t_end']) <= meta['t_end']
    for name in ('gold', 'silver', 'bronze'):
        got = [int(row['bytes']) for row in requests if row['user'] == name]
        assert len(got) > curl.FIRST and sum(got) == int(received[-1][name]) == meta['payload_bytes'][name]


def test_curl_without_an_answer(tmp_path):
    """The cause is recorded, and the request is not repeated at once."""
    port, = free_ports(1)
    program = start(spec(tmp_path, port, workload='scale', duration_s=1000))
    until_rows(tmp_path, program, 2 * 3)
    program.send_signal(signal.SIGTERM)
    assert finish(program)[0] == 0
    requests, _, meta = results(tmp_path)
    assert meta['requests'] == {'error': len(requests)} and set(meta['errors']) == {'curl: exit code 7'}
    assert len(requests) < 3 * 4 * (2 + meta['t_end'] / PAUSE_AFTER_FAILURE_S)


class Silent:
    """A server that accepts connections, reads, sends `first` once on each and then nothing."""

    def __init__(self, expected, first=b''):
        self._expected, self._first, self._connections = expected, first, []
        self.peers = collections.Counter()
        self.requests = []
        self.all_there = threading.Event()
        self._socket = socket.create_server(('127.0.0.1', 0), backlog=200)
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join(60)
        for connection in (*self._connections, self._socket):
            connection.close()

    def _serve(self):
        for _ in range(self._expected):
            connection, peer = self._socket.accept()
            self._connections.append(connection)
            self.peers[peer[0]] += 1
        for connection in self._connections:
            head = b''
            while b'\r\n\r\n' not in head:
                head += connection.recv(4096)
            self.requests.append(head.decode())
            connection.sendall(self._first)
        self.all_there.set()


@pytest.mark.parametrize('signum', [signal.SIGTERM, signal.SIGINT])
def test_stopped_by_a_signal(tmp_path, signum):
    with Silent(expected=12) as server:
        program = start(spec(tmp_path, server.port, duration_s=3600))
        assert server.all_there.wait(60)
        program.send_signal(signum)
        code, said = finish(program)
    assert code == 0, said
    requests, _, meta = results(tmp_path)
    assert meta['stopped'] == signum.name and meta['requests'] == {'unfinished': 12} and meta['most_in_flight'] == 12
    assert {(row['outcome'], row['status'], row['t_first_byte']) for row in requests} == {('unfinished', '0', '')}
    assert {row['t_end'] == row['t_start'] for row in requests} == {False}
    assert server.peers == {source: 4 for source in SOURCES}     # each user from its own address, 4 connections each
    assert said.endswith('12 unfinished, 0 in flight\n')


def test_part_of_a_body_is_counted(tmp_path):
    with Silent(expected=12, first=b'HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n0123456789') as server:
        program = start(spec(tmp_path, server.port, duration_s=3600))
        assert server.all_there.wait(60)
        path = tmp_path / 'out' / 'bytes.csv'
        while not path.read_text().endswith(',40,40,40\n'):     # two rows a second
            assert program.poll() is None
        program.terminate()
        assert finish(program)[0] == 0
    requests, received, _ = results(tmp_path)
    assert {(row['bytes'], row['status'], row['outcome']) for row in requests} == {('10', '200', 'unfinished')}
    assert all(row['t_first_byte'] for row in requests)
    assert [received[-1][name] for name in ('gold', 'silver', 'bronze')] == ['40', '40', '40']


def test_requests_are_plain(tmp_path):
    with Silent(expected=12) as server:
        program = start(spec(tmp_path, server.port, duration_s=3600))
        assert server.all_there.wait(60)
        program.terminate()
        finish(program)
    for head in server.requests:
        line, *headers = head.rstrip().split('\r\n')
        assert line.startswith('GET /b/') and line.endswith(' HTTP/1.1')     # origin form, no proxy
        names = {header.partition(':')[0].lower() for header in headers}
        assert names == {'host', 'user-agent', 'accept', 'accept-encoding'}
        assert f'Host: s01.test:{server.port}' in headers


@pytest.mark.parametrize('change, message', [
    ({'seed': 'x'}, 'spec.json: seed: "x" is not a whole number'),
    ({'users': [user('a', 'gold', '::1')]}, "user a: no server has an address of the family of ['::1']"),
    ({'t0_monotonic': 1.0}, ' s ago when this load generator was ready; allowed is a time to come: repeat the cell'),
    ({'t0_monotonic': time.monotonic() + 1e6}, ' s ahead of now, allowed is 0 to 60 s'),
    ({'workload': 'url-list'}, 'workload url-list: list: missing'),
])
def test_refused(tmp_path, capsys, change, message):
    assert loadgen.main(spec(tmp_path, 80, **change)) == 2
    said = capsys.readouterr().err
    assert said.startswith('loadgen: ') and message in said
    assert not any((tmp_path / 'out').iterdir())


def test_an_older_run_is_not_overwritten(tmp_path, capsys):
    path = spec(tmp_path, 80)
    (tmp_path / 'out' / 'requests.csv').write_text('precious')
    assert loadgen.main(path) == 2
    assert 'requests.csv: File exists' in capsys.readouterr().err
    assert (tmp_path / 'out' / 'requests.csv').read_text() == 'precious'
