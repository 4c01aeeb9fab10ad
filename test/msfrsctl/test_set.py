# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl set: what it writes, how a change ends, and that nothing else is changed."""
import os

import pytest
from conftest import NOW

from msfrsctl.system import Done

OWN = '''\
# Part of squid.conf.
msfrs on
msfrs_link rate=20Mbit interface=eth1   # the office's
msfrs_class gold   weight=4
msfrs_class bronze weight=1 default
acl mine src 10.0.0.1
msfrs_access gold allow mine
'''


@pytest.fixture
def own(gateway):
    """The file that msfrsctl may write, included by squid.conf; Squid accepts everything."""
    gateway.own = gateway.root / 'msfrsctl.conf'
    gateway.own.write_text(OWN)
    gateway.configure(f'include {gateway.own}')
    gateway.machine.programs.update({f'{gateway.squid} -f {gateway.conf} -k': ''})
    return gateway


def effective(gateway):
    """The file without comments."""
    return [line.partition(' #')[0].rstrip() for line in gateway.own.read_text().splitlines()
            if not line.startswith('#')]


@pytest.mark.parametrize('words, old, new', [
    (('rate', '18Mbit'), 'rate=20Mbit', 'rate=18Mbit'), (('rate', '17.5 Mbps'), 'rate=20Mbit', 'rate=17500kbit'),
    (('weight', 'gold=8'), 'weight=4', 'weight=8'),
    (('weight', 'bronze=0.5'), 'weight=1 default', 'weight=0.5 default')])
def test_a_value_is_changed_for_an_hour(own, words, old, new):
    assert own.run('set', *words)[0] == 0
    assert '\n'.join(effective(own)) == '\n'.join(line.partition(' #')[0].rstrip() for line in
                                                  OWN.replace(old, new).splitlines()[1:])
    assert [ran.rpartition(' ')[2] for ran in own.machine.ran] == ['parse', 'reconfigure']
    own.machine.time += 3599
    assert own.data('set', '--expire')['undone'] == []
    assert len(own.machine.ran) == 2, 'nothing was to be done'
    own.machine.time += 1
    (undone,) = own.data('set', '--expire')['undone']
    assert undone['what'] == words[0]
    assert own.own.read_text() == OWN
    assert len(own.machine.ran) == 4
    assert own.run('set') == (0, 'no change is in force\n')


@pytest.mark.parametrize('words, new', [
    ('rate 4,9 Mbit', 'rate=4900kbit'), ('rate 5 Mbit/s for 2 hours', 'rate=5Mbit'), ('weight gold 8', 'gold   weight=8'),
    ('weight gold = 8', 'gold   weight=8'), ('weight gold=8', 'gold   weight=8'), ('weight gold 1,5', 'gold   weight=1.5'),
    ('quota bulky 2GB/day', 'quota=2GB/day'), ('quota bulky 2,5 gb a week', 'quota=2.5GB/week'),
    ('quota bulky=500M per hour', 'quota=500MB/hour')])
def test_as_people_type_it(own, words, new):
    own.own.write_text(OWN + 'msfrs_class bulky weight=1 quota=5GB/day over=bronze\n')
    assert own.run('set', *words.split())[0] == 0
    assert new in own.own.read_text()
    assert own.run('set', '--undo', 'all')[0] == 0 and 'quota=5GB/day' in own.own.read_text()


@pytest.mark.parametrize('words, seconds', [('', 3600), ('for 2h', 7200), ('2h', 7200), ('for 90 minutes', 5400),
                                            ('for 1 day', 86400), ('--for 2h', 7200)])
def test_how_long_as_people_type_it(own, words, seconds):
    assert own.data('set', 'boost', '10.20.1.7', *words.split())['made']['until'] == NOW + seconds


@pytest.mark.parametrize('words, sentence', [
    ('boost 10.20.1.7 for ever', "time 'ever' must be"), ('boost 10.20.1.7 for 1h --for 2h', 'give one of them'),
    ('weight gold', 'such as gold 8'), ('weight guest 3', 'there are: gold, bronze'), ('quota gold 5GB/day', 'no quota'),
    ('quota gold 5', 'such as guests 2GB/day'), ('boost', 'set boost needs a value')])
def test_what_nobody_can_understand(own, capsys, words, sentence):
    assert own.run('set', *words.split())[0] in (2, 3)
    assert sentence in capsys.readouterr().err and own.own.read_text() == OWN


