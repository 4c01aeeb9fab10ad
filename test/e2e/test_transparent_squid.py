# SPDX-License-Identifier: GPL-2.0-or-later
"""conf/squid, conf/systemd and conf/iptables together: the patched Squid, started as by its unit, intercepting."""
import contextlib
import http.client
import http.server
import os
import pathlib
import re
import signal
import socketserver
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

from iptables_script import MODES, ROOT, up
from site_in_namespaces import AF, CLIENT, INSIDE, OUTSIDE, PATIENCE, SERVER, connection, sh
from syn_daemon import SynDaemon

EXAMPLE = (ROOT / 'conf/squid/squid.conf').read_text()
UNIT = (ROOT / 'conf/systemd/msfrs-squid.service').read_text()
NAME = {4: 'origin4.test', 6: 'origin6.test'}
BODY = b'0123456789abcdef' * 4096               # some quanta
#: The networks of the example, replaced by those of this site; CLIENT becomes a host of the office.
NETWORKS = {'10.20.1.0/24 2001:db8:20:1::/64': '198.18.1.0/24 2001:2:0:1::/64',
            '10.20.0.0/16 2001:db8:20::/48': '198.18.0.0/15 2001:2::/48'}


class Gateway:
    """Squid with the example configuration on a site's gateway; `directory` has its files."""

    def __init__(self, site, installation, directory):
        self.installation = installation
        self.host, self.directory = site.gateway, pathlib.Path(directory)
        self.conf = self.directory / 'squid.conf'
        self.access_log = self.directory / 'access.log'
        self.process = None
        os.chown(self.directory, *self._proxy())
        (self.directory / 'hosts').write_text(''.join(f'{SERVER[family]} {NAME[family]}\n' for family in (4, 6)))
        self.write(EXAMPLE)
        self._make_certificate()

    @staticmethod
    def _proxy():
        import pwd
        entry = pwd.getpwnam('proxy')
        return entry.pw_uid, entry.pw_gid

    def _here(self, text):
        return re.sub('/opt/msfrs/etc|/var/log/msfrs|/run/msfrs', str(self.directory), text)

    def write(self, text):
        """The example, with the addresses and names of the site, and all of its ports."""
        for example, here in NETWORKS.items():
            assert example in text
            text = text.replace(example, here)
        text = re.sub(r'(?m)^#(https?_port 313)', r'\1', text).replace('interface=eth1', 'interface=out0')
        lines = [f'hosts_file {self.directory}/hosts', 'dns_nameservers 127.0.0.1', *self.installation.lines]
        if self.installation.plugins:
            lines.append(f'msfrs_arbiter {self.installation.plugins}msf.so')
        self.conf.write_text(self._here(text) + '\n' + '\n'.join(lines) + '\n')

    def _make_certificate(self):
        """By the command that the example gives."""
        lines = re.search(r'(?m)^#   cd (.*\\\n)+.*', EXAMPLE)[0].replace('#', '')
        subprocess.run(['sh', '-ec', self._here(lines)], check=True, capture_output=True)

    def squid(self, *arguments):
        """The command line: user and capabilities as in the unit; a service name of its own, since Squids of one name
        remove each other's shared memory."""
        capabilities = re.search('(?m)^AmbientCapabilities=(.*)', UNIT)[1]
        capabilities = ','.join(name.lower().replace('cap_', '+') for name in capabilities.split())
        return ['setpriv', '--reuid=proxy', '--regid=proxy', '--clear-groups', f'--inh-caps={capabilities}',
                f'--ambient-caps={capabilities}', f'--bounding-set=-all,{capabilities}', '--no-new-privs', '--',
                str(self.installation.program), '-n', f'e2e{os.getpid()}', '-f', str(self.conf), *arguments]

    def start(self):
        option = re.search('(?m)^ExecStart=.*squid (.*)', UNIT)[1]
        with open(self.directory / 'squid.out', 'w') as output:
            self.process = self.host.popen(self.squid(option), stdout=output, stderr=output)
        self.wait_until(self.listens, 'listening')

    def listens(self):
        """By the unit's own check."""
        return sh(self.host, 'sh', '-c', re.search('until (.*?); do', UNIT)[1]).returncode == 0

    def wait_until(self, condition, what):
        end = time.monotonic() + 3 * PATIENCE
        while not condition():
            if self.process.poll() is not None:
                said = ''.join(file.read_text() for file in (self.directory / 'squid.out', self.directory / 'cache.log')
                               if file.exists())
                pytest.fail(f'squid ended with {self.process.returncode}:\n{said}')
            assert time.monotonic() < end, f'not {what}'
            time.sleep(0.05)

    def logged(self, count):
        """The lines of access.log by field names; waits for that many."""
        def lines():
            return self.access_log.read_text().splitlines() if self.access_log.exists() else []
        self.wait_until(lambda: len(lines()) >= count, f'{count} lines in access.log')
        assert len(lines()) == count
        return [dict(zip(FIELDS, line.split())) for line in lines()]


