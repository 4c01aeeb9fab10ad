# SPDX-License-Identifier: GPL-2.0-or-later
"""Elapsed time of `msfrsctl why` with the most users possible and a day of access.log.

The log was just written, and so is in memory. The measurement of the user's rate, which takes some seconds, is left
out.

    sudo python3 test/bench/why_times.py --squid build/install/sbin/squid --msfrsctl build/install/sbin/msfrsctl
"""
import argparse
import asyncio
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time

from idle_tunnels import lone_squid, met
from page_costs import ON, Load

from fieldtrial.base.errors import TrialError
from fieldtrial.base.paths import ROOT
from fieldtrial.site.netns import NetnsFabric, sweep
from msfrsctl import accesslog
from msfrsctl.squidconf import SquidConf
from msfrsctl.system import System

DAY_S = 86_400.0
TARGET_MS = 200.0
#: A user of the load; one of the log, with a thousandth of its lines; and one that does not exist.
LIVE, LOGGED, NOBODY = '127.1.0.1', '10.20.0.1', '10.99.99.99'
USERS_OF_LOG = 1000


def logformat():
    """That of the example squid.conf."""
    return accesslog.formats_of(SquidConf(System(), ROOT / 'conf/squid/squid.conf'))['msfrs']


def write_log(path, format, lines):
    """The lines of the last day, evenly spread, newest last."""
    draw, now = random.Random(1), time.time()
    template = accesslog.CODE.sub(lambda code: f'%({code["code"]})s' if code['code'] else '%%', format) + '\n'
    with open(path, 'w', encoding='ascii') as log:
        for number in range(lines):
            seconds, parts = divmod(now - DAY_S + DAY_S * (number + 1) / lines, 1)
            user, name = draw.randrange(USERS_OF_LOG), f'www{draw.randrange(3000)}.example.com'
            log.write(template % {
                'ts': int(seconds), 'tu': f'{parts * 1000:03.0f}'[:3], 'tr': f'{draw.randrange(9000):6d}',
                '>a': f'10.20.{user // 250}.{user % 250 + 1}', 'Ss': 'TCP_MISS', '>Hs': 200,
                '<st': draw.randrange(300, 200_000), 'rm': 'GET', 'ru': f'http://{name}/{draw.randrange(1 << 60):x}.js',
                'ssl::>sni': '-', 'un': '-', 'Sh': 'HIER_DIRECT', '<a': f'192.0.2.{draw.randrange(255)}',
                'msfrs::class': 'bronze', 'msfrs::wait': draw.randrange(900), 'msfrs::total_wait': 900,
                'msfrs::quanta': 3, 'msfrs::window': 12, 'msfrs::window_limit': '11.62', 'msfrs::refusal': '-',
                'msfrs::over_quota': '-'})


def spent_by_children():
    """Processor time of child processes, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ask(host, options, conf, name):
    """(s, s of processor time, result) of one run."""
    command = [options.msfrsctl, 'why', name, '--seconds', '0', '--json', '--squid-conf', str(conf)]
    with host.inside():
        before, began = spent_by_children(), time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        took, spent = time.perf_counter() - began, spent_by_children() - before
    found = json.loads(done.stdout or '{}')
    if not found.get('live') or not found.get('log'):
        raise TrialError(f'msfrsctl why {name}: {done.stderr.strip()} {found.get("notes")}')
    return took, spent, found


async def measure(host, options, directory):
    """({query: runs as of ask()}, bytes of the log)"""
    log, conf = pathlib.Path(directory, 'access.log'), pathlib.Path(directory, 'with-log.conf')
    format = logformat()
    conf.write_text(f'include {directory}/squid.conf\nlogformat msfrs {format}\n'
                    f'access_log stdio:{log} logformat=msfrs\n')
    async with Load(host, options.users) as load:
        await load.rest()
        log.write_bytes(b'')
        runs = {'live': [ask(host, options, conf, LIVE) for _ in range(options.runs)]}
        write_log(log, format, options.lines)
        for name in (LOGGED, NOBODY):
            runs[name] = [ask(host, options, conf, name) for _ in range(options.runs)]
    return runs, log.stat().st_size


def run(options):
    with NetnsFabric('why') as fabric:
        host = fabric.host('gw')
        with lone_squid(host, options.squid, 4096, ON) as (_, directory):
            return asyncio.run(measure(host, options, directory))


def main():
    parser = argparse.ArgumentParser(prog='why times', description=__doc__.splitlines()[0])
    parser.add_argument('--squid', required=True, metavar='FILE', help='the patched Squid')
    parser.add_argument('--msfrsctl', required=True, metavar='FILE', help='as it is installed')
    parser.add_argument('--users', type=int, default=10_000, metavar='N', help='default 10000; 60000 at most')
    parser.add_argument('--lines', type=int, default=1_000_000, metavar='N', help='of access.log (default 1000000)')
    parser.add_argument('--runs', type=int, default=10, metavar='N', help='of each (default 10)')
    options = parser.parse_args()
    if not 1 <= options.users <= 60_000 or options.lines < 1 or options.runs < 1:
        parser.error('--users must be 1 to 60000, --lines and --runs at least 1')
    if os.geteuid() or not os.access(options.squid, os.X_OK):
        print(f'why times: skipped: it takes root, and {options.squid} (squid-patches/build 7)')
        return 0
    sweep()
    found, size = run(options)
    print(f'{"users that Squid knows; lines of access.log":48} {options.users}; {options.lines:,}, {size / 1e6:.0f} MB')
    for what, title in (('live', 'what Squid says now'), (LOGGED, 'and access.log, of a user of it'),
                        (NOBODY, 'and access.log, of nobody')):
        times, spent, last = zip(*found[what])
        median, log = 1000 * statistics.median(times), last[-1]['log']
        reached = '' if what == 'live' else ' to the fifth' if log['full'] else ', the whole day' if log['whole'] else \
            f', {(time.time() - log["reached"]) / 3600:.1f} h of it'
        used, most = 1000 * statistics.median(spent), 1000 * max(times)
        figures = f'{median:.0f} ms, {used:.0f} of processor, at most {most:.0f}'
        print(f'{title + reached:48} {figures:>38}  '
              f'{met(f"< {TARGET_MS:g} ms", median < TARGET_MS)}', flush=True)
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except TrialError as error:
        sys.exit(f'why times: {error}')
