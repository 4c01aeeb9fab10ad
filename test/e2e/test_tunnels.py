# SPDX-License-Identifier: GPL-2.0-or-later
"""Tunnels and FTP are held, charged and served in quanta like plain HTTP; TLS stays encrypted."""
import pathlib
import ssl
import time

import pytest

from gateway import NARROW
from test_shares import MEASURED, WARM_UP, assert_shares, by_class

BIG = 20_000_000


def shares_of_downloads(link, roads):
    """Two endless downloads for each user, by the path of its class. Bytes by class over the measured time."""
    loads = [link.users.load(link.of(name), inflight=2, size=BIG, **how) for name, how in roads.items()]
    time.sleep(WARM_UP)
    before = [load.bytes() for load in loads]
    time.sleep(MEASURED)
    got = {}
    for load, was in zip(loads, before, strict=True):
        got |= load.since(was)
    for load in loads:
        load.stop(abort=True)
    link.gateway.rest()
    return by_class(link, got)


@pytest.mark.parametrize('roads', (
    {'gold': {'via': 'connect'}, 'silver': {'via': 'connect'}, 'bronze': {'via': 'connect'}},
    {'gold': {'via': 'tls'}, 'silver': {'via': 'tls', 'family': 6}, 'bronze': {'via': 'tls'}},
    {'gold': {'via': 'proxy'}, 'silver': {'via': 'connect', 'family': 6}, 'bronze': {'via': 'tls'}},
), ids=('connect', 'intercepted', 'mixed'))
def test_big_downloads_share_by_weight(slow_link, roads):
    slow_link.gateway.start('msfrs_window interval=1s').intercept_tls()
    got = shares_of_downloads(slow_link, roads)
    assert_shares(got, {'gold': 4, 'silver': 2, 'bronze': 1})


@pytest.fixture(scope='module')
def narrow(common_link):
    """One request at a time, in quanta of 4 KB; some classes by the server's name."""
    common_link.world.start_names()
    common_link.gateway.start(NARROW, 'msfrs_quantum 4 KB', access=(
        'acl second ssl::server_name s02.test', 'msfrs_access gold allow second')).intercept_tls()


@pytest.fixture
def link(narrow, shared_link):
    return shared_link


@pytest.mark.sanitized
@pytest.mark.parametrize('via', ('connect', 'tls'))
@pytest.mark.parametrize('family', (4, 6))
def test_held_charged_and_in_quanta(link, via, family):
    gateway, user = link.gateway, link.of('bronze')[family == 6]
    gate = f'{via}{family}'
    blocker = link.users.get(link.of('silver')[0], gate=gate)
    gateway.wait_for(queued=0, in_flight=1)
    before = gateway.classes()['bronze']
    fetches = [link.users.get(user, f'{gate}{n}', via=via, family=family, size=50_000, name='s01.test',
                              ca=link.certificates.origin) for n in range(2)]
    gateway.wait_for(queued=2, in_flight=1)
    assert not any(fetch.received or fetch.certificate for fetch in fetches), 'it was not held'
    link.origin.open_gate(gate)
    assert blocker.wait().good and all(fetch.wait().good for fetch in fetches), fetches
    gateway.rest()
    after = gateway.classes()['bronze']
    # Handshakes, certificates and TLS framing are charged, too; the rest is neither lost nor counted twice.
    assert 100_000 < after['bytes'] - before['bytes'] < 1.1 * 100_000
    # Each is of 4 kB, plus the bytes that arrived in the pause before it: at most 5 kB, the receive buffer.
    assert after['quanta'] - before['quanta'] >= 100_000 // 9_000
    own = ssl.PEM_cert_to_DER_cert(_first_certificate(link.certificates.origin))
    assert {fetch.certificate for fetch in fetches} == {own}


def _first_certificate(path):
    text = pathlib.Path(path).read_text()
    return text[text.index('-----BEGIN CERTIFICATE'):]


@pytest.mark.sanitized
def test_class_by_the_name_in_the_greeting(link):
    """Two servers, one user of bronze; the second server's name moves the user to gold."""
    gateway, user = link.gateway, link.of('bronze')[0]
    before = {name: row['bytes'] for name, row in gateway.classes().items()}
    fetches = [link.users.get(user, via='tls', server=number, name=f's0{number + 1}.test', size=30_000 * (number + 1),
                              ca=link.certificates.origin) for number in range(2)]
    assert all(fetch.wait().good for fetch in fetches), fetches
    gateway.rest()
    got = {name: row['bytes'] - before[name] for name, row in gateway.classes().items()}
    assert 30_000 < got['bronze'] < 40_000 and 60_000 < got['gold'] < 70_000, got


