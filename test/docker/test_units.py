# SPDX-License-Identifier: GPL-2.0-or-later
"""The units of conf/systemd as they are installed, under a systemd of their own in a container: every configuration of
conf/edge starts with the rights that its unit gives it, and a mistake stops the unit. `./check --docker` has an engine
and the image."""
import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURATIONS = sorted(path.stem for path in (ROOT / 'conf/edge').glob('*.conf'))
IMAGE, PREFIX = 'msfrs-units', '/opt/msfrs'
EXAMPLES = f'{PREFIX}/share/msfrs/examples'
#: Where an engine may not give all rights, those that systemd and msfrs-edge need.
SOME = ('--security-opt', 'seccomp=unconfined', '--security-opt', 'apparmor=unconfined',
        *(word for name in ('SYS_ADMIN', 'NET_ADMIN', 'SYS_NICE') for word in ('--cap-add', name)))
#: For systemd, where the machine has the control groups of old.
LEGACY = () if os.path.exists('/sys/fs/cgroup/cgroup.controllers') else (
    'SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1', 'systemd.unified_cgroup_hierarchy=0')

pytestmark = pytest.mark.skipif('DOCKER_HOST' not in os.environ, reason='needs an engine: ./check --docker')


def docker(*words, check=True, **how):
    return subprocess.run(['docker', *words], capture_output=True, text=True, timeout=60, check=check, **how)


class Machine:
    """A running container with systemd."""

    def __init__(self, name):
        self.name = name

    def run(self, *words, check=True, **how):
        done = docker('exec', '-i', self.name, *words, check=False, **how)
        assert done.returncode == 0 or not check, (words, done.stdout, done.stderr, self.said())
        return done

    def sh(self, script, **how):
        return self.run('sh', '-ec', script, **how).stdout

    def said(self):
        done = docker('logs', self.name, check=False)
        return (done.stdout + done.stderr)[-3000:]

    def show(self, unit):
        """What systemd says of it."""
        text = self.run('systemctl', 'show', '-p', 'ActiveState,SubState,NRestarts,Result', unit).stdout
        return dict(line.split('=', 1) for line in text.splitlines())

    def configure(self, text):
        self.run('sh', '-c', 'cat > /etc/msfrs/edge.conf', input=text)


@pytest.fixture(scope='module', name='booted')
def _booted():
    name = f'msfrs-units-{os.getpid()}'
    common = ('run', '-d', '--name', name, '--cgroupns=private', '--network', 'none', '--tmpfs', '/run', '--tmpfs',
              '/tmp')
    made = docker(*common, '--privileged', IMAGE, *LEGACY, check=False)
    if made.returncode:
        docker('rm', '-f', name)
        made = docker(*common, *SOME, IMAGE, *LEGACY, check=False)
    try:
        assert made.returncode == 0, made.stderr
        machine = Machine(name)
        end = time.monotonic() + 60
        while machine.run('systemctl', 'is-system-running', check=False).stdout.strip() not in ('running', 'degraded'):
            assert time.monotonic() < end, machine.said()
            time.sleep(0.2)
        machine.sh(f'mkdir /etc/msfrs; cp {EXAMPLES}/diffserv.rules /etc/msfrs; '
                   f'cp {EXAMPLES}/msfrs-edge*.service /etc/systemd/system; systemctl daemon-reload; '
                   'ip link add eth0 type veth peer name eth1; ip link set eth0 up; ip link set eth1 up')
        yield machine
    finally:
        docker('rm', '-f', name)


@pytest.fixture(name='machine')
def _machine(booted):
    yield booted
    booted.run('systemctl', 'stop', 'msfrs-edge-iptables', 'msfrs-edge')
    booted.run('systemctl', 'reset-failed', check=False)


@pytest.mark.parametrize('name', CONFIGURATIONS)
def test_every_configuration_starts_reloads_and_ends_under_its_unit(machine, name):
    machine.sh(f'cp {EXAMPLES}/{name}.conf /etc/msfrs/edge.conf')
    assert machine.sh(f'{PREFIX}/sbin/msfrs-edge --check /etc/msfrs/edge.conf 2>&1') == ''
    machine.run('systemctl', 'start', 'msfrs-edge')
    # Started means that the kernel hands it packets.
    assert machine.sh('cut -c 1-5 /proc/net/netfilter/nfnetlink_queue').strip() == ('1' if name == 'excess' else '0')
    machine.run('systemctl', 'reload', 'msfrs-edge')
    ask = f'{PREFIX}/sbin/msfrs-edge --ask status /etc/msfrs/edge.conf'
    end = time.monotonic() + 20
    while ', 1 reloads, 0 refused' not in (status := machine.sh(ask)):
        assert time.monotonic() < end, status
    found = machine.show('msfrs-edge')
    assert (found['ActiveState'], found['SubState'], found['NRestarts']) == ('active', 'running', '0')
    process = machine.sh('cat /proc/$(systemctl show -P MainPID msfrs-edge)/status')
    assert 'CapEff:\t0000000000001000\n' in process and 'NoNewPrivs:\t1\n' in process and '\nUid:\t0' not in process
    machine.run('systemctl', 'stop', 'msfrs-edge')
    assert machine.show('msfrs-edge')['Result'] == 'success'
    assert machine.sh('ls /run/msfrs-edge 2>/dev/null || true') == ''


@pytest.mark.parametrize('text, said', (
    ('bogus\n', '/etc/msfrs/edge.conf:1: "bogus": unknown'),
    ('link rate=1Mbit\nqueue number=0\ncontrol /nowhere/edge/socket\n', 'there is no directory /nowhere'),
    ('link rate=1Mbit\nqueue number=0\ncontrol /run/other/socket\n', 'directory /run/other cannot be made'),
))
def test_a_mistake_stops_the_unit_and_is_said(machine, text, said):
    machine.configure(text)
    assert machine.run('systemctl', 'start', 'msfrs-edge', check=False).returncode == 1
    found = machine.show('msfrs-edge')
    assert (found['ActiveState'], found['NRestarts']) == ('failed', '0')
    assert said in machine.sh('journalctl --no-pager -u msfrs-edge')


def test_what_ends_by_accident_is_started_again(machine):
    machine.sh(f'cp {EXAMPLES}/uplink.conf /etc/msfrs/edge.conf; systemctl start msfrs-edge; '
               'systemctl kill -s KILL msfrs-edge')
    end = time.monotonic() + 20
    while (found := machine.show('msfrs-edge')) and (found['SubState'], found['NRestarts']) != ('running', '1'):
        assert time.monotonic() < end, found
        time.sleep(0.2)


def test_the_rules_come_and_go_with_it(machine):
    machine.sh(f'cp {EXAMPLES}/diffserv.conf /etc/msfrs/edge.conf; cp {EXAMPLES}/edge-iptables.conf /etc/msfrs; '
               'systemctl start msfrs-edge msfrs-edge-iptables')
    assert '-o eth0 -j NFQUEUE --queue-num 0 --queue-bypass' in machine.sh('iptables-save -t security')
    machine.sh('systemctl stop msfrs-edge')
    assert 'MSFRS' not in machine.sh('iptables-save; ip6tables-save')
    assert machine.show('msfrs-edge-iptables')['Result'] == 'success'
