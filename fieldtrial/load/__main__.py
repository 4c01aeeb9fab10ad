# SPDX-License-Identifier: GPL-2.0-or-later
"""The load generator: makes the requests of a run's users, from their own addresses, and records each of them.

    python3 -m fieldtrial.load SPEC.json

runs in the users' network. SPEC.json lists the users and servers and names the workload (spec.py). If users are in
several networks, each network has its own generator. All of them draw the same load from the seed; `mine` in the spec
lists the users whose part this generator plays, and merge.py combines the records.
It writes requests.csv, pages.csv, bytes.csv (traffic/records.py) and meta.json, which has t0 on CLOCK_MONOTONIC.
SIGTERM and SIGINT end a run early; requests in flight are then unfinished.
"""
import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import resource
import signal
import sys
import time

from ..base.errors import TrialError
from .spec import Spec
from .traffic import client, offers, records, run as running

#: Interval between rows of bytes.csv.
SAMPLE_S = 0.5
FARTHEST_START_S = 60.0
#: Files and sockets: the most requests in flight, as many kept-open connections, and a margin.
FILES_WANTED = 2 * running.MOST_IN_FLIGHT + 200


def main(path):
    """The program; its exit code: 0 done or stopped, 2 spec refused."""
    try:
        spec = Spec.read(path)
        _want_files()
        asyncio.run(_run(spec))
    except TrialError as error:
        print(f'loadgen: {error}', file=sys.stderr)
        return 2
    return 0


def _want_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FILES_WANTED:
        if hard != resource.RLIM_INFINITY and hard < FILES_WANTED:
            raise TrialError(f'only {hard} open files are allowed, {FILES_WANTED} are wanted (ulimit -n)')
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_WANTED, hard))


async def _run(spec):
    loop = asyncio.get_running_loop()
    clients = client.Clients(spec)
    drawn = offers.Offers(spec, clients.reachable)
    offered = spec.model.prepare(drawn)
    t0 = _start(spec, loop)
    recorder = records.Records(spec.out, spec.mine)
    run = running.Run(drawn, clients, recorder, loop, t0)
    meta = {'spec': spec.said(), 't0_monotonic': t0, 't0_unix': time.time() + t0 - loop.time(),
            'offered': offered, 'phases': [dataclasses.asdict(phase) for phase in spec.model.phases(spec)],
            'direct': [user.name for user in spec.model.direct(spec.users)],
            'http3': [user.name for user in spec.model.quic_users(spec.users)]}
    try:
        meta['stopped'] = await _until_done(run)
        meta['t_end'] = run.now()
    finally:
        await run.close()
        await clients.close()
        recorder.close()
    _write_meta(spec.out, meta | _totals(run))
    _say(run)


def _start(spec, loop):
    if not spec.t0_monotonic:
        return loop.time()
    ahead = spec.t0_monotonic - loop.time()
    if ahead < 0:
        raise TrialError(f't0_monotonic: {spec.t0_monotonic:g} was {-ahead:.1f} s ago when this load generator was '
                         f'ready; allowed is a time to come: repeat the cell on a less busy machine')
    if ahead > FARTHEST_START_S:
        raise TrialError(f't0_monotonic: {spec.t0_monotonic:g} is {ahead:.1f} s ahead of now, allowed is 0 to '
                         f'{FARTHEST_START_S:g} s')
    return spec.t0_monotonic


async def _until_done(run):
    """Runs the workload until it ends, time is up, or a signal arrives; returns the signal's name or None."""
    loop, stop = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, lambda name=signum.name: stop.done() or stop.set_result(name))
    await asyncio.wait([stop], timeout=max(0.0, -run.now()))
    work = asyncio.create_task(run.spec.model.run(run))
    sampling = asyncio.create_task(_sample(run))
    latest = run.spec.duration_s + run.spec.drain_s - run.now()
    await asyncio.wait([work, stop], timeout=latest, return_when=asyncio.FIRST_COMPLETED)
    for task in (sampling, work):
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    run.records.sample(run.now())
    return stop.result() if stop.done() else None


async def _sample(run):
    for number in itertools.count():
        await run.sleep_until(number * SAMPLE_S)
        run.records.sample(run.now())


def _say(run):
    counts = run.records.outcomes
    failed = ''.join(f', {counts[name]} {name}' for name in ('refused', 'error', 'unfinished') if counts[name])
    pages = f', {run.records.pages["ok"]} pages' if run.records.pages else ''
    print(f'loadgen: {run.now():6.0f} s  {counts["ok"]} done{pages}{failed}, {run.in_flight} in flight',
          file=sys.stderr, flush=True)


def _totals(run):
    used, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {'requests': dict(run.records.outcomes), 'pages': dict(run.records.pages),
            'payload_bytes': dict(run.records.by_class()), 'most_in_flight': run.most_in_flight,
            'errors': dict(run.errors), 'cpu_s': round(sum(each.ru_utime + each.ru_stime for each in (used, ended)), 3),
            'memory_kb': used.ru_maxrss, 'tunnels': dict(run.tunnels),
            'quic': dict(run.quic)}


def _write_meta(directory, meta):
    with open(os.path.join(directory, 'meta.json'), 'w', encoding='utf-8') as file:
        json.dump(meta, file, indent=1)
        file.write('\n')


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
