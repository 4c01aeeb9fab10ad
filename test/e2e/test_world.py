# SPDX-License-Identifier: GPL-2.0-or-later
"""The field trial's world: distances, the bottleneck, interception, congestion control; nothing remains afterwards."""
import contextlib
import csv
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from background import wait_until
from fieldtrial import cell, plan
from fieldtrial.base.errors import TrialError
from fieldtrial.base.paths import ROOT
from fieldtrial.base.spec import CellSpec
from fieldtrial.load import http3, quic
from fieldtrial.load.traffic import devtools
from fieldtrial.site import (addresses, arms, delay, disturb, grid, link_trace, meters, names, netlink, netns,
                             preflight, processes, squidconf)
from fieldtrial.site.world import WAN, World

PATCHED = pathlib.Path(os.environ.get('MSFRS_TEST_SQUID', ROOT / 'build/install/sbin/squid'))
STOCK = ROOT / 'build/install-stock/sbin/squid'
#: These tests are about the world, so either Squid will do.
SQUID = PATCHED if PATCHED.exists() else STOCK
RTTS = (12.0, 80.0, 200.0)
SMALL, BIG = grid.nearest(1024), grid.nearest(400_000)


@pytest.fixture(scope='module')
def world():
    with started() as made:
        yield made


@contextlib.contextmanager
def started(**how):
    """A world of three servers at 4 Mbit/s with names, origin and Squid."""
    with World(rate_bps=4e6, rtts_ms=RTTS, users=(1, 1, 2), **how) as made:
        made.start_names()
        made.start_origin()
        made.squid = made.start_squid(squidconf.stock(made), SQUID)
        yield made


def handshake(host, address):
    """Seconds until a connection from `host` to port 80 of `address` is established."""
    with host.inside(), socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET) as connection:
        connection.settimeout(10)
        began = time.monotonic()
        connection.connect((address, 80))
        return time.monotonic() - began


@pytest.mark.parametrize('family', [4, 6])
@pytest.mark.parametrize('index', range(len(RTTS)))
def test_servers_are_as_far_as_they_should_be(world, index, family):
    """The shortest of several handshakes from the gateway itself: a busy machine can only lengthen them."""
    server = world.servers[index]
    best = min(handshake(world.gateway, server.v4 if family == 4 else server.v6) for _ in range(4))
    assert RTTS[index] <= best * 1e3 < RTTS[index] + 5


@pytest.mark.parametrize('family', [4, 6])
def test_users_are_intercepted_with_their_own_addresses(world, family):
    log = world.squid_directory() / 'access.log'
    for user in world.users:
        status, got, _ = world.fetch(user, world.servers[0], SMALL, family=family)
        assert (status, got) == (200, SMALL)
        address = user.v4 if family == 4 else user.v6
        # Squid writes the line after the user has received the response.
        deadline = time.monotonic() + 10
        while not any(line.split()[2] == address for line in log.read_text().splitlines()):
            assert time.monotonic() < deadline, f'{address} is not in access.log'
            time.sleep(0.02)


def test_link_carries_its_rate_and_queues_no_more_than_its_buffer(world):
    carries_its_rate_and_queues_no_more_than_its_buffer(world)


def test_msfrs_edge_is_a_bottleneck_just_as_well():
    with started(isp='edge') as made:
        carries_its_rate_and_queues_no_more_than_its_buffer(made)
        made.check()


def carries_its_rate_and_queues_no_more_than_its_buffer(world):
    """A download saturates the bottleneck; counted at the gateway over two seconds in the middle of it."""
    queue, received = world.bottleneck.reader(), netlink.ReceivedBytes(world.gateway, WAN)
    done = []
    size = grid.nearest(BIG * 3)
    loads = [threading.Thread(target=lambda user=user: done.append(world.fetch(user, world.servers[0], size)))
             for user in world.users]
    for load in loads:
        load.start()
    time.sleep(2.0)
    before, began, deepest = received.read(), time.monotonic(), 0
    while time.monotonic() < began + 2.0:
        deepest = max(deepest, queue.read().backlog_bytes)
        time.sleep(0.01)
    rate = (received.read() - before) * 8 / (time.monotonic() - began)
    controls = [world.congestion_control(host) for host in (world.users_host, world.gateway, world.farm)]
    for load in loads:
        load.join()
    assert all(status == 200 and got == size for status, got, _ in done)
    assert 0.95 * 4e6 < rate < 1.03 * 4e6
    assert 0 < deepest <= world.buffer_bytes
    assert controls == [{'cubic'}] * 3
    assert 0.9 < queue.read().sent_bytes / received.read() < 1.1
    queue.close()
    received.close()


