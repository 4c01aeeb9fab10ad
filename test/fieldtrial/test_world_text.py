# SPDX-License-Identifier: GPL-2.0-or-later
"""The text parts of the world: addresses, squid.conf, tc commands, the manager's report."""
import contextlib
import ipaddress
import re
import types

import pytest

from fieldtrial.analysis import wording
from fieldtrial.base.errors import TrialError
from fieldtrial.site import (addresses, arms, delay, guest, lan, meters, msfrs_edge, netns, preflight, processes,
                             shaping, sharing, squidconf)
from fieldtrial.site.world import DEFAULT_RTTS, World

V4 = ipaddress.ip_network('198.18.0.0/15')
V6 = ipaddress.ip_network('2001:2::/48')
CLASSES = ['gold', 'silver', 'bronze']
WITH_SQUID = [arm for arm in arms.ARMS.values() if arm.configuration]


def inside(address, *networks):
    address = ipaddress.ip_address(address)
    return any(address in ipaddress.ip_network(network) for network in networks if
               ipaddress.ip_network(network).version == address.version)


def test_all_addresses_are_benchmark_addresses_and_nobody_shares_one():
    users = addresses.users(CLASSES, (300, 4, 4))
    servers = addresses.servers(DEFAULT_RTTS)
    links = [addresses.GATEWAY_IN4, addresses.GATEWAY_IN6, addresses.GATEWAY_OUT4, addresses.GATEWAY_OUT6,
             addresses.ISP4, addresses.ISP6, addresses.SINK4, addresses.SINK6]
    everyone = [address for each in [*users, *servers] for address in each.addresses] + links
    assert len(set(everyone)) == len(everyone)
    for address in everyone:
        assert inside(address, V4, V6), address


def test_users_lie_in_their_class_and_in_no_other_and_servers_in_none():
    users = addresses.users(CLASSES, (300, 4, 4))
    prefixes = {name: addresses.class_prefixes(number) for number, name in enumerate(CLASSES, start=1)}
    for user in users:
        assert inside(user.v4, addresses.LAN4) and inside(user.v6, addresses.LAN6)
        for address in user.addresses:
            assert [name for name in CLASSES if inside(address, *prefixes[name])] == [user.cls]
    for other in [addresses.SINK4, addresses.SINK6, addresses.GATEWAY_IN4, addresses.GATEWAY_IN6]:
        assert not any(inside(other, *prefixes[name]) for name in CLASSES)
    for server in addresses.servers(DEFAULT_RTTS):
        assert inside(server.v4, addresses.SERVERS4) and inside(server.v6, addresses.SERVERS6)
        assert not inside(server.v4, addresses.LAN4) and not inside(server.v6, addresses.LAN6)


def test_gateways_have_addresses_of_their_own():
    every = [address for number in range(addresses.MOST_GATEWAYS)
             for address in (*addresses.outside(number), addresses.at_store(number))]
    every += [addresses.ISP4, addresses.ISP6, addresses.STORE4]
    assert len(set(every)) == len(every) and all(inside(address, V4, V6) for address in every)
    assert addresses.outside(0) == (addresses.GATEWAY_OUT4, addresses.GATEWAY_OUT6)


def test_every_user_has_a_64_of_its_own():
    users = addresses.users(CLASSES, (300, 300, 300))
    assert len({user.v6.rsplit('::', 1)[0] for user in users}) == 900


def test_default_servers_are_the_papers():
    servers = addresses.servers(DEFAULT_RTTS)
    assert len(servers) == 12
    assert (servers[0].rtt_ms, servers[-1].rtt_ms) == (12, 296)
    assert sum(server.rtt_ms for server in servers) / 12 == pytest.approx(154)
    assert [server.group for server in servers].count('domestic') == 6


@pytest.mark.parametrize('counts, words', [((-1, 4, 4), '-1 users in class gold'),
                                           ((4, 5000, 4), '5000 users in class silver')])
def test_impossible_populations(counts, words):
    with pytest.raises(ValueError, match=words):
        addresses.users(CLASSES, counts)


