# SPDX-License-Identifier: GPL-2.0-or-later
"""docker/gateway: the rights of its services are those of the units, what Squid writes has a place, and users are sent
to Squid only while it listens. No engine is needed for that."""
import contextlib
import os
import pathlib
import re
import subprocess
import time

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / 'docker/gateway'
SERVICES = yaml.safe_load((FOLDER / 'compose.yaml').read_text(encoding='utf-8'))['services']


def of_unit(name, setting):
    """Capabilities that a setting of a unit names, as compose has them."""
    text = (ROOT / f'conf/systemd/{name}.service').read_text(encoding='utf-8')
    return {word.removeprefix('CAP_') for word in re.search(f'^{setting}=(.*)$', text, re.MULTILINE)[1].split()}


@pytest.mark.parametrize('name', SERVICES)
def test_a_service_has_no_more_than_it_needs(name):
    service = SERVICES[name]
    assert service['read_only'] and service['cap_drop'] == ['ALL'] and 'privileged' not in service
    assert service['security_opt'] == ['no-new-privileges=true']
    assert service['network_mode'] == ('none' if name == 'prepare' else 'host')
    if name != 'prepare':
        assert all(volume.endswith(':ro') for volume in service['volumes'] if volume.startswith('/'))


def test_capabilities_are_those_of_the_units():
    squid = of_unit('msfrs-squid', 'AmbientCapabilities')
    assert set(SERVICES['squid']['cap_add']) == squid | {'SETUID', 'SETGID', 'KILL'}
    script = (FOLDER / 'squid').read_text(encoding='ascii')
    for option in ('--inh-caps', '--ambient-caps'):
        assert f'{option}={",".join("+" + name.lower() for name in sorted(squid))} ' in script
    assert set(SERVICES['intercept']['cap_add']) == of_unit('msfrs-iptables', 'CapabilityBoundingSet')
    syn = SERVICES['syn']
    assert set(syn['cap_add']) == of_unit('msfrs-syn', 'CapabilityBoundingSet') | {'KILL'}
    assert {str(syn['ulimits']['nofile'])} == of_unit('msfrs-syn', 'LimitNOFILE')
    assert {syn['mem_limit'].upper()} == of_unit('msfrs-syn', 'MemoryMax')
    assert SERVICES['prepare']['cap_add'] == ['CHOWN']


def test_the_example_writes_where_it_may():
    conf = (ROOT / 'conf/squid/squid.conf').read_text(encoding='utf-8')
    files = [re.sub(r'^\w+:', '', line.split()[1]) for line in conf.splitlines()
             if re.match(r'(access_log|cache_log|pid_filename) ', line)]
    assert len(files) == 3
    squid = SERVICES['squid']
    places = [tmpfs.split(':')[0] for tmpfs in squid['tmpfs']]
    places += [volume.split(':')[1] for volume in squid['volumes'] if not volume.endswith(':ro')]
    for file in files:
        assert any(pathlib.PurePath(file).is_relative_to(place) for place in places), file


def test_what_is_started_is_in_the_image():
    text = (ROOT / 'docker/Dockerfile').read_text(encoding='utf-8')
    stage = re.search(r'^FROM tools AS gateway$(.*?)^FROM ', text, re.MULTILINE | re.DOTALL)[1]
    for folder in ('docker/gateway', 'conf/squid', 'conf/iptables'):
        assert f'COPY {folder} {folder}\n' in stage
    for name in ('squid', 'intercept', 'prepare'):
        assert os.access(FOLDER / name, os.X_OK)


