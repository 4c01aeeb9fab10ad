# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages of msfrs-page in a browser."""
import contextlib
import json
import math
import os
import pathlib
import time
from urllib.parse import quote

import pytest

import browser as browsers
from background import wait_until
from fieldtrial.base.paths import MODULES
from page_fixtures import HOSTILE, QUOTA, TOKEN, directory, gateway, manager  # noqa: F401 (fixtures)
from page_service import CHART, PORT, Page

STEP, SLOTS = 5, 720        #: of the history: seconds of a slot, number of slots
#: Where screenshots of the page are stored for inspection.
PICTURES = os.environ.get('MSFRS_TEST_PICTURES')
#: Deque's checks of accessibility (scripts/packages).
AXE = MODULES / 'axe_core_python/axe.min.js'


@pytest.fixture
def browser(gateway, directory):
    if why := browsers.devtools.missing():
        pytest.skip(why)
    with contextlib.closing(browsers.Browser(gateway, directory)) as made:
        yield made


URL = f'http://localhost:{PORT}'
READY = 'document.documentElement?.dataset.ready'


def picture(browser, directory, name):
    path = pathlib.Path(PICTURES or directory) / f'{name}.png'
    browser.screenshot(path)
    assert path.stat().st_size > 20_000, 'more than an empty page'


def assert_accessible(browser):
    """axe finds nothing on the page as it is now. Says nothing where PyPI cannot be reached."""
    if AXE.exists():
        browser.evaluate(f'{AXE.read_text()};0')
        assert browser.evaluate('''axe.run().then(({ violations }) => violations.flatMap(
            ({ help, nodes }) => nodes.map(({ html }) => `${help}: ${html}`)))''') == []


def write_history(file, columns):
    """An hour as saved by the page. columns: saved name to the value of its slots."""
    newest = int(time.time() / STEP)
    text = f'msfrs-page history 1\nstep {STEP} slots {SLOTS} newest {newest}\n'
    for name, value in columns.items():
        text += f'{name} {" ".join("-" if 300 < n < 330 else f"{value(n):.4g}" for n in range(SLOTS))}\n'
    file.write_text(text + 'end\n')


@pytest.fixture
def full(gateway, directory, manager):
    """A page with an hour of history, and many users of several classes."""
    manager.users = [(f'10.20.{n % 3}.{n}', manager.names[n % 3], 1000 * (40 - n)) for n in range(40)]
    manager.held += [('10.20.0.3', 'gold', f'cdn{n}.with.a.long.name.example', 2.0 - n / 10, 'response')
                     for n in range(5)]
    manager.quotas = {'gold': (QUOTA, [('10.20.0.3', 3 << 20), ('10.20.0.6', 1 << 19)])}
    made = Page(gateway, directory)
    def wave(n, length):
        return 1 + math.sin(n / length)
    columns = {'utilisation': lambda n: 0.8 + 0.1 * wave(n, 40), 'own': lambda n: 0.6 + 0.1 * wave(n, 40),
               'limit': lambda n: 6 + 2 * wave(n, 70), 'outstanding': lambda n: 5 + 2 * wave(n, 70),
               'queue': lambda n: 0.03 * wave(n, 25), 'refused': lambda n: float(n % 90 == 0),
               'excess': lambda n: 1e5 * wave(n, 50)}
    for index, name in enumerate(manager.names):
        columns[f'rate/{name}'] = lambda n, index=index: 8e5 / 2**index * (0.5 + 0.25 * wave(n, 30 + index))
        columns[f'waiting/{name}'] = lambda n, index=index: round(3 * index * wave(n, 20))
        columns[f'held/{name}'] = lambda n, index=index: 0.4 * (index + 1) * wave(n, 35)
    write_history(made.state / 'history', columns)
    with made:
        made.wait_for_users(lambda users: len(users) == 40 and users[0]['rate'], 'the users')
        yield made


@pytest.mark.parametrize('name, width, dark', [('light', 1200, False), ('dark', 1200, True), ('phone', 360, False),
                                               ('phone-dark', 360, True)])