@pytest.fixture
def world(tmp_path):
    return types.SimpleNamespace(weights={'gold': 4, 'silver': 2, 'bronze': 1}, rate_bps=2e6, least_bps=3e5, tls=False,
                                 workers=1, gateways=['gw'],
                                 nameserver='127.0.0.1', packet_overhead=0,
                                 users=addresses.users(CLASSES, (24, 4, 4)), squid_directory=lambda: tmp_path)


def test_arms_share_everything_but_their_own_directives(world):
    stock = squidconf.stock(world)
    for arm in WITH_SQUID:
        text = arm.configuration(world)
        assert text.startswith(stock)
        assert ('msfrs on' in text) == arm.scheduled


def test_every_arm_has_as_many_workers_as_are_asked_for(world):
    alone = {arm.name: arm.configuration(world) for arm in WITH_SQUID}
    world.workers = 3
    for arm in WITH_SQUID:
        assert arm.configuration(world) == 'workers 3\n' + alone[arm.name]


def test_tls_is_spliced_or_decrypted_alike_in_every_arm(world):
    world.tls, world.certificate_helper, world.certificate = True, None, lambda: '/servers.pem'
    for helper, how in ((None, 'ssl_bump splice all'), ('/helper', 'ssl_bump bump all')):
        world.certificate_helper = helper
        for arm in WITH_SQUID:
            text = arm.configuration(world)
            assert re.findall('ssl_bump .* all', text) == [how]
            assert ('sslcrtd_program /helper -s ' in text) == ('cafile=/servers.pem' in text) == bool(helper)


def test_of_several_gateways_each_shares_the_link_where_it_schedules(world):
    alone = {arm.name: arm.configuration(world) for arm in WITH_SQUID if not arm.alone}
    world.gateways = ['gw', 'gw2']
    for name, text in alone.items():
        assert arms.get(name).configuration(world) == text.replace(' interface=wan0\n', ' interface=wan0 shared\n')
        assert (' shared' in arms.get(name).configuration(world)) == arms.get(name).scheduled


def test_a_gateway_keeps_to_what_its_users_weigh_while_it_hears_of_no_other(world):
    one, other = 'gw', 'gw2'
    gold, silver, bronze = world.users[0], world.users[24], world.users[28]
    world.gateways = {one: {'a': [gold, silver], 'b': [bronze]}, other: {'c': [silver, bronze]}}
    assert sharing.shares(world) == {one: 70, other: 30}
    world.gateways[other] = {'c': []}
    assert sharing.shares(world) == {one: 99, other: 1}


def test_pools_share_the_link_by_weight_times_users(world):
    rates = {line.split()[1]: int(line.split()[2].split('/')[0]) for line in squidconf.pools(world).splitlines()
             if line.startswith('delay_parameters')}
    assert rates == {'1': round(250000 * 96 / 108), '2': round(250000 * 8 / 108), '3': round(250000 * 4 / 108)}


def test_msfrs_names_classes_link_and_default(world):
    lines = squidconf.msfrs(world).splitlines()
    assert 'msfrs_link rate=2000kbit interface=wan0' in lines
    assert [line for line in lines if line.startswith('msfrs_class')] == [
        'msfrs_class gold weight=4', 'msfrs_class silver weight=2', 'msfrs_class bronze weight=1 default']
    assert 'msfrs_access silver allow silver' in lines
    assert not any(line.startswith(('msfrs_window', 'msfrs_quantum')) for line in lines), 'defaults must be defaults'
    world.packet_overhead = 14
    assert 'msfrs_link rate=2000kbit interface=wan0 packet_overhead=14' in squidconf.msfrs(world).splitlines()


def test_what_is_told_of_a_variable_rate(world):
    for arm, rate in (('msfrs-least', '300kbit'), ('msfrs-auto', 'auto min=200kbit max=40000kbit')):
        assert arms.get(arm).configuration(world) == squidconf.msfrs(world).replace('rate=2000kbit', f'rate={rate}')


def test_arms_that_are_msfrs_but_for_a_directive(world):
    assert arms.get('sjf').configuration(world) == (
        squidconf.msfrs(world) + 'msfrs_arbiter msf order=remaining ahead=inf\n')


