# SPDX-License-Identifier: GPL-2.0-or-later
"""The trial from options to verdict; see options for the command line."""
import os
import sys

from . import bench, plan
from .base import stopping
from .base.errors import Stopped, TrialError
from .load import http3, quic, workloads
from .load.traffic import devtools
from .options import read
from .runner import Runner, meta_of, minutes, new_directory
from .site import fabrics, netns, preflight
from .site.arms import ARMS

QUICK_S = 560.0     #: time --quick may spend on its cells; the report takes the rest of the ten minutes


def seconds_of(cells, lanes):
    """Approximate time that the cells take, s."""
    return plan.schedule_seconds([(spec.wanted_s, spec.lanes) for spec in cells], lanes)


def fitting(conditions, options, limit):
    """The conditions, in order, that fit into `limit` seconds, and those that do not."""
    kept, dropped = [], []
    for condition in conditions:
        fits = seconds_of(plan.cells_of([*kept, condition], options, None), options.lanes) <= limit
        (kept if fits else dropped).append(condition)
    return kept, dropped


def runnable(conditions, hosts):
    """(the conditions with the arms that this kernel can run, sentences on the others). Raises TrialError if none are
    left."""
    wanted = {arm for condition in conditions for arm in condition.arms}
    lacking = preflight.lacking([arm for arm in ARMS.values() if arm.name in wanted], hosts)
    said = [f'arm {name}: not run, {why}' + (f'; {ARMS[name].stand_in} stands for it' if ARMS[name].stand_in else '')
            for name, why in lacking.items()]
    kept = plan.without(conditions, lacking)
    if not kept:
        raise TrialError('\n'.join(said))
    for line in said:
        print(line)
    return kept, said


def possible(conditions, hosts):
    """The conditions that can be run on such hosts; reports each one that cannot."""
    kept = list(conditions)
    for what, needs, missing in (
            ('users past Squid by QUIC', lambda workload: workload.values.get('quic'), quic.missing),
            ('users of HTTP/3', lambda workload: workload.http3, http3.missing),
            ('other protocols', lambda workload: workload.conversations, lambda: ''),
            ('users with a browser', lambda workload: workload.values.get('browsers'), devtools.missing)):
        without = [each for each in kept if not needs(workloads.get(each.workload)(each.parameters))]
        why = missing() if hosts == fabrics.NAMES[0] else 'the containers have no programs for it'
        if why and len(without) < len(kept):
            print(f'{what} are left out: {why}')
            kept = without
    return kept


def _show(cells, options):
    print(f'{len(cells)} cells, about {minutes(seconds_of(cells, options.lanes))} with {options.lanes} lanes')
    for spec in cells:
        users = ', '.join(f'{count} {name}' for name, count in zip(spec.weights, spec.counts))
        print(f'  {spec.name:52} {spec.duration_s:4.0f} s + {spec.drain_s:2.0f} s, {spec.lanes} lane(s); users: {users}')


def _conditions(options):
    conditions = plan.chosen(options)
    if not conditions or not any(condition.arms for condition in conditions):
        raise TrialError('the options leave nothing to run: see ./trial --plan')
    for condition in conditions:
        workload = workloads.get(condition.workload)(condition.parameters)
        workload.check()
        disturbances = workload.disturbances(condition.duration_s)     # refused if none fits
        if condition.trace and any(each.kind == 'rate' for each in disturbances):
            raise TrialError(f'workload {condition.workload}: the rate follows {condition.trace}; leave the '
                             f'disturbance out with --set {condition.workload}.rate_s=0')
        if options.gateways == 1 and any(each.kind == 'store' for each in disturbances):
            raise TrialError(f'workload {condition.workload}: one gateway has no store that could stop; leave that out '
                             f'with --set {condition.workload}.store_s=0, or take --gateways 2')
        if options.isp == 'edge' and any(each.kind == 'rate' for each in disturbances):
            raise TrialError(f'workload {condition.workload}: the rate of --isp edge cannot be changed under way; leave '
                             f'that out with --set {condition.workload}.rate_s=0, or take --isp tbf')
    if options.quick and options.seconds is None:
        conditions, dropped = fitting(conditions, options, QUICK_S)
        for condition in dropped:
            print(f'left out, since ten minutes are too short for it with {options.lanes} lanes: {condition.label()}')
    return conditions


def _run(options, argv):
    for name in netns.sweep():
        print(f'removed a leftover of an earlier run: {name}')
    preflight.check(options)
    conditions, not_run = runnable(_conditions(options), options.hosts)
    conditions = possible(conditions, options.hosts)
    if not conditions:
        raise TrialError('nothing of what was asked for can be run here')
    directory = new_directory(options.out)
    cells = plan.cells_of(conditions, options, directory)
    print(f'{len(cells)} cells, about {minutes(seconds_of(cells, options.lanes))}; results in {directory}')
    if options.stock_squid == options.squid:
        why = 'with --quick' if options.quick else 'there is no unpatched Squid of this series:'
        print(f'{why} the stock arms run the patched one with msfrs off')
    runner = Runner(cells, directory, options.lanes, meta_of(options, argv, conditions, not_run))
    stopped = None
    try:
        runner.run()
    except Stopped as stop:   # a second signal is ignored, so the report is written to its end
        stopped = stop
        print(f'stopped by signal {stop.signum}; everything is taken down, {len(runner.done)} cells were complete')
    if runner.done:
        bench.measure(directory)    # after all traffic has ended
        from .report.build import write_report   # imports numpy: only after the check that it is installed
        summary = write_report(str(directory), out=sys.stdout)
    if stopped:
        return 128 + stopped.signum
    for name in runner.failed:
        print(f'this cell failed, see above: {name}')
    return 1 if runner.failed else summary.exit_status(options.strict)


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = read(argv)
    try:
        with stopping.by_signals():
            if options.plan:
                _show(plan.cells_of(_conditions(options), options, None), options)
                return 0
            return _run(options, argv)
    except Stopped as stop:
        return 128 + stop.signum
    except TrialError as error:
        print(f'trial: {error}', file=sys.stderr)
        return 1
    except BrokenPipeError:   # `./trial --plan | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
