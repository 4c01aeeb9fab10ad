# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-edge-iptables: which packets its rules match, what remains after it, and what it refuses."""
import re
import shutil
import socket

import pytest

from iptables_script import (DIRECTORY, EDGE_SCRIPT, FAILED, REFUSED, WRONG, bare_gateway, down, gateway_with_ports,
                             path_with, refused, rules_of_others, script, snapshot, up, without)
from site_in_namespaces import SERVER, listener, sh

LINK = ('--link', 'out0=3')


def edge(host, command, *options, **how):
    return script(host, command, *options, program=EDGE_SCRIPT, **how)


def edge_up(host, *options, said='out0 to queue 3, IPv4 and IPv6'):
    done = edge(host, 'up', *(options or LINK))
    assert (done.returncode, done.stdout, done.stderr) == (0, f'msfrs-edge-iptables: up: {said}\n', ''), done


def edge_down(host):
    down(host, EDGE_SCRIPT)


@pytest.fixture
def gateway(fabric):
    return bare_gateway(fabric)


@pytest.fixture
def busy(gateway):
    for tool in ('iptables', 'ip6tables'):
        gateway.run(tool, '-t', 'security', '-A', 'FORWARD', '-i', 'in0', '-j', 'CONNMARK', '--set-mark', '5')
    return rules_of_others(gateway)


@pytest.fixture(scope='module')
def refusing():
    with gateway_with_ports() as made:
        yield made


def packets(gateway, tool, what):
    """Number of packets that a rule of ours has matched."""
    lines = [line for line in gateway.run(tool, '-t', 'security', '-nvxL', 'MSFRS_EDGE').splitlines() if what in line]
    return sum(int(line.split()[0]) for line in lines)


def datagrams_arrive(site, sender, family, count):
    """This many from a host to the server, and back."""
    with listener(site.server, family, 7, kind=socket.SOCK_DGRAM) as server, \
            listener(sender, family, 0, kind=socket.SOCK_DGRAM) as client:
        for number in range(count):
            client.sendto(b'%d' % number, (SERVER[family], 7))
            data, peer = server.recvfrom(100)
            server.sendto(data, peer)
            assert client.recv(100) == b'%d' % number


@pytest.mark.parametrize('family, tool', ((4, 'iptables'), (6, 'ip6tables')))
def test_what_leaves_by_the_link_is_taken_and_passes_while_nobody_reads(site, family, tool):
    edge_up(site.gateway)
    datagrams_arrive(site, site.client, family, 3)
    assert packets(site.gateway, tool, 'NFQUEUE') == 3      # the responses leave by the other interface


@pytest.mark.parametrize('family, tool', ((4, 'iptables'), (6, 'ip6tables')))
def test_what_the_router_sends_by_itself_can_be_left_alone(site, family, tool):
    edge_up(site.gateway, *LINK, '--own', 'no')
    datagrams_arrive(site, site.gateway, family, 2)
    assert packets(site.gateway, tool, 'NFQUEUE') == 0
    datagrams_arrive(site, site.client, family, 3)
    assert packets(site.gateway, tool, 'NFQUEUE') == 3


@pytest.mark.parametrize('family, tool', ((4, 'iptables'), (6, 'ip6tables')))
def test_only_what_has_come_over_the_link_is_taken(site, family, tool):
    """Traffic to the users from elsewhere does not belong to the downlink."""
    inward = ('--own', 'no', '--link', 'in0=3', '--from')
    edge_up(site.gateway, *inward, 'out0', said='in0 to queue 3, IPv4 and IPv6')
    datagrams_arrive(site, site.client, family, 3)
    assert packets(site.gateway, tool, 'NFQUEUE') == 3      # the responses
    site.gateway.run('ip', 'link', 'add', 'lan2', 'type', 'veth', 'peer', 'name', 'far2')
    edge_up(site.gateway, *inward, 'lan2', said='in0 to queue 3, IPv4 and IPv6')
    datagrams_arrive(site, site.client, family, 3)
    assert packets(site.gateway, tool, 'NFQUEUE') == 0
    edge_up(site.gateway, '--own', 'no', '--link', 'in0=3 lan2=3', '--from', 'out0', '--seen', 'out0=3',
            said='in0 to queue 3, lan2 to queue 3, out0 to queue 3, IPv4 and IPv6')
    datagrams_arrive(site, site.client, family, 3)
    assert packets(site.gateway, tool, 'NFQUEUE') == 6      # and traffic to the outside matches
    edge_down(site.gateway)


