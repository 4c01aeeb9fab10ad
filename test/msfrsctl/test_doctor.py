# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl doctor: with simulated results of each query, its findings and its advice."""
import json

import pytest
import yaml
from conftest import BUSY

from msfrsctl.commands.doctor import CHECKS
from msfrsctl.system import Done, Stat

LINK = {'ifname': 'eth1', 'flags': ['BROADCAST', 'UP', 'LOWER_UP']}
VERSION = "Squid Cache: Version 6.13\nconfigure options: '--with-msfrs=/opt/msfrs' '--disable-snmp'\n"
INFO = '\tMaximum number of file descriptors:   65536\n\tNumber of file desc currently in use:     24\n'
INTERCEPTION, QUEUES = '/etc/msfrs/iptables.conf', '/proc/net/netfilter/nfnetlink_queue'
GOOD = ('http_port 3129 intercept', 'https_port 3130 intercept ssl-bump tls-cert=/cert.pem',
        'msfrs on', 'msfrs_link rate=2Mbit interface=eth1', 'msfrs_class all weight=1 default',
        'dns_nameservers 127.0.0.1', 'acl ftp proto FTP', 'http_access deny ftp', 'cache_log /cache.log')


@pytest.fixture
def healthy(gateway):
    """A gateway without findings."""
    gateway.configure(*GOOD)
    machine = gateway.machine
    machine.programs.update({
        f'{gateway.squid} -f {gateway.conf} -k parse': '', f'{gateway.squid} -v': VERSION,
        'ip -j -d link show': json.dumps([{'ifname': 'lo', 'flags': ['LOOPBACK']}, LINK]),
        'ip -j -4 route show default': json.dumps([{'dst': 'default', 'dev': 'eth1'}]),
        'ip -j -6 route show default': json.dumps([{'dst': 'default', 'dev': 'eth1'}]),
        'ethtool -k eth1': 'large-receive-offload: off [fixed]\n', 'getent': '192.0.2.1 STREAM', 'unshare': '[]',
        'timedatectl': 'yes\n',
        '/opt/msfrs/share/msfrs/iptables/msfrs-iptables check': 'msfrs-iptables: in place: x\n'})
    machine.files.update({
        '/proc/sys/net/core/rmem_max': '212992\n', '/proc/sys/net/ipv6/conf/all/forwarding': '1\n',
        QUEUES: '   65   1234 0 2 256     0     0        0  1\n  100   4321 0 2 256     0     0        0  1\n',
        INTERCEPTION: 'inside = eth0 # users\n', '/opt/msfrs/share/msfrs': '',
        '/opt/msfrs/share/msfrs/iptables/msfrs-iptables': '', '/cert.pem': '',
        '/opt/msfrs/share/msfrs/squid-revision': '6.13-2+deb13u4\n', '/cache.log': '2026/11/22 19:02:24| Ready\n'})
    machine.users['proxy'] = (13, {13})
    machine.stats['/cert.pem'] = Stat(0o640, 0, 13)
    machine.pages['info'] = INFO
    machine.pages['msfrs'] = busy(0.97)
    return gateway


def busy(utilisation, count=6, **changes):
    report = yaml.safe_load(BUSY)
    report['window']['history'] = [{'ago': n, 'outstanding': 9, 'limit': 9, 'utilisation': utilisation, 'full': True}
                                   for n in range(count)]
    for key, value in changes.items():
        report['window'][key] = value
    return yaml.safe_dump(report)


def bad(gateway, *only):
    """{what: do} of all findings that are not ok."""
    words = [word for name in only for word in ('--only', name)]
    return {found['what']: found['do'] for found in gateway.data('doctor', '--quiet', *words)['findings']}


def test_nothing_is_wrong(healthy):
    assert bad(healthy) == {}
    code, said = healthy.run('doctor')
    assert code == 0 and said.splitlines()[-1].startswith('0 errors, 0 warnings, 0 notes, ')
    assert 'ok       rate ' in said
    assert {entry['check'] for entry in healthy.data('doctor')['findings']} == set(CHECKS)


def program(begin, answer):
    return lambda gateway: gateway.machine.programs.update({begin: answer})


def file(path, text):
    def change(gateway):
        if text is None:
            del gateway.machine.files[path]
        else:
            gateway.machine.files[path] = text
    return change


def inside_by_prefix(gateway):
    file(INTERCEPTION, 'inside = ppp0 eth+\n')(gateway)
    program('ip -j link show', '[{"ifname": "eth0"}, {"ifname": "eth1"}]')(gateway)


def conf(old, new):
    return lambda gateway: gateway.conf.write_text(gateway.conf.read_text().replace(old, new))


def page(action, answer):
    return lambda gateway: gateway.machine.pages.update({action: answer})


def stat(path, *values):
    return lambda gateway: gateway.machine.stats.update({path: Stat(*values)})


