# SPDX-License-Identifier: GPL-2.0-or-later
"""What `msfrsctl watch` notices besides a Squid that hangs, and where it says so. With rules: test_rehearsal.py of
test/e2e."""
import contextlib

import pytest

from msfrsctl.lookout import EVERY, Lookout
from msfrsctl.site import Site
from msfrsctl.system import Done

SCRIPT, EDGE_SCRIPT = (f'/opt/msfrs/share/msfrs/iptables/{name}' for name in ('msfrs-iptables', 'msfrs-edge-iptables'))
FAULTS = '/run/msfrsctl/faults'
LISTENING = ''.join(f'LISTEN 0 128 *:{port} *:*\n' for port in (3128, 3129, 3130))
GONE = 'missing: nat -A MSFRS_REDIRECT\n'


class Gateway:
    """With rules of a firewall in `rules`, and a Lookout over them."""

    def __init__(self, gateway):
        self.machine, self.gateway = gateway.machine, gateway
        self.machine.files.update({'/opt/msfrs/share/msfrs': '', SCRIPT: '', EDGE_SCRIPT: '', '/run/systemd/system': '',
                                   '/etc/msfrs/iptables.conf': 'inside = lan0\n', '/etc/resolv.conf': 'nameserver ::1\n',
                                   '/etc/msfrs/edge-iptables.conf': ''})
        self.rules = 'table inet filter {\n}\n'
        self.machine.programs.update({'ss': LISTENING, 'nft': lambda _: self.rules, 'getent': '', 'unshare': '[]',
                                      'systemctl': '', f'{SCRIPT} check': '', f'{EDGE_SCRIPT} check': '',
                                      f'{SCRIPT} drain': 'msfrs-iptables: drained\n'})
        options = type('Options', (), dict.fromkeys(('squid_conf', 'squid', 'manager', 'etc', 'state')))
        options.squid_conf, options.squid = str(gateway.conf), str(gateway.squid)
        self.site = Site(options, self.machine, '/opt/msfrs')
        self.lookout = Lookout(self.site)

    def after(self, seconds):
        """What is said to be wrong after looks for this time."""
        until = self.machine.time + seconds
        while self.machine.time < until:
            self.machine.time += 1
            self.lookout.look()
        return [line.partition('\t')[0] for line in self.machine.files[FAULTS].splitlines()]

    def judged(self):
        return sum(words.startswith(f'{SCRIPT} check') for words in self.machine.ran)


@pytest.fixture
def looked(gateway):
    made = Gateway(gateway)
    assert made.after(20) == []
    return made


def test_rules_are_judged_after_a_change_alone(looked):
    before = looked.judged()
    looked.after(100)
    looked.rules = looked.rules.replace('}', 'set s { elements = { 192.0.2.1 } }\n}')
    assert looked.after(100) == [] and looked.judged() == before + 1
    looked.rules = looked.rules.replace('192.0.2.1', '192.0.2.2')      # as fail2ban does
    assert looked.after(100) == [] and looked.judged() == before + 1


def test_rules_that_are_gone_are_noticed_within_15_s_and_the_unit_is_not_active(looked):
    looked.machine.programs[f'{SCRIPT} check'] = Done(1, GONE)
    looked.rules = ''
    assert looked.after(15) == ['unreachable']
    assert 'systemctl stop --no-block msfrs-iptables' in looked.machine.ran
    first = looked.gateway.run('status')[1].splitlines()[0]
    assert first.startswith("Users' connections are not sent to Squid: the rules of msfrs-iptables are gone. To put them ")
    looked.machine.programs[f'{SCRIPT} check'] = ''
    looked.rules = 'table ip nat {\n}\n'
    looked.machine.programs.update({f'{SCRIPT} up': 'msfrs-iptables: up\n', f'{SCRIPT} print': '', 'unshare': '[]'})
    assert looked.gateway.run('on')[0] == 0
    assert looked.after(1) == [], 'also until it looks again'
    assert looked.after(15) == []


@pytest.mark.parametrize('by', ('setup', 'systemd'))
def test_while_others_change_rules_they_are_not_judged(looked, by):
    """Once, it ended the unit of interception while setup started it."""
    looked.machine.programs[f'{SCRIPT} check'] = Done(1, GONE)
    looked.rules, before = '', looked.judged()
    with contextlib.ExitStack() as changing:
        if by == 'setup':
            changing.enter_context(looked.machine.lock(looked.site.conf.directory))
        else:
            looked.machine.programs['systemctl is-active msfrs-iptables'] = 'activating\n'
        assert looked.after(60) == [] and looked.judged() == before
    looked.machine.programs['systemctl is-active msfrs-iptables'] = 'active\n'
    assert looked.after(15) == ['unreachable']


def test_rules_of_msfrs_edge(looked):
    looked.machine.programs[f'{EDGE_SCRIPT} check'] = Done(1, GONE)
    looked.rules = ''
    assert looked.after(15) == ['edge']
    assert 'systemctl stop --no-block msfrs-edge-iptables' in looked.machine.ran


def test_users_whom_the_firewall_keeps_from_squid_are_sent_past_it(looked):
    looked.machine.programs['ip -j addr show'] = (
        '[{"ifname": "lan0", "addr_info": [{"local": "10.20.0.1", "prefixlen": 16, "scope": "global"}]}]')
    looked.machine.programs['unshare'] = '[{"answered": false, "trace": []}, {"answered": false, "trace": []}]'
    looked.rules = 'table inet filter {\n chain input {\n }\n}\n'
    assert looked.after(15) == ['unreachable']
    assert f'{SCRIPT} drain --config /etc/msfrs/iptables.conf' in looked.machine.ran
    assert 'Users cannot reach Squid and are sent past it' in looked.gateway.run('status')[1].splitlines()[0]


def test_while_it_is_off_rules_are_nobodys_business(looked):
    looked.gateway.run('off')
    looked.machine.programs[f'{SCRIPT} check'] = Done(1, GONE)
    looked.rules = ''
    assert looked.after(60) == ['off']


def test_while_squid_is_restarted_too(looked):
    looked.machine.programs.update({f'{SCRIPT} check': Done(1, GONE), 'ss': ''})
    looked.rules = ''
    assert looked.after(60) == []


def test_names_and_the_log(looked):
    looked.machine.programs['getent'], looked.machine.room = Done(2), 0
    assert looked.after(61) == ['log', 'names']
    assert looked.gateway.run('status')[1].startswith('The file system of ')
    looked.machine.programs['getent'], looked.machine.room = '', 1 << 30
    assert looked.after(61) == []


def test_each_is_said_once(looked):
    looked.machine.room, looked.machine.said = 0, []
    looked.after(20 * EVERY)
    assert len(looked.machine.said) == 1
