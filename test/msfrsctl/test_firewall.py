# SPDX-License-Identifier: GPL-2.0-or-later
"""A firewall that keeps users from Squid, in setup. With rules of a kernel: test/e2e/test_rehearsal.py."""
import json

import pytest

from fresh_machine import FLAGS, fresh, state  # noqa: F401 (a fixture is among them)
from msfrsctl.firewall import NFTABLES_CONF, edited

CONF = '''#!/usr/sbin/nft -f
flush ruleset
table inet filter {
    chain input {
        type filter hook input priority 0; policy drop;
        tcp dport 22 accept
    }
}
'''
RULE = 'iifname "eth0" tcp dport { 3129, 3130 } accept comment "msfrs: users to Squid"'
TRACE = [['inet', 'filter', 'input', 'packet: iif eth0'], ['inet', 'filter', 'input', 'policy drop ']]


@pytest.fixture
def closed(fresh):
    """A fresh machine whose firewall drops what Squid's ports get, until the rule that accepts it is added."""
    machine = fresh.machine
    machine.programs['ip -j addr show'] = machine.programs['ip -j addr show up']
    machine.added = False

    def rehearse(_words):
        passes = machine.added or RULE in machine.given
        return json.dumps([{'answered': passes, 'trace': [] if passes else TRACE}] * machine.given.count('"server"'))

    run = machine.run

    def remember(*argv, input=None, **how):
        machine.given = input or ''
        machine.given = json.loads(input)['script'] + input if argv[0] == 'unshare' else machine.given
        if argv[0] == 'sh' and 'nft insert' in argv[2]:
            machine.added = True
        return run(*argv, input=input, **how)
    machine.run = remember
    machine.programs.update({'unshare': rehearse, 'sh -c': '', 'nft': ''})
    machine.files[NFTABLES_CONF] = CONF
    return fresh


def test_nothing_is_set_up_while_users_would_have_no_page(closed, capsys):
    before = state(closed)
    assert closed.run(*FLAGS)[0] == 4
    said = capsys.readouterr().err
    assert '"policy drop" in chain input of table inet filter' in said and "nft insert rule inet filter input '" in said
    assert '--firewall add' in said and state(closed) == before
    assert not any(words.endswith('msfrs-iptables up --config /etc/msfrs/iptables.conf') for words in closed.machine.ran)


def test_the_rule_is_added_and_kept_and_undone(closed):
    before = state(closed)
    assert closed.run(*FLAGS, '--firewall', 'add')[0] == 0
    assert closed.machine.files[NFTABLES_CONF] == CONF.replace('drop;\n', f'drop;\n        {RULE}\n')
    assert closed.run('setup', '--undo')[0] == 0 and state(closed) == before
    assert any('nft delete rule inet filter input' in words for words in closed.machine.ran)


@pytest.mark.parametrize('answer, code', (('yes', 0), ('no', 4)))
def test_it_is_asked(closed, answer, code):
    closed.machine.answers = ['', '', '', '20M', '', '', answer]
    assert closed.run('setup')[0] == code
    assert closed.machine.questions[-1].endswith('? (yes or no)') and 'May setup run: nft insert' in \
        closed.machine.questions[-1]


def test_a_rule_that_cannot_be_kept_is_said(closed):
    closed.machine.files[NFTABLES_CONF] = 'include "/etc/nftables.d/*"\n'
    code, said = closed.run(*FLAGS, '--firewall', 'add')
    assert code == 0 and 'note: that rule is lost when your rules are loaded again' in said


def test_nftables_conf_is_edited_where_it_defines_the_chain():
    assert edited(CONF, 'inet', 'filter', 'output', RULE) is None
    assert edited(CONF + CONF, 'inet', 'filter', 'input', RULE) is None
    assert edited(CONF, 'inet', 'filter', 'input', 'x accept').splitlines()[5] == '        x accept'
