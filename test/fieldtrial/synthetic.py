# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes run directories with known figures, in the file formats of a real run. It simulates nothing: link, queue,
drops, CPU and each user's bytes grow linearly, latencies are lognormal with a given mean."""
import dataclasses
import json
import math
import random
import types

from fieldtrial.load import workloads
from fieldtrial.load.merge import write_csv
from fieldtrial.load.traffic.records import REQUEST_COLUMNS
from fieldtrial.site import grid

WEIGHTS = {'gold': 4, 'silver': 2, 'bronze': 1}
SIZES = (4_000, 12_000, 30_000, 60_000, 200_000)
RTTS = (12, 64, 140, 296)


class Arm:
    """Figures of a cell of this arm. Units as in the names; `latency_s` {class: mean for objects up to 16 kB}."""

    def __init__(self, name, *, shares=(1, 1, 1), utilisation=0.99, queue_ms=160.0, drops_per_mb=40.0, cpu_per_gb=60.0,
                 latency_s=(2.0, 2.0, 2.0), page_s=(11.0, 11.0, 11.0), window=False):
        self.name, self.utilisation, self.queue_ms = name, utilisation, queue_ms
        self.drops_per_mb, self.cpu_per_gb, self.window = drops_per_mb, cpu_per_gb, window
        self.shares = dict(zip(WEIGHTS, shares))
        self.latency_s, self.page_s = dict(zip(WEIGHTS, latency_s)), dict(zip(WEIGHTS, page_s))


STOCK = Arm('stock')
HTB = Arm('stock-htb', shares=(3.6, 1.9, 1), utilisation=0.985, queue_ms=140, latency_s=(2.5, 3.0, 3.4),
          page_s=(8.5, 10.0, 12.0), cpu_per_gb=55.0)
OURS = Arm('msfrs', shares=(4, 2, 1), utilisation=0.986, queue_ms=58, drops_per_mb=3.5, cpu_per_gb=42.0,
           latency_s=(0.4, 0.6, 0.9), page_s=(6.2, 8.5, 11.5), window=True)
PAPER = Arm('msfrs-paper', shares=(4.1, 2.05, 1), utilisation=0.974, queue_ms=90, drops_per_mb=12.0, cpu_per_gb=43.0,
            latency_s=(4.0, 5.0, 7.0), page_s=(9.0, 10.0, 12.0), window=True)
ARMS = (STOCK, HTB, PAPER, OURS)

GOODPUT = 0.94
PACKET = 1000       # bytes, so that n drops per MB are n per 1000 packets


def users_of(counts):
    """{user: class} for the numbers of users in each class."""
    return {f'{name}-{number}': name for name, count in zip(WEIGHTS, counts) for number in range(1, count + 1)}


def _steps(stop, step):
    return [round(number * step, 6) for number in range(int(round(stop / step)) + 1)]


def make_cell(directory, arm, workload, *, rate_bps=2e6, buffer_bdp=1.5, seconds=60.0, warm_up=10.0, counts=(4, 4, 4),
              seed=1, pages=False, phases=None, beside_bps=None, less_bps=0.0, direct=(), served=None,
              http3=(), more=1.0, longer=1.0, past=None, gateways=1, stalls=None,
              **parameters):
    """Writes one cell: `warm_up` s that are not measured and `seconds` that are. beside_bps: rate of a stream to the
    first user; less_bps: reduction of that user's rate by requests. direct: users who bypass Squid; served: share of C
    of the others. http3: users of HTTP/3, who have this many times the bytes of others, and this many times their page
    times. past: {user: share of C that bypassed Squid}; with it, users of HTTP/3 have no bodies. stalls: (end, length)
    of each stall of the host, s; None: not recorded."""
    directory.mkdir(parents=True)
    stop, users = warm_up + seconds, users_of(counts)
    chance = random.Random(f'{seed} {arm.name} {workload}')
    write_stat(directory, arm, workload, rate_bps=rate_bps, buffer_bdp=buffer_bdp, users=users, seed=seed,
               interval=(warm_up, stop), parameters=parameters, gateways=gateways)
    phases = phases or [{'t_start': 0.0, 't_end': stop, 'classes': list(WEIGHTS), 'label': 'all'}]
    (directory / 'meta.json').write_text(json.dumps({
        't_end': stop, 'phases': phases, 'spec': {'sizes': {'max': 2_000_000}}, 'direct': list(direct),
        'http3': list(http3)}))
    _write_link(directory, arm, rate_bps, stop)
    write_csv(directory / 'squid.csv', ('t', 'cpu_s', 'rss_kb'),
              [(t, t * arm.utilisation * rate_bps / 8 * GOODPUT * arm.cpu_per_gb / 1e9, 40_000 + 50 * t)
               for t in _steps(stop, 0.5)])
    if arm.window:
        write_csv(directory / 'window.csv', ('t', 'w', 'wplus', 'u'),
                  [(t, 6 + chance.randint(-1, 1), 6 + (t > stop / 2), arm.utilisation) for t in _steps(stop, 5.0)])
    _write_bytes(directory, arm, users, rate_bps, stop, phases, less_bps, direct, served,
                 dict.fromkeys(http3, more if past is None else 0.0))
    if past is not None:
        write_csv(directory / 'past.csv', ('t', *users),
                  [(t, *(round(past.get(user, 0) * rate_bps / 8 * t) for user in users)) for t in _steps(stop, 1.0)])
    if stalls is not None:
        _write_host(directory, stop, stalls)
    if beside_bps is not None:
        write_csv(directory / 'cbr1-received.csv', ('t', 'packets', 'bytes', 'lost', 'delay_mean_ms'),
                  [(t, 1, beside_bps / 8, 0, '') for t in _steps(stop - 1, 1)])
    _write_requests(directory, arm, users, stop, chance, http3)
    if pages:
        _write_pages(directory, arm, users, stop, chance, dict.fromkeys(http3, longer))