@pytest.mark.parametrize('quic, word', [(True, 'allow'), (False, 'reject')])
def test_the_gateway_is_told_what_becomes_of_quic(quic, word):
    made = World(rate_bps=2e6, quic=quic)
    made.gateway, made._lasting = Recorder(), False
    made.intercept()
    line, = made.gateway.lines
    assert f' --intercept 80 --quic {word} ' in line
    assert [arm.name for arm in WITH_SQUID if arm.quic] == ['stock-quic', 'msfrs-edge-party']
    assert all(arm.quic for arm in arms.ARMS.values() if arm not in WITH_SQUID)


class Recorder:
    """A host that records its commands."""

    role = 'gw'

    def __init__(self, refuse=False, lacking=()):
        """lacking: words that it does not know; refuse: it runs nothing at all."""
        self.lines, self._refuse, self._lacking = [], refuse, set(lacking)

    def run(self, *argv, check=True):
        self.batch([' '.join(map(str, argv))])

    def batch(self, lines, *_):
        if self._refuse or any(self._lacking & set(line.split()) for line in lines):
            raise netns.HostError('exit code 2 from: tc')
        self.lines += lines


def test_htb_rates_add_up_and_every_user_has_a_leaf(world):
    host = Recorder()
    shaping.htb(host, 'lan0', 1.96e6, world.users, world.weights)
    leaves = [line for line in host.lines
              if line.startswith('class') and int(line.split('classid 1:')[1].split()[0], 16) >= 256]
    assert len(leaves) == 32
    total = sum(int(line.split('rate ')[1].split('bit')[0]) for line in leaves)
    assert total == pytest.approx(1.96e6, rel=1e-4)
    assert sum(line.startswith('filter') for line in host.lines) == 64


def test_bottleneck_in_the_words_of_tc():
    host = Recorder()
    shaping.bottleneck(host, 'acc0', 2e6, 1.5 * shaping.bdp_bytes(2e6, 154))
    assert host.lines == ['tc qdisc replace dev acc0 root tbf rate 2000000bit burst 3028 limit 57750']


def test_on_a_fast_link_the_bucket_holds_what_a_timer_may_be_late():
    assert [shaping.burst_bytes(rate) for rate in (2e6, 100e6, 1e9)] == [3028, 3028, 30000]


def test_servers_next_door_have_a_cable_and_no_delay():
    host = Recorder(lacking=('netem',))
    near, far = addresses.servers((0.0, 0.0)), addresses.servers((0.0, 10.0))
    assert type(delay.choose('auto', host, 'delayline', near)) is delay.Cables and host.lines == []
    assert type(delay.choose('auto', host, 'delayline', far)) is delay.DelayLine
    fabric = types.SimpleNamespace(wire=lambda *ends: None)
    delay.Cables().connect(fabric, host, {host: near}, '')
    assert not any('qdisc add dev s' in line for line in host.lines)
    assert 'route add 198.19.1.2/32 dev s2 src 198.19.0.1' in host.lines


@pytest.mark.parametrize('count, routes', ((500, ('198.18.0.0/16 dev lan0 scope link src 198.18.0.1', )), (501, (
    '198.18.16.1 dev lan0 scope link src 198.18.0.1', '198.18.0.0/16 via 198.18.16.1'))))
def test_more_users_than_a_kernel_has_neighbours_are_behind_the_first(count, routes):
    own = [(user.v4, user.v6) for user in addresses.users(['gold'], [count])]
    gateway, home = Recorder(), Recorder()
    lan.address(gateway, {home: own})
    found = [line for line in gateway.lines if line.startswith('route add 198.')]
    assert found == [f'route add {route} congctl cubic' for route in routes]


def test_many_users_on_several_hosts_are_refused():
    own = [(user.v4, user.v6) for user in addresses.users(['gold'], [600])]
    with pytest.raises(TrialError, match='more than 500 users behind a gateway must be on one host, and are on 2'):
        lan.address(Recorder(), {Recorder(): own[:300], Recorder(): own[300:]})


def test_every_user_has_an_fq_codel_of_the_links_times(world):
    """A target below the time of a full frame would make CoDel drop from queues that no sender can shorten."""
    plain, host = Recorder(), Recorder()
    shaping.htb(plain, 'lan0', 1.9e6, world.users, world.weights)
    shaping.fq_codel(host, 'lan0', 1.9e6, world.users, world.weights)
    leaves = [f'qdisc add dev lan0 parent 1:{number:x} fq_codel target 9562us interval 104562us'
              for number in range(256, 288)]
    assert host.lines == plain.lines + leaves


