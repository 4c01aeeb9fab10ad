# SPDX-License-Identifier: GPL-2.0-or-later
"""Two links with a rate each: requests are scheduled by the link that they leave by, and move when it fails."""
import time

import pytest
import yaml

from background import PATIENCE
from gateway import NARROW, SOON
from fieldtrial.site.world import WAN
from second_uplink import WAN1, SecondUplink
from test_reports import families, scrape
from test_shares import MEASURED, WARM_UP, assert_shares, by_class

pytestmark = pytest.mark.link(rate_bps=2e6, rtts_ms=(10.0, 10.0), users=(2, 2, 2))

ROADS = ('proxy', 'connect', 'intercept')


@pytest.fixture
def link(slow_link, fabric):
    """slow_link whose second server is behind a second uplink; Squid is not yet started."""
    slow_link.second = SecondUplink(slow_link.world, fabric, slow_link.world.servers[1:], 1e6)
    return slow_link


def reports(link):
    """{interface: mgr:msfrs of that link}."""
    return {each['link']['interface']: each for each in yaml.safe_load_all(link.gateway.page('msfrs'))}


def total(link, interface, figure):
    return sum(row[figure] for row in reports(link)[interface]['classes'])


def wait_for(link, interface, **figures):
    link.gateway.wait_until(lambda: all(total(link, interface, name) == value for name, value in figures.items()),
                            lambda: f'{figures} at {interface}: {reports(link)}')


def carried(link):
    """Bytes of responses by interface."""
    return {interface: total(link, interface, 'bytes') for interface in (WAN, WAN1)}


def test_each_link_is_full_and_shared_by_weight(link):
    link.gateway.start(*link.second.lines(), 'msfrs_window interval=1s', SOON, on=False)
    loads = [link.users.load(link.world.users, server=number) for number in (0, 1)]
    time.sleep(WARM_UP)
    before, brought, began = [load.bytes() for load in loads], link.second.received(), time.monotonic()
    with link.gateway.received() as received:
        first = received.read()
        time.sleep(2 * MEASURED)    # some thirty quanta of a bronze user on the slower link
        got, took = [load.since(was) for load, was in zip(loads, before, strict=True)], time.monotonic() - began
        used = [(received.read() - first) * 8 / took / link.world.rate_bps,
                (link.second.received() - brought) * 8 / took / link.second.rate_bps]
    seen, metrics = reports(link), families(scrape(link)[1])
    for load in loads:
        load.stop(abort=True)
    for each in got:
        assert_shares(by_class(link, each), {'gold': 4, 'silver': 2, 'bronze': 1})
    assert min(used) > 0.9, used
    assert {name: each['link']['rate'] for name, each in seen.items()} == {WAN: 2e6, WAN1: 1e6}
    assert all(each['link']['metered'] for each in seen.values())
    rates, = (family for family in metrics if family.name == 'msfrs_link_capacity_bytes_per_second')
    assert {sample.labels['link']: sample.value for sample in rates.samples} == {WAN: 250_000, WAN1: 125_000}
    received, = (family for family in metrics if family.name == 'msfrs_class_received_bytes')
    assert {(sample.labels['class'], sample.labels['link']) for sample in received.samples} == \
        {(name, each) for name in ('gold', 'silver', 'bronze', 'other') for each in (WAN, WAN1)}


def test_what_waits_at_a_link_that_fails_leaves_by_the_other(link):
    gateway, bronze = link.gateway, link.of('bronze')[0]
    gateway.start(*link.second.lines(' rtt=1ms'), NARROW, 'msfrs_quantum none', on=False)
    first = link.users.get(bronze, gate='second', server=1)
    wait_for(link, WAN1, queued=0, in_flight=1)
    waiting = []
    for number, via in enumerate(ROADS * 2):
        waiting.append(link.users.get(bronze, key=f'waits{number}', via=via, server=1))
        wait_for(link, WAN1, queued=number + 1, in_flight=1)
    assert link.users.get(bronze, server=0).wait().good     # the other link has its own window
    assert not any(fetch.finished for fetch in waiting)

    link.second.cut()
    for fetch in waiting:
        assert fetch.wait().good, fetch
    assert [key for key in link.origin.keys() if key.startswith('waits')] == [fetch.key for fetch in waiting]
    assert (total(link, WAN1, 'queued'), total(link, WAN1, 'in_flight')) == (0, 1)

    link.second.mend()
    before = carried(link)
    again = link.users.get(bronze, size=20_000, server=1)
    wait_for(link, WAN1, queued=1, in_flight=1)
    link.origin.open_gate('second')
    assert first.wait().good and again.wait().good
    after = carried(link)
    assert after[WAN] == before[WAN] and after[WAN1] - before[WAN1] > 20_000


def by_all_roads(link, users):
    """Starts a request to the second server for each user and road; a list of Fetch."""
    return [link.users.get(user, size=20_000, via=via, server=1) for user in users for via in ROADS]


def test_a_link_is_cut_under_load(link):
    gateway = link.gateway
    gateway.start(*link.second.lines(), 'msfrs_window interval=1s', SOON, on=False)
    # Within a user the least remaining goes first, and the size of a tunnel's response is unknown: plain requests of the
    # same user, always some of them new, would hold its tunnels back for as long as they go on.
    plain, tunnels = ([link.of(name)[number] for name in link.world.weights] for number in (0, 1))
    loads = [link.users.load(users, size=20_000, via=via, server=server)
             for users, via, server in ((plain, 'proxy', 0), (plain, 'proxy', 1), (tunnels, 'connect', 1))]
    gateway.wait_until(lambda: all(total(link, each, 'queued') > 0 and count > 100_000
                                   for each, count in carried(link).items()), 'both links are saturated')
    link.second.cut()
    cut = time.monotonic()
    # What was in service there has given back its slot, and nothing waits there.
    wait_for(link, WAN1, queued=0, paused=0, in_flight=0)
    # A user whose requests were all in service there makes no others, so the loads may have none that are late.
    late = [fetch for load in loads[1:] for fetch in load.all() if not fetch.finished and fetch.t_start > cut]
    late += by_all_roads(link, tunnels)
    gateway.wait_until(lambda: any(fetch.good and fetch.t_start > cut for fetch in loads[0].all()),
                       'users of the other link are served')
    for fetch in late:
        assert fetch.wait(2 * PATIENCE).good, fetch
    before = carried(link)[WAN1]
    link.second.mend()
    again = by_all_roads(link, tunnels)
    gateway.wait_until(lambda: carried(link)[WAN1] > before + 100_000, 'the second link carries responses again')
    for load in loads:
        load.stop(abort=True)
    for fetch in again:
        assert fetch.wait().good, fetch
    for each in (WAN, WAN1):
        wait_for(link, each, queued=0, paused=0, in_flight=0)


def test_links_come_and_go_by_reconfiguration(link):
    gateway, bronze = link.gateway, link.of('bronze')[0]
    both = (*link.second.lines(), NARROW, 'msfrs_quantum none')
    gateway.start(*(line for line in both if WAN1 not in line), on=False)
    assert list(reports(link)) == [WAN]
    gateway.reconfigure(*both, on=False)
    first = link.users.get(bronze, gate='second', server=1)
    wait_for(link, WAN1, queued=0, in_flight=1)
    waits = link.users.get(bronze, server=1)
    wait_for(link, WAN1, queued=1, in_flight=1)
    gateway.reconfigure(*(line for line in both if WAN1 not in line), on=False)
    assert waits.wait().good        # at the link that is left
    assert list(reports(link)) == [WAN]
    link.origin.open_gate('second')
    assert first.wait().good
