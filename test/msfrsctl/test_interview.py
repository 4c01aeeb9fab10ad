# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl setup: its questions, what it measures, and which answers it takes."""
import pytest

from fresh_machine import EDGE, FLAGS, IPTABLES, SCRIPT, fresh, state  # noqa: F401 (a fixture is among them)
from msfrsctl import answers, interview
from msfrsctl.errors import CtlError
from msfrsctl.system import Done


def said_before(gateway):
    """What was said before the summary, which begins with an empty line."""
    return gateway.machine.said[:gateway.machine.said.index('')]


def test_asked_what_cannot_be_seen(fresh):
    fresh.machine.files[IPTABLES] = '# mine\n'
    fresh.machine.answers = ['', '', '10.20.0.0/16', '2.5 MB/s', '', '', 'yes']
    assert fresh.run('setup')[0] == 0
    assert fresh.machine.questions[-1] == f'May setup replace {IPTABLES}? (yes or no)'
    said = fresh.own.read_text()
    assert 'interface=eth1' in said and 'rate=20Mbit' in said and 'msfrs_class users weight=1 default' in said
    assert 'ipv6 = no' in fresh.machine.files[IPTABLES]
    assert said_before(fresh) == ['understood: 20Mbit'], 'each answer that is written otherwise'


def test_five_questions_with_defaults(fresh):
    fresh.machine.answers = ['', '', '', '20M', '']
    assert fresh.run('setup')[0] == 0
    assert len(fresh.machine.questions) == 6 and fresh.machine.answers == []
    assert fresh.machine.questions[5].startswith('Set this up? (yes, no, or what to change: outside, ')
    assert '  rate     20Mbit' in fresh.machine.said and '  classes  users 1 (everybody else)' in fresh.machine.said


@pytest.mark.parametrize('weights, written', [('', (4, 2, 1)), ('5:3:1', (5, 3, 1)), ('5, 3 0.5', (5, 3, 0.5))])
def test_classes_in_words(fresh, weights, written):
    """Names in order of importance; the last has everybody else."""
    fresh.machine.answers = ['', '', '', '20M', 'teachers, students guests', weights, '10.20.1.0/24 10.20.7.9',
                             '10.20.2.0/23, 2001:db8::/65']
    assert fresh.run('setup')[0] == 0
    assert fresh.machine.questions[-5:-1] == [
        interview.CLASSES_ASKED, 'Weights of teachers students guests, for each user', 'Networks of teachers',
        'Networks of students']
    said = fresh.own.read_text()
    for name, weight, default in zip(('teachers', 'students', 'guests'), written, ('', '', ' default')):
        assert f'msfrs_class {name} weight={weight}{default}\n' in said
    assert 'acl msfrs_class_teachers src 10.20.1.0/24 10.20.7.9/32\n' in said
    assert 'acl msfrs_class_students src 10.20.2.0/23 2001:db8::/65\n' in said


def test_classes_are_checked_one_by_one(fresh):
    fresh.machine.answers = ['', '', '', '20M', 'the teachers!', 'a b a', 'a b', '4', '4:x', '4:2', '', '10.20.0.0']
    assert fresh.run('setup')[0] == 0
    assert [said.partition(':')[0] for said in said_before(fresh)[1:]] == [
        "class name 'teachers!' must be of letters, digits and ._-, at most 32. Once more",
        "class 'a' is named twice", '1 weights for 2 classes',
        "weight 'x' must be a number from 0.001 to 10000. Once more",
        "class 'a' needs the networks of its users, such as 10.20.1.0/24", 'b']


@pytest.mark.parametrize('words, sentence', [
    (('--class', 'a=2=10.30.0.0/16'), "network 10.30.0.0/16 of class 'a' is not in the users' networks (10.20.0.0/16"),
    (('--class', 'a=2=10.20.1.7'), "network 10.20.1.7/32 belongs to class 'gold' already, which comes first"),
    (('--class', 'a=2=10.20.1.0/24'), 'give the class of the smaller network first')])
def test_a_class_that_nobody_could_be_in(fresh, capsys, words, sentence):
    assert fresh.run(*FLAGS, *words)[0] == 2
    assert sentence in capsys.readouterr().err
    assert fresh.run(*FLAGS, '--class', 'a=2=10.20.0.0/16')[0] == 0, 'the larger one, afterwards'


def line(rates, begins=100.0):
    """Samples of a download with these rates, Mbit/s, in successive seconds after slow start."""
    samples, at, came = [], begins, 0
    for rate in (1, 2, 3, *rates):
        for _ in range(4):
            samples.append((at, came))
            at, came = at + 0.25, came + int(rate * 1e6 / 8 / 4)
    return [*samples, (at, came)]


def measures(fresh, answer):
    fresh.machine.files['/sys/class/net/eth1/statistics/rx_bytes'] = '5\n'
    fresh.machine.downloads.append(answer)


