# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl setup on a terminal (a pty): what a person types, sees, and interrupts."""
import json
import os
import pathlib
import pty
import re
import select
import sys

import pytest

from fresh_machine import IPTABLES, JOURNAL
from msfrsctl import interview

CHILD = pathlib.Path(__file__).with_name('dialogue.py')
PATIENCE = 60              #: s without any output after which a child has failed
CTRL_C, CTRL_D = b'\x03', b'\x04'
OUTSIDE, INSIDE, USERS = 'Interface of the access link', 'Interfaces of the users', "Users' networks"
RATE, CLASSES, LAST = 'Rate of the downlink, .*', 'Names of the classes, .*', 'Set this up[?] .*'
LEAST, MOST, WEIGHTS = 'The least that .*', 'The most that .*', 'Weights of gold silver rest, for each user'
BOTH = '10.20.0.0/16 2001:db8::/64'
#: A first setup up to its last question: (question, its default, what is typed).
FIRST = ((OUTSIDE, 'eth1', ''), (INSIDE, 'eth0', ''), (USERS, BOTH, ''), (RATE, '', '20Mbit'),
         (CLASSES, '', ''), (LAST, 'yes', ''))
#: A first setup that answers every question of interview.py.
EVERY = (*FIRST[:2], (USERS, BOTH, '10.20.0.0/16'), (RATE, '', 'auto'), (LEAST, '1Mbit', ''), (MOST, '100Mbit', '20Mbit'),
         (CLASSES, '', 'gold silver rest'), (WEIGHTS, '4 2 1', ''), ('Networks of gold', '', '10.20.1.0/24'),
         ('Networks of silver', '', '10.20.2.0/24'), FIRST[-1])


class Terminal:
    """A setup of the machine in `root`."""

    def __init__(self, root):
        self.shown, self._new = '', ''
        self.pid, self._end = pty.fork()
        if not self.pid:
            os.execve(sys.executable, (sys.executable, str(CHILD), str(root), 'setup'),
                      {**os.environ, 'PYTHONIOENCODING': 'utf-8:strict'})      # as of a person's locale

    def asked(self, question, default):
        """Waits for a question with its default, and for the child to read the answer."""
        prompt = re.compile(question + (re.escape(f' [{default}]') if default else '') + ': $', re.MULTILINE)
        while not re.search(prompt.pattern + r'\Z', self._new):
            assert self._more(), f'ended instead of asking {prompt.pattern}:\n{self.shown}'
        while pathlib.Path(f'/proc/{self.pid}/stat').read_text().rpartition(')')[2].split()[0] != 'S':
            os.sched_yield()    # Ctrl-C between Python's own look at signals and its read would be seen after the read

    def types(self, text):
        """Keys; a text with the key Enter."""
        self._new = ''
        os.write(self._end, text if isinstance(text, bytes) else f'{text}\n'.encode())

    def answers(self, *dialogue):
        for question, default, said in dialogue:
            self.asked(question, default)
            self.types(said)
        return self

    def ends(self):
        """(exit code, all that was shown)."""
        while self._more():
            pass
        os.close(self._end)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), self.shown

    def _more(self):
        ready, _, _ = select.select([self._end], [], [], PATIENCE)
        assert ready, f'silent after:\n{self.shown}'
        try:
            came = os.read(self._end, 65536).decode(errors='replace').replace('\r\n', '\n')
        except OSError:         # the child has closed its end
            return False
        self.shown += came
        self._new += came
        return bool(came)


def own(root):
    return (root / 'msfrsctl.conf').read_text()


def machine(root):
    """The simulated machine's files outside of the root."""
    return json.loads((root / 'machine.json').read_text())


def test_enter_takes_the_defaults(tmp_path):
    code, shown = Terminal(tmp_path).answers(*FIRST).ends()
    assert code == 0 and 'Set up in ' in shown
    assert 'msfrs_link rate=20Mbit interface=eth1 ' in own(tmp_path)
    assert 'inside = eth0' in machine(tmp_path)[IPTABLES].splitlines()