@pytest.mark.parametrize('rate, times', [(95e6, (5, 100)), (1.514e6, (12, 107)), (0.1e6, (181.68, 363.36))])
def test_times_of_codel_on_a_slow_link(rate, times):
    assert shaping.codel_ms(rate) == pytest.approx(times)


def test_cake_takes_several_queues_where_it_can():
    told = 'bandwidth 1900000bit besteffort dual-dsthost'
    for lacking, kind in (((), 'cake_mq'), (('cake_mq',), 'cake')):
        host = Recorder(lacking=lacking)
        shaping.cake(host, 'lan0', 1.9e6, [], {})
        assert host.lines == [f'qdisc replace dev lan0 root {kind} {told}']


def test_sqm_is_the_shipped_configuration_with_a_class_for_each_user(world, tmp_path, monkeypatch):
    started, rules = [], []
    world.gateway, world.directory, world.when_left = Recorder(), tmp_path, lambda *what: None
    monkeypatch.setattr(msfrs_edge, 'start', lambda _, host, program, conf, **how: started.append((conf, how)))
    monkeypatch.setattr(msfrs_edge, 'rules', lambda host, *words: rules.append(words))
    arms.get('stock-sqm').prepare(world)
    (text, how), = started
    assert text.startswith((msfrs_edge.CONF / 'sqm.conf').read_text())
    assert (how['link'], how['aqm']) == ('rate=1900000bit overhead=14B', 'codel target=9.56211 interval=104.562')
    lines = text.splitlines()
    assert lines[-4:] == ['class bronze-4 weight=1', 'classify bronze-4 to=198.18.48.4',
                          'classify bronze-4 to=2001:2:0:3004::2', 'class others default=on']
    assert sum(line.startswith('class gold-') and line.endswith(' weight=4') for line in lines) == 24
    assert rules == [('up', '--link', 'lan0=0', '--mark-shift', 'none')]


def test_edge_as_a_party_has_its_shipped_configuration_and_squids_memory(world, tmp_path, monkeypatch):
    started, rules = [], []
    world.gateway, world.service = Recorder(), 'msfrs12gw'
    monkeypatch.setattr(msfrs_edge, 'start', lambda _, host, program, conf, **how: started.append((conf, how)))
    monkeypatch.setattr(msfrs_edge, 'rules', lambda host, *words: rules.append(words))
    arms.get('msfrs-edge-party').prepare(world)
    assert started == [(msfrs_edge.CONF / 'downlink.conf', {
        'name': 'downlink', 'queue': 'number=1 gso=off', 'inside': '198.18.0.0/16 2001:2::/49',
        'segment': '/msfrs12gw-msfrs_ledger.shm', 'aqm': 'codel target=4070 interval=16279'})]
    assert rules == [('up', '--link', 'lan0=1', '--own', 'no')]
    text = arms.get('msfrs-edge-party').configuration(world)
    assert text == squidconf.msfrs(world).replace('interface=wan0', 'interface=wan0 shared')


def test_every_arm_has_a_name_and_what_stands_for_it_needs_nothing_of_the_kernel():
    assert set(wording.ARMS) == set(arms.ARMS)
    for arm in arms.ARMS.values():
        assert not arm.stand_in or not arms.get(arm.stand_in).qdisc


def test_what_this_kernel_lacks_is_found_by_trying(monkeypatch):
    host = Recorder(lacking=('fq_codel', 'cake', 'cake_mq'))
    monkeypatch.setattr(preflight, '_probe', lambda hosts: contextlib.nullcontext(host))
    monkeypatch.setattr(guest, 'why_not', lambda hosts: 'and there is no guest' if hosts == 'containers' else None)
    monkeypatch.setattr(guest, 'refused', lambda: None)
    assert preflight.lacking(arms.ARMS.values(), 'namespaces') == {}
    assert host.lines.count('tc qdisc del dev lo root') == len(arms.ARMS)
    found = preflight.lacking(arms.ARMS.values(), 'containers')
    no_fq_codel, no_cake = ('this kernel has no fq_codel (sch_fq_codel), and there is no guest',
                            'this kernel has no CAKE (sch_cake), and there is no guest')
    assert found.pop('router-sqm') == 'this kernel has no fq_codel (sch_htb and sch_fq_codel), and there is no guest'
    assert found == {'stock-fq_codel': no_fq_codel, 'router-fq_codel': no_fq_codel, 'stock-cake': no_cake,
                     'router-cake': no_cake, 'router-cake-ingress': no_cake}