def test_finding_the_neighbours_does_not_wait_in_the_queue(site):
    edge_up(site.gateway)
    datagrams_arrive(site, site.gateway, 6, 1)
    assert packets(site.gateway, 'ip6tables', 'ipv6-icmptype 135') >= 1
    assert packets(site.gateway, 'ip6tables', 'NFQUEUE') == 1


@pytest.mark.parametrize('family, tool, link, everybody', ((4, 'iptables', '224.0.0.0/24', '224.0.0.1'),
                                                           (6, 'ip6tables', 'ff02::/16', 'ff02::1')))
def test_what_is_meant_for_the_link_itself_does_not_wait_in_the_queue(site, family, tool, link, everybody):
    """Group membership, routing protocols."""
    edge_up(site.gateway)
    before = packets(site.gateway, tool, link)
    with site.gateway.inside(), socket.socket(socket.AF_INET if family == 4 else socket.AF_INET6,
                                               socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'out0')
        sender.sendto(b'to all', (everybody, 9))
    assert packets(site.gateway, tool, link) > before
    assert packets(site.gateway, tool, 'NFQUEUE') == 0


@pytest.mark.parametrize('options, said', (
    (LINK, 'out0 to queue 3, IPv4 and IPv6'),
    (('--link', 'out0=0-3 in0=65535'), 'out0 to queue 0 to 3, in0 to queue 65535, IPv4 and IPv6'),
    (('--link', 'out0=3', '--mark-shift', 'none'), 'out0 to queue 3, IPv4 and IPv6'),
    (('--link', 'in0=1,out0=2', '--ipv6', 'no'), 'in0 to queue 1, out0 to queue 2, IPv4 only'),
    (('--link', 'in0=1,out0=2', '--reset-marks', 'yes'), 'in0 to queue 1, out0 to queue 2, IPv4 and IPv6'),
))
def test_down_restores_and_others_are_left_alone(busy, options, said):
    before = snapshot(busy)
    edge_up(busy, *options, said=said)
    during = snapshot(busy)
    assert during != before
    assert without(during, 'MSFRS_EDGE') == before
    edge_down(busy)
    assert snapshot(busy) == before


def test_several_queues_share_a_link_by_flow(gateway):
    edge_up(gateway, '--link', 'out0=4-7', said='out0 to queue 4 to 7, IPv4 and IPv6')
    for tool in ('iptables-save', 'ip6tables-save'):
        assert '-o out0 -j NFQUEUE --queue-balance 4:7 --queue-bypass' in gateway.run(tool)


@pytest.mark.parametrize('table, chains, jump', (
    ('security', ('FORWARD', 'OUTPUT'), '-j MSFRS_EDGE'), ('mangle', ('POSTROUTING',), '-o out0 -j MSFRS_EDGE_MARK')))
def test_others_have_had_their_turn_when_a_packet_is_queued(busy, table, chains, jump):
    """A verdict ends the chain: rules after the jump would not be evaluated any more."""
    edge_up(busy)
    for chain in chains:
        busy.run('iptables', '-t', table, '-A', chain, '-o', 'in0', '-j', 'RETURN')
    edge_up(busy)
    for chain in chains:
        rules = re.findall(f'(?m)^-A {chain} .*', busy.run('iptables-save', '-t', table))
        assert len(rules) >= 2 and rules[-1] == f'-A {chain} {jump}'


