# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic that no request caused, as reported to the socket of msfrs_excess: which user is charged, when reports are
refused, and what share the user then gets through Squid."""
import os
import pathlib
import pwd
import shutil
import socket
import stat
import threading
import time

import pytest

from fieldtrial.site import msfrs_edge
from fieldtrial.site.arms import EDGE
from fieldtrial.site.world import LAN
from gateway import SOON
from test_classification import network_of
from test_reports import samples, scrape
from test_shares import MEASURED, WARM_UP, assert_shares, near

UNKNOWN = '198.18.9.9'      #: in no class's network, so it belongs to the default class


class Reporter:
    """Sends reports to Squid."""

    def __init__(self, gateway, name='excess.sock'):
        self._gateway = gateway
        self.path = gateway.directory / name
        self.line = f'msfrs_excess {self.path}'
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    def send(self, datagram):
        data = datagram if isinstance(datagram, bytes) else datagram.encode()
        self._socket.sendto(data, str(self.path))

    def tell(self, datagram, lines=1, refused=0):
        """Sends a datagram, and waits until Squid has accepted this many of its lines and refused this many."""
        before = self.counts()
        self.send(datagram)
        self._gateway.wait_until(lambda: self.counts()['lines'] >= before['lines'] + lines and
                                 self.counts()['refused_lines'] >= before['refused_lines'] + refused,
                                 lambda: f'{lines} more lines, {refused} refused: {self.counts()}')
        after = self.counts()
        assert (after['lines'] - before['lines'], after['refused_lines'] - before['refused_lines']) == (lines, refused)

    def counts(self):
        return self._gateway.report()['excess']

    def keep_telling(self, user, rate, stopped):
        """Reports `rate` bit/s for a user until the event `stopped` is set; returns a function for the bytes so far."""
        told, began = [0], time.monotonic()

        def run():
            while not stopped.wait(0.1):
                due = int((time.monotonic() - began) * rate / 8) - told[0]
                self.send(f'{user.v4} {due}\n')
                told[0] += due
        threading.Thread(target=run, daemon=True).start()
        return lambda: told[0]


@pytest.fixture
def reporter(slow_link):
    return Reporter(slow_link.gateway)


@pytest.fixture
def link(slow_link, reporter):
    slow_link.gateway.start('msfrs_window interval=1s', SOON, reporter.line)
    return slow_link


def excess(gateway):
    return {name: row['excess'] for name, row in gateway.classes().items()}


def top(gateway):
    return {row['user']: (row['class'], row['bytes']) for row in gateway.report()['top_users']}


@pytest.mark.sanitized
def test_bytes_are_charged_to_class_and_user_of_the_address(link, reporter):
    gold, silver = link.of('gold')[0], link.of('silver')[1]
    reporter.tell(f'{gold.v4} 1000\n{silver.v6} 200\n{UNKNOWN} 30\n- 4', lines=4)
    reporter.tell(f'{gold.v4} 9000\n- 5\n{gold.v4} 0\n', lines=3)
    assert excess(link.gateway) == {'gold': 10_000, 'silver': 200, 'bronze': 30}
    assert top(link.gateway) == {gold.v4: ('gold', 10_000), network_of(silver): ('silver', 200),
                                 UNKNOWN: ('bronze', 30)}
    assert reporter.counts() == {'socket': str(reporter.path), 'lines': 7, 'bytes': 10_230, 'no_class_bytes': 9,
                                 'refused_lines': 0}
    assert link.gateway.total('bytes') == 0, 'no response brought them'
    found = samples(scrape(link)[1])
    assert {name: found['msfrs_class_excess_bytes_total', name] for name in excess(link.gateway)} == \
        excess(link.gateway)
    assert found['msfrs_excess_lines_total',] == 7 and found['msfrs_excess_no_class_bytes_total',] == 9
    assert found['msfrs_excess_refused_lines_total',] == 0


BAD = ('nonsense', '198.18.1.1', '198.18.1.1 ', ' 5', '198.18.1.1 -5', '198.18.1.1 5x', '198.18.1.1 5 6',
       '198.18.1.1 10000000001', '198.18.1.1 99999999999999999999', '198.18.1.256 5', '198.18.1 5', '2001:2::g 5',
       'host.test 5', '198.18.1.1/24 5', '198.18.1.1\t5', '', '198.18.1.1 5\r', '\x00 5', 'é 5')


@pytest.mark.sanitized
def test_lines_that_are_wrong_are_counted_and_the_others_taken(link, reporter):
    gold = link.of('gold')[0]
    for line in BAD:
        reporter.tell(f'{line}\n{gold.v4} 1\n', lines=1, refused=1)
    reporter.tell(os.urandom(4000).replace(b'\n', b'-'), lines=0, refused=1)
    assert excess(link.gateway) == {'gold': len(BAD), 'silver': 0, 'bronze': 0}
    logged = [line for line in link.gateway.cache_log().splitlines() if 'refused at' in line]
    assert len(logged) == 1, 'a line a minute'
    assert logged[0].endswith(f"WARNING: msfrs: 1 line refused at {reporter.path}, the latest 'nonsense': it is not of "
                              'the form ADDRESS BYTES')


@pytest.mark.sanitized
def test_long_datagrams(link, reporter):
    gold = link.of('gold')[0]
    line = f'{gold.v4} 1\n'
    most = 8192 // len(line)
    reporter.tell(line * most, lines=most)
    reporter.tell(line * (most + 1), lines=0, refused=1)
    reporter.send('')
    reporter.tell('- 1')
    assert "has 8" in link.gateway.cache_log() and '; give at most 8192' in link.gateway.cache_log()


def test_more_reports_than_squid_reads_at_once(link, reporter):
    for _ in range(200):    # the sender blocks while the socket is full
        reporter.send('198.18.1.1 1\n' * 10)
    link.gateway.wait_until(lambda: reporter.counts()['lines'] == 2000, 'all lines are taken')


@pytest.mark.sanitized
@pytest.mark.parametrize('acl', ['music', 'group', 'lines'])
def test_an_address_is_who_its_latest_request_was(slow_link, reporter, acl):
    """A class that an ACL assigns to a request by its URL, and a user identified by more than an address."""
    gateway, user = slow_link.gateway, slow_link.of('bronze')[0]
    gateway.early = ('acl music urlpath_regex -i music', 'acl group any-of music', 'acl lines all-of music',
                     'acl lines all-of all music')
    gateway.start(reporter.line, 'msfrs_user src6/64', access=(f'msfrs_access gold allow {acl}',
                                                               f'msfrs_access silver allow !{acl}'))
    reporter.tell(f'{user.v4} 10\n{user.v6} 1\n', lines=2)
    assert excess(gateway) == {'gold': 0, 'silver': 0, 'bronze': 11}, 'a line without its request does not match'
    assert 'Assuming mismatch' not in gateway.cache_log()
    prefix = user.v6.rpartition('::')[0] if '::' in user.v6 else ':'.join(user.v6.split(':')[:4])
    assert any(name.endswith('/64') and name.startswith(prefix) for name in top(gateway)), top(gateway)
    assert slow_link.users.get(user, path='/music').wait().finished
    reporter.tell(f'{user.v4} 100\n')
    assert excess(gateway) == {'gold': 100, 'silver': 0, 'bronze': 11}
    gateway.reconfigure(reporter.line)
    reporter.tell(f'{user.v4} 1000\n')
    assert excess(gateway)['bronze'] == 1011, 'of another configuration nothing is remembered'


@pytest.mark.sanitized
def test_the_socket_and_reconfiguration(link, reporter):
    """It stays through a reconfiguration, moves, disappears and returns; only Squid's user and group may use it."""
    gateway, other = link.gateway, Reporter(link.gateway, 'other.sock')
    proxy = pwd.getpwnam('proxy')
    made = reporter.path.lstat()
    assert stat.S_ISSOCK(made.st_mode) and stat.S_IMODE(made.st_mode) == 0o660
    assert (made.st_uid, made.st_gid) == (proxy.pw_uid, proxy.pw_gid)
    reporter.tell('- 1')
    gateway.reconfigure(SOON, reporter.line)
    assert reporter.path.lstat().st_ino == made.st_ino
    reporter.tell('- 1')
    gateway.reconfigure(other.line)
    assert not reporter.path.exists()
    other.tell('- 1')
    gateway.reconfigure()
    assert not other.path.exists() and other.counts()['socket'] is None
    gateway.reconfigure(reporter.line)
    reporter.tell('- 1')
    assert reporter.counts()['no_class_bytes'] == 4
    gateway.reconfigure(reporter.line, on=False)
    assert not reporter.path.exists()
    gateway.reconfigure(reporter.line)
    reporter.tell('- 1')
    gateway.stop()
    assert not reporter.path.exists()


