# SPDX-License-Identifier: GPL-2.0-or-later
"""Refusals of msfrs-iptables, their messages, and that a refusal changes nothing."""
import os
import pathlib
import re
import shutil
import tempfile

import pytest

from iptables_script import (DIRECTORY, REFUSED, SCRIPT, WRONG, gateway_with_ports, path_with, refused, script,
                             snapshot)
from site_in_namespaces import sh

KNOWN = ('mode inside source intercept redirect-ports tproxy-ports quic edge-config exempt-client '
         'exempt-destination ipv6 gateway-traffic squid-user syn-queue syn-mark fwmark table set-sysctl backend')
NO_NAME = 'is not an interface name: 1 to 15 of A-Z a-z 0-9 _ . -, or the beginning of names and a +'
NO_RIGHT = "'{}' needs the right to change the firewall (CAP_NET_ADMIN): run it as root"


@pytest.fixture(scope='module')
def gateway():
    """Shared by all: a refusal changes nothing, and every test checks that."""
    with gateway_with_ports() as made:
        yield made


@pytest.mark.parametrize('arguments, sentence', (
    ((), 'no inside interface: name the one that the users are on, --inside eth0'),
    (('--inside', ''), 'no inside interface: name the one that the users are on, --inside eth0'),
    (('--inside',), '--inside: a value must follow'),
    *((('--inside', name), f"--inside: '{name}' {NO_NAME}")
      for name in ('+', 'i+n', 'in++', 'a-name-too-long1', 'a-name-too-long+', 'in0;reboot')),
    (('--inside', 'in0', '--inside', 'out0'), "--inside: 'inside' was given before (--inside); give it once"),
    (('--colour', 'red'), f"--colour: unknown option 'colour'; known: {KNOWN}"),
    (('sideways',), "'sideways' is not a command or option; commands are check down drain print up; see msfrs-iptables --help"),
    (('down',), "'up' and 'down': give one command"),
    (('--mode', 'bridge'), "--mode: mode 'bridge' is not one of: redirect tproxy"),
    (('--quic', 'drop'), "--quic: quic 'drop' is not one of: auto reject allow"),
    (('--edge-config', 'edge.conf'), "--edge-config: edge-config 'edge.conf' must be a path that begins with /, or none"),
    (('--ipv6', 'on'), "--ipv6: ipv6 'on' is not one of: yes no"),
    (('--backend', 'bpf'), "--backend: backend 'bpf' is not one of: auto nft legacy"),
    (('--intercept', '8080'), "--intercept: intercept '8080' is not 80, 443 or both"),
    (('--intercept', '80 80'), "--intercept: intercept '80 80' is not 80, 443 or both"),
    (('--redirect-ports', '3129'),
     "--redirect-ports: redirect-ports '3129' must be two ports from 1 to 65535: Squid's for HTTP and for HTTPS"),
    (('--tproxy-ports', '3131,65536'),
     "--tproxy-ports: tproxy-ports '3131,65536' must be two ports from 1 to 65535: Squid's for HTTP and for HTTPS"),
    (('--tproxy-ports', '3129,3130', '--inside', 'in0'),
     'port 3129 3130 is twice in redirect-ports and tproxy-ports; Squid needs four different ones'),
    (('--fwmark', '0x100'), "--fwmark: fwmark '0x100' must be VALUE/MASK, 32 bits, VALUE not 0 and within MASK, "
                            'for example 0x100/0x100'),
    (('--fwmark', '0x300/0x100'), "--fwmark: fwmark '0x300/0x100' must be VALUE/MASK, 32 bits, VALUE not 0 and within "
                                  'MASK, for example 0x100/0x100'),
    (('--fwmark', '0/0xff'), "--fwmark: fwmark '0/0xff' must be VALUE/MASK, 32 bits, VALUE not 0 and within MASK, "
                             'for example 0x100/0x100'),
    (('--syn-mark', '512'), "--syn-mark: syn-mark '512' must be VALUE/MASK, 32 bits, VALUE not 0 and within MASK, for "
                            'example 0x100/0x100'),
    (('--syn-queue', '65536'), "--syn-queue: syn-queue '65536' must be a number from 0 to 65535, or none"),
    (('--table', '254'), "--table: table '254' must be from 1 to 4294967295, but not the system's 253, 254, 255"),
    (('--table', 'main'), "--table: table 'main' must be from 1 to 4294967295, but not the system's 253, 254, 255"),
    (('--squid-user', 'a b'), "--squid-user: squid-user 'a b' is not a user name or number"),
    (('--inside', 'in0', '--mode', 'tproxy', '--gateway-traffic', 'yes'),
     'gateway-traffic works with mode redirect only: what the gateway sends comes in from no interface'),
    (('--inside', 'in0', '--source', '10.0.0.0/8'), 'source names no IPv6 network, so IPv6 users would bypass Squid; '
                                                    'add one or set ipv6 = no'),
    (('--inside', 'in0', '--source', 'fd00::/8'), 'source names no IPv4 network, so IPv4 users would bypass Squid; '
                                                  'add one'),
))
def test_command_line(gateway, arguments, sentence):
    refused(gateway, WRONG, sentence, 'up', *arguments)


