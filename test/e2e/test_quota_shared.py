# SPDX-License-Identifier: GPL-2.0-or-later
"""Quotas that several processes count: workers of Squid, any of which may be killed, and msfrs-edge beside them."""
import os
import signal
import threading
import time

import pytest

from test_ctl import Ctl
from test_downlink import Edge, flood, parties, past_squid
from test_quota import FILE, MB, busy, lines, quota, quota_user
from test_workers import FIRST, SECOND, TWO, live, start

HOUR = 40       #: s from the start of Squid to the end of its hour


@pytest.fixture
def soon_over(monkeypatch):
    """A Squid started now has an hour that ends in HOUR seconds."""
    offset = (-HOUR - int(time.time())) % 3600
    monkeypatch.setenv('TZ', f'XXX-0:{offset // 60:02}:{offset % 60:02}')


def begin(link, **how):
    """Both workers."""
    start(link, *lines(link.gateway, **how), on=False)
    return link.gateway


def fetch(link, user, port, size):
    """(class, class whose quota the user has exceeded) of a request at a worker, from access.log."""
    fetched = link.users.get(user, through=port, size=size).wait()
    assert fetched.good
    row = link.gateway.wait_until(
        lambda: next((row for row in link.gateway.access_log() if row['port'] == str(fetched.port)), None), 'its line')
    return row['class'], row['over_quota']


@pytest.mark.usefixtures('soon_over')
def test_what_passes_the_edge_counts(slow_link):
    """A user who receives only datagrams exceeds the quota. Then both datagrams and requests are of the other class,
    until the hour is over."""
    link, gateway, gold = slow_link, slow_link.gateway, slow_link.of('gold')[0]
    gateway.start(*lines(gateway, rate='2Mbit shared', quota='1MB/hour'), on=False)
    edge, stopped = Edge(link), threading.Event()
    gateway.wait_until(lambda: parties(link, 'edge') and 'bulk' in edge.classes(), 'the edge is a party')

    def flows_as(name):
        before = edge.classes()[name]
        return lambda: edge.classes()[name] > before + 30_000

    flood(link, gold, 0.5 * link.world.rate_bps, stopped)
    try:
        gateway.wait_until(flows_as('gold'), 'its packets are of gold')
        gateway.wait_until(lambda: quota(gateway)['users_over'] == 1, lambda: gateway.report())
        assert quota(gateway)['ends_in'] <= HOUR
        assert quota_user(gateway)['user'] == gold.v4
        assert MB <= quota_user(gateway)['bytes'] < 1.3 * MB
        assert gateway.total('requests') == 0
        gateway.wait_until(flows_as('bulk'), 'its packets are of bulk')
        of_gold = edge.classes()['gold']
        load = link.users.load([gold], size=30_000_000, inflight=2)
        gateway.wait_until(lambda: busy(gateway, 'bulk') == 2, lambda: gateway.classes())
        assert 'of class gold are used, so class bulk serves this user for another ' in Ctl(link)('why', gold.v4)
        assert edge.classes()['gold'] == of_gold, 'nothing of it is gold any more'
        gateway.wait_until(lambda: quota(gateway)['ends_in'] > HOUR, 'the hour is over')
        gateway.wait_until(lambda: busy(gateway, 'gold') == 2, lambda: gateway.classes())
        gateway.wait_until(flows_as('gold'), 'its packets are of gold again')
        assert not any(fetch.finished for fetch in load.all())
        load.stop(abort=True)
    finally:
        stopped.set()
    gateway.rest()


def test_tcp_past_squid_and_through_it_are_one_account(slow_link):
    """Neither alone reaches the quota."""
    link, gateway, gold = slow_link, slow_link.gateway, slow_link.of('gold')[0]
    gateway.start(*lines(gateway, rate='2Mbit shared', quota='2MB/day'), on=False)
    edge = Edge(link)
    gateway.wait_until(lambda: parties(link, 'edge') and 'bulk' in edge.classes(), 'the edge is a party')
    assert link.users.get(gold, size=MB).wait().good
    load = past_squid(link, [gold])
    gateway.wait_until(lambda: quota(gateway)['users_over'] == 1, lambda: gateway.report())
    load.stop(abort=True)
    had = gateway.classes()['gold']['bytes'], edge.classes()['gold']
    assert max(had) < 1.4 * MB, 'neither alone is the quota'
    # The account includes bytes that the edge has dropped: they have used the link.
    assert gateway.classes()['gold']['quota_users'][0]['bytes'] >= 2 * MB
    assert sum(had) > 1.9 * MB, 'both count'
    gateway.rest()


