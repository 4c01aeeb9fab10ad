# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl report: what is in the archive, and what is not."""
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
    # the user of the log is in the network of the ACL, before and after
    network = ipaddress.ip_network(re.search(r'acl managers src (\S+)', files['squid.conf'])[1])
    assert network.prefixlen == 24 and ipaddress.ip_address(first.split()[2]) in network


def archived(known, **files):
    """The files of the archive, of a gateway whose logs these are."""
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
    """However they look, in whatever format of squid.conf, and those whom only an old line of cache.log names."""
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


@pytest.mark.parametrize('one, other, bits', [
    ('10.1.2.3', '10.1.2.4', 29), ('10.1.2.3', '11.1.2.3', 7), ('2001:db8::1', '2001:db8::2', 126),
    ('2001:db8:0:1::1', '2001:db8:0:2::1', 62)])
def test_addresses_keep_their_common_prefix(one, other, bits):
    hidden = Anonymiser()

    def common(a, b):
        a, b = ipaddress.ip_address(a), ipaddress.ip_address(b)
        return a.max_prefixlen - (int(a) ^ int(b)).bit_length()
    assert common(one, other) == bits
    assert common(hidden.address(one), hidden.address(other)) == bits
    assert hidden.address(one) == hidden.address(one)
    assert Anonymiser(key=b'a').address(one) != Anonymiser(key=b'b').address(one)


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
    made = Anonymiser(key=b'k').text(f'a {said} b')
    assert made.startswith('a ') and made.endswith(' b')
    for part in re.findall(r'192\.0\.2\.7|2001:db8|example|\bhost\b|u:p|path|bcher|AA-BB', said):
        assert part not in made, made
    assert made != f'a {said} b'


def test_words_that_are_known():
    hidden = Anonymiser(['alice', 'ali', 'al', '12', '123456', 'user2'])
    assert hidden.text('alice ali malice alice.x al 12') == 'user1 user3 malice alice.x al 12'
    assert hidden.text('123456 user2 alice') == 'user4 user5 user1'
    assert hidden.leaks('now alice') == ['alice'] and hidden.leaks('malice') == []
