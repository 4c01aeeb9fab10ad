# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that take unusual paths through Squid: uploads, retries, changed protocols, decrypted TLS, delay pools, slow
clients, clients who leave shortly before the end. Each is held, charged, paused and ended like any other."""
import pytest

from gateway import NARROW

pytestmark = [pytest.mark.sanitized, pytest.mark.link(rate_bps=4e6, rtts_ms=(5.0,))]
QUANTUM = 'msfrs_quantum 4 KB'
PEEK_TWICE = 'ssl_bump peek all\nssl_bump splice all'


@pytest.fixture(scope='module')
def narrow(common_link):
    """One request at a time, in quanta of 4 KB."""
    common_link.gateway.start(NARROW, QUANTUM, 'http_upgrade_request_protocols e2e allow all')


@pytest.fixture
def link(narrow, shared_link):
    return shared_link


def hold_up(link, gate):
    """Holds the only slot in the window until the gate opens."""
    blocker = link.users.get(link.of('silver')[0], gate=gate)
    link.gateway.wait_until(lambda: blocker.key in link.origin.keys(), 'the blocker is served')
    return blocker


def charged(link, name='gold'):
    return link.gateway.classes()[name]['bytes']


@pytest.mark.parametrize('via', ('proxy', 'connect'))
def test_an_upload_that_was_held(link, via):
    """Larger than Squid's buffer for it while it waits."""
    hold_up(link, f'upload-{via}')
    upload = link.users.get(link.of('gold')[0], via=via, body=500_000, size=2000)
    link.gateway.wait_for(queued=1, in_flight=1)
    before = charged(link)
    link.origin.open_gate(f'upload-{via}')
    assert upload.wait().good, upload
    link.gateway.rest()
    assert 2000 < charged(link) - before < 6000, 'only what comes down is charged'


@pytest.mark.parametrize('reset', (False, True), ids=('close', 'reset'))
def test_an_upload_whose_client_leaves(link, reset):
    hold_up(link, f'leave-{reset}')
    upload = link.users.get(link.of('gold')[0], body=500_000)
    link.gateway.wait_for(queued=1, in_flight=1)
    upload.abort(reset)
    link.gateway.wait_for(queued=0, in_flight=1)
    link.origin.open_gate(f'leave-{reset}')


def test_an_upload_that_waits_too_long(slow_link):
    slow_link.gateway.start(NARROW, 'msfrs_queue max_wait=1s')
    hold_up(slow_link, 'open')
    uploads = [slow_link.users.get(user, body=300_000) for user in slow_link.of('gold')]
    for upload in uploads:
        upload.wait()
        # Squid responds and closes during the upload, so that the response may be lost in a reset.
        assert upload.status == 503 or upload.error, upload
    slow_link.gateway.wait_for(queued=0, in_flight=1)
    slow_link.origin.open_gate('open')
    slow_link.gateway.rest()


def test_a_server_that_closes_an_idle_connection_too_late(link):
    """Squid retries over a new connection; the request keeps its slot and does not wait again."""
    user = link.of('gold')[0]
    assert link.users.get(user).wait().good         # leaves an idle connection
    requests = link.gateway.total('requests')
    fetch = link.users.get(user, 'again', drop='again', size=50_000)
    assert fetch.wait().good, fetch
    assert link.origin.keys().count('again') == 2
    assert link.gateway.total('requests') == requests + 1


def test_a_protocol_that_was_changed(link):
    """101: an HTTP response continues as a tunnel, with the same ticket."""
    gateway, user = link.gateway, link.of('gold')[0]
    before = charged(link)
    fetch = link.users.get(user, upgrade=True, framing='upgrade', size=300_000)
    gateway.wait_until(lambda: fetch.received, fetch)
    hold_up(link, 'upgrade')
    gateway.wait_for(queued=0, paused=1, in_flight=1)
    assert fetch.received < 300_000
    link.origin.open_gate('upgrade')
    fetch.wait()
    assert (fetch.status, fetch.received, fetch.intact) == (101, 300_000, True), fetch
    gateway.rest()
    assert 300_000 < charged(link) - before < 300_200, 'what came with the 101 is charged once'


def test_a_protocol_that_was_changed_and_a_client_who_leaves(link):
    gateway = link.gateway
    fetch = link.users.get(link.of('gold')[0], upgrade=True, framing='upgrade', size=300_000)
    gateway.wait_until(lambda: fetch.received, fetch)
    hold_up(link, 'upgraded')
    gateway.wait_for(queued=0, paused=1, in_flight=1)
    fetch.abort(reset=True)
    gateway.wait_for(queued=0, paused=0, in_flight=1)
    link.origin.open_gate('upgraded')


@pytest.mark.parametrize('framing', ('length', 'chunked'))
def test_a_slow_client_gets_all(link, framing):
    """It stops for a while, so that Squid stops reading; the quantum continues where it was."""
    fetch = link.users.get(link.of('gold')[0], size=3_000_000, stall_after=10_000, framing=framing)
    link.gateway.wait_until(lambda: fetch.received >= 10_000, fetch)
    # Once Squid's buffers and the kernel's are full, the response keeps its slot and others wait. Before that, others
    # may be served between its quanta.
    other = None
    while other is None or other.finished:
        other = link.users.get(link.of('silver')[0])
        link.gateway.wait_until(lambda: other.finished or link.gateway.totals('queued', 'in_flight') == (1, 1), fetch)
    fetch.go_on()
    assert other.wait().good and fetch.wait().good, fetch


