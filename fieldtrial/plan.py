# SPDX-License-Identifier: GPL-2.0-or-later
"""The cells of a run. Pure: turns options into a list of conditions, each run once by each of its arms."""
import dataclasses
import itertools

from .base.disturbance import ENDS, LABELS as DISTURBANCES
from .base.spec import CellSpec, Condition, Setup
from .load import workloads
from .site.arms import ARMS

ALL = ('stock', 'stock-pools', 'stock-htb', 'msfrs-paper', 'msfrs')
#: Packet schedulers applied to requests; compared with other arms.
QUEUEING = ('fifo', 'drr', 'msfq')
#: The price of fairness: mean latency and shares without it.
UNFAIR = ('sjf',)
CHIEF = ('stock', 'stock-htb', 'msfrs')
#: With the field's usual remedies for queues.
FIELD = ('stock', 'stock-htb', 'stock-fq_codel', 'stock-cake', 'msfrs')
#: For a variable rate: configured with the mean, with the rate available nine tenths of the time, or with none.
VARIABLE_RATE = ('stock', 'stock-htb-least', 'msfrs', 'msfrs-least', 'msfrs-auto')
MAIN = ('stock', 'msfrs')
#: QUIC bypassing Squid, QUIC rejected, and QUIC scheduled next to Squid.
QUIC = ('stock-quic', 'msfrs', 'msfrs-edge-party')
OURS = ('msfrs',)
PAPER = ('msfrs-paper', 'msfrs')
#: Separates the cost of the patches from that of scheduling.
OFF = ('off', 'msfrs')
NEAR, FAR, NEXT_DOOR = 12 * (2.0,), 12 * (200.0,), 12 * (0.0,)

#: Users in a class by default: enough to saturate the link.
FEW_USERS, MANY_USERS, MANY_FROM_BPS = 4, 12, 6e6


def population(condition, classes):
    """{class: users}: as requested, or as the workload and the rate require."""
    if condition.counts is not None:
        return dict(zip(classes, condition.counts, strict=True))
    each = MANY_USERS if condition.rate_bps >= MANY_FROM_BPS else FEW_USERS
    return workloads.get(condition.workload)(condition.parameters).population(list(classes), each)


def cells_of(conditions, options, directory):
    """The CellSpecs in the order in which they run; `directory` is the run's, or None."""
    setup, made = Setup.of(options), []
    for condition in conditions:
        for arm in condition.arms:
            name = f'{condition.label()}-{arm}'
            made.append(CellSpec.under(
                condition, setup, name=name, directory=str(directory / name) if directory else name, arms=(arm,),
                counts=tuple(population(condition, options.weights).values()),
                rtts_ms=condition.rtts_ms or options.rtts, buffer_rtt_ms=sum(options.rtts) / len(options.rtts)))
    return made


def disturbed_s(**parameters):
    """Length of a cell of `disturbed` that holds everything that `parameters` ask for, s."""
    return workloads.get('disturbed')(parameters).whole_s()


def full():
    """The default run: the cells that the targets and the paper's tables and figures need, each by one condition and
    only with arms that its targets compare; README.md lists the omissions.

    Warm-up of a minute: the arm with HTB needs that long until Squid's read-ahead is drained and HTB's queue, not the
    ISP's, is the bottleneck. If bronze has little of the link (unequal, phases), the cell is long: 2 % of its service
    in 200 s against 24 gold users are two quanta, too few to tell a wrong share from a late object.
    """
    return [
        Condition('https-pages', (*FIELD, 'stock-pools', 'msfrs-paper'), 320, 60, buffer_bdp=4),
        Condition('https-pages', CHIEF, 320, 60, {'idle': 0}, buffer_bdp=4),
        Condition('https-backlogged', FIELD, 220, 60),
        Condition('disturbed', MAIN, disturbed_s(), 40),
        Condition('https-open', FIELD, 320, 60, {'load': 0.95}, drain_s=30),
        *bypass(),
        *few(),
        *live(),
        *quic(),
        *silent(),
        Condition('https-backlogged', MAIN, 220, 60, buffer_bdp=10),
        Condition('https-backlogged', MAIN, 180, 60, rate_bps=10e6),
        Condition('https-backlogged', OURS, 180, 60, rate_bps=10e6, buffer_bdp=10),
        Condition('disturbed', OURS, disturbed_s(), 40, rate_bps=10e6),
        Condition('browser', MAIN, 220, 60, rate_bps=4e6, drain_s=20),
        Condition('https-backlogged', MAIN, 80, 30, rate_bps=100e6, counts=(40, 40, 40)),
        Condition('https-backlogged', OURS, 80, 30, rate_bps=100e6, buffer_bdp=10, counts=(40, 40, 40)),
        Condition('https-backlogged', OURS, 460, 60, counts=(24, 4, 4)),
        *apart(),
        Condition('backlogged', (*ALL, *UNFAIR, *QUEUEING), 220, 60),
        Condition('open', (*ALL, *UNFAIR), 320, 60, {'load': 0.95}, drain_s=30),
        Condition('pages', CHIEF, 240, 60),
        Condition('pages', CHIEF, 240, 60, buffer_bdp=10),
        Condition('backlogged', MAIN, 180, 60, rate_bps=10e6),
        Condition('open', CHIEF, 320, 60, {'load': 0.85}, drain_s=30),
        Condition('unequal', OURS, 460, 60),
        Condition('excess', ('msfrs', 'msfrs-edge'), 200, 60),
        Condition('phases', PAPER, 400, 20),
        Condition('backlogged', MAIN, 220, 60, buffer_bdp=10),
        *(Condition('cbr', PAPER, 240, 80, {'share': share}) for share in (0.2, 0.4, 0.6)),
        Condition('open', (*CHIEF, *UNFAIR), 320, 60, {'load': 0.95}, buffer_bdp=10, drain_s=30),
        Condition('open', CHIEF, 220, 60, {'load': 0.95}, rate_bps=10e6, drain_s=20),
        *internet(),
    ]


