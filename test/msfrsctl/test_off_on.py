# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl off and on: what is run, reported and refused. With traffic: test/e2e/test_setup.py."""
import json

import pytest

from conftest import OFF
from msfrsctl.system import Done

SCRIPT = '/opt/msfrs/share/msfrs/iptables/msfrs-iptables'
CONF = '--config /etc/msfrs/iptables.conf'


@pytest.fixture
def intercepting(gateway):
    gateway.machine.files.update({'/opt/msfrs/share/msfrs': '', SCRIPT: ''})
    gateway.machine.programs.update({f'{SCRIPT} drain': 'msfrs-iptables: drained\n',
                                     f'{SCRIPT} up': 'msfrs-iptables: in place: redirect on lan0\n'})
    return gateway


def test_off_drains(intercepting):
    code, said = intercepting.run('off')
    assert code == 0 and 'continue' in said and 'msfrsctl on' in said
    assert intercepting.machine.ran == [f'{SCRIPT} drain {CONF}']


def test_on_intercepts_again_and_says_how(intercepting):
    assert intercepting.run('on') == (0, 'New connections go through Squid again: in place: redirect on lan0\n')
    assert intercepting.machine.ran == [f'{SCRIPT} up {CONF}']
    assert intercepting.data('on') == {'interception': True, 'scheduling': True, 'how': 'in place: redirect on lan0'}


def test_on_says_that_nothing_is_scheduled(intercepting):
    intercepting.machine.pages['msfrs'] = OFF
    assert 'squid.conf says msfrs off' in intercepting.run('on')[1]


def test_on_is_refused_while_squid_does_not_answer(intercepting, capsys):
    intercepting.machine.pages['msfrs'] = ConnectionRefusedError(111, 'Connection refused')
    assert intercepting.run('on')[0] == 3
    assert intercepting.machine.ran == []
    assert 'Connection refused' in capsys.readouterr().err


@pytest.mark.parametrize('command', ('off', 'on'))
def test_what_the_script_refuses_is_passed_on(intercepting, capsys, command):
    said = "msfrs-iptables: needs the right to change the firewall (CAP_NET_ADMIN): run it as root\n"
    intercepting.machine.programs = {SCRIPT: Done(3, '', said)}
    assert intercepting.run(command)[0] == 3
    assert capsys.readouterr().err == f'msfrsctl: {said}'


def test_without_the_script_there_is_nothing_to_change(gateway, capsys):
    assert gateway.run('off')[0] == 3
    assert 'msfrs-iptables is not installed' in capsys.readouterr().err
    assert json.loads(gateway.run('off', '--json')[1])['error'].startswith('msfrs-iptables is not installed')
