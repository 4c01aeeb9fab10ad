# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of the report: method, parameters, versions, how to run it again, and the raw files."""
import shlex

from ..analysis import wording
from ..analysis.measures import BLOCK_S, KB, SIZES
from ..analysis.recovery import QUANTUM
from .html import element, join, link, listing, paragraph, section, table

METHOD = (
    ('Comparison', 'Arms are compared within one run and under one condition only: same offered sequence, link, '
     'round-trip times, buffer and seed. Every figure is over the measured interval, after a warm-up that is recorded '
     'too.'),
    ('Unfinished requests', 'A request that was cut at the end counts as one that took at least as long as it was '
     "watched (Kaplan-Meier estimate). Means are restricted to the length from the interval's start to the cut. A "
     "percentile that too few requests reached reads 'not reached'. Leaving such requests out would flatter whoever "
     'starves the long ones.'),
    ('Failed requests', 'Refused (503) and failed requests are in no latency; their share is printed wherever there '
     'are any, and more than 1 % in an MSF-RS arm is a missed target.'),
    ('Sizes', f"kB of an object's size is {KB} bytes: up to {SIZES['small'][1]}, up to {SIZES['medium'][1]}, above."),
    ('Utilisation', "Bytes that left the ISP's queue, with all headers down to Ethernet, over C; C counts the same "
     'way. Goodput is the bytes of bodies that users received over the same bytes on the link.'),
    ('Throughput ratio', 'Bytes of bodies per user of a class, over those of a user of the class with the least '
     'weight. The error is that ratio over the ratio of the weights, less 1; the class that is farthest off counts. Of '
     'a phase, the first tenth (5 to 20 s) is not measured: answers of the classes before are still arriving. After a '
     'disturbance the ten seconds from ten seconds after its end are measured.'),
    ('Quanta', f'In ten seconds a slow link carries few quanta of up to {QUANTUM} bytes, and each is of one class. '
     'Beside the ratios after a disturbance stands what that alone makes: the error, of the class that is farthest '
     'off, of an order without fault, which gives the next quantum to the class that was given least of its share, '
     'with as many under way as were in service on average. The target makes no allowance for it. Over all '
     'occurrences together it averages out.'),
    ("ISP's queue", "Backlog of the ISP's queue, sampled every 100 ms, over C. Means and percentiles are over time."),
    ('CPU', 'User and system time of the Squid processes for a gigabyte (10^9 bytes) of bodies delivered.'),
    ('Confidence', f'95 % intervals come from resampling blocks of {BLOCK_S:g} s of the run (300 draws), because '
     'requests of one moment depend on one another. They know nothing of what differs between two runs: repeat with '
     'other seeds.'),
)


# What Cell.unpatched means, in words.
PROGRAMS = {True: 'the unpatched program of the same version', False: 'the patched program with msfrs off',
            None: 'not recorded'}


def method():
    """How the figures were made."""
    return section('method', 'Method', *(paragraph(element('b', f'{name}. '), words) for name, words in METHOD))


def _value(value):
    if isinstance(value, dict):
        return ', '.join(f'{name} {_value(inner)}' for name, inner in value.items()) or wording.NONE
    if isinstance(value, (list, tuple)):
        return ', '.join(map(_value, value)) or wording.NONE
    return f'{value:g}' if isinstance(value, float) else str(value)


def _versions(run):
    found = {}
    for source in (run.meta.get('versions') or {}, *(cell.versions for cell in run.cells)):
        for name, version in source.items():
            found.setdefault(name, [])
            if version and version not in found[name]:
                found[name].append(version)
    return [[name, _value(versions)] for name, versions in found.items()]


def parameters(run, groups):
    """What was set: of the run, of each condition, of each arm."""
    rows = []
    for group in groups:
        cell = next(iter(group.values())).cell
        size = f'{cell.buffer_bytes / 1e3:g} kB' if cell.buffer_bytes else 'not recorded'
        rows.append([wording.condition(cell), wording.plain(cell.weights), _value(cell.parameters), size,
                     f'{cell.start:g} to {cell.stop:g} s', _value(cell.sizes), _value(cell.seed)])
    rtts = sorted({cell.rtts_ms for cell in run.cells})
    confs = {}
    for cell in run.cells:
        confs.setdefault(cell.arm, cell.squid_conf)
    stock = sorted({PROGRAMS[cell.unpatched] for cell in run.cells if cell.arm.startswith('stock')})
    shown = [element('details', join([element('summary', f'squid.conf of {wording.arm(arm)} (first cell)'),
                                      element('pre', text)])) for arm, text in confs.items() if text]
    return section(
        'parameters', 'Parameters and versions',
        table(['Condition', 'Weights', "Workload's parameters", 'ISP buffer', 'Measured', 'Object sizes, bytes',
               'Seed'], rows),
        paragraph('Round-trip times of the servers, ms: ',
                  '; '.join(_value([f'{rtt:.0f}' for rtt in each]) for each in rtts)),
        paragraph(f'Squid of the stock arms: {", ".join(stock)}.') if stock else None,
        *shown, table(['Part', 'Version'], _versions(run)))


def again(run):
    """How to run it again and how to rebuild this page."""
    argv = run.meta.get('argv') or []
    command = shlex.join(['sudo', './trial', *map(str, argv)])
    seed = run.meta.get('seed')
    same = f'Its seed is {seed}: the same seed offers the same sequence of requests. ' if seed is not None else ''
    return section(
        'again', 'Run it again',
        paragraph('This run was started with:'), element('pre', command),
        paragraph(same, 'Every option: ', element('code', './trial --help'),
                  '. This page and the table again from the raw files:'),
        element('pre', f'python3 -m fieldtrial.report build/trial/{run.path.resolve().name}'))


def raw(run):
    """Links to the files of each cell, relative to the page."""
    rows = []
    for cell in run.cells:
        files = sorted(path.name for path in cell.path.iterdir() if path.suffix in ('.csv', '.json', '.yaml'))
        links = join([link(f'{cell.path.name}/{name}', name) for name in files], ', ')
        rows.append([wording.condition(cell), wording.arm(cell.arm), links])
    left_out = [f'{name}: {reason}' for name, reason in run.left_out.items()]
    return section('raw', 'Raw files', table(['Condition', 'Arm', 'Files'], rows),
                   join([element('h3', 'Cells left out'), listing(left_out)]) if left_out else None)
