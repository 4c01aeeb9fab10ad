# SPDX-License-Identifier: GPL-2.0-or-later
"""Two Squids on one link, each on a gateway with its own users, which exchange state by msfrs-share and a store."""
import contextlib
import dataclasses
import os
import signal
import time

import pytest

from background import wait_until
from fieldtrial.site import sharing
from fieldtrial.site.lan import HOME
from fieldtrial.site.world import sockets_of
from gateway import SOON
from gateways import PROGRAM
from installation import SQUID
from test_shares import MEASURED, WARM_UP, assert_shares, by_class, near

pytestmark = [pytest.mark.link(gateways=2),
              pytest.mark.skipif(not sockets_of(SQUID).is_dir(), reason='this Squid has been moved')]

WEIGHTS = {'gold': 4, 'silver': 2, 'bronze': 1}
#: One line when Squid's segment is found, one when the other gateway is found, and two for the store.
AT_START = 6


class Shared:
    """A link with both gateways in operation, the second with two workers."""

    def __init__(self, link):
        self.link, self.gateways, self.world = link, link.gateways, link.world
        self.store = sharing.start_store(self.world)
        self.gateways[1].world.workers = 2
        for gateway in self.gateways:
            gateway.start('msfrs_window interval=1s', SOON)
        self.daemons = [sharing.start_share(gateway.world, PROGRAM) for gateway in self.gateways]
        self.wait_for('together')

    def states(self):
        return [sharing.state(gateway.world, PROGRAM) for gateway in self.gateways]

    def wait_for(self, state):
        """Waits until both are in that state, and, for `together`, each Squid sees the other gateway. Seconds."""
        start = time.monotonic()
        wait_until(lambda: self.states() == [state] * 2, lambda: f'{state}: {self.states()}; {self.said()}')
        if state == 'together':
            wait_until(lambda: all(self.others(gateway) for gateway in self.gateways), self.said)
        return time.monotonic() - start

    @staticmethod
    def others(gateway):
        """The other gateways as parties of a Squid's ledger."""
        return [party for party in gateway.report()['parties'] if party['kind'] == 'gateway' and party['live']]

    def said(self):
        """Log lines of both msfrs-share."""
        return [line for gateway in self.gateways
                for line in (self.world.directory / f'share-{gateway.world.gateway.role}.log').read_text().splitlines()]

    def measure(self, load, seconds):
        """(bytes by user, utilisation of the link) over some seconds of a load."""
        with contextlib.ExitStack() as stack:
            counters = [stack.enter_context(gateway.received()) for gateway in self.gateways]
            before, link_before, began = load.bytes(), [each.read() for each in counters], time.monotonic()
            time.sleep(seconds)
            got, took = load.since(before), time.monotonic() - began
            brought = sum(each.read() - was for each, was in zip(counters, link_before))
        return got, brought * 8 / took / self.world.rate_bps

    def by_gateway(self, got):
        """Bytes of the users behind each gateway."""
        return [sum(got[user] for users in gateway.world.groups.values() for user in users)
                for gateway in self.gateways]

    def elsewhere(self, user):
        """The user with the same address behind the second gateway."""
        (home, users), *_ = self.gateways[1].world.groups.items()
        twin = dataclasses.replace(user, name=f'{user.name} elsewhere')
        home.batch([f'addr add {twin.v4}/32 dev {HOME}'])
        users.append(twin)
        return twin

    def assert_right(self, got):
        """Shares by weight, whichever gateway users are behind; each gateway has as many users of each class."""
        assert_shares(by_class(self.link, got), WEIGHTS)
        first, second = self.by_gateway(got)
        assert_shares({'first': first, 'second': second}, {'first': 1, 'second': 1})

    def rest(self):
        for gateway in self.gateways:
            gateway.rest()
            # Another gateway's usage is known as of its latest report.
            gateway.wait_until(lambda gateway=gateway: not any(
                party['outstanding'] for party in gateway.report()['parties']), gateway.report)


@pytest.fixture
def shared(slow_link):
    made = Shared(slow_link)
    yield made
    slow_link.users.close()
    made.rest()     # no slot is lost


def whole(fetches):
    """Checks that no request was refused or answered wrongly."""
    assert [fetch for fetch in fetches if fetch.status not in (0, 200) or not fetch.intact] == []


def test_users_of_two_gateways_by_weight_and_the_link_full(shared):
    load = shared.link.users.load(shared.world.users)
    time.sleep(WARM_UP)
    got, utilisation = shared.measure(load, MEASURED)
    parties = [gateway.report()['parties'] for gateway in shared.gateways]
    whole(load.stop(abort=True))
    shared.assert_right(got)
    assert 0.9 < utilisation < 1.02
    assert [[(party['kind'], party['leads']) for party in each] for each in parties] == [
        [('worker', True), ('gateway', False)],
        [('worker', False), ('worker', False), ('gateway', True)]]
    assert len(shared.said()) <= 2 * AT_START


