# SPDX-License-Identifier: GPL-2.0-or-later
"""The state that msfrs-iptables leaves: after up, down, up again, and steps that fail halfway."""
import os
import re
import shutil
import signal

import pytest

from iptables_script import (HTTP_PORT, MODES, SCRIPT, bare_gateway, down, drain, path_with, rules_of_others, script,
                             snapshot, up, without)
from site_in_namespaces import PATIENCE, set_sysctl, sh, sysctl

BOTH_MODES = pytest.mark.parametrize('mode', MODES)
EXEMPTIONS = ('--exempt-client', '198.18.1.9', '--exempt-destination', '198.18.9.0/24')
#: Message about QUIC if no option decides on it.
NO_EDGE = "rejected, since without msfrs-edge's use downlink nothing would schedule it"


@pytest.fixture
def gateway(fabric):
    return bare_gateway(fabric)


@pytest.fixture
def busy(gateway):
    return rules_of_others(gateway)


def without_ours(text):
    return without(text, 'MSFRS_', '0x100', 'table 3129')


@pytest.mark.parametrize('options', (
    ('--mode', 'redirect'),
    ('--mode', 'tproxy'),
    ('--mode', 'redirect', '--gateway-traffic', 'yes', *EXEMPTIONS),
    ('--mode', 'tproxy', *EXEMPTIONS),
    ('--mode', 'tproxy', '--ipv6', 'no'),
    ('--mode', 'redirect', '--set-sysctl', 'yes', '--quic', 'allow'),
))
def test_down_restores_and_others_are_left_alone(busy, options):
    before = snapshot(busy)
    up(busy, *options)
    during = snapshot(busy)
    assert during != before
    assert without_ours(during) == before
    down(busy)
    assert snapshot(busy) == before


@BOTH_MODES
def test_down_leaves_no_empty_table_on_a_clean_system(gateway, mode):
    before = snapshot(gateway)
    assert '*mangle' not in before
    up(gateway, '--mode', mode)
    down(gateway)
    assert snapshot(gateway) == before


def test_a_table_that_others_use_by_now_stays(gateway):
    up(gateway)
    gateway.run('iptables', '-t', 'nat', '-A', 'POSTROUTING', '-o', 'out0', '-j', 'MASQUERADE')
    gateway.run('iptables', '-t', 'mangle', '-P', 'FORWARD', 'DROP')
    down(gateway)
    left = gateway.run('iptables-save')
    assert '-A POSTROUTING -o out0 -j MASQUERADE' in left
    assert ':FORWARD DROP' in left
    assert '*filter' not in left


@BOTH_MODES
def test_down_leaves_no_empty_chain_in_a_table_of_nft(gateway, mode):
    """That of a firewall which masquerades; iptables-nft has no chain in it before."""
    if shutil.which('nft') is None:
        pytest.skip('needs nft')
    gateway.run('nft', '-f', '-', input='table ip nat {\n chain postrouting { type nat hook postrouting priority 100; '
                'policy accept\n  oifname "out0" masquerade\n }\n}\ntable ip mangle {\n}\n')
    before = gateway.run('nft', '-s', 'list', 'ruleset')
    for _ in range(2):
        up(gateway, '--mode', mode)
    down(gateway)
    assert gateway.run('nft', '-s', 'list', 'ruleset') == before


@BOTH_MODES
@pytest.mark.parametrize('then', ('up', 'down', 'drain'))
def test_drain_and_then(busy, mode, then):
    """`up` and `down` know the remaining state, sysctls included, and no redirection to Squid remains."""
    set_sysctl(busy, 'net/ipv4/ip_forward', 0)
    before = snapshot(busy)
    options = ('--mode', mode, '--set-sysctl', 'yes')
    up(busy, *options)
    during = snapshot(busy)
    drain(busy)
    drained = snapshot(busy)
    assert without_ours(drained) == without_ours(during)
    assert not re.search(f'REDIRECT --to-ports {HTTP_PORT[mode]}|--on-port|MSFRS_QUIC', drained)
    if then == 'drain':
        drain(busy)
        assert snapshot(busy) == drained
    elif then == 'up':
        up(busy, *options)
        assert snapshot(busy) == during
    down(busy)
    assert snapshot(busy) == before


def test_drain_when_nothing_is_up(gateway):
    before = snapshot(gateway)
    drain(gateway)
    assert snapshot(gateway) == before


def test_down_twice(gateway):
    up(gateway)
    down(gateway)
    done = script(gateway, 'down')
    assert (done.returncode, done.stdout, done.stderr) == (0, 'msfrs-iptables: down: nothing was up\n', '')


