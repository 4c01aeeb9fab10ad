# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl report: the contents of the archive, and what it must not contain."""
import ipaddress
import re
import tarfile

import pytest
from conftest import BUSY, NOW

from msfrsctl.anonymise import Anonymiser

LINE = (f'{NOW - 5:.3f}    120 10.20.1.7 TCP_MISS/200 5123 GET http://www.secret-school.example/a/private?q=me - alice '
        f'HIER_DIRECT/192.0.2.77 bronze 12 14 3 12/11.62 - -\n'
        f'{NOW - 4:.3f}    120 10.20.1.8 TCP_TUNNEL/200 99 CONNECT mail.secret-school.example:443 '
        f'mail.secret-school.example bob HIER_DIRECT/mail.secret-school.example bronze 12 14 3 12/11.62 - -\n')
SECRETS = ('secret-school', '10.20.1', '192.0.2.77', '198.18.16.1', 'alice', 'bob', 'private', 'hunter2', 'gateway7',
           '00:16:3e:aa:bb:cc', '2001:db8:77', 'root@', '/home/carol')


@pytest.fixture
def known(gateway):
    gateway.configure('acl managers src 10.20.1.0/24 2001:db8:77::/48', 'acl staff proxy_auth alice bob',
                      'acl card arp 00:16:3e:aa:bb:cc', 'acl bad dstdomain .secret-school.example',
                      'cachemgr_passwd hunter2 all', 'cache_peer p.secret-school.example parent 80 0 login=u:hunter2',
                      'cache_mgr root@secret-school.example', 'visible_hostname gateway7', 'cache_log /cache.log',
                      'error_directory /home/carol/errors', 'msfrs on')
    gateway.log.write_text(LINE)
    gateway.machine.files['/cache.log'] = ('2026/11/22 19:02:25| WARNING: msfrs: 1 request refused, the latest of user '
                                           'alice: at gateway7\n')
    gateway.machine.programs.update({'hostname': 'gateway7\n', 'ip -o addr': '2: eth0 inet 10.20.1.1/24 scope global\n'
                                     '2: eth0 inet6 2001:db8:77::1/64 scope global\n', 'uname': 'Linux 6.1 x86_64\n'})
    return gateway


def contents(path):
    with tarfile.open(path) as archive:
        return {member.name.partition('/')[2]: archive.extractfile(member).read().decode() for member in archive}


def test_nothing_of_the_site_is_in_it(known):
    out = known.root / 'r.tar.gz'
    code, said = known.run('report', '--output', str(out))
    assert code == 0, said
    files = contents(out)
    for name, body in files.items():
        for secret in SECRETS:
            assert secret not in body, f'{name} has {secret}'
    assert set(files) >= {'README', 'squid.conf', 'mgr-msfrs.txt', 'access.log', 'cache.log', 'doctor.json',
                          'addresses.txt'}
    assert 'Not there: mgr-info.txt' in files['README']
    assert out.stat().st_mode & 0o777 == 0o600


def test_what_matters_is_kept(known):
    out = known.root / 'r.tar.gz'
    known.run('report', '--output', str(out))
    files = contents(out)
    assert 'msfrs on' in files['squid.conf'] and 'acl managers src ' in files['squid.conf']
    assert 'error_directory /home/.../errors' in files['squid.conf'] and 'cachemgr_passwd ...' in files['squid.conf']
    assert '19:02:25| WARNING: msfrs: 1 request refused, the latest of user user' in files['cache.log']
    first, second = files['access.log'].splitlines()
    assert ' bronze 12 14 3 12/11.62 - -' in first
    assert 'TCP_MISS/200 5123 GET http://n' in first and '/... - user' in first
    assert re.search(r'CONNECT (n\d+\.n\d+\.n\d+\.test):443 \1 user\d+ HIER_DIRECT/\1 ', second)
    for line in BUSY.splitlines():
        if line.startswith(('window:', 'holding:', '  limit:', '    weight:')):
            assert line in files['mgr-msfrs.txt']
    # the user in the log is in the network of the ACL, before and after
    network = ipaddress.ip_network(re.search(r'acl managers src (\S+)', files['squid.conf'])[1])
    assert ipaddress.ip_address(first.split()[2]) in network
    assert ipaddress.ip_interface(re.search(r'inet (\S+)', files['addresses.txt'])[1]).network == network


def archived(known, **files):
    """The files of the archive of a gateway with these logs."""
    if 'access' in files:
        known.log.write_text(files['access'])
    known.machine.files['/cache.log'] = files.get('cache', '')
    out = known.root / 'r.tar.gz'
    code, said = known.run('report', '--output', str(out))
    assert code == 0, said
    return contents(out)


