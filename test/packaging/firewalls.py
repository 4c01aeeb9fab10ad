# SPDX-License-Identifier: GPL-2.0-or-later
"""The firewalls of other people on a gateway that is set up: what they do to users, and the command that msfrsctl prints.
nftables and ufw drop what comes to Squid, and are told to accept it by that command alone; firewalld accepts it."""
import json

from later import fetched, files, scheduled
from machine import wait_for

CONF = '/etc/nftables.conf'
#: As people write it: what users may ask the gateway itself for is listed, and Squid's ports are not.
NFTABLES = '''#!/usr/sbin/nft -f
flush ruleset
table inet filter {
    chain input {
        type filter hook input priority 0; policy drop;
        ct state established,related accept
        iif lo accept
        icmp type echo-request accept
        icmpv6 type { echo-request, nd-neighbor-solicit, nd-neighbor-advert, nd-router-advert } accept
        iifname "eth0" meta l4proto { tcp, udp } th dport { 22, 53, 67 } accept
    }
}
'''
#: A gateway in firewalld's words, which forwards nothing by default.
ROUTED = ''.join(f'firewall-cmd -q --permanent {each}; ' for each in (
    '--zone=internal --change-interface=eth0', '--zone=external --change-interface=eth1', '--new-policy=routed',
    '--policy=routed --set-target=ACCEPT', '--policy=routed --add-ingress-zone=internal',
    '--policy=routed --add-egress-zone=external')) + 'firewall-cmd -q --reload'
BLOCKED = 'Users cannot reach Squid and are sent past it'
GONE = "Users' connections are not sent to Squid: the rules of msfrs-iptables are gone."
RULES = 'iptables-save -t nat; iptables-save -t mangle; iptables-save -t security'


def first_line(machine):
    return machine.run('msfrsctl', 'status', check=False).stdout.partition('\n')[0]


def _wait_for(machine, beginning):
    wait_for(lambda: first_line(machine).startswith(beginning), lambda: first_line(machine))


def _printed(machine):
    """The command of doctor's advice about the users' path."""
    found = json.loads(machine.run('msfrsctl', 'doctor', '--json', '--only', 'interception', check=False).stdout)
    (advice,) = {row['do'] for row in found['findings'] if row['what'].startswith('the firewall drops')}
    return advice.partition('; ')[0]


def _let_pass(machine, user, begins):
    """What the firewall does now, and with the command that is printed."""
    _wait_for(machine, BLOCKED)
    assert fetched(user, '/4321') == 4321, 'users have pages meanwhile'
    refused = machine.run('msfrsctl', 'on', check=False)
    command = _printed(machine)
    assert refused.returncode and command in refused.stderr and command.startswith(begins), (command, refused.stderr)
    machine.sh(command)
    machine.sh('msfrsctl on')
    scheduled(machine, user)


def nftables(machine, user):
    machine.sh(f'cp -a {CONF} /root/nftables.conf')
    machine.write(CONF, NFTABLES)
    machine.sh('systemctl enable --now nftables; systemctl restart nftables')
    _let_pass(machine, user, "nft insert rule inet filter input 'iifname \"eth0\" tcp dport { 3129, 3130 }")


def rules_that_are_gone(machine, user):
    """All of them, by nft -f; those of msfrs-edge alone; and by a unit, which adds them again."""
    rules = machine.sh(RULES)
    machine.sh(f'nft -f {CONF}')
    _wait_for(machine, GONE)
    assert fetched(user, '/4322') == 4322
    assert machine.run('msfrsctl', 'on', check=False).returncode, 'the command has accepted them until now'
    machine.sh('msfrsctl setup --yes --firewall add', timeout=200)     # which keeps its rule in nftables.conf
    scheduled(machine, user)
    machine.sh(f'nft -f {CONF}')
    _wait_for(machine, GONE)
    for unit in 'msfrs-iptables', 'msfrs-edge-iptables':
        wait_for(lambda unit=unit: machine.show(unit)['ActiveState'] == 'inactive', lambda: machine.sh('systemctl'))
    machine.sh('msfrsctl on')
    scheduled(machine, user)
    assert _marks(machine.sh(RULES)) == _marks(rules)
    machine.sh('/usr/share/msfrs/iptables/msfrs-edge-iptables down')
    _wait_for(machine, 'Nothing holds what bypasses Squid to its share: the rules of msfrs-edge are gone.')
    machine.sh('msfrsctl on')
    assert _marks(machine.sh(RULES)) == _marks(rules)
    machine.sh('systemctl restart nftables')
    wait_for(lambda: _marks(machine.sh(RULES)) == _marks(rules), lambda: machine.sh(RULES))
    scheduled(machine, user)


def _marks(rules):
    return [line for line in rules.splitlines() if line.startswith('-A') and 'MSFRS' in line]


def no_nftables(machine, user):
    machine.sh(f'cp -a /root/nftables.conf {CONF}; systemctl disable --now nftables')
    wait_for(lambda: 'MSFRS_REDIRECT' in machine.sh('iptables-save'), lambda: first_line(machine)) \
        if machine.show('msfrs-iptables')['ActiveState'] == 'active' else machine.sh('msfrsctl on')
    scheduled(machine, user)


def _install(machine, name):
    machine.earlier = files(machine)
    machine.sh(f'DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends install {name}', timeout=600)


def _purge(machine, user, name):
    machine.sh(f'DEBIAN_FRONTEND=noninteractive apt-get -y purge --autoremove {name}; nft flush ruleset', timeout=600)
    # What its purge leaves is not ours, and not looked for when ours are removed.
    machine.before |= {path for path in files(machine) - machine.earlier if 'msfrs' not in path and 'squid' not in path}
    machine.sh('msfrsctl on')
    scheduled(machine, user)


def ufw(machine, user):
    _install(machine, 'ufw')
    machine.sh('ufw default allow routed; ufw --force enable')
    _let_pass(machine, user, 'ufw allow in on eth0 to any port 3129,3130 proto tcp')
    machine.sh('ufw reload')
    scheduled(machine, user)
    machine.sh('ufw --force disable')
    _purge(machine, user, 'ufw')


def firewalld(machine, user):
    """It accepts what is redirected. Debian 12's removes the rules of others when it starts, Debian 13's does not."""
    _install(machine, 'firewalld')
    for start in f'systemctl enable --now firewalld; {ROUTED}', 'systemctl restart firewalld':
        machine.sh(start)
        if 'MSFRS_REDIRECT' not in machine.sh('iptables-save'):
            _wait_for(machine, GONE)
            assert fetched(user, '/4323') == 4323
            machine.sh('msfrsctl on')
        scheduled(machine, user)
    _purge(machine, user, 'firewalld')


CHECKS = (('nftables drops what comes to Squid, and accepts it by the command that is printed', nftables),
          ('rules that programs remove are noticed, and put back', rules_that_are_gone),
          ('without that firewall again', no_nftables), ('the same with ufw', ufw), ('with firewalld', firewalld))
