# SPDX-License-Identifier: GPL-2.0-or-later
"""Text forms of figures, arms and conditions, for both the terminal and the report."""
import math
import re
from dataclasses import replace
from pathlib import PurePath

from . import stats
from .stats import StatsError

ARMS = {
    'stock': 'unmodified Squid',
    'stock-quic': 'QUIC past stock',
    'off': 'msfrs off',
    'stock-pools': 'delay pools',
    'stock-htb': 'HTB behind Squid',
    'stock-htb-least': 'HTB, told the least',
    'stock-fq_codel': 'HTB and fq_codel',
    'stock-cake': 'CAKE',
    'stock-sqm': 'SQM (msfrs-edge)',
    'router': 'router alone',
    'router-cake': 'CAKE on a router',
    'router-cake-ingress': 'CAKE, ingress',
    'router-sqm': 'SQM on a router',
    'router-fq_codel': 'HTB and fq_codel, router',
    'msfrs-paper': 'MSF-RS (paper)',
    'msfrs': 'MSF-RS',
    'msfrs-least': 'MSF-RS, told the least',
    'msfrs-auto': 'MSF-RS, rate=auto',
    'msfrs-edge': 'MSF-RS told by msfrs-edge',
    'msfrs-edge-party': 'MSF-RS and edge',
    'sjf': 'least left first',
    'fifo': 'FIFO on requests',
    'drr': 'DRR on requests',
    'msfq': 'MSFQ on requests',
}

NONE = '-'


_UNIT = re.compile(r'(?<=\d) (?=(?:%|s|ms|ns|kB|MB|BDP|[kMG]?bit/s|users|bytes|cells|conditions)(?!\w))')
NO_BREAK = '\u00a0'


def units_kept(text):
    """`text` with a space that does not break between each figure and its unit."""
    return _UNIT.sub(NO_BREAK, text)


def arm(name):
    """Title of an arm; unknown names are returned as they are."""
    return ARMS.get(name, name)


def arm_order(name):
    """Sort key: the arms in the order of ARMS, then others by name."""
    known = list(ARMS)
    return (known.index(name) if name in known else len(known), name)


def rate(bits):
    """2e6 -> '2 Mbit/s'."""
    for size, unit in ((1e9, 'Gbit/s'), (1e6, 'Mbit/s'), (1e3, 'kbit/s')):
        if bits >= size:
            return f'{bits / size:g} {unit}'
    return f'{bits:g} bit/s'


def percent(share, digits=1):
    """0.9812 -> '98.1 %'."""
    return f'{share * 100:.{digits}f} %'


def signed_percent(share, digits=1):
    """0.012 -> '+1.2 %'."""
    text = f'{share * 100:+.{digits}f}'
    return f"{text.lstrip('+-') if float(text) == 0 else text} %"


def interval(pair):
    """(0.31, 0.4) -> '31 % to 40 %'."""
    return f'{percent(pair[0], 0)} to {percent(pair[1], 0)}'


def number(value, digits=3):
    """About `digits` figures, without an exponent: 0.0412, 3.14, 451, 12300."""
    if math.isinf(value):
        return 'not reached'
    if value == 0:
        return '0'
    after = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f'{value:.{min(after, 6)}f}'


def seconds(value):
    """1.234 -> '1.23 s'; 0.0123 -> '12.3 ms'; inf -> 'not reached' (too few requests finished to tell)."""
    if math.isinf(value):
        return 'not reached'
    return f'{number(value * 1e3)} ms' if value < 0.1 else f'{number(value)} s'


def milliseconds(value):
    """12.34 -> '12.3 ms'."""
    return f'{number(value)} ms'


def per_gb(value):
    """12.34 -> '12.3 s/GB'."""
    return f'{number(value)} s/GB'


def kilobytes(value):
    """123456 -> '123 kB' (10^3 bytes)."""
    return f'{number(value / 1e3)} kB'


def ratios(values):
    """{class: ratio} -> '4.02:2.01:1'; the last one is the reference if it is 1."""
    *others, last = values.values()
    return ':'.join([*(f'{value:.2f}' for value in others), '1' if last == 1 else f'{last:.2f}'])