@BOTH_MODES
def test_up_twice_is_up_once(busy, mode):
    up(busy, '--mode', mode)
    once = snapshot(busy)
    up(busy, '--mode', mode)
    assert snapshot(busy) == once


@pytest.mark.parametrize('first, second', (
    (('--mode', 'redirect', '--gateway-traffic', 'yes'), ('--mode', 'tproxy')),
    (('--mode', 'tproxy'), ('--mode', 'redirect')),
    (('--mode', 'tproxy'), ('--mode', 'tproxy', '--fwmark', '0x2/0xffffffff', '--table', '3130')),
    (('--mode', 'tproxy', '--ipv6', 'yes'), ('--mode', 'tproxy', '--ipv6', 'no')),
    (('--source', '198.18.1.0/24 2001:2::/48'), ('--quic', 'allow')),
))
def test_up_with_other_options_replaces(busy, first, second):
    before = snapshot(busy)
    up(busy, *second)
    fresh = snapshot(busy)
    down(busy)
    up(busy, *first)
    up(busy, *second)
    # The records are of all that was made since the first `up`, such as a chain that only it needed.
    assert without(snapshot(busy), 'MSFRS_STATE') == without(fresh, 'MSFRS_STATE')
    down(busy)
    assert snapshot(busy) == before


def test_from_one_kind_of_iptables_to_the_other_and_down(gateway):
    if sh(gateway, 'iptables-legacy', '-S').returncode:
        pytest.skip('no legacy iptables here')
    up(gateway, '--backend', 'legacy')
    up(gateway, '--backend', 'nft')
    assert 'MSFRS' not in gateway.run('iptables-legacy-save') + gateway.run('ip6tables-legacy-save')
    up(gateway, '--backend', 'legacy')
    assert 'MSFRS' not in gateway.run('iptables-nft-save') + gateway.run('ip6tables-nft-save')
    down(gateway)
    assert 'MSFRS' not in snapshot(gateway)


def test_sysctls_are_said_and_not_set(gateway):
    set_sysctl(gateway, 'net/ipv4/ip_forward', 0)
    set_sysctl(gateway, 'net/ipv6/conf/all/forwarding', 0)
    done = script(gateway, 'up', '--inside', 'in0')
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        'msfrs-iptables: warning: sysctl net.ipv4.ip_forward is not 1, as it must be; set it, or use --set-sysctl yes',
        'msfrs-iptables: warning: sysctl net.ipv6.conf.all.forwarding is not 1, as it must be; set it, or use '
        '--set-sysctl yes']
    assert sysctl(gateway, 'net/ipv4/ip_forward') == '0'
    assert sysctl(gateway, 'net/ipv6/conf/all/forwarding') == '0'


def test_sysctls_are_set_and_put_back(gateway):
    """With all sysctls that the kernel changes along: forwarding of each interface, accept_redirects."""
    for path, value in (('ipv4/ip_forward', 0), ('ipv6/conf/all/forwarding', 0), ('ipv4/conf/in0/forwarding', 1),
                        ('ipv6/conf/out0/forwarding', 1), ('ipv4/conf/all/accept_redirects', 0),
                        ('ipv4/conf/all/src_valid_mark', 1), ('ipv4/conf/out0/src_valid_mark', 1)):
        set_sysctl(gateway, f'net/{path}', value)
    before = snapshot(gateway)
    up(gateway, '--mode', 'tproxy', '--set-sysctl', 'yes')
    for path, value in (('ipv4/ip_forward', '1'), ('ipv6/conf/all/forwarding', '1'),
                        ('ipv4/conf/all/src_valid_mark', '0'), ('ipv4/conf/out0/src_valid_mark', '0')):
        assert sysctl(gateway, f'net/{path}') == value
    up(gateway, '--mode', 'redirect', '--set-sysctl', 'yes')    # remembers the values before the first up
    up(gateway, '--mode', 'redirect')
    down(gateway)
    assert snapshot(gateway) == before


def test_down_needs_no_valid_configuration(gateway, tmp_path):
    before = snapshot(gateway)
    up(gateway)
    broken = tmp_path / 'iptables.conf'
    broken.write_text('mode = sideways\n')
    assert script(gateway, 'down', config=broken).returncode == 0
    assert snapshot(gateway) == before


