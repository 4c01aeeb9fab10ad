# SPDX-License-Identifier: GPL-2.0-or-later
"""The origin on loopback: the sizes of the grid, over HTTP and HTTPS, IPv4 and IPv6; and its refusals."""
import http.client
import os
import ssl
import stat

import pytest

from fieldtrial.load.traffic import sizes
from fieldtrial.site import grid, origin
from loopback import free_ports, serving


@pytest.fixture(name='served', scope='module')
def _served():
    with serving() as running:
        yield running


def get(connection, path):
    """(status, bytes, headers) of one GET."""
    connection.request('GET', path)
    answer = connection.getresponse()
    return answer.status, len(answer.read()), answer.headers


@pytest.mark.parametrize('address', ['127.0.0.1', '::1'])
def test_sizes_on_a_kept_connection(served, address):
    connection = http.client.HTTPConnection(address, served.ports[0], timeout=60)
    for size in (64, grid.nearest(1_000), grid.nearest(27_656), grid.nearest(1_000_000)):
        status, got, headers = get(connection, f'/b/{size}/gold-1-7')
        assert (status, got, headers['Content-Length']) == (200, size, str(size))
        assert headers['Cache-Control'] == 'no-store' and headers['Connection'] == 'keep-alive'
    assert get(connection, '/c/64/u1')[2]['Cache-Control'] == 'public, max-age=86400'


@pytest.mark.parametrize('path', ['/', '/b/66/x', '/b/64', '/b/../../nginx.conf', '/b/%2e%2e/tls.key', '/content/64',
                                  '/b/999999999999999999999/x', '/tls.key'])
def test_nothing_else(served, path):
    connection = http.client.HTTPConnection('127.0.0.1', served.ports[0], timeout=60)
    assert get(connection, path)[0] in (400, 404)


def test_response_header_is_about_what_the_load_counts(served):
    connection = http.client.HTTPConnection('127.0.0.1', served.ports[0], timeout=60)
    _, _, headers = get(connection, f'/b/{grid.nearest(27_656)}/gold-1-7')
    length = len('HTTP/1.1 200 OK\r\n\r\n') + sum(len(f'{name}: {text}\r\n') for name, text in headers.items())
    assert abs(length - sizes.RESPONSE_HEADER) <= 8


@pytest.mark.parametrize('version, word, directive', [('1.22.1', True, False), ('1.25.0', True, False),
                                                      ('1.25.1', False, True), ('1.26.3', False, True)])
def test_http2_is_said_as_each_version_wants_it(served, monkeypatch, version, word, directive):
    monkeypatch.setattr(origin, '_run', lambda argv: f'nginx version: nginx/{version}\n')
    text = served._configuration()
    assert (' ssl http2 backlog' in text, 'http2 on;' in text) == (word, directive)
    plain, tls = text.split('server {')[1:3]
    assert 'http2' not in plain and 'ssl' not in plain
    # A tunnel without a request yet, and one after a request, must stay open for hours.
    assert 'client_header_timeout 24h;' in tls and 'keepalive_timeout 24h;' in tls


def test_a_version_that_is_none_is_said(served, monkeypatch):
    monkeypatch.setattr(origin, '_run', lambda argv: 'something else')
    with pytest.raises(origin.OriginError, match="nginx -v: no version in 'something else'"):
        served._configuration()


def test_tls_with_the_certificate_of_the_names(served):
    trust = ssl.create_default_context(cafile=served.certificate)
    for name in served.names:
        connection = http.client.HTTPSConnection('127.0.0.1', served.ports[1], timeout=60, context=trust)
        raw = connection._create_connection(('127.0.0.1', served.ports[1]), 60)
        connection.sock = trust.wrap_socket(raw, server_hostname=name)
        assert get(connection, '/b/64/x')[:2] == (200, 64)
    raw = connection._create_connection(('127.0.0.1', served.ports[1]), 60)
    with pytest.raises(ssl.SSLCertVerificationError), raw:
        trust.wrap_socket(raw, server_hostname='other.test')


def test_files_take_no_room_and_the_key_is_private(served):
    content = os.listdir(f'{served.directory}/content')
    assert sorted(map(int, content)) == list(grid.sizes())
    used = sum(os.stat(f'{served.directory}/content/{name}').st_blocks * 512 for name in content)
    assert used < 1_000_000
    assert stat.S_IMODE(os.stat(f'{served.directory}/tls.key').st_mode) == 0o600


@pytest.mark.parametrize('directory, names, message', [
    ('a b', ['s.test'], "cannot be named to nginx"),
    ('a;b', ['s.test'], "cannot be named to nginx"),
    ('ok', [], 'no name for the certificate'),
    ('ok', ['s.test,IP:1.2.3.4'], "'s.test,IP:1.2.3.4' is not a host name"),
])
def test_refused(tmp_path, directory, names, message):
    with pytest.raises(origin.OriginError, match=message):
        origin.Origin(f'{tmp_path}/{directory}', names)


@pytest.mark.skipif(os.geteuid() != 0, reason='only as root does nginx serve as another user')
def test_directory_that_nobody_may_enter_is_refused(tmp_path):
    (tmp_path / 'private').mkdir(mode=0o700)
    with pytest.raises(origin.OriginError) as refusal:
        origin.Origin(f'{tmp_path}/private/origin', ['s.test']).prepare()
    assert ': nginx serves as user nobody, who may not enter this directory; chmod o+x it' in str(refusal.value)


def test_the_check_does_not_say_that_somebody_listens(tmp_path, monkeypatch):
    tmp_path.chmod(0o755)
    port, tls_port = free_ports(2)
    made = origin.Origin(f'{tmp_path}/origin', ['s.test'], port=port, tls_port=tls_port, addresses=['127.0.0.1'])
    monkeypatch.setattr(made, '_check_reachable', lambda: None)
    run, seen = origin._run, []

    def watched(argv):
        said = run(argv)
        seen.append(os.path.exists(f'{made.directory}/nginx.pid'))
        return said
    monkeypatch.setattr(origin, '_run', watched)
    made.prepare()
    assert seen and not any(seen)


def test_what_nginx_says_is_shown(tmp_path, monkeypatch):
    tmp_path.chmod(0o755)
    made = origin.Origin(f'{tmp_path}/origin', ['s.test'], addresses=['127.0.0.1'])
    monkeypatch.setattr(made, '_check_reachable', lambda: None)
    monkeypatch.setattr(origin, 'CONFIGURATION', origin.CONFIGURATION.replace('sendfile on', 'sendfile maybe'))
    with pytest.raises(origin.OriginError, match='invalid value "maybe" in "sendfile" directive'):
        made.prepare()