@pytest.mark.parametrize('address', ('256.0.0.1', '10.0.0', '10.0.0.0.0', '010.0.0.1', '10.0.0.0/33', '10.0.0.0/',
                                     'www.example.com', '10.0.0.1-9', '!10.0.0.1', ':', ':::', '1::2::3',
                                     '1:2:3:4:5:6:7',
                                     '1:2:3:4:5:6:7:8:9', '12345::', 'g::', '::/129', '::1:', '1::2:', '::1.2.3.4',
                                     'fe80::1%in0', '1:2:3:4::5:6:7:8'))
def test_what_is_not_an_address(gateway, address):
    refused(gateway, WRONG, f"--exempt-client: exempt-client '{address}' is not an IPv4 or IPv6 address or network; "
                            'write it as 10.0.0.0/8 or 2001:db8::/32', 'print', '--exempt-client', address)


@pytest.mark.parametrize('address, length', (('10.0.0.1/8', 8), ('10.1.0.0/15', 15), ('2001:db8::1/64', 64),
                                             ('2001:db8:0:8000::/48', 48), ('fc00::/6', None), ('1::/0', 0)))
def test_bits_behind_the_prefix(gateway, address, length):
    if length is None:
        assert script(gateway, 'print', '--inside', 'in0', '--exempt-client', address).returncode == 0
        return
    refused(gateway, WRONG, f"--source: source '{address}' has bits set behind its prefix length {length}",
            'print', '--source', address)


@pytest.mark.parametrize('address', ('0.0.0.0/0', '10.0.0.0/8', '255.255.255.255', '10.128.0.0/9', '::', '::1', '1::',
                                     '::/0', '2001:DB8::/32', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7::',
                                     '2001:db8:8000::/33'))
def test_what_is_an_address(gateway, address):
    printed = script(gateway, 'print', '--inside', 'in0', '--exempt-destination', address)
    assert (printed.returncode, printed.stderr) == (0, '')
    assert f' -d {address} -j RETURN\n' in printed.stdout


@pytest.mark.parametrize('text, sentence', (
    ('inside = in0\nmode: tproxy\n', "{}:2: 'mode: tproxy' is not 'option = value'"),
    ('# a comment\n\n  mod = tproxy # here\n', f"{{}}:3: unknown option 'mod'; known: {KNOWN}"),
    ('mode = tproxy\nmode = redirect\n', "{0}:2: 'mode' was given before ({0}:1); give it once"),
    ('mode = transparent', "{}:1: mode 'transparent' is not one of: redirect tproxy"),
    ('mode =\n', "{}:1: mode '' is not one of: redirect tproxy"),
    ('\nsource = 10.0.0.0/8, 2001:db8::1/32\n',
     "{}:2: source '2001:db8::1/32' has bits set behind its prefix length 32"),
    ('inside = $(reboot)\n', "{}:1: '$(reboot)' " + NO_NAME),
    ('inside = "in0"\n', "{}:1: '\"in0\"' " + NO_NAME),
    ('a b = c\n', "{}:1: 'a b = c' is not 'option = value'"),
))
def test_configuration_file(gateway, tmp_path, text, sentence):
    file = tmp_path / 'iptables.conf'
    file.write_text(text)
    refused(gateway, WRONG, sentence.format(file), 'up', config=file)