def test_who_leaves_when_all_is_nearly_there(slow_link):
    """Squid fetches the rest for the cache (quick_abort_min), without a client, but still in its turn."""
    gateway, (one, two) = slow_link.gateway, slow_link.of('gold')
    gateway.start(NARROW, QUANTUM, 'quick_abort_min 1 MB', cache=True)
    page = {'size': 300_000, 'cache': 600}
    leaver = slow_link.users.get(one, 'page', **page)
    gateway.wait_until(lambda: leaver.received, leaver)
    hold_up(slow_link, 'open')
    gateway.wait_for(queued=0, paused=1, in_flight=1)
    leaver.abort()
    gateway.wait_until(lambda: len(gateway.access_log()) == 1, 'the end of the leaver')
    gateway.wait_for(queued=0, paused=1, in_flight=1)
    slow_link.origin.open_gate('open')
    gateway.rest()
    assert slow_link.users.get(two, 'page', **page).wait().good
    assert slow_link.origin.keys().count('page') == 1, 'the second was a hit'
    assert charged(slow_link) > 300_000


def test_peeking_at_the_server_too(slow_link):
    """With a second peek, Squid connects before it splices: a forwarder becomes a tunnel."""
    gateway, user = slow_link.gateway, slow_link.of('gold')[0]
    slow_link.world.start_names()
    gateway.start(NARROW, QUANTUM, *gateway.certificate_generator(), bump=PEEK_TWICE).intercept_tls()
    own = {'name': 's01.test', 'ca': slow_link.certificates.origin}
    hold_up(slow_link, 'first')
    fetches = [slow_link.users.get(user, via='tls', size=100_000, **own) for _ in range(2)]
    gateway.wait_for(queued=2, in_flight=1)
    slow_link.origin.open_gate('first')
    gateway.wait_until(lambda: all(fetch.received for fetch in fetches), lambda: f'both have begun: {fetches}')
    hold_up(slow_link, 'second')
    gateway.wait_for(queued=0, paused=2, in_flight=1)
    fetches.pop().abort()
    gateway.wait_for(queued=0, paused=1, in_flight=1)
    slow_link.origin.open_gate('second')
    assert fetches[0].wait().good, fetches
    gateway.rest()
    assert 100_000 < charged(slow_link) < 220_000


def test_who_leaves_while_squid_would_peek_at_the_server_too(slow_link):
    gateway = slow_link.gateway
    slow_link.world.start_names()
    gateway.start(NARROW, *gateway.certificate_generator(), bump=PEEK_TWICE).intercept_tls()
    hold_up(slow_link, 'open')
    leaver = slow_link.users.get(slow_link.of('gold')[0], via='tls', name='s01.test')
    gateway.wait_for(queued=1, in_flight=1)
    leaver.abort()
    gateway.wait_for(queued=0, in_flight=1)
    slow_link.origin.open_gate('open')
    gateway.rest()


def test_refused_while_peeking_at_the_server_too(slow_link):
    slow_link.world.start_names()
    gateway = slow_link.gateway
    gateway.start(NARROW, 'msfrs_queue max_wait=1s', *gateway.certificate_generator(), bump=PEEK_TWICE).intercept_tls()
    hold_up(slow_link, 'open')
    refused = slow_link.users.get(slow_link.of('gold')[0], via='tls', name='s01.test')
    assert refused.wait().status == 0 and not refused.certificate, 'closed, without a forged certificate'
    assert gateway.classes()['gold']['refused']['max_wait'] == 1
    slow_link.origin.open_gate('open')
    gateway.rest()


def test_decrypted_tls(slow_link):
    """Bumped: requests inside the connection are held and charged one by one. Squid compares the name."""
    gateway, user = slow_link.gateway, slow_link.of('gold')[0]
    slow_link.world.start_names(same=True)
    gateway.start(NARROW, QUANTUM, *gateway.certificate_generator(), 'sslproxy_cert_error allow all',
                  'tls_outgoing_options flags=DONT_VERIFY_PEER', bump='ssl_bump stare greeting\nssl_bump bump all')
    gateway.intercept_tls()
    hold_up(slow_link, 'first')
    fetch = slow_link.users.get(user, via='tls', name='s01.test', size=100_000)
    gateway.wait_for(queued=1, in_flight=1)
    slow_link.origin.open_gate('first')
    gateway.wait_until(lambda: fetch.received, fetch)
    hold_up(slow_link, 'second')
    gateway.wait_for(queued=0, paused=1, in_flight=1)
    slow_link.origin.open_gate('second')
    assert fetch.wait().good, fetch
    gateway.rest()
    assert charged(slow_link) > 100_000
    leaver = slow_link.users.get(user, via='tls', name='s01.test', size=1_000_000)
    gateway.wait_until(lambda: leaver.received, leaver)
    leaver.abort()
    gateway.rest()


def test_delay_pools_beside_it(slow_link):
    """Either may pause the reading of a response."""
    gateway = slow_link.gateway.start('msfrs_window interval=200ms', QUANTUM, 'delay_pools 1', 'delay_class 1 1',
                                      'delay_parameters 1 100000/100000', 'delay_access 1 allow all')
    fetches = [slow_link.users.get(user, size=50_000, via=via) for user in slow_link.world.users
               for via in ('proxy', 'connect')]
    gateway.wait_until(lambda: sum(fetch.received for fetch in fetches) > 100_000, 'a part')
    for fetch in fetches[:4]:
        fetch.abort()
    assert all(fetch.wait().good for fetch in fetches[4:]), fetches
    gateway.rest()