def test_a_browser(full, browser, directory, name, width, dark):
    assert CHART.exists(), 'scripts/install-packages page'
    browser.shape(width, 800, dark=dark, phone=width < 500)
    browser.open(URL)
    browser.wait_until(READY)
    browser.evaluate('byId("range").value = "60", byId("range").dispatchEvent(new Event("change"))')
    browser.wait_until('Chart.getChart(document.querySelector("#plot-rates canvas")).data.datasets.length === 3')
    picture(browser, directory, name)
    assert_accessible(browser)
    assert browser.evaluate('document.documentElement.scrollWidth') <= width, 'nothing to be scrolled sideways'
    assert browser.evaluate('document.querySelectorAll("#users tbody tr").length') == 25
    browser.evaluate('byId("all-users").click()')
    assert browser.evaluate('document.querySelectorAll("#users tbody tr").length') == 40
    assert browser.evaluate('byId("quota-section").innerText.includes("10.20.0.3")'), 'shown, and not hidden'
    light, ink = (browser.evaluate(f'getComputedStyle(document.body).{what}') for what in ('backgroundColor', 'color'))
    brightness = [sum(int(part) for part in colour.strip('rgb()').split(',')) for colour in (light, ink)]
    assert (brightness[0] < brightness[1]) == dark
    # The browser asked no other server, and reported no errors.
    assert browser.requests and all(url.startswith(URL + '/') for url in browser.requests), browser.requests
    assert browser.complaints == []
    paint = browser.evaluate('performance.getEntriesByName("first-contentful-paint")[0].startTime')
    print(f'first paint after {paint:.0f} ms')


def test_the_legend_has_the_dashes_of_the_lines(full, browser):
    """By the pixels of each sample: how often it begins again after a gap."""
    browser.open(URL)
    browser.wait_until(READY)
    browser.wait_until('Chart.getChart(document.querySelector("#plot-link canvas")).data.datasets.length === 4')
    pieces = browser.evaluate('''(({ legend, canvas, ctx, currentDevicePixelRatio: ratio }) => (
        legend.legendHitBoxes.map(({ left, top, height }) => {
            const [x, y, width] = [left, top + height / 2 - 3, 28].map((at) => Math.round(at * ratio));
            const { data } = ctx.getImageData(x, y, width, Math.round(6 * ratio));
            const ink = Array.from({ length: width }, (_, n) => {
                let sum = 0;
                for (let at = 4 * n + 3; at < data.length; at += 4 * width)
                    sum += data[at];
                return sum;
            });
            const most = Math.max(...ink);
            return ink.filter((here, n) => here > most / 2 && !(ink[n - 1] > most / 2)).length;
        })))(Chart.getChart(document.querySelector("#plot-link canvas")))''')
    assert pieces[0] == 1 and pieces[1] == 3 and pieces[2] >= 6 and pieces[3] >= 4, pieces


def test_a_browser_while_squid_is_down(full, browser, directory, manager):
    """Stale figures are grey and show their age."""
    def grey(part):
        return browser.evaluate(f'getComputedStyle(byId("{part}")).filter') == 'grayscale(1)'
    browser.shape(1200, 800)
    browser.open(URL)
    browser.wait_until(READY)
    assert not grey('main')
    assert '1 user waits, for 3.5 s, of class bronze. ' in browser.evaluate('byId("now").innerText')
    assert 'W+' not in browser.evaluate('document.body.innerText'), 'terms of the algorithm are behind details'
    picture(browser, directory, 'now')
    manager.close()
    browser.wait_until('byId("main").classList.contains("old")')
    assert grey('main')
    assert 'users have no web' in browser.evaluate('byId("now").innerText')
    assert ' old.' in browser.evaluate('byId("status").innerText')
    picture(browser, directory, 'down')
    browser.open(f'{URL}/user?name=10.20.0.3')
    browser.wait_until(f'location.pathname === "/user" && {READY}')
    assert 'users have no web' in browser.evaluate('byId("verdict").innerText')
    assert grey('figures') and not grey('main')
    assert 'the server' not in browser.evaluate('document.body.innerText')
    picture(browser, directory, 'user-down')