OLD = f'{NOW - 900:.3f}    120 10.20.1.9 TCP_MISS/200 5123 GET http://intra/a - {{}} HIER_DIRECT/192.0.2.77 - -\n'


@pytest.mark.parametrize('login', ['dora', '4711', '20260042', 'bo', r'SCHOOL\emil', 'fred.x7', 'gus@school'])
def test_logins_of_all_lines_go(known, login):
    """Of any form, in any format of squid.conf, including those that only an old line of cache.log names."""
    known.conf.write_text(known.conf.read_text() + 'logformat before %ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru '
                          '%ssl::>sni %[un %Sh/%<a %msfrs::class %msfrs::wait\n')
    common = f'10.20.1.9 - {login} [22/Nov/2026:19:02:25 +0000] "GET http://a.test/ HTTP/1.1" 200 99 TCP_MISS:NONE\n'
    files = archived(known, access=OLD.format(login) + common + LINE, cache=f'2026/11/20 09:00:00| WARNING: msfrs: 2 '
                     f'requests refused, the latest of user {login}: too many\n2026/11/20 09:01:00| ERROR: of user '
                     f'{login}\n')
    assert len(files['access.log'].splitlines()) == 4
    for body in (files['access.log'], files['cache.log']):
        assert not re.search(rf'(?<![\w.]){re.escape(login)}(?!\w)', body), body
    said = re.search(r'of user (\S+): too many', files['cache.log'])[1]
    assert files['access.log'].count(f' {said} ') == 2 and f'of user {said}\n' in files['cache.log']


def test_lines_of_no_known_format_are_left_out(known):
    files = archived(known, access=f'hanna had something at {NOW}\n' + LINE)
    assert len(files['access.log'].splitlines()) == 2 and 'hanna' not in str(files)
    assert 'Not there: 1 line of access.log, of no logformat of squid.conf' in files['README']


def test_what_browsers_send_goes(known):
    known.configure('cache_log /cache.log', format='%>a %un "%{User-Agent}>h" "%>h{Cookie}" %Hs')
    files = archived(known, access='10.20.1.7 alice "Mozilla/5.0 (of alice) x" "id=alice7" 200\n'
                                   '10.20.1.7 - "-" "-" 200\n')
    first, second = files['access.log'].splitlines()
    assert re.fullmatch(r'\S+ user\d+ "..." "..." 200', first) and second.endswith(' - "-" "-" 200')


def test_an_archive_is_not_overwritten(known, capsys):
    out = known.root / 'r.tar.gz'
    out.write_text('mine')
    assert known.run('report', '--output', str(out))[0] == 3
    assert out.read_text() == 'mine' and 'cannot write' in capsys.readouterr().err


def test_without_squid_and_logs(known):
    known.machine.pages.clear()
    known.log.unlink()
    data = known.data('report', '--output', str(known.root / 'r.tar.gz'))
    assert any(line.startswith('mgr-msfrs.txt') for line in data['missing'])
    assert any(line.startswith('access.log') for line in data['missing'])


#: Addresses for documentation (RFC 5737, RFC 3849).
NOBODYS = [ipaddress.ip_network(said) for said in ('192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24',
                                                   '2001:db8::/32')]


def addresses(text):
    """All addresses in a text, wherever they occur."""
    for word in re.findall(r'(?<![\w:])[0-9a-fA-F.:]{3,}(?![\w:])', text):
        try:
            found = ipaddress.ip_address(word)
        except ValueError:
            continue
        if not found.is_loopback and not found.is_unspecified:
            yield found


def nobodys(address):
    return any(address in network for network in NOBODYS if network.version == address.version)


def test_no_address_of_the_report_belongs_to_anybody(known):
    out = known.root / 'r.tar.gz'
    known.run('report', '--output', str(out))
    files = contents(out)
    found = {name: [str(address) for address in addresses(body) if not nobodys(address)]
             for name, body in files.items() if name != 'README'}
    assert sum(len(list(addresses(body))) for body in files.values()) >= 15
    assert not any(found.values()), found


def test_a_gateway_with_addresses_of_documentation(known):
    """The README names the networks of the stand-ins; that is not a leak."""
    known.machine.programs['ip route'] = 'default via 203.0.113.1\n192.0.2.0/24 dev eth1\n198.51.100.0/24 dev eth2\n'
    assert '240.0.0.0/4' in archived(known)['README']


def hosts(count, network):
    return [str(ipaddress.ip_network(network)[number]) for number in range(1, count + 1)]