def bypass():
    """Half of the users bypass Squid, by TCP and by QUIC."""
    return [Condition('bypass', MAIN, 220, 60, {'quic': quic}) for quic in (False, True)]


def few():
    """Few users with large downloads; and as many downloads as a slightly too wide window would let through."""
    return [*(Condition('few', OURS, 160, 40, {'downloads': count}) for count in (1, 2, 3)),
            Condition('few', OURS, 100, 40, {'downloads': 3, 'users': 3}, rate_bps=10e6, rtts_ms=NEAR)]


def live():
    """Delay-sensitive traffic: players next to downloads, and calls that bypass Squid."""
    return [Condition('video', MAIN, 150, 30, rate_bps=10e6), Condition('call', MAIN, 100, 30, buffer_bdp=4)]


def silent():
    """Dead, late and steady servers."""
    return [*(Condition('silent', OFF, 60, 10, parameters, rate_bps=5e6, rtts_ms=12 * (40.0,))
              for parameters in ({}, {'dead': 0, 'thinking': 30})),
            Condition('silent', OFF, 60, 10, {'dead': 0, 'beside': 0, 'streams': 10}, rate_bps=3e6)]


def quic():
    """Users of HTTP/3 next to users of TCP."""
    return [Condition('quic-backlogged', QUIC, 220, 60), Condition('quic-pages', QUIC, 220, 60, buffer_bdp=4),
            *(Condition('quic-backlogged', QUIC, 120, 40, {'flood': flood}) for flood in (0.5, 2.0))]


def internet(duration_s=40):
    """What works besides the web: by a router, with unmodified Squid, and with msfrs; on an idle link and beside
    downloads. The drain is the longest that a connection may take."""
    return [Condition('internet', ('router', *MAIN), duration_s, 0, {'downloads': downloads}, rate_bps=4e6, drain_s=10)
            for downloads in (0, 4)]


def apart():
    """Servers that are all far or all near."""
    return [Condition('https-backlogged', OURS, 180, 60, rtts_ms=FAR),
            Condition('https-backlogged', OURS, 180, 60, rate_bps=10e6, counts=(2, 2, 2), rtts_ms=NEAR)]


def today():
    """Only the targets of today's traffic, for several seeds. The longest cells come first, which packs lanes best.
    Each disturbance occurs seven times in a cell of its own: with three seeds more than twenty times. Cells that take
    all lanes (100 Mbit/s) are left out."""
    conditions = [
        Condition('https-pages', FIELD, 320, 60, buffer_bdp=4),
        Condition('https-pages', CHIEF, 320, 60, {'idle': 0}, buffer_bdp=4),
        Condition('https-open', MAIN, 320, 60, {'load': 0.95}, drain_s=30),
        *(Condition('https-backlogged', OURS, 180, 60, rate_bps=rate, buffer_bdp=buffer)
          for rate in (2e6, 10e6) for buffer in (1.5, 10)),
        Condition('https-backlogged', OURS, 460, 60, counts=(24, 4, 4)),
        *(Condition('disturbed', OURS, disturbed_s(**each), 40, each)
          for each in ({'only': kind, 'repeat': 7} for kind in DISTURBANCES if kind not in ENDS)),
        *bypass(), *few(), *apart()]
    return sorted(conditions, key=lambda each: (each.lanes, each.duration_s + each.drain_s), reverse=True)


def scale():
    """Cost of scheduling on a fast link with nearby servers, and fairness with many users. With large objects alone,
    and with those of the distribution; and where Squid decrypts TLS, so fast that each cell runs alone."""
    return [Condition('scale', OFF, 60, 20, {'size': size}, rate_bps=1e9, buffer_bdp=0.1,
                      counts=(67, 67, 66), rtts_ms=NEXT_DOOR) for size in (1_000_000, 0)] + \
        [Condition('backlogged', MAIN, 180, 60, {'inflight': 2}, rate_bps=100e6, counts=(667, 667, 666)),
         Condition('bump', ('stock', *OFF), 100, 40, rate_bps=50e6)]