def test_what_the_users_of_one_gateway_leave_those_of_the_other_take(shared):
    mine = [user for users in shared.gateways[1].world.groups.values() for user in users]
    load = shared.link.users.load(mine)
    time.sleep(WARM_UP)
    _, utilisation = shared.measure(load, 6.0)
    load.stop(abort=True)
    assert utilisation > 0.9


def test_a_user_of_both_gateways_has_one_share(shared):
    """A user who downloads through both gets no more than one who downloads through one."""
    user, other = shared.link.of('gold')
    twin = shared.elsewhere(user)
    load = shared.link.users.load([*shared.world.users, twin])
    time.sleep(WARM_UP)
    got, utilisation = shared.measure(load, MEASURED)
    whole(load.stop(abort=True))
    each = got[user], got.pop(twin)
    got[user] = sum(each)
    assert min(each) > sum(each) / 5
    assert_shares({'both': got[user], 'one': got[other]}, {'both': 1, 'one': 1})
    assert_shares(by_class(shared.link, got), WEIGHTS)
    assert 0.9 < utilisation < 1.02


@pytest.mark.parametrize('how', (signal.SIGKILL, signal.SIGSTOP))
def test_the_store_goes_under_load_and_comes_back(shared, how):
    load = shared.link.users.load(shared.world.users)
    time.sleep(WARM_UP)
    os.kill(shared.store.pid, how)
    shared.wait_for('static')
    time.sleep(WARM_UP)
    got, utilisation = shared.measure(load, MEASURED)
    shared.assert_right(got)
    assert 0.9 < utilisation < 1.02
    sharing.start_store(shared.world) if how == signal.SIGKILL else os.kill(shared.store.pid, signal.SIGCONT)
    assert shared.wait_for('together') < 3.0
    got, _ = shared.measure(load, MEASURED)
    shared.assert_right(got)
    whole(load.stop(abort=True))
    assert len(shared.said()) <= 2 * (AT_START + 5)


@pytest.mark.link(gateways=2, users=(8, 4, 10), rate_bps=10e6)
@pytest.mark.parametrize('how', (signal.SIGKILL, signal.SIGSTOP))
def test_nobody_pays_for_an_outage(shared, how):
    """Each class of each gateway has its weight soon after the store has returned, whatever the static shares gave it.
    The gateways have different users: in an average over both this would not show."""
    of = [{name: [user for users in gateway.world.groups.values() for user in users if user.cls == name]
           for name in WEIGHTS} for gateway in shared.gateways]
    busy = {(place, name): users[:most] for place, counts in enumerate(((1, 2, 5), (4, 2, 1)))
            for (name, users), most in zip(of[place].items(), counts) if most}
    load = shared.link.users.load([user for users in busy.values() for user in users])
    sums = dict.fromkeys(busy, 0.0)
    for _ in range(2):
        time.sleep(2 * WARM_UP)
        os.kill(shared.store.pid, how)
        time.sleep(15.0)
        assert shared.states() == ['static'] * 2
        if how == signal.SIGKILL:
            shared.store = sharing.start_store(shared.world)
        else:
            os.kill(shared.store.pid, signal.SIGCONT)
        shared.wait_for('together')
        time.sleep(3.0)
        got, _ = shared.measure(load, 10.0)     # a user has only a few quanta of 16 KB in this time
        for key, users in busy.items():
            sums[key] += sum(got[user] for user in users) / len(users) / WEIGHTS[key[1]]
    whole(load.stop(abort=True))
    mean = sum(sums.values()) / len(sums)
    print({key: round(had / mean, 2) for key, had in sums.items()})
    assert all(near(had, mean, 0.2) for had in sums.values()), sums


def test_msfrs_share_is_killed_again_and_again(shared):
    """Each time it is restarted as by its unit; no slot and no user is lost."""
    load = shared.link.users.load(shared.world.users)
    time.sleep(WARM_UP)
    for turn in range(20):
        place = turn % 2
        os.kill(shared.daemons[place].pid, signal.SIGKILL)
        shared.daemons[place].wait()
        time.sleep(0.2)
        shared.daemons[place] = sharing.start_share(shared.gateways[place].world, PROGRAM)
        time.sleep(0.3)
    time.sleep(2.0)
    got, utilisation = shared.measure(load, MEASURED)
    whole(load.stop(abort=True))
    shared.assert_right(got)
    assert 0.9 < utilisation < 1.02
    shared.wait_for('together')
    assert len(shared.said()) <= 10 * 2 * AT_START


def test_msfrs_share_stays_dead(shared):
    """Then its gateway has the whole link, and so has the other one: neither waits for a dead gateway."""
    for daemon in shared.daemons:
        os.kill(daemon.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(shared.others, shared.gateways)), 'neither sees the other')
    load = shared.link.users.load(shared.world.users)
    time.sleep(WARM_UP)
    got, utilisation = shared.measure(load, 6.0)
    whole(load.stop(abort=True))
    assert utilisation > 0.9 and min(got.values()) > 0
