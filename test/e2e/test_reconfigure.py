# SPDX-License-Identifier: GPL-2.0-or-later
"""A new configuration, and the end of Squid, during traffic: no request is lost."""
import signal
import time

import pytest

from gateway import LISTENING, NARROW, OFF, SOON
from test_classification import helper
from test_shares import WARM_UP, assert_shares, by_class, measure

pytestmark = pytest.mark.link(rate_bps=4e6, rtts_ms=(5.0, 20.0), users=(2, 2, 2))

ROADS = ('proxy', 'connect', 'intercept', 'tls')
WINDOW = 'msfrs_window interval=500ms'


@pytest.fixture
def link(slow_link):
    slow_link.gateway.start(WINDOW, SOON)
    return slow_link


def unharmed(load):
    """All are answered completely, and none was refused."""
    assert [fetch for fetch in load.stop() if not fetch.good] == []


def shares_after(link, load, weights, seconds=24.0):
    time.sleep(WARM_UP)
    got, utilisation = measure(link, load, seconds)
    got = by_class(link, got)
    assert_shares({name: got[name] for name in weights}, weights)
    assert utilisation > 0.9


@pytest.mark.link(rate_bps=2e6, rtts_ms=(5.0, 20.0))
def test_weights(link):
    load = link.users.load(link.world.users)
    shares_after(link, load, {'gold': 4, 'silver': 2, 'bronze': 1})
    link.gateway.reconfigure(WINDOW, SOON, weights={'gold': 1, 'silver': 1, 'bronze': 3})
    shares_after(link, load, {'gold': 1, 'silver': 1, 'bronze': 3})
    unharmed(load)
    link.gateway.rest()


@pytest.mark.link(rate_bps=4e6, rtts_ms=(5.0, 20.0))
def test_rate(link):
    """At half of the rate, half of the link is used."""
    load = link.users.load(link.world.users)
    time.sleep(WARM_UP / 2)
    assert measure(link, load, 5.0)[1] > 0.9
    link.gateway.reconfigure(WINDOW, rate=2e6)
    assert link.gateway.report()['link']['rate'] == 2_000_000
    # W+ shrinks by as much as U exceeds U+, but not below one response, which alone may fill this link.
    link.gateway.wait_until(lambda: link.gateway.report()['window']['utilisation'] > 1.5, 'utilisation of the new rate')
    unharmed(load)
    link.gateway.rest()


@pytest.mark.sanitized
def test_everything_at_once_and_often(link):
    """Under load: weights, rate, quantum, window, users, limits, arbiter, classes, interface, on and off."""
    gateway = link.gateway
    gateway.intercept_tls()
    loads = [link.users.load(link.world.users, inflight=2, size=30_000, via=via, family=family)
             for via, family in (('proxy', 4), ('connect', 6), ('tls', 4), ('intercept', 6))]
    for lines, how in (
        (('msfrs_quantum 4 KB', WINDOW), {'weights': {'gold': 1, 'silver': 5, 'bronze': 0.5}}),
        (('msfrs_quantum none',), {'rate': 1e6}),
        (('msfrs_quantum 64 KB', 'msfrs_user src6/64', 'msfrs_queue max_wait=30s'), {'default': 'gold'}),
        (('msfrs_arbiter fifo',), {}),
        (('msfrs_arbiter msf wake=paper users=fifo',), {'interface': None}),
        ((), {'on': False}),
        ((), {'weights': {'all': 1}}),
        ((), {'weights': {'gold': 2, 'platinum': 8, 'bronze': 1}}),
        # The other loads continue while one ends: its largest response waits until max_wait.
        ((WINDOW, 'msfrs_queue max_wait=20s'), {}),
    ):
        before = [load.bytes() for load in loads]
        gateway.reconfigure(*lines, **how)
        gateway.wait_until(lambda: all(sum(load.since(was).values()) > 30_000
                                       for load, was in zip(loads, before, strict=True)), 'all roads are used')
    for load in loads:
        unharmed(load)
    gateway.rest()


