# SPDX-License-Identifier: GPL-2.0-or-later
"""A user who has exceeded a quota is moved to another class during downloads, and returns; counts are kept."""
import time

import pytest

from fieldtrial.site.world import WAN
from gateway import SOON
from page_service import Page
from test_ctl import Ctl
from test_excess import Reporter
from test_reports import samples, scrape
from test_shares import assert_shares, measure

MB = 1 << 20
FILE = 'quota'


def lines(gateway, *more, quota='1MB/day', rate='2Mbit', order=('gold', 'silver', 'bronze', 'bulk')):
    """Four classes; gold's users are moved to bulk, whose weight is that of bronze."""
    classes = {'gold': f'weight=4 quota={quota} over=bulk', 'silver': 'weight=2', 'bronze': 'weight=1 default',
               'bulk': 'weight=1'}
    return ('msfrs on', f'msfrs_link rate={rate} interface={WAN}', 'msfrs_window interval=1s', SOON,
            *(f'msfrs_class {name} {classes[name]}' for name in order),
            *(f'msfrs_access {name} allow {name}' for name in ('gold', 'silver', 'bronze')),
            f'msfrs_quota_file {gateway.directory / FILE}', *more)


@pytest.fixture
def link(slow_link):
    """Users of gold and bronze, and a Squid that is started by start()."""
    gateway = slow_link.gateway
    slow_link.gold, slow_link.bronze = slow_link.of('gold')[0], slow_link.of('bronze')[0]
    slow_link.start = lambda *more, **how: gateway.start(*lines(gateway, *more, **how), on=False)
    return slow_link


def busy(gateway, name):
    """Number of requests of a class that wait or are in service."""
    row = gateway.classes()[name]
    return row['queued'] + row['paused'] + row['in_flight']


def quota(gateway):
    """That of gold."""
    return gateway.classes()['gold']['quota']


def quota_user(gateway):
    """The user of gold with the most bytes."""
    return gateway.classes()['gold']['quota_users'][0]


def party(link, **how):
    """(class, class whose quota the user has exceeded) of a request of gold's user, from access.log."""
    before = len(link.gateway.access_log())
    assert link.users.get(link.gold, **how).wait().good
    row = link.gateway.access_log(before + 1)[-1]
    return row['class'], row['over_quota']


def test_the_share_falls_in_the_middle_of_downloads(link):
    """4:1 becomes 1:1, and no download is interrupted or restarted."""
    gateway = link.start(quota='5MB/day')
    load = link.users.load([link.gold, link.bronze], size=8_000_000)
    time.sleep(4.0)
    before, _ = measure(link, load, 14.0)
    assert quota(gateway)['users_over'] == 0
    gateway.wait_until(lambda: quota(gateway)['users_over'] == 1, lambda: quota(gateway))
    assert busy(gateway, 'gold') == 0
    assert busy(gateway, 'bulk') >= 1 and gateway.classes()['bulk']['users'] == 1
    time.sleep(4.0)
    after, used = measure(link, load, 12.0)
    assert all(len(fetches) == 4 for fetches in load.fetches.values()), 'one has ended: the share of what is new'
    assert not any(fetch.finished for fetch in load.all())
    assert_shares(before, {link.gold: 4, link.bronze: 1})
    assert_shares(after, {link.gold: 1, link.bronze: 1})
    assert used > 0.9
    assert 5 * MB <= quota_user(gateway)['bytes'] < 5.3 * MB, 'what comes in bulk is not counted for gold'
    fetches = load.stop(abort=True)
    assert all(fetch.intact for fetch in fetches)
    gateway.rest()
    rows = gateway.access_log(8)
    assert {(row['user'], row['class'], row['over_quota']) for row in rows} == {
        (link.gold.v4, 'bulk', 'gold'), (link.bronze.v4, 'bronze', '-')}


@pytest.mark.link(rate_bps=20e6)
def test_counts_survive_a_restart(link):
    gateway, path = link.start(rate='20Mbit'), link.gateway.directory / FILE
    assert party(link, size=700_000) == ('gold', '-')
    assert party(link, size=10) == ('gold', '-')
    gateway.stop()
    assert path.read_text().startswith('msfrs-quota 1\nclass gold day ')

    link.start(rate='20Mbit')
    assert quota_user(gateway)['user'] == link.gold.v4 and 700_000 < quota_user(gateway)['bytes'] < MB
    assert party(link, size=400_000) == ('bulk', 'gold'), 'it was moved on the way'
    assert party(link, size=10) == ('bulk', 'gold')
    found = samples(scrape(link)[1])
    names = ('bytes', 'users', 'users_over', 'passed_total')
    assert [found[f'msfrs_class_quota_{name}', 'gold'] for name in names] == [MB, 1, 1, 1]
    assert 0 < found['msfrs_class_quota_remaining_seconds', 'gold'] <= 86400
    assert ('msfrs_class_quota_bytes', 'bulk') not in found
    gateway.stop()

    link.start(rate='20Mbit')
    assert party(link, size=10) == ('bulk', 'gold'), 'of which nothing was new'
    assert gateway.classes()['bulk']['quota'] is None
    gateway.stop()

    title, cls, *users = path.read_text().splitlines()
    *of, number = cls.split()
    path.write_text('\n'.join((title, ' '.join((*of, str(int(number) - 1))), *users, '')))
    link.start(rate='20Mbit')
    assert party(link, size=10) == ('gold', '-'), "yesterday's"
    gateway.rest()