FILE = 'http://fast.test/100MB.bin'


def test_a_measured_rate_is_proposed(fresh):
    measures(fresh, line([20.1] * 7))
    fresh.machine.answers = ['', '', '', FILE, '', '']
    assert fresh.run('setup')[0] == 0
    assert fresh.machine.downloaded == [(FILE, 'eth1')]
    assert 'measured 20.1 Mbit/s (16.8 MB in 7 s, 4 connections); proposed: rate 19100kbit' in fresh.machine.said
    assert 'rate=19100kbit' in fresh.own.read_text()


def test_a_measured_rate_is_taken_unasked(fresh):
    measures(fresh, line([20] * 7))
    assert fresh.run('setup', '--yes', '--measure', FILE)[0] == 0
    assert 'rate=19Mbit' in fresh.own.read_text()


def test_a_rate_that_varies_is_found(fresh):
    measures(fresh, line([20, 4, 12, 30, 8, 20, 20]))
    assert fresh.run('setup', '--yes', '--measure', FILE)[0] == 0
    assert 'rate=auto min=1Mbit max=60Mbit' in fresh.own.read_text()


@pytest.mark.parametrize('answer, sentence', [
    (CtlError(f'{FILE}: status 404', 4), 'status 404'), (line([900]), 'the link has more than 1.6 Gbit/s'),
    (line([0] * 7), '0 bytes came in 7 s: the server sends nothing')])
def test_a_rate_that_cannot_be_measured(fresh, capsys, answer, sentence):
    measures(fresh, answer)
    assert fresh.run('setup', '--yes', '--measure', FILE)[0] == 4
    assert sentence in capsys.readouterr().err
    measures(fresh, answer)
    fresh.machine.answers = ['', '', '', '20M', '']
    assert fresh.run('setup', '--measure', FILE)[0] == 0, 'then the administrator knows it'
    assert any(sentence in said for said in fresh.machine.said)


@pytest.mark.parametrize('words, sentence', [
    (('--measure', FILE, '--rate', '5Mbit'), 'leave one of them out'),
    (('--measure', 'fast.test/x'), 'by http or https'), (('--measure', 'http://a:b@fast.test/x'), 'by http or https'),
    (('--measure', FILE), "interface 'eth1' is not there")])
def test_what_cannot_be_measured_with(fresh, capsys, words, sentence):
    assert fresh.run('setup', '--yes', *words)[0] == 2
    assert sentence in capsys.readouterr().err and fresh.machine.downloaded == []


def test_the_answers_as_a_file(fresh):
    """With which everything is set up alike."""
    code, said = fresh.run(*FLAGS, '--print', 'answers')
    assert code == 0 and 'outside = eth1\n' in said and 'class = gold=4=10.20.1.0/24\n' in said
    (fresh.root / 'answers').write_text(said)
    files = fresh.data(*FLAGS, '--print')['would_write']
    assert fresh.data('setup', '--yes', '--answers', str(fresh.root / 'answers'), '--print')['would_write'] == files
    assert not fresh.own.exists()


def test_a_wrong_answer_is_asked_again_at_once(fresh):
    """With the reason; earlier answers are kept."""
    fresh.machine.answers = ['eth/1', 'eth7', 'eth1', 'eth1', 'eth0', '10.20.0.0/33', '10.20.0.0/16', '5MB', '5 Mbit/s',
                             'gold rest', '', '10.20.1.0/33', '10.20.1.0/24']
    assert fresh.run('setup')[0] == 0
    assert [said.partition(' ')[0] for said in said_before(fresh)] == ['interface', 'interface', 'eth1', 'network',
                                                                      'rate', 'understood:', 'network', 'rest:']
    assert fresh.machine.said[1] == "interface 'eth7' is not up here; there are: lo eth1 eth0 wlan0. Once more:"
    assert 'write 40Mbit if you mean megabytes' in fresh.machine.said[4]
    said = fresh.own.read_text()
    assert 'rate=5Mbit interface=eth1' in said and said.count('msfrs_class gold') == 1


def test_auto_asks_between_what(fresh):
    fresh.machine.files['/sys/class/net/eth1/speed'] = '1000\n'
    fresh.machine.answers = ['', '', '', 'Auto', '2m', '1m', '', '']
    assert fresh.run('setup')[0] == 0
    assert said_before(fresh) == ['understood: auto', 'understood: 2Mbit', 'min 2Mbit is above max 1Mbit. Once more:']
    assert 'msfrs_link rate=auto min=2Mbit max=1Gbit interface=eth1' in fresh.own.read_text()


def test_what_was_given_is_checked_before_anything_is_asked(fresh):
    assert fresh.run('setup', '--uplink', '5MB')[0] == 2
    assert fresh.machine.questions == []


