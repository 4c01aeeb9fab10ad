# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrs-page: its responses to each kind of client, through faults and restarts."""
import contextlib
import json
import re
import socket
import subprocess
import sys
from urllib.parse import quote

import pytest

from background import PATIENCE, wait_until
from fieldtrial.base.paths import ROOT
from fieldtrial.site.world import FORWARD_PORT
from page_fixtures import HOSTILE, QUOTA, TOKEN, directory, gateway, manager  # noqa: F401 (fixtures)
from page_service import PORT, PROGRAM, WHY, Page


@pytest.fixture
def page(gateway, directory, manager):
    with Page(gateway, directory) as made:
        made.wait_for(lambda data: data['trouble'] == '', 'the first poll')
        yield made


def test_the_figures(page):
    data = page.wait_for(lambda data: data['classes'] and data['classes'][0]['rate'], 'two polls')
    users = page.wait_for_users(lambda users: users and users[0]['rate'], 'two polls of users')
    gold, _, bronze = data['classes']
    assert (gold['name'], gold['weight'], gold['users']) == ('gold', 4, 3)
    assert gold['rate'] == pytest.approx(4 * bronze['rate'], rel=0.01), 'as the counters grow'
    assert gold['share'] == pytest.approx(2e6 * 4 / (3 * 7), rel=0.01)
    assert gold['size'] == 8000 and gold['held_per_mb'] == 31.25
    assert data['user_count'] == 2 and users[0]['user'] == '10.0.0.1'
    assert users[0]['due'] == gold['share']
    assert data['held'] == [{'user': '10.0.0.2', 'class': 'bronze', 'host': 'slow.example', 'waited': 3.5,
                             'what': 'request', 'name': '', 'reason': 'waits'}]
    assert data['verdict'].endswith('1 user waits, for 3.5 s, of class bronze. Nothing is wrong.')
    assert data['because'] == ['9 wait and the window is full (W is 4 of W+ 4.00)']
    assert data['trouble'] == '' and data['scheduling'] is True
    assert data['newest']['values']['rate/gold'] > 0
    user = page.json('/user.json?name=10.0.0.2')
    assert user['why'][0] == ('1 request of this user waits for a turn, for 3.5 s (slow.example): the '
                              'link is full, and turns go by weight.')
    assert user['classes'][0]['class'] == 'bronze' and len(user['held']) == 1
    assert page.get('/healthz')[::2] == (200, 'ok\n')


def test_names_instead_of_addresses_alone(gateway, directory, manager):
    """Names change while the page runs; a lease is no markup."""
    leases, names = directory / 'leases', directory / 'names'
    leases.write_text('1790000000 02:00:00:00:00:01 10.0.0.1 annas-laptop *\n'
                      '1790000000 02:00:00:00:00:02 10.0.0.2 <b> *\n')
    directory.chmod(0o755)
    with Page(gateway, directory, f'leases {leases}', f'names {names}') as page:
        page.wait_for_users(lambda users: {user['name'] for user in users} == {'annas-laptop', ''}, 'a lease')
        assert page.json('/user.json?name=10.0.0.1')['name'] == 'annas-laptop'
        names.write_text('10.0.0.2 The <printer>\n')
        page.wait_for_users(lambda users: 'The <printer>' in {user['name'] for user in users}, 'a name')
        assert '<' not in page.get('/users.json')[2] + page.get('/data.json')[2]
        assert f'names {names}: No such file' in page.end()


def test_users_see_themselves_only(gateway, directory, manager):
    manager.users = [('127.0.0.5', 'gold', 9000), ('127.0.0.6', 'bronze', 100)]
    manager.held = [('127.0.0.6', 'bronze', 'secret.example', 3.5, 'request'), ('x', 'gold', '127.0.0.7', 3, 'request')]
    manager.quotas = {'gold': (QUOTA.replace('users_over: 2', 'users_over: 1'), [('127.0.0.5', 3_000_000)])}
    with Page(gateway, directory, 'users_listen 127.0.0.1:3881', 'host here.example') as page:
        def own(source, **headers):
            status, _, body = page.get('/me.json', port=3881, source=source, **headers)
            assert status == 200, body
            return json.loads(body)
        wait_until(lambda: own('127.0.0.5')['classes'], 'the users')
        gold = own('127.0.0.5', Host='here.example', X_Forwarded_For='127.0.0.6')
        assert (gold['classes'][0]['class'], gold['quotas'][0]['exceeded'], gold['waiting']) == ('gold', True, 0)
        bronze = own('127.0.0.6')
        assert (bronze['reason'], bronze['longest'], bronze['quotas']) == ('waits', 3.5, [])
        assert 'secret' not in json.dumps(bronze) and '127.0.0.5' not in json.dumps(bronze)
        assert own('127.0.0.7')['reason'] == 'unknown', 'although others want something of a host with that address'
        for path in ('/data.json', '/users.json', '/history.json', '/user.json?name=127.0.0.6', '/page.js', '/healthz'):
            assert page.get(path, port=3881)[0] == 404, path
        assert page.get('/me', port=3881, Host='evil.example')[0] == 421
        assert page.get('/', port=3881, method='POST')[0] == 405
        german = json.loads(page.get('/words.json', port=3881, Accept_Language='de-CH, en;q=0.5')[2])
        english = json.loads(page.get('/words.json', port=3881)[2])
        assert german['language'] == 'de' and german.keys() == english.keys()


