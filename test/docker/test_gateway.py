# SPDX-License-Identifier: GPL-2.0-or-later
"""docker/gateway on a machine between a user and a server behind a narrow link: what docs/user/gateway.md says of it.
The machine is the network namespace of the engine; `./check --docker` provides engine and images."""
import contextlib
import json
import os
import pathlib
import re
import subprocess

import pytest
from machine import docker, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE, PROJECT = 'msfrs-gateway', 'test-gateway'
NETWORKS = {'lan0': '198.18.1', 'wan0': '198.18.2'}     # bridges of the machine, on which it is .1
USER, SERVER = '198.18.1.2', '198.18.2.2'
SIZE = 60_000
#: The downlink, at its far end; the buffer holds a second.
SERVE = f"""tc qdisc add dev eth0 root tbf rate 2mbit burst 4kb latency 1s
mkdir /tmp/www && cd /tmp/www && head -c {SIZE} /dev/zero >page
exec python3 -m http.server 80"""
TO_GATEWAY = f'ip route replace default via {NETWORKS["lan0"]}.1 && exec sleep infinity'
#: Who may change the machine's network.
MACHINE = ('run', '--rm', '--network', 'host', '--cap-add', 'NET_ADMIN', '--entrypoint')

pytestmark = pytest.mark.skipif('DOCKER_HOST' not in os.environ, reason='needs an engine: ./check --docker')


def on_machine(*words):
    return docker(*MACHINE, words[0], IMAGE, *words[1:]).stdout


def rules():
    """All rules of the machine, without counters and comments."""
    text = on_machine('sh', '-c', 'iptables-save; ip6tables-save')
    return re.sub(r'^(#.*\n|(:\w+ \w+) \[.*)', r'\2', text, flags=re.MULTILINE)


@pytest.fixture(scope='module', name='between')
def _between():
    """The machine's networks, each with one host; both are internal, and lead nowhere."""
    if on_machine('readlink', '/proc/self/ns/net').strip() == os.readlink('/proc/self/ns/net'):
        pytest.skip('would change the rules of this machine: needs docker/engine --apart')
    with contextlib.ExitStack() as stack:
        for bridge, network in NETWORKS.items():
            docker('network', 'create', '--internal', '--subnet', f'{network}.0/24', '--gateway', f'{network}.1', '-o',
                   f'com.docker.network.bridge.name={bridge}', f'test-{bridge}')
            stack.callback(docker, 'network', 'rm', f'test-{bridge}')
        for name, address, bridge, image, script in (('test-server', SERVER, 'wan0', 'msfrs-server', SERVE),
                                                     ('test-user', USER, 'lan0', 'msfrs-users', TO_GATEWAY)):
            docker('run', '-d', '--init', '--name', name, '--network', f'test-{bridge}', '--ip', address, '--cap-add',
                   'NET_ADMIN', '--entrypoint', 'sh', image, '-ec', script)
            stack.callback(docker, 'rm', '-f', name)
        yield