def test_answers_outlive_a_failure(fresh, capsys):
    fresh.machine.answers = ['', '', '10.20.0.0/16', '10 Mbps', 'gold rest', '', '10.20.1.0/24']
    fresh.machine.programs[f'{SCRIPT} up'] = Done(3, '', 'no interface')
    assert fresh.run('setup')[0] == 4
    again = capsys.readouterr().err.rpartition('the same answers again: msfrsctl ')[2].split()
    del fresh.machine.programs[f'{SCRIPT} up']
    assert fresh.run(*again)[0] == 0 and len(fresh.machine.questions) == 8
    assert 'rate=10Mbit' in fresh.own.read_text()


def test_an_answer_file(fresh):
    file = fresh.root / 'answers'
    file.write_text('# a school\nrate = auto\nmin = 2Mbit\nmax = 50Mbit\nuplink = 2Mbit\n'
                    'class = gold=4=10.20.1.0/24\nclass = bronze=1\nquic = allow\n')
    assert fresh.run('setup', '--yes', '--answers', str(file))[0] == 0
    assert 'msfrs_link rate=auto min=2Mbit max=50Mbit interface=eth1' in fresh.own.read_text()
    assert 'link rate=2Mbit' in fresh.machine.files[EDGE] and 'quic = allow' in fresh.machine.files[IPTABLES]


@pytest.mark.parametrize('words, sentence', [
    (('--rate', 'fast'), "rate 'fast' must be"), (('--rate', 'auto'), 'needs min and max'),
    (('--outside', 'eth0', '--inside', 'eth0'), 'both outside and inside'), (('--inside', 'a/b'), "interface 'a/b'"),
    (('--inside', '+'), "interface ''"), (('--outside', 'eth+'), "interface 'eth+'"),
    (('--inside', 'eth+'), 'eth1 cannot be both outside and inside'),
    (('--users', '10.0.0.0/33'), "network '10.0.0.0/33'"), (('--class', 'x=0'), "class 'x=0' must be"),
    (('--class', 'silver=2'), 'another class is the default'), (('--mode', 'x'), 'redirect or tproxy'),
    (('--class', 'gold=2=10.0.0.0/8'), 'a name of its own'), (('--users', '10.0.0.0/8\nhttp_access'), 'network'),
    (('--class', 'a\nb=1'), 'must be'), (('--uplink', 'x'), 'uplink'),
    (('--outside', 'eth7'), "interface 'eth7' is not up here; there are: lo eth1 eth0 wlan0"),
    (('--edge', 'downlink'), "edge 'downlink' must be yes or no"),
    (('--edge', 'yes', '--uplink', '2Mbit'), 'leave uplink out, or'),
    (('--min', '1Mbit'), 'min is for rate auto alone'), (('--probe', 'https://a.test/'), 'by http, or no'),
    (('--rate', 'auto', '--min', '3Mbit', '--max', '2Mbit'), 'min 3Mbit is above max 2Mbit')])
def test_wrong_answers(fresh, capsys, words, sentence):
    before = state(fresh)
    assert fresh.run(*FLAGS, *words)[0] == 2
    assert sentence in capsys.readouterr().err
    assert state(fresh) == before


def test_what_is_missing_is_described(fresh, capsys):
    fresh.machine.programs['ip -j addr show up'] = ''
    assert fresh.run(*FLAGS)[0] == 2
    assert 'inside is not known (Interfaces of the users): give --inside' in capsys.readouterr().err
    assert fresh.run('setup', '--yes', '--answers', '/nowhere')[0] == 2
    assert 'msfrsctl setup --print answers makes one' in capsys.readouterr().err


def test_answer_files_are_checked():
    with pytest.raises(CtlError, match="a:2: 'colour = red' must be NAME = VALUE, and NAME one of class, "):
        answers.read_file('a', 'rate = 1Mbit\ncolour = red\n')
    with pytest.raises(CtlError, match='a:3: rate is given a second time'):
        answers.read_file('a', 'rate = 1Mbit\nclass = x=2\nrate = 2Mbit\n')
    assert answers.read_file('a', 'class = x=1 # default\n')['class'] == ['x=1']


def test_lists_as_people_write_them(fresh):
    fresh.machine.answers = ['', '', '10.20.0.0/16 and 2001:db8::/64', '4,9 Mbit/s', 'teachers, pupils and guests',
                             '2,5 1,5 1', '10.20.1.0/24, 10.20.2.0/24 and 10.20.3.0/24', '10.20.4.0/24']
    assert fresh.run('setup')[0] == 0
    said = fresh.own.read_text()
    assert 'rate=4900kbit' in said and 'msfrs_class teachers weight=2.5\n' in said
    assert 'acl msfrs_class_teachers src 10.20.1.0/24 10.20.2.0/24 10.20.3.0/24\n' in said