def test_a_user_has_a_boost(own):
    made = own.data('set', 'boost', '10.20.1.7', '--for', '2h')['made']
    assert (made['now'], made['until']) == ('gold', NOW + 7200)
    assert effective(own)[:2] == ['acl msfrsctl_boost_1 src 10.20.1.7/32', 'msfrs_access gold allow msfrsctl_boost_1']
    assert own.run('set', 'boost', '10.20.1.8', '--weight', '9.5')[0] == 0
    assert effective(own)[:3] == ['acl msfrsctl_boost_2 src 10.20.1.8/32', 'msfrs_class msfrsctl-boost-2 weight=9.5',
                                  'msfrs_access msfrsctl-boost-2 allow msfrsctl_boost_2']
    said = own.run('set')[1].splitlines()
    assert said[0].startswith('2: 10.20.1.8 is in class msfrsctl-boost-2, until ') and said[0].endswith('(1 h 0 min)')
    assert own.run('set', '--undo', '1')[0] == 0
    assert 'boost_1' not in own.own.read_text() and 'boost_2' in own.own.read_text()
    assert own.run('set', '--undo', 'all')[0] == 0
    assert own.own.read_text() == OWN


@pytest.mark.parametrize('user, acl', [
    ('2001:db8::/64', 'src 2001:db8::/64'), ('2001:DB8:0:7::5', 'src 2001:db8:0:7::/64'),
    ('10.0.0.9/24', 'src 10.0.0.0/24'), ('00:16:3e:01:02:03', 'arp 00:16:3e:01:02:03'),
    ('alice@example.org', 'proxy_auth alice@example.org')])
def test_users_by_what_they_are(own, user, acl):
    own.configure('auth_param basic children 1', f'include {own.own}')
    assert own.run('set', 'boost', user)[0] == 0
    assert effective(own)[0] == f'acl msfrsctl_boost_1 {acl}'


@pytest.mark.parametrize('rule, network', [('src', '2001:db8:0:7::/64'), ('src6/56', '2001:db8::/56'),
                                           ('src6/128', '2001:db8:0:7::5/128'), ('mac', '2001:db8:0:7::5/128')])
def test_an_address_stands_for_its_user(own, rule, network, capsys):
    own.configure(f'msfrs_user {rule}', f'include {own.own}')
    assert own.run('set', 'boost', '2001:db8:0:7::5')[0] == 0
    assert effective(own)[0] == f'acl msfrsctl_boost_1 src {network}'
    assert own.run('set', 'boost', '2001:db8:0:7:0::5')[0] == 3
    assert f'{network.removesuffix("/128")} has a boost already' in capsys.readouterr().err


def test_a_change_again_goes_back_to_what_was_first(own):
    own.run('set', 'weight', 'gold=8')
    own.run('set', 'weight', 'gold=16', '--for', '2h')
    own.run('set', 'rate', '10Mbit', '--keep')
    changes = own.data('set')['changes']
    assert [(change['what'], change['was'], change['now']) for change in changes] == [
        ('rate', '20Mbit', '10Mbit'), ('weight', '4', '16')]
    own.machine.time += 7200
    assert [change['what'] for change in own.data('set', '--expire')['undone']] == ['weight']
    assert 'until it is undone' in own.run('set')[1]
    own.run('set', '--undo', 'all')
    assert own.own.read_text() == OWN


def test_any_later_change_takes_back_what_has_expired(own):
    own.run('set', 'weight', 'gold=8')
    own.machine.time += 3600
    data = own.data('set', 'rate', '10Mbit')
    assert [change['what'] for change in data['undone']] == ['weight']
    assert [change['what'] for change in data['changes']] == ['rate']


def test_what_squid_refuses_is_put_back(own, capsys):
    own.machine.programs[f'{own.squid} -f {own.conf} -k parse'] = Done(
        1, '', '2026| Processing: x\n2026| FATAL: bad configuration: a:3: no\nFATAL: Bungled a line 3: b\n')
    assert own.run('set', 'rate', '18Mbit') == (4, '')
    assert 'all is as it was: bad configuration: a:3: no' in capsys.readouterr().err
    assert own.own.read_text() == OWN
    assert not any('reconfigure' in ran for ran in own.machine.ran)
    assert sorted(os.listdir(own.root)) == ['msfrsctl.conf', 'squid', 'squid.conf'], 'no temporary file is left'