def test_an_arm_takes_a_guest_only_where_the_kernel_lacks_its_qdisc(monkeypatch):
    def takes(name, lacking):
        monkeypatch.setattr(preflight, '_probe', lambda hosts: contextlib.nullcontext(Recorder(lacking=lacking)))
        return preflight.takes_guest(arms.get(name), 'namespaces')

    monkeypatch.setattr(guest, 'why_not', lambda hosts: None)

    assert takes('router-cake', ('cake', 'cake_mq'))
    assert not takes('router-cake', ())
    assert not takes('router-cake', ('cake',)), 'cake_mq is there'
    assert not takes('stock', ('cake',))


def test_there_is_no_guest_without_its_packages_or_in_containers(monkeypatch, tmp_path):
    assert 'network namespaces only' in guest.why_not('containers')
    monkeypatch.setattr(guest, 'MODULES', tmp_path / 'none')
    assert 'user-mode-linux and busybox-static' in guest.why_not('namespaces')


@pytest.fixture(name='kernel')
def _kernel(monkeypatch, tmp_path):
    """Makes a shell script the guest's kernel."""
    def made(script):
        program = tmp_path / 'linux'
        program.write_text(f'#!/bin/sh\n{script}\n')
        program.chmod(0o755)
        monkeypatch.setattr(guest, 'KERNEL', str(program))
        monkeypatch.setattr(guest, '_image', lambda directory: directory)
    return made


@pytest.mark.parametrize('says, why', [
    ('Linux version 6.1\n=DONE= 0', None),
    ('mmapper_init failed\nuserspace - ptrace set fp regs failed, errno = 14\nKernel panic - not syncing\n [<60>]',
     'and a guest for it does not start here: userspace - ptrace set fp regs failed, errno = 14'),
    ('Kernel panic - not syncing', 'and a guest for it does not start here: Kernel panic'),
    ('', 'and a guest for it does not start here: it says nothing'),
    ('Checking ptrace...ptrace: Operation not permitted',
     'and a guest for it does not start here: Checking ptrace...ptrace: Operation not permitted')])
def test_a_sandbox_that_forbids_a_guest_is_no_fault_of_the_run(monkeypatch, kernel, says, why):
    kernel(f'printf "%s\\n" "{says}"\nexit 1')
    assert guest.refused() == why
    host = Recorder(lacking=('cake', 'cake_mq'))
    monkeypatch.setattr(preflight, '_probe', lambda hosts: contextlib.nullcontext(host))
    monkeypatch.setattr(guest, 'why_not', lambda hosts: None)
    found = preflight.lacking([arms.get('router-cake'), arms.get('stock')], 'namespaces')
    assert found == ({'router-cake': f'this kernel has no CAKE (sch_cake), {why}'} if why else {})


def test_a_guest_that_does_not_come_up_is_ended(monkeypatch, kernel):
    kernel('exec cat')
    monkeypatch.setattr(guest, 'BOOT_S', 0.0)
    assert guest.refused() == 'and a guest for it does not start here: it has not started within 0 s'


def test_a_guest_stands_in_one_cable(world):
    made = World(rate_bps=2e6, guest=True)
    with pytest.raises(TrialError, match='between one gateway and one host of users'):
        made._connect_users(None, Recorder(), [1, 2])


@pytest.mark.parametrize('what, words', [
    (lambda host: shaping.bottleneck(host, 'acc0', 2e6, 1), 'sch_tbf'),
    (lambda host: shaping.htb(host, 'lan0', 2e6, addresses.users(['a'], [1]), {'a': 1}), 'sch_htb and cls_u32'),
    (lambda host: lan.connect(None, host, [1, 2]), 'gw: no switch between 2 hosts; it takes the kernel module bridge')])
def test_a_kernel_without_the_qdisc_is_named(what, words):
    with pytest.raises(Exception, match=words):
        what(Recorder(refuse=True))


