# SPDX-License-Identifier: GPL-2.0-or-later
"""Users with browsers: their pages, Chromium's protocol against a stand-in, and the figures from known paints."""
import asyncio
import itertools
import json
import re
import textwrap
import zlib

import pytest

import simulated
import synthetic
from fieldtrial.analysis import answers, runs, verdict, wording
from fieldtrial.analysis.measures import Measures
from fieldtrial.analysis.stats import StatsError
from fieldtrial.load import workloads
from fieldtrial.load.merge import write_csv
from fieldtrial.load.traffic import browsing, client, devtools, offers, records, run as running
from fieldtrial.load.traffic.records import PAGE_COLUMNS
from fieldtrial.report import columns, table
from fieldtrial.site import addresses, grid, pages

NAMES = [f's{number:02d}.test' for number in range(1, 13)]


# --- pages -----------------------------------------------------------------------------------------------------------

def test_pages_depend_on_the_seed_alone():
    once, again, other = (pages.Pages(seed, NAMES) for seed in (1, 1, 2))
    assert once.document('s03.test', 2) == again.document('s03.test', 2)
    assert len({made.document('s03.test', number) for made in (once, other) for number in range(pages.PAGES)}) == 8


def test_a_page_takes_parts_of_each_kind_from_three_servers():
    text = pages.Pages(1, NAMES).document('s03.test', 2)
    head, body = text.split('<body>')
    assert [head.count(text) for text in ('rel="stylesheet"', '<script src', '<script async')] == [2, 1, 2]
    assert body.count('<img') == 11
    hosts = set(re.findall('https://([^/]+)/', text))
    assert 's03.test' in hosts and 2 <= len(hosts) <= 3
    assert set(re.findall(r'href="https://([^/]+)/', text)) == {'s03.test'}


def test_one_server_has_pages_too():
    assert set(re.findall('https://([^/]+)/', pages.Pages(1, ['s01.test']).document('s01.test', 0))) == {'s01.test'}


def test_every_part_is_a_file_of_its_size(tmp_path):
    made = pages.Pages(1, NAMES[:3])
    made.write(tmp_path)
    for name in NAMES[:3]:
        for number in range(pages.PAGES):
            path = pages.path(name, number)
            text = (tmp_path / path[1:]).read_text()
            assert made.size(path) == len(text)
            for part in re.findall(r'https://[^/]+(/[^"]+)', text):
                assert made.size(part) == (tmp_path / part[1:]).stat().st_size


