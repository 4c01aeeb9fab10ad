# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulations of the FABA paper, live: TCP next to an unresponsive flow (table 1), and TCP with unequal round-trip
times (table 2), through msfrs-edge with one AQM after another.

    sudo python3 -m edgetrial.faba [--lanes N] [--seconds S] [--full] [--aqms LIST] [--prefix DIR]

Paper: Kamra, Saran, Sen, Shorey, "Fair adaptive bandwidth allocation", Computer Networks 44 (2004), section 5. The
scenario is the paper's: 10 Mbit/s, nine TCP NewReno (here: reno with SACK) and 5 Mbit/s of UDP, packets of 512 bytes, a
bandwidth-delay product of 78 packets for each flow, buffers as fractions of 780; the AQMs' parameters are the plugins'
defaults, which are the paper's. For table 2 the paper gives neither rate nor buffer: its goodputs add up to 16 Mbit/s,
and the buffer here is one bandwidth-delay product of the mean round-trip time.
"""
import argparse
import dataclasses
import multiprocessing
import os
import signal
import sys
import time

from fieldtrial.base import stopping
from fieldtrial.base.errors import Stopped, TrialError
from fieldtrial.site.netns import sweep

from .edge_link import EdgeLink
from .iperf import Flow, running
from .wire import Wire

PACKET = 512
#: Flow and link of table 1.
RATE, CBR, FLOWS = 10e6, 5e6, 10
PRODUCT = 78                                    #: packets; of one flow
RTT_MS = PRODUCT * PACKET * 8 / RATE * 1e3
BUFFERS = {'1/10': 0.1, '1/5': 0.2, '1/2': 0.5, '1': 1.0, '2': 2.0}
SHORT = ('1/10', '1/2', '1')
#: Bandwidth of nine TCP flows as a fraction of their fair share, by buffer.
TABLE1 = {'red': (0.551, 0.564, 0.559, 0.557, 0.556), 'choke': (0.622, 0.631, 0.659, 0.685, 0.688),
          'fred': (0.814, 0.873, 0.945, 0.961, 0.962), 'sfed': (0.923, 0.975, 0.982, 0.990, 0.994),
          'faba': (0.888, 0.953, 0.975, 0.987, 0.993)}
RATE2, RTTS2_MS = 16e6, (10, 20, 50, 200)
BUFFER2 = round(RATE2 * sum(RTTS2_MS) / len(RTTS2_MS) / 8e3 / PACKET)
#: Goodput in kbit/s by round-trip time, and the fairness index.
TABLE2 = {'fred': ((3401.94, 2910.18, 3641.26, 3518.34), 0.99325),
          'faba': ((4059.04, 4109.35, 4012.97, 3605.87), 0.99743)}
AQMS = ('droptail', 'red', 'choke', 'fred', 'sfed', 'faba')

CONF = '''
link rate={rate:.0f}bit overhead=0B burst=2048B
queue number=0
limit {limit}
scheduler fifo
aqm {aqm}
flow connection
'''


@dataclasses.dataclass(frozen=True)
class Cell:
    """One AQM in one of the two scenarios. buffer: packets."""
    table: int
    aqm: str
    buffer: int
    warm_up: float
    seconds: float
    prefix: str = None      #: where msfrs-edge is installed; None: build/install


def conf(cell, rate):
    """The configuration of msfrs-edge. RED and its variants need the transmission time of a packet, by which they age
    the average while the queue is empty."""
    transmission = f' transmission={PACKET * 8 / rate * 1e9:.0f}' if cell.aqm in ('red', 'choke', 'fred') else ''
    return CONF.format(rate=rate, limit=cell.buffer, aqm=cell.aqm + transmission)


def measure(cell):
    """Runs a cell; returns the arrival rates of its flows in bit/s of whole IP packets."""
    rtts, rate = ((RTT_MS,), RATE) if cell.table == 1 else (RTTS2_MS, RATE2)
    with EdgeLink(rtts_ms=rtts, prefix=cell.prefix) as link:
        link.start_edge(conf(cell, rate))
        link.take()
        there = link.receivers[0]
        tcp = {'packet': PACKET, 'congestion': 'reno'}
        if cell.table == 1:
            flows = [Flow(link.senders[0], there, rate_bps=CBR, packet=PACKET),
                     Flow(link.senders[0], there, streams=FLOWS - 1, **tcp)]
        else:
            flows = [Flow(sender, there, **tcp) for sender in link.senders]
        with Wire(link.receivers_host, 'eth0') as wire, running(link, flows, cell.warm_up + cell.seconds + 10):
            start = time.monotonic() + cell.warm_up
            end = start + cell.seconds
            time.sleep(end - time.monotonic())
        return [wire.rate_bps(flow, start, end) for flow in flows]


def _in_order():
    """Initialises a process of the pool: a signal ends it through all clean-up handlers."""
    def end(signum, _frame):
        for each in stopping.SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + signum)

    for each in stopping.SIGNALS:
        signal.signal(each, end)


def fairness(rates):
    """Jain's index: 1 if all are equal, 1/n if one has everything."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def print_table1(results, buffers):
    """results: (aqm, buffer) to rates."""
    print(f'\nNine TCP flows beside {CBR / 1e6:g} Mbit/s of UDP on {RATE / 1e6:g} Mbit/s, packets of {PACKET} bytes, '
          f'RTT {RTT_MS:.0f} ms\nBandwidth of TCP as a fraction of its fair share, by buffer in products of all flows '
          f'({FLOWS * PRODUCT} packets); in brackets the paper (table 1).\nLast column: what the UDP flow had with the '
          'greatest buffer, in Mbit/s; its fair share is 1.\n')
    print(f'{"":10}' + ''.join(f'{name:>18}' for name in buffers) + f'{"UDP":>8}')
    names = list(BUFFERS)
    for aqm in AQMS:
        if (aqm, buffers[0]) not in results:
            continue
        row = ''
        for name in buffers:
            had = results[aqm, name][1] / (RATE * (FLOWS - 1) / FLOWS)
            paper = f'({TABLE1[aqm][names.index(name)]:.3f})' if aqm in TABLE1 else '(-)'
            row += f'{had:>9.3f} {paper:>8}'
        print(f'{aqm:10}{row}{results[aqm, buffers[-1]][0] / 1e6:8.2f}')


