# SPDX-License-Identifier: GPL-2.0-or-later
"""Parsing of squid.conf, and output to a terminal."""
from msfrsctl import text
from msfrsctl.squidconf import SquidConf
from msfrsctl.system import System


def test_includes_continuations_and_comments(tmp_path):
    (tmp_path / 'conf.d').mkdir()
    (tmp_path / 'conf.d/b.conf').write_text('msfrs_class b weight=1 default\n')
    (tmp_path / 'conf.d/a.conf').write_text('msfrs_class a weight=2 # more\n')
    (tmp_path / 'squid.conf').write_text(
        f'# include nothing\ninclude {tmp_path}/conf.d/*.conf\nacl x src \\\n  10.0.0.0/8\nlogformat f %>a # %#tr\n')
    conf = SquidConf(System(), tmp_path / 'squid.conf')
    assert [line.name for line in conf.lines] == ['include', 'msfrs_class', 'msfrs_class', 'acl', 'logformat']
    assert [line.words for line in conf.all('msfrs_class')] == [('a', 'weight=2'), ('b', 'weight=1', 'default')]
    assert conf.all('msfrs_class')[0].where == f'{tmp_path}/conf.d/a.conf:1'
    assert conf.last('acl').words == ('x', 'src', '10.0.0.0/8') and conf.last('acl').number == 3
    assert conf.last('logformat').text == 'logformat f %>a # %#tr'
    assert conf.covers(tmp_path / 'conf.d/new.conf') and not conf.covers(tmp_path / 'new.conf')
    assert conf.last('msfrs_class').option('weight') == '1' and conf.last('acl').option('weight') is None


def test_a_file_that_includes_itself_ends(tmp_path):
    (tmp_path / 'squid.conf').write_text(f'include {tmp_path}/squid.conf\n')
    assert len(SquidConf(System(), tmp_path / 'squid.conf').lines) < 100


def test_what_is_shown():
    assert text.safe('a\x00\x9b\u2028\u200b\U000e0001é') == r'a\x00\x9b\u2028\u200b\U000e0001é'
    assert text.safe('x' * 100) == 'x' * 64 + '...'
    assert text.table(('name', 'n'), [('a', 5), ('bb', 10)]) == ['NAME   N', 'a      5', 'bb    10']
    assert [text.rate(2e6), text.rate(500), text.amount(2048), text.seconds(0.05)] == \
        ['2 Mbit/s', '500 bit/s', '2.0 KB', '50 ms']
    assert [text.count(1, 'class'), text.count(2, 'class'), text.count(3, 'user')] == \
        ['1 class', '2 classes', '3 users']
