# SPDX-License-Identifier: GPL-2.0-or-later
"""What figures can be had of which workload, and what it is called; the workloads themselves are in load/workloads."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    """Of one that is not known, only what all have."""

    title: str
    saturated: bool = False     #: every user always wants more: throughput shows the scheduler, not the demand
    shared: bool = False        #: others than those whom Squid serves have some of the link
    latency: bool = False       #: whether the latencies of its requests are drawn
    queue: bool = False         #: whether the ISP's queue is drawn
    processors: bool = False    #: the machine's processors are the limit, on purpose
    work: bool = False          #: whether unfinished work is known and judges an arm: open, pages, backlogged


#: In the order in which they are shown.
WORKLOADS = {
    'https-backlogged': Workload('Backlogged over kept tunnels', saturated=True, latency=True, queue=True, work=True),
    'https-pages': Workload('Page loads over kept tunnels', queue=True, work=True),
    'https-open': Workload('Open arrivals over kept tunnels', latency=True, queue=True, work=True),
    'disturbed': Workload('Disturbed', saturated=True, shared=True),
    'few': Workload('Few users', saturated=True, queue=True),
    'video': Workload('Video beside downloads', queue=True),
    'call': Workload('A call beside a backlog', saturated=True, shared=True, queue=True),
    'bypass': Workload('Half bypass Squid', saturated=True, shared=True, queue=True),
    'quic-backlogged': Workload('Backlogged, HTTP/3 beside TCP', saturated=True, latency=True, queue=True, work=True),
    'quic-pages': Workload('Page loads, HTTP/3 beside TCP', queue=True, work=True),
    'scale': Workload('Many users of a fast link', saturated=True, latency=True, queue=True, processors=True),
    'backlogged': Workload('Backlogged', saturated=True, latency=True, queue=True, work=True),
    'unequal': Workload('Unequal users', saturated=True, latency=True, work=True),
    'phases': Workload('Class phases', saturated=True),
    'pages': Workload('Page loads', queue=True, work=True),
    'open': Workload('Open arrivals', latency=True, queue=True, work=True),
    'cbr': Workload('On/off CBR beside', saturated=True, shared=True),
    'excess': Workload('One user served beside Squid', saturated=True, shared=True),
    'url-list': Workload('URL list', latency=True),
}


def of(cell):
    """That of a Cell; one that is not known is called by its name."""
    return WORKLOADS.get(cell.workload, Workload(cell.workload))
