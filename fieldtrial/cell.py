# SPDX-License-Identifier: GPL-2.0-or-later
"""One cell of the trial: one arm, one workload, one link. Each cell is a separate process, so that cells can run side
by side and a fault in one does not affect the others.

    python3 -m fieldtrial.cell SPEC.json

Writes the records (README.md) into the directory named in the spec, next to the daemons' configurations and logs.
"""
import contextlib
import dataclasses
import json
import pathlib
import shutil
import sys
import time

from .base import stopping
from .base.errors import Stopped, TrialError
from .base.spec import CellSpec, Stat
from .load import generators, http3, internet, quic, stream, workloads
from .load.merge import write_csv
from .load.spec import Spec
from .site import arms, disturb, fabrics, link_trace, msfrs_edge, preflight, sharing, versions
from .site.meters import FoundMeter, HostMeter, LinkMeter, PastMeter, SquidMeter, WindowMeter, tcp_counters
from .site.stalls import StallMeter
from .site.world import World, certificate_helper_of


#: Fields of the spec that are passed on to the cell's world.
TOLD = ('rate_bps', 'buffer_bdp', 'buffer_rtt_ms', 'rtts_ms', 'weights', 'distance', 'delayline', 'isp', 'workers',
        'gateways')


def world_of(spec, fabric, **more):
    """The World of a cell, made of the hosts of a fabric. more: arguments of World that are not in the spec."""
    return World(fabric=fabric, users=spec.counts, **{name: getattr(spec, name) for name in TOLD}, **more)


def start_squids(world, arm, program, more=''):
    """(Daemons of an arm's Squid at each gateway of a world, daemons that let these share the link, if any). more:
    further lines of squid.conf."""
    if arm.configuration is None:
        return [], []
    squids = [there.start_squid(arm.configuration(there) + more, program) for there in world.at_gateways()]
    return squids, sharing.start(world) if arm.scheduled and len(squids) > 1 else []


def program_of(spec):
    arm = arms.get(spec.arm)
    return spec.squid if arm.scheduled or arm.patched else spec.stock_squid


def _certificate_helper(program):
    """Squid's program for certificates. Raises TrialError."""
    path = certificate_helper_of(program)
    if not path.exists():
        raise TrialError(f'{path}: not found; to decrypt TLS, Squid needs --enable-security-cert-generators=file '
                         '(squid-patches/build)')
    return path


def run(spec):
    """Runs the cell to its end. Raises TrialError with a sentence; in any case no process is left running."""
    directory = pathlib.Path(spec.directory)
    arm = arms.get(spec.arm)
    workload = workloads.get(spec.workload)(spec.parameters)
    spec = dataclasses.replace(spec, at_once=spec.at_once or workload.profile.processors)
    trace, more = None, {}
    if spec.trace:
        trace = link_trace.make(spec.trace, spec.rate_bps, spec.duration_s + spec.drain_s, spec.seed)
        spec, more = dataclasses.replace(spec, rate_bps=trace.mean_bps), {'least_bps': trace.reached_bps(0.1)}
        write_csv(directory / 'offered.csv', ('t', 'rate_bps'),
                  [(f'{at:.1f}', f'{rate:.0f}') for at, rate, _ in trace.changes()])
    program = program_of(spec)
    with fabrics.new(spec.hosts) as fabric, \
            world_of(spec, fabric, tls=spec.tls_share > 0 or workload.encrypts(),
                     certificate_helper=_certificate_helper(program) if workload.bumped else None,
                     others=internet.places() if workload.conversations else (),
                     quic=arm.quic or not (workload.http3 or workload.conversations),
                     guest=preflight.takes_guest(arm, spec.hosts),
                     **more) as world, \
            contextlib.ExitStack() as after:
        after.callback(_keep_files, spec, world, directory)
        tcp = {host: tcp_counters(host) for host in (*world.gateways, *world.farms)}   # containers keep old counts
        places = world.at_gateways()
        # Unmodified Squid would refuse HTTPS wherever its resolver differs; `internet` has that as a figure.
        same = not (arm.scheduled or workload.conversations)
        names = [daemon for there in places for daemon in there.start_names(same=same)]
        disturbances = workload.disturbances(spec.duration_s)
        browsers = workload.browsers(world.users)
        origins = world.start_origin(stalling=any(each.kind == 'stall' for each in disturbances),
                                     pages_seed=spec.seed if browsers else None,
                                     first_byte_seed=None if spec.at_once else spec.seed)
        if browsers:
            world.follow_uids(browsers)
        downloads = workload.quic_downloads(world.users, world.servers)
        if downloads:
            quic.start_servers(world)
        if workload.conversations:
            origins += internet.start_servers(world)
        if workload.quic_users(world.users):
            origins += http3.start_servers(world)
        behind = arm.prepare(world)
        squids, shares = start_squids(world, arm, program)
        if workload.conversations and arm.scheduled:
            behind = [*behind, world.start_syn()]
        for there in places:
            there.try_out(by_squid=bool(squids))
        loads = generators.Generators(world, directory)
        t0 = time.monotonic() + loads.lead_s
        with contextlib.ExitStack() as stack:
            meters = [LinkMeter(directory / 'link.csv', t0, world), SquidMeter(directory / 'squid.csv', t0, squids)]
            if workload.quic_users(world.users):
                meters.append(PastMeter(directory / 'past.csv', t0, world))
            if arm.finds:
                meters.append(FoundMeter(directory / 'found.csv', t0, world))
            if arm.scheduled:
                meters.append(WindowMeter(directory / 'window.csv', t0, world))
            for meter in meters:
                stack.enter_context(meter)
            beside = [stack.enter_context(disturb.Disturber(world, disturbances, t0))]
            if trace:
                beside.append(stack.enter_context(link_trace.Follower(world.bottleneck, trace, t0)))
            for daemon in stream.daemons(world, workload.beside(spec.rate_bps, spec.duration_s), t0):
                stack.enter_context(daemon)
            stalls = stack.enter_context(StallMeter(directory / 'stalls.csv', t0))
            clients = [stack.enter_context(client) for client in quic.downloads(world, downloads)]
            stack.enter_context(loads.started(_load_spec(spec, world, t0)))
            host = stack.enter_context(HostMeter(directory / 'host.csv', t0, {
                'squid': squids, 'servers': origins, 'load': loads.daemons}))
            daemons = *names, *squids, *shares, *origins, *behind, *meters, host, stalls, *beside, *clients
            control = _watch(spec, world, loads, daemons, t0)
        loads.merge()
        for meter in (*meters, host):
            meter.check()
        if arm.scheduled:
            (directory / 'manager.yaml').write_text(meters[-1].report)
        for edge in behind if workload.http3 else ():
            (directory / 'edge-metrics.txt').write_text(msfrs_edge.ask(edge.control, 'metrics'))
        _finish(spec, world, directory, program, control, tcp)