def test_the_firewall_has_spoken_before(site):
    """Packets that it forbids take no turn in the queue."""
    edge_up(site.gateway)
    site.gateway.run('iptables', '-A', 'FORWARD', '-p', 'udp', '--dport', '9', '-j', 'DROP')
    with listener(site.client, 4, 0, kind=socket.SOCK_DGRAM) as client:
        client.sendto(b'?', (SERVER[4], 9))
        datagrams_arrive(site, site.client, 4, 1)       # the other has been dropped by then
    assert packets(site.gateway, 'iptables', 'NFQUEUE') == 1


CODE_POINTS = pytest.mark.parametrize('shift, mark, sent, arrives', (
    (24, 0x40 | 46, 0x00, 46 << 2),             # sets a code point
    (24, 0x40, 46 << 2 | 1, 0x01),              # clears it, except for the ECN bits
    (0, 0x40 | 63, 0x02, 63 << 2 | 2),
    (16, 0x80, 10 << 2 | 2, 10 << 2 | 3),       # congestion experienced
    (24, 0xc0 | 26, 0x01, 26 << 2 | 3),
    (24, 46, 10 << 2, 10 << 2),                 # a code point that is ignored
    (24, 0x00, 10 << 2 | 1, 10 << 2 | 1),
))


@pytest.mark.parametrize('family, tool', ((4, 'iptables'), (6, 'ip6tables')))
@CODE_POINTS
def test_marks_are_written_into_the_packet(site, family, tool, shift, mark, sent, arrives):
    """A rule of the filter table sets the mark that msfrs-edge would set."""
    edge_up(site.gateway, *LINK, '--mark-shift', str(shift))
    site.gateway.run(tool, '-t', 'mangle', '-A', 'FORWARD', '-j', 'MARK', '--set-mark', hex(mark << shift | 5 << 9))
    assert received_tos(site, site.client, family, sent) == arrives


def received_tos(site, sender, family, sent):
    """The TOS byte or traffic class with which a host's datagram arrives that was sent with `sent`."""
    level, receive, option = ((socket.IPPROTO_IP, socket.IP_RECVTOS, socket.IP_TOS) if family == 4 else
                              (socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, socket.IPV6_TCLASS))
    with listener(site.server, family, 7, kind=socket.SOCK_DGRAM) as server, \
            listener(sender, family, 0, kind=socket.SOCK_DGRAM) as client:
        server.setsockopt(level, receive, 1)
        client.setsockopt(level, option, sent)
        client.sendto(b'?', (SERVER[family], 7))
        _, ((_, _, value),), _, _ = server.recvmsg(100, 100)
    return value[0]


@pytest.mark.parametrize('family', (4, 6))
@pytest.mark.parametrize('reset, sender, arrives', (('no', 'client', 46 << 2 | 1), ('yes', 'client', 1),
                                                    ('yes', 'gateway', 46 << 2 | 1)))
def test_marks_of_hosts_can_be_taken_off_while_nobody_reads_the_queue(site, family, reset, sender, arrives):
    edge_up(site.gateway, *LINK, '--reset-marks', reset)
    assert received_tos(site, getattr(site, sender), family, 46 << 2 | 1) == arrives


def test_a_code_point_is_given_after_those_of_hosts_are_taken_off(site):
    edge_up(site.gateway, *LINK, '--reset-marks', 'yes')
    site.gateway.run('iptables', '-t', 'mangle', '-A', 'FORWARD', '-j', 'MARK', '--set-mark', hex((0x40 | 10) << 24))
    assert received_tos(site, site.client, 4, 46 << 2) == 10 << 2