# Failures: programs placed before the real ones ({real}: the real one), and the message that results.
FAILURES = {
    'restore': ({'ip6tables_restore': 'echo "line 2: no such thing" >&2; exit 1\n'},
                'ip6tables-restore refused the IPv6 rules: line 2: no such thing'),
    'second table': ({'ip6tables_restore': 'sed "/^\\*filter/a -A NOWHERE -j DROP" | {real} "$@"\n'},
                     'ip6tables-restore refused the IPv6 rules: '),
    'rule': ({'ip': 'case "$*" in "-6 rule add"*) echo no memory >&2; exit 2;; esac; exec {real} "$@"\n'},
             'ip refused to add the IPv6 rule: no memory'),
    'route': ({'ip': 'case "$*" in "-4 route add"*) echo no memory >&2; exit 2;; esac; exec {real} "$@"\n'},
              'ip refused to add the IPv4 route: no memory'),
}


@pytest.mark.parametrize('failure', FAILURES)
@pytest.mark.parametrize('earlier', (None, ('--mode', 'redirect', '--set-sysctl', 'yes'),
                                     ('--mode', 'tproxy', '--table', '99', '--fwmark', '0x2/0x2')),
                         ids=('clean', 'redirect', 'tproxy'))
def test_a_step_that_fails_halfway_puts_everything_back(busy, tmp_path, earlier, failure):
    programs, says = FAILURES[failure]
    programs = {name: body.replace('{real}', shutil.which(name.replace('_', '-'))) for name, body in programs.items()}
    if earlier:
        up(busy, *earlier)
    set_sysctl(busy, 'net/ipv4/ip_forward', 0)
    before = snapshot(busy)
    with path_with(tmp_path, **programs) as path:
        done = script(busy, 'up', '--inside', 'in0', '--mode', 'tproxy', '--set-sysctl', 'yes', path=path)
    assert done.returncode == 4, done
    assert done.stdout == ''
    assert done.stderr.startswith(f'msfrs-iptables: {says}')
    modules = 'xt_addrtype xt_conntrack xt_multiport xt_mark xt_TPROXY xt_socket'
    assert f'modprobe -a {modules}' in done.stderr or 'ip refused' in says
    assert done.stderr.endswith('msfrs-iptables: failed; everything is again as it was before\n')
    assert snapshot(busy) == before


def test_sysctls_that_cannot_be_set_as_in_a_container(busy):
    set_sysctl(busy, 'net/ipv4/ip_forward', 0)
    before = snapshot(busy)
    read_only = 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$@"'
    done = script(busy, 'up', '--inside', 'in0', '--set-sysctl', 'yes', prefix=('sh', '-c', read_only, 'sh'))
    assert (done.returncode, done.stdout) == (4, '')
    assert done.stderr == ('msfrs-iptables: cannot set net.ipv4.ip_forward to 1\n'
                           'msfrs-iptables: failed; everything is again as it was before\n')
    assert snapshot(busy) == before


@pytest.mark.parametrize('signum', (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
def test_interrupted_halfway(busy, tmp_path, signum):
    before = snapshot(busy)
    here, go_on = tmp_path / 'here', tmp_path / 'go-on'
    os.mkfifo(here)
    os.mkfifo(go_on)
    real = shutil.which('ip6tables-restore')
    halt = f'if [ ! -e {tmp_path}/once ]; then touch {tmp_path}/once; echo >{here}; read -r _ <{go_on}; fi\n'
    with path_with(tmp_path, ip6tables_restore=f'{halt}exec {real} "$@"\n') as path:
        running = busy.popen([str(SCRIPT), 'up', '--config', 'none', '--inside', 'in0', '--mode', 'tproxy'],
                             env={**os.environ, 'PATH': path}, stderr=-1, stdout=-1, text=True)
        here.read_text()
        assert 'MSFRS' in busy.run('iptables-save')         # it is halfway
        running.send_signal(signum)
        go_on.write_text('\n')
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out) == (4, '')
    assert err == 'msfrs-iptables: interrupted; everything is again as it was before\n'
    assert snapshot(busy) == before


@BOTH_MODES
def test_check_after_up(gateway, mode):
    up(gateway, '--mode', mode)
    before = snapshot(gateway)
    done = script(gateway, 'check', '--inside', 'in0', '--mode', mode)
    assert (done.returncode, done.stderr) == (0, '')
    ports = {'redirect': '3129 3130', 'tproxy': '3131 3132'}[mode]
    assert done.stdout == (f'msfrs-iptables: in place: {mode} on in0, ports 80 443 to {ports}, IPv4 and IPv6, '
                           f'QUIC {NO_EDGE}\n')
    assert snapshot(gateway) == before


@pytest.mark.parametrize('line, says', (
    (None, NO_EDGE),
    ('link rate=9500kbit\n# segment /squid-msfrs_ledger.shm', NO_EDGE),
    ('segment /squid-msfrs_ledger.shm', 'let through, since msfrs-edge schedules it ({})')))
def test_quic_is_let_through_where_msfrs_edge_schedules_it(gateway, tmp_path, line, says):
    edge = tmp_path / 'edge.conf'
    if line:
        edge.write_text(f'{line}\n')
    done = script(gateway, 'up', '--inside', 'in0', '--edge-config', str(edge), '--quic', 'auto')
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f'QUIC {says.format(edge)}\n')
    assert ('MSFRS_QUIC' in str(snapshot(gateway))) == (says == NO_EDGE)
    said = script(gateway, 'up', '--inside', 'in0', '--edge-config', str(edge), '--quic', 'allow').stdout
    assert said.endswith('QUIC let through\n')


