# SPDX-License-Identifier: GPL-2.0-or-later
"""conf/iptables/msfrs-iptables in the tests: how it is run, and what the kernel holds before and after."""
import contextlib
import os
import pathlib
import re
import shutil

from site_in_namespaces import sh

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIRECTORY = ROOT / 'conf' / 'iptables'
SCRIPT = DIRECTORY / 'msfrs-iptables'
MODES = ('redirect', 'tproxy')
HTTP_PORT = {'redirect': 3129, 'tproxy': 3131}
HTTPS_PORT = {'redirect': 3130, 'tproxy': 3132}
#: Everything that `up` may change, where its values can be read, and more.
SYSCTLS = ('net/ipv4/ip_forward net/ipv6/conf/all/forwarding net/ipv4/conf/*/forwarding '
           'net/ipv4/conf/*/accept_redirects net/ipv4/conf/*/src_valid_mark net/ipv4/conf/*/rp_filter '
           'net/ipv4/conf/*/route_localnet net/ipv6/conf/*/forwarding net/ipv6/conf/*/accept_ra').split()


def script(host, command, *options, path=None, config='none', prefix=()):
    """Runs the script on a host without the system's configuration file; `path` replaces PATH."""
    environment = {**os.environ, 'PATH': path or os.environ['PATH']}
    return sh(host, *prefix, str(SCRIPT), command, '--config', str(config), *options, env=environment)


def up(host, *options, **how):
    """`up` on in0, which must succeed and have nothing to complain of."""
    done = script(host, 'up', '--inside', 'in0', *options, **how)
    assert (done.returncode, done.stderr) == (0, ''), done
    return done


def down(host):
    done = script(host, 'down')
    assert (done.returncode, done.stdout, done.stderr) == (0, 'msfrs-iptables: down\n', ''), done


def snapshot(host):
    """The whole firewall, routing policy and sysctls as text: byte-identical if nothing was changed but counters."""
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
    """A PATH that finds, before the system's programs, shell scripts with these names (`_` stands for `-`)."""
    for name, body in programs.items():
        file = pathlib.Path(directory) / name.replace('_', '-')
        file.write_text('#!/bin/sh\n' + body)
        file.chmod(0o755)
    yield f'{directory}:{os.environ["PATH"]}'
