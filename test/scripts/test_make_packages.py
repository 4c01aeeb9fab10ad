# SPDX-License-Identifier: GPL-2.0-or-later
"""For which architectures scripts/make-packages builds; a script stands for the machine's dpkg."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(name='refusal')
def _refusal(tmp_path):
    """What is said to --arch on a machine; nothing is built, since --only is wrong."""
    def of(machine, arch):
        (tmp_path / 'dpkg').write_text(f'#!/bin/sh\necho {machine}\n')
        (tmp_path / 'dpkg').chmod(0o755)
        done = subprocess.run([ROOT / 'scripts/make-packages', '--suite', 'trixie', *arch, '--only', 'neither'],
                              env={**os.environ, 'PATH': f'{tmp_path}:{os.environ["PATH"]}'}, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 1, done
        return done.stderr
    return of


@pytest.mark.parametrize('machine, arch', [('amd64', []), ('amd64', ['--arch', 'amd64']), ('riscv64', []),
                                           ('amd64', ['--arch', 'arm64']), ('arm64', ['--arch', 'arm64'])])
def test_own_architecture_and_arm64_on_amd64(refusal, machine, arch):
    assert "--only 'neither' is unknown" in refusal(machine, arch)


@pytest.mark.parametrize('machine, arch, known', [('amd64', 'aarch64', 'amd64 and arm64'), ('arm64', 'amd64', 'arm64'),
                                                  ('amd64', 'riscv64', 'amd64 and arm64')])
def test_others_are_refused(refusal, machine, arch, known):
    assert refusal(machine, ['--arch', arch]).endswith(
        f": --arch '{arch}' cannot be built on {machine}; known here: {known}\n")


@pytest.mark.parametrize('suite, said', (('all', "--only 'neither' is unknown"),
                                         ('sid', "--suite 'sid' is unknown; known are: all ")))
def test_suites(suite, said):
    done = subprocess.run([ROOT / 'scripts/make-packages', '--suite', suite, '--only', 'neither'], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and said in done.stderr