@pytest.mark.sanitized
def test_a_greeting_without_a_name(link):
    fetch = link.users.get(link.of('bronze')[0], via='tls')
    assert fetch.wait().good, fetch


@pytest.mark.sanitized
def test_what_is_no_tls_on_the_tls_port_harms_nobody(link):
    """Squid peeks at garbage, at half a ClientHello and at silence."""
    user, held = link.of('bronze')
    before = link.gateway.total('requests')
    for words in (b'GET / HTTP/1.0\r\n\r\n', b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', b'\x00' * 600, b''):
        link.users.say(user, link.world.servers[0].v4, 443, words)
    fetch = link.users.get(held, via='tls', name='s01.test', ca=link.certificates.origin)
    assert fetch.wait().good, fetch
    assert link.gateway.total('requests') - before <= 4


@pytest.mark.sanitized
def test_ftp_is_held_charged_and_paused(ftp):
    gateway = ftp.gateway.start(NARROW, 'msfrs_quantum 4 KB')
    blocker = ftp.users.get(ftp.of('silver')[0], gate='first')
    gateway.wait_for(queued=0, in_flight=1)
    big = ftp.users.get(ftp.of('gold')[0], 'big', via='ftp', path='/big')
    gateway.wait_for(queued=1, in_flight=1)
    ftp.origin.open_gate('first')
    assert blocker.wait().good
    gateway.wait_until(lambda: big.received, 'it has begun')
    other = ftp.users.get(ftp.of('silver')[0], gate='second')
    gateway.wait_for(queued=0, paused=1, in_flight=1)
    assert big.received < 200_000
    ftp.origin.open_gate('second')
    assert other.wait().good and big.wait().good and big.received == 200_000, big
    gateway.rest()
    gold = gateway.classes()['gold']
    assert 200_000 < gold['bytes'] < 202_000, 'the file and what the server says on the control connection'
    assert gold['quanta'] > 2
    (row,) = [row for row in gateway.access_log(3) if row['url'].startswith('ftp:')]
    # "226 Transfer complete" arrives after the client has everything, and possibly after the line was written.
    assert (row['class'], row['status']) == ('gold', '200') and 200_000 < int(row['bytes']) <= gold['bytes']


@pytest.mark.sanitized
@pytest.mark.parametrize('when', ('queued', 'paused'))
def test_ftp_clients_who_go_away(ftp, when):
    gateway = ftp.gateway.start(NARROW, 'msfrs_quantum 4 KB')
    if when == 'queued':
        ftp.users.get(ftp.of('silver')[0], gate='first')
        gateway.wait_for(queued=0, in_flight=1)
    big = ftp.users.get(ftp.of('gold')[0], 'big', via='ftp', path='/big')
    if when == 'queued':
        gateway.wait_for(queued=1, in_flight=1)
    else:
        gateway.wait_until(lambda: big.received, 'it has begun')
        ftp.users.get(ftp.of('silver')[0], gate='first')
        gateway.wait_for(queued=0, paused=1, in_flight=1)
    big.abort()
    gateway.wait_for(queued=0, paused=0, in_flight=1)
    ftp.origin.open_gate('first')
    gateway.rest()


def test_ftp_shares_by_weight(ftp):
    """Gold by FTP against bronze by HTTP, one download after the other."""
    ftp.gateway.start('msfrs_window interval=1s')
    loads = [ftp.users.load(ftp.of('gold'), inflight=3, key='big', via='ftp', path='/big'),
             ftp.users.load(ftp.of('bronze'), inflight=3, size=200_000)]
    time.sleep(WARM_UP)
    before = [load.bytes() for load in loads]
    time.sleep(MEASURED)
    gold, bronze = (sum(load.since(was).values()) for load, was in zip(loads, before, strict=True))
    for load in loads:
        load.stop(abort=True)
    assert_shares({'gold': gold, 'bronze': bronze}, {'gold': 4, 'bronze': 1})
    ftp.gateway.rest()
