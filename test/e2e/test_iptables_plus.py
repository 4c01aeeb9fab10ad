# SPDX-License-Identifier: GPL-2.0-or-later
"""Users' interfaces that come and go, as those of PPPoE and VPN servers: `--inside ppp+`."""
import pytest

from iptables_script import HTTP_PORT, MODES, EDGE_SCRIPT, down, script, snapshot
from site_in_namespaces import PREFIX, SERVER, addresses_at_once, connection, listener, set_sysctl, sysctl

SAYS = 'msfrs-iptables: {}: {} on ppp+ ({} now), ports 80 443 to {}, IPv4 and IPv6, QUIC rejected\n'


def dial_in(fabric, site, number):
    """A new user at a new interface of the gateway, pppNUMBER."""
    user, name = fabric.host(f'user{number}'), f'ppp{number}'
    addresses_at_once(user)
    fabric.wire(user, 'eth0', site.gateway, name)
    for family, network in ((4, f'198.18.{100 + number}.'), (6, f'2001:2:0:{100 + number}::')):
        site.gateway.run('ip', 'address', 'add', f'{network}1/{PREFIX[family]}', 'dev', name)
        user.run('ip', 'address', 'add', f'{network}2/{PREFIX[family]}', 'dev', 'eth0')
        user.run('ip', f'-{family}', 'route', 'add', 'default', 'via', f'{network}1')
    return user


def hang_up(site, number):
    site.gateway.run('ip', 'link', 'del', f'ppp{number}')


@pytest.mark.parametrize('mode', MODES)
def test_users_who_come_and_go(fabric, site, mode):
    options = ('--inside', 'ppp+', '--mode', mode, '--set-sysctl', 'yes', '--quic', 'reject')
    ports = {'redirect': '3129 3130', 'tproxy': '3131 3132'}[mode]
    before = snapshot(site.gateway)
    set_sysctl(site.gateway, 'net/ipv4/conf/default/src_valid_mark', 1)     # new interfaces would have it

    def says(command, word, count):
        done = script(site.gateway, command, *options)
        assert (done.returncode, done.stdout, done.stderr) == (0, SAYS.format(word, mode, count, ports), '')

    def intercepted(user):
        for family in (4, 6):
            with (listener(site.gateway, family, HTTP_PORT[mode], transparent=mode == 'tproxy') as proxy,
                  connection(user, family, SERVER[family], 80) as client):
                with proxy.accept()[0] as accepted:
                    accepted.sendall(b'!')
                    assert client.recv(1) == b'!'

    says('up', 'up', 0)
    says('check', 'in place', 0)
    user = dial_in(fabric, site, 0)
    intercepted(user)
    says('check', 'in place', 1)
    hang_up(site, 0)
    says('check', 'in place', 0)
    user = dial_in(fabric, site, 7)
    says('up', 'up', 1)
    hang_up(site, 7)
    intercepted(dial_in(fabric, site, 8))
    hang_up(site, 8)
    down(site.gateway)
    assert sysctl(site.gateway, 'net/ipv4/conf/default/src_valid_mark') == '1'
    set_sysctl(site.gateway, 'net/ipv4/conf/default/src_valid_mark', 0)
    assert snapshot(site.gateway) == before


def test_who_is_not_at_such_an_interface_is_not_intercepted(site):
    assert script(site.gateway, 'up', '--inside', 'ppp+').returncode == 0
    with listener(site.server, 4, 80) as server, connection(site.client, 4, SERVER[4], 80):
        with server.accept()[0]:
            pass


def test_the_queue_of_msfrs_edge_for_such_interfaces(fabric, site):
    """Counted at the rule: nobody reads the queue, so that its packets pass."""
    options = ('--link', 'ppp+=3', '--own', 'no')
    for command, word in (('up', 'up'), ('check', 'in place')):
        done = script(site.gateway, command, *options, program=EDGE_SCRIPT)
        assert (done.returncode, done.stdout, done.stderr) == (
            0, f'msfrs-edge-iptables: {word}: ppp+ to queue 3, IPv4 and IPv6\n', '')
    user = dial_in(fabric, site, 3)
    with listener(site.server, 4, 80) as server, connection(user, 4, SERVER[4], 80):
        with server.accept()[0]:
            pass
    line, = (line for line in site.gateway.run('iptables', '-t', 'security', '-nvxL', 'MSFRS_EDGE').splitlines()
             if 'NFQUEUE' in line)
    assert int(line.split()[0]) >= 1
    down(site.gateway, EDGE_SCRIPT)
