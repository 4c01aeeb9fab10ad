# SPDX-License-Identifier: GPL-2.0-or-later
"""What msfrs-edge costs a gateway, as ratios within one run, each beside its target: `make bench`, as root.

Packet rates are per second of processor time that the gateway's forwarding and msfrs-edge use together: the rate at
which one otherwise idle core would forward. It is the same on a machine that is busy with other tasks.
"""
import argparse
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))

from fieldtrial.base.errors import TrialError  # noqa: E402 (needs the path above)
from fieldtrial.site.netns import sweep  # noqa: E402

import bench_site  # noqa: E402
import measures  # noqa: E402

SIZES = (64, 1400)
RATES_BPS = {'1 Mbit/s': 10**6, '10 Mbit/s': 10**7, '100 Mbit/s': 10**8, '1 Gbit/s': 10**9}
MOST_S, LEAST_S = 6.0, 1.5      # how long a rate is measured, so that single packets do not matter


FULL = '  classify, police, mark, FABA, DRR'


class Table:
    """Prints rows as they arrive, and counts missed targets."""

    def __init__(self):
        self.missed = []
        self._print('', 'figure', 'target', '')

    @staticmethod
    def _print(what, figure, target, said):
        print(f'{what:46} {figure:>34}  {target:12} {said}'.rstrip(), flush=True)

    def row(self, what, figure, target='', met=None):
        self._print(what, figure, target, '' if met is None else 'met' if met else 'MISSED')
        if met is False:
            self.missed.append(what)


def forwarding(table, site, arms, rounds, joined):
    """Packets a second of a core; returns the full arm's rates by size."""
    capacity = {}
    for size in SIZES:
        found = measures.forwarding(site, arms, size, rounds)
        plain, bare, full = (found[name] for name in ('plain', 'bare', 'full'))
        table.row(f'{size} bytes, {"joined on receipt (GRO)" if joined else "one by one"}: plain',
                  f'{plain:,.0f} packets/s of a core')
        table.row('  NFQUEUE and back, nothing done', f'{bare:,.0f}, ratio {bare / plain:.2f}')
        table.row(FULL, f'{full:,.0f}, ratio {full / plain:.2f}', '>= 0.50', full / plain >= 0.5)
        capacity[size] = full
    return capacity


def tcp(table, site, arms, rounds):
    found = measures.tcp_rate(site, arms, rounds)
    (plain, _), (full, _) = found['plain'], found['full']
    table.row('TCP with segmentation offload: plain', f'{plain / 1e9:.1f} Gbit/s')
    ratio = found['full'][1] / found['plain'][1]
    table.row(FULL, f'{full / 1e9:.1f} Gbit/s, ratio {ratio:.2f} of a core', '>= 1 Gbit/s', full >= 1e9)


def latency(table, site, arms, load, busy):
    """Time of a packet in the gateway, beside that with the kernel's own scheduler in the same run."""
    beside = 'beside busy programs' if busy else 'on a machine at rest'
    for name, title in (('plain', f'{load:,.0f} packets/s {beside}: plain'), ('htb', '  HTB'), ('full', FULL),
                        ('late', '  the same with realtime=off')):
        spent = measures.latencies(site, getattr(arms, name)(), load, busy)
        p50, p99, p999 = (1e6 * spent[int(quantile * len(spent))] for quantile in (0.5, 0.99, 0.999))
        if name == 'htb':
            htb = p99
        met = {'target': '< 1 ms over HTB', 'met': p99 - htb < 1000} if name == 'full' else {}
        table.row(title, f'p50 {p50:.0f} us, p99 {p99:.0f}, p99.9 {p999:.0f}', **met)


def pacing(table, site, arms):
    for name, rate in RATES_BPS.items():
        ratio = measures.pacing(site, arms, rate, min(MOST_S, max(LEAST_S, 2e7 / rate)))
        table.row(f'pacer at {name}', f'{ratio:.4f} of it', '0.99 to 1.01', abs(ratio - 1) <= 0.01)


def main():
    parser = argparse.ArgumentParser(prog='edge bench', description=__doc__.splitlines()[0])
    parser.add_argument('--build', required=True, metavar='DIR', help='where msfrs-edge was built')
    parser.add_argument('--rounds', type=int, default=3, metavar='N', help='repetitions; medians count (default 3)')
    options = parser.parse_args()
    if os.geteuid():
        print('edge bench: skipped: it makes network namespaces, which takes root')
        return 0
    sweep()
    command = [f'{options.build}/msfrs-edge', '--plugins', f'{options.build}/.libs']
    table = Table()
    with tempfile.TemporaryDirectory() as directory, bench_site.site() as site:
        os.chmod(directory, 0o755)      # msfrs-edge reads its configuration as nobody, too
        arms = measures.Arms(site, command, directory)
        capacity = forwarding(table, site, arms, options.rounds, joined=False)
        with site.joined(udp=True):
            forwarding(table, site, arms, options.rounds, joined=True)
        tcp(table, site, arms, options.rounds)
        for busy in (False, True):
            latency(table, site, arms, capacity[1400] / 2, busy)
        pacing(table, site, arms)
    if table.missed:
        print(f'\n{len(table.missed)} of the targets are missed.')
    if FULL in table.missed:
        print('"Nothing done" is what the kernel takes to hand every packet to a program and to take it back. Where\n'
              'that is below the target, no program can reach it; packets that the kernel has joined share it.')
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except TrialError as error:
        sys.exit(f'edge bench: {error}')
