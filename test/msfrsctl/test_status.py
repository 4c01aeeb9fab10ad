# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl status, and queries to the cache manager."""
import pytest
from conftest import BUSY, OFF, QUOTA

from msfrsctl import manager, text
from msfrsctl.errors import CtlError


def test_says_why_requests_are_held(gateway):
    code, said = gateway.run('status')
    assert code == 0
    assert said.startswith('The link is idle. 2 users wait, the longest for 44 ms: 1 of bronze, 1 of gold. Nothing is '
                           'wrong.\nlink       2 Mbit/s at wan0, 0% used')
    assert said.endswith('\n\nfor engineers: 3 wait and the window is full (W is 1 of W+ 1.00); 1 of 1.00 responses under '
                         'way\n')
    rows = {line.split()[0]: line.split() for line in said.splitlines() if line[:6].strip() in ('gold', 'silver',
                                                                                               'bronze')}
    assert rows['gold'][1:4] == ['4', '1', '1'] and rows['bronze'][1] == '(default)'
    assert rows['gold'][-5:] == ['0', 'ms', '45', 'ms', '-'] and rows['bronze'][-5:] == ['45', 'ms', '45', 'ms', '-']
    assert 'refused    bronze: 1 per_user' in said


def test_says_who_has_had_a_quota(gateway):
    assert 'quota' not in gateway.run('status')[1]
    gateway.machine.pages['msfrs'] = BUSY.replace('\n# who waits', f'\n{QUOTA}# who waits', 1)
    assert ('quota      bronze: 5.0 GB per day for each user; used up by 1 of 3 users, in class bulk\\x1b for '
            'another 3 h 20 min') in gateway.run('status')[1]


def test_json_is_the_report(gateway):
    (worker,) = gateway.data('status')['workers']
    assert worker['window']['limit'] == 1.0
    assert [row['name'] for row in worker['classes']] == ['gold', 'silver', 'bronze']


def test_says_what_squid_says_and_not_that_nothing_is_held(gateway):
    sentence = 'weights not enforced yet, because each response has a slot (W is 3 of W+ 2.45)'
    gateway.machine.pages['msfrs'] = BUSY.replace(BUSY.splitlines()[2], f'holding: no, because {sentence}')
    for said in (gateway.run('status')[1], gateway.run('top', '--count', '1')[1]):
        assert sentence in said
        assert 'holding' not in said


def test_nothing_is_scheduled(gateway):
    gateway.machine.pages.update({'msfrs': OFF, 'msfrs-metrics': 'msfrs_scheduling 0\n# EOF\n'})
    assert gateway.run('status') == (0, 'Requests are not scheduled now: msfrs is off, or has failed; see cache.log.\n'
                                        'now        msfrs is off\n')


def test_each_worker_has_a_part(gateway):
    gateway.machine.pages['msfrs'] = f'---\nkid: 1\n{BUSY}---\nkid: 2\n{OFF}'
    said = gateway.run('status')[1]
    assert '\nworker 1\nlink       2 Mbit/s' in said and said.endswith('worker 2\nnow        msfrs is off\n')


def test_workers_that_cannot_share_the_link(gateway):
    assert 'ledger' not in gateway.run('status')[1]
    gateway.machine.pages['msfrs'] = BUSY.replace('\nexcess:', '\nalone: "since nothing is left\\e"\nexcess:', 1)
    assert ('ledger     degraded: workers schedule alone, since nothing is left\\x1b\n'
            in gateway.run('status')[1])


def test_names_cannot_control_the_terminal(gateway):
    gateway.machine.pages['msfrs'] = BUSY.replace('name: "silver"', r'name: "\u001b[2J\u202esilver"')
    said = gateway.run('status')[1]
    assert r'\x1b[2J\u202esilver' in said
    assert '\x1b' not in said and '\u202e' not in said
    assert '\x1b' not in gateway.run('status', '--json')[1]


@pytest.mark.parametrize('answer, words', [
    (ConnectionRefusedError(111, 'Connection refused'), 'Squid at 127.0.0.1:3128 does not answer'),
    (ConnectionRefusedError(111, 'Connection refused'), 'users have no web while their connections are sent to it'),
    (403, 'http_access allow manager localhost'), (404, 'is it the one with msfrs'), (500, 'status 500'),
    ('<html>', 'not as expected'), ('a: [', 'not as expected'), ('', 'not as expected')])
def test_when_squid_does_not_tell(gateway, capsys, answer, words):
    gateway.machine.pages['msfrs'] = answer
    code, said = gateway.run('status')
    assert (code, said) == (3, '')
    assert words in capsys.readouterr().err
    assert words in gateway.data('status')['error']


def test_the_port_is_that_of_squid_conf(gateway):
    gateway.conf.write_text('http_port 3129 intercept\nhttp_port [::1]:8080\n')
    gateway.run('status')
    gateway.run('status', '--manager', '192.0.2.1:81')
    assert [asked[:2] for asked in gateway.machine.asked] == [('::1', 8080)] * 3 + [('192.0.2.1', 81)] * 3
    gateway.conf.write_text('http_port 3129 intercept\n')
    assert gateway.run('status')[0] == 3


@pytest.mark.parametrize('text', ['x', 'host:', 'host:0', 'host:65536', '1.2.3.4:80x'])
def test_a_wrong_address(text):
    with pytest.raises(CtlError, match='is not an address and port'):
        manager.address_of(text)


def test_a_missing_squid_conf(gateway, capsys):
    gateway.conf.unlink()
    assert gateway.run('status')[0] == 2
    assert '--squid-conf FILE' in capsys.readouterr().err


def test_words_of_small_times_and_hours():
    """A time that is not 0 is not said to be 0."""
    assert [text.seconds(value) for value in (0, 0.00004, 0.0004, 0.0006, 0.044)] == ['0 ms', '< 1 ms', '< 1 ms',
                                                                                      '1 ms', '44 ms']
    assert text.quota({'bytes': 3 << 20, 'period': 'hour'}) == '3.0 MB per hour'
    assert text.quota({'bytes': 3 << 20, 'period': 'day'}) == '3.0 MB per day'