def _left_out(folder, names):
    """The origin's content, gigabytes of zeros that are sparse only in their original place, and what cannot be
    copied: sockets and pipes."""
    return [name for name in names
            if name == 'content' or not ((path := pathlib.Path(folder) / name).is_dir() or path.is_file())]


def _keep_files(spec, world, directory):
    """Copies configurations and logs into the cell's directory, whether it succeeded or not; the world's own is removed
    with it."""
    if spec.keep:
        shutil.copytree(world.directory, directory / 'world', dirs_exist_ok=True, ignore=_left_out)
    for pattern in ('*.log', '*.txt', '*.conf', 'caddy*.json', 'load*.json', 'squid*/squid.conf', 'squid*/*.log',
                    'squid*/squid.out', 'cbr*'):
        for path in world.directory.glob(pattern):
            # Files of the second and later gateways carry its number.
            number = path.parent.name.removeprefix('squid') if path.parent != world.directory else ''
            shutil.copyfile(path, directory / (f'gw{number}-{path.name}' if number else path.name))


def _load_spec(spec, world, t0):
    """The Spec that all load generators share."""
    def kept(number, user):
        return dataclasses.replace(user, v4=None) if spec.six_every and number % spec.six_every == 0 else user

    return Spec(**vars(spec), t0_monotonic=t0, tls_ca=str(world.authorities()) if world.tls else None,
                servers=tuple(world.servers),
                users=tuple(kept(number, user) for number, user in enumerate(world.users, start=1)))


def _watch(spec, world, loads, daemons, t0):
    """Waits for the load generators to end while everything else runs; returns the congestion controls seen
    meanwhile."""
    seen, look_at = {}, t0 + spec.duration_s / 2
    give_up = t0 + spec.duration_s + spec.drain_s + 60.0
    while not loads.wait(1.0):
        world.check()
        for daemon in daemons:
            daemon.check()
        if time.monotonic() > look_at:
            look_at = float('inf')
            seen = {host.role: sorted(world.congestion_control(host))
                    for host in (*world.groups, *world.gateways, *world.farms)}
            others = {role: names for role, names in seen.items() if set(names) - {'cubic'}}
            if others:
                raise TrialError(f'congestion control must be cubic everywhere, and is {others}')
        if time.monotonic() > give_up:
            raise TrialError(f'the load has not ended 60 s after its time; {loads.last_words()}')
    return seen


def _squid_conf(world):
    path = world.squid_directory() / 'squid.conf'
    return path.read_text() if path.exists() else 'no Squid\n'


def _finish(spec, world, directory, program, control, tcp):
    workload = workloads.get(spec.workload)(spec.parameters)
    stat = Stat(
        arm=spec.arm, workload=spec.workload, parameters=workload.values, profile=workload.profile,
        rate_bps=spec.rate_bps, weights=spec.weights, users={user.name: user.cls for user in world.users},
        t_start=spec.warmup_s, t_stop=spec.duration_s, rtts_ms=spec.rtts_ms, buffer_bdp=spec.buffer_bdp,
        buffer_bytes=world.buffer_bytes, seed=spec.seed, versions=versions.of_world(world, program),
        squid_conf=_squid_conf(world), squid_is_stock=program != spec.squid,
        trace=spec.trace, gateways=spec.gateways, at_once=spec.at_once)
    (directory / 'stat.json').write_text(json.dumps(dataclasses.asdict(stat) | {
        'groups': {host.role: [user.name for user in users] for host, users in world.groups.items()},
        'squid_program': str(program), 'distance': world.distance.name, 'bottleneck': world.bottleneck.name,
        'congestion_control': control,
        'tcp': {host.role: tcp_counters(host, before) for host, before in tcp.items()}}, indent=1) + '\n')


def main(argv):
    """The program; exit codes: 0 done, 1 fault (reported on standard error), 128 + n stopped by signal n."""
    try:
        with stopping.by_signals():
            run(CellSpec.read(argv[0]))
    except TrialError as error:
        print(error, file=sys.stderr)
        return 1
    except Stopped as stop:
        return 128 + stop.signum
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