def spread(form, values):
    """[6.1, 7.0, 6.7] -> '6.60 (6.10 to 7.00)', the mean with the least and the greatest, unless they read alike. Of
    dictionaries the mean alone. form: a value as text."""
    mean = stats.mean_of(values)
    if isinstance(mean, dict) or not math.isfinite(mean) or form(min(values)) == form(max(values)):
        return form(mean)
    return f'{form(mean)} ({form(min(values))} to {form(max(values))})'


def plain(values):
    """{class: weight} -> '4:2:1'."""
    return ':'.join(f'{value:g}' for value in values.values())


def due_shares(values):
    """{(class, whether HTTP/3): ratio to the fair share} -> 'HTTP/3 0.98:1.02:1.00 | TCP 1.01:0.99:1.00'."""
    return ' | '.join(f'{way} ' + ':'.join(f'{value:.2f}' for (_, http3), value in values.items() if http3 == wanted)
                      for way, wanted in (('HTTP/3', True), ('TCP', False)))


def users(cell):
    """'4+4+4 users', in the order of the classes."""
    return '+'.join(str(cell.users_of(name)) for name in cell.weights) + ' users'


def setting(cell):
    """The parameters that distinguish conditions of one workload, as short text."""
    words = [rate(cell.rate_bps)]
    if cell.trace:
        words[0] += f' on average ({PurePath(cell.trace).name})'
    if cell.gateways > 1:
        words.append(f'{cell.gateways} gateways')
    parameters = cell.parameters
    if 'load' in parameters:
        words.append(f"load {parameters['load']:g}")
    if 'share' in parameters:
        words.append(f"CBR {parameters['share'] * 100:g} %")
    if 'period_s' in parameters:
        words.append(f"every {parameters['period_s']:g} s")
    if parameters.get('http2', 1) < 1:
        words.append(f"{percent(parameters['http2'], 0)} over HTTP/2")
    if 'idle' in parameters:
        words.append(f"{parameters['idle']:g} idle tunnels a user" if parameters['idle'] else 'no idle tunnels')
    if 'downloads' in parameters:
        words.append(f"{parameters['downloads']:g} {'download' if parameters['downloads'] == 1 else 'downloads'} each")
    if parameters.get('rule', 'both') != 'both':
        words.append(f"all players by {parameters['rule']}")
    if cell.direct:
        words.append(f"{len(cell.direct)} by {'QUIC' if parameters.get('quic') else 'TCP'} past it")
    if 'tcp' in parameters:
        words.append(f"{parameters['tcp']:g} of {parameters['inflight']:g} by TCP all the same")
    if parameters.get('flood'):
        words.append(f"{parameters['flood']:g} C of UDP beside")
    if parameters.get('only'):
        words.append(f"{parameters['only']} alone")
    if parameters.get('repeat', 1) > 1:
        words.append(f"{parameters['repeat']:g} times")
    if len(set(cell.rtts_ms)) == 1:
        words.append(f'servers at {cell.rtts_ms[0]:g} ms')
    words.append(f'ISP buffer {cell.buffer_bdp:g} BDP')
    if cell.repeated:
        words.append(f'seed {cell.seed}')
    return ', '.join(words)


def workload(cell):
    return cell.profile.title


def condition(cell):
    return f'{workload(cell)}: {setting(cell)}, {users(cell)}, {cell.seconds:.0f} s'


def over_seeds(cells):
    """The condition of cells that differ in the seed alone, as full text with all seeds."""
    seeds = dict.fromkeys(cell.seed for cell in cells)
    if len(seeds) == 1:
        return condition(cells[0])
    return f'{condition(replace(cells[0], repeated=False))}, means of seeds {", ".join(map(str, seeds))}'


def condition_order(cell):
    """Sort key of conditions: by workload, parameters, rate, ISP buffer."""
    parameters = sorted((key, str(value)) for key, value in cell.parameters.items())
    return (cell.profile.rank, cell.rate_bps, parameters, cell.buffer_bdp, cell.buffer_bytes, str(cell.condition()))


def attempt(measure, *arguments):
    """(value, None), or (None, reason) if it could not be measured."""
    try:
        return measure(*arguments), None
    except StatsError as error:
        return None, str(error)


def shown(form, measure, *arguments, none=NONE):
    """The result of `measure` formatted by `form`, or `none`."""
    value, _ = attempt(measure, *arguments)
    return none if value is None else form(value)