def print_table2(results):
    """results: aqm to rates."""
    print(f'\nFour TCP flows of unequal RTT on {RATE2 / 1e6:g} Mbit/s, packets of {PACKET} bytes, buffer {BUFFER2} '
          'packets\nRate in kbit/s by RTT, and Jain\'s fairness index; in brackets the paper (table 2).\n')
    print(f'{"":10}' + ''.join(f'{f"{rtt} ms":>15}' for rtt in RTTS2_MS) + f'{"fairness":>18}{"together":>10}')
    for aqm, rates in results.items():
        paper, index = TABLE2.get(aqm, ((None,) * 4, None))
        row = ''.join(f'{rate / 1e3:>8.0f} {f"({said:.0f})" if said else "(-)":>6}' for rate, said in zip(rates, paper))
        print(f'{aqm:10}{row}{fairness(rates):>9.4f} {f"({index:.4f})" if index else "(-)":>8}'
              f'{sum(rates) / 1e3:>10.0f}')


def judge(one, two, buffers):
    """Sentences on the paper's claims, each with whether it was confirmed."""
    def share(aqm, name):
        return one[aqm, name][1] / (RATE * (FLOWS - 1) / FLOWS)

    said = []
    if all((aqm, buffers[0]) in one for aqm in TABLE1):
        for name in buffers:
            order = [share(aqm, name) for aqm in ('red', 'choke', 'fred', 'faba')]
            said.append((order == sorted(order), f'buffer {name}: RED < CHOKe < FRED < FABA in what TCP has of its '
                         'share: ' + ' '.join(f'{value:.3f}' for value in order)))
            said.append((abs(share('faba', name) - share('sfed', name)) < 0.05, f'buffer {name}: FABA within 0.05 of '
                         f'SFED: {share("faba", name):.3f} {share("sfed", name):.3f}'))
    if ('faba', buffers[-1]) in one:
        had = one['faba', buffers[-1]][0]
        said.append((had < 1.5e6, f'FABA holds the UDP flow near its fair share of 1 Mbit/s: {had / 1e6:.2f}'))
    if 'faba' in two and 'fred' in two:
        index = {aqm: fairness(two[aqm]) for aqm in ('faba', 'fred')}
        said.append((index['faba'] >= index['fred'], 'FABA is at least as fair as FRED to unequal RTTs: '
                     f'{index["faba"]:.4f} {index["fred"]:.4f}'))
        total = {aqm: sum(two[aqm]) / 1e6 for aqm in ('faba', 'fred')}
        said.append((total['faba'] >= 0.98 * total['fred'], 'FABA carries as much as FRED, within 2 %: '
                     f'{total["faba"]:.2f} {total["fred"]:.2f} Mbit/s'))
    return said