def test_marks_of_others_outlive_ours(site):
    """A rule after ours matches the mark."""
    edge_up(site.gateway)
    site.gateway.run('iptables', '-t', 'mangle', '-A', 'FORWARD', '-j', 'MARK', '--set-mark', '0x6e000700')
    site.gateway.run('iptables', '-t', 'mangle', '-A', 'POSTROUTING', '-m', 'mark', '--mark', '0x700')
    datagrams_arrive(site, site.client, 4, 1)
    counted = site.gateway.run('iptables', '-t', 'mangle', '-nvxL', 'POSTROUTING').splitlines()[-1]
    assert 'mark match 0x700' in counted and counted.split()[0] == '1'


def test_no_empty_table_is_left_on_a_clean_system(gateway):
    before = snapshot(gateway)
    edge_up(gateway)
    edge_down(gateway)
    assert snapshot(gateway) == before
    done = edge(gateway, 'down')
    assert (done.returncode, done.stdout) == (0, 'msfrs-edge-iptables: down: nothing was up\n')


@pytest.mark.parametrize('first', ('edge', 'squid'))
@pytest.mark.parametrize('last', ('edge', 'squid'))
def test_no_empty_table_is_left_by_both(gateway, first, last):
    """Both scripts use the same tables. The script that is taken down last removes them, also those that the other made."""
    ups, downs = {'edge': lambda: edge_up(gateway), 'squid': lambda: up(gateway)}, {
        'edge': lambda: edge_down(gateway), 'squid': lambda: down(gateway)}
    other = {'edge': 'squid', 'squid': 'edge'}
    before = snapshot(gateway)
    for name in (first, other[first], first):
        ups[name]()
    for name in (other[last], last):
        downs[name]()
    assert snapshot(gateway) == before


def test_up_twice_is_up_once_and_up_with_other_options_replaces(busy):
    before = snapshot(busy)
    edge_up(busy, '--link', 'in0=9', said='in0 to queue 9, IPv4 and IPv6')
    edge_up(busy)
    once = snapshot(busy)
    assert '9' not in ''.join(re.findall(r'queue-num \d+', once))
    edge_up(busy)
    assert snapshot(busy) == once
    edge_down(busy)
    assert snapshot(busy) == before


@pytest.mark.parametrize('mode', ('redirect', 'tproxy'))
def test_the_two_scripts_know_nothing_of_each_other(busy, mode):
    clean = snapshot(busy)
    up(busy, '--mode', mode)
    intercepting = snapshot(busy)
    edge_up(busy)
    both = snapshot(busy)
    down(busy)
    assert without(snapshot(busy), 'MSFRS_EDGE') == clean
    up(busy, '--mode', mode)
    assert sorted(snapshot(busy).splitlines()) == sorted(both.splitlines())
    edge_down(busy)
    assert snapshot(busy) == intercepting
    down(busy)
    assert snapshot(busy) == clean


def test_check(gateway):
    assert edge(gateway, 'check', *LINK).stdout.splitlines() == ['missing: IPv4 security chain MSFRS_EDGE',
                                                                 'missing: IPv4 mangle chain MSFRS_EDGE_MARK',
                                                                 'missing: IPv6 security chain MSFRS_EDGE',
                                                                 'missing: IPv6 mangle chain MSFRS_EDGE_MARK']
    edge_up(gateway)
    before = snapshot(gateway)
    done = edge(gateway, 'check', *LINK)
    assert (done.returncode, done.stdout, done.stderr) == (
        0, 'msfrs-edge-iptables: in place: out0 to queue 3, IPv4 and IPv6\n', '')
    assert snapshot(gateway) == before