class Gateway:
    """docker/gateway with a configuration of its own."""

    def __init__(self, etc):
        self.squid_conf, self.iptables_conf = etc / 'squid/squid.conf', etc / 'msfrs/iptables.conf'
        self._environment = os.environ | {'GATEWAY_ETC': str(etc), 'COMPOSE_PROJECT_NAME': PROJECT}
        v2 = docker('compose', 'version', check=False).returncode == 0
        self._compose = ['docker', 'compose'] if v2 else ['docker-compose']

    def compose(self, *words, check=True):
        """(exit code, output) of a command of compose."""
        done = subprocess.run([*self._compose, *words], cwd=ROOT / 'docker/gateway', env=self._environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
        assert done.returncode == 0 or not check, (words, done.stdout)
        return done.returncode, done.stdout

    def logs(self, service=''):
        return self.compose('logs', *service.split())[1]

    def configure(self, path, changes):
        """Replaces words in a file."""
        text = path.read_text(encoding='utf-8')
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        path.write_text(text, encoding='utf-8')

    def prepare(self):
        """Writes the examples, and changes what they leave to the administrator."""
        self.compose('run', '--rm', 'prepare')
        self.configure(self.squid_conf, {'rate=20Mbit interface=eth1': 'rate=2Mbit interface=wan0',
                                         'users src 10.20.0.0/16': 'users src 198.18.1.0/24',
                                         'shutdown_lifetime 5 seconds': 'shutdown_lifetime 1 second'})
        self.configure(self.iptables_conf, {'inside = eth0': 'inside = lan0', '#ipv6 = yes': 'ipv6 = no'})

    def healthy(self, service):
        """Whether the health check of a service succeeds now, and what it says."""
        found = docker('ps', '-q', '--filter', f'label=com.docker.compose.project={PROJECT}', '--filter',
                       f'label=com.docker.compose.service={service}').stdout.strip()
        if not found:
            return False, 'no container'
        check = json.loads(docker('inspect', '--format', '{{json .Config.Healthcheck.Test}}', found).stdout)
        done = docker('exec', found, *check[1:], check=False)
        return done.returncode == 0, done.stdout + done.stderr

    def wait_until_up(self):
        """Waits until users are sent to a Squid that answers, once their servers do."""
        for service in ('squid', 'syn', 'intercept'):
            wait_for(lambda: self.healthy(service)[0], lambda: (self.healthy(service), self.logs()))

    def bronze(self):
        """What `msfrsctl status` says of the user's class."""
        said = self.compose('exec', '-T', 'squid', '/opt/msfrs/sbin/msfrsctl', 'status', '--json')[1]
        return next(row for row in json.loads(said)['workers'][0]['classes'] if row['name'] == 'bronze')


@pytest.fixture(name='gateway')
def _gateway(between, tmp_path):
    del between
    gateway = Gateway(tmp_path)
    yield gateway
    print(gateway.logs())
    gateway.compose('down', '--volumes')


def get():
    """(status, size, seconds) of the page, as the user has it."""
    done = docker('exec', 'test-user', 'curl', '-s', '-m', '20', '-o', '/dev/null', '-w',
                  '%{http_code} %{size_download} %{time_total}', f'http://{SERVER}/page', check=False)
    status, size, seconds = done.stdout.split()
    return int(status), int(size), float(seconds)


def test_a_request_is_scheduled_a_restart_keeps_the_configuration_and_nothing_remains(gateway):
    before = rules()
    gateway.prepare()
    assert 'CHANGE' in gateway.squid_conf.read_text(encoding='utf-8')
    gateway.compose('run', '--rm', 'squid', '-k', 'parse')
    gateway.compose('up', '-d')
    gateway.wait_until_up()
    status, size, seconds = get()
    assert (status, size) == (200, SIZE) and seconds > SIZE * 8 / 2e6 / 2, 'not through the narrow link'
    found = gateway.bronze()
    assert found['requests'] == 1 and found['bytes'] >= SIZE

    gateway.configure(gateway.squid_conf, {'bronze weight=1': 'bronze weight=3'})
    gateway.compose('kill', '-s', 'HUP', 'squid')
    wait_for(lambda: gateway.bronze()['weight'] == 3, gateway.logs)
    gateway.compose('restart')
    gateway.wait_until_up()
    assert get()[:2] == (200, SIZE)
    found = gateway.bronze()
    assert (found['requests'], found['weight']) == (1, 3)

    assert 'MSFRS' in rules()
    gateway.compose('down')
    assert rules() == before
    assert gateway.compose('ps', '-q')[1] == ''


def test_a_mistake_is_explained_and_nobody_is_sent_to_squid(gateway):
    code, said = gateway.compose('run', '--rm', 'squid', '-k', 'parse', check=False)
    assert code == 1
    assert 'squid: there is no /etc/squid/squid.conf; docker compose run --rm prepare writes an example' in said
    gateway.prepare()
    gateway.configure(gateway.squid_conf, {'rate=2Mbit': 'rate=fast'})
    code, said = gateway.compose('run', '--rm', 'squid', '-k', 'parse', check=False)
    assert code == 1 and 'rate=fast' in said
    gateway.compose('up', '-d')
    wait_for(lambda: 'rate=fast' in gateway.logs('squid'), gateway.logs)
    wait_for(lambda: 'new connections bypass Squid' in gateway.logs('intercept'), gateway.logs)
    assert 'MSFRS' not in rules()
