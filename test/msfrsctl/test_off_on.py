# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl off and on: what is run, reported and refused. With traffic: test/e2e/test_setup.py."""
import json
import time

import pytest

from conftest import BUSY, METRICS, NOW, OFF
from msfrsctl.system import Done

SCRIPT = '/opt/msfrs/share/msfrs/iptables/msfrs-iptables'
CONF, FILE = '--config /etc/msfrs/iptables.conf', '/etc/msfrs/off'


@pytest.fixture
def intercepting(gateway):
    gateway.machine.files.update({'/opt/msfrs/share/msfrs': '', SCRIPT: ''})
    gateway.machine.files['/etc/msfrs/iptables.conf'] = 'inside = lan0\n'
    gateway.machine.programs.update({f'{SCRIPT} drain': 'msfrs-iptables: drained\n', 'unshare': '[]',
                                     f'{SCRIPT} print': '', f'{SCRIPT} check': '',
                                     f'{SCRIPT} up': 'msfrs-iptables: in place: redirect on lan0\n'})
    return gateway


def test_off_drains(intercepting):
    code, said = intercepting.run('off')
    assert code == 0 and 'continue' in said and 'msfrsctl on' in said
    assert intercepting.machine.ran == [f'{SCRIPT} drain {CONF}']
    assert FILE in intercepting.machine.files


def test_off_lasts_until_on_and_is_what_status_and_why_say_first(intercepting):
    intercepting.run('off')
    since = time.strftime('%H:%M', time.localtime(NOW))
    said = f'Off since {since} by msfrsctl off: new connections of users go past Squid. To end it: msfrsctl on.'
    assert intercepting.machine.files['/run/msfrsctl/faults'] == f'off\t{said}\n'
    intercepting.machine.time += 60
    intercepting.run('off')
    for command in (('status',), ('why', '10.20.1.7')):
        assert intercepting.run(*command)[1].splitlines()[0] == said
    intercepting.machine.pages['msfrs'] = intercepting.machine.pages['msfrs-metrics'] = ConnectionRefusedError(111, 'x')
    assert intercepting.data('status')['error'] == said
    intercepting.machine.pages.update({'msfrs': BUSY, 'msfrs-metrics': METRICS})
    intercepting.run('on')
    assert FILE not in intercepting.machine.files and intercepting.machine.files['/run/msfrsctl/faults'] == ''
    assert 'Off' not in intercepting.run('status')[1]


def test_a_later_day_has_its_date(intercepting):
    intercepting.run('off')
    intercepting.machine.time += 86400
    assert f'Off since {time.strftime("%Y-%m-%d %H:%M", time.localtime(NOW))} by' in intercepting.run('status')[1]


def test_the_units_follow(intercepting):
    """What has no rules is not active, and the unit does not put them back when the firewall is restarted."""
    machine = intercepting.machine
    machine.files['/run/systemd/system'] = ''
    machine.programs['systemctl'] = ''
    intercepting.run('off')
    assert machine.ran[-1] == 'systemctl stop --no-block msfrs-iptables'
    intercepting.run('on')
    assert [words for words in machine.ran if 'reload-or-restart' in words] == [
        'systemctl reload-or-restart msfrs-iptables', 'systemctl reload-or-restart msfrs-edge-iptables']


def test_on_is_refused_while_the_firewall_keeps_users_from_squid(intercepting, capsys):
    machine = intercepting.machine
    machine.programs['ip -j addr show'] = json.dumps([{'ifname': 'lan0', 'addr_info': [
        {'local': '10.20.0.1', 'prefixlen': 16, 'scope': 'global'}]}])
    trace = [['inet', 'filter', 'input', 'packet: iif lan0'], ['inet', 'filter', 'input', 'policy drop ']]
    machine.programs['unshare'] = json.dumps([{'answered': False, 'trace': trace}] * 2)
    intercepting.run('off')
    assert intercepting.run('on')[0] == 3
    said = capsys.readouterr().err
    assert '"policy drop" in chain input of table inet filter' in said and 'TCP to ports 80 and 443 (IPv4)' in said
    assert FILE in machine.files and f'{SCRIPT} up {CONF}' not in machine.ran


def test_on_intercepts_again_and_says_how(intercepting):
    assert intercepting.run('on') == (0, 'New connections go through Squid again: in place: redirect on lan0\n')
    assert f'{SCRIPT} up {CONF}' in intercepting.machine.ran
    assert intercepting.data('on') == {'interception': True, 'scheduling': True, 'how': 'in place: redirect on lan0',
                                       'notes': []}


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