@pytest.mark.parametrize('known_', [
    hosts(200, '10.20.1.0/24'), hosts(100, '10.1.0.0/16') + hosts(100, '81.2.3.0/24') + hosts(9, '2a00:1::/64'),
    [f'{10 + number}.{number}.3.4' for number in range(100)] * 2, ['10.0.0.0/8', '10.1.0.0/16', '10.1.2.3/24', '::/0'],
    ['2a00:1::/32', '2a00:1:2::/48', '2a00:1:2:3::4/64', 'fe80::216:3eff:fe01:203', 'ff02::1'],
    hosts(300, '10.0.0.0/16') + hosts(300, '10.1.0.0/16')])
def test_different_addresses_stay_different_and_nobodys(known_):
    hidden = Anonymiser(texts=known_)
    made = {said: hidden.address(said) for said in known_}
    assert len(set(made.values())) == len(made)
    assert all(said == '::/0' or nobodys(ipaddress.ip_interface(stand_in).ip) for said, stand_in in made.items())
    again = (Anonymiser(key=b'a', texts=known_) for _ in range(2))
    assert len({hidden.address(known_[0]) for hidden in again}) == 1


def test_more_users_than_documentation_has_addresses_for():
    """They stay distinct, with addresses that are reserved and not routed."""
    known_ = [f'{first}.{second}.{third}.9' for first in (11, 12) for second in range(8) for third in range(60)]
    hidden = Anonymiser(texts=known_)
    made = {ipaddress.ip_address(hidden.address(said)) for said in known_}
    assert len(made) == 960 and sum(map(nobodys, made)) >= 760
    assert all(nobodys(address) or address in ipaddress.ip_network('240.0.0.0/4') for address in made)


@pytest.mark.parametrize('network, member', [
    ('10.0.0.0/8', '10.20.1.7'), ('10.20.1.0/25', '10.20.1.7'), ('10.20.1.9/24', '10.20.1.7'),
    ('2a00:1::/48', '2a00:1::7'), ('2a00:1::/64', '2a00:1::7')])
def test_members_of_networks_stay_members(network, member):
    others = ['10.20.0.0/16', '10.20.1.200', '172.16.0.0/12', '2a00:1::/32', '11.1.1.1', '2a00:2::1', '10.20.1.1/24']
    hidden = Anonymiser(texts=[member, network, *others])
    around = ipaddress.ip_interface(hidden.address(network)).network
    assert ipaddress.ip_address(hidden.address(member)) in around
    for outside in ('11.1.1.1', '2a00:2::1', '11.1.1.2'):
        assert ipaddress.ip_address(hidden.address(outside)) not in around


def test_neighbours_share_a_network_that_nobody_named():
    hidden = Anonymiser(key=b'k', texts=['10.1.1.1', '10.1.1.2', '81.1.1.1', '10.1.2.1', '10.1.1.3'])
    made = [int(ipaddress.ip_address(hidden.address(f'10.1.1.{number}'))) // 4 for number in (1, 2, 3)]
    assert len(set(made)) == 1 and int(ipaddress.ip_address(hidden.address('81.1.1.1'))) // 4 != made[0]


@pytest.mark.parametrize('said', [
    '127.0.0.1', '::1', '0.0.0.0/0', '2026/11/22 19:02:25', 'squid.conf:12', '/etc/squid/squid.conf', 'Version 6.13',
    'access.log', 'http_port 3128', 'weight=4.000', 'msfrs::class', '%ts.%03tu', '12/11.62', '::'])
def test_what_is_no_address_and_no_name_stays(said):
    assert Anonymiser().text(f'a {said} b') == f'a {said} b'


@pytest.mark.parametrize('said', [
    'x@y.example.org', 'www.example.org', '.example.org', '192.0.2.7:3128', '[2001:db8::7]:443', '2001:db8::7',
    'ftp://u:p@host.example/path', '/private/path', 'https://[2001:db8::7]/x', 'HIER_DIRECT/h.example', '192.0.2.0/25',
    '::ffff:192.0.2.7', '"192.0.2.7"', 'AA-BB-CC-00-11-22', 'example.sh', 'xn--bcher-kva.example', 'user=192.0.2.7,',
    '192.0.2.7.'])
def test_addresses_and_names_go(said):
    made = Anonymiser(key=b'k', texts=[said]).text(f'a {said} b')
    assert made.startswith('a ') and made.endswith(' b')
    for part in re.findall(r'192\.0\.2\.7|2001:db8::7|example|\bhost\b|u:p|path|bcher|AA-BB', said):
        assert part not in made, made
    assert made != f'a {said} b'


def test_words_that_are_known():
    hidden = Anonymiser(['alice', 'ali', 'al', '12', '123456', 'user2'])
    assert hidden.text('alice ali malice alice.x al 12') == 'user1 user3 malice alice.x al 12'
    assert hidden.text('123456 user2 alice') == 'user4 user5 user1'
    assert hidden.leaks('now alice') == ['alice'] and hidden.leaks('malice') == []