@pytest.mark.sanitized
@pytest.mark.parametrize('lines, how', (
    ((), {'weights': {'gold': 1, 'bronze': 1}, 'default': 'bronze'}),
    ((), {'weights': {'gold': 4, 'silver': 2, 'bronze': 1, 'new': 9}}),
    (('msfrs_arbiter fifo',), {}),
    (('msfrs_quantum none',), {}),
    (('msfrs_queue max_per_user=1 max_queued=1',), {}),
    ((), {'on': False}),
), ids=('class-gone', 'class-new', 'arbiter', 'quantum', 'limits', 'off'))
def test_requests_that_wait_are_kept(slow_link, lines, how):
    """One in service, one paused, queued ones in each class and by each path; then the configuration changes."""
    gateway, users = slow_link.gateway.start(NARROW, 'msfrs_quantum 4 KB'), slow_link.users
    gateway.intercept_tls()
    paused = [users.get(slow_link.of('silver')[1], via=via, size=200_000) for via in ('proxy', 'connect')]
    gateway.wait_until(lambda: all(fetch.received for fetch in paused), 'both begun')
    blocker = users.get(slow_link.of('gold')[0], gate='open')
    gateway.wait_for(queued=0, paused=2, in_flight=1)
    queued = [users.get(user, via=via) for user in slow_link.world.users for via in ROADS]
    gateway.wait_for(queued=24, paused=2, in_flight=1)
    gateway.reconfigure(NARROW, *lines, **how)
    if how.get('on', True):
        gateway.wait_for(queued=24, paused=2, in_flight=1)
        assert not any(fetch.finished for fetch in queued)
    else:       # all are released, without a scheduler
        assert all(fetch.wait().good for fetch in (*queued, *paused)), queued + paused
        assert gateway.report() == OFF
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (blocker, *queued, *paused)), queued + paused
    if how.get('on', True):
        gateway.rest()


def test_requests_of_a_class_that_is_gone_are_charged_to_the_default(slow_link):
    gateway = slow_link.gateway.start(NARROW)
    blocker = slow_link.users.get(slow_link.of('gold')[0], gate='open')
    gateway.wait_for(queued=0, in_flight=1)
    queued = slow_link.users.get(slow_link.of('silver')[0])
    gateway.wait_for(queued=1, in_flight=1)
    gateway.reconfigure(NARROW, weights={'gold': 1, 'bronze': 1})
    assert {name: row['queued'] for name, row in gateway.classes().items()} == {'gold': 0, 'bronze': 1}
    slow_link.origin.open_gate('open')
    assert queued.wait().good and blocker.wait().good
    assert gateway.classes()['bronze']['bytes'] > 1000
    assert any(row['class'] == 'bronze' and row['client'] == slow_link.of('silver')[0].v4
               for row in gateway.access_log(2))


def test_open_downloads_are_where_msfrs_access_puts_them(slow_link):
    """A request whose class needs a helper's answer keeps its class until the helper runs; others are reclassified at
    once."""
    gateway, user = slow_link.gateway, slow_link.of('bronze')[0]
    program = helper(slow_link, 'paid', 'OK')
    gateway.early = (f'external_acl_type paid %SRC {program}', 'acl paid external paid', f'acl boosted src {user.v4}',
                     'http_access deny !paid !manager')

    def where(*access):
        """The class of the download with these lines before the others."""
        gateway.reconfigure(WINDOW, access=access)
        before = gateway.classes()
        gateway.wait_until(lambda: sum(row['bytes'] - before[name]['bytes'] for name, row in gateway.classes().items())
                           > 50_000, 'it goes on')
        return [name for name, row in gateway.classes().items() if row['users']]
    gateway.start(WINDOW, access=('msfrs_access gold allow paid',))
    fetch = slow_link.users.get(user, size=30_000_000, via='connect')
    gateway.wait_until(lambda: fetch.received > 20_000, 'it has begun')
    assert where('msfrs_access gold allow paid') == ['gold']
    assert where('msfrs_access silver allow boosted', 'msfrs_access gold allow paid') == ['silver']
    assert where() == ['bronze']
    assert not fetch.finished
    fetch.abort()
    gateway.rest()


def listens_at(gateway, port):
    """Whether a port of the gateway accepts connections, by the latest configuration."""
    said = [line for line in gateway.cache_log().splitlines() if LISTENING in line and f':{port} ' in line]
    open_ = gateway.world.gateway.run('ss', '-Hltn', f'sport = :{port}')
    return bool(open_.strip()), said[-1] if said else ''