PARSE = '{squid} -f {conf} -k parse'
CASES = [
    ('squid.conf', program(PARSE, Done(1, '', '2026| FATAL: bad configuration: /x:3: weight\nFATAL: Bungled /x')),
     'squid.conf is refused: bad configuration: /x:3: weight', 'correct it'),
    ('squid.conf', program(PARSE, Done(0, '', "2026| ERROR: 'icap_enable' requires --enable-icap-client")),
     "'icap_enable' requires --enable-icap-client", 'squid-msfrs'),
    ('squid.conf', program(PARSE, Done(0, '', '2026| WARNING: /x:3: msfrs_link: there is no interface')),
     '/x:3: msfrs_link: there is no interface', ''),
    ('squid.conf', conf('msfrs on', 'msfrs off'), 'msfrs is off', 'msfrs on'),
    ('running', page('msfrs', ConnectionRefusedError(111, 'Connection refused')), 'Squid does not answer', ''),
    ('running', page('msfrs', 'scheduling: false\nholding: no, because msfrs is off\n'), 'schedules nothing',
     'reconfigure'),
    ('running', page('msfrs', BUSY.replace('metered: true', 'metered: false')), 'counter of the interface', ''),
    ('version', program('{squid} -v', VERSION.replace('--with-msfrs', '--x')), 'built without msfrs', 'squid-msfrs'),
    ('version', program('{squid} -v', Done(127)), 'does not tell its version', '--squid'),
    ('version', file('/opt/msfrs/share/msfrs/squid-revision', '6.13-2\n'), 'SQUID-2025:2', 'email_err_data'),
    ('access.log', lambda gateway: gateway.configure(*GOOD, format='%ts %>a'), 'does not say why', 'logformat msfrs'),
    ('access.log', conf(' on-error=drop', ''), 'Squid ends when the file system of stdio:/', 'on-error=drop'),
    ('cache.log', file('/cache.log', '2026/11/22 19:02:25| WARNING: msfrs: 1 request refused\n'), '1 request refused',
     ''),
    ('cache.log', file('/cache.log', '2026/11/22 19:02:25| WARNING: msfrs: 12 requests refused since the last line '
                                     'like this, the latest of user 10.1.0.7: The request has waited\n'),
     'user 10.1.0.7', '10.1.0.7 usually is a filter, a NAT or a router in front of many users'),
    ('interface', conf(' interface=eth1', ''), 'no interface=', 'add interface='),
    ('interface', conf('interface=eth1', 'interface=eth9'), 'eth9, which is not there; there are: eth1', 'correct'),
    ('interface', program('ip -j -d link show', json.dumps([{**LINK, 'flags': ['UP']}])), 'eth1 is down', 'link set'),
    ('interface', program('ip -j -d link show', json.dumps([{**LINK, 'master': 'br0'}])), 'port of br0', 'br0'),
    ('interface', program('ip -j -d link show', json.dumps([{**LINK, 'flags': ['LOOPBACK', 'UP', 'LOWER_UP']}])),
     'is the loopback', 'access link'),
    ('interface', program('ip -j -d link show', 'no json'), 'which is not there', 'correct'),
    ('interface', file(INTERCEPTION, 'inside = eth1\n'), 'where the users are', 'inside'),
    ('interface', inside_by_prefix, 'where the users are', 'inside'),
    ('rate', page('msfrs', busy(0.7)), 'at most 70% of it', 'msfrsctl set rate 1.37Mbit'),
    ('rate', page('msfrs', busy(1.2)), 'carried 120% of it', 'msfrsctl set rate 2.35Mbit'),
    ('rate', page('msfrs', busy(0.97, count=3)), 'cannot be compared', 'while the link is busy'),
    ('rate', page('msfrs', busy(0.97, queue=0.3)), 'each packet by 300 ms', 'lower rate='),
    ('interception', file(INTERCEPTION, None), 'msfrs-iptables is not set up', 'msfrsctl setup'),
    ('interception', program('/opt/msfrs/share/msfrs/iptables/msfrs-iptables check', Done(1, 'missing: rule\n')),
     'missing: rule', 'msfrsctl on'),
    ('interception', program('/opt/msfrs/share/msfrs/iptables/msfrs-iptables check', Done(2, '', 'line 3: mode')),
     'line 3: mode', 'correct'),
    ('interception', file(QUEUES, None), 'msfrs-syn does not run', 'systemctl start msfrs-syn'),
    ('interception', file(INTERCEPTION, 'syn-queue = 7\n'), 'msfrs-syn does not run', 'systemctl start msfrs-syn'),
    ('interception', file(INTERCEPTION, 'quic = allow\n'), 'HTTP/3 is not scheduled', 'quic = reject'),
    ('interception', file(INTERCEPTION, 'ipv6 = no\n'), 'IPv6 users bypass Squid', 'ipv6 = yes'),
    ('interception', file(INTERCEPTION, 'redirect-ports = 3129,4000\n'), 'no https_port 4000 intercept',
     'redirect-ports'),
    ('interception', file(INTERCEPTION, 'mode = tproxy\n'), 'no http_port 3131 tproxy', 'tproxy-ports'),
    ('ipv6', file('/proc/sys/net/ipv6/conf/all/forwarding', '0\n'), 'IPv6 is not forwarded', 'sysctl -w'),
    ('ipv6', program('ip -j -6 route show dev eth0 proto kernel', json.dumps(
        [{'dst': '2001:db8:20::/64'}, {'dst': 'fe80::/64'}, {'dst': '2001:db8:30::/60'}])),
     'all users of 2001:db8:20::/64 at eth0 are one user in IPv6', 'msfrs_user mac'),
    ('offloads', program('ethtool -k eth1', 'large-receive-offload: on\n'), 'large receive offload is on', 'lro off'),
    ('offloads', program('ethtool -k eth1', Done(127, '', 'ethtool: not found')), 'not known', 'apt install ethtool'),
    ('buffers', conf('rate=2Mbit', 'rate=100Mbit'), 'net.core.rmem_max is 212992', 'net.core.rmem_max=3750000'),
    ('buffers', conf('rate=2Mbit', 'rate=auto min=1Mbit max=50Mbit'), 'net.core.rmem_max', '1875000'),
    ('descriptors', page('info', INFO.replace('65536', '1024')), 'may have 1024', 'LimitNOFILE'),
    ('descriptors', page('info', INFO.replace(' 24', '60000')), '60000 of 65536', 'LimitNOFILE'),
    ('names', program('getent', Done(2)), 'cannot be resolved', 'name servers'),
    ('names', conf('dns_nameservers 127.0.0.1', 'dns_nameservers 192.0.2.53'), 'plain HTTP', 'the same resolver'),
    ('clock', program('timedatectl', 'no\n'), 'not synchronised', 'timesyncd'),
    ('clock', program('timedatectl', Done(127)), 'is not known', ''),
    ('rights', stat(INTERCEPTION, 0o666, 0, 0), 'may write to /etc/msfrs/iptables.conf', 'chmod go-w'),
    ('rights', stat('/cert.pem', 0o644, 0, 13), 'everybody may read the private key', 'chmod 640'),
    ('rights', stat('/cert.pem', 0o600, 0, 0), 'cannot read /cert.pem', 'chgrp proxy'),
    ('rights', conf('tls-cert=/cert.pem', 'tls-cert=/other.pem'), '/other.pem is not there', 'make it'),
    ('rights', lambda gateway: gateway.machine.users.clear(), 'there is no user proxy', 'useradd'),
    ('rights', lambda gateway: setattr(gateway.machine, 'user', 1000), 'not run as root', 'sudo'),
]