def test_ten_thousand_users_are_no_larger_page(page, manager):
    manager.users = [(f'10.1.{n // 250}.{n % 250}', 'bronze', n) for n in range(10_000)]
    page.wait_for(lambda data: data['user_count'] == 10_000, 'all users')
    assert len(page.get('/data.json')[2]) < 20_000
    assert page.json('/user.json?name=10.1.39.249')['classes'][0]['class'] == 'bronze'


def test_an_older_squid_names_those_with_most_bytes(page, manager):
    whole = manager.answer

    def without_users(request):
        if request.path.endswith('msfrs-users'):
            request.send_error(404)
        else:
            whole(request)
    manager.answer = without_users
    manager.users = [('only', 'gold', 1)]
    page.wait_for_users(lambda users: [user['user'] for user in users] == ['only'], 'the top users')


def test_who_has_had_a_quota(page, manager):
    assert page.json('/data.json')['quotas'] == []
    manager.quotas = {'gold': (QUOTA, [('10.0.0.2', 3_000_000), ('10.0.0.1', 1000)])}
    (quota,) = page.wait_for(lambda data: data['quotas'], 'a quota')['quotas']
    assert (quota['class'], quota['over'], quota['users_over'], quota['ends_in']) == ('gold', 'bronze', 2, 12000)
    assert quota['most'] == [{'user': '10.0.0.2', 'name': '', 'bytes': 3e6},
                             {'user': '10.0.0.1', 'name': '', 'bytes': 1000}]
    assert ('Quota: 2.9 MB of the 1.0 MB per day of class gold are used, so class bronze serves this user for another '
            '3 h 20 min.') in page.json('/user.json?name=10.0.0.2')['why']


def test_what_squid_says_stays_text(page, manager):
    manager.names = ['gold', '</script><b>']
    manager.users = [(HOSTILE, 'gold', 5)]
    manager.held = [(HOSTILE, 'gold', '<svg onload=x>', 1, 'request')]
    data = page.wait_for(lambda data: len(data['classes']) == 2, 'the hostile class')
    page.wait_for_users(lambda users: users and users[0]['user'] == HOSTILE, 'the hostile user')
    assert data['classes'][1]['name'] == '</script><b>'
    for path in ('/data.json', '/history.json', '/users.json', f'/user.json?name={quote(HOSTILE)}'):
        status, headers, body = page.get(path)
        assert status == 200 and headers['Content-Type'] == 'application/json'
        assert not set(body) & set('<>&\'\u2028'), path
    assert page.json(f'/user.json?name={quote(HOSTILE)}')['held'][0]['host'] == '<svg onload=x>'


@pytest.mark.parametrize('path, status', [
    ('/', 200), ('/user?name=x', 200), ('/me', 200), ('/me.json', 200), ('/words.json', 200),
    ('/page.css', 200), ('/chart.js', 200), ('/nothing', 404), ('/../../etc/passwd', 404),
    ('/%2e%2e/%2e%2e/etc/passwd', 404), ('/user?name=%0d%0aSet-Cookie:x', 400),
    ('/user?name=%ff', 400), ('/user?name=' + 'n' * 9000, 431), ('/?x', 400), ('//evil.example/', 404)])
def test_addresses(page, path, status):
    said, headers, _ = page.get(path)
    assert said == status
    assert headers['Content-Security-Policy'].startswith("default-src 'none'; script-src 'self';")
    assert headers['Set-Cookie'] is None and headers['X-Content-Type-Options'] == 'nosniff'


def test_it_is_read_only_and_called_by_its_name(page):
    for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE'):
        assert page.get('/', method=method)[0] == 405
    assert page.get('/data.json', Host='attacker.example')[0] == 421
    assert page.get('/data.json', Host='localhost:3880')[0] == 200
    assert page.get('/', method='HEAD')[::2] == (200, '')