def test_configuration_file_that_others_may_write(gateway, tmp_path):
    file = tmp_path / 'iptables.conf'
    file.write_text('inside = in0\n')
    file.chmod(0o664)
    refused(gateway, WRONG, f'{file}: others may write to it (mode 664), and it decides over the firewall: '
                            f'chmod go-w {file}', 'up', config=file)


def test_configuration_file_that_is_not_there(gateway, tmp_path):
    refused(gateway, WRONG, f'{tmp_path}/none: cannot be read; give a readable file with --config', 'up',
            config=f'{tmp_path}/none')


def test_the_command_line_goes_before_the_file(gateway, tmp_path):
    file = tmp_path / 'iptables.conf'
    file.write_text('inside = in0\nmode = tproxy\nquic = allow\n')
    printed = script(gateway, 'print', '--mode=redirect', config=file).stdout
    assert 'REDIRECT' in printed and 'TPROXY' not in printed and 'QUIC' not in printed


def test_the_example_file(gateway, tmp_path):
    """It is valid as it is, and shows the actual defaults."""
    plain = script(gateway, 'print', '--inside', 'eth0').stdout
    assert script(gateway, 'print', config=DIRECTORY / 'iptables.conf').stdout == plain
    # Its commented options, except those without a value.
    lines = re.findall(r'(?m)^#?([a-z0-9-]+) =(.*)', (DIRECTORY / 'iptables.conf').read_text())
    assert sorted(name for name, _ in lines) == sorted(KNOWN.split())
    spelled_out = tmp_path / 'iptables.conf'
    spelled_out.write_text(''.join(f'{name} = {value}\n' for name, value in lines if value.partition('#')[0].strip()))
    assert script(gateway, 'print', config=spelled_out).stdout == plain


@pytest.mark.parametrize('inside, sentence', (
    ('eth7', "no interface 'eth7' here; there are: in0 out0 port0 br0"),
    ('lo', "interface 'lo' is the loopback: no user is behind it"),
    ('port0', "interface 'port0' is a port of 'br0': name that one"),
    ('po+', "interface 'port0' is a port of 'br0': name that one"),
    ('l+', "interface 'lo' is the loopback: no user is behind it"),
))
@pytest.mark.parametrize('command', ('up', 'check'))
def test_interface(gateway, command, inside, sentence):
    refused(gateway, REFUSED, sentence, command, '--inside', inside)


def test_inside_that_looks_like_outside(gateway):
    for name in ('out0', 'out+'):
        done = script(gateway, 'check', '--inside', name)
        assert done.stderr == ("msfrs-iptables: warning: the default route goes out of 'out0': is it really where the "
                               'users are?\n')


def test_routing_table_of_somebody_else(gateway):
    refused(gateway, REFUSED, "routing table 77 has routes of others ('ip -4 route show table 77'): set table to a "
                              'free number', 'up', '--inside', 'in0', '--mode', 'tproxy', '--table', '77')


def test_no_such_user(gateway):
    refused(gateway, REFUSED, "no user 'nosuchuser' here, whose traffic must not be sent back to Squid: set squid-user",
            'up', '--inside', 'in0', '--gateway-traffic', 'yes', '--squid-user', 'nosuchuser')


def test_default_route_by_router_advertisement(gateway):
    gateway.run('ip', '-6', 'route', 'add', 'default', 'via', 'fe80::1', 'dev', 'out0', 'proto', 'ra')
    try:
        refused(gateway, REFUSED, "switching IPv6 forwarding on would lose the default route that 'out0' learns from "
                                  'router advertisements: set net.ipv6.conf.out0.accept_ra = 2 first',
                'up', '--inside', 'in0', '--set-sysctl', 'yes')
    finally:
        gateway.run('ip', '-6', 'route', 'del', 'default', 'dev', 'out0')