def test_netem_in_the_words_of_tc():
    assert delay.Netem().qdisc(6.0) == 'netem delay 6.000ms limit 10000'


REPORT = '''\
link:
  rate: 2000000
  auto: # how rate was found
    changes:
      - {ago: 0.3, from: 1000000, to: 2000000, because: "the link carried more"}
window:
  outstanding: 7 # W, responses under way
  limit: 7.31 # W+, how many there may be
  history:
    - {ago: 2.0, outstanding: 6, limit: 7.31, utilisation: 0.9800, full: true}
    - {ago: 1.0, outstanding: 7, limit: 7.40, utilisation: 1.0021, full: 0.25}
classes:
  - name: "gold"
'''


def test_what_came_past_squid_is_read_from_the_rules():
    """Frames with their Ethernet headers. Both families belong to the same user."""
    four, six = (f"""Chain TRIAL_PAST (1 references)
    pkts      bytes target     prot opt in     out     source               destination
{rules}""" for rules in (
        '      10    12800            0    --  *      *       0.0.0.0/0            198.18.1.1           /* gold-1 */\n'
        '       0        0            0    --  *      *       0.0.0.0/0            198.18.1.2           /* gold-2 */\n',
        '       1     1280            0        *      *       ::/0                 2001:2::1       /* gold-1 */\n'))
    assert meters.past_bytes([four, six]) == {'gold-1': 14080 + 11 * 14, 'gold-2': 0}


def test_window_history_is_read_from_the_report():
    assert meters.window_history(REPORT) == [
        {'ago': 2.0, 'outstanding': 6, 'limit': 7.31, 'utilisation': 0.98, 'full': 1},
        {'ago': 1.0, 'outstanding': 7, 'limit': 7.4, 'utilisation': 1.0021, 'full': 0.25}]
    assert meters.window_history('window:\n  history: []\n') == []


def test_the_rate_of_the_link_is_read_from_it(tmp_path, monkeypatch):
    reports = iter([REPORT, 'classes: []\n', REPORT.replace('2000000', '2500000')])
    monkeypatch.setattr(meters, 'manager_report', lambda *_: next(reports))
    monkeypatch.setattr(meters.time, 'monotonic', lambda: 95.0)
    meter = meters.FoundMeter(tmp_path / 'found.csv', 90.0, None)
    for _ in range(3):
        meter.sample()
    meter._file.close()
    assert (tmp_path / 'found.csv').read_text().splitlines() == ['t,rate_bps', '5.000,2000000', '5.000,2500000']


def test_window_meter_takes_each_sample_once(tmp_path, monkeypatch):
    """Two reports, 1 s apart by the clock, overlap by one sample whose age is rounded."""
    reports = iter([REPORT, REPORT.replace('ago: 2.0', 'ago: 1.9').replace('7.31, util', '7.40, util').replace(
        'ago: 1.0', 'ago: 0.9').replace('limit: 7.40, utilisation: 1.0021', 'limit: 7.5, utilisation: 0.99')])
    clock = iter([100.0, 101.0])
    monkeypatch.setattr(meters, 'manager_report', lambda *_: next(reports))
    monkeypatch.setattr(meters.time, 'monotonic', lambda: next(clock))
    meter = meters.WindowMeter(tmp_path / 'window.csv', 90.0, None)
    meter.sample()
    meter.sample()
    meter._file.close()
    rows = (tmp_path / 'window.csv').read_text().splitlines()
    assert rows == ['t,w,wplus,u,full', '8.0,6,7.31,0.98,1', '9.0,7,7.4,1.0021,0.25', '10.1,7,7.5,0.99,0.25']


def test_names_of_namespaces_say_who_owns_them():
    assert netns.NAME.fullmatch('msfrs-12-345-1-gw').groups() == ('12', '345', '1', 'gw')
    assert not netns.NAME.fullmatch('somebody-elses')
    assert not netns.NAME.fullmatch('msfrs-gw')


def test_tail_shows_the_end_only(tmp_path):
    path = tmp_path / 'log'
    path.write_text('\n'.join(f'line {number}' for number in range(100)))
    assert processes.tail(path, 2) == '  | line 98\n  | line 99'
    assert 'No such file' in processes.tail(tmp_path / 'none')