def evening():
    """An hour of an evening on the link of a school, with the remedies that it would compare."""
    return [Condition('evening', ('stock', 'router-cake', 'router-sqm', 'msfrs'), 3600, 300, rate_bps=50e6, buffer_bdp=4)]


#: By --plan-name.
PLANS = {'full': full, 'today': today, 'scale': scale, 'evening': evening}


def quick(lanes):
    """One condition for each topic of base.spec.Answer, for a first look, with wide confidence
    intervals. Where fewer cells run side by side they are shorter; with one or two lanes there is no time for CAKE, and
    up to three none for `internet` on an idle link."""
    arms = ('stock', 'router-cake', 'msfrs') if lanes > 2 else MAIN
    part = min(1.0, lanes / (6 if lanes > 2 else 4.5))

    def condition(workload, arms, duration_s, **more):
        return Condition(workload, arms, round(part * duration_s), round(0.3 * part * duration_s), **more)
    return [condition('https-pages', arms, 280, buffer_bdp=4),
            condition('https-backlogged', arms, 220),
            condition('call', MAIN, 140, buffer_bdp=4),
            condition('video', MAIN, 160, rate_bps=10e6),
            *(internet(40) if lanes > 3 else internet(20)[1:])]


def chosen(options):
    """The conditions selected by the options; see cli.

    Without rates, buffers, parameters or workloads these are full() or quick(), limited to the requested arms. With any
    of these options they are every combination of their values, with the times of the plan's condition of that
    workload, or as long as the workload's parameters take. With the name of a plan, they are the matching part of the
    plan; with traces, following().
    """
    base = quick(options.lanes) if options.quick else PLANS[options.plan_name or 'full']()
    if options.traces:
        base = following(options)
    elif options.plan_name:
        base = [each for each in base if _wanted(each, options)]
    elif any(asked is not None for asked in (options.rates, options.buffers, options.workloads)) or options.parameters:
        base = list(_combined(base, options))
    conditions = []
    for condition in base:
        arms = tuple(name for name, arm in ARMS.items() if name in (options.arms or condition.arms)
                     and not (options.gateways > 1 and arm.alone))
        for seed in options.seeds:
            changes = {'arms': arms, 'seed': seed}
            if options.users is not None:
                changes['counts'] = options.users
            if options.seconds is not None:
                changes['duration_s'] = options.seconds
                changes['warmup_s'] = min(condition.warmup_s, options.seconds / 4)
            conditions.append(dataclasses.replace(condition, **changes))
    return [condition for condition in conditions if condition.arms]


def _wanted(condition, options):
    return all(asked is None or value in asked for asked, value in (
        (options.workloads, condition.workload), (options.rates, condition.rate_bps),
        (options.buffers, condition.buffer_bdp)))


def _combined(base, options):
    for name in options.workloads or dict.fromkeys(condition.workload for condition in base):
        models = [condition for condition in base if condition.workload == name]
        model = models[0] if models else Condition(name, tuple(ARMS), 260, 60, drain_s=30 if name == 'url-list' else 0)
        variants = [options.parameters[name]] if name in options.parameters else \
            list({repr(each.parameters): each.parameters for each in models}.values()) or [{}]
        for rate in options.rates or (2e6,):
            for buffer in options.buffers or (1.5,):
                for parameters in variants:
                    length = workloads.get(name)(parameters).whole_s() or model.duration_s
                    yield dataclasses.replace(model, parameters=parameters, rate_bps=rate, buffer_bdp=buffer,
                                              duration_s=length)


def schedule_seconds(cells, lanes):
    """Time that `cells`, (seconds, lanes taken) in order, need if as many run side by side as fit into `lanes`."""
    running, now = [], 0.0
    for seconds, wants in cells:
        wants = min(wants, lanes)
        while sum(each for _, each in running) + wants > lanes:
            running.sort()
            now = running.pop(0)[0]
        running.append((now + seconds, wants))
    return max((end for end, _ in running), default=0.0)


def following(options):
    """Links whose rate follows a trace: configured and estimated rates under each of them. One second of buffer at
    the servers' actual distance."""
    workload_names, rates, buffers = options.workloads or ('https-backlogged',), options.rates or (5e6,), \
        options.buffers or (6.5,)
    for trace, name, rate, buffer in itertools.product(options.traces, workload_names, rates, buffers):
        yield Condition(name, VARIABLE_RATE, 180, 40, options.parameters.get(name, {}), rate_bps=rate, buffer_bdp=buffer,
                        trace=trace)


def without(conditions, lacking):
    """The conditions without the arms of `lacking`; a stand-in replaces an arm that has one."""
    kept = []
    for condition in conditions:
        wanted = {ARMS[arm].stand_in if arm in lacking else arm for arm in condition.arms}
        kept.append(dataclasses.replace(condition, arms=tuple(arm for arm in ARMS if arm in wanted)))
    return [condition for condition in kept if condition.arms]
