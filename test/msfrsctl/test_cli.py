# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line, and what comes with it: the manual page, the completion and the list of what is installed."""
import io
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT

from msfrsctl import cli
from msfrsctl.errors import CtlError
from msfrsctl.units import rate_of, time_of

PACKAGE = ROOT / 'msfrsctl'


def options_of(command):
    return [word for word in cli.words_after([command]) if word.startswith('--')]


@pytest.mark.parametrize('command', cli.COMMANDS)
def test_the_manual_page_has_it(command):
    page = (PACKAGE / 'msfrsctl.8').read_text().replace(r'\-', '-')
    assert re.search(rf'^\.(B|BR) "?{command}\b', page, re.MULTILINE)
    for option in options_of(command):
        assert option in page or option.removeprefix('--') in re.search(r'names as those.*?\.\n', page, re.DOTALL)[0] \
            or option == '--help', option


def test_what_is_installed_is_what_there_is():
    listed = set(re.findall(r'msfrsctl/[\w/]+\.py', (PACKAGE / 'msfrsctl.am').read_text()))
    assert listed == {str(path.relative_to(ROOT)) for path in PACKAGE.rglob('*.py')}


def test_words_for_completion():
    assert cli.words_after([]) == cli.COMMANDS and cli.words_after(['nothing']) == cli.COMMANDS
    assert {'rate', 'weight', 'boost', '--for', '--json'} <= set(cli.words_after(['set']))
    checks = cli.words_after(['doctor', '--only'])
    assert 'interception' in checks and '--json' not in checks


def test_the_completion_of_bash(tmp_path):
    program = tmp_path / 'msfrsctl'
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m msfrsctl "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(['bash', '-c', f'. {PACKAGE}/completion/msfrsctl; COMP_WORDS=(msfrsctl se); COMP_CWORD=1; '
                           'COMPREPLY=(); _msfrsctl; echo "${COMPREPLY[@]}"'], capture_output=True, text=True,
                          check=False, env={'PATH': f'{tmp_path}:{os.environ["PATH"]}', 'PYTHONDONTWRITEBYTECODE': '1'})
    assert (done.stdout, done.stderr) == ('set setup\n', '')


def test_an_error_is_json_too(gateway):
    gateway.conf.unlink()
    for command in (('status',), ('why', 'x'), ('set',), ('top',)):
        assert 'cannot read' in json.loads(gateway.run(*command, '--json')[1])['error']


def test_a_reader_that_leaves(gateway):
    read, write = os.pipe()
    os.close(read)
    with io.TextIOWrapper(io.FileIO(write, 'w')) as out:
        assert cli.main(['status', '--squid-conf', str(gateway.conf)], system=gateway.machine, out=out) == 0


@pytest.mark.parametrize('said, bits', [('20Mbit', 2e7), ('1.5gbit', 1.5e9), ('64kbit', 64e3), ('20MB', None),
                                        ('-1Mbit', None), ('inf', None), ('1e9bit', None), ('', None)])
def test_rates(said, bits):
    assert rate_of(said) == bits


def test_times():
    assert [time_of(said) for said in ('60s', '30min', '1.5h', '2d')] == [60, 1800, 5400, 172800]
    for wrong in ('', '5s', '31d', '1', 'h', '1 h', '-1h', '1hour'):
        with pytest.raises(CtlError, match='must be a number and'):
            time_of(wrong)
