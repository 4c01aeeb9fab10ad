# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl why: the held list, access.log read backward, and the responses in service meanwhile."""
import subprocess
import sys
import threading
from urllib.parse import quote

import pytest
from conftest import BUSY, METRICS, NOW, OFF, QUOTA, ROOT, USERS

from msfrsctl import accesslog
from msfrsctl.squidconf import SquidConf

LINE = '{end:.3f} {took:6d} {user} TCP_MISS/200 5000 GET http://{host}/x - - HIER_DIRECT/192.0.2.1 {cls} {wait} ' \
       '{total} 3 12/11.62 - {over}\n'


def line(ago, user='10.20.1.7', host='www.example.com', cls='bronze', wait=1204, took=3000, total=1400,
         over='-'):
    return LINE.format(end=NOW - ago, user=user, host=host, cls=cls, wait=wait, took=took, total=total, over=over)


def test_who_is_held_now(gateway):
    code, said = gateway.run('why', '198.18.16.1')
    assert code == 0
    first, note, verdict, *more = said.splitlines()
    assert first.endswith('Nothing is wrong.')
    assert note.startswith('note: cannot read')
    assert verdict == ('198.18.16.1: 1 request of this user waits for a turn, for 44 ms (198.19.1.1).')
    assert more == [
        '  Share: its fair share by weight is 80 % of the link (class gold, weight 4); it received 0 % in the last '
        '5 s.',
        '  Rate: this user receives 0 bit/s, its fair share is 1.6 Mbit/s; the link carries 0 % of its 2.0 Mbit/s.',
        '  Active now: 2 users (1 of gold, 1 of bronze); 3 requests wait; 1 response in progress (1 of gold).',
        '  What to do: the link is not full, and still something waits; if that lasts longer than some seconds, see '
        'msfrsctl doctor.',
        '  For engineers: 3 wait and the window is full (W is 1 of W+ 1.00); 1 of 1.00 slots are taken.',
        '  198.19.1.1 of 198.18.16.1, class gold, waits for its turn for 44 ms: 3 of 3 by waiting time']
    (entry,) = gateway.data('why', '198.18.16.1')['live']['held']
    assert (entry['place'], entry['of']) == (3, 3)


def test_the_rate_is_measured(gateway, monkeypatch):
    """Over --seconds, and only of a user that Squid knows."""
    count = 0

    def fetch(_, __, path, timeout=5.0):
        nonlocal count
        count += path.endswith('msfrs-users')
        page = gateway.machine.pages[path.rpartition('/')[2]]
        return 200, page.replace('bytes: 0, queued: 1', f'bytes: {500_000 * max(count - 1, 0)}, queued: 1')
    monkeypatch.setattr(gateway.machine, 'fetch', fetch)
    said = gateway.run('why', '198.18.16.1')[1]
    assert '80 % of the link (class gold, weight 4); it received 40 % in the last 5 s.' in said
    assert 'this user receives 800 kbit/s, its fair share is 1.6 Mbit/s' in said
    began, count = gateway.machine.time, 0
    assert 'it received an amount that is not measured yet' in gateway.run('why', '198.18.16.1', '--seconds', '0')[1]
    gateway.run('why', '10.99.99.99')
    assert gateway.machine.time == began
    assert gateway.run('why', '198.18.16.1', '--seconds', '61')[0] == 2


def test_squid_is_down(gateway):
    """It once said "nothing is held", or nothing."""
    gateway.machine.pages = {action: ConnectionRefusedError(111, 'Connection refused')
                             for action in gateway.machine.pages}
    code, said = gateway.run('why', '198.18.16.1')
    assert code == 1
    assert '198.18.16.1: Squid at 127.0.0.1:3128 does not answer: users have no web while their connections are sent ' \
           'to it. Start Squid' in said
    assert 'nothing is held' not in said.lower() and 'server' not in said


