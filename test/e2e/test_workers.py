# SPDX-License-Identifier: GPL-2.0-or-later
"""Squid with several workers that share one link: each user's share, whichever worker has its requests, and the reports
of Squid as a whole."""
import contextlib
import http.client
import os
import signal
import time

import pytest
import yaml

from background import PATIENCE, wait_until
from fieldtrial.site.netns import temporary_directory
from fieldtrial.site.processes import listens
from fieldtrial.site.world import private_sockets, sockets_of
from gateway import NARROW, SOON, harm
from installation import SQUID
from test_configuration import LISTENING, PORT, Squid
from test_excess import Reporter
from test_found_rate import AUTO, RATE, wait_for_rate
from test_reports import OPENMETRICS, families
from test_shares import MEASURED, WARM_UP, assert_shares, by_class, measure

pytestmark = pytest.mark.skipif(not sockets_of(SQUID).is_dir(), reason='this Squid has been moved')

#: More than a message between the workers could hold.
CLASSES = [f'class-{number:02d}-with-a-long-name' for number in range(40)]
#: A separate port for each worker, in addition to their common one.
FIRST, SECOND = 4131, 4132     # the gateway drops direct connections to the interception ports
OWN_PORTS = tuple(line for number, port in enumerate((FIRST, SECOND), start=1)
                  for line in (f'if ${{process_number}} = {number}', f'http_port {port}', 'endif'))


DEFAULTS = 'msfrs_window interval=1s', SOON
TWO = pytest.mark.link(workers=2)


class Workers(Squid):
    """Two workers. number: another number of them; within: a prefix of the command, such as a shell in namespaces."""

    def __init__(self, host, directory, number=2, within=()):
        super().__init__(host, directory)
        self.name = f'workers{os.getpid()}'     # Squids of one name share their memory
        self._number, self._within = number, within

    def start(self, *lines):
        self.write(f'workers {self._number}', *lines)
        self._process = self.host.popen([*private_sockets(SQUID), *self._within, str(SQUID), '--foreground', '-n',
                                         self.name, '-f', str(self.conf)])
        self.wait_until(lambda: 200 == self.ask('msfrs')[0], 'workers that answer')

    def pid(self):
        """PID of the master process."""
        return self._process.pid

    def ask(self, action):
        """(status, Content-Type, text) of a cache manager report; status 0: no connection."""
        with self.host.inside():
            connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=PATIENCE)
            with contextlib.suppress(ConnectionError):
                connection.connect()
        with contextlib.closing(connection), contextlib.suppress(ConnectionError):
            if connection.sock:
                connection.request('GET', f'/squid-internal-mgr/{action}')
                answer = connection.getresponse()
                return answer.status, answer.getheader('Content-Type'), answer.read().decode()
        return 0, '', ''

    def parties(self):
        return yaml.safe_load(self.ask('msfrs')[2]).get('parties', [])


@pytest.fixture
def workers(fabric):
    with temporary_directory() as directory:
        made = Workers(fabric.host('gw'), directory)
        yield made
        assert made.stop() == 0
        assert not harm(made.log())


def test_reports(workers):
    """Both cover all workers, each as a single document."""
    workers.start('msfrs on', 'msfrs_link rate=20Mbit', *(f'msfrs_class {name} weight=1' for name in CLASSES),
                  'msfrs_class rest weight=1 default')
    wait_until(lambda: [(party['live'], party['leads']) for party in workers.parties()] ==
               [(True, True), (True, False)], 'both live, and the first leads')
    status, kind, text = workers.ask('msfrs-metrics')
    assert (status, kind) == (200, OPENMETRICS)
    assert text.endswith('# EOF\n') and text.count('# EOF') == 1 and text.count('# TYPE msfrs_class_users ') == 1
    found = {family.name: family for family in families(text)}
    assert [sample.value for sample in found['msfrs_link_capacity_bytes_per_second'].samples] == [2_500_000]
    assert [sample.labels['class'] for sample in found['msfrs_class_requests'].samples] == [*CLASSES, 'rest']
    assert [(sample.labels, sample.value) for sample in found['msfrs_party_live'].samples] == [
        ({'kind': 'worker', 'slot': slot}, 1) for slot in '01']
    report = yaml.safe_load(workers.ask('msfrs')[2])
    assert (report['link']['rate'], len(report['classes'])) == (20 * 10**6, 41)


def test_msfrs_may_be_switched_on_later(workers):
    workers.start()
    wait_until(lambda: workers.log().count(LISTENING) == 2, 'both listen')
    assert workers.parties() == []
    workers.reconfigure('workers 2', 'msfrs on', 'msfrs_link rate=20Mbit', 'msfrs_class all weight=1 default')
    wait_until(lambda: [party['live'] for party in workers.parties()] == [True, True], 'both live')


@pytest.fixture
def two(slow_link):
    """A slow link and two workers, each with a port of its own."""
    start(slow_link, *DEFAULTS)
    return slow_link