@pytest.mark.parametrize('damage, finding', (
    ('iptables -t mangle -D MSFRS_TPROXY 1', 'missing: IPv4 mangle rule: MSFRS_TPROXY -m mark --mark 0x100/0x100 '
                                             '-j RETURN'),
    ('ip6tables -t mangle -D PREROUTING -p tcp -j MSFRS_DIVERT',
     'missing: IPv6 mangle rule: PREROUTING -p tcp -j MSFRS_DIVERT'),
    ('ip6tables -t raw -D PREROUTING -i in0 -p tcp -j MSFRS_SYN',
     'missing: IPv6 raw rule: PREROUTING -i in0 -p tcp -j MSFRS_SYN'),
    ('ip6tables -F MSFRS_QUIC', 'missing: IPv6 filter rule: MSFRS_QUIC -p udp --dport 443 -m u32 --u32 '
                                '44>>16=1208:65535&&48&0xC0FFFFFF=0x80000000,0xC0000000:0xC0FFFFFF -j REJECT --reject-with '
                                'icmp6-port-unreachable'),
    ('iptables -t mangle -A MSFRS_TPROXY -j DROP', 'left over: IPv4 mangle rule in MSFRS_TPROXY'),
    ('iptables -I INPUT -j MSFRS_QUIC', 'left over: IPv4 filter rule in INPUT'),
    ('iptables -t nat -N MSFRS_REDIRECT', 'left over: IPv4 nat chain MSFRS_REDIRECT'),
    ('ip rule del pref 999', 'missing: IPv4 rule 0x100/0x100 3129'),
    ('ip -6 route flush table 3129', 'missing: IPv6 route 3129'),
    ('ip -6 route add local default dev lo table 5 proto 159', 'left over: IPv6 route 5'),
    ('sysctl -q net.ipv4.ip_forward=0', 'missing: sysctl net.ipv4.ip_forward must be 1 and is 0'),
    ('sysctl -q net.ipv4.conf.out0.src_valid_mark=1',
     'missing: sysctl net.ipv4.conf.out0.src_valid_mark must be 0 and is 1'),
))
def test_check_names_what_is_not_as_it_must_be(gateway, damage, finding):
    up(gateway, '--mode', 'tproxy')
    gateway.run(*damage.split())
    done = script(gateway, 'check', '--inside', 'in0', '--mode', 'tproxy')
    assert (done.returncode, done.stdout, done.stderr) == (1, finding + '\n', '')
    up(gateway, '--mode', 'tproxy', '--set-sysctl', 'yes')
    assert script(gateway, 'check', '--inside', 'in0', '--mode', 'tproxy').returncode == 0
    down(gateway)
    left = snapshot(gateway)
    assert 'MSFRS' not in left and 'proto 159' not in left


def test_check_when_nothing_is_up(gateway):
    done = script(gateway, 'check', '--inside', 'in0', '--ipv6', 'no')
    assert (done.returncode, done.stderr) == (1, '')
    assert done.stdout.splitlines() == ['missing: IPv4 mangle chain MSFRS_GUARD',
                                        'missing: IPv4 nat chain MSFRS_REDIRECT',
                                        'missing: IPv4 raw chain MSFRS_SYN', 'missing: IPv4 filter chain MSFRS_QUIC']


@BOTH_MODES
def test_print_is_what_up_does(gateway, mode):
    before = snapshot(gateway)
    printed = script(gateway, 'print', '--inside', 'in0', '--mode', mode)
    assert (printed.returncode, printed.stderr) == (0, '')
    assert snapshot(gateway) == before
    up(gateway, '--mode', mode)
    done = re.sub(r'(?m)^.*MSFRS_STATE.*\n', '', snapshot(gateway))
    down(gateway)
    gateway.run('sh', '-e', input=printed.stdout)
    assert snapshot(gateway) == done