def test_a_browser_shows_one_count_of_who_waits(full, browser, manager):
    """The rows of users say 1 for each; the page once showed that next to "Nothing waits"."""
    manager.held = []
    full.wait_for(lambda data: data['held'] == [], 'nobody waits')
    browser.shape(1200, 800)
    for path, held, what in (('/', 'now', 'Nobody waits.'),
                             ('/user?name=10.20.0.3', 'held', 'Nothing waits.')):
        browser.open(URL + path)
        browser.wait_until(f'location.pathname === {json.dumps(path.partition("?")[0])} && {READY}')
        assert what in browser.evaluate(f'byId("{held}").innerText')
        assert path != '/' or browser.evaluate('byId("held-section").hidden')
        waiting = browser.evaluate('''[...document.querySelectorAll("table")].flatMap((table) => {
            const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.innerText === "Waiting or paused");
            return at < 0 ? [] : [...table.tBodies[0].rows].map((row) => row.cells[at].innerText); })''')
        assert set(waiting) <= {'0'}


def test_it_can_be_read_without_seeing_it(full, browser):
    browser.shape(1200, 800)
    browser.open(URL)
    browser.wait_until(READY)
    # Each plot has a name that states its figures, and a table.
    names = browser.evaluate('[...document.querySelectorAll("canvas[role=img]")].map((c) => c.ariaLabel)')
    assert len(names) == 7 and all('now: ' in name for name in names)
    browser.evaluate('document.querySelectorAll("details").forEach((d) => { d.open = true; })')
    browser.wait_until('document.querySelectorAll("figure details table tbody tr").length === 7 * 15')
    nodes = browser.ask('Accessibility.getFullAXTree')['nodes']
    roles = [node['role']['value'] for node in nodes if not node['ignored']]
    assert roles.count('main') == roles.count('banner') == 1 and roles.count('status') == 2
    named = {'button', 'link', 'searchbox', 'combobox', 'image', 'region', 'heading'}
    assert named | {'table', 'columnheader', 'rowheader'} <= set(roles)
    assert [node for node in nodes if not node['ignored'] and node['role']['value'] in named
            and not node.get('name', {}).get('value')] == []


def test_it_can_be_used_without_a_mouse(full, browser, manager):
    browser.shape(1200, 800)
    browser.open(URL)
    browser.wait_until(READY)
    browser.press('Tab')
    assert browser.evaluate('document.activeElement.className') == 'skip'
    for _ in range(60):
        browser.press('Tab')
        if browser.evaluate('document.activeElement.matches("#users a")'):
            break
    name = browser.evaluate('document.activeElement.textContent')
    # Polls continue in another order: the focus stays on the same item.
    manager.users = list(reversed([(user, cls, 1000 + n) for n, (user, cls, _) in enumerate(manager.users)]))
    polls = manager.polls
    full.wait_for_users(lambda users: users[0]['user'] != name, 'another order')
    wait_until(lambda: manager.polls > polls + 2, 'more polls')
    assert browser.evaluate('document.activeElement.textContent') == name
    browser.press('Enter')
    browser.wait_until(f'location.pathname === "/user" && {READY}')
    assert browser.evaluate('document.getElementById("who").textContent') == name
    assert browser.complaints == []


def test_the_rate_of_a_class_is_a_mean(full, browser):
    """Polls that count a burst of five seconds at once show its mean, once all of it is seen."""
    browser.shape(1200, 800)
    browser.open(URL)
    browser.wait_until(READY)
    polls = '[null, 0, 50, 0, 0, 0, 50, 0]'
    means = browser.evaluate(f'{polls}.map((rate) => meanRate({{ name: "burst", rate }}))')
    assert means == pytest.approx([None, 0, 25, 50 / 3, 12.5, 10, 20, 10])


def test_search_and_sort(full, browser):
    browser.shape(1200, 800)
    browser.open(URL)
    browser.wait_until(f'{READY} && document.querySelector("#users a")')
    first = 'document.querySelector("#users tbody tr").cells'
    browser.evaluate('document.querySelector("[data-sort=name]").click()')
    assert browser.evaluate(f'{first}[0].innerText') == '10.20.0.0'
    assert browser.evaluate('document.querySelector("[aria-sort]").innerText').startswith('User')
    browser.evaluate('document.querySelector("[data-sort=name]").click()')
    assert browser.evaluate(f'{first}[0].innerText') == '10.20.2.38', 'by number, and descending'
    browser.evaluate('byId("name").value = "SILVER", byId("name").dispatchEvent(new Event("input"))')
    assert browser.evaluate(f'{first}[1].innerText') == 'silver'
    assert browser.evaluate('byId("user-count").innerText') == 'Shown: 13 of 13 found among 40 known now.'
    browser.evaluate('byId("name").value = "10.20.2.38", byId("name").dispatchEvent(new Event("input"))')
    browser.evaluate('byId("name").form.requestSubmit()')
    browser.wait_until(f'location.pathname === "/user" && {READY}')
    assert browser.evaluate('byId("who").innerText') == '10.20.2.38'


