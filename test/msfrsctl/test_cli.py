# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line, and the files that belong to it: manual page, completion and the list of installed files."""
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
from msfrsctl.units import canonical, rate_of, time_of

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
    assert cli.words_after([]) == cli.words_after(['nothing']) == (*cli.COMMANDS, '--version')
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


def test_the_version_is_that_of_configure():
    """In the source tree, and installed."""
    version = re.search(r'AC_INIT\(\[msfrs\], \[([^]]+)\]', (ROOT / 'configure.ac').read_text())[1]
    done = subprocess.run([sys.executable, '-B', '-m', 'msfrsctl', '--version'], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert (done.stdout, done.stderr) == (f'msfrsctl {version}\n', '')
    rule = re.search(r'^bin/msfrsctl:.*\n(\t.*\n)+', (PACKAGE / 'msfrsctl.am').read_text(), re.MULTILINE)[0]
    assert "-e 's|@version[@]|$(VERSION)|'" in rule and "version='@version@'" in (PACKAGE / 'msfrsctl.in').read_text()


def test_without_a_command_all_are_listed(capsys):
    with pytest.raises(SystemExit):
        cli.main([])
    said = capsys.readouterr().out
    assert all(re.search(rf'^ +{command} ', said, re.MULTILINE) for command in cli.COMMANDS)


@pytest.mark.parametrize('words, sentence', [
    (('top', '--count', '0'), '--count 0 must be 1 or more'),
    (('why', 'x', '--last', '0'), '--last 0 must be 1 or more')])
def test_numbers_are_not_clamped(gateway, capsys, words, sentence):
    assert gateway.run(*words) == (2, '') and sentence in capsys.readouterr().err


def test_an_error_is_json_too(gateway):
    gateway.conf.unlink()
    for command in (('status',), ('why', 'x'), ('set',), ('top',)):
        assert 'cannot read' in json.loads(gateway.run(*command, '--json')[1])['error']


def test_a_reader_that_leaves(gateway):
    read, write = os.pipe()
    os.close(read)
    with io.TextIOWrapper(io.FileIO(write, 'w')) as out:
        assert cli.main(['status', '--squid-conf', str(gateway.conf)], system=gateway.machine, out=out) == 0


@pytest.mark.parametrize('said, written', [
    ('20Mbit', '20Mbit'), ('1.5gbit', '1500Mbit'), ('64kbit', '64kbit'), ('5M', '5Mbit'), ('5m', '5Mbit'),
    ('5Mbps', '5Mbit'), ('5mbps', '5Mbit'), ('5 Mbit/s', '5Mbit'), ('5Mbit/s', '5Mbit'), ('5000k', '5Mbit'),
    ('5 mbit', '5Mbit'), ('5Mb', '5Mbit'), ('5 Mb/s', '5Mbit'), ('5.5 MBit/s', '5500kbit'), ('5 MBPS', '5Mbit'),
    ('5 megabits per second', '5Mbit'), ('1 Gbps', '1Gbit'), (' 9600 bit/s ', '9600bit'), ('10000bps', '10kbit'),
    ('20mbps', '20Mbit'), ('20000k', '20Mbit'), ('20 Mbps', '20Mbit'), ('2.5MB/s', '20Mbit'), ('2.5 MByte/s', '20Mbit'),
    ('5 megabytes per second', '40Mbit'), ('250kB/s', '2Mbit'), ('1500 B/s', '12kbit')])
def test_rates_as_people_write_them(said, written):
    """The result is in the form that Squid and the daemons read."""
    assert canonical(rate_of(said)) == written and rate_of(written) == rate_of(said)


@pytest.mark.parametrize('said, why', [
    ('20MB', 'may be in bits or in bytes: write 160Mbit if you mean megabytes a second, 20Mbit if you mean megabits'),
    ('5 MBps', 'may be in bits or in bytes: write 40Mbit'), ('999 B/s', 'must be from 8kbit to 400Gbit'),
    ('5mb/s', 'may be in bits or in bytes: write 40Mbit'), ('300kb', 'may be in bits or in bytes'),
    ('20', 'has no unit: write 20Mbit or 20kbit'), ('7kbit', 'must be from 8kbit to 400Gbit'),
    ('401Gbit', 'must be from 8kbit'), ('-1Mbit', 'must be a number and'), ('inf', 'must be a number and'),
    ('1e9bit', 'must be a number and'), ('5,5Mbit', 'must be a number and'), ('', 'must be a number and')])
def test_rates_that_are_refused(said, why):
    with pytest.raises(CtlError, match=re.escape(f"max '{said}' {why}")):
        rate_of(said, 'max')


def test_times():
    assert [time_of(said) for said in ('60s', '30min', '1.5h', '2d')] == [60, 1800, 5400, 172800]
    assert [time_of(said) for said in ('1 h', '1hour', '90 minutes', '2 days')] == [3600, 3600, 5400, 172800]
    for wrong in ('', '5s', '31d', '1', 'h', '-1h', '1 week'):
        with pytest.raises(CtlError, match='must be a number and'):
            time_of(wrong)