def test_a_port_that_is_changed_or_goes(slow_link):
    """Only ports with the same configuration stay open."""
    gateway, user = slow_link.gateway, slow_link.of('gold')[0]
    gateway.early = ('http_port 3140',)
    gateway.start()
    assert slow_link.users.get(user, through=3140).wait().good
    for line in ('http_port 3140 name=another', 'http_port 3140 tproxy', 'http_port 0.0.0.0:3140', 'http_port 3140'):
        gateway.early = (line,)
        gateway.reconfigure()
        open_, said = listens_at(gateway, 3140)
        assert open_ and ('TPROXY' in said) == ('tproxy' in line) and ('0.0.0.0' in said) == ('0.0.0.0' in line), line
    assert slow_link.users.get(user, through=3140).wait().good
    gateway.early = ()
    gateway.reconfigure()
    assert not listens_at(gateway, 3140)[0]
    assert isinstance(slow_link.users.get(user, through=3140).wait().error, ConnectionRefusedError)
    gateway.rest()


def test_switched_on_under_load(slow_link):
    gateway = slow_link.gateway.start(on=False)
    load = slow_link.users.load(slow_link.world.users, via='connect')
    gateway.wait_until(lambda: all(got > 20_000 for got in load.bytes().values()), 'traffic')
    gateway.reconfigure(WINDOW)
    before = load.bytes()
    gateway.wait_until(lambda: all(got > 100_000 for got in load.since(before).values()), 'traffic goes on for all')
    assert gateway.total('requests') > 0
    unharmed(load)
    gateway.rest()


@pytest.mark.parametrize('how, message', (
    ({'weights': {'gold': 0, 'silver': 2}}, 'msfrs_class: weight=0 is not allowed'),
    ({'lines': ('msfrs_arbiter nosuch',)}, "no scheduler 'nosuch'"),
), ids=('weight', 'arbiter'))
def test_a_wrong_configuration_is_refused_before_squid_hears_of_it(link, how, message):
    """`squid -k reconfigure` checks it first; the old one stays in force."""
    gateway = link.gateway
    load = link.users.load(link.world.users)
    gateway.wait_until(lambda: all(got > 20_000 for got in load.bytes().values()), 'traffic')
    gateway.write(*how.pop('lines', ()), **how)
    done = gateway.command('-k', 'reconfigure')
    assert done.returncode != 0 and message in done.stderr, done
    before = load.bytes()
    gateway.wait_until(lambda: all(got > 50_000 for got in load.since(before).values()), 'traffic goes on for all')
    assert 'Reconfiguring Squid Cache' not in gateway.cache_log()
    assert {name: row['weight'] for name, row in gateway.classes().items()} == {'gold': 4, 'silver': 2, 'bronze': 1}
    unharmed(load)
    gateway.rest()


@pytest.mark.sanitized
@pytest.mark.parametrize('signum', (signal.SIGINT, signal.SIGTERM))
def test_shutdown_under_load(slow_link, signum):
    """With requests in every state. Waiting ones get a response or the end of the connection; Squid exits cleanly."""
    gateway, users = slow_link.gateway.start(NARROW, 'msfrs_quantum 4 KB'), slow_link.users
    gateway.intercept_tls()
    fetches = [users.get(slow_link.of('silver')[1], via=via, size=1_000_000) for via in ROADS]
    gateway.wait_until(lambda: all(fetch.received for fetch in fetches), 'all begun')
    fetches.append(users.get(slow_link.of('gold')[0], gate='never'))
    gateway.wait_for(queued=0, paused=4, in_flight=1)
    fetches += [users.get(user, via=via) for user in slow_link.world.users for via in ROADS]
    gateway.wait_for(queued=24, paused=4, in_flight=1)
    assert gateway.stop(signum) == 0
    for fetch in fetches:
        assert not fetch.wait().good
        assert fetch.status in (0, 200, 503), fetch
        assert fetch.intact or fetch.status == 503


def test_what_is_served_may_end_during_the_shutdown(slow_link):
    """shutdown_lifetime is meant for that, and part of it is used by responses that wait for a turn."""
    gateway = slow_link.gateway.start(WINDOW, 'shutdown_lifetime 30 seconds')
    fetches = [slow_link.users.get(user, size=60_000) for user in slow_link.world.users for _ in range(3)]
    gateway.wait_until(lambda: gateway.total('requests') == len(fetches), 'all are there')
    gateway.send(signal.SIGTERM)
    assert all(fetch.wait().good for fetch in fetches), fetches
    assert gateway.stop(signal.SIGTERM) == 0