@pytest.mark.parametrize('said', ('none', 'None', 'no', '-', ''))
def test_no_classes(fresh, said):
    fresh.machine.answers = ['', '', '', '20M', said]
    assert fresh.run('setup')[0] == 0
    assert fresh.own.read_text().count('msfrs_class ') == 1


def test_outside_and_inside_exchanged(fresh, capsys):
    """The default route shows which is which."""
    fresh.machine.answers = ['eth0', 'eth1', 'eth1', 'eth0', '', '20M']
    assert fresh.run('setup')[0] == 0
    said = said_before(fresh)
    assert said[0].startswith('the default route goes out of eth1, not of eth0') and 'both outside' in said[1]
    assert fresh.run(*FLAGS, '--outside', 'eth0', '--inside', 'eth1')[0] == 2
    assert 'are they exchanged?' in capsys.readouterr().err


def test_going_back(fresh):
    """The last question takes the name of an answer; what depends on it is asked, too."""
    fresh.machine.answers = ['', '', '', '20M', '', 'sped', 'rate', 'auto', '', '', 'classes', 'staff guests', '3 1',
                             '10.20.1.0/24', 'yes']
    assert fresh.run('setup')[0] == 0
    said = fresh.own.read_text()
    assert 'rate=auto min=1Mbit max=100Mbit' in said and 'msfrs_class staff weight=3' in said
    assert "'sped' is none of these. Once more:" in fresh.machine.said


def test_a_no_changes_nothing(fresh, capsys):
    before = state(fresh)
    fresh.machine.answers = ['', '', '', '20M', '', 'no']
    assert fresh.run('setup')[0] == 3 and state(fresh) == before
    assert 'nothing was changed' in capsys.readouterr().err


def test_a_second_setup_proposes_the_answers_of_the_first(fresh):
    fresh.machine.answers = ['', '', '10.20.0.0/16', '20M', 'gold rest', '3 2', '10.20.1.0/24']
    assert fresh.run('setup', '--quic', 'allow')[0] == 0
    before, fresh.machine.said = fresh.own.read_text(), []
    fresh.machine.answers = []
    assert fresh.run('setup')[0] == 0
    assert fresh.own.read_text() == before and 'quic = allow' in fresh.machine.files[IPTABLES]
    assert not any(line.startswith('    ') for line in fresh.machine.said), 'no difference'
    fresh.machine.answers = ['', '', '', '10M']
    assert fresh.run('setup')[0] == 0
    assert '    -msfrs_link rate=20Mbit interface=eth1 shared' in fresh.machine.said
    assert 'rate=10Mbit' in fresh.own.read_text() and 'msfrs_class gold weight=3\n' in fresh.own.read_text()
    assert fresh.run('setup', '--yes', '--rate', '5M')[0] == 0
    assert 'rate=5Mbit' in fresh.own.read_text() and 'msfrs_class gold weight=3\n' in fresh.own.read_text()


def test_a_second_setup_keeps_what_a_person_added(fresh):
    fresh.machine.answers = ['', '', '10.20.0.0/16', '20M', 'gold rest', '3 2', '10.20.1.0/24']
    assert fresh.run('setup')[0] == 0
    assert fresh.run('set', 'boost', '10.20.7.7', '--keep')[0] == 0
    fresh.own.write_text(fresh.own.read_text().replace('msfrs_class rest', 'msfrs_quota rest bytes=1GB period=day over=rest\n'
                                                       'msfrs_class rest').replace('weight=3', 'weight=5'))
    fresh.machine.answers = ['', '', '', '10M']
    assert fresh.run('setup')[0] == 0
    said = fresh.own.read_text()
    assert 'rate=10Mbit' in said and 'msfrs_quota rest' in said and 'weight=5' in said and '10.20.7.7' in said
    assert '10.20.7.7 is in class gold, until it is undone' in fresh.run('set')[1]
    fresh.own.write_text(said.replace('rate=10Mbit', 'rate=9Mbit'))
    fresh.machine.answers = ['', '', '', '8M']
    assert 'not kept in ' + str(fresh.own) in fresh.run('setup')[1]
    assert 'rate=8Mbit' in fresh.own.read_text() and 'msfrs_quota rest' in fresh.own.read_text()
    fresh.run('setup', '--undo')
    assert 'msfrs_quota rest' in (fresh.root / 'msfrsctl.conf.saved').read_text(), 'not lost without a copy'


def test_ctrl_c_at_each_question(fresh, capsys):
    before = state(fresh)
    for number in range(6):
        def answer(question, default, left=[number]):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return default or '20M' * question.startswith('Rate')
        fresh.machine.ask = answer
        assert fresh.run('setup')[0] == 2
        assert 'interrupted: nothing was changed' in capsys.readouterr().err and state(fresh) == before