def test_weights_are_not_enforced(gateway):
    sentence = 'weights not enforced yet, because each response has a slot (W is 3 of W+ 2.45)'
    report = BUSY.replace(BUSY.splitlines()[2], f'holding: no, because {sentence}').partition('held:\n')[0]
    gateway.machine.pages['msfrs'] = f'{report}held: []\n'
    gateway.machine.pages['msfrs-metrics'] = METRICS.replace('utilisation_ratio 0\n', 'utilisation_ratio 0.99\n')
    gateway.machine.pages['msfrs-users'] = USERS
    said = gateway.run('why', '198.18.16.1')[1]
    assert '198.18.16.1: No request of this user waits for a turn, but the link is full.\n' in said
    assert f'For engineers: {sentence}; ' in said


def test_a_host_has_those_of_all_users(gateway):
    assert len(gateway.data('why', '198.19.1.1')['live']['held']) == 3
    gateway.machine.pages['msfrs'] = BUSY.replace('host: "198.19.1.1"', 'host: "cdn.example.com"')
    assert len(gateway.data('why', 'Example.COM')['live']['held']) == 3
    assert gateway.data('why', 'ample.com')['live']['held'] == []


def test_any_address_of_a_user_that_is_a_network(gateway):
    user = '2001:db8:0:7::/64'
    for page, text in (('msfrs', BUSY), ('msfrs-users', USERS)):
        gateway.machine.pages[page] = text.replace('user: "198.18.16.1"', f'user: "{user}"')
    gateway.log.write_text(line(100, user=user) + line(50, user='2001:db8:0:8::/64'))
    data = gateway.data('why', '2001:DB8:0:7::5')
    assert [row['user'] for row in data['live']['held']] == [user]
    assert data['live']['classes'][0]['rate'] == 0, 'measured'
    assert [row['user'] for row in data['log']['requests']] == [user]


def test_what_held_it_lately(gateway):
    gateway.machine.pages = {'msfrs': OFF, 'msfrs-metrics': 'msfrs_scheduling 0\n# EOF\n',
                             'msfrs-users': 'users: []\n'}
    gateway.log.write_text(line(500, wait=10, total=10) + line(100) + line(50, user='10.20.1.8'))
    code, said = gateway.run('why', '10.20.1.7')
    assert code == 0
    assert said.startswith('Requests are not scheduled now: msfrs is off, or has failed; see cache.log.\n10.20.1.7: Nothing '
                           'is held here: msfrs is off.\n')
    assert 'access.log: the last 2 requests of 10.20.1.7' in said
    assert 'class bronze, waited 1.2 s, paused 196 ms in all, received 4.9 KB; of 3.0 s in all, 1.6 s were server, ' \
           'transfer and idle; for engineers: 3 quanta, 12 of 11.62 responses under way at its release\n' in said
    assert [row['wait'] for row in gateway.data('why', '10.20.1.7')['log']['requests']] == [1.204, 0.01]


def test_a_quota_that_is_used_up(gateway):
    gateway.machine.pages['msfrs'] = BUSY.replace('\n# who waits', f'\n{QUOTA}# who waits', 1)
    gateway.log.write_text(line(100, cls='bulk', over='bronze'))
    said = gateway.run('why', '10.20.1.7')[1]
    assert ('Quota: 6.0 GB of the 5.0 GB per day of class bronze are used, so class bulk\\x1b serves this user for '
            'another 3 h 20 min.') in said
    assert 'class bulk (the quota of bronze is used up), waited 1.2 s' in said
    assert 'Quota: 1.0 MB of the 5.0 GB per day of class bronze are used.\n' in gateway.run('why', '198.18.16.1')[1]
    assert gateway.data('why', '10.20.1.7')['log']['requests'][0]['over_quota'] == 'bronze'


@pytest.mark.parametrize('name', ['10.20.1.7', 'Ä b/c?', 'a~_.-&=%', '\udcff'])
def test_names_as_urls_have_them(name):
    assert accesslog.quoted(name) == quote(name, errors='surrogateescape')


def test_little_is_imported():
    """Importing each of these takes as long as searching a megabyte of access.log."""
    done = subprocess.run([sys.executable, '-I', '-c', f'import sys; sys.path.insert(0, {str(ROOT)!r})\n'
                           'from msfrsctl.cli import parser_of; parser_of(["why"]); print(*sys.modules)'],
                          capture_output=True, text=True, check=True)
    assert 'msfrsctl.accesslog' in done.stdout.split()
    assert not {'dataclasses', 'inspect', 'subprocess', 'urllib.parse', 'typing'} & set(done.stdout.split())