@pytest.mark.parametrize('size', [pages.LEAST, grid.nearest(12_000), pages.MOST])
def test_a_picture_is_a_whole_png(size):
    made = pages.part_of('png', size)
    assert len(made) == size and made.startswith(b'\x89PNG\r\n\x1a\n')
    at, kinds = 8, []
    while at < size:
        length, kind = int.from_bytes(made[at:at + 4], 'big'), made[at + 4:at + 8]
        assert zlib.crc32(made[at + 4:at + 8 + length]) == int.from_bytes(made[at + 8 + length:at + 12 + length], 'big')
        if kind == b'IHDR':
            wide, high = (int.from_bytes(made[at + 8 + place:at + 12 + place], 'big') for place in (0, 4))
        if kind == b'IDAT':
            assert len(zlib.decompress(made[at + 8:at + 8 + length])) == high * (1 + wide // 4)
        kinds.append(kind)
        at += 12 + length
    assert kinds == [b'IHDR', b'IDAT', b'fiLl', b'IEND']
    assert 1.3 < wide / high < 1.7


# --- the workload ----------------------------------------------------------------------------------------------------

def test_a_user_stays_on_a_site_for_a_visit(tmp_path):
    servers = [simulated.server(name, '198.19.0.1') for name in NAMES]
    spec = simulated.spec(tmp_path, workload='browser', servers=servers)
    run = type('Run', (), {'offers': offers.Offers(spec, lambda user: spec.servers)})

    def visits(user):
        return [(server.name, number, pause) for server, number, pause in
                itertools.islice(spec.model.visits(run, user), 30)]
    first, second = visits(spec.users[0]), visits(spec.users[1])
    assert first == visits(spec.users[0]) != second
    for place in range(0, 30, 3):
        assert len({server for server, _, _ in first[place:place + 3]}) == 1
        assert len({number for _, number, _ in first[place:place + 3]}) == 3
    assert sum(pause for _, _, pause in first) / 30 == pytest.approx(5, rel=0.5)


def test_the_first_users_of_each_class_have_browsers():
    model = workloads.get('browser')({'browsers': 1, 'beside': 3})
    assert model.population(['gold', 'bronze'], 12) == {'gold': 4, 'bronze': 4}
    users = addresses.users(['gold', 'bronze'], [4, 4])
    assert [user.name for user in model.browsers(users)] == ['gold-1', 'bronze-1']
    assert [workloads.get(name)().browsers(users) for name in ('video', 'https-pages')] == [(), ()]


def test_users_of_unix_are_those_that_debian_assigns_to_nobody():
    assert (addresses.uid(0), addresses.uid(533)) == (65000, 65533)
    with pytest.raises(ValueError, match='user 534: only 534 users'):
        addresses.uid(534)


# --- Chromium's protocol ---------------------------------------------------------------------------------------------

#: Reads commands from descriptor 3 and answers on 4, as Chromium does. Loads any page at once, with two requests.
STAND_IN = '''\
#!/usr/bin/python3
import json, os, sys, time
commands, answers = os.fdopen(3, 'rb'), os.fdopen(4, 'wb', 0)
left = b''

def say(**message):
    answers.write(json.dumps(message).encode() + b'\\0')

def event(method, **params):
    say(method=method, params=params, sessionId='s')

def load(url):
    now = time.monotonic()
    part = 'https://s02.test/pages/1000.css'
    for number, where in enumerate((url, part)):
        event('Network.requestWillBeSent', requestId=str(number), request={'url': where}, timestamp=now)
        event('Network.responseReceived', requestId=str(number), timestamp=now + 0.3,
              response={'status': 200, 'protocol': 'h2', 'timing': {'requestTime': now, 'receiveHeadersEnd': 100}})
        if number:
            event('Network.dataReceived', requestId=str(number), dataLength=SHORT, timestamp=now + 0.2)
            event('Network.loadingFinished', requestId=str(number), timestamp=now + 0.2)
    told = [('fcp', 40), ('lcp', 40), ('lcp', 90)] + ([('load', 120)] if LOADS else [])
    for what, ms in told:
        event('Runtime.bindingCalled', name='msfrsTell', payload=json.dumps([url, what, ms]))

while True:
    piece = os.read(3, 65536)
    if not piece:
        sys.exit()
    *whole, left = (left + piece).split(b'\\0')
    for text in whole:
        said = json.loads(text)
        if said['method'] == 'Page.crash':
            sys.exit('out of memory')
        if said['method'] == 'Page.wrong':
            say(id=said['id'], error={'message': 'no such command'})
            continue
        say(id=said['id'], result={'targetInfos': [{'type': 'page', 'targetId': 't'}], 'sessionId': 's'})
        if said['method'] == 'Page.navigate':
            load(said['params']['url'])
'''


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Makes it Chromium. loads: whether pages are loaded completely. short: bytes of the style that arrive."""
    def install(loads=True, short=1000):
        program = tmp_path / 'chromium-stand-in'
        program.write_text(STAND_IN.replace('LOADS', str(loads)).replace('SHORT', str(short)))
        program.chmod(0o755)
        monkeypatch.setattr(devtools, 'PROGRAM', str(program))
    return install


def test_a_command_has_its_own_answer_and_errors_are_raised(tmp_path, stand_in):
    stand_in()

    async def ask():
        heard = []
        chromium = devtools.Chromium(tmp_path, lambda method, params: heard.append(method))
        await chromium.start()
        await asyncio.gather(*(chromium.ask(f'{name}.enable') for name in ('Page', 'Network')))
        with pytest.raises(devtools.CommandError, match='no such command'):
            await chromium.ask('Page.wrong')
        with pytest.raises(devtools.EndedError, match='(?s)chromium has ended.*out of memory'):
            await chromium.ask('Page.crash')
        with pytest.raises(devtools.EndedError):
            await chromium.ask('Page.enable')
        await chromium.close()
        return heard
    assert asyncio.run(asyncio.wait_for(ask(), 60)) == ['Inspector.detached']


def load(tmp_path, monkeypatch, cancel=False):
    """A page in the stand-in: (result, rows of pages.csv, rows of requests.csv) as dictionaries."""
    monkeypatch.setattr(browsing, 'SETTLE_S', 0.0)
    monkeypatch.setattr(browsing.Browser, 'PREFIX', ())
    monkeypatch.setattr(browsing.os, 'chown', lambda *_: None)
    out = tmp_path / 'records'
    out.mkdir()
    spec = simulated.spec(out, workload='browser', counts=(1, 0, 0))

    async def browse():
        clients = client.Clients(simulated.spec(out))
        recorder = records.Records(out, spec.mine)
        loop = asyncio.get_running_loop()
        run = running.Run(offers.Offers(spec, clients.reachable), clients, recorder, loop, loop.time())
        browser = browsing.Browser(run, spec.users[0])
        await browser.start()
        task = asyncio.create_task(browser.load('gold-1-p1', spec.servers[0], 2))
        if cancel:
            while not (browser._page and browser._page.told.get('lcp') == 0.09):
                await asyncio.sleep(0)
            task.cancel()
        done, = await asyncio.gather(task, return_exceptions=True)
        await browser.aclose()
        await clients.close()
        recorder.close()
        return done
    done = asyncio.run(asyncio.wait_for(browse(), 60))
    return done, *(simulated.Outcome._rows(out, name) for name in ('pages.csv', 'requests.csv'))


def test_a_page_is_recorded_as_the_browser_measured_it(tmp_path, stand_in, monkeypatch):
    size = pages.Pages(7, ('s01.test', 's02.test')).size(pages.path('s01.test', 2))
    stand_in()
    monkeypatch.setattr(pages.Pages, 'size', lambda self, path: 0 if path.endswith('html') else 1000)
    done, (page,), requests = load(tmp_path, monkeypatch)
    assert size > 10_000 and not done and page['outcome'] == 'error', 'the document has not ended'
    assert float(page['t_end']) - float(page['t_start']) == pytest.approx(0.12, abs=1e-3)
    assert (page['fcp_s'], page['lcp_s'], page['objects'], page['bytes']) == ('0.0400', '0.0900', '2', '1000')
    style, document = sorted(requests, key=lambda row: row['kind'], reverse=True)
    assert (style['kind'], style['outcome'], style['server'], style['scheme']) == ('object', 'ok', 's02.test', 'h2')
    assert float(style['t_first_byte']) - float(style['t_start']) == pytest.approx(0.1, abs=1e-3)
    assert float(style['t_end']) - float(style['t_start']) == pytest.approx(0.2, abs=1e-3)
    assert (document['kind'], document['outcome']) == ('document', 'unfinished')


def test_a_page_that_is_cut_keeps_its_first_paint_but_no_largest(tmp_path, stand_in, monkeypatch):
    stand_in(loads=False)
    done, (page,), _ = load(tmp_path, monkeypatch, cancel=True)
    assert isinstance(done, asyncio.CancelledError)
    assert (page['outcome'], page['complete'], page['fcp_s'], page['lcp_s']) == ('unfinished', '0', '0.0400', '')


def test_a_short_part_is_an_error(tmp_path, stand_in, monkeypatch):
    stand_in(short=999)
    _, (page,), requests = load(tmp_path, monkeypatch)
    assert page['outcome'] == 'error' and 'error' in {row['outcome'] for row in requests}


def test_it_knows_the_servers_and_nothing_else(tmp_path):
    spec = simulated.spec(tmp_path, workload='browser', users=[simulated.user('gold-1', 'gold', '2001:2::5')],
                          servers=[simulated.server('s01.test', '198.19.0.1', '2001:2:0:8001::1'),
                                   simulated.server('s02.test', '198.19.0.2')])
    browser = browsing.Browser.__new__(browsing.Browser)
    browser._run = type('Run', (), {'road': staticmethod(client.Clients.road)})
    browser._user, browser._servers = spec.users[0], {server.name: server for server in spec.servers}
    assert browser.flags()[-1] == '--host-resolver-rules=MAP s01.test [2001:2:0:8001::1], MAP * ~NOTFOUND'


# --- figures ---------------------------------------------------------------------------------------------------------

def cell(tmp_path, rows, arm='msfrs', seed=1):
    """Pages of `rows`: (class, load in s, outcome, FCP, LCP), one a second from 20 s on."""
    path = tmp_path / 'run' / f'{arm}-{seed}'
    synthetic.make_cell(path, synthetic.Arm(arm), 'browser', rate_bps=4e6, browsers=2, seed=seed)
    write_csv(path / 'pages.csv', PAGE_COLUMNS, [
        (20 + t, 20 + t + load_s, f'{name}-1', name, 17, 4e5, int(outcome == 'ok'), f'p{t}', outcome, fcp, lcp)
        for t, (name, load_s, outcome, fcp, lcp) in enumerate(rows)])
    return Measures(runs.read_cell(path))


def test_paints_are_known_for_pages_that_are_not_finished(tmp_path):
    measures = cell(tmp_path, [('gold', 4.0, 'ok', 1.0, 2.0), ('gold', 6.0, 'ok', 1.5, 3.0),
                               ('gold', 40.0, 'unfinished', 2.0, ''), ('gold', 9.0, 'error', 0.1, 0.1),
                               ('bronze', 30.0, 'unfinished', '', '')])
    fcp, lcp, whole = (measures.page_sample('gold', column=column) for column in ('fcp_s', 'lcp_s', None))
    assert [sample.quantile(0.5) for sample in (fcp, lcp, whole)] == [1.5, 3.0, 6.0]
    assert [sample.quantile(0.95) for sample in (fcp, lcp, whole)] == [2.0, float('inf'), float('inf')]
    assert measures.page_outcomes('gold') == {'error': 1, 'ok': 2, 'unfinished': 1}
    assert measures.page_sample('bronze', column='fcp_s').quantile(0.5) == float('inf')


def test_the_report_has_a_table_by_arm_and_class(tmp_path):
    for arm in ('stock', 'msfrs'):
        cell(tmp_path, [(name, 4.0, 'ok', 1.0, 2.0) for name in ('gold', 'silver')] +
             [('bronze', 40.0, 'unfinished', 2.0, '')], arm)
    groups = verdict.by_condition([Measures(each) for each in runs.read_run(tmp_path / 'run').cells])
    (heads, rows), = columns.by_class(table.alone(groups[0]))
    assert [column.head for column in heads[:5]] == ['pages', 'cut', 'failed', 'FCP', 'FCP p95'] and len(rows) == 6
    assert rows[0] == [wording.arm('stock'), 'gold', '1', '0', '0', '1.00', '1.00', '2.00', '2.00', '4.00', '4.00']
    assert rows[-1] == ['MSF-RS', 'bronze', '1', '1', '0', '2.00', '2.00', *4 * ['-']]
    lines = table.arms_text(groups).splitlines()
    assert [line.split() for line in lines].count(' '.join(rows[-1]).split()) == 1
    assert max(map(len, lines)) <= table.WIDTH


def test_of_several_seeds_the_table_has_the_mean_and_the_spread(tmp_path):
    for seed, scale in ((1, 1.0), (2, 1.5), (3, 2.0)):
        for arm in ('stock', 'msfrs'):
            cell(tmp_path, [('gold', 4.0 * scale, 'ok', 1.0 * scale, 2.0 * scale)] * seed +
                 [('bronze', 40.0, 'unfinished', scale, '')], arm, seed)
    groups = verdict.by_condition([Measures(each) for each in runs.read_run(tmp_path / 'run').cells])
    same, = verdict.over_seeds(groups)
    (_, rows), = columns.by_class(verdict.merged(same))
    assert rows[0][1:7] == ['gold', '2 (1 to 3)', '0', '0', *2 * ['1.50 (1.00 to 2.00)']]
    assert rows[0][7] == '3.00 (2.00 to 4.00)' and rows[0][9] == '6.00 (4.00 to 8.00)'
    assert rows[1][5:] == [*2 * ['1.50 (1.00 to 2.00)'], *4 * ['-']], 'no page of bronze was complete'
    told = {each.topic: each for each in answers.told(groups)}['Painting']
    assert told.clauses[0] == "a gold user's page shows something in 1.50 s instead of 1.50 s with unmodified Squid"
    assert '  gold: FCP, s: unmodified Squid 1.50 (1.00 to 2.00), MSF-RS 1.50 (1.00 to 2.00)' in \
        table.arms_text(groups).splitlines()


def test_pages_without_a_browser_have_no_paints(tmp_path):
    path = tmp_path / 'run' / 'msfrs'
    synthetic.make_cell(path, synthetic.Arm('msfrs'), 'https-pages', pages=True, idle=0)
    measures = Measures(runs.read_cell(path))
    with pytest.raises(StatsError, match='no page has fcp_s'):
        measures.page_sample('gold', column='fcp_s')
    assert not list(columns.by_class({'msfrs': [measures]}))
