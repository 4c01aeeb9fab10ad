# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of the trial. An invalid value is refused with a message that states the value and what is
allowed."""
import argparse
import os
import pathlib
import textwrap

from .base.errors import TrialError
from .base.paths import ROOT
from .load import workloads
from .load.traffic import sizes
from .plan import PLANS
from .site import addresses, bottleneck, fabrics, link_trace
from .site.arms import ARMS
from .site.world import DEFAULT_RTTS, DEFAULT_WEIGHTS

#: Of Squid, as squid-patches/build takes them. The first is installed in build/install, another in build/install-N.
SERIES = ('7', '6')

EPILOG = '''\
arms:
{arms}

workloads, with the parameters that --set takes:
{workloads}

Without --rates, --buffers, --workloads and --set the plan is the one the project's targets are judged by; with any of
them it is every combination of what they say. `./trial --plan` shows what would be run, and for how long.

exit status: 0 the trial ran; 1 it could not be run, or a cell of it failed; 2 a wrong option; 128 + n stopped by signal
n. With --strict also: 3 some target is missed; 4 nothing could be judged; 5 none is missed, but the machine was too
busy to judge some.
'''


def _number(what, low, high, kind=float, several=False):
    """A reader of one number, or of `several` separated by commas, as a tuple."""
    def read(text):
        try:
            values = tuple(map(kind, text.split(',') if several else [text]))
        except ValueError:
            values = ()
        if not values or not all(low <= value <= high for value in values):
            allowed = f'each {low:g} to {high:g}, with commas between' if several else f'{low:g} to {high:g}'
            raise argparse.ArgumentTypeError(f'{text!r}: expected {what}, {allowed}')
        return values if several else values[0]
    return read


def _numbers(what, low, high, kind=float):
    return _number(what, low, high, kind, several=True)


def _names(known):
    def read(text):
        names = tuple(text.split(','))
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f'{name!r} is unknown; there are {", ".join(known)}')
        return tuple(dict.fromkeys(names))
    return read


def _weights(text):
    weights = {}
    for word in text.split(','):
        name, _, value = word.partition('=')
        try:
            weights[name] = float(value)
        except ValueError:
            weights[name] = 0.0
        if not (name.isalnum() and name.islower() and 0 < weights[name] <= 10000):
            raise argparse.ArgumentTypeError(f'{word!r}: expected NAME=WEIGHT, the name in small letters and digits, '
                                             'the weight above 0 and at most 10000')
    if len(weights) > 7 or len(weights) != len(text.split(',')):
        raise argparse.ArgumentTypeError(f'{text!r}: expected 1 to 7 classes, each once')
    return weights


def _sizes(text):
    try:
        sizes.read(text, 0)
    except TrialError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _traces(text):
    for name in text.split(','):
        if name not in link_trace.NAMES and not os.path.isfile(name):
            raise argparse.ArgumentTypeError(f'{name!r} is no file, and none of {", ".join(link_trace.NAMES)}')
    return tuple(name if name in link_trace.NAMES else os.path.abspath(name)
                 for name in dict.fromkeys(text.split(',')))


def _parameter(text):
    name, _, value = text.partition('=')
    workload, dot, parameter = name.partition('.')
    if not dot or not value or workload not in workloads.names():
        raise argparse.ArgumentTypeError(f'{text!r}: expected WORKLOAD.PARAMETER=VALUE, for example open.load=0.9')
    try:
        checked = workloads.get(workload)({parameter: value})
    except TrialError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return workload, parameter, checked.values[parameter]


def parser():
    made = argparse.ArgumentParser(
        prog='./trial', formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        description='Runs the field trial: real users\' requests through real Squids over a slow link, all in network '
                    'namespaces of\nits own, and judges what they got. Needs root. Builds what is missing first.',
        epilog=EPILOG.format(
            arms='\n'.join(f'  {arm.name:20}{arm.title}' for arm in ARMS.values()),
            workloads='\n'.join(f'  {name:18}{workloads.get(name).summary}\n' + '\n'.join(
                textwrap.indent(parameter.describe(), '      ') for parameter in workloads.get(name).parameters)
                for name in workloads.names())))
    what = made.add_argument_group('what is run')
    what.add_argument('--quick', action='store_true', help='a first look, within ten minutes after the build')
    what.add_argument('--plan-name', choices=PLANS, help='full: all targets; today: the targets for today\'s traffic, '
                      'for several seeds. --workloads, --rates and --buffers then take from it what they name')
    what.add_argument('--evening', action='store_const', const='evening', dest='plan_name',
                      help='300 users of a school at 50 Mbit/s, an hour for each of four arms: unmodified Squid, CAKE '
                      'and SQM on a router, msfrs. That takes four hours; with --seconds 600 it takes 41 minutes')
    what.add_argument('--plan', action='store_true', help='print the plan, and end')
    what.add_argument('--arms', type=_names(list(ARMS)), metavar='ARM,...', help='only these (default: the plan\'s)')
    what.add_argument('--workloads', type=_names(workloads.names()), metavar='NAME,...', help='only these')
    what.add_argument('--set', type=_parameter, action='append', default=[], dest='assignments',
                      metavar='WORKLOAD.PARAMETER=VALUE', help='a parameter of a workload; may be given again')
    what.add_argument('--seconds', type=_number('a number of seconds', 20, 86400), metavar='S',
                      help='length of each cell, a quarter of it at most warm-up (default: the plan\'s, 60 to 460)')
    what.add_argument('--seed', type=_numbers('whole numbers', 0, 2**31, int), default=(1,), dest='seeds',
                      metavar='N,...',
                      help='seed of the offered load, the same for all arms; several repeat all cells (default 1)')
    link = made.add_argument_group('the small internet')
    link.add_argument('--rates', type=_numbers('rates in Mbit/s', 0.1, 1000), metavar='MBIT,...',
                      help='the downlink\'s capacity C (default: the plan\'s, 2 and 10)')
    link.add_argument('--buffers', type=_numbers('buffers in bandwidth-delay products', 0.1, 100), metavar='BDP,...',
                      help='the ISP\'s queue, of C times the mean RTT (default: the plan\'s, 1.5 and 10)')
    link.add_argument('--rtts', type=_numbers('round-trip times in ms', 0.1, 5000), default=DEFAULT_RTTS,
                      metavar='MS,...', help='one server for each (default: twelve, evenly from 12 to 296, mean 154)')
    link.add_argument('--weights', type=_weights, default=DEFAULT_WEIGHTS, metavar='CLASS=WEIGHT,...',
                      help='the classes, highest first (default gold=4,silver=2,bronze=1)')
    link.add_argument('--users', type=_numbers('numbers of users', 1, 1000, int), metavar='N,...',
                      help='users in each class (default: 4, from 6 Mbit/s on 12; unequal has 24 in the first)')
    link.add_argument('--sizes', type=_sizes, metavar='DISTRIBUTION',
                      help='of the responses: lognormal:M:S[:MAX] or fixed:BYTES (default lognormal:9.357:1.318, cut '
                           'at 8 s of C)')
    link.add_argument('--at-once', action='store_true', help='servers begin to respond at once, and all requests are '
                      'answered (default: after 60 ms in the median, lognormal with sigma 1.2; and for 1 %% of the '
                      'requests another is made that is never answered)')
    link.add_argument('--ipv6-every', type=_number('a whole number', 0, 1000, int), default=4, dest='six_every',
                      metavar='N',
                      help='every Nth user has IPv6 only; 0: none (default 4)')
    link.add_argument('--tls-share', type=_number('a share', 0, 1), default=0.0,
                      metavar='SHARE',
                      help='of the requests, made with TLS; Squid splices it (default 0, as in the paper)')
    link.add_argument('--delay', dest='distance', choices=('auto', 'netem', 'delayline'), default='auto',
                      help='source of the delay; auto: netem if the kernel has it, otherwise the delay line')
    link.add_argument('--isp', choices=bottleneck.NAMES, default=bottleneck.NAMES[0],
                      help='shaper of the link: the kernel\'s token bucket, or msfrs-edge (default tbf)')
    link.add_argument('--link-trace', type=_traces, default=(), dest='traces', metavar='NAME,...',
                      help='the downlink\'s capacity varies, around --rates (default 5): steps, wave, lte, leo as '
                           'src/sim/access/trace.h has them, or a file of Mahimahi\'s as it is')
    how = made.add_argument_group('how')
    how.add_argument('--squid-series', choices=SERIES, default=SERIES[0],
                     help=f'Squid to build and run (default {SERIES[0]})')
    how.add_argument('--squid', metavar='FILE', help='the patched Squid (default: as built)')
    how.add_argument('--stock-squid', metavar='FILE', help='the unpatched one (default: as built; with '
                     '--quick, and if there is none, the patched one with msfrs off, and the report says so)')
    how.add_argument('--workers', type=_number('a whole number', 1, 32, int), default=1, metavar='N',
                     help='workers of every Squid (default 1)')
    how.add_argument('--gateways', type=_number('a whole number', 1, addresses.MOST_GATEWAYS, int), default=1,
                     metavar='N', help='gateways on the link, each with a Squid and some of the users; by '
                     'msfrs-share and a Redis or Valkey they share it, where they schedule (default 1)')
    how.add_argument('--lanes', type=_number('a whole number', 1, 64, int), metavar='N',
                     help='concurrent 2 Mbit/s cells; a 10 Mbit/s cell counts as two (default: three for each '
                          'processor)')
    how.add_argument('--hosts', choices=fabrics.NAMES, default=fabrics.NAMES[0],
                     help='hosts of users, gateway, ISP and servers; containers: see docker/ (one cell at a '
                     'time)')
    how.add_argument('--out', metavar='DIR', default=str(ROOT / 'build/trial'),
                     help='directory of the run directories (default build/trial)')
    how.add_argument('--keep', action='store_true',
                     help='keep all files of the daemons, not only configurations and logs')
    how.add_argument('--strict', action='store_true', help='let the targets decide the exit status, see below')
    how.add_argument('--no-build', action='store_true', help='install and build nothing; use the present build')
    return made


def read(argv):
    """The options, checked and completed. Exits with code 2 and a sentence if one is wrong."""
    made = parser()
    options = made.parse_args(argv)
    options.rates = options.rates and tuple(rate * 1e6 for rate in options.rates)
    if options.users and len(options.users) != len(options.weights):
        made.error(f'--users has {len(options.users)} numbers for {len(options.weights)} classes '
                   f'({", ".join(options.weights)})')
    if options.plan_name and (options.quick or options.assignments):
        which = '--quick is a plan of its own' if options.quick else '--set makes conditions that no plan has'
        made.error(f'{which}: leave --plan-name {options.plan_name} out')
    if options.traces and (options.quick or options.plan_name):
        made.error('--link-trace makes conditions that no plan has: leave --quick and --plan-name out')
    if options.traces and options.isp != bottleneck.NAMES[0]:
        made.error(f'--link-trace: the rate of --isp {options.isp} cannot be changed under way')
    options.parameters = {}
    for workload, name, value in options.assignments:
        options.parameters.setdefault(workload, {})[name] = value
    if options.hosts != fabrics.NAMES[0] and options.lanes not in (None, 1):
        made.error(f'--lanes {options.lanes}: there is one set of {options.hosts}, so one cell runs at a time')
    if options.hosts != fabrics.NAMES[0] and options.workers > 1:
        made.error(f'--workers {options.workers}: only with --hosts {fabrics.NAMES[0]}, whose Squids have a directory '
                   'each for the sockets of their workers')
    for name in (name for name in options.arms or () if options.gateways > 1 and ARMS[name].alone):
        made.error(f'--gateways {options.gateways}: arm {name} is for one gateway')
    options.lanes = 1 if options.hosts != fabrics.NAMES[0] else options.lanes or 3 * (os.cpu_count() or 1)
    suffix = '' if options.squid_series == SERIES[0] else f'-{options.squid_series}'
    options.squid = os.path.abspath(options.squid or ROOT / f'build/install{suffix}/sbin/squid')
    stock = ROOT / f'build/install{suffix}-stock/sbin/squid'
    unpatched = stock.exists() and not options.quick
    options.stock_squid = os.path.abspath(options.stock_squid or (stock if unpatched else options.squid))
    # In the images it is installed next to Squid.
    options.delayline = str(ROOT / 'build/install/sbin/msfrs-delayline' if options.hosts == fabrics.NAMES[0]
                            else pathlib.Path(options.squid).with_name('msfrs-delayline'))
    return options
