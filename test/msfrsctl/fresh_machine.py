# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine on which `msfrsctl setup` has not run yet, and what it will find there."""
import json

import pytest

from conftest import BUSY
from msfrsctl.system import Done

PAGE_CONF = '/etc/msfrs/page.conf'
IPTABLES, JOURNAL, EDGE = '/etc/msfrs/iptables.conf', '/var/lib/msfrs/setup.json', '/etc/msfrs/edge.conf'
SCRIPT = '/opt/msfrs/share/msfrs/iptables/msfrs-iptables'
PROGRAM, EDGE_SCRIPT = '/opt/msfrs/sbin/msfrs-edge', '/opt/msfrs/share/msfrs/iptables/msfrs-edge-iptables'
RULES, SEGMENT = '/etc/msfrs/edge-iptables.conf', 'squid-msfrs_ledger.shm'
WORKER = 'parties:\n  - {slot: 0, kind: worker, live: true}\n'
PARTY = WORKER + '  - {slot: 1, kind: edge, live: true}\n'
ADDRESSES = [{'ifname': 'lo', 'flags': ['LOOPBACK'], 'addr_info': [{'local': '127.0.0.1', 'prefixlen': 8}]},
             {'ifname': 'eth1', 'addr_info': [{'local': '192.0.2.2', 'prefixlen': 24, 'scope': 'global'}]},
             {'ifname': 'eth0', 'addr_info': [{'local': '10.20.0.1', 'prefixlen': 16, 'scope': 'global'},
                                              {'local': '2001:db8::1', 'prefixlen': 64, 'scope': 'global'},
                                              {'local': 'fe80::1', 'prefixlen': 64, 'scope': 'link'}]},
             {'ifname': 'wlan0', 'addr_info': []}]
FORWARDING, SWITCHES = '/etc/sysctl.d/60-msfrs.conf', ('net/ipv4/ip_forward', 'net/ipv6/conf/all/forwarding')
PAGE = 'http://example.com/'
LISTENING = ''.join(f'LISTEN 0 256 {address}:{port} *:*\n' for address, port in
                    (('*', 3128), ('0.0.0.0', 3129), ('[::]', 3130)))
EDGE_STOP = ('start-stop-daemon --stop --oknodo --retry 5 --remove-pidfile --pidfile /run/msfrs-edge.pid --exec '
             f'{PROGRAM}')
FLAGS = ('setup', '--yes', '--rate', '20Mbit', '--class', 'gold=4=10.20.1.0/24', '--class', 'bronze=1')


@pytest.fixture
def fresh(gateway):
    """A machine with two interfaces, a Squid that is not running and accepts everything, and no squid.conf."""
    gateway.conf.unlink()
    return equipped(gateway)


def equipped(gateway):
    """The programs and files that setup needs."""
    gateway.own = gateway.root / 'msfrsctl.conf'
    k = f'{gateway.squid} -f {gateway.conf}'
    gateway.machine.programs.update({
        'ip -j -4 route show default': json.dumps([{'dev': 'eth1'}]), 'ip -j addr show up': json.dumps(ADDRESSES),
        'openssl req': '-----BEGIN PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\n', k: '', f'{k} -k check': Done(1),
        SCRIPT: 'msfrs-iptables: up\n', 'chgrp': '', 'sysctl': '', 'ss -Hltn': LISTENING, EDGE_SCRIPT: '',
        'start-stop-daemon': '', f'{PROGRAM} --ask status': 'up'})
    gateway.machine.pages['msfrs'] = BUSY + PARTY
    gateway.machine.proxied[PAGE] = 200, {}, 'a page'
    gateway.machine.users['proxy'] = (13, {13})
    gateway.machine.files.update({'/opt/msfrs/share/msfrs': '', SCRIPT: '', EDGE_SCRIPT: '', PROGRAM: ''})
    gateway.machine.files.update({f'/proc/sys/{name}': '1\n' for name in SWITCHES})
    return gateway


def state(gateway):
    """All files, including those of the machine."""
    return {**gateway.machine.files, **{path.name: path.read_text() for path in gateway.root.iterdir()}}