def test_a_squid_that_does_not_run_is_no_fault(own):
    own.machine.programs[f'{own.squid} -f {own.conf} -k reconfigure'] = Done(1, '', 'squid: ERROR: No running copy\n')
    code, said = own.run('set', 'rate', '18Mbit')
    assert code == 0 and 'note: the running Squid was not told (No running copy)' in said
    assert 'rate=18Mbit' in own.own.read_text()


def test_lines_of_others_are_kept_and_not_overwritten(own, capsys):
    own.run('set', 'weight', 'gold=8')
    own.run('set', 'boost', '10.0.0.7')
    text = own.own.read_text().replace('weight=8', 'weight=3') + '# by hand\n'
    own.own.write_text(text)
    assert own.run('set', '--undo', '1')[0] == 3
    assert 'changed by hand; remove the comment' in capsys.readouterr().err
    assert own.own.read_text() == text
    own.machine.time += 3600
    data = own.data('set', '--expire')
    assert [change['what'] for change in data['undone']] == ['boost'] and 'changed by hand' in data['notes'][0]
    assert own.own.read_text().endswith('# by hand\n') and 'weight=3' in own.own.read_text()


REFUSED = [
    (('rate', 'fast'), 2, "rate 'fast' must be a number and kbit"),
    (('rate', '20MB'), 2, 'may be in bits or in bytes: write 160Mbit'),
    (('rate',), 2, 'needs a value'), (('weight', 'gold'), 2, 'must be CLASS and N'), (('weight', 'gold=0'), 2, 'must be'),
    (('weight', 'gold=99999'), 2, 'must be'), (('weight', 'lead=2'), 3, 'there are: gold, bronze'),
    (('weight', 'gold=2', '--for', '10'), 2, "time '10' must be"), (('rate', '1Mbit', '--for', '5s'), 2, 'from 1min'),
    (('weight', 'gold=2', '--for', '1h', '--keep'), 2, 'one of them'), (('boost', 'a b'), 2, 'must be an address'),
    (('boost', '10.0.0.1\nhttp_access allow all'), 2, 'must be an address'), (('boost', 'alice'), 3, 'no auth_param'),
    (('boost', '10.0.0.7', '--class', 'lead'), 2, 'known are gold, bronze'), (('--undo', '7'), 3, 'no change 7'),
    (('boost', '10.0.0.7', '--weight', 'x'), 2, 'must be from'), (('rate', '1Mbit', '--expire'), 2, 'one of them'),
    (('rate', '1Mbit', '--class', 'gold'), 2, 'are for boost'),
]


@pytest.mark.parametrize('words, code, sentence', REFUSED)
def test_refused(own, capsys, words, code, sentence):
    assert own.run('set', *words) == (code, '')
    assert sentence in capsys.readouterr().err
    assert own.own.read_text() == OWN and own.machine.ran == []


@pytest.fixture
def asked(own):
    """The directory in which msfrs-page asks for boosts."""
    made = own.root / 'boosts'
    made.mkdir()
    own.machine.files['/etc/msfrs/page.conf'] = f'listen 127.0.0.1:80\nboost {made}   # here\n'
    return made


def test_the_page_asks_for_a_boost(own, asked):
    for name in ('10.20.1.7.boost', '2001%3Adb8%3A0%3A7%3A%3A%2F64.boost', 'other'):
        (asked / name).touch()
    assert own.data('set')['changes'] == [], 'only --expire takes them'
    data = own.data('set', '--expire')
    assert [(change['of'], change['now'], change['until']) for change in data['granted']] == [
        ('10.20.1.7', 'gold', NOW + 3600), ('2001:db8:0:7::/64', 'gold', NOW + 3600)]
    assert [path.name for path in asked.iterdir()] == ['other']
    assert [ran.rpartition(' ')[2] for ran in own.machine.ran] == ['parse', 'reconfigure'], 'once for both'
    own.machine.time += 3600
    assert len(own.data('set', '--expire')['undone']) == 2
    assert own.own.read_text() == OWN