def test_the_log_is_searched_while_squid_answers(gateway, monkeypatch):
    searching, answered = threading.Event(), threading.Event()

    def fetch(*_):
        assert searching.wait(10), 'nobody searches the log'
        answered.set()
        return 200, OFF

    def search(*_):
        searching.set()
        assert answered.wait(10), 'Squid was not asked'
        return accesslog.Found()
    monkeypatch.setattr(gateway.machine, 'fetch', fetch)
    monkeypatch.setattr(accesslog, 'search', search)
    assert gateway.data('why', '10.20.1.7')['log']['requests'] == []


def test_what_goes_wrong_in_the_search_is_not_hidden(gateway, monkeypatch):
    def search(*_):
        raise RecursionError('a fault')
    monkeypatch.setattr(accesslog, 'search', search)
    with pytest.raises(RecursionError):
        gateway.run('why', '10.20.1.7')


def test_nothing_is_known(gateway):
    gateway.log.write_text(line(100))
    code, said = gateway.run('why', 'www.example.org')
    assert code == 1
    assert said.splitlines()[1].startswith('www.example.org: Squid does not know this name now: ')
    assert 'access.log: nothing of www.example.org in the last day' in said


@pytest.mark.parametrize('result', ['TCP_HIT', 'NONE_NONE', 'TCP_MEM_HIT'])
def test_what_needs_no_server_is_left_out(gateway, result):
    """Cache hits, and the second line that Squid logs of an intercepted TLS connection. They once were "not scheduled".
    """
    without = line(8).replace('TCP_MISS', result).replace('bronze 1204 1400 3 12/11.62', '- - - - -/-')
    gateway.log.write_text(line(9).replace('1204 1400 3 12/11.62 -', '- 20 0 -/- MSFRS_QUEUE_FULL') + without * 9
                           + line(7).replace('TCP_MISS', 'TCP_DENIED').replace('bronze 1204 1400 3 12/11.62',
                                                                               '- - - - -/-'))
    said = gateway.run('why', '10.20.1.7')[1]
    assert 'access.log: the last 2 requests of 10.20.1.7' in said
    assert 'class bronze, refused: MSFRS_QUEUE_FULL, after 20 ms' in said
    assert 'answered by Squid itself (TCP_DENIED)' in said
    assert result not in said and 'not scheduled' not in said


def test_behind_whom(gateway):
    """It arrived 10 s ago and was released 4 s later; gold was served meanwhile, before and after it in the log."""
    gateway.log.write_text(line(30, user='g0', cls='gold', wait=0, took=1000)       # had ended
                           + line(8, user='g1', cls='gold', wait=0, took=4000)
                           + line(2, wait=4000, took=8000)
                           + line(1, user='g2', cls='gold', wait=0, took=12000)     # ended after it
                           + line(1, user='s1', cls='silver', wait=9000, took=12000)      # was released later
                           + line(0.5, user='s2', cls='silver', wait=0, took=1000))       # arrived later
    (behind,) = gateway.data('why', '10.20.1.7')['log']['behind']['classes']
    assert (behind['class'], behind['requests'], behind['users'], behind['bytes']) == ('gold', 2, 2, 10000)
    assert 'gold: 2 responses of 2 users, 9.8 KB' in gateway.run('why', '10.20.1.7')[1]


def test_older_than_a_day_is_left_out(gateway):
    gateway.log.write_text(line(86500) + line(86300))
    assert len(gateway.data('why', '10.20.1.7')['log']['requests']) == 1


def test_the_file_that_was_rotated_away_is_read(gateway):
    gateway.log.write_text(line(10))
    gateway.log.with_name('access.log.1').write_text(line(86500) + line(1000))
    assert len(gateway.data('why', '10.20.1.7')['log']['requests']) == 2


