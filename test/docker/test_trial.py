# SPDX-License-Identifier: GPL-2.0-or-later
"""The trial in containers, by docker/run, with the engine at DOCKER_HOST and existing images: its verdict, its exit
codes, its messages if something is wrong, and that nothing of it remains. `./check --docker` provides an engine."""
import csv
import json
import os
import pathlib
import re
import socket
import subprocess
import time

import pytest

from fieldtrial.site import delay, netns, sharing
from fieldtrial.site.world import DEFAULT_WEIGHTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPORTS = ROOT / 'build/trial-docker'
LISTS = ROOT / 'docker/lists'
SHORT = ('--arms', 'stock,msfrs', '--workloads', 'backlogged', '--rates', '2')

pytestmark = pytest.mark.skipif('DOCKER_HOST' not in os.environ, reason='needs an engine: ./check --docker')


def docker(*words):
    return subprocess.run(['docker', *words], capture_output=True, text=True, check=True, timeout=60).stdout


def leftovers():
    """Containers, networks and volumes of the project."""
    ours = ('--filter', 'label=com.docker.compose.project=msfrs', '-q')
    return docker('ps', '-a', *ours) + docker('network', 'ls', *ours) + docker('volume', 'ls', *ours)


@pytest.fixture(name='start')
def _start():
    """A function that starts docker/run. A run left behind by a failed test is stopped, and cleans up after itself."""
    running = []

    def start(*options, extra=None, what='trial', **environment):
        """`extra`: a file that changes compose.yaml."""
        environment = os.environ | environment | {'COMPOSE_FILE': f'compose.yaml:{extra}' if extra else 'compose.yaml'}
        running.append(subprocess.Popen([ROOT / 'docker/run', '--no-build', what, *options], env=environment,
                                        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            process.terminate()
            print(process.communicate(timeout=120)[0])


def finish(process, timeout):
    """(exit code, output), once nothing of it remains."""
    said, _ = process.communicate(timeout=timeout)
    print(said)
    assert leftovers() == ''
    return process.returncode, said


def cells():
    """{arm: directory} of the last run's cells."""
    run = sorted(REPORTS.iterdir())[-1]
    return {stat(path.parent)['arm']: path.parent for path in run.glob('*/stat.json')}


def stat(cell):
    return json.loads((cell / 'stat.json').read_text())


def test_a_short_trial_ends_with_its_verdict(start):
    """With three groups of users, as in docker/.env."""
    code, said = finish(start(*SHORT, '--seconds', '60'), 400)
    assert 'FAILED' not in said and 'unhealthy' not in said
    missed = re.search(r'(\d+) of (\d+) targets reached, (\d+) missed', said)
    assert code == (3 if int(missed[3]) else 0) and int(missed[2]) >= 10
    found = cells()
    report = found['msfrs'].parent
    verdicts = (report / 'verdicts.txt').read_text()
    # Targets that are met however short the cells are, and however slow the machine is.
    for target in ('drops per MB', 'requests refused or failed'):
        assert re.search(rf'{target}.*\n.*\bok  ', verdicts), target
    assert re.search(r'utilisation, backlogged.*\n.* (9\d|100)\.\d\d %', verdicts)
    assert (report / 'report.html').stat().st_size > 10_000
    for cell in found.values():
        members = stat(cell)['groups']
        assert [{name.split('-')[0] for name in members[f'users-{number}']} for number in (1, 2, 3)] == [
            {'gold'}, {'silver'}, {'bronze'}]
        assert {row['user'] for row in requests(cell)} == {name for group in members.values() for name in group}


def requests(cell):
    with open(cell / 'requests.csv', newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


def test_the_load_is_the_same_for_two_groups_and_for_three(start):
    """Open arrivals of a custom list, under an ISP that is msfrs-edge."""
    path = LISTS / f'test-{os.getpid()}.list'
    path.write_text(''.join(f'http://h{number}.example/ {3000 * number}\n' for number in range(1, 12)))
    offered = []
    try:
        for count in (2, 3):
            code, said = finish(start(
                '--arms', 'msfrs', '--workloads', 'url-list', '--set', f'url-list.list=/lists/{path.name}',
                '--isp', 'edge', '--rates', '2', '--seconds', '20', USER_GROUPS=str(count)), 200)
            assert code in (0, 3, 4) and 'FAILED' not in said
            cell = cells()['msfrs']
            assert list(stat(cell)['groups']) == [f'users-{number + 1}' for number in range(count)]
            assert stat(cell)['bottleneck'] == 'msfrs-edge'
            offered.append(sorted((row['t_start'], row['user'], row['server'], row['size']) for row in requests(cell)))
    finally:
        path.unlink()
    assert len(offered[0]) > 50 and offered[0] == offered[1]


def test_a_number_of_groups_that_cannot_be_is_refused(start):
    code, said = finish(start(USER_GROUPS='0'), 60)
    assert code == 1
    assert "docker/run: USER_GROUPS is '0': allowed are 1 to 99 groups of users (docker/.env)" in said


def test_without_netem_that_is_said(start):
    """If the kernel has it, it is used."""
    with netns.NetnsFabric() as fabric:
        there = delay.has_netem(fabric.host('probe'))
    code, said = finish(start(*SHORT, '--seconds', '20', '--delay', 'netem'), 200)
    assert (code != 1) == there
    assert ('trial: this kernel has no netem (sch_netem); use the delay line: --delay delayline' in said) != there


def test_a_wrong_option_is_refused(start):
    code, said = finish(start('--rates', 'fast'), 120)
    assert code == 2
    assert "argument --rates: 'fast': expected rates in Mbit/s" in said


def test_without_net_admin_that_is_said(start, tmp_path):
    extra = tmp_path / 'nobody.yaml'
    extra.write_text('services: {gateway: {user: "65534:13"}}\n')   # it has no capabilities
    code, said = finish(start(*SHORT, '--seconds', '20', extra=extra), 200)
    assert code == 1
    assert 'gw: its container may not set up its network; it takes the capability NET_ADMIN' in said


def test_what_a_health_check_said_is_said(start, tmp_path):
    extra = tmp_path / 'unhealthy.yaml'
    extra.write_text('services: {isp: {healthcheck: {test: [CMD, ls, /nowhere], interval: 1s, retries: 1}}}\n')
    code, said = finish(start(*SHORT, '--seconds', '20', extra=extra), 120)
    assert code == 1
    assert ("docker/run: the container of isp was found unhealthy: ls: cannot access '/nowhere': No such file or "
            'directory\n') in said
    assert 'reports are in' not in said


def test_a_port_that_is_taken_is_said(start):
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = str(server.getsockname()[1])
        code, said = finish(start(what='live', LOCUST_PORT=port), 60)
    assert code == 1
    assert f'docker/run: port {port} of 127.0.0.1 is taken; set LOCUST_PORT in docker/.env to another' in said
    code, said = finish(start(what='live', PROMETHEUS_PORT='x'), 60)
    assert code == 1
    assert "docker/run: PROMETHEUS_PORT is 'x': allowed are 1 to 65535 (docker/.env)" in said


def test_an_old_compose_is_said(start, tmp_path):
    for name, answer in (('docker', 'exit 1'), ('docker-compose', 'echo 1.21.0')):
        (tmp_path / name).write_text(f'#!/bin/sh\n{answer}\n')
        (tmp_path / name).chmod(0o755)
    process = start(PATH=f'{tmp_path}:{os.environ["PATH"]}')
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said == ('docker/run: docker-compose 1.21.0 is too old for profiles and health conditions; 1.29 or '
                    'Compose v2 is needed\n')


def test_without_an_engine_that_is_said(start, tmp_path):
    process = start(DOCKER_HOST=f'unix://{tmp_path}/nobody.sock')
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.startswith(f'docker/run: no Docker engine answers at unix://{tmp_path}/nobody.sock; start one')


def inside(service, program):
    """The output of a line of Python in the container of a service, once it succeeds."""
    end = time.monotonic() + 120
    while True:
        container = docker('ps', '-q', '--filter', f'label=com.docker.compose.service={service}').strip()
        done = subprocess.run(['docker', 'exec', container or 'none', '/usr/bin/python3', '-c', program], text=True,
                              capture_output=True, check=False, timeout=60)
        if done.returncode == 0:
            return done.stdout
        assert time.monotonic() < end, done.stderr
        time.sleep(1)


#: Succeeds if a process of this name runs, and none of them acts as root.
ROOTLESS = """
import pathlib
found = [line.split()[2] for path in pathlib.Path("/proc").glob("[0-9]*") if (path / "comm").read_text() == "{}\\n"
         for line in (path / "status").read_text().splitlines() if line.startswith("Uid:")]
assert found and "0" not in found, found
"""


GET = 'import json, urllib.request as u; found = u.urlopen("http://127.0.0.1:{}").read(); '
#: Succeeds once all users of Locust, as many as in docker/.env, load something.
LOADED = GET.format('8089/stats/requests') + (
    'now = json.loads(found); '
    'assert (now["total_rps"] > 0, now["fail_ratio"], now["user_count"]) == (True, 0, 36), now')


@pytest.mark.parametrize('what', ['live', 'peers', 'gateways'])
def test_live_has_load_and_metrics_until_it_is_stopped(start, what):
    process = start('--rates', '2', what=what)
    inside('locust', LOADED)
    inside('gateway', GET.format('9090/api/v1/query?query=up') +
           'assert [each["value"][1] for each in json.loads(found)["data"]["result"]] == ["1"]')
    inside('gateway' if what == 'gateways' else 'names', ROOTLESS.format('dnsmasq'))
    inside('gateway', ROOTLESS.format('squid'))
    if what == 'gateways':
        inside('gateway2', ROOTLESS.format('squid'))
        inside('gateway2', ROOTLESS.format('msfrs-share'))
        inside('store', ROOTLESS.format('valkey-server'))
    process.terminate()
    code, said = finish(process, 120)
    assert code == 143
    assert 'live: MSF-RS with its defaults; 12 users, 12 servers, 2 Mbit/s; until stopped' in said
    assert 'ended by itself' not in said


#: The services that are gateways in `gateways`, and their roles.
GATEWAYS = {'gateway': 'gw', 'gateway2': 'gw2'}
RATE_MBIT = 2
#: Duration of the measurement, s, and tolerance of a class's share. The link carries 14 MB in that time, of which a
#: seventh is bronze's share; twelve slots of the window with 16 KB each, more than there are, are a tenth of that.
MEASURED, BOUND = 60, 0.1
MANAGER = GET.format('3128/squid-internal-mgr/msfrs-metrics')
#: Bytes sent towards the gateways, in whole frames, and the time.
SENT = """import json, subprocess as s, time
said = s.run(["tc", "-s", "-j", "qdisc", "show", "dev", "acc0", "root"], capture_output=True, check=True).stdout
print(json.dumps([json.loads(said)[0]["bytes"], time.monotonic()]))"""
STATE = """import glob, subprocess as s
print(s.run(["/opt/msfrs/sbin/msfrs-share", "--ask", "metrics", *glob.glob("/run/msfrs/world-*/share-{}.conf")],
            capture_output=True, check=True, text=True).stdout)"""


def figures(service):
    """{sample with its labels: value} of a gateway's mgr:msfrs-metrics."""
    found = re.findall(r'^(\w+(?:{.*})?) (\S+)$', inside(service, MANAGER + 'print(found.decode())'), re.MULTILINE)
    return {name: float(value) for name, value in found}


def sees_another(service):
    """Whether a gateway is in the ledger of another, and live."""
    return [value for name, value in figures(service).items()
            if name.startswith('msfrs_party_live{kind="gateway"')] == [1]


def received():
    """{service: {class: bytes that its Squid has received from servers}}."""
    found = {service: figures(service) for service in GATEWAYS}
    return {service: {cls: found[service][f'msfrs_class_received_bytes_total{{class="{cls}"}}']
                      for cls in DEFAULT_WEIGHTS} for service in GATEWAYS}


def assert_shares():
    """For a time, users of both gateways together share the whole link by weight, and both gateways have a part."""
    before, (sent_before, began) = received(), json.loads(inside('isp', SENT))
    time.sleep(MEASURED)
    (sent, ended), after = json.loads(inside('isp', SENT)), received()
    got = {service: {cls: after[service][cls] - before[service][cls] for cls in DEFAULT_WEIGHTS}
           for service in GATEWAYS}
    total = sum(sum(classes.values()) for classes in got.values())
    for cls, weight in DEFAULT_WEIGHTS.items():
        due = total * weight / sum(DEFAULT_WEIGHTS.values())
        assert abs(sum(classes[cls] for classes in got.values()) / due - 1) < BOUND, (cls, got)
    assert min(sum(classes.values()) for classes in got.values()) > total / 4, got
    used = (sent - sent_before) * 8 / (ended - began) / RATE_MBIT / 1e6
    print(f'{got}, {used:.4f} of the link')
    assert 0.9 < used < 1.02, used


def wait_for(what):
    """Waits until it is so."""
    end = time.monotonic() + 120
    while not what():
        assert time.monotonic() < end
        time.sleep(0.5)


def are(state):
    """Whether the msfrs-share of both gateways is in that state."""
    return all(sharing.STATE.search(inside(service, STATE.format(role)))[1] == state
               for service, role in GATEWAYS.items())


def test_users_of_two_gateways_share_by_weight_with_the_store_and_without(start):
    """While the store is stopped, each gateway is limited to half of the link; both have equally many users of a class.
    """
    process = start('--rates', str(RATE_MBIT), what='gateways', LIVE_WAIT_S='0')
    inside('locust', LOADED)
    wait_for(lambda: are('together') and all(map(sees_another, GATEWAYS)))
    time.sleep(20)      # the window grows to the link's capacity
    assert_shares()
    store = docker('ps', '-q', '--filter', 'label=com.docker.compose.service=store').strip()
    docker('pause', store)
    try:
        wait_for(lambda: are('static'))
        time.sleep(10)
        assert_shares()
    finally:
        docker('unpause', store)
    wait_for(lambda: are('together') and all(map(sees_another, GATEWAYS)))
    # Servers abort large responses that have waited for a minute (docs/user/limits.md); no gateway has refused any.
    refused = [value for service in GATEWAYS for name, value in figures(service).items() if 'refused' in name]
    assert refused and not any(refused)
    process.terminate()
    code, said = finish(process, 120)
    assert code == 143 and 'ended by itself' not in said


def kill_midway(process, service):
    """(exit code, output) of a run in which the container of a service is killed; of several, one."""
    end = time.monotonic() + 120
    name = None
    while not name and time.monotonic() < end:
        time.sleep(0.5)
        name = docker('ps', '-q', '--filter', 'label=com.docker.compose.service=trial').strip()
    time.sleep(10)    # the first cell is running
    docker('kill', docker('ps', '-q', '--filter', f'label=com.docker.compose.service={service}').split()[0])
    code, said = finish(process, 200)
    assert f'the container of {service} ended by itself with exit code 137' in said
    return code, said


@pytest.mark.parametrize('service', ['overseas', 'names', 'users'])
def test_a_service_that_dies_midway_ends_the_trial(start, service):
    code, said = kill_midway(start(*SHORT, '--seconds', '60'), service)
    assert code not in (0, 3) and 'unhealthy' not in said


def test_the_exit_code_is_that_of_a_trial_that_was_stopped(start, tmp_path):
    """Not 0, although it was stopped before it noticed that a host had disappeared."""
    extra = tmp_path / 'blind.yaml'
    extra.write_text('services: {trial: {entrypoint: [sh, -c, "sleep 100"]}}\n')
    code, _ = kill_midway(start(extra=extra), 'names')
    assert code == 143