def test_what_the_page_may_not_have(own, asked):
    """No second boost, no line of squid.conf, no more than ten, nothing through links; each request is taken once."""
    (asked / '10.20.1.7.boost').touch()
    own.data('set', '--expire')
    for name in ('10.20.1.7', '10.0.0.1%0Ahttp_access allow all', '%ff', 'all', '%2e%2e%2fpasswd', ''):
        (asked / f'{name}.boost').touch()
    target = own.root / 'target'
    target.write_text('precious')
    (asked / '10.20.1.9.boost').symlink_to(target)
    data = own.data('set', '--expire')
    assert [change['of'] for change in data['granted']] == ['10.20.1.9'], 'a name is all that counts'
    assert len(data['notes']) == 6 and 'has a boost already' in ' '.join(data['notes'])
    assert target.read_text() == 'precious' and list(asked.iterdir()) == []
    assert 'http_access' not in own.own.read_text()
    for n in range(15):
        (asked / f'10.30.0.{n + 1}.boost').touch()
    assert len(own.data('set', '--expire')['granted']) == 8
    assert own.machine.ran.count(own.machine.ran[-1]) == 3, 'a reconfiguration for each of the three'
    asked.rename(own.root / 'elsewhere')
    asked.symlink_to(own.root / 'elsewhere')
    (own.root / 'elsewhere' / '10.40.0.1.boost').touch()
    assert own.data('set', '--expire')['granted'] == []
    assert (own.root / 'elsewhere' / '10.40.0.1.boost').exists()


def test_a_file_that_is_not_included(own, capsys):
    own.configure()
    assert own.run('set', 'rate', '1Mbit')[0] == 3
    assert f'include {own.own}' in capsys.readouterr().err
    assert own.data('set', '--expire')['undone'] == [], 'the timer has nothing to complain of'


def test_a_line_that_is_elsewhere(own, capsys):
    own.configure('msfrs_link rate=2Mbit', f'include {own.own}')
    own.own.write_text(OWN.replace('msfrs_link', '#msfrs_link'))
    assert own.run('set', 'rate', '1Mbit')[0] == 3
    assert f'{own.conf}:5 has the line msfrs_link rate=2Mbit; msfrsctl changes only' in capsys.readouterr().err


def test_a_rate_with_two_links(own, capsys):
    two = OWN.replace('msfrs_class gold', 'msfrs_link rate=8Mbit interface=eth2\nmsfrs_class gold', 1)
    own.own.write_text(two)
    assert own.run('set', 'rate', '18Mbit')[0] == 3
    assert f'{own.own}:3 and {own.own}:4 both have msfrs_link' in capsys.readouterr().err
    assert own.own.read_text() == two


def test_an_access_line_that_comes_first(own, capsys):
    own.configure('msfrs_access bronze allow all', f'include {own.own}')
    assert own.run('set', 'boost', '10.0.0.7')[0] == 3
    assert 'would win' in capsys.readouterr().err


def test_a_rate_that_is_found(own, capsys):
    own.own.write_text(OWN.replace('rate=20Mbit', 'rate=auto min=1Mbit max=20Mbit'))
    assert own.run('set', 'rate', '1Mbit')[0] == 3
    assert 'with rate=auto the rate is found' in capsys.readouterr().err


def test_debians_directory_is_found(own):
    (own.root / 'conf.d').mkdir()
    own.configure(f'include {own.root}/conf.d/*.conf', f'include {own.own}')
    assert own.data('set')['file'] == str(own.own), 'where the file is'
    own.own.unlink()
    assert own.data('set')['file'] == f'{own.root}/conf.d/msfrsctl.conf'


def test_a_comment_that_is_broken(own, capsys):
    own.own.write_text(OWN.replace('msfrs on', '# msfrsctl: {"id": "x"}\nmsfrs on'))
    assert own.run('set')[0] == 3
    assert 'msfrsctl.conf:2: this comment is not as msfrsctl wrote it' in capsys.readouterr().err


def test_no_squid_no_change(own):
    own.squid.unlink()
    assert own.run('set', 'rate', '1Mbit')[0] == 3
    assert own.own.read_text() == OWN


def test_the_mode_of_the_file_is_kept(own):
    own.own.chmod(0o640)
    own.run('set', 'rate', '1Mbit')
    assert own.own.stat().st_mode & 0o777 == 0o640


def test_rates_are_said_as_people_say_them(own):
    assert 'rate is 4.8 Mbit/s instead of 20 Mbit/s' in own.run('set', 'rate', '4800kbit')[1]
