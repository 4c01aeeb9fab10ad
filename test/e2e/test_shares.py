# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares of a slow link while all users are backlogged.

Ratios of bytes that users have received, within 15 %. Times are in seconds of link time, so that the machine's speed
does not matter as long as it can fill 2 Mbit/s.
"""
import ipaddress
import time
from dataclasses import replace

import pytest

from fieldtrial.site import groups
from fieldtrial.site.lan import HOME
from fieldtrial.site.netns import NetnsFabric
from gateway import SOON

WARM_UP, MEASURED = 6.0, 18.0
BOUND = 0.15


def measure(link, load, seconds):
    """(bytes by user, utilisation of the link) over some seconds of a load."""
    with link.gateway.received() as received:
        bytes_before, link_before, began = load.bytes(), received.read(), time.monotonic()
        time.sleep(seconds)
        got, brought, took = load.since(bytes_before), received.read() - link_before, time.monotonic() - began
    return got, brought * 8 / took / link.world.rate_bps


def by_class(link, got):
    return {name: sum(got.get(user, 0) for user in link.of(name)) for name in link.world.weights}


def near(value, wanted, bound=BOUND):
    return wanted * (1 - bound) < value < wanted * (1 + bound)


def assert_shares(got, weights):
    """got: bytes; weights: their expected proportions; both by the same keys."""
    total, parts = sum(got.values()), sum(weights.values())
    shares = {key: got[key] / total * parts for key in weights}
    assert all(near(shares[key], weights[key]) for key in weights), f'{shares}, wanted {weights}'


@pytest.fixture
def link(slow_link):
    slow_link.gateway.start('msfrs_window interval=1s', SOON)
    return slow_link


def test_classes_by_weight_and_the_link_full(link):
    load = link.users.load(link.world.users)
    time.sleep(WARM_UP)
    got, utilisation = measure(link, load, MEASURED)
    fetches = load.stop(abort=True)
    assert_shares(by_class(link, got), {'gold': 4, 'silver': 2, 'bronze': 1})
    assert utilisation > 0.9
    assert [fetch for fetch in fetches if fetch.status not in (0, 200) or not fetch.intact] == []
    link.gateway.rest()


@pytest.mark.link(users=(2, 2, 2))
def test_ipv6_users_are_users_like_others(link):
    """In each class one user has IPv6 and one has IPv4."""
    six = [users[0] for users in map(link.of, link.world.weights)]
    four = [users[1] for users in map(link.of, link.world.weights)]
    loads = link.users.load(six, family=6), link.users.load(four)
    time.sleep(WARM_UP)
    before = {**loads[0].bytes(), **loads[1].bytes()}
    time.sleep(3 * MEASURED)    # some twenty quanta of a bronze user would be too few
    got = {**loads[0].since(before), **loads[1].since(before)}
    for load in loads:
        load.stop(abort=True)
    assert_shares(got, {user: link.world.weights[user.cls] for user in link.world.users})


@pytest.mark.link(rtts_ms=(10.0,))
def test_eight_addresses_of_a_network_are_one_user(link):
    """One user of bronze has eight IPv6 addresses, the other has one; the first may be looked up by any of them."""
    many, one = link.of('bronze')
    home = link.world.host_of(many)
    network = ipaddress.ip_network((many.v6, 64), strict=False)
    addresses = [replace(many, v6=str(network[0x100 + number])) for number in range(8)]
    home.batch([f'addr add {each.v6}/128 dev {HOME} nodad' for each in addresses], 'ip', '-6')
    link.world.groups[home] = [*link.world.groups[home], *addresses]
    loads = link.users.load(addresses, family=6, inflight=1), link.users.load([one], family=6, inflight=8)
    time.sleep(WARM_UP)
    before = [load.bytes() for load in loads]
    time.sleep(MEASURED)
    eight, single = (sum(load.since(was).values()) for load, was in zip(loads, before, strict=True))
    rows = {row['user']: row['class'] for row in link.gateway.report()['top_users']}
    for load in loads:
        load.stop(abort=True)
    assert_shares({'many': eight, 'one': single}, {'many': 1, 'one': 1})
    assert rows == {str(network): 'bronze', str(ipaddress.ip_network((one.v6, 64), strict=False)): 'bronze'}


@pytest.fixture
def two_machines(monkeypatch):
    """Makes worlds have two hosts of users, at the ports of one switch."""
    monkeypatch.setattr(NetnsFabric, 'groups', ('users', 'users2'))


@pytest.mark.link(users=(1, 1, 2), rtts_ms=(10.0,), deal=groups.in_turn)
def test_eight_addresses_of_a_machine_are_one_user(two_machines, slow_link):
    """By its hardware address: addresses of one network, as those of privacy extensions, and an IPv4 address."""
    slow_link.gateway.start('msfrs_window interval=1s', 'msfrs_user mac', SOON)
    many, one = slow_link.of('bronze')
    home, other = map(slow_link.world.host_of, (many, one))
    assert home != other
    network = ipaddress.ip_network((many.v6, 64), strict=False)
    addresses = [replace(many, v6=str(network[0x100 + number])) for number in range(8)]
    home.batch([f'addr add {each.v6}/128 dev {HOME} nodad' for each in addresses], 'ip', '-6')
    slow_link.world.groups[home] = [*slow_link.world.groups[home], *addresses]
    loads = (slow_link.users.load(addresses[:7], family=6, inflight=1), slow_link.users.load([many], inflight=1),
             slow_link.users.load([one], family=6, inflight=8))
    time.sleep(WARM_UP)
    before = [load.bytes() for load in loads]
    time.sleep(MEASURED)
    six, four, single = (sum(load.since(was).values()) for load, was in zip(loads, before, strict=True))
    users = {row['user'] for row in slow_link.gateway.report()['top_users']}
    for load in loads:
        load.stop(abort=True)
    assert_shares({'many': six + four, 'one': single}, {'many': 1, 'one': 1})
    assert users == {f'mac={host.run("cat", f"/sys/class/net/{HOME}/address").strip()}' for host in (home, other)}


@pytest.mark.link(users=(8, 1, 2), rtts_ms=(10.0,))
def test_weights_are_per_user_and_users_of_a_class_are_equal(link):
    """Eight users against one: each user has a share by its class's weight, however many users the class has, and
    however many requests a user makes."""
    greedy, *others = link.world.users
    loads = link.users.load([greedy], inflight=12, size=20_000), link.users.load(others, inflight=3, size=20_000)
    time.sleep(WARM_UP)
    before = {**loads[0].bytes(), **loads[1].bytes()}
    time.sleep(3 * MEASURED)    # a dozen objects of a bronze user would be too few
    got = {**loads[0].since(before), **loads[1].since(before)}
    for load in loads:
        load.stop(abort=True)
    assert_shares(by_class(link, got), {'gold': 32, 'silver': 2, 'bronze': 2})
    gold = [got[user] for user in link.of('gold')]
    assert max(gold) < 1.3 * min(gold), gold


def test_a_class_that_comes_back_neither_starves_nor_is_starved(link):
    bronze = link.of('bronze')
    others = link.of('gold') + link.of('silver')
    always, first = link.users.load(others), link.users.load(bronze)
    time.sleep(WARM_UP)
    first.stop(abort=True)
    time.sleep(WARM_UP / 2)     # for bytes in flight
    got, utilisation = measure(link, always, 8.0)
    got = by_class(link, got)
    assert got.pop('bronze') == 0
    assert_shares(got, {'gold': 4, 'silver': 2})
    assert utilisation > 0.9
    before = always.bytes()
    back = link.users.load(bronze)
    time.sleep(10.0)
    got = {**always.since(before), **back.bytes()}
    for load in (always, back):
        load.stop(abort=True)
    # Measured from its return: if it had saved up credit, the others would get nothing now; if the others were charged
    # for the bandwidth that it left them, they would get nothing either.
    shares = by_class(link, got)
    total = sum(shares.values())
    assert 0.07 < shares['bronze'] / total < 0.25, shares
    assert 1.6 < shares['gold'] / shares['silver'] < 2.5, shares


@pytest.mark.link(users=(2, 0, 2))
def test_a_class_without_users_takes_nothing(link):
    load = link.users.load(link.world.users)
    time.sleep(WARM_UP)
    got, utilisation = measure(link, load, MEASURED)
    load.stop(abort=True)
    got = by_class(link, got)
    assert got.pop('silver') == 0
    assert_shares(got, {'gold': 4, 'bronze': 1})
    assert utilisation > 0.9
    silver = link.gateway.classes()['silver']
    assert (silver['users'], silver['bytes'], silver['requests']) == (0, 0, 0)


def test_one_alone_has_the_whole_link(link):
    load = link.users.load(link.of('bronze')[:1])
    time.sleep(WARM_UP)
    _, utilisation = measure(link, load, 6.0)
    load.stop(abort=True)
    assert utilisation > 0.9


def test_paper_scheme_shares_by_weight_too(slow_link):
    """Whole responses, one queue for each class: no quanta, no reserve."""
    slow_link.gateway.start('msfrs_window interval=1s reserve=0%', 'msfrs_quantum none',
                            'msfrs_arbiter msf wake=paper users=fifo')
    load = slow_link.users.load(slow_link.world.users, size=15_000)
    time.sleep(WARM_UP)
    got, utilisation = measure(slow_link, load, MEASURED)
    load.stop(abort=True)
    assert_shares(by_class(slow_link, got), {'gold': 4, 'silver': 2, 'bronze': 1})
    assert utilisation > 0.9
    assert all(row['quanta'] <= row['requests'] for row in slow_link.gateway.classes().values())