@pytest.mark.parametrize('command', ('up', 'drain', 'down', 'check'))
def test_without_rights(gateway, command):
    refused(gateway, REFUSED, NO_RIGHT.format(command), command, '--inside', 'in0',
            prefix=('setpriv', '--bounding-set', '-net_admin', '--inh-caps', '-net_admin'))


@pytest.fixture
def copy_for_all():
    """The script in a place where everybody can read it; the checkout may be private."""
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory).chmod(0o755)
        yield pathlib.Path(shutil.copytree(DIRECTORY, f'{directory}/iptables')) / SCRIPT.name


@pytest.mark.parametrize('command', ('up', 'down', 'check', 'print'))
def test_as_nobody(gateway, copy_for_all, command):
    before = snapshot(gateway)
    done = sh(gateway, 'setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups', '--', str(copy_for_all),
              command, '--config', 'none', '--inside', 'in0')
    if command == 'print':
        assert (done.returncode, done.stderr) == (0, '') and '-j REDIRECT' in done.stdout
    else:
        assert (done.returncode, done.stdout) == (REFUSED, '')
        assert done.stderr == f'msfrs-iptables: {NO_RIGHT.format(command)}\n'
    assert snapshot(gateway) == before


@pytest.mark.parametrize('missing, sentence', (
    ('iptables', 'iptables: not found; install the package iptables'),
    ('ip6tables-restore', 'ip6tables-restore: not found; install the package iptables'),
    ('ip', 'ip: not found; install the package iproute2'),
))
def test_program_that_is_not_installed(gateway, tmp_path, missing, sentence):
    """Its directories hold links to all programs but one, in the mount namespace that `ip netns exec` makes."""
    commands = []
    for directory in ('/usr/bin', '/usr/sbin'):
        real, linked = tmp_path / f'real{directory}', tmp_path / f'linked{directory}'
        real.mkdir(parents=True)
        linked.mkdir(parents=True)
        for name in os.listdir(directory):
            if name != missing:
                (linked / name).symlink_to(os.readlink(f'{directory}/{name}') if os.path.islink(f'{directory}/{name}')
                                           else real / name)
        commands += [f'mount --bind {directory} {real}', f'mount --bind {linked} {directory}']
    refused(gateway, REFUSED, sentence, 'up', '--inside', 'in0',
            prefix=('sh', '-c', ' && '.join([*commands, 'exec "$@"']), 'sh'))


def test_kernel_module_that_is_missing(gateway, tmp_path):
    """The message of iptables, the rule, and the module to load; for the messages of nft's iptables and of legacy's."""
    before = snapshot(gateway)
    for words in ('iptables-restore v1.8.9 (nf_tables): \nline 26: RULE_APPEND failed (No such file or directory): '
                  'rule in chain MSFRS_TPROXY', 'iptables-restore: line 26 failed'):
        with path_with(tmp_path, iptables_restore=f"echo '{words}' >&2; exit 1\n") as path:
            done = script(gateway, 'up', '--inside', 'in0', '--mode', 'tproxy', path=path)
        assert done.returncode == 4
        assert done.stderr == (
            f'msfrs-iptables: iptables-restore refused the IPv4 rules: {words}\n'
            '  -I PREROUTING 4 -i in0 -p tcp -j MSFRS_TPROXY\n'
            '  If the kernel lacks a module for it: modprobe -a xt_addrtype xt_conntrack xt_multiport xt_mark '
            'xt_TPROXY xt_socket iptable_raw ip6table_raw xt_NFQUEUE nfnetlink_queue xt_connmark ipt_REJECT '
            'ip6t_REJECT xt_u32\n'
            'msfrs-iptables: failed; everything is again as it was before\n')
    assert snapshot(gateway) == before


def test_help_names_every_option(gateway):
    said = script(gateway, '--help')
    assert (said.returncode, said.stderr) == (0, '')
    assert [name for name in KNOWN.split() if f'  --{name} ' not in said.stdout] == []
    assert max(map(len, said.stdout.splitlines())) <= 120
