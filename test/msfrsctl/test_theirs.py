# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl setup beside a squid.conf that an administrator wrote."""
import pytest

from fresh_machine import FLAGS, fresh  # noqa: F401 (a fixture is among them)

#: As Debian's, with its conf.d, and what people add to it.
DEBIAN = '''acl SSL_ports port 443
acl Safe_ports port 80 443
http_access deny !Safe_ports
http_access deny CONNECT !SSL_ports
http_access allow localhost manager
http_access deny manager
{above}include {root}/conf.d/*.conf
{below}http_access allow localhost
http_access deny all
http_port 3128
'''
AUTH = '''auth_param basic program /usr/lib/squid/basic_ncsa_auth /etc/squid/passwd
auth_param basic realm proxy
acl staff proxy_auth REQUIRED
'''
ICAP = '''icap_enable on
icap_service av reqmod_precache icap://127.0.0.1:1344/avscan
adaptation_access av allow all
'''
POOLS = 'delay_pools 1\ndelay_class 1 1\ndelay_parameters 1 64000/64000\n'
CACHE = 'cache_dir ufs /var/spool/squid 100 16 256\n'
BLOCKED = 'acl blocked dstdomain .bad.test\nhttp_access deny blocked\n'


def configure(fresh, above='', below=''):
    (fresh.root / 'conf.d').mkdir()
    fresh.conf.write_text(DEBIAN.format(root=fresh.root, above=above, below=below))
    return fresh.root / 'conf.d/msfrsctl.conf'


def kept(fresh, *words):
    return [line.removeprefix('  kept     ').replace(str(fresh.root), '') for line in
            fresh.data(*FLAGS, *words)['summary'] if line.startswith('  kept')]


def test_debians_own_has_nothing_to_keep_but_the_file(fresh):
    before = configure(fresh) and fresh.conf.read_text()
    assert kept(fresh) == [] and fresh.conf.read_text() == before


def test_each_kind_is_named_with_its_place(fresh):
    own = configure(fresh, BLOCKED, AUTH + 'http_access allow staff\n' + ICAP + POOLS + CACHE)
    before = fresh.conf.read_text()
    lines = kept(fresh)
    assert [line.partition(')')[0] + ')' for line in lines] == [
        'login: auth_param (/squid.conf:10 and 2 more)', 'ICAP, eCAP: icap_enable (/squid.conf:14 and 2 more)',
        'delay pools: delay_pools (/squid.conf:17 and 2 more)', 'cache: cache_dir (/squid.conf:20)',
        'ACLs: acl (/squid.conf:7)']
    assert 'no one can log in on an intercepted connection' in lines[0]
    assert fresh.conf.read_text() == before and own.exists()
    assert kept(fresh) == lines, 'a second setup says the same, and nothing of its own lines'


def test_a_file_of_conf_d_is_named(fresh):
    configure(fresh)
    (fresh.root / 'conf.d/cache.conf').write_text('# ours\n' + CACHE)
    assert kept(fresh) == ['cache: cache_dir (/conf.d/cache.conf:2)']


def test_what_is_kept_is_shown_before_the_last_question(fresh):
    configure(fresh, below=ICAP)
    fresh.machine.answers = ['', '', '', '20M', '', 'no']
    assert fresh.run('setup')[0] == 3
    assert any(line.startswith('  kept     ICAP, eCAP: icap_enable (') for line in fresh.machine.said)


@pytest.mark.parametrize('lines, rule', ((AUTH + 'http_access allow staff\n', 'msfrs_users msfrs_intercepted'),
                                         (AUTH + 'http_access deny !staff\n', 'msfrs_users msfrs_intercepted'),
                                         ('', 'msfrs_users')))
def test_a_login_is_asked_for_where_it_was(fresh, lines, rule):
    """Our rule comes first: without a condition it would let browsers in that have to log in."""
    own = configure(fresh, below=lines)
    assert fresh.run(*FLAGS)[0] == 0
    assert f'\nhttp_access allow {rule}\n' in own.read_text()


@pytest.mark.parametrize('above, below, number, reason', (
    (AUTH + 'http_access deny !staff\n', '', 10, 'intercepted cannot log in, so they would get nothing: move this line '
     'below "include '),
    ('http_access deny all\n', '', 7, 'users would get nothing'),
    ('', BLOCKED, 9, 'users would escape this rule'),
    ('', 'http_port 3129\n', 8, 'users are sent to port 3129, which must be of http_port and intercept'),
    ('', 'http_port 127.0.0.1:3130\n', 8, 'users are sent to port 3130, which must be of https_port and intercept'),
    ('msfrs on\n', '', 7, 'remove the msfrs lines')))
def test_what_cannot_stay_is_refused(fresh, capsys, above, below, number, reason):
    configure(fresh, above, below)
    before = fresh.conf.read_text()
    assert fresh.run(*FLAGS)[0] == 3
    said = capsys.readouterr().err
    assert f'{fresh.conf}:{number}' in said and reason in said
    assert fresh.conf.read_text() == before and not list((fresh.root / 'conf.d').iterdir())


def test_the_advice_of_a_refusal_helps(fresh, capsys):
    """Without conf.d the file is included first; the administrator may place it."""
    fresh.conf.write_text(BLOCKED + 'http_access deny all\n')
    assert fresh.run(*FLAGS)[0] == 3
    assert f'above "include {fresh.own}", a line that you add' in capsys.readouterr().err
    fresh.conf.write_text(f'{BLOCKED}include {fresh.own}\nhttp_access deny all\n')
    before = fresh.conf.read_text()
    assert fresh.run(*FLAGS)[0] == 0 and fresh.conf.read_text() == before


@pytest.mark.parametrize('name, taken', (('10-ours.conf', True), ('90-ours.conf', True), ('zz.conf', False)))
def test_files_of_conf_d_are_read_by_name(fresh, name, taken):
    configure(fresh)
    (fresh.root / 'conf.d' / name).write_text(BLOCKED)
    assert (fresh.run(*FLAGS)[0] == 0) == taken