@pytest.mark.parametrize('damage, finding', (
    ('iptables -t security -F MSFRS_EDGE',
     'missing: IPv4 security rule: MSFRS_EDGE -d 224.0.0.0/24 -j RETURN\n'
     'missing: IPv4 security rule: MSFRS_EDGE -o out0 -j NFQUEUE --queue-num 3 --queue-bypass'),
    ('ip6tables -t security -D FORWARD -j MSFRS_EDGE', 'missing: IPv6 security rule: FORWARD -j MSFRS_EDGE'),
    ('iptables -t mangle -D POSTROUTING -o out0 -j MSFRS_EDGE_MARK',
     'missing: IPv4 mangle rule: POSTROUTING -o out0 -j MSFRS_EDGE_MARK'),
    ('ip6tables -t mangle -D MSFRS_EDGE_MARK 9', 'missing: IPv6 mangle rule: MSFRS_EDGE_MARK -m mark --mark '
                                                 '0x80000000/0x80000000 -j TOS --set-tos 0x03/0x03'),
    ('iptables -t security -A MSFRS_EDGE -o in0 -j DROP', 'left over: IPv4 security rule in MSFRS_EDGE'),
    ('iptables -t security -I INPUT -j MSFRS_EDGE', 'left over: IPv4 security rule in INPUT'),
))
def test_check_names_what_is_not_as_it_must_be(gateway, damage, finding):
    edge_up(gateway)
    gateway.run(*damage.split())
    done = edge(gateway, 'check', *LINK)
    assert (done.returncode, done.stdout, done.stderr) == (1, finding + '\n', '')
    edge_up(gateway)
    assert edge(gateway, 'check', *LINK).returncode == 0


def test_print_is_what_up_does(gateway):
    before = snapshot(gateway)
    printed = edge(gateway, 'print', '--link', 'out0=0-1,in0=7')
    assert (printed.returncode, printed.stderr) == (0, '')
    assert snapshot(gateway) == before
    edge_up(gateway, '--link', 'out0=0-1,in0=7', said='out0 to queue 0 to 1, in0 to queue 7, IPv4 and IPv6')
    done = without(snapshot(gateway), 'MSFRS_EDGE_STATE')
    edge_down(gateway)
    gateway.run('sh', '-e', input=printed.stdout)
    assert snapshot(gateway) == done


@pytest.mark.parametrize('earlier', (False, True))
def test_a_step_that_fails_halfway_puts_everything_back(busy, tmp_path, earlier):
    if earlier:
        edge_up(busy, '--link', 'in0=1', said='in0 to queue 1, IPv4 and IPv6')
    before = snapshot(busy)
    body = f'sed "s/-j NFQUEUE .*/-j NOSUCHTARGET/" | {shutil.which("ip6tables-restore")} "$@"\n'
    with path_with(tmp_path, ip6tables_restore=body) as path:
        done = edge(busy, 'up', *LINK, path=path)
    assert (done.returncode, done.stdout) == (FAILED, '')
    assert 'modprobe -a xt_NFQUEUE nfnetlink_queue xt_mark xt_DSCP iptable_security ip6table_security\n' in done.stderr
    assert done.stderr.endswith('msfrs-edge-iptables: failed; everything is again as it was before\n')
    assert snapshot(busy) == before


