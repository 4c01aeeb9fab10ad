# SPDX-License-Identifier: GPL-2.0-or-later
"""docker/compose.yaml: a profile starts the hosts that a world needs, on networks for its cables. No engine is needed
for that; test/docker has one."""
import os
import pathlib
import shutil
import subprocess

import pytest
import yaml

from fieldtrial.site import host, lan
from fieldtrial.site.world import World

DOCKER = pathlib.Path(__file__).resolve().parents[2] / 'docker'
FILE = DOCKER / 'compose.yaml'
PROFILES = {'trial': 1, 'live': 1, 'peers': 1, 'gateways': 2}   #: and the number of gateways of each


def services(profile):
    """{service: its entry in compose.yaml} of the services that the profile starts."""
    every = yaml.safe_load(FILE.read_text(encoding='utf-8'))['services']
    return {name: service for name, service in every.items() if profile in service.get('profiles', [profile])}


class Host(host.Host):
    """Every command succeeds without effect."""

    def run(self, *argv, **how):
        return ''

    def set_kernel(self, settings):
        pass

    popen = open = socket = None


class Composed:
    """A fabric of the containers of a profile, without containers."""

    groups, places, names = ('users-1', 'users-2', 'users-3'), ('domestic', 'overseas'), 'names'
    uncounted, lasting = 14, True

    def __init__(self, profile):
        self._networks, self.cables = {}, []
        for service in services(profile).values():
            role = str(service.get('command', '')).removeprefix('--group ')
            for name in self.groups if role == 'users' else (role,):
                self._networks[name] = set(service.get('networks', ()))

    def host(self, role):
        assert role in self._networks, f'{role}: no service of the profile has this role'
        return Host(role, role)

    def wire(self, one, name, other, name_there):
        assert self._networks[one.role] & self._networks[other.role], f'{one.role} and {other.role} have no network'
        self.cables.append((one.role, name, other.role, name_there))


@pytest.mark.parametrize('profile', PROFILES)
def test_a_profile_has_the_hosts_of_its_world(profile, tmp_path, monkeypatch):
    monkeypatch.setattr(lan, 'whole_packets', lambda *_: None)
    monkeypatch.setattr(World, 'narrow', lambda *_: None)     # it asks for the route
    fabric = Composed(profile)
    with World(rate_bps=2e6, users=(4, 4, 4), fabric=fabric, directory=tmp_path, distance='netem',
               gateways=PROFILES[profile]) as world:
        gateways = [gateway.role for gateway in world.gateways]
    assert gateways == ['gw', 'gw2'][:PROFILES[profile]]
    ends = {(name, there) for one, name, other, there in fabric.cables if other in gateways}
    assert ends == {('acc0', 'wan0')} if len(gateways) == 1 else {('acc0p1', 'wan0'), ('acc0p2', 'wan0'),
                                                                  ('store0p1', 'store0'), ('store0p2', 'store0')}


def test_the_gateways_are_told_how_many_they_are():
    command = services('gateways')['gateways']['command']
    assert command.startswith(f'--gateways {PROFILES["gateways"]} --locust locust --hosts containers ')
    assert command.endswith(services('live')['live']['command'].partition('--hosts containers ')[2])


@pytest.mark.parametrize('profile', PROFILES)
def test_compose_takes_it(profile):
    if shutil.which('docker-compose'):
        compose = ['docker-compose']
    elif shutil.which('docker') and not subprocess.run(['docker', 'compose', 'version'], capture_output=True,
                                                       check=False).returncode:
        compose = ['docker', 'compose']
    else:
        pytest.skip('no docker-compose here')
    done = subprocess.run([*compose, '--profile', profile, 'config', '--services'], cwd=DOCKER, text=True,
                          capture_output=True, check=False, env={**os.environ, 'COMPOSE_PROFILES': ''})
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) >= set(services(profile))