@pytest.mark.sanitized
def test_what_a_killed_squid_left_behind_is_replaced(slow_link, reporter):
    proxys_socket(reporter.path).close()
    slow_link.gateway.start(reporter.line)
    reporter.tell('- 1')


def proxys_socket(path):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(str(path))
    shutil.chown(path, 'proxy', 'proxy')
    return made


@pytest.mark.parametrize('make, words', (
    (lambda path: path.write_text('precious'), 'the file {} is no socket; remove it, or give another path'),
    (proxys_socket, 'the socket {} is in use by another process; give another path'),
    (pathlib.Path.mkdir, 'the file {} is no socket; remove it, or give another path')))
def test_what_belongs_to_others_is_left_alone(link, reporter, make, words):
    """At a reconfiguration it is an error, and Squid continues without the socket."""
    path = link.gateway.directory / 'other'
    kept = make(path)       # keeps the socket open
    before = path.lstat().st_ino
    link.gateway.reconfigure(f'msfrs_excess {path}')
    assert path.lstat().st_ino == before, kept
    log = link.gateway.cache_log()
    said = [line for line in log.splitlines() if 'ERROR: msfrs' in line]
    assert len(said) == 1 and said[0].endswith(f'msfrs_excess: {words.format(path)}; until the next reconfiguration, '
                                               'excessive traffic is not charged'), said
    assert reporter.counts()['socket'] is None
    assert link.users.get(link.of('gold')[0]).wait().good
    (link.gateway.directory / 'cache.log').write_text(log.replace(said[0], ''))     # this error was intended