def write_stat(directory, arm, workload, *, rate_bps, buffer_bdp, users, seed, interval, parameters,
               gateways=1):
    """stat.json of a cell."""
    (directory / 'stat.json').write_text(json.dumps({
        'version': 1, 'complete': True, 'arm': arm.name, 'workload': workload, 'parameters': parameters,
        'rate_bps': rate_bps, 'rtts_ms': RTTS, 'buffer_bdp': buffer_bdp,
        'buffer_bytes': round(buffer_bdp * rate_bps / 8 * 0.154), 'weights': WEIGHTS, 'users': users, 'seed': seed,
        'gateways': gateways, 't_start': interval[0], 't_stop': interval[1],
        'versions': {'squid': '6.13', 'kernel': '6.1'},
        'profile': dataclasses.asdict(workloads.get(workload).profile) if workload in workloads.names() else None,
        'squid_conf': 'msfrs on\n' if arm.window else 'http_port 3128\n'}))


def _write_host(directory, stop, stalls):
    """A wakeup every 10 ms that is 0.1 ms late, except for those at the end of a stall."""
    late = {round(t * 0.01, 2): 0.0001 for t in range(round(stop * 100) + 1)}
    for end, length in stalls:
        for t in [t for t in late if end - length < t <= end]:
            del late[t]
        late[end] = length
    write_csv(directory / 'stalls.csv', ('t', 'late_s'), sorted(late.items()))
    write_csv(directory / 'host.csv', ('t', 'idle_s', 'steal_s', 'squid_wait_s', 'load_wait_s'),
              [(t, t * 0.25, t * 0.02, t * 0.1, t * 0.3) for t in _steps(stop, 1.0)])


def _write_link(directory, arm, rate_bps, stop):
    rows = []
    for t in _steps(stop, 0.1):
        sent = arm.utilisation * rate_bps / 8 * t
        # A wave with whole periods of 10 s: its mean over the measured interval is queue_ms.
        queue = arm.queue_ms * (1 + 0.5 * math.sin(2 * math.pi * t / 10))
        drops = round(arm.drops_per_mb * sent / 1e6, 3)
        rows.append((t, round(sent), round(queue * rate_bps / 8e3), drops, round(sent), round(sent / PACKET)))
    write_csv(directory / 'link.csv', ('t', 'rx_bytes', 'backlog_bytes', 'drops', 'sent_bytes', 'sent_packets'), rows)


def _write_bytes(directory, arm, users, rate_bps, stop, phases, less_bps, direct, served, more):
    total, rows = dict.fromkeys(users, 0.0), []
    step = 0.5
    for t in _steps(stop, step):
        rows.append((t, *(round(amount, 1) for amount in total.values())))
        phase = next((phase for phase in phases if phase['t_start'] <= t < phase['t_end']), phases[-1])
        active = [user for user, name in users.items() if name in phase['classes'] and user not in direct]
        weight = {user: arm.shares[users[user]] * more.get(user, 1.0) for user in active}
        share = GOODPUT * arm.utilisation if served is None else served
        for user in active:
            total[user] += share * rate_bps / 8 * step * weight[user] / sum(weight.values())
        for user in direct:
            total[user] += 1000.0
        total[next(iter(users))] -= less_bps / 8 * step
    write_csv(directory / 'bytes.csv', ('t', *users), rows)


def _latency(chance, mean, shape=0.8):
    return chance.lognormvariate(math.log(mean) - shape ** 2 / 2, shape)


def _write_requests(directory, arm, users, stop, chance, http3):
    rows = []
    for user, name in users.items():
        t = 0.0
        while t < stop:
            size, rtt = chance.choice(SIZES), chance.choice(RTTS)
            length = _latency(chance, arm.latency_s[name] * max(1, size / 16_000) ** 0.5)
            end = min(t + length, stop)
            outcome = 'ok' if t + length <= stop else 'unfinished'
            rows.append((t, t + (end - t) / 2, end, user, name, f's{rtt}', rtt, size,
                         size if outcome == 'ok' else size // 2, 200, outcome, '', 'object',
                         'h3' if user in http3 else 'http'))
            t += length
    rows.sort(key=lambda row: row[2])
    write_csv(directory / 'requests.csv', (
        't_start', 't_first_byte', 't_end', 'user', 'class', 'server', 'rtt_ms', 'size', 'bytes', 'status', 'outcome',
        'page', 'kind', 'scheme'), rows)