def test_the_gateways_resolver_has_other_answers_than_the_users(world):
    answers = [{server.name: names.look_up(host, None, nameserver, server.name) for server in world.servers}
               for host, nameserver in ((world.users_host, addresses.GATEWAY_IN4), (world.gateway, world.nameserver))]
    assert answers[0] == {server.name: server.v4 for server in world.servers}
    assert answers[1].keys() == answers[0].keys() and set(answers[1].values()) == set(answers[0].values())
    assert not answers[1].items() & answers[0].items()


@pytest.mark.parametrize('family', [4, 6])
def test_an_upload_by_the_way_with_a_smaller_mtu(world, family):
    server, user = world.servers[-1], world.users[0]
    address, source = (server.v4, user.v4) if family == 4 else (f'[{server.v6}]', user.v6)
    assert 'mtu lock 1400' in world.isp.run('ip', f'-{family}', 'route', 'get', address.strip('[]'))
    assert world.users_host.run('curl', '-s', '-m', '20', '--interface', source, '-d', 'x' * 40_000, '-o', '/dev/null',
                                '-w', '%{http_code}', f'http://{address}/up/40000/x') == '200'


def test_no_host_has_a_way_out(world):
    """Route look-ups only; nothing is sent: beyond the ISP only users and servers are known."""
    for address in ('192.0.2.1', '2001:db8::1'):
        assert 'unreachable' in subprocess.run(world.isp.enter(['ip', 'route', 'get', address]), capture_output=True,
                                               text=True, check=False).stderr.lower()
    for host in (world.users_host, world.gateway, world.isp, world.farm):
        links = json.loads(host.run('ip', '-j', '-d', 'link'))
        assert {link.get('linkinfo', {}).get('info_kind', 'loopback') for link in links} <= {'loopback', 'veth', 'tun'}


def test_manager_answers_from_inside(world):
    assert 'Squid Object Cache: Version' in meters.manager_report(world, 'info')


def test_two_gateways_on_one_link(tmp_path):
    """Each has its own users, Squid and names; other traffic reaches all gateways; received bytes are counted."""
    with World(rate_bps=4e6, rtts_ms=RTTS, users=(1, 1, 2), gateways=2) as world:
        world.start_origin()
        first, second = world.at_gateways()
        for there in (first, second):
            there.start_names()
            there.start_squid(squidconf.stock(there), SQUID)
            there.try_out()
        behind = [[user.name for users in there.groups.values() for user in users] for there in (first, second)]
        assert behind == [['gold-1', 'bronze-1'], ['silver-1', 'bronze-2']]
        assert all('congctl cubic' in there.gateway.run('ip', 'route', 'show', 'dev', 'store0')
                   for there in (first, second))
        server = world.servers[0]
        with meters.LinkMeter(tmp_path / 'link.csv', time.monotonic(), world) as meter:
            before, _ = meter._read()
            for user in world.users:
                for family in (4, 6):
                    assert world.fetch(user, server, SMALL, family=family)[:2] == (200, SMALL)
                status, body, header = processes.fetch(world.host_of(user), (server.v4, addresses.DIRECT_PORT),
                                                       f'/b/{SMALL}/x', user.v4, 20.0)
                assert (status, len(body), 'Via' in header) == (200, SMALL, False)
            assert meter._read()[0] - before > len(world.users) * 3 * SMALL
        for there, (one, other) in ((first, behind), (second, behind[::-1])):
            log = there.squid_directory() / 'access.log'
            for user in (user for user in world.users if user.name in one):
                wait_until(lambda user=user: f' {user.v6} ' in log.read_text(), f'{user.name} in {log}')
            assert not any(f' {user.v4} ' in log.read_text() for user in world.users if user.name in other)


