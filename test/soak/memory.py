# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether processes' memory stays constant, and whether objects of requests are freed. Squid keeps freed memory for
later use, and so does malloc: its memory grows in steps, whenever more requests are under way than before. So a
constant size shows only after the peaks of a long warm-up; objects in use while nothing is under way show at once.
"""
import collections
import contextlib
import os
import pathlib
import re
import statistics

#: Warm-up as a fraction of a run, and allowed growth of the memory over the rest.
WARM_UP, GROWTH = 0.3, 0.02
#: Fraction of the samples at either end of the rest that are compared.
END = 0.2
LEAST = 20
#: Squid's memory pools for objects of a request.
OF_REQUESTS = 'Ticket', 'HttpRequest', 'Stream', 'HttpReply', 'StoreEntry', 'mem_node'
#: Additional objects that are no leak: unmodified Squid keeps some requests for a while after their end, however many
#: there were, and more of them after many simultaneous visits.
SPARE = 32
#: The column of mgr:mem with the number of objects in use.
IN_USE = 14
PAGE_KB = os.sysconf('SC_PAGE_SIZE') // 1024


def growth(samples):
    """Relative growth of the memory after the warm-up, from the medians of the last and the first fifth of the rest, so
    that no single sample decides. samples: equidistant, in any unit, above 0. None if fewer than LEAST."""
    rest = samples[round(len(samples) * WARM_UP):]
    if len(rest) < LEAST:
        return None
    part = max(1, round(len(rest) * END))
    return statistics.median(rest[-part:]) / statistics.median(rest[:part]) - 1


def in_use(page):
    """{number of the worker: {pool: objects in use}} of mgr:mem, for pools of requests."""
    rows = {kid: [line.split('\t') for line in text.splitlines()]
            for kid, text in re.findall(r'(?ms)^by kid(\d+) \{$(.*?)^\} by kid', page)}
    return {int(kid): dict.fromkeys(OF_REQUESTS, 0) | {row[0].strip(): int(row[IN_USE]) for row in table
                                                       if row[0].strip() in OF_REQUESTS}
            for kid, table in rows.items()}


def more(held, before):
    """{number of the worker: {pool: objects}} where more are in use than before, from two results of in_use()."""
    found = {kid: {pool: count for pool, count in pools.items() if count > before[kid][pool] + SPARE}
             for kid, pools in held.items()}
    return {kid: pools for kid, pools in found.items() if pools}


class Sizes:
    """Resident memory of processes, sampled together, without shared memory: a page of the ledger's 8 MB counts once a
    user's entry falls on it, which takes hours. A process that was killed and restarted has several lives."""

    def __init__(self):
        self.lives = collections.defaultdict(dict)      #: {name: {pid: [kB]}}

    def sample(self, processes):
        """processes: {pid: name}."""
        for pid, name in processes.items():
            with contextlib.suppress(OSError):      # killed a moment ago
                _, resident, shared, *_ = map(int, pathlib.Path(f'/proc/{pid}/statm').read_text().split())
                if resident > shared:
                    self.lives[name].setdefault(pid, []).append((resident - shared) * PAGE_KB)

    def last(self):
        """{name: kB of each life at its end}. May be called while another thread samples."""
        return {name: [samples[-1] for samples in list(lives.values())] for name, lives in list(self.lives.items())}

    def growths(self):
        """{name: growth} of the processes that lived throughout."""
        return {name: growth(samples) for name, lives in self.lives.items() if len(lives) == 1
                for samples in lives.values()}