FIELDS = ('time', 'ms', 'client', 'result', 'bytes', 'method', 'url', 'sni', 'user', 'from', 'class', 'wait', 'total',
          'quanta', 'window', 'refusal')


class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """HTTPServer would look up its name with the machine's own resolver."""
    allow_reuse_address = True
    daemon_threads = True


@pytest.fixture
def gateway(site, installed):
    if not os.access(installed.program, os.X_OK):
        pytest.fail(f'{installed.program}: no Squid there; build it with squid-patches/build 7')
    # Not below pytest's own directory, which the user proxy cannot access.
    with tempfile.TemporaryDirectory(prefix='msfrs-') as directory:
        made = Gateway(site, installed, directory)
        yield made
        if made.process and made.process.poll() is None:
            made.process.send_signal(signal.SIGINT)
            made.process.wait(3 * PATIENCE)


@pytest.fixture
def origin(site, tmp_path):
    """A web server for HTTP and HTTPS; yields the requests that it received and its certificate."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.client_address[0], self.headers))
            self.send_response(200)
            self.send_header('Content-Length', str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

        def log_message(self, *_):
            pass

    certificate = tmp_path / 'origin.pem'
    names = ','.join(f'DNS:{name}' for name in NAME.values())
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=origin',
                    '-addext', f'subjectAltName={names}', '-keyout', certificate, '-out', certificate],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    servers = []
    for family in (4, 6):
        for port in (80, 443):
            with site.server.inside():
                kind = type('Server', (Threads,), {'address_family': AF[family]})
                server = kind((SERVER[family], port), Handler)
            if port == 443:
                server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            servers.append(server)
    yield seen, certificate
    for server in servers:
        server.shutdown()
        server.server_close()


def fetch(stream, host):
    """One GET over a connected socket."""
    client = http.client.HTTPConnection(host)
    client.sock = stream
    client.request('GET', '/', headers={'Connection': 'close'})
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (200, BODY)
    return answer


def test_the_example_is_parsed_without_a_complaint(gateway):
    done = subprocess.run(gateway.host.enter(gateway.squid('-k', 'parse')), capture_output=True, text=True,
                          timeout=3 * PATIENCE)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if re.search('WARNING|ERROR|FATAL', line)] == []


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('family', (4, 6))
def test_http(site, gateway, origin, mode, family):
    gateway.start()
    up(gateway.host, '--mode', mode)
    with connection(site.client, family, SERVER[family], 80) as stream:
        answer = fetch(stream, NAME[family])
    assert 'squid' in answer.getheader('Via')
    [(address, headers)] = origin[0]
    assert address == {'redirect': OUTSIDE, 'tproxy': CLIENT}[mode][family]
    assert headers['Host'] == NAME[family] and headers['X-Forwarded-For'] is None
    [line] = gateway.logged(1)
    assert (line['client'], line['method'], line['url']) == (CLIENT[family], 'GET', f'http://{NAME[family]}/')
    assert (line['result'], line['class'], line['refusal']) == ('TCP_MISS/200', 'gold', '-')
    assert line['wait'].isdigit() and int(line['quanta']) >= 1


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('family', (4, 6))
@pytest.mark.parametrize('named', (True, False), ids=('sni', 'no-sni'))
def test_https_is_passed_on_undecrypted(site, gateway, origin, mode, family, named):
    gateway.start()
    up(gateway.host, '--mode', mode)
    context = ssl.create_default_context(cafile=origin[1])     # accepts only the origin's own certificate
    context.check_hostname = named
    with (connection(site.client, family, SERVER[family], 443) as plain,
          context.wrap_socket(plain, server_hostname=NAME[family] if named else None) as stream):
        fetch(stream, NAME[family])
    [(address, headers)] = origin[0]
    assert address == {'redirect': OUTSIDE, 'tproxy': CLIENT}[mode][family]
    assert headers['Via'] is None               # Squid could not decrypt it, let alone change it
    peeked, line = gateway.logged(2)            # Squid logs the ClientHello separately, then the tunnel
    assert peeked['result'] == 'NONE_NONE/000'
    assert (line['client'], line['method'], line['result']) == (CLIENT[family], 'CONNECT', 'TCP_TUNNEL/200')
    assert line['sni'] == (NAME[family] if named else '-')
    assert int(line['bytes']) > len(BODY)
    assert (line['class'], line['refusal']) == ('gold', '-')


@pytest.mark.parametrize('mode', MODES)
def test_a_client_reaches_the_second_address_of_a_server(site, gateway, origin, tmp_path, mode):
    """With msfrs-syn; Squid alone accepts the connection to the silent first one, and ends it after a minute."""
    site.server.run('ip6tables', '-A', 'INPUT', '-p', 'tcp', '-j', 'DROP')
    gateway.start()
    with SynDaemon(gateway.host, tmp_path, mode, 'squid-user = proxy\n') as daemon:
        up(gateway.host, '--mode', mode, config=daemon.file)
        done = sh(site.client, 'curl', '-sS', '--noproxy', '*', '--resolve', f'{NAME[4]}:80:[{SERVER[6]}],{SERVER[4]}',
                  f'http://{NAME[4]}/')
    assert (done.stdout.encode(), done.stderr) == (BODY, '')
    [line] = gateway.logged(1)
    assert (line['client'], line['result'], line['class']) == (CLIENT[4], 'TCP_MISS/200', 'gold')


def test_a_class_by_the_servers_name(site, gateway, origin):
    """As the example does for software updates, without decryption."""
    gateway.write(EXAMPLE.replace('.deb.debian.org', NAME[4]))
    gateway.start()
    up(gateway.host)
    context = ssl.create_default_context(cafile=origin[1])
    for family in (4, 6):
        with (connection(site.client, family, SERVER[family], 443) as plain,
              context.wrap_socket(plain, server_hostname=NAME[family]) as stream):
            fetch(stream, NAME[family])
        with connection(site.client, family, SERVER[family], 80) as stream:
            fetch(stream, NAME[family])
    classes = {(line['client'], line['method']): line['class'] for line in gateway.logged(6)}
    assert classes == {(CLIENT[4], 'CONNECT'): 'bronze', (CLIENT[6], 'CONNECT'): 'gold',
                       (CLIENT[4], 'GET'): 'bronze', (CLIENT[6], 'GET'): 'gold'}


def test_reports_are_for_the_gateway_itself(site, gateway):
    gateway.start()
    request = 'GET /squid-internal-mgr/{} HTTP/1.0\r\n\r\n'

    def asked(host, report):
        with connection(host, 4, {site.gateway: '127.0.0.1', site.client: INSIDE[4]}[host], 3128) as stream:
            stream.sendall(request.format(report).encode())
            return stream.makefile('rb').read().decode()
    assert '\n  metered: true\n' in asked(site.gateway, 'msfrs')    # out0 exists, and its counter can be read
    assert '\nmsfrs_scheduling 1\n' in asked(site.gateway, 'msfrs-metrics')
    for report in ('msfrs', 'msfrs-metrics', 'menu', 'config'):
        assert asked(site.client, report).split()[1] == '403'


def test_reload_and_stop_as_the_unit_does(site, gateway, origin):
    gateway.start()
    up(gateway.host)
    with connection(site.client, 4, SERVER[4], 80) as stream:
        fetch(stream, NAME[4])
    gateway.write(EXAMPLE.replace('msfrs_access gold   allow office', 'msfrs_access silver allow office'))
    gateway.process.send_signal(signal.SIGHUP)
    log = gateway.directory / 'cache.log'
    gateway.wait_until(lambda: 'Reconfiguring Squid Cache' in log.read_text() and gateway.listens(), 'reconfigured')

    def silver():
        with contextlib.suppress(OSError), connection(site.client, 4, SERVER[4], 80) as stream:
            fetch(stream, NAME[4])
        return 'silver' in gateway.access_log.read_text()
    gateway.wait_until(silver, 'using the new class')
    gateway.process.send_signal(signal.SIGTERM)
    assert gateway.process.wait(3 * PATIENCE) == 0
    assert not gateway.listens()
