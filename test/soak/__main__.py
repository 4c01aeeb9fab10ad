# SPDX-License-Identifier: GPL-2.0-or-later
"""The soak: the patched Squid with two workers, msfrs-edge and msfrs-share under hours of visits, with errors by users
and servers, while Squid is reconfigured, its link fails, and a worker and the daemons are killed. Prints its findings;
exit code 0 if there are none.

    sudo make soak SOAK='--minutes 60'
"""
import argparse
import contextlib
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / 'test/e2e'), str(ROOT / 'test/soak')]

import soaking  # noqa: E402 (needs the path above)
import troubles  # noqa: E402
from fieldtrial.base.stopping import by_signals  # noqa: E402
from fieldtrial.site.netns import sweep  # noqa: E402


def _within(least, most, kind=float):
    def convert(text):
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f'{text}: allowed are {least:g} to {most:g}')
        return value
    convert.__name__ = 'number'
    return convert


def parse(arguments):
    parser = argparse.ArgumentParser(prog='soak', description=__doc__.split('\n\n')[0])
    parser.add_argument('--minutes', type=_within(0.2, 10_000), default=60, help='how long visitors come (default 60)')
    parser.add_argument('--users', type=_within(3, 12_000, int), default=10_000, help='in all classes (default 10000)')
    parser.add_argument('--rate', type=_within(0.5, 1000), default=10, metavar='MBIT', help='of the link (default 10)')
    parser.add_argument('--load', type=_within(0.05, 1.5), default=0.7, help="of the link's rate (default 0.7)")
    parser.add_argument('--reconfigure', type=_within(2, 86_400), default=60, metavar='S',
                        help='every S s (default 60)')
    parser.add_argument('--falter', type=_within(10, 86_400), default=300, metavar='S',
                        help='the link does every S s (default 300)')
    parser.add_argument('--kill', type=_within(troubles.LEAST_BETWEEN_KILLS, 86_400), metavar='S',
                        help='a worker, the edge and the share daemon every S s (default 300, and twelve times in less '
                             'than an hour)')
    parser.add_argument('--party', action='store_true',
                        help='msfrs-edge is a party of the ledger, and holds what passes beside Squid to its share; '
                             'otherwise it tells Squid of it')
    parser.add_argument('--seed', type=int, default=1, help='of the visits (default 1)')
    parser.add_argument('--json', type=pathlib.Path, metavar='FILE', help='write what was found there, too')
    options = parser.parse_args(arguments)
    options.kill = options.kill or max(troubles.LEAST_BETWEEN_KILLS, min(300, 60 * options.minutes / 12))
    return options


def main():
    options = parse(sys.argv[1:])
    sweep()
    with by_signals():
        found = soaking.soak(soaking.Soak(
            seconds=60 * options.minutes, users=options.users, rate_bps=options.rate * 1e6, load=options.load,
            reconfigure_s=options.reconfigure, falter_s=options.falter, kill_s=options.kill, seed=options.seed,
            party=options.party),
            say=_say)
    if options.json:
        options.json.write_text(json.dumps(found.figures, indent=1) + '\n', encoding='utf-8')
    for line in found.lines():
        print(line)
    return 1 if found.wrong else 0


def _say(text):
    print(f'{time.strftime("%H:%M:%S")} {text}', file=sys.stderr, flush=True)


if __name__ == '__main__':
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
