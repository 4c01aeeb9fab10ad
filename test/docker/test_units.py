# SPDX-License-Identifier: GPL-2.0-or-later
"""The units of conf/systemd as installed, under systemd in a container: every configuration of conf/edge starts with
the privileges of its unit, and a configuration error stops the unit. `./check --docker` provides engine and image."""
import os
import pathlib
import re

import pytest
from machine import boot, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURATIONS = sorted(path.stem for path in (ROOT / 'conf/edge').glob('*.conf'))
IMAGE, PREFIX = 'msfrs-units', '/opt/msfrs'
EXAMPLES = f'{PREFIX}/share/msfrs/examples'
pytestmark = pytest.mark.skipif('DOCKER_HOST' not in os.environ, reason='needs an engine: ./check --docker')


@pytest.fixture(scope='module', name='booted')
def _booted():
    with boot(IMAGE, 'docker') as machine:
        machine.sh(f'mkdir /etc/msfrs; cp {EXAMPLES}/diffserv.rules /etc/msfrs; '
                   f'cp {EXAMPLES}/msfrs-edge*.service /etc/systemd/system; systemctl daemon-reload; '
                   'ip link add eth0 type veth peer name eth1; ip link set eth0 up; ip link set eth1 up')
        yield machine


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
    # Started means that the kernel passes packets to it.
    number = re.search(r'(?m)^queue number=(\d+)', (ROOT / f'conf/edge/{name}.conf').read_text(encoding='ascii'))[1]
    assert machine.sh('cut -c 1-5 /proc/net/netfilter/nfnetlink_queue').strip() == number
    machine.run('systemctl', 'reload', 'msfrs-edge')
    ask = f'{PREFIX}/sbin/msfrs-edge --ask status /etc/msfrs/edge.conf'
    wait_for(lambda: ', 1 reloads, 0 refused' in machine.sh(ask), lambda: machine.sh(ask))
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
    ('link rate=1Mbit\nqueue number=0\ncontrol /run/other/socket\n', 'directory /run/other cannot be created'),
))
def test_a_mistake_stops_the_unit_and_is_said(machine, text, said):
    machine.write('/etc/msfrs/edge.conf', text)
    assert machine.run('systemctl', 'start', 'msfrs-edge', check=False).returncode == 1
    found = machine.show('msfrs-edge')
    assert (found['ActiveState'], found['NRestarts']) == ('failed', '0')
    assert said in machine.sh('journalctl --no-pager -u msfrs-edge')


def test_what_ends_by_accident_is_started_again(machine):
    machine.sh(f'cp {EXAMPLES}/uplink.conf /etc/msfrs/edge.conf; systemctl start msfrs-edge; '
               'systemctl kill -s KILL msfrs-edge')
    wait_for(lambda: (found := machine.show('msfrs-edge')) and (found['SubState'], found['NRestarts'])
             == ('running', '1'), lambda: machine.show('msfrs-edge'))


def test_the_rules_come_and_go_with_it(machine):
    machine.sh(f'cp {EXAMPLES}/diffserv.conf /etc/msfrs/edge.conf; cp {EXAMPLES}/edge-iptables.conf /etc/msfrs; '
               'systemctl start msfrs-edge msfrs-edge-iptables')
    assert '-o eth0 -j NFQUEUE --queue-num 0 --queue-bypass' in machine.sh('iptables-save -t security')
    machine.sh('systemctl stop msfrs-edge')
    assert 'MSFRS' not in machine.sh('iptables-save; ip6tables-save')
    assert machine.show('msfrs-edge-iptables')['Result'] == 'success'