@pytest.mark.parametrize('code, sentence, arguments', (
    (WRONG, 'no link: name the interface that packets leave by, and their queue, --link eth0=0', ()),
    (WRONG, "--link: link 'out0' is not INTERFACE=QUEUE or INTERFACE=FIRST-LAST, for example eth0=0",
     ('--link', 'out0')),
    (WRONG, "--link: link 'out0=-1' is not INTERFACE=QUEUE or INTERFACE=FIRST-LAST, for example eth0=0",
     ('--link', 'out0=-1')),
    (WRONG, "--link: 'o+t' is not an interface name: 1 to 15 of A-Z a-z 0-9 _ . -, or the beginning of names and a +",
     ('--link', 'o+t=1')),
    (WRONG, "'ppp0' and 'ppp+' in link can be the same interface", ('--link', 'ppp+=1 ppp0=2')),
    (WRONG, "'out+' and 'out0' in link, from can be the same interface",
     ('--own', 'no', '--link', 'out0=1', '--from', 'out+')),
    (WRONG, "--link: queues '65536' of link 'out0' must be a number from 0 to 65535, or two of which the second is "
            'not the lower one', ('--link', 'out0=65536')),
    (WRONG, "--link: queues '3-1' of link 'out0' must be a number from 0 to 65535, or two of which the second is not "
            'the lower one', ('--link', 'out0=3-1')),
    (WRONG, "interface 'out0' is in link twice", ('--link', 'out0=1 out0=2')),
    (WRONG, 'queue 2 is in link twice; the packets of two links cannot wait in one queue (--from: they have come over '
            'one)',
     ('--link', 'out0=1-2 in0=2-3')),
    (WRONG, "--seen: seen 'out0' is not INTERFACE=QUEUE or INTERFACE=FIRST-LAST, for example eth0=0",
     ('--link', 'in0=1', '--seen', 'out0')),
    (WRONG, "interface 'in0' is in link and seen twice", ('--link', 'in0=1', '--own', 'no', '--seen', 'in0=1')),
    (WRONG, 'queue 2 is in seen and not in link; what goes up is seen by whoever paces what comes down',
     ('--link', 'in0=1', '--own', 'no', '--seen', 'out0=2')),
    (WRONG, 'seen goes with --own no: what the router sends by itself would be taken for what comes down',
     ('--link', 'in0=1', '--seen', 'out0=1')),
    (WRONG, 'from goes with --own no: what the router sends by itself has come in by no interface',
     ('--link', 'in0=1', '--from', 'out0')),
    (WRONG, "interface 'in0' is in link and from: what comes in by it leaves by others",
     ('--link', 'in0=1', '--own', 'no', '--from', 'out0 in0')),
    (WRONG, "--from: 'out0=1' is not an interface name: 1 to 15 of A-Z a-z 0-9 _ . -, or the beginning of names and a +",
     ('--link', 'in0=1', '--own', 'no', '--from', 'out0=1')),
    (REFUSED, "no interface 'ppp0' here; there are: in0 out0 port0 br0",
     ('--link', 'in0=1', '--own', 'no', '--from', 'ppp0')),
    (WRONG, "--mode: unknown option 'mode'; known: link from seen own mark-shift reset-marks ipv6 backend",
     ('--mode', 'redirect')),
    (WRONG, "--own: own 'maybe' is not one of: yes no", ('--link', 'out0=1', '--own', 'maybe')),
    (WRONG, "--reset-marks: reset-marks '46' is not one of: yes no", ('--link', 'out0=1', '--reset-marks', '46')),
    (WRONG, "--mark-shift: mark-shift '25' must be a number from 0 to 24, or none",
     ('--link', 'out0=1', '--mark-shift', '25')),
    (REFUSED, "no interface 'eth7' here; there are: in0 out0 port0 br0", ('--link', 'eth7=0')),
    (REFUSED, "interface 'lo' is the loopback: nothing leaves by it", ('--link', 'lo=0')),
    (REFUSED, "interface 'port0' is a port of 'br0': name that one", ('--link', 'port0=0')),
))
def test_refusals(refusing, code, sentence, arguments):
    refused(refusing, code, sentence, 'up', *arguments, program=EDGE_SCRIPT)


def test_without_rights(refusing):
    refused(refusing, REFUSED, "'up' needs the right to change the firewall (CAP_NET_ADMIN): run it as root", 'up',
            *LINK, program=EDGE_SCRIPT, prefix=('setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin'))


def test_the_example_file(gateway):
    example = DIRECTORY / 'edge-iptables.conf'
    assert sh(gateway, str(EDGE_SCRIPT), 'print', '--config', str(example)).stdout == \
        edge(gateway, 'print', '--link', 'eth0=0').stdout
    options = re.findall(r'(?m)^#?([a-z0-9-]+) =', example.read_text())
    assert options == ['link', 'from', 'seen', 'own', 'mark-shift', 'reset-marks', 'ipv6', 'backend']
    said = edge(gateway, '--help').stdout
    assert [name for name in options if f'  --{name} ' not in said] == []