def _write_pages(directory, arm, users, stop, chance, longer):
    rows = []
    for user, name in users.items():
        t = chance.uniform(0, 5)
        while t < stop:
            length = _latency(chance, arm.page_s[name] * longer.get(user, 1.0), 0.4)
            done = t + length <= stop
            rows.append((t, min(t + length, stop), user, name, 12, 300_000, int(done), f'{user}-{t:.0f}',
                         'ok' if done else 'unfinished'))
            t += length + chance.expovariate(1 / 5)
    write_csv(directory / 'pages.csv', ('t_start', 't_end', 'user', 'class', 'objects', 'bytes', 'complete', 'page',
                                        'outcome'), rows)


def play(directory, bitrates, late=0.0, players=2):
    """Video as the only requests of a cell: {class: bitrate}. A segment of 4 s begins every 4 s, and the one of 40 s
    ends `late` s after its deadline."""
    rows = []
    for name, bitrate in bitrates.items():
        for number in range(1, players + 1):
            for t in range(0, 70, 4):
                end = t + 3.0 + (4.0 + late if t == 40 and late else 0.0)
                size = grid.nearest(bitrate * 4 / 8)
                rows.append((t, t + 0.1, end, f'{name}-{number}', name, 's1', 12, size, size, 200, 'ok', '', 'segment',
                             'h2'))
    write_csv(directory / 'requests.csv', REQUEST_COLUMNS, rows)


def talk(directory, delays_ms, lost=0):
    """A call of 60 measured seconds, two datagrams in each; in the last `lost` seconds one of them is missing."""
    write_csv(directory / 'cbr1-delays.csv', ('t', 'delay_ms'), [(10 + n, delay) for n, delay in enumerate(delays_ms)])
    write_csv(directory / 'cbr1-received.csv', ('t', 'packets', 'bytes', 'lost'),
              [(t, 2 - (t >= 70 - lost), 428, int(t >= 70 - lost)) for t in range(70)])


def four_phases(stop):
    """The phases of the paper's fig. 8, a quarter of `stop` s each."""
    names, quarter = list(WEIGHTS), stop / 4
    active = (names, names[1:], names[2:], names)
    labels = ('all', 'without gold', 'without gold and silver', 'all again')
    return [{'t_start': number * quarter, 't_end': (number + 1) * quarter, 'classes': on, 'label': label}
            for number, (on, label) in enumerate(zip(active, labels))]


def disturbances(stop, **more):
    """The phases of a run in which the link is slower for a while, and down later."""
    workload = workloads.get('disturbed')({'first_s': 15, 'rate_s': 5, 'calm_s': 20, 'down_s': 3, 'cbr_s': 0,
                                           'stall_s': 0, 'tunnels_s': 0, **more})
    spec = types.SimpleNamespace(duration_s=stop, classes=list(WEIGHTS))
    return [dataclasses.asdict(phase) for phase in workload.phases(spec)]


def make_run(directory, arms=ARMS, seconds=60.0, full=True):
    """Writes a run: every workload if `full`, otherwise only backlogged at 2 Mbit/s."""
    directory.mkdir(parents=True)
    (directory / 'meta.json').write_text(json.dumps({
        'version': 1, 'argv': ['--seed', '1'], 'utc': '2001-02-03T04:05:06Z', 'seed': 1, 'quick': not full,
        'versions': {'squid': '6.13', 'kernel': '6.1', 'nginx': '1.22'}, 'complete': True}))
    for arm in arms:
        def cell(name, workload, **options):
            make_cell(directory / f'{name}-{arm.name}', arm, workload, seconds=seconds, **options)
        cell('backlogged-2', 'backlogged', inflight=4)
        if not full:
            continue
        cell('backlogged-10', 'backlogged', rate_bps=10e6, buffer_bdp=4.0, inflight=4)
        cell('unequal', 'unequal', counts=(24, 4, 4), inflight=4)
        cell('phases', 'phases', phases=four_phases(seconds + 10.0), inflight=4)
        for load in (0.85, 0.95):
            cell(f'open-{load}', 'open', load=load)
        for buffer_bdp in (1.5, 10.0):
            cell(f'pages-{buffer_bdp}', 'pages', pages=True, buffer_bdp=buffer_bdp, objects=12)
        cell('cbr-40', 'cbr', share=0.4, period_s=40.0)
        cell('https-backlogged-2', 'https-backlogged', inflight=4)
        cell('https-pages', 'https-pages', pages=True, buffer_bdp=4.0, objects=12, idle=20)
        cell('https-open', 'https-open', load=0.95)
        cell('disturbed', 'disturbed', phases=disturbances(seconds + 10.0), inflight=4)