def start(link, *lines, **how):
    """Both workers, live."""
    link.gateway.early = OWN_PORTS
    link.gateway.start(*lines, **how)
    link.gateway.wait_until(lambda: live(link.gateway) == [True, True] and
                            all(listens(link.world.gateway, port) for port in (FIRST, SECOND)), 'both workers live')


def live(gateway):
    return [party['live'] for party in gateway.report().get('parties', [])]


def spread(link, **how):
    """Loads of all users: the first of each class at one worker, the others at the other."""
    users = [link.of(name) for name in link.world.weights]
    return (link.users.load([each[0] for each in users], through=FIRST, **how),
            link.users.load([user for each in users for user in each[1:]], through=SECOND, **how))


def received(loads):
    return {user: got for load in loads for user, got in load.bytes().items()}


def got_in(loads, seconds):
    """Bytes of each user in a time."""
    before = received(loads)
    time.sleep(seconds)
    return {user: got - before[user] for user, got in received(loads).items()}


def stop(*loads):
    for load in loads:
        load.stop(abort=True)


@TWO
def test_shares_of_users_at_two_workers_and_one_window(two):
    loads = spread(two)
    time.sleep(WARM_UP)
    seen, before, until = [], received(loads), time.monotonic() + MEASURED
    with two.gateway.received() as link:
        bytes_before, began = link.read(), time.monotonic()
        while time.monotonic() < until:
            seen.append(two.gateway.report())
            time.sleep(0.3)
        brought, took = link.read() - bytes_before, time.monotonic() - began
    got = {user: after - before[user] for user, after in received(loads).items()}
    stop(*loads)
    assert_shares(by_class(two, got), {'gold': 4, 'silver': 2, 'bronze': 1})
    assert brought * 8 / took / two.world.rate_bps > 0.9
    assert all(any(report['parties'][n]['outstanding'] for report in seen) for n in (0, 1)), 'both had work'
    w, wplus = (sum(report['window'][name] for report in seen) / len(seen) for name in ('outstanding', 'limit'))
    assert 0.5 * wplus < w < 1.5 * wplus + 1, 'first quanta may have half of W+ more'
    two.gateway.rest()


@TWO
def test_a_user_at_both_workers_is_one_user(two):
    """It has no more than a user with requests at a single worker."""
    everywhere, alone = two.of('gold')
    loads = (two.users.load([everywhere], through=FIRST), two.users.load([everywhere], through=SECOND),
             two.users.load([alone], through=FIRST))
    time.sleep(WARM_UP)
    before = [load.bytes() for load in loads]
    time.sleep(MEASURED)
    got = [sum(load.since(start).values()) for load, start in zip(loads, before)]
    stop(*loads)
    assert_shares({'everywhere': got[0] + got[1], 'alone': got[2]}, {'everywhere': 1, 'alone': 1})


@TWO
def test_what_one_worker_leaves_the_other_takes(two):
    """All users of gold are at one worker, those of bronze at the other; then gold's demand is met."""
    gold, bronze = (two.users.load(two.of(name), through=port) for name, port in (('gold', FIRST), ('bronze', SECOND)))
    time.sleep(WARM_UP)
    got = by_class(two, got_in((gold, bronze), MEASURED))
    got.pop('silver')
    assert_shares(got, {'gold': 4, 'bronze': 1})
    stop(gold)
    time.sleep(1.0)     # and for bytes in flight
    _, utilisation = measure(two, bronze, 4.0)
    stop(bronze)
    assert utilisation > 0.9


@TWO
def test_a_worker_is_killed_under_load(two):
    loads = spread(two)
    time.sleep(WARM_UP)
    # W+ is below 2 here, so it is not always this worker that has a slot.
    victim = two.gateway.wait_until(lambda: next(
        (each for each in two.gateway.report()['parties'][:1] if each['outstanding']), None), 'the first has a place')
    assert victim['leads']
    os.kill(victim['pid'], signal.SIGKILL)
    time.sleep(2.0)
    got = got_in(loads, MEASURED)
    stop(*loads)
    assert_shares(by_class(two, got), {'gold': 4, 'silver': 2, 'bronze': 1})
    two.gateway.wait_until(lambda: live(two.gateway) == [True, True], 'another worker in its place')
    assert two.gateway.report()['parties'][0]['pid'] != victim['pid']
    two.gateway.rest()
    assert [party['outstanding'] for party in two.gateway.report()['parties']] == [0, 0]


@TWO
@pytest.mark.sanitized
def test_a_worker_that_hangs_is_ended_by_the_other(two):
    """The kernel gives new connections to either: what the stopped one had accepted is cut, and another worker serves."""
    gateway, user = two.gateway, two.of('gold')[0]
    gateway.expected = ('has not run for 12 s', 'Squid Parent: squid-1 process')
    hung, other = gateway.report()['parties']
    waiting = two.users.get(user, size=1_000_000, through=FIRST)
    gateway.wait_until(lambda: waiting.received, 'it is served')
    began = time.monotonic()
    os.kill(hung['pid'], signal.SIGSTOP)
    assert two.users.get(user, through=SECOND).wait().good
    wait_until(lambda: 'has not run for 12 s' in gateway.cache_log(), gateway.cache_log)
    assert time.monotonic() - began < 15.5
    assert not waiting.wait().whole
    wait_until(lambda: two.users.get(user, through=FIRST).wait().good, 'another worker in its place')
    gateway.wait_until(lambda: live(gateway) == [True, True], 'both live')
    parties = gateway.report()['parties']
    assert parties[0]['pid'] != hung['pid'] and parties[1]['pid'] == other['pid']


