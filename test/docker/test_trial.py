# SPDX-License-Identifier: GPL-2.0-or-later
"""The trial in containers, by docker/run, with the engine at DOCKER_HOST and images that are there: its verdict, its
exit codes, what it says when something is wrong, and that nothing is left of it. `./check --docker` starts an engine."""
import os
import pathlib
import re
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT = ('--arms', 'stock,msfrs', '--workloads', 'backlogged', '--rates', '2')

pytestmark = pytest.mark.skipif('DOCKER_HOST' not in os.environ, reason='needs an engine: ./check --docker')


def docker(*words):
    return subprocess.run(['docker', *words], capture_output=True, text=True, check=True, timeout=60).stdout


def leftovers():
    """Containers, networks and volumes of the project."""
    ours = ('--filter', 'label=com.docker.compose.project=msfrs', '-q')
    return docker('ps', '-a', *ours) + docker('network', 'ls', *ours) + docker('volume', 'ls', *ours)


def start(*options, extra=None):
    """docker/run trial, on its way; `extra`: a file that changes compose.yaml."""
    environment = dict(os.environ, COMPOSE_FILE=f'compose.yaml:{extra}' if extra else 'compose.yaml')
    return subprocess.Popen([ROOT / 'docker/run', '--no-build', 'trial', *options], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(process, timeout):
    """(exit code, what was said), once nothing is left."""
    said, _ = process.communicate(timeout=timeout)
    print(said)
    assert leftovers() == ''
    return process.returncode, said


def test_a_short_trial_ends_with_its_verdict():
    code, said = finish(start(*SHORT, '--seconds', '60'), 400)
    assert 'FAILED' not in said
    missed = re.search(r'(\d+) of (\d+) measured targets reached, (\d+) missed', said)
    assert code == (3 if int(missed[3]) else 0) and int(missed[2]) >= 10
    # What holds however short the cells are.
    for target in ('utilisation, backlogged', 'drops per MB', 'requests refused or failed'):
        assert re.search(rf'{target}.*\n.*\bok  ', said), target
    run = sorted((ROOT / 'build/trial-docker').iterdir())[-1]
    assert (run / 'report.html').stat().st_size > 10_000
    assert len(list(run.glob('*/requests.csv'))) == 2


def test_a_wrong_option_is_refused():
    code, said = finish(start('--rates', 'fast'), 120)
    assert code == 2
    assert "argument --rates: 'fast': wanted are rates in Mbit/s" in said


def test_without_net_admin_that_is_said(tmp_path):
    extra = tmp_path / 'nobody.yaml'
    extra.write_text('services: {gateway: {user: "65534:13"}}\n')   # who has no capabilities
    code, said = finish(start(*SHORT, '--seconds', '20', extra=extra), 200)
    assert code == 1
    assert 'gw: its container may not set up its network; it takes the capability NET_ADMIN' in said


def test_a_service_that_dies_midway_ends_the_trial():
    process = start(*SHORT, '--seconds', '60')
    end = time.monotonic() + 120
    name = None
    while not name and time.monotonic() < end:
        time.sleep(0.5)
        name = docker('ps', '-q', '--filter', 'label=com.docker.compose.service=trial').strip()
    time.sleep(10)    # the first cell is under way
    docker('kill', docker('ps', '-q', '--filter', 'label=com.docker.compose.service=overseas').strip())
    code, said = finish(process, 200)
    assert code not in (0, 3)
    assert 'the container of overseas ended by itself with exit code 137' in said