@pytest.mark.parametrize('language, words', [('en-GB,en', 'Your class is gold.'),
                                             ('de-AT,de', 'Ihre Klasse ist gold.')])
def test_a_user_in_its_language(full, browser, manager, directory, language, words):
    manager.users.append(('127.0.0.1', 'gold', 10**6))
    full.wait_for_users(lambda users: users[0]['user'] == '127.0.0.1', 'the user')
    browser.shape(390, 800, phone=True)
    browser.ask('Network.setUserAgentOverride', userAgent='test', acceptLanguage=language)
    browser.open(f'{URL}/me')
    browser.wait_until(READY)
    assert words in browser.evaluate('document.body.innerText')
    assert browser.evaluate('document.documentElement.lang') == language[:2]
    assert browser.evaluate('document.documentElement.scrollWidth') <= 390
    picture(browser, directory, f'me-{language[:2]}')
    assert_accessible(browser)
    assert browser.complaints == []


def test_a_boost(gateway, directory, manager, browser):
    """The page leaves a file for msfrsctl, which test/msfrsctl/test_set.py has take it."""
    secret = directory / 'token'
    secret.write_text(TOKEN + '\n')
    secret.chmod(0o600)
    bearer = f'Bearer {TOKEN}'
    with Page(gateway, directory, f'token {secret}', f'boost {directory}/state/boosts') as page:
        def boost(name, **headers):
            return page.get(f'/boost?name={name}', method='POST', **headers)[0]
        wait_until(lambda: '10.0.0.2' in page.get('/users.json', Authorization=bearer)[2], 'the users')
        assert boost('10.0.0.2', X_Msfrs_Boost='yes') == 401
        assert boost('10.0.0.2', Authorization=bearer) == 403
        assert boost('10.9.9.9', Authorization=bearer, X_Msfrs_Boost='yes') == 404
        boosts = directory / 'state/boosts'
        assert list(boosts.iterdir()) == []
        browser.ask('Network.setExtraHTTPHeaders', headers={'Authorization': bearer})
        browser.shape(1280, 800)
        browser.open(f'{URL}/user?name=10.0.0.2')
        browser.wait_until(f'{READY} && !byId("boosting").hidden')
        browser.evaluate('byId("boost").click()')
        browser.wait_until('byId("boosted").innerText.startsWith("Asked for.")')
        assert browser.evaluate('getComputedStyle(byId("boost")).borderStyle') == 'dashed', 'it can be pressed once'
        picture(browser, directory, 'boost')
        for dark in False, True:
            browser.shape(1280, 800, dark=dark)
            assert_accessible(browser)
        (made,) = boosts.iterdir()
        assert (made.name, made.stat().st_size, made.stat().st_mode & 0o777) == ('10.0.0.2.boost', 0, 0o600)


def test_a_user_that_is_markup(full, browser, manager, directory):
    manager.users.append((HOSTILE, 'gold', 10**6))
    manager.held.append((HOSTILE, 'gold', '<svg onload=x>', 9, 'request'))
    full.wait_for_users(lambda users: users[0]['user'] == HOSTILE, 'the hostile user')
    browser.shape(1200, 800)
    browser.open(URL)
    browser.wait_until(f'{READY} && document.querySelector("#users a")')
    for _ in range(2):
        assert browser.evaluate('document.querySelectorAll("img, svg, script:not([src])").length') == 0
        assert 'msfrs' in browser.evaluate('document.title')
        browser.open(f'{URL}/user?name={quote(HOSTILE)}')
        browser.wait_until(f'location.pathname === "/user" && {READY}')
    assert browser.evaluate('document.getElementById("who").textContent') == HOSTILE
    picture(browser, directory, 'user')
    assert browser.complaints == []