def test_others_need_a_token(gateway, directory, manager):
    secret = directory / 'token'
    secret.write_text(TOKEN + '\n')
    secret.chmod(0o600)
    with Page(gateway, directory, f'listen 0.0.0.0:{PORT}', 'host gw.example', f'token {secret}') as page:
        for path in ('/', '/data.json', '/history.json', '/users.json', '/user.json?name=x', '/me.json', '/chart.js'):
            status, headers, body = page.get(path, Host='gw.example')
            assert (status, TOKEN in body) == (401, False), path
            assert headers['WWW-Authenticate'].startswith('Basic ')
        assert page.get('/', Authorization='Bearer wrong-wrong-wrong')[0] == 401
        assert page.get('/', Authorization=f'Bearer {TOKEN}')[0] == 200
        assert page.get('/healthz')[0] in (200, 503)
        assert TOKEN not in page.end()


def test_a_mistake_is_told(gateway, directory, manager):
    page = Page(gateway, directory, 'listen 10.0.0.1:3880')
    for more in ((), ('--check',)):
        done = subprocess.run(gateway.enter([str(PROGRAM), *more, str(page.file)]), capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        assert done.returncode == 2 and 'add a line: token FILE' in done.stderr
    page.configure()
    done = subprocess.run(gateway.enter([str(PROGRAM), '--check', str(page.file)]), capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (0, '')


def test_slow_clients_are_left(page):
    """More slow clients than are allowed, which send little or nothing: others are served, and these are dropped."""
    slow = [page.connect() for _ in range(80)]
    for client in slow:
        client.sendall(b'GET / HTTP/1.1\r\nX: ')
    assert page.get('/healthz')[0] == 200
    # The first ones have been dropped; a later one is dropped in time, although it keeps sending.
    def gone(client):
        with contextlib.suppress(ConnectionError):
            client.settimeout(0.01)
            try:
                client.send(b'x')
                return client.recv(1) == b''
            except TimeoutError:
                return False
        return True
    assert gone(slow[0])
    assert not gone(slow[-1])
    wait_until(lambda: gone(slow[-1]), 'sent away')
    for client in slow:
        client.close()


def test_a_client_that_leaves_is_no_harm(page):
    for _ in range(20):
        with page.connect() as client:
            client.sendall(b'GET /chart.js HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert page.get('/healthz')[0] == 200


def test_the_hour_outlives_a_restart(gateway, directory, manager):
    page = Page(gateway, directory)
    with page:
        page.wait_for(lambda data: data['newest']['values'].get('rate/gold'), 'a slot')
        page.end()
    manager.close()     # the history must come from the earlier run
    with page:
        history = page.json('/history.json')
        assert any(value for value in history['columns']['rate/gold'])
        page.end()
    file = directory / 'state/history'
    assert [path.name for path in (directory / 'state').iterdir()] == ['history']
    file.write_bytes(b'\0garbage\n' * 1000)
    with page:
        assert page.json('/history.json')['columns'] == {}
        assert 'the history starts empty' in page.end()


def test_squid_goes_and_comes_back(page, manager):
    manager.status = 403
    data = page.wait_for(lambda data: data['trouble'], 'trouble')
    assert 'http_access' in data['trouble'] and page.get('/healthz')[0] == 503
    polls = manager.polls
    wait_until(lambda: manager.polls > polls + 2, 'more polls')
    manager.status = None
    page.wait_for(lambda data: data['trouble'] == '', 'Squid again')
    said = page.end().splitlines()
    assert [line for line in said if '403' in line] == [line for line in said if 'http_access' in line]
    assert len([line for line in said if '403' in line]) == 1, 'once, however often it is asked'


def test_squid_is_down(page, manager):
    """Once, /user then blamed the server on the basis of stale figures."""
    manager.close()
    data = page.wait_for(lambda data: data['trouble'] and data['age'] > 2, 'Squid is missed')
    assert data['trouble'].startswith('Squid at 127.0.0.1:3128 does not answer: users have no web while their '
                                      'connections are sent to it. Start Squid')
    user = page.json('/user.json?name=10.0.0.1')
    assert user['why'] == [data['trouble']] and user['age'] > 2


#: The manager's reports: as recorded while three requests waited, and variants of them.
BUSY = {action: (ROOT / 'test/msfrsctl' / f'busy.{end}').read_text()
        for action, end in (('msfrs', 'yaml'), ('msfrs-metrics', 'metrics'))}
BUSY['msfrs-users'] = BUSY['msfrs'].partition('\ntop_')[2]
IDLE = {**BUSY, 'msfrs': re.sub(r'(?s)\nheld:.*', '\nheld: []\n', BUSY['msfrs'].replace(
    'holding: yes, because 3 wait and the window is full', 'holding: no, because nobody waits'))}
SITUATIONS = {
    'it waits': BUSY, 'nothing waits': IDLE,
    'weights are not enforced': {
        **IDLE, 'msfrs': IDLE['msfrs'].replace('nobody waits', 'weights not enforced yet, because each has a slot'),
        'msfrs-metrics': IDLE['msfrs-metrics'].replace('utilisation_ratio 0\n', 'utilisation_ratio 0.99\n')},
    'much bypasses Squid': {**BUSY, 'msfrs': BUSY['msfrs'].replace('interval: 60.000', 'interval: 1.000').replace(
        'history: []', 'history:\n' + ''.join(
            f'    - {{ago: {ago}.0, outstanding: 1, limit: 1.00, utilisation: 0.9600, full: true, own: 0.6000}}\n'
            for ago in range(19, -1, -1)).rstrip())},
    'msfrs is off': {'msfrs': 'scheduling: false\nholding: no, because msfrs is off\n',
                     'msfrs-metrics': 'msfrs_scheduling 0\n# EOF\n', 'msfrs-users': 'users: []\n'}}


def said_by_msfrsctl(gateway, directory, name):
    """The sentences of msfrsctl why, with the rate over the same time as on the page."""
    conf = directory / 'squid.conf'
    conf.write_text('http_port 3128\n')
    done = subprocess.run(gateway.enter([sys.executable, '-m', 'msfrsctl', 'why', name, '--json', '--squid-conf',
                                         str(conf), '--engine', str(WHY), '--state', str(directory)]),
                          capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=False)
    return without_seconds(json.loads(done.stdout)['live']['why'])


def without_seconds(sentences):
    """The duration of a poll depends on the machine."""
    return [re.sub(r'in the last \d+ s', 'of late', sentence) for sentence in sentences]


def test_the_command_line_says_the_same(page, gateway, directory, manager):
    names = '198.18.16.1', '10.99.99.99'
    verdicts = []
    for situation, pages in SITUATIONS.items():
        manager.text = pages.__getitem__
        for name in names:
            said = said_by_msfrsctl(gateway, directory, name)
            wait_until(lambda: without_seconds(page.json(f'/user.json?name={name}')['why']) == said,
                       f'{situation}: {name}: {said}')
            verdicts.append(said[0])
    manager.close()
    said = said_by_msfrsctl(gateway, directory, names[0])
    wait_until(lambda: page.json(f'/user.json?name={names[0]}')['why'] == said, said)
    assert len({*verdicts, said[0]}) == 7, 'of each situation, that nobody knows the name, and that Squid is down'


def test_no_page_of_the_manager_ends_it(page, manager):
    text = manager.text
    for wrong in ('', '<html>', '\0' * 1000, 'a{b="' * 1000, 'msfrs_scheduling 1\n', 'held:\n  - {user: "'):
        manager.text = lambda action, wrong=wrong: wrong
        page.wait_for(lambda data: data['trouble'].startswith('mgr:msfrs'), 'a page that is refused')
        manager.text = text
        page.wait_for(lambda data: data['trouble'] == '', 'a page that is right')


def test_with_squid(slow_link):
    """The patched Squid itself, and its waiting requests."""
    squid = slow_link.gateway.start()
    load = slow_link.users.load(slow_link.world.users, inflight=3, size=30_000)
    with Page(slow_link.world.gateway, slow_link.gateway.directory) as page:
        users = page.wait_for_users(lambda users: users and users[0]['rate'], 'users with rates')
        data = page.wait_for(lambda data: data['held'] and all(row['rate'] for row in data['classes']),
                             'users that wait')
        assert data['trouble'] == '' and data['link']['rate'] == slow_link.world.rate_bps
        assert {row['user'] for row in users} == {user.v4 for user in slow_link.world.users}
        who = data['held'][0]['user']
        assert page.json(f'/user.json?name={who}')['classes'][0]['class'] in slow_link.world.weights
        assert [fetch for fetch in load.stop() if not fetch.good] == []
        squid.rest()
        page.wait_for(lambda data: data['held'] == [], 'nobody who waits')


def test_its_end_harms_no_traffic(slow_link):
    """It is killed during a query; then another client sends the same query and never reads the response."""
    squid = slow_link.gateway.start()
    load = slow_link.users.load(slow_link.world.users, inflight=3, size=30_000)
    where = slow_link.world.gateway
    deaf = [where.socket(socket.AF_INET, socket.SOCK_STREAM, peer=('127.0.0.1', FORWARD_PORT), timeout=PATIENCE)
            for _ in range(20)]
    for client in deaf:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.sendall(b'GET /squid-internal-mgr/msfrs HTTP/1.1\r\nHost: localhost\r\n\r\n')
    page = Page(where, slow_link.gateway.directory)
    for _ in range(5):
        with page:
            page.wait_for(lambda data: data['held'], 'who waits')
            page.kill()
    before = sum(load.bytes().values())
    squid.wait_until(lambda: sum(load.bytes().values()) > before + 100_000, 'traffic goes on')
    for client in deaf:
        client.close()
    assert [fetch for fetch in load.stop() if not fetch.good] == []
    squid.rest()
