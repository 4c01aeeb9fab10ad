# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures of the MSF-RS paper, as data, each with the table, figure or section it is taken from.

S.-C. Tsao, Y.-C. Lai, L.-C. Tsao, Y.-D. Lin: "On applying fair queuing discipline to schedule requests at access
gateway for downlink differential QoS", Computer Networks, 2008. Shares and utilisations are fractions of 1, rates are
bit/s, times are seconds, unless a name states otherwise.
"""
from collections import namedtuple

Figure = namedtuple('Figure', 'value unit source')
Figure.__doc__ = 'One published figure: its value, its unit and where the paper prints it.'

FAIRNESS_SIMULATION = Figure((3.96, 1.98, 1.0), "ratio of the classes' throughput", 'section 5.2, fig. 8a')
FAIRNESS_TRIAL = Figure((1.03e6, 0.52e6, 0.26e6), 'bit/s', 'section 7 (1)')
USER_RATE_CLASS1 = Figure(270e3, 'bit/s per user, 4 users in each class', 'section 5.4, fig. 10a')

LATENCY_SIMULATION = {
    'ordinary': Figure(8.83, 's', 'section 5.3, fig. 9'),
    'msfrs': Figure(6.76, 's', 'section 5.3, fig. 9'),
}
LATENCY_TRIAL = {
    'ordinary': Figure(1.6861, 's', 'table 2'),
    'msfrs': Figure(1.1749, 's', 'table 2'),
    'queueing': Figure(0.5155, 's', 'table 2'),
}
# "MSF-RS provides fairness while reducing 23-30% of user-perceived latency on average" (abstract).
LATENCY_CLAIM = Figure((0.23, 0.30), 'share of the mean latency saved', 'abstract; section 5.3, table 2')

# Utilisation of the link under on/off CBR: {on/off period in s: {share of C while on: utilisation}}.
CBR_UTILISATION = Figure({
    40: {0.2: 0.9794, 0.4: 0.9791, 0.6: 0.9762},
    80: {0.2: 0.9790, 0.4: 0.9795, 0.6: 0.9777},
    160: {0.2: 0.9794, 0.4: 0.9792, 0.6: 0.9768},
    320: {0.2: 0.9783, 0.4: 0.9780, 0.6: 0.9776},
    640: {0.2: 0.9793, 0.4: 0.9783, 0.6: 0.9785},
}, 'share of C', 'table 1')

# CPU seconds of the Squid process over 200 s at link speed: {link in bit/s: {case: seconds}}.
CPU_SECONDS = Figure({
    2e6: {'msfrs, 10 classes': 44.8, 'msfrs, 100 classes': 46.02, 'ordinary': 63.22},
    10e6: {'msfrs, 10 classes': 56.34, 'msfrs, 100 classes': 58.04, 'ordinary': 84.90},
}, 's', 'table 3')

UTILISATION_TARGET = Figure(0.98, 'share of C', 'section 5.1 (U+)')
WINDOW_CBR = Figure((7, 13), 'W+ with CBR at 40 % of C, and after it stopped', 'section 6, fig. 14')
WINDOW_FEW = Figure('W+ stays constant while requests are too few, U falls', 'in words', 'section 5.5, fig. 11')

# Differences between the paper's experiments and this trial, as text: (subject, in the paper, here).
CONDITIONS = (
    ('TCP', 'ns-2 SACK, at most 200 packets of 1000 bytes, no delayed acknowledgements (simulation); whatever the '
     "Internet's servers spoke (trial)",
     'Linux cubic with SACK, 1448-byte segments, delayed acknowledgements, an initial window of ten segments'),
    ("ISP's link", 'drop-tail, 1.5 bandwidth-delay products (simulation); a layer-3 switch that limits the rate, '
     'buffer not stated (trial)',
     'drop-tail behind a token bucket; the buffer of each cell is printed with it'),
    ('Servers', "12 at fixed delays (simulation); the Internet's (trial)",
     'nginx at the round-trip times printed with each cell, always the same for all arms of a condition'),
    ('Sizes', "lognormal, M = 9.357, S = 1.318, mean 27.7 kB (simulation); an enterprise's log (trial)",
     'the same lognormal, cut at the largest object printed below'),
    ('Load of the latency figures', 'four users in each class, exponential pauses of 5 s (fig. 9); replay of a URL '
     'list whose load is not stated (table 2)',
     'closed loops, page loads and open arrivals at a stated load, each with the same offered sequence in all arms'),
    ('Counting unfinished requests', 'not stated', 'counted (see the notes on method)'),
    ('Squid', 'version not stated (submitted in December 2007)', 'the version printed below'),
    ('CPU of table 3', 'machine not stated; unmodified Squid was busy for a third of the 200 s at 2 Mbit/s',
     'a machine of today that also runs clients and servers; only the ratio between arms can be compared'),
)


def cbr_utilisation(share, period_s):
    """The paper's utilisation for a CBR share of C and the on/off period nearest to `period_s`.

    Returns (utilisation, period of the table in s), or None for a share that table 1 does not have.
    """
    table = CBR_UTILISATION.value
    period = min(table, key=lambda listed: abs(listed - period_s))
    for listed, utilisation in table[period].items():
        if abs(listed - share) < 1e-9:
            return utilisation, period
    return None


def cpu_ratio(rate_bps):
    """MSF-RS (10 classes) over the original Squid in CPU seconds, for a link of table 3; None for any other link."""
    row = CPU_SECONDS.value.get(rate_bps)
    return row['msfrs, 10 classes'] / row['ordinary'] if row else None