@TWO
def test_both_workers_count_and_both_move(slow_link):
    """A download at each worker, neither of which reaches the quota."""
    link, gateway, gold = slow_link, begin(slow_link, quota='3MB/day'), slow_link.of('gold')[0]
    loads = [link.users.load([gold], through=port, size=30_000_000, inflight=1) for port in (FIRST, SECOND)]
    gateway.wait_until(lambda: quota(gateway)['users'] == 1, 'it is counted')
    assert busy(gateway, 'gold') == 2
    gateway.wait_until(lambda: quota(gateway)['users_over'] == 1, lambda: gateway.report())
    gateway.wait_until(lambda: (busy(gateway, 'gold'), busy(gateway, 'bulk')) == (0, 2), lambda: gateway.classes())
    assert quota(gateway)['passed'] == 1
    assert 3 * MB <= quota_user(gateway)['bytes'] < 3.2 * MB
    for load in loads:
        assert max(load.bytes().values()) < 3 * MB
        load.stop(abort=True)
    gateway.rest()
    assert {(row['class'], row['over_quota']) for row in gateway.access_log(2)} == {('bulk', 'gold')}


@pytest.mark.link(rate_bps=20e6, workers=2)
def test_who_is_killed_takes_no_count_along(slow_link):
    """Each worker in turn, the one that keeps the file included; then the whole Squid is restarted."""
    link, gateway, gold = slow_link, begin(slow_link, rate='20Mbit', quota='4MB/day'), slow_link.of('gold')[0]
    path, had = gateway.directory / FILE, 0
    for number, port in enumerate((FIRST, SECOND)):
        assert fetch(link, gold, port, MB) == ('gold', '-')
        gateway.wait_until(lambda: path.exists(), 'it is kept from time to time')
        before = quota_user(gateway)['bytes']
        assert had + MB < before < had + 1.1 * MB
        had = before
        victim = gateway.report()['parties'][number]['pid']
        os.kill(victim, signal.SIGKILL)
        gateway.wait_until(lambda: live(gateway) == [True, True] and
                           gateway.report()['parties'][number]['pid'] != victim, 'another in its place')
        assert quota_user(gateway)['bytes'] == had, 'nothing is lost, and nothing read twice'
    assert fetch(link, gold, SECOND, MB) == ('gold', '-')
    assert fetch(link, gold, FIRST, 1_200_000) == ('bulk', 'gold'), 'on the way'
    assert fetch(link, gold, SECOND, 10) == ('bulk', 'gold')
    assert quota(gateway)['passed'] == 1
    had = quota_user(gateway)['bytes']
    gateway.stop()
    assert [line.split()[0] for line in path.read_text().splitlines() if line.endswith(gold.v4)] == [str(had)]

    begin(link, rate='20Mbit', quota='4MB/day')
    assert quota_user(gateway)['bytes'] == had
    for port in (FIRST, SECOND):
        assert fetch(link, gold, port, 10) == ('bulk', 'gold')
    said = Ctl(link)
    assert 'gold: 4.0 MB per day for each user; used up by 1 of 1 user, in class bulk' in said('status')
    gateway.rest()


@TWO
@pytest.mark.usefixtures('soon_over')
def test_the_period_ends_at_both_while_one_is_killed(slow_link):
    link, gateway, gold = slow_link, begin(slow_link, quota='1MB/hour'), slow_link.of('gold')[0]
    load = link.users.load([gold], through=SECOND, size=30_000_000, inflight=2)
    gateway.wait_until(lambda: busy(gateway, 'bulk') == 2, lambda: gateway.classes())
    leader = gateway.report()['parties'][0]
    assert leader['leads'] and quota(gateway)['ends_in'] <= HOUR
    gateway.wait_until(lambda: quota(gateway)['ends_in'] <= 3, 'it is about to end')
    os.kill(leader['pid'], signal.SIGKILL)
    gateway.wait_until(lambda: quota(gateway)['ends_in'] > HOUR, 'the hour is over')
    # It is of gold for four seconds only, which need not be observed.
    gateway.wait_until(lambda: quota(gateway)['passed'] == 2, lambda: gateway.report())
    assert not any(fetch.finished for fetch in load.all())
    load.stop(abort=True)
    gateway.wait_until(lambda: live(gateway) == [True, True], 'another in its place')
    gateway.rest()