@pytest.mark.link(rate_bps=20e6)
@pytest.mark.parametrize('text, says', (
    (b'\x7fELF\n\0\xff', 'line 1: not a file of quotas, which begins with msfrs-quota 1'),
    (b'msfrs-quota 1\nclass gold day 9999999\n9999999 198.18.', 'line 2: the text is truncated here'),
    (None, 'this is no plain file'),
), ids=('strange', 'cut', 'directory'))
def test_a_foreign_file_is_refused_with_one_line(link, text, says):
    path = link.gateway.directory / FILE
    if text is None:
        path.mkdir()
    else:
        path.write_bytes(text)
    gateway = link.start(rate='20Mbit')
    assert party(link, size=10) == ('gold', '-')
    said = [line for line in gateway.cache_log().splitlines() if 'quota' in line and 'WARNING' in line]
    assert len(said) == 1 and said[0].endswith(
        f'WARNING: msfrs: the quotas in {path} are not used: {says}; all users begin from 0, and the file is '
        f'{path}.refused now')
    gateway.stop()
    assert link.gold.v4 in path.read_text()


@pytest.mark.link(rate_bps=20e6)
def test_a_file_that_cannot_be_written_is_reported_and_nothing_else(link):
    gateway = link.gateway
    gateway.start(*lines(gateway, quota='1MB/day', rate='20Mbit')[:-1],
                  f'msfrs_quota_file {gateway.directory}/absent/quota', on=False)
    assert party(link, size=1_200_000) == ('bulk', 'gold')
    gateway.stop()
    assert f'WARNING: msfrs: the quotas cannot be kept in {gateway.directory}/absent/quota: ' in gateway.cache_log()


def test_who_comes_back_when_the_period_ends(link, monkeypatch):
    """During the same downloads. This Squid's hour ends 40 seconds after the start."""
    offset = (-40 - int(time.time())) % 3600
    monkeypatch.setenv('TZ', f'XXX-0:{offset // 60:02}:{offset % 60:02}')
    gateway = link.start(quota='2MB/hour')
    assert 0 < quota(gateway)['ends_in'] <= 40
    load = link.users.load([link.gold], size=30_000_000, inflight=2)
    gateway.wait_until(lambda: quota(gateway)['users_over'] == 1, lambda: quota(gateway))
    assert (busy(gateway, 'gold'), busy(gateway, 'bulk')) == (0, 2)
    gateway.wait_until(lambda: quota(gateway)['ends_in'] > 40, lambda: quota(gateway))
    assert (busy(gateway, 'gold'), busy(gateway, 'bulk')) == (2, 0)
    assert quota(gateway)['passed'] == 1
    assert not any(fetch.finished for fetch in load.all())
    load.stop(abort=True)
    gateway.rest()
    assert {(row['class'], row['over_quota']) for row in gateway.access_log(2)} == {('gold', '-')}


def test_another_configuration_in_the_middle(link):
    """Classes in another order, another quota, none: requests under way are in the right class each time."""
    gateway = link.start()
    load = link.users.load([link.gold, link.bronze], size=30_000_000, inflight=2)
    where = ('gold', 'bronze', 'bulk')
    changes = (({}, (0, 2, 2)), ({'order': ('bulk', 'bronze', 'gold', 'silver')}, (0, 2, 2)),
               ({'quota': '1TB/day'}, (2, 2, 0)), ({'order': ('silver', 'gold', 'bulk', 'bronze')}, (0, 2, 2)))
    for how, wanted in changes:
        if how:
            gateway.reconfigure(*lines(gateway, **how), on=False)
        gateway.wait_until(lambda wanted=wanted: tuple(busy(gateway, name) for name in where) == wanted,
                           lambda wanted=wanted: (wanted, gateway.classes()))
    assert not any(fetch.finished for fetch in load.all())
    assert all(fetch.intact for fetch in load.stop(abort=True))
    gateway.rest()


@pytest.mark.sanitized
def test_tunnels_move_too(link):
    gateway = link.start()
    gateway.intercept_tls()
    fetches = [link.users.get(link.gold, via=via, size=1_000_000) for via in ('proxy', 'connect', 'intercept', 'tls')]
    gateway.wait_until(lambda: quota(gateway)['users_over'] == 1, lambda: quota(gateway))
    assert busy(gateway, 'gold') == 0
    assert all(fetch.wait().good for fetch in fetches), fetches
    gateway.rest()
    assert gateway.total('bytes') > 4_000_000


def test_what_comes_beside_squid_counts(link):
    reporter = Reporter(link.gateway)
    gateway = link.start(reporter.line)
    assert party(link, size=10) == ('gold', '-')
    reporter.tell(f'{link.gold.v4} {MB}\n')
    assert quota(gateway)['users_over'] == 1
    reporter.tell(f'{link.gold.v4} 5000\n')
    assert gateway.classes()['bulk']['excess'] == 5000
    assert party(link, size=10) == ('bulk', 'gold')


#: The explanation, on the page and in a terminal.
GOES_ON = 'of the 1.0 MB per day of class gold are used, so class bulk serves this user for another '


def test_it_is_seen(link):
    """On the page, by msfrsctl and in access.log."""
    gateway, user = link.start(), link.gold.v4
    assert party(link, size=1_200_000) == ('bulk', 'gold')
    with Page(link.world.gateway, gateway.directory) as page:
        (shown,) = page.wait_for(lambda data: data['quotas'], 'the quota')['quotas']
        assert (shown['class'], shown['over'], shown['users_over']) == ('gold', 'bulk', 1)
        assert shown['most'][0]['user'] == user
        assert [said for said in page.json(f'/user.json?name={user}')['why'] if GOES_ON in said]
    ctl = Ctl(link)
    assert 'gold: 1.0 MB per day for each user; used up by 1 of 1 user, in class bulk' in ctl('status')
    said = ctl('why', user)
    assert GOES_ON in said
    assert 'class bulk (the quota of gold is used up), waited' in said