def why_missed(one, buffers):
    """If FRED and not FABA is best: sentences on the UDP flow's share under the two FREDs."""
    names = list(BUFFERS)
    for name in buffers:
        if {('fred', name), ('faba', name)} <= one.keys() and one['fred', name][1] > one['faba', name][1]:
            paper = RATE - TABLE1['fred'][names.index(name)] * RATE * (FLOWS - 1) / FLOWS
            yield (f'buffer {name}: FRED holds the UDP flow at {one["fred", name][0] / 1e6:.2f} Mbit/s, FABA at '
                   f'{one["faba", name][0] / 1e6:.2f}; the FRED of the paper let it have {paper / 1e6:.2f}')


def _arguments(argv):
    parser = argparse.ArgumentParser(prog='edgetrial.faba', description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--lanes', type=int, choices=range(1, 9), default=min(3, os.cpu_count() or 1),
                        help='cells that run side by side (default %(default)s)')
    parser.add_argument('--seconds', type=float, default=12.0, help='measured in each cell, 2 to 600 (default 12)')
    parser.add_argument('--full', action='store_true', help='all five buffers of table 1 instead of three')
    parser.add_argument('--aqms', default=','.join(AQMS), help='which, by commas (default %(default)s)')
    parser.add_argument('--prefix', help='where msfrs-edge is installed (default build/install)')
    arguments = parser.parse_args(argv)
    arguments.aqms = arguments.aqms.split(',')
    unknown = [aqm for aqm in arguments.aqms if aqm not in AQMS]
    if unknown:
        parser.error(f'--aqms: {unknown[0]!r} is none of {", ".join(AQMS)}')
    if not 2 <= arguments.seconds <= 600:
        parser.error(f'--seconds: {arguments.seconds:g} is not from 2 to 600')
    return arguments


def main(argv=None):
    """The program; its exit code: 1 if a claim of the paper was not confirmed."""
    arguments = _arguments(argv)
    if os.geteuid():
        print('edgetrial.faba: makes network namespaces and needs root', file=sys.stderr)
        return 2
    sweep()
    buffers = list(BUFFERS) if arguments.full else list(SHORT)
    cells = {(1, aqm, name): Cell(1, aqm, round(BUFFERS[name] * FLOWS * PRODUCT), 5.0, arguments.seconds,
                                  arguments.prefix)
             for aqm in arguments.aqms for name in buffers}
    # The window of a flow with a long round-trip time grows slowly.
    cells |= {(2, aqm): Cell(2, aqm, BUFFER2, 12.0, 2 * arguments.seconds, arguments.prefix)
              for aqm in arguments.aqms}
    total = sum(cell.warm_up + cell.seconds + 1.5 for cell in cells.values()) / arguments.lanes
    print(f'{len(cells)} cells in {arguments.lanes} lanes: some {total / 60:.1f} minutes', flush=True)
    try:
        # Leaving the pool, even by a signal, sends SIGTERM to all running processes and waits for them.
        with stopping.by_signals(), multiprocessing.Pool(arguments.lanes, _in_order) as pool:
            results = dict(zip(cells, pool.map(measure, cells.values(), chunksize=1)))
    except TrialError as error:
        print(f'edgetrial.faba: {error}', file=sys.stderr)
        return 2
    except Stopped as stop:
        return 128 + stop.signum
    one = {key[1:]: rates for key, rates in results.items() if key[0] == 1}
    two = {key[1]: rates for key, rates in results.items() if key[0] == 2}
    print_table1(one, buffers)
    print_table2(two)
    print()
    claims = judge(one, two, buffers)
    for held, sentence in claims:
        print(f'{"holds " if held else "MISSED"}  {sentence}')
    for sentence in why_missed(one, buffers):
        print(f'        {sentence}')
    return 0 if all(held for held, _ in claims) else 1


if __name__ == '__main__':
    sys.exit(main())