def datagrams(link, *receivers, count=20, size=500):
    """From a server to closed ports, regardless of ICMP errors."""
    for receiver in receivers:
        family = socket.AF_INET6 if ':' in receiver else socket.AF_INET
        with link.world.farm.inside():
            sender = socket.socket(family, socket.SOCK_DGRAM)
        for _ in range(count):
            sender.sendto(bytes(size), (receiver, 9))
        sender.close()


def test_msfrs_edge_tells_what_passes_beside_squid_and_nothing_else(link, reporter):
    gateway, gold, bronze = link.gateway, link.of('gold')[0], link.of('bronze')[0]
    edge = msfrs_edge.tell(link.world, LAN, EDGE, reporter.path)
    gateway.intercept_tls()
    fetches = [link.users.get(gold, via=via, family=family, size=50_000)
               for via in ('proxy', 'intercept', 'tls') for family in (4, 6)]
    assert all(fetch.wait().good for fetch in fetches), fetches
    datagrams(link, gold.v4, gold.v6, bronze.v4)
    wanted = {'gold': 20 * (500 + 20 + 8) + 20 * (500 + 40 + 8), 'silver': 0, 'bronze': 20 * (500 + 20 + 8)}
    gateway.wait_until(lambda: excess(gateway) == wanted, lambda: f'{wanted}: {excess(gateway)}')
    counted = msfrs_edge.totals(edge.control)
    assert counted['excess_bytes_total'] == sum(wanted.values()) and counted['excess_lost_bytes_total'] == 0
    gateway.reconfigure(SOON)       # the socket is closed then
    datagrams(link, gold.v4, count=1)
    gateway.wait_until(lambda: msfrs_edge.totals(edge.control)['excess_lost_bytes_total'] == 528, 'it is lost')
    gateway.reconfigure(SOON, reporter.line)
    datagrams(link, gold.v4, count=1)
    gateway.wait_until(lambda: excess(gateway)['gold'] == wanted['gold'] + 528, 'it goes on')


def test_a_user_gets_that_much_less_through_squid(link, reporter):
    """All users are backlogged; the first user of gold is reported to receive 200 kbit/s beside Squid."""
    user, stopped = link.of('gold')[0], threading.Event()
    load = link.users.load(link.world.users)
    told = reporter.keep_telling(user, 200e3, stopped)
    try:
        time.sleep(WARM_UP)
        before, told_before = load.bytes(), told()
        time.sleep(2 * MEASURED)
        got, beside = load.since(before), told() - told_before
    finally:
        stopped.set()
        load.stop(abort=True)
    assert beside > 0.25 * got[user]
    assert got[user] < 0.85 * got[link.of('gold')[1]]
    got[user] += beside
    assert_shares(got, {user: link.world.weights[user.cls] for user in link.world.users})


def test_who_takes_more_than_its_share_gets_nothing_through_squid_and_nobody_else_suffers(link, reporter):
    user, stopped = link.of('bronze')[0], threading.Event()
    load = link.users.load(link.world.users)
    reporter.keep_telling(user, 1e6, stopped)
    try:
        time.sleep(WARM_UP)
        before = load.bytes()
        time.sleep(MEASURED)
        got = load.since(before)
    finally:
        stopped.set()
        load.stop(abort=True)
    bronze = sum(got[each] for each in link.of('bronze'))
    assert bronze < 0.05 * sum(got.values()), 'the class has had its share'
    by_class = {name: sum(got[each] for each in link.of(name)) for name in ('gold', 'silver')}
    assert near(by_class['gold'] / by_class['silver'], 2), by_class
