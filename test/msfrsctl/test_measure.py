# SPDX-License-Identifier: GPL-2.0-or-later
"""The download that measures the line, from a real server on the loopback."""
import http.server
import threading

import pytest

import conftest  # noqa: F401 (the path of msfrsctl)
from msfrsctl import download
from msfrsctl.errors import CtlError

PIECE = b'x' * 65536
#: Seconds after which a download that should have ended fails.
PATIENCE = 60.0


class Server(http.server.ThreadingHTTPServer):
    """Serves /N with N bytes, /moved and, of every other path, status 404. connected: addresses of clients."""
    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.connected = []

    def handle_error(self, *_):
        pass            # clients that leave

    def url(self, path):
        return f'http://127.0.0.1:{self.server_port}/{path}'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        self.server.connected.append(self.client_address)
        name = self.path[1:]
        self.send_response(200 if name.isdigit() else 302 if name == 'moved' else 404)
        self.send_header('Content-Length', name if name.isdigit() else '0')
        if name == 'moved':
            self.send_header('Location', 'http://elsewhere.test/')
        self.end_headers()
        for _ in range(int(name) // len(PIECE) if name.isdigit() else 0):
            self.wfile.write(PIECE)
        self.wfile.write(PIECE[:int(name) % len(PIECE)] if name.isdigit() else b'')

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def test_several_connections_until_the_amount_is_had(server):
    wanted = download.Download(server.url(2_000_000), 'lo', most=20_000_000)
    threads = [threading.Thread(target=wanted.run, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert wanted.wrong is None and 20_000_000 <= wanted.bytes < 20_000_000 + 4 * download.PIECE
    assert len(set(server.connected)) == 4 and len(server.connected) >= 10, 'each fetches the file again'


def test_samples_end_with_the_time(server):
    taken = download.samples(server.url(2_000_000), 'lo', iter(range(1000)).__next__, lasts=0.6)
    assert [count for _, count in taken] == list(range(len(taken))) and taken


@pytest.mark.parametrize('path, sentence', [
    ('5000', 'has 5000 bytes, and at least 1000000 are needed to measure a link: name a larger file'),
    ('moved', 'status 302; give http://elsewhere.test/ instead'), ('nothing', 'status 404')])
def test_what_measures_nothing(server, path, sentence):
    with pytest.raises(CtlError, match=sentence):
        download.samples(server.url(path), 'lo', lambda: 0, lasts=PATIENCE)


@pytest.mark.parametrize('interface, url', [('lo', 'http://127.0.0.1:1/x'), ('nosuch0', 'http://127.0.0.1:1/x')])
def test_a_server_that_cannot_be_reached(interface, url):
    with pytest.raises(CtlError, match='check the address, or name another server'):
        download.samples(url, interface, lambda: 0, lasts=PATIENCE)