def test_squid_is_built_from_all_that_its_patches_are():
    text = (ROOT / 'docker/Dockerfile').read_text(encoding='utf-8')
    copied = set(re.findall(r'squid-patches/([\w.]+)(?= )', text))
    of_others = {'6', 'README.md', 'refresh'}
    there = {path.name for path in (ROOT / 'squid-patches').iterdir() if not path.name.startswith(('.', '__'))}
    assert there - copied == of_others


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root, to give files to a group')
def test_prepare_makes_what_is_missing(tmp_path):
    (tmp_path / 'iptables.conf').write_text('mine', encoding='ascii')
    for _ in range(2):
        subprocess.run([FOLDER / 'prepare', tmp_path, tmp_path], check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {'squid.conf', 'intercept.pem', 'iptables.conf'}
    assert (tmp_path / 'iptables.conf').read_text(encoding='ascii') == 'mine'
    assert (tmp_path / 'intercept.pem').stat().st_mode & 0o777 == 0o640
    text = (tmp_path / 'squid.conf').read_text(encoding='utf-8')
    assert 'tls-cert=/etc/squid/intercept.pem' in text and '/opt/msfrs/etc' not in text
    pem = (tmp_path / 'intercept.pem').read_text(encoding='ascii')
    assert 'PRIVATE KEY' in pem and 'BEGIN CERTIFICATE' in pem


class Intercept:
    """docker/gateway/intercept, which looks again at each turn(); scripts stand for ss, sleep and msfrs-iptables."""

    def __init__(self, directory):
        self.directory, self._turns, self._log = directory, directory / 'turns', directory / 'log'
        os.mkfifo(self._turns)
        rules = f"""echo "$1" >>{self._log}
case $1 in
    check) [ -e {directory}/up ] ;;
    up) : >{directory}/up ;;
    *) rm -f {directory}/up ;;
esac"""
        for name, script in (('ss', f'cat {directory}/listening 2>/dev/null'), ('rules', rules),
                             ('sleep', f'[ "$1" != 2 ] || exit 0; echo turn >>{self._log}; read -r _ <{self._turns}')):
            (directory / name).write_text(f'#!/bin/sh\n{script}\n', encoding='ascii')
            (directory / name).chmod(0o755)
        self.process = subprocess.Popen(
            [FOLDER / 'intercept'], stdout=subprocess.DEVNULL,
            env={**os.environ, 'PATH': f'{directory}:{os.environ["PATH"]}', 'MSFRS_IPTABLES': str(directory / 'rules')})

    def said(self, turns):
        """Commands of msfrs-iptables up to the given number of turns, once that is reached."""
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(FileNotFoundError):
                words = self._log.read_text(encoding='ascii').split()
                if words.count('turn') >= turns:
                    return [word for word in words if word != 'turn']
            assert time.monotonic() < deadline
            os.sched_yield()

    def listens(self, listening):
        if listening:
            (self.directory / 'listening').write_text('LISTEN\n', encoding='ascii')
        else:
            (self.directory / 'listening').unlink()

    def turn(self):
        with open(self._turns, 'w', encoding='ascii') as turns:
            turns.write('\n')


@pytest.fixture
def intercept(tmp_path):
    one = Intercept(tmp_path)
    yield one
    one.process.kill()
    one.process.wait()
    with contextlib.suppress(OSError):      # nobody reads: its sleep has ended
        os.close(os.open(tmp_path / 'turns', os.O_WRONLY | os.O_NONBLOCK))


def test_users_are_sent_to_squid_while_it_listens(intercept):
    assert intercept.said(1) == ['drain']       # what a container that was killed left
    intercept.turn()
    assert intercept.said(2) == ['drain']
    intercept.listens(True)
    intercept.turn()
    assert intercept.said(3) == ['drain', 'check', 'up']
    intercept.turn()
    assert intercept.said(4)[3:] == ['check']
    (intercept.directory / 'up').unlink()       # as another firewall clears rules
    intercept.turn()
    assert intercept.said(5)[4:] == ['check', 'up']
    intercept.listens(False)
    intercept.turn()
    assert intercept.said(6)[6:] == ['drain']
    intercept.process.terminate()
    assert intercept.process.wait(30) == 0
    assert intercept.said(6)[7:] == ['drain', 'down']
