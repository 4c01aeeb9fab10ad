# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps the trial's small internet up, with one arm at its gateway, until it is stopped; the load comes from elsewhere.

    python3 -m fieldtrial.live [--parent] [--locust MASTER] [OPTION...]

OPTIONs are those of ./trial; the first arm, rate and buffer are used. With --parent the gateway uses a cache at the
provider, see parent. With --locust each group of users runs a worker of Locust, whose master is on the host MASTER
(docker/locustfile.py). Users are distributed so that every group has all classes, since a master requests a user of any
class from any of its workers.

Once everything answers, live.json in the agents' directory lists the users and servers for the load generator; it is
removed with the world. Exit codes: 0 stopped by a signal, 1 a fault (one sentence), 2 a wrong option.
"""
import argparse
import contextlib
import json
import os
import pathlib
import sys
import time

from . import cell, options, plan
from .base import stopping
from .base.errors import Stopped, TrialError
from .base.paths import ROOT
from .base.spec import Condition
from .site import agent, arms, fabrics, groups, parent, preflight

#: Read by the load generator: the users and servers.
STATE = pathlib.Path(agent.DIRECTORY) / 'live.json'
RATE_BPS, BUFFER_BDP, ARM = 2e6, 1.5, 'msfrs'
LOCUSTFILE = 'docker/locustfile.py'


def state_of(world, arm):
    return {'version': 1, 'arm': arm.name, 'rate_bps': world.rate_bps, 'weights': world.weights,
            'groups': [host.role for host in world.groups],
            'users': [{'name': user.name, 'class': user.cls, 'group': host.role, 'v4': user.v4, 'v6': user.v6}
                      for host, users in world.groups.items() for user in users],
            'servers': [{'name': server.name, 'group': server.group, 'rtt_ms': server.rtt_ms, 'v4': server.v4,
                         'v6': server.v6} for server in world.servers]}


@contextlib.contextmanager
def _announced(state):
    new = STATE.with_suffix('.new')
    new.write_text(json.dumps(state, indent=1) + '\n')
    os.replace(new, STATE)
    try:
        yield
    finally:
        STATE.unlink(missing_ok=True)


def start_workers(world, master):
    return [world.start(host, ['env', f'MSFRS_GROUP={host.role}', '/usr/bin/python3', '-m', 'locust', '-f', LOCUSTFILE,
                               '--worker', '--master-host', master], f'locust-{host.role}.log', cwd=ROOT,
                        command=f'Locust of {host.role}') for host in world.groups]


def run(chosen, with_parent=False, locust=None):
    """Runs until a signal (Stopped) or a fault (TrialError)."""
    STATE.unlink(missing_ok=True)   # left by a killed process
    preflight.check(chosen)
    condition = Condition('backlogged', (chosen.arms or (ARM,))[:1], 0, 0, rate_bps=(chosen.rates or (RATE_BPS,))[0],
                          buffer_bdp=(chosen.buffers or (BUFFER_BDP,))[0], counts=chosen.users)
    spec, = plan.cells_of([condition], chosen, None)
    arm = arms.get(spec.arm)
    with fabrics.new(chosen.hosts) as fabric, cell.world_of(spec, fabric, deal=groups.evenly) as world:
        places = world.at_gateways()
        # As in cell.py; and what Squid cannot verify does not go to a parent.
        same = with_parent or not arm.scheduled
        daemons = [*(daemon for there in places for daemon in there.start_names(same=same)),
                   *world.start_origin(), *arm.prepare(world)]
        if with_parent:
            daemons += parent.start(world, fabric, chosen.stock_squid)
        squids, shares = cell.start_squids(world, arm, cell.program_of(spec), parent.DIRECTIVES if with_parent else '')
        daemons += squids + shares
        for there in places:
            there.try_out()
        with _announced(state_of(world, arm)):
            if locust:
                daemons += start_workers(world, locust)
            print(f'live: {arm.title}; {len(world.users)} users, {len(world.servers)} servers, '
                  f'{spec.rate_bps / 1e6:g} Mbit/s; until stopped', flush=True)
            while True:
                time.sleep(1.0)
                world.check()
                for daemon in daemons:
                    daemon.check()


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument('--parent', action='store_true')
    own.add_argument('--locust', metavar='MASTER')
    mine, others = own.parse_known_args(argv)
    chosen = options.read(others)
    try:
        with stopping.by_signals():
            run(chosen, mine.parent, mine.locust)
    except TrialError as error:
        print(f'live: {error}', file=sys.stderr)
        return 1
    except Stopped:
        print('live: stopped, and everything taken down')
    return 0


if __name__ == '__main__':
    sys.exit(main())
