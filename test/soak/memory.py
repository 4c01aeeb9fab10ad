# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether processes' memory stays flat, and whether what requests had is given back. Squid keeps what it frees, for
later, and so does malloc: its memory grows by steps, whenever more is under way than ever before. So that it is flat
shows only after the crests of a long warm-up; what is in use when nothing is under way shows at once.
"""
import collections
import contextlib
import os
import pathlib
import re
import statistics

#: Share of a run that is warm-up, and how much the memory may grow over the rest.
WARM_UP, GROWTH = 0.3, 0.02
#: Samples at either end of the rest that are compared.
END = 0.2
LEAST = 20
#: Pools of what a request has in Squid.
OF_REQUESTS = 'Ticket', 'HttpRequest', 'Stream', 'HttpReply', 'StoreEntry', 'mem_node'
#: So many more than before are none lost: unmodified Squid keeps some requests for a while after their end,
#: however many there were, and more of them after many visits at a time.
SPARE = 32
#: The column of mgr:mem with the number of objects in use.
IN_USE = 14
PAGE_KB = os.sysconf('SC_PAGE_SIZE') // 1024


def growth(samples):
    """By what share the memory grew after the warm-up: medians of the last and the first fifth of what is left, so that
    one moment decides nothing. samples: at equal distances, in any unit, above 0. None: fewer than LEAST."""
    rest = samples[round(len(samples) * WARM_UP):]
    if len(rest) < LEAST:
        return None
    part = max(1, round(len(rest) * END))
    return statistics.median(rest[-part:]) / statistics.median(rest[:part]) - 1


def in_use(page):
    """{number of the worker: {pool: objects in use}} of mgr:mem, of what requests have."""
    rows = {kid: [line.split('\t') for line in text.splitlines()]
            for kid, text in re.findall(r'(?ms)^by kid(\d+) \{$(.*?)^\} by kid', page)}
    return {int(kid): dict.fromkeys(OF_REQUESTS, 0) | {row[0].strip(): int(row[IN_USE]) for row in table
                                                       if row[0].strip() in OF_REQUESTS}
            for kid, table in rows.items()}


def more(held, before):
    """{number of the worker: {pool: objects}} where more are in use than before, of two answers of in_use()."""
    found = {kid: {pool: count for pool, count in pools.items() if count > before[kid][pool] + SPARE}
             for kid, pools in held.items()}
    return {kid: pools for kid, pools in found.items() if pools}


class Sizes:
    """Resident memory of processes, sampled together, without what they share: of the ledger's 8 MB a page counts from
    when a user first falls on it, which takes hours. One that was killed and started again has several lives."""

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
        """{name: kB of each life at its end}. While another thread samples, too."""
        return {name: [samples[-1] for samples in list(lives.values())] for name, lives in list(self.lives.items())}

    def growths(self):
        """{name: growth} of the processes that lived throughout."""
        return {name: growth(samples) for name, lives in self.lives.items() if len(lives) == 1
                for samples in lives.values()}