def test_a_second_setup_shows_the_earlier_answers(tmp_path):
    Terminal(tmp_path).answers(
        *FIRST[:2], (USERS, BOTH, '10.20.0.0/16'), (RATE, '', '20M'), (CLASSES, '', 'gold rest'),
        ('Weights of gold rest, for each user', '2 1', '3 2'), ('Networks of gold', '', '10.20.1.0/24'), FIRST[-1]).ends()
    before = own(tmp_path)
    again = ((OUTSIDE, 'eth1', ''), (INSIDE, 'eth0', ''), (USERS, '10.20.0.0/16', ''), (RATE, '20Mbit', ''),
             (CLASSES, 'gold rest', ''), ('Weights of gold rest, for each user', '3 2', ''),
             ('Networks of gold', '10.20.1.0/24', ''), (LAST, 'yes', ''))
    code, shown = Terminal(tmp_path).answers(*again).ends()
    assert code == 0 and own(tmp_path) == before
    code, shown = Terminal(tmp_path).answers(*again[:4], (CLASSES, 'gold rest', 'none'), (LAST, 'yes', '')).ends()
    assert code == 0 and '    -msfrs_class gold weight=3\n' in shown and 'msfrs_class gold' not in own(tmp_path)


@pytest.mark.parametrize('said', ('none', 'None', '-', ''))
def test_no_classes(tmp_path, said):
    assert Terminal(tmp_path).answers(*FIRST[:4], (CLASSES, '', said), FIRST[-1]).ends()[0] == 0
    assert 'msfrs_class users weight=1 default\n' in own(tmp_path)


def test_lists_and_numbers_as_people_write_them(tmp_path):
    code, shown = Terminal(tmp_path).answers(
        (OUTSIDE, 'eth1', ''), (INSIDE, 'eth0', 'eth0, wlan0'), (USERS, BOTH, '10.20.0.0/16 and 2001:db8::/64'),
        (RATE, '', '4,9 Mbit/s'), (CLASSES, '', 'teachers, pupils and guests'),
        ('Weights of teachers pupils guests, for each user', '4 2 1', '2,5 1,5 1'),
        ('Networks of teachers', '', '10.20.1.0/24, 10.20.2.0/24 and 10.20.3.9'),
        ('Networks of pupils', '', '10.20.4.0/24'), FIRST[-1]).ends()
    assert code == 0, shown
    said = own(tmp_path)
    assert 'rate=4900kbit' in said and 'msfrs_class teachers weight=2.5\n' in said
    assert 'acl msfrs_class_teachers src 10.20.1.0/24 10.20.2.0/24 10.20.3.9/32\n' in said
    assert 'inside = eth0 wlan0' in machine(tmp_path)[IPTABLES].splitlines()


def test_the_wrong_interface_first(tmp_path):
    """The question comes again with its reason; afterwards the users' interface is proposed correctly."""
    code, shown = Terminal(tmp_path).answers((OUTSIDE, 'eth1', 'eth7'), (OUTSIDE, 'eth1', 'eth0'), *FIRST[:1],
                                             (INSIDE, 'eth0', 'eth1'), *FIRST[1:]).ends()
    assert code == 0
    for line in ("interface 'eth7' is not up here; there are: lo eth1 eth0 wlan0. Once more:",
                 'the default route goes out of eth1, not of eth0; an access link without it is given as --outside eth0. '
                 'Once more:', 'eth1 cannot be both outside and inside: name the interface of the access link, and those '
                 'of the users. Once more:'):
        assert f'\n{line}\n' in shown


def test_exchanged_where_no_default_route_shows_it(tmp_path):
    """The last question takes it back: the interfaces of the users are asked for again with the other one."""
    (tmp_path / 'routes.json').write_text('[]')
    code, shown = Terminal(tmp_path).answers(
        (OUTSIDE, '', 'eth0'), (INSIDE, 'eth1', ''), (USERS, '192.0.2.0/24', ''),
        (RATE, '', '20M'), (CLASSES, '', ''), (LAST, 'yes', 'outside'), (OUTSIDE, 'eth0', 'eth1'),
        (INSIDE, 'eth0', ''), (USERS, BOTH, ''), (CLASSES, '', ''), (LAST, 'yes', '')).ends()
    assert code == 0, shown
    assert 'interface=eth1 ' in own(tmp_path) and 'inside = eth0' in machine(tmp_path)[IPTABLES].splitlines()