def test_a_time_limit_ends_the_search(gateway, monkeypatch):
    monkeypatch.setattr(accesslog.blocks, '__defaults__', (None, 1000))
    gateway.log.write_text(line(5000) + ''.join(line(1000 - n, user='10.20.1.8') for n in range(100)))
    ticks = iter(range(10_000))
    monkeypatch.setattr(gateway.machine, 'monotonic', lambda: next(ticks) * 0.04)
    said = gateway.run('why', '10.20.1.7')[1]
    assert 'searched back to' in said and '--all searches the whole day' in said
    found = gateway.data('why', '10.20.1.7', '--all')['log']
    assert len(found['requests']) == 1 and found['whole']


@pytest.mark.parametrize('size', [1, 7, 100, 1000])
def test_blocks_are_whole_lines(tmp_path, size):
    path = tmp_path / 'log'
    lines = [b'%d %s\n' % (n, b'x' * (n * 7 % 50)) for n in range(60)]
    path.write_bytes(b''.join(lines) + b'no end')
    parts = list(accesslog.blocks(path, size=size))
    assert b''.join(data for _, data in reversed(parts)) == path.read_bytes()
    assert all(data.startswith(path.read_bytes()[start:start + 20][:len(data)]) for start, data in parts)
    assert all(data.endswith(b'\n') for data in [data for _, data in parts if data][1:])


def test_an_endless_line_is_left_out(tmp_path):
    path = tmp_path / 'log'
    path.write_bytes(b'first\n' + b'x' * 500_000 + b'\nlast\n')
    text = b''.join(data for _, data in reversed(list(accesslog.blocks(path, size=4096))))
    assert text.startswith(b'first\n') and text.endswith(b'last\n') and len(text) < 200_000


def test_lines_as_the_formats_say():
    reader = accesslog.Reader(accesslog.BUILT_IN['squid'])
    record = reader(b'1700000000.250    120 10.0.0.1 TCP_MISS/200 5123 CONNECT www.example.com:443 alice '
                    b'HIER_DIRECT/192.0.2.1 -')
    assert (record.ended, record.took, record.user, record.host, record.cls) == (1700000000.25, 0.12, 'alice',
                                                                               'www.example.com', None)
    assert reader(b'nonsense') is None
    common = accesslog.Reader(accesslog.BUILT_IN['common'])
    assert common(b'10.0.0.1 - alice [22/Nov/2026:19:02:25 +0000] "GET http://a.test/ HTTP/1.1" 200 99 TCP_MISS:NONE'
                  ).login == 'alice'
    assert accesslog.Reader('%http::>h{Referer} %http::rm')(b'a b GET').method == 'GET'
    quoted = accesslog.Reader('%ts "%{User-Agent}>h" 100%% %>a')
    assert quoted(b'5 "a b " c" 100% 10.0.0.1').client == '10.0.0.1'


@pytest.mark.parametrize('url, host', [
    ('http://a.example/x?y', 'a.example'), ('http://u:p@a.example:81/', 'a.example'), ('a.example:443', 'a.example'),
    ('https://[2001:db8::1]:444/', '2001:db8::1'), (None, None), ('error:invalid', 'error')])
def test_hosts_of_urls(url, host):
    assert accesslog.host_of(url) == host


def test_hostile_values_are_escaped(gateway):
    gateway.log.write_text(line(10, host='evil\x1b]0;x\x07.test'))
    said = gateway.run('why', '10.20.1.7')[1]
    assert r'evil\x1b]0;x\x07.test' in said and '\x1b' not in said and '\x07' not in said
    assert '\x1b' not in gateway.run('why', 'a\x1bb')[1]


def test_a_log_that_says_nothing_of_scheduling(gateway):
    gateway.configure(format='%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %[un %Sh/%<a %mt')
    gateway.log.write_text(f'{NOW - 9:.3f}    120 10.20.1.7 TCP_MISS/200 5123 GET http://a.test/ - '
                           'HIER_DIRECT/1.2.3.4 -\n')
    said = gateway.run('why', '10.20.1.7')[1]
    assert 'has no %msfrs:: codes' in said and 'not scheduled' not in said


def test_the_log_with_most_to_say_is_taken(gateway):
    gateway.configure('access_log stdio:/nowhere/else squid', 'access_log none')
    assert accesslog.log_of(SquidConf(gateway.machine, gateway.conf)).path == str(gateway.log)
