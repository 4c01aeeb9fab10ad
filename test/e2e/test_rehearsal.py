# SPDX-License-Identifier: GPL-2.0-or-later
"""Users' connections in the rules of a real gateway, as `msfrsctl` sees them: which rule drops them, and the command that
lets them pass. No Squid runs."""
import json
import sys

import pytest

from iptables_script import MODES, ROOT, bare_gateway, script, snapshot

LOOK = '''
import json, sys, types
sys.path.insert(0, sys.argv[1])
from msfrsctl import firewall
from msfrsctl.site import Site
from msfrsctl.system import System
options = types.SimpleNamespace(etc=sys.argv[2], state=None, squid_conf=None, squid=None, manager=None)
site = Site(options, System(), '/nonexistent')
site.share = sys.argv[1] + '/conf'
print(json.dumps([each._asdict() for each in firewall.look(site, planned=sys.argv[3] == 'planned')]))
'''
NFT = '''
table inet filter {
    set allowed { type inet_service; elements = { 22, 53 }
    }
    chain input { type filter hook input priority 0; policy drop;
        ct state established,related accept
        iif "lo" accept
        iifname "out0" accept
        iifname "in0" tcp dport @allowed accept
        %s
    }
}
'''
ALL = 'TCP to ports 80 and 443 (IPv4 and IPv6)'


class Gateway:
    def __init__(self, fabric, directory, mode):
        self.host, self.directory = bare_gateway(fabric), directory
        for address in ('10.20.0.1/16', '2001:db8:20::1/64'):
            self.host.run('ip', 'address', 'add', address, 'dev', 'in0')
        self.mode = mode
        (directory / 'iptables.conf').write_text(
            f'inside = in0\nmode = {mode}\nsource = 10.20.0.0/16 2001:db8:20::/64\nset-sysctl = yes\n')

    def up(self):
        assert script(self.host, 'up', config=self.directory / 'iptables.conf').returncode == 0

    def look(self, planned=False):
        return json.loads(self.host.run(sys.executable, '-c', LOOK, str(ROOT), str(self.directory),
                                        'planned' if planned else 'now'))


@pytest.fixture(params=MODES)
def gateway(fabric, tmp_path, request):
    return Gateway(fabric, tmp_path, request.param)


@pytest.mark.parametrize('planned', (True, False), ids=('planned', 'up'))
def test_an_open_gateway(gateway, planned):
    if not planned:
        gateway.up()
    before = snapshot(gateway.host)
    assert gateway.look(planned) == []
    assert snapshot(gateway.host) == before


@pytest.mark.parametrize('planned', (True, False), ids=('planned', 'up'))
def test_a_policy_of_nftables(gateway, planned):
    """What the issue began with. The command that is shown works."""
    gateway.host.run('nft', '-f', '-', input=NFT % '')
    if not planned:
        gateway.up()
    (found,) = gateway.look(planned)
    assert (found['interface'], found['tcp'], found['rule'], found['place']) == (
        'in0', ALL, '"policy drop"', 'chain input of table inet filter')
    gateway.host.run('sh', '-c', found['accept'])
    assert gateway.look(planned) == []
    gateway.host.run('sh', '-c', found['undo'])
    assert len(gateway.look(planned)) == 1


def test_a_rule_of_a_chain_of_its_own(gateway):
    gateway.host.run('nft', '-f', '-', input=NFT % 'jump users\n    }\n    chain users { tcp dport 1-65000 reject')
    (found,) = gateway.look(planned=True)
    assert found['rule'] == '"tcp dport 1-65000 reject (users)"' and 'insert rule inet filter input' in found['accept']


def test_iptables_and_one_family(gateway):
    gateway.host.run('ip6tables', '-P', 'INPUT', 'DROP')
    gateway.up()
    (found,) = gateway.look()
    assert found['tcp'] == 'TCP to ports 80 and 443 (IPv6)' and found['accept'].startswith('ip6tables -I INPUT -i in0')
    gateway.host.run('sh', '-c', found['accept'])
    assert gateway.look() == []


@pytest.mark.parametrize('rules, rule', (
    (('-P INPUT DROP',), '"policy DROP" in chain INPUT'),
    (('-N users', '-A users -p tcp -m tcp --dport 1:65000 -j DROP', '-A INPUT -i in0 -j users'),
     '"-A users -p tcp -m tcp --dport 1:65000 -j DROP" in chain users')), ids=('policy', 'chain'))
def test_iptables_legacy(gateway, rules, rule):
    """Whose rules the kernel does not trace. The command is for that program, whatever `iptables` is."""
    for each in rules:
        gateway.host.run('iptables-legacy', *each.split())
    gateway.up()
    (found,) = gateway.look()
    assert f'{found["rule"]} in {found["place"]}' == f'{rule} of table ip filter of iptables-legacy'
    assert found['accept'].startswith('iptables-legacy -I INPUT -i in0 ')
    gateway.host.run('sh', '-c', found['accept'])
    assert gateway.look() == []


def test_iptables_legacy_before_the_users_are_redirected(gateway):
    gateway.host.run('iptables-legacy', '-t', 'mangle', '-A', 'PREROUTING', '-i', 'in0', '-p', 'tcp', '-j', 'DROP')
    (found,) = gateway.look(planned=True)
    assert found['rule'] == '"-A PREROUTING -i in0 -p tcp -j DROP"' and found['accept'] == ''


def test_answers_that_are_dropped(gateway):
    gateway.host.run('iptables', '-A', 'OUTPUT', '-o', 'in0', '-p', 'tcp', '-j', 'DROP')
    (found,) = gateway.look(planned=True)
    assert found['place'] == 'chain OUTPUT of table ip filter' and found['tcp'].endswith('(IPv4)')


def test_rules_that_are_gone(gateway):
    gateway.up()
    gateway.host.run('nft', 'flush', 'ruleset')
    (found,) = gateway.look()
    assert found['rule'] is None and found['tcp'] == ALL


def test_rules_of_nft_in_the_tables_of_iptables(gateway):
    """Chains of both are in one table: each is copied by the program that wrote it."""
    gateway.host.run('nft', '-f', '-', input='table ip filter {\n chain input { type filter hook input priority 0; '
                     'policy accept\n  tcp dport { 80, 443, 3129, 3130 } drop\n }\n}\n')
    gateway.up()
    (found,) = gateway.look()
    assert found['place'] == 'chain input of table ip filter' and found['tcp'].endswith('(IPv4)')