@TWO
def test_a_new_configuration_is_that_of_both(two):
    two.gateway.reconfigure('msfrs_window interval=1s', SOON, weights={'gold': 1, 'silver': 1, 'bronze': 1})
    two.gateway.wait_until(lambda: live(two.gateway) == [True, True] and all(
        party['configured'] for party in two.gateway.report()['parties']), 'one configuration')
    assert [row['weight'] for row in two.gateway.report()['classes']] == [1, 1, 1]
    loads = spread(two)
    time.sleep(WARM_UP)
    got = by_class(two, got_in(loads, MEASURED))
    stop(*loads)
    assert_shares(got, {'gold': 1, 'silver': 1, 'bronze': 1})


@pytest.mark.link(rate_bps=RATE, buffer_bdp=40, users=(2, 2, 2), workers=2)
def test_the_rate_is_found_by_who_has_no_connection(slow_link):
    """The worker that estimates the rate uses RTT samples of the other's connections."""
    start(slow_link, SOON, rate=AUTO)
    load = slow_link.users.load(slow_link.world.users, through=SECOND)
    wait_for_rate(slow_link, RATE)
    slow_link.world.bottleneck.set_rate(RATE / 4)
    wait_for_rate(slow_link, RATE / 4)
    report = slow_link.gateway.report()
    assert [party['leads'] for party in report['parties']] == [True, False]
    assert report['parties'][0]['outstanding'] == 0 < report['parties'][1]['outstanding']
    assert all('another' not in change['because'] for change in report['link']['auto']['changes']), 'of who found it'
    slow_link.world.bottleneck.set_rate(RATE)
    wait_for_rate(slow_link, RATE)
    load.stop(abort=True)


@TWO
def test_told_to_reconfigure_again_before_its_ports_are_open(two):
    before = [party['pid'] for party in two.gateway.report()['parties']]
    for _ in range(12):
        two.gateway.send(signal.SIGHUP)
        time.sleep(0.03)
    for port in (FIRST, SECOND):
        wait_until(lambda port=port: two.users.get(two.of('gold')[0], through=port).wait().good, f'port {port}')
    assert [party['pid'] for party in two.gateway.report()['parties']] == before


@TWO
def test_limits_are_of_both_workers_together(slow_link):
    two = slow_link
    start(two, NARROW, 'msfrs_queue max_per_user=3 max_queued=5 max_wait=90s')

    def ask(user, port, waiting):
        """A request that has to wait, once both workers know how many wait; its Fetch."""
        fetch = two.users.get(user, through=port)
        two.gateway.wait_until(lambda: two.gateway.total('queued') == waiting, f'{waiting} wait')
        time.sleep(0.3)     # parties exchange the state of their users ten times a second
        return fetch

    blocker = two.users.get(two.of('silver')[0], 'blocker', gate='open', through=FIRST)
    two.gateway.wait_for(queued=0, in_flight=1)
    gold, silver = two.of('gold')[0], two.of('silver')[1]
    waiting = [ask(gold, FIRST, 1), ask(gold, SECOND, 2), ask(gold, FIRST, 3)]
    for port in (FIRST, SECOND):
        assert two.users.get(gold, through=port).wait().status == 503
    waiting += [ask(silver, SECOND, 4), ask(silver, FIRST, 5)]
    for port in (FIRST, SECOND):
        assert two.users.get(two.of('bronze')[0], through=port).wait().status == 503
    refused = {name: row['refused'] for name, row in two.gateway.classes().items()}
    assert (refused['gold']['per_user'], refused['bronze']['total']) == (2, 2)
    two.origin.open_gate('open')
    assert all(fetch.wait().good for fetch in (blocker, *waiting))
    two.gateway.rest()


@TWO
def test_excess_is_charged_for_both_workers(slow_link):
    """Also to users of the worker that does not own the socket."""
    reporter = Reporter(slow_link.gateway)
    start(slow_link, *DEFAULTS, reporter.line)
    pays, other = slow_link.of('gold')
    load = slow_link.users.load([pays, other], through=SECOND)
    time.sleep(WARM_UP)
    before = load.bytes()
    for _ in range(40):     # a quarter of the link
        reporter.send(f'{pays.v4} {int(slow_link.world.rate_bps / 8 / 4 * 0.25)}\n')
        time.sleep(0.25)
    got = load.since(before)
    stop(load)
    charged = slow_link.gateway.report()['excess']['bytes']
    assert charged == 40 * int(slow_link.world.rate_bps / 8 / 4 * 0.25)
    assert got[pays] < 0.75 * got[other], got