@pytest.mark.parametrize('keys, said', ((CTRL_C, 'interrupted: nothing was changed'),
                                        (CTRL_D, 'nobody answers; give all with flags, and --yes')))
@pytest.mark.parametrize('number', range(len(FIRST)))
def test_a_setup_that_is_left_at_a_question(tmp_path, number, keys, said):
    """Nothing has been written; the reason has a line of its own; the next setup works."""
    setup = Terminal(tmp_path).answers(*FIRST[:number])
    setup.asked(*FIRST[number][:2])
    setup.types(keys)
    code, shown = setup.ends()
    assert code == 2 and f'\nmsfrsctl: {said}\n' in shown
    assert not (tmp_path / 'squid.conf').exists() and JOURNAL not in machine(tmp_path)
    assert Terminal(tmp_path).answers(*FIRST).ends()[0] == 0


def test_every_question_is_in_the_list():
    asked = [question for question, _, _ in EVERY]
    for text in (*interview.ASKED.values(), interview.CLASSES_ASKED, interview.WEIGHTS_ASKED.format('gold silver rest'),
                 interview.NETWORKS_ASKED.format('gold'), 'Set this up? (yes'):
        assert any(re.match(question, text) for question in asked), text


def test_setup_again_and_again_and_left_at_each_question(tmp_path):
    """One machine: left at each question of a first setup, set up three times with an interruption at each question of
    the second and third, and everything is kept."""
    def left(dialogue):
        for number, (question, default, _) in enumerate(dialogue):
            setup = Terminal(tmp_path).answers(*dialogue[:number])
            setup.asked(question, default)
            setup.types(CTRL_C)
            assert setup.ends()[0] == 2
    left(EVERY)
    assert not (tmp_path / 'squid.conf').exists() and JOURNAL not in machine(tmp_path)
    assert Terminal(tmp_path).answers(*EVERY).ends()[0] == 0
    defaults = '', '', '10.20.0.0/16', 'auto', '1Mbit', '20Mbit', 'gold silver rest', '4 2 1', '10.20.1.0/24', '10.20.2.0/24'
    again = [(question, earlier or default, '') for (question, default, _), earlier in zip(EVERY, (*defaults, ''))]
    for _ in range(2):
        before = own(tmp_path), machine(tmp_path)
        left(again)
        assert (own(tmp_path), machine(tmp_path)) == before
        assert Terminal(tmp_path).answers(*again).ends()[0] == 0
        assert own(tmp_path) == before[0]


def test_left_while_it_asks_about_a_file_of_others(tmp_path):
    (tmp_path / 'squid.conf').write_text('http_port 3128\nvisible_hostname theirs\n')
    setup = Terminal(tmp_path).answers(*FIRST)
    setup.asked('May setup put .* [(]yes or no[)]', 'no')
    setup.types(CTRL_C)
    code, shown = setup.ends()
    assert code == 2 and 'interrupted: nothing was changed' in shown
    assert (tmp_path / 'squid.conf').read_text() == 'http_port 3128\nvisible_hostname theirs\n'
    assert Terminal(tmp_path).answers(*FIRST, ('May setup put .* [(]yes or no[)]', 'no', 'yes')).ends()[0] == 0


def test_keys_that_are_no_text(tmp_path):
    """Arrow keys, and a terminal that is not of UTF-8."""
    code, shown = Terminal(tmp_path).answers((OUTSIDE, 'eth1', '\x1b[A'), *FIRST[:4], (CLASSES, '', b'\xe9l\xe8ves\n'),
                                             *FIRST[4:]).ends()
    assert code == 0, shown
    assert "\ninterface '\\x1b[A' is not up here; there are: lo eth1 eth0 wlan0. Once more:\n" in shown
    assert 'must be of letters, digits and ._-' in shown


def test_a_key_that_erases(tmp_path):
    assert Terminal(tmp_path).answers(*FIRST[:3], (RATE, '', '200\x7fMbit'), *FIRST[4:]).ends()[0] == 0
    assert 'rate=20Mbit' in own(tmp_path)