@pytest.mark.parametrize('check, change, what, do', CASES, ids=[f'{case[0]}-{case[2][:30]}' for case in CASES])
def test_what_is_wrong_is_found(healthy, check, change, what, do):
    before = bad(healthy, check)
    change(healthy)
    programs = healthy.machine.programs
    for begin in [begin for begin in programs if '{' in begin]:
        programs[begin.format(squid=healthy.squid, conf=healthy.conf)] = programs.pop(begin)
    found = {said: advice for said, advice in bad(healthy, check).items() if said not in before}
    assert any(what in said and do in advice for said, advice in found.items()), found


def test_errors_and_warnings_decide_the_exit_code(healthy):
    healthy.machine.programs['timedatectl'] = 'no\n'
    assert healthy.run('doctor')[0] == 1
    healthy.machine.programs['timedatectl'] = Done(127)
    assert healthy.run('doctor')[0] == 0


def test_one_cause_is_said_once(healthy):
    healthy.machine.pages.clear()
    said = healthy.run('doctor')[1]
    assert said.count('this Squid has no report msfrs;') == 1


@pytest.mark.parametrize('revision, number, lines, open_', [
    ('6.13-2+deb13u4', '6.13', (), set()), ('6.13-2+deb13u3', '6.13', (), {'SQUID-2026:6'}),
    ('6.13-2+deb13u1', '6.13', (), {'SQUID-2026:6'}),
    ('6.13-2+deb13u1', '6.13', ('icp_port 3130', 'cache_peer a parent 1 2'),
     {'SQUID-2026:1', 'SQUID-2026:2', 'SQUID-2026:3', 'SQUID-2026:5', 'SQUID-2026:6'}),
    ('6.13-2+deb13u2', '6.13', ('icp_port 3130',), {'SQUID-2026:2', 'SQUID-2026:3', 'SQUID-2026:6'}),
    ('7.6-2', '7.6', ('icp_port 3130',), {'SQUID-2026:6'}), ('7.7-1', '7.7', ('icp_port 3130',), set()),
    ('7.10-1', '7.10', (), set())])
def test_advisories_that_are_open(healthy, revision, number, lines, open_):
    healthy.configure(*GOOD, *lines)
    healthy.machine.files['/opt/msfrs/share/msfrs/squid-revision'] = revision
    healthy.machine.programs[f'{healthy.squid} -v'] = VERSION.replace('6.13', number)
    assert {what.split()[0] for what in bad(healthy, 'version') if 'SQUID' in what} == open_


def test_ftp_that_is_allowed_is_told(healthy):
    healthy.machine.files['/opt/msfrs/share/msfrs/squid-revision'] = '6.13-2+deb13u1'
    conf('http_access deny ftp', 'http_access deny ftp guests')(healthy)
    assert any('SQUID-2026:4' in what for what in bad(healthy, 'version'))
