# SPDX-License-Identifier: GPL-2.0-or-later
"""Running the scripts of conf/iptables in tests, and the kernel's state before and after."""
import contextlib
import os
import pathlib
import re
import shutil

from fieldtrial.site.netns import NetnsFabric
from site_in_namespaces import addresses_at_once, set_sysctl, sh

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIRECTORY = ROOT / 'conf' / 'iptables'
SCRIPT = DIRECTORY / 'msfrs-iptables'
EDGE_SCRIPT = DIRECTORY / 'msfrs-edge-iptables'
#: Exit codes.
WRONG, REFUSED, FAILED = 2, 3, 4
MODES = ('redirect', 'tproxy')
HTTP_PORT = {'redirect': 3129, 'tproxy': 3131}
HTTPS_PORT = {'redirect': 3130, 'tproxy': 3132}
#: Every sysctl that `up` may change, as far as its value can be read, and more.
SYSCTLS = ('net/ipv4/ip_forward net/ipv6/conf/all/forwarding net/ipv4/conf/*/forwarding '
           'net/ipv4/conf/*/accept_redirects net/ipv4/conf/*/src_valid_mark net/ipv4/conf/*/rp_filter '
           'net/ipv4/conf/*/route_localnet net/ipv6/conf/*/forwarding net/ipv6/conf/*/accept_ra').split()
#: An administrator's firewall that also has rules in the tables and chains that the script changes.
OTHERS = '''\
*raw
-A PREROUTING -i in0 -p udp -m udp --dport 5060 -j ACCEPT
COMMIT
*mangle
:MARKS - [0:0]
-A PREROUTING -i in0 -p tcp -m tcp --dport 25 -j MARK --set-xmark 0x7/0xff
-A PREROUTING -j MARKS
-A MARKS -j RETURN
-A POSTROUTING -o out0 -j MARK --set-xmark 0x70/0xf0
COMMIT
*nat
:PREROUTING DROP [0:0]
-A PREROUTING -i out0 -p tcp -m tcp --dport 8443 -m comment --comment "a b \\"c\\" -j MSFRS" -j REDIRECT --to-ports 443
-A POSTROUTING -o out0 -j MASQUERADE
COMMIT
*filter
:FORWARD DROP [0:0]
-A FORWARD -i in0 -j ACCEPT
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
'''


def script(host, command, *options, path=None, config='none', prefix=(), program=SCRIPT):
    """Runs a script on a host without the system's configuration file; `path` replaces PATH."""
    environment = {**os.environ, 'PATH': path or os.environ['PATH']}
    return sh(host, *prefix, str(program), command, '--config', str(config), *options, env=environment)


def up(host, *options, **how):
    """`up` on in0, which must succeed without messages."""
    done = script(host, 'up', '--inside', 'in0', *options, **how)
    assert (done.returncode, done.stderr) == (0, ''), done
    return done


def down(host, program=SCRIPT):
    _quietly(host, 'down', f'{program.name}: down\n', program)


def drain(host):
    _quietly(host, 'drain', f'{SCRIPT.name}: drained\n', SCRIPT)


def _quietly(host, command, says, program):
    done = script(host, command, program=program)
    assert (done.returncode, done.stdout, done.stderr) == (0, says, ''), done


def bare_gateway(fabric):
    """A gateway with cables in in0 and out0, without configuration."""
    made, other = fabric.host('gw'), fabric.host('other')
    addresses_at_once(made)
    for name in ('in0', 'out0'):
        fabric.wire(made, name, other, name)
    for name, family in (('ip_forward', 'ipv4'), ('conf/all/forwarding', 'ipv6')):
        set_sysctl(made, f'net/{family}/{name}', 1)
    return made


@contextlib.contextmanager
def gateway_with_ports():
    """A gateway with in0, out0 with the default route, and port0, a port of the bridge br0."""
    with NetnsFabric('e2e') as fabric:
        made, other = fabric.host('gw'), fabric.host('other')
        addresses_at_once(made)
        for name in ('in0', 'out0', 'port0'):
            fabric.wire(made, name, other, name)
        made.batch(['link add br0 type bridge', 'link set port0 master br0', 'address add 198.18.2.1/24 dev out0',
                    'route add default via 198.18.2.2', 'route add local 198.18.9.0/24 dev lo table 77'])
        yield made


def refused(gateway, code, sentence, *command, program=SCRIPT, **how):
    """The script must refuse with this exit code and message, and change nothing."""
    before = snapshot(gateway)
    done = script(gateway, *command, program=program, **how)
    assert (done.returncode, done.stdout, done.stderr) == (code, '', f'{program.name}: {sentence}\n')
    assert snapshot(gateway) == before


def rules_of_others(gateway):
    """Adds an administrator's rules, routes and policy to a gateway; returns it."""
    for tool in ('iptables-restore', 'ip6tables-restore'):
        gateway.run(tool, '--noflush', input=OTHERS.replace(':PREROUTING DROP', ':PREROUTING ACCEPT'))
    for family in ('-4', '-6'):
        gateway.run('ip', family, 'rule', 'add', 'pref', '999', 'fwmark', '0x7/0xff', 'lookup', '77')
        gateway.run('ip', family, 'route', 'add', 'local', 'default', 'dev', 'lo', 'table', '77')
    return gateway


def without(text, *words):
    """The lines of a text that contain none of these words."""
    return '\n'.join(line for line in text.splitlines() if not any(word in line for word in words))


def snapshot(host):
    """The whole firewall, routing policy and sysctls as text: byte-identical if only counters have changed."""
    commands = ('iptables-save', 'ip6tables-save', 'iptables-legacy-save', 'ip6tables-legacy-save', 'ip -4 rule',
                'ip -6 rule', 'ip -4 route show table all', 'ip -6 route show table all')
    lines = []
    for command in commands:
        if shutil.which(command.split()[0]):
            lines += [f'$ {command}', *_without_counters(host.run(*command.split()))]
    values = host.run('sh', '-c', 'cd /proc/sys && grep -s . ' + ' '.join(SYSCTLS))
    return '\n'.join([*lines, *values.splitlines()])


def _without_counters(text):
    for line in text.splitlines():
        if not line.startswith('#'):
            yield re.sub(r' \[\d+:\d+\]$', '', line)


@contextlib.contextmanager
def path_with(directory, **programs):
    """A PATH with shell scripts of these names (`_` stands for `-`) before the system's programs."""
    for name, body in programs.items():
        file = pathlib.Path(directory) / name.replace('_', '-')
        file.write_text('#!/bin/sh\n' + body)
        file.chmod(0o755)
    yield f'{directory}:{os.environ["PATH"]}'
