# SPDX-License-Identifier: GPL-2.0-or-later
"""Any scheduler as arbiter and any AQM on the request queues, with their parameters."""
import pytest

from gateway import NARROW
from test_limits import assert_refused, hold_up, refusals, rows_of

pytestmark = pytest.mark.link(rate_bps=8e6, rtts_ms=(2.0,), users=(2, 2, 2))

BUSY = 'The connection to the Internet is too busy to take another request.'


@pytest.mark.parametrize('arbiter', ('fifo', 'drr', 'drr share=user', 'sfq', 'sfq divisor=1 perturb=0', 'msfq',
                                     'msfq share=user', 'msf'))
def test_a_packet_scheduler_releases_requests(slow_link, arbiter):
    """All waiting requests are served, also in quanta, and the report names the scheduler."""
    gateway = slow_link.gateway.start(NARROW, f'msfrs_arbiter {arbiter}', 'msfrs_quantum 4 KB')
    blocker = hold_up(slow_link)
    waiting = [slow_link.users.get(user, size=30_000) for user in slow_link.world.users for _ in range(4)]
    gateway.wait_for(queued=len(waiting), in_flight=1)
    slow_link.origin.open_gate('open')
    assert all(fetch.wait().good and fetch.received == 30_000 for fetch in waiting), waiting
    assert blocker.wait().good
    assert gateway.report()['arbiter'] == arbiter
    gateway.rest()


#: Each admits a few waiting requests, but not thirty of one user.
AQMS = ('droptail limit=8', 'red limit=16 weight=1', 'choke limit=16 weight=1 maxp=50', 'fred limit=16', 'sfed limit=16',
        'faba limit=16')


def wait_until_judged(link, requests):
    """Waits until all of them are queued or refused."""
    link.gateway.wait_until(lambda: link.gateway.total('queued') + sum(refusals(link).values()) == requests,
                            lambda: f'{requests} are judged: {link.gateway.report()}')


@pytest.mark.parametrize('admission', AQMS)
def test_an_aqm_refuses_requests_before_the_queue_is_full(slow_link, admission):
    gateway = slow_link.gateway.start(NARROW, f'msfrs_admission {admission}')
    blocker = hold_up(slow_link)
    greedy, modest = slow_link.of('bronze')[0], slow_link.of('gold')[0]
    asked = [slow_link.users.get(greedy) for _ in range(30)]
    wait_until_judged(slow_link, 30)
    count = refusals(slow_link)[('bronze', 'admission')]
    assert 1 <= count < 30
    slow_link.origin.open_gate('open')
    refused = [fetch for fetch in asked if not fetch.wait().good]
    assert len(refused) == count
    for fetch in refused:
        assert_refused(fetch, BUSY, 60)
    rows = [row for row in rows_of(slow_link, greedy.v4, 30) if row['status'] == '503']
    assert {row['refusal'] for row in rows} == {'MSFRS_NOT_ADMITTED'} and len(rows) == count
    assert blocker.wait().good
    assert slow_link.users.get(modest).wait().good, 'who comes later is let in again'
    assert gateway.report()['admission'] == admission
    gateway.rest()


@pytest.mark.parametrize('admission', AQMS)
def test_a_paused_response_is_not_refused(slow_link, admission):
    """A started response resumes, however full the queue is."""
    gateway = slow_link.gateway.start(NARROW, 'msfrs_quantum 4 KB', f'msfrs_admission {admission}')
    one, two = slow_link.of('gold')
    begun = [slow_link.users.get(one, f'begun{number}', size=200_000) for number in range(3)]
    gateway.wait_until(lambda: all(fetch.received for fetch in begun), lambda: f'all begun {begun}')
    blocker = slow_link.users.get(two, gate='flood')
    gateway.wait_for(paused=3, in_flight=1)
    flood = [slow_link.users.get(slow_link.of('bronze')[0]) for _ in range(30)]
    wait_until_judged(slow_link, 30)
    slow_link.origin.open_gate('flood')
    assert all(fetch.wait().good for fetch in (*begun, blocker)), begun
    for fetch in flood:
        fetch.wait()
    gateway.rest()