class Offices(netns.NetnsFabric):
    """Users on three hosts, and a separate name server, as in the containers."""

    groups = ('users1', 'users2', 'users3')
    names = 'names'


@pytest.mark.parametrize('bridged', ['0', '1'])
def test_groups_of_users_behind_a_switch(bridged):
    """The same whether or not the kernel passes bridged frames to iptables."""
    able = os.path.exists('/proc/sys/net/bridge')   # br_netfilter
    if bridged == '1' and not able:
        pytest.skip('this kernel hands no bridged frames to iptables')
    with Offices() as fabric, World(rate_bps=4e6, rtts_ms=RTTS, users=(1, 1, 2), fabric=fabric) as world:
        if able:
            world.gateway.set_kernel([f'net.bridge.bridge-nf-call-{name}={bridged}'
                                      for name in ('iptables', 'ip6tables')])
        assert [host.role for host in world.groups] == ['users1', 'users2', 'users3']
        world.start_names()
        world.start_origin()
        world.start_squid(squidconf.stock(world), SQUID)
        world.try_out()
        for family in (4, 6):
            test_users_are_intercepted_with_their_own_addresses(world, family)


def test_a_path_that_does_not_work_is_said_before_the_load(fabric):
    with World(rate_bps=4e6, rtts_ms=RTTS, users=(1, 1, 1), fabric=fabric) as world:
        with pytest.raises(TrialError, match='first request from 198.18.16.1 to 198.19.1.1 failed'):
            world.try_out()
        world.start_origin()
        with pytest.raises(TrialError, match='had status 200 and header Via: none; expected were 200 and a Via'):
            world.try_out()


def test_squid_that_does_not_start_shows_why(fabric):
    with World(rate_bps=4e6, rtts_ms=RTTS, users=(1, 1, 1), fabric=fabric) as world:
        conf = squidconf.stock(world).replace('cache deny all', 'cache deny nobody_of_this_name')
        with pytest.raises(TrialError, match='squid ended with exit code 1(.|\n)*nobody_of_this_name'):
            world.start_squid(conf, SQUID)
        with pytest.raises(TrialError, match='Squid ignores part of it: .*dns_testnames'):
            world.start_squid(f'{squidconf.stock(world)}dns_testnames a\n', SQUID)
        with pytest.raises(TrialError, match='/nowhere/squid: no Squid there; build it'):
            world.start_squid(conf, '/nowhere/squid')


class ShortCables(delay.Netem):
    """The path with a cable for each server, on a kernel that may lack netem: routing without delay."""

    def qdisc(self, delay_ms):
        return 'pfifo limit 100'


def test_cable_for_each_server_routes_both_ways(monkeypatch):
    monkeypatch.setattr(delay, 'choose', lambda *_: ShortCables())
    with World(rate_bps=4e6, rtts_ms=RTTS, users=(1, 1, 1)) as world:
        world.start_names()
        world.start_origin()
        world.start_squid(squidconf.stock(world), SQUID)
        for family in (4, 6):
            for number, server in enumerate(world.servers, start=1):
                cable = netlink.ReceivedBytes(world.isp, f's{number}')
                before = cable.read()
                status, got, _ = world.fetch(world.users[0], server, BIG, family=family)
                assert (status, got) == (200, BIG)
                assert cable.read() - before > BIG, 'the answer came by another cable'
                cable.close()


OWNER = '''
import sys, time
from fieldtrial.base import stopping
from fieldtrial.base.errors import Stopped
from fieldtrial.site.world import World
try:
    with stopping.by_signals(), World(rate_bps=1e6, rtts_ms=(10.0,), users=(1, 1, 1)) as world:
        world.start_names()
        world.start_origin()
        hosts = world.users_host, world.gateway, world.isp, world.farm
        print(world.directory, *(host.name for host in hosts), flush=True)
        time.sleep(60)
except Stopped as stop:
    sys.exit(128 + stop.signum)
'''


@contextlib.contextmanager
def owner():
    """A process with its own world; yields it, its directory and its namespaces."""
    process = subprocess.Popen([sys.executable, '-c', OWNER], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        directory, *names = process.stdout.readline().split()
        yield process, pathlib.Path(directory), set(names)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        netns.sweep()


def namespaces():
    return set(os.listdir(netns.RUN_DIR))


@pytest.mark.parametrize('signum', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_takes_everything_down(signum):
    with owner() as (process, directory, names):
        assert names <= namespaces() and len(names) == 4
        pids = [pid for name in names for pid in netns.Host('x', name).pids()]
        assert len(pids) >= 3, 'dnsmasq, nginx and its worker; the delay line where there is no netem'
        process.send_signal(signum)
        assert process.wait(30) == 128 + signum
        assert not names & namespaces()
        assert not directory.exists()
        assert not [pid for pid in pids if netns.start_time(pid) >= 0]


def test_leftovers_of_a_killed_owner_are_swept_and_a_living_ones_are_not():
    with owner() as (killed, directory, leftovers), owner() as (_, kept, living):
        pids = [pid for name in leftovers for pid in netns.Host('x', name).pids()]
        killed.kill()
        killed.wait()
        assert directory.exists()
        assert set(netns.sweep()) >= leftovers
        assert not leftovers & namespaces()
        assert not directory.exists()
        assert not [pid for pid in pids if netns.start_time(pid) >= 0]
        assert living <= namespaces() and kept.exists()


def run_cell(tmp_path, arm, workload='backlogged', *, trace=None, drain_s=0, **parameters):
    """A cell of eight seconds; returns stat.json and its tables."""
    spec = CellSpec(
        name='short', directory=str(tmp_path), arms=(arm,), workload=workload, parameters=parameters,
        rate_bps=4e6, buffer_bdp=1.5, rtts_ms=RTTS, counts=(2, 2, 2),
        weights={'gold': 4, 'silver': 2, 'bronze': 1}, seed=1, duration_s=8, warmup_s=2, drain_s=drain_s,
        squid=str(PATCHED), stock_squid=str(STOCK if STOCK.exists() else SQUID), six_every=3, trace=trace)
    cell.run(spec)
    tables, made = {}, arms.get(arm)
    for name in ('requests', 'pages', 'bytes', 'link', 'squid', 'host', 'stalls',
                 *(['window'] if made.scheduled else []), *(['found'] if made.finds else []),
                 *(['offered'] if trace else [])):
        with open(tmp_path / f'{name}.csv', newline='', encoding='utf-8') as file:
            tables[name] = list(csv.DictReader(file))
    return json.loads((tmp_path / 'stat.json').read_text()), tables


def test_a_link_that_follows_a_trace_carries_what_that_says():
    """The rate changes every tenth of a second, each interval fills the bucket, and the link pauses in between."""
    trace = link_trace.LinkTrace([2e6, 6e6, 1e6, 3e6] * 10 + [0.0] * 3 + [4e6] * 10)
    seconds = len(trace.rates) * link_trace.STEP_S
    with started(buffer_bdp=40) as made:
        size, ends = grid.nearest(BIG * 3), []
        loads = [threading.Thread(target=lambda user=user: ends.append(made.fetch(user, made.servers[0], size)))
                 for user in made.users]
        for load in loads:
            load.start()
        time.sleep(1.0)
        with contextlib.closing(made.bottleneck.reader()) as queue:
            before, t0 = queue.read().sent_bytes, time.monotonic()
            with link_trace.Follower(made.bottleneck, trace, t0) as follower:
                while time.monotonic() < t0 + seconds:
                    time.sleep(0.01)
                    assert queue.read().queued_packets > 0, 'nobody wants what the link could carry'
                sent = queue.read().sent_bytes - before
                follower.check()
        made.bottleneck.set_rate(100e6)
        for load in loads:
            load.join()
    assert sent * 8 == pytest.approx(sum(trace.rates) * link_trace.STEP_S, rel=0.05)
    assert {status for status, _, _ in ends} == {200}


@pytest.mark.parametrize('arm', list(arms.ARMS))
def test_a_cell_of_each_arm_leaves_whole_records(tmp_path, arm):
    for why in preflight.lacking([arms.get(arm)], 'namespaces').values():
        pytest.skip(why)
    stat, tables = run_cell(tmp_path, arm)
    assert (stat['arm'], stat['workload'], stat['t_start'], stat['t_stop']) == (arm, 'backlogged', 2, 8)
    has_squid = arms.get(arm).configuration is not None     # a router has no connections of its own
    assert set(stat['congestion_control']['gw' if has_squid else 'users']) == {'cubic'}
    assert any(row['outcome'] == 'ok' for row in tables['requests'])
    assert not [row for row in tables['requests'] if row['outcome'] == 'error']
    assert float(tables['stalls'][-1]['t']) > 7 and float(tables['host'][-1]['t']) > 7
    link, last = tables['link'], tables['link'][-1]
    assert 75 <= len(link) <= 95
    assert [float(row['rx_bytes']) for row in link] == sorted(float(row['rx_bytes']) for row in link)
    assert 8.0 <= float(last['t']) < 12.0
    # the paper's window starts with one slot and doubles at most every five seconds
    least = 0.1 if arm in ('msfrs-paper', *plan.QUEUEING) else 0.5
    assert least * 4e6 < float(last['rx_bytes']) * 8 / 8.0 < 1.2 * 4e6
    used = float(tables['squid'][-1]['cpu_s']) > 0 and float(tables['squid'][-1]['rss_kb']) > 1000
    assert used == has_squid and ('http_port' in stat['squid_conf']) == has_squid
    if arms.get(arm).scheduled:
        assert tables['window'] and all(float(row['wplus']) >= 1 for row in tables['window'])


def test_a_cell_whose_link_has_a_variable_rate_records_what_that_offered_and_was_taken_for(tmp_path):
    stat, tables = run_cell(tmp_path, 'msfrs-auto', trace='steps')
    assert (stat['trace'], stat['rate_bps']) == ('steps', 4e6)
    assert tables['offered'] == [{'t': '0.0', 'rate_bps': '4000000'}], 'a step lasts for longer than the cell'
    assert 5 <= len(tables['found']) <= 12
    assert float(tables['found'][0]['rate_bps']) < 4e6 < 2 * float(tables['found'][-1]['rate_bps'])
    assert 'rate=auto min=400kbit max=80000kbit' in stat['squid_conf']


def test_a_cell_ends_with_what_its_arm_started(tmp_path, monkeypatch):
    """Without msfrs-edge packets pass unscheduled: the cell would measure another arm."""
    monkeypatch.setitem(arms.ARMS, 'stock-sqm', dataclasses.replace(
        arms.get('stock-sqm'), prepare=lambda world: [world.start(world.gateway, ['false'], 'gone.log')]))
    with pytest.raises(TrialError, match='^false ended with exit code 1'):
        run_cell(tmp_path, 'stock-sqm')


@pytest.mark.parametrize('arm', ['stock', 'off', 'stock-pools', 'stock-htb', 'stock-sqm', 'msfrs'])
def test_a_cell_over_kept_tunnels(tmp_path, arm):
    """Spliced alike in every arm: users see the servers' own certificates, or nothing would be ok."""
    stat, tables = run_cell(tmp_path, arm, 'https-pages', idle=3, think_s=0.5)
    assert 'ssl_bump splice all' in stat['squid_conf']
    assert {row['scheme'] for row in tables['requests']} == {'h2'}
    outcomes = [row['outcome'] for row in tables['requests']]
    assert 'ok' in outcomes and set(outcomes) <= {'ok', 'unfinished'}
    assert any(row['outcome'] == 'ok' for row in tables['pages'])
    tunnels = json.loads((tmp_path / 'meta.json').read_text())['tunnels']
    pairs = {(row['user'], row['server']) for row in tables['requests']}
    assert set(tunnels) == {'opened'} and 6 * 3 + 1 <= tunnels['opened'] <= 6 * 3 + len(pairs)


@pytest.mark.skipif(devtools.missing() != '', reason=devtools.missing())
def test_browsers_load_pages_through_squid_from_their_users_addresses(tmp_path):
    """Silver's user has IPv6 only. The drain lets the pages end that have begun."""
    _, tables = run_cell(tmp_path, 'msfrs', 'browser', drain_s=60, browsers=1, beside=1, inflight=1, think_s=0.5)
    loads = [row for row in tables['pages'] if row['outcome'] == 'ok']
    assert {row['user'] for row in loads} == {'gold-1', 'silver-1', 'bronze-1'} and len(loads) == len(tables['pages'])
    assert all(0 < float(row['fcp_s']) <= float(row['lcp_s']) for row in loads)
    parts = [row for row in tables['requests'] if row['page']]
    assert {(row['outcome'], row['scheme']) for row in parts} == {('ok', 'h2')}
    assert len({row['server'] for row in parts}) > 1 and len(parts) > 15 * len(loads)
    log = (tmp_path / 'access.log').read_text()
    assert all(f' {address} ' in log for address in ('198.18.16.1', '2001:2:0:2001::2', '198.18.48.1'))


@pytest.mark.parametrize('arm', ['off', 'msfrs'])
def test_a_cell_whose_tls_is_decrypted(tmp_path, arm):
    """Users trust the gateway alone, so that what is ok was decrypted."""
    stat, tables = run_cell(tmp_path, arm, 'bump')
    assert 'ssl_bump bump all' in stat['squid_conf']
    assert {row['scheme'] for row in tables['requests']} == {'https'}
    outcomes = [row['outcome'] for row in tables['requests']]
    assert 'ok' in outcomes and set(outcomes) <= {'ok', 'unfinished'}


@pytest.mark.parametrize('way', ['TCP', 'QUIC'])
def test_half_of_the_users_bypass_squid(tmp_path, way):
    """Squid sees nothing of their traffic, and they have a good part of the link."""
    if way == 'QUIC' and quic.missing():
        pytest.skip(quic.missing())
    _, tables = run_cell(tmp_path, 'msfrs', 'bypass', quic=way == 'QUIC')
    meta = json.loads((tmp_path / 'meta.json').read_text())
    assert meta['direct'] == ['gold-2', 'silver-2', 'bronze-2']
    assert {row['user'] for row in tables['requests'] if row['scheme'] == 'h2'} == {'gold-1', 'silver-1', 'bronze-1'}
    assert {row['outcome'] for row in tables['requests']} <= {'ok', 'unfinished'}
    by_tcp = {row['user'] for row in tables['requests'] if row['scheme'] == 'direct'}
    assert by_tcp == (set(meta['direct']) if way == 'TCP' else set())
    seen = {line.split()[2] for line in (tmp_path / 'access.log').read_text().splitlines()}
    users = addresses.users(['gold', 'silver', 'bronze'], (2, 2, 2))
    assert not seen & {address for user in users if user.name in meta['direct'] for address in user.addresses}
    served = sum(int(tables['bytes'][-1][user.name]) for user in users if user.name not in meta['direct'])
    assert 0 < served < 0.8 * int(tables['link'][-1]['sent_bytes'])


@pytest.mark.parametrize('arm, way', [('stock-quic', 'h3'), ('msfrs', 'h2'), ('msfrs-edge-party', 'h3')])
def test_users_of_http3_have_it_where_quic_is_let_through(tmp_path, arm, way):
    """It bypasses Squid; where QUIC is rejected, their traffic is in Squid like everybody's."""
    if http3.missing():
        pytest.skip(http3.missing())
    _, tables = run_cell(tmp_path, arm, 'quic-pages', think_s=0.5)
    meta = json.loads((tmp_path / 'meta.json').read_text())
    assert meta['http3'] == ['gold-2', 'silver-2', 'bronze-2'] and meta['errors'] == {}
    came = [row for row in tables['requests'] if row['outcome'] == 'ok']
    assert {row['outcome'] for row in tables['requests']} <= {'ok', 'unfinished'}
    assert {row['scheme'] for row in came if row['user'] in meta['http3']} == {way}
    assert {row['scheme'] for row in came if row['user'] not in meta['http3']} == {'h2'}
    assert set(meta['quic']) == {{'h3': 'opened', 'h2': 'failed'}[way]}
    # Servers that never answer are asked by TCP: a browser would have begun that, too.
    seen = {line.split()[2] for line in (tmp_path / 'access.log').read_text().splitlines()
            if not any(address in line for address in addresses.SILENT.addresses)}
    users = addresses.users(['gold', 'silver', 'bronze'], (2, 2, 2))
    for user in users:
        if user.name in meta['http3']:
            assert bool(seen & set(user.addresses)) == (way == 'h2'), user


def test_what_goes_wrong_goes_wrong_and_is_right_again_afterwards():
    with World(rate_bps=4e6, rtts_ms=(12.0, 20.0, 28.0, 36.0, 44.0), users=(1, 1, 1)) as made:
        made.start_names()
        made.start_origin(stalling=True)
        made.start_squid(squidconf.stock(made), SQUID)
        user, servers = made.users[0], made.servers

        def answers(server, family=4):
            try:
                return made.fetch(user, server, SMALL, family=family, timeout=2.0)[0] == 200
            except OSError:
                return False

        assert all(answers(server, family) for server in servers for family in (4, 6))
        with disturb.EFFECTS['stall'](made, 0.0):
            assert [answers(server) for server in servers] == [False, True, True, True, False]
        assert all(answers(server) for server in servers)
        with disturb.EFFECTS['down'](made, 0.0):
            assert not answers(servers[0]) and not answers(servers[0], 6)
        assert answers(servers[0]) and answers(servers[0], 6)
        queue = made.bottleneck.reader()
        with contextlib.closing(queue):
            before = queue.read().sent_bytes
            for share, shown in ((0.5, 'rate 2Mbit'), (0.25, 'rate 1Mbit')):
                with disturb.EFFECTS['rate'](made, share):
                    assert shown in made.isp.run('tc', 'qdisc', 'show', 'dev', 'acc0')
            assert 'rate 4Mbit' in made.isp.run('tc', 'qdisc', 'show', 'dev', 'acc0')
            assert queue.read().sent_bytes >= before > 0


def test_a_cell_with_groups_of_users_leaves_the_same_records(tmp_path, monkeypatch):
    monkeypatch.setattr(cell.fabrics, 'new', lambda _: Offices())
    stat, tables = run_cell(tmp_path, 'msfrs', 'excess')
    users = [f'{name}-{number}' for name in ('gold', 'silver', 'bronze') for number in (1, 2)]
    assert stat['groups'] == {'users1': users[:2], 'users2': users[2:4], 'users3': users[4:]}
    assert set(tables['bytes'][-1]) == {'t', *users}
    ended = [float(row['t_end']) for row in tables['requests']]
    assert ended == sorted(ended) and {row['user'] for row in tables['requests']} == set(users)
    meta = json.loads((tmp_path / 'meta.json').read_text())
    answered = sum(count for how, count in meta['requests'].items() if how != 'silent')  # others are in no table
    assert answered == len(ended)
    assert sum(meta['payload_bytes'].values()) == sum(int(tables['bytes'][-1][user]) for user in users)
    assert set(stat['congestion_control']) == {'users1', 'users2', 'users3', 'gw', 'farm'}
    assert (tmp_path / 'cbr1-received.csv').stat().st_size > 100


def test_a_router_passes_all_kinds_of_connections(tmp_path):
    """As the share of others is measured against it."""
    run_cell(tmp_path, 'router', 'internet', connections=2, drain_s=10)
    with open(tmp_path / 'connections.csv', newline='', encoding='utf-8') as file:
        rows = list(csv.DictReader(file))
    assert [row for row in rows if row['works'] != '1'] == []
    assert len(rows) == 2 * len({row['kind'] for row in rows}) == 2 * 42


def test_a_cell_that_cannot_run_says_why_and_leaves_nothing(tmp_path):
    def own():
        return {name for name in namespaces() if name.startswith(f'msfrs-{os.getpid()}-')}

    before = own()
    with pytest.raises(TrialError, match='no Squid there'):
        cell.run(CellSpec(
            name='bad', directory=str(tmp_path), arms=('stock',), workload='backlogged', parameters={},
            rate_bps=4e6, buffer_bdp=1.5, rtts_ms=RTTS, counts=(1,), weights={'gold': 1}, seed=1, duration_s=8, warmup_s=2,
            drain_s=0, squid='/nowhere/squid', stock_squid='/nowhere/squid'))
    assert own() == before
