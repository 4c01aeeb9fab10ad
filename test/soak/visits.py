# SPDX-License-Identifier: GPL-2.0-or-later
"""The visits of a soak: users who make requests of many kinds. Each visit knows which results are correct."""
import math
import random
from dataclasses import dataclass, field

from http_users import Fetch

#: Bytes of a body: lognormal like the trial's, truncated so that a visit ends within minutes.
SIZE = {'median': 11_500, 'sigma': 1.3, 'most': 2_000_000}
ROADS = {'proxy': 0.35, 'intercept': 0.25, 'connect': 0.2, 'tls': 0.2}
BESIDE = 'datagrams'                #: the path that bypasses Squid
#: Kinds of visits and their shares. The faults of a user or a server are in the method of the kind below.
SHARES = {'plain': 0.52, BESIDE: 0.1, 'chunked': 0.1, 'upload': 0.05, 'slow-reader': 0.05, 'leaves': 0.08,
          'reset-by-server': 0.04, 'closed-by-server': 0.04, 'silent-server': 0.02}


@dataclass
class Visit:
    """One request of a user. leaves: seconds after which the user disconnects, with or without reset; None: never. cut:
    bytes after which the server aborts; None: it does not."""
    kind: str
    user: object
    how: dict                           #: arguments of Users.get, or, bypassing Squid, of Datagrams.get
    leaves: float | None = None
    reset: bool = False
    resumes: float | None = None        #: seconds after which a stalled reader continues
    cut: int | None = None
    fetch: Fetch | None = field(default=None, repr=False)

    def wrong(self):
        """Description of the fault of an ended visit; empty: none."""
        fetch, answered = self.fetch, self.fetch.status == 200      # otherwise the body is Squid's
        if answered and not fetch.intact:
            return 'a byte of another body'
        if self.leaves is not None:
            return ''
        if self.cut is not None:
            more = answered and fetch.received > self.cut
            return f'{fetch.received} bytes, and its server had sent {self.cut}' if more else ''
        return '' if fetch.good else f'not answered whole: {fetch!r}'


class Plan:
    """Draws visits: Poisson arrivals of `rate` visits a second by users drawn from `users`, all from `seed`."""

    def __init__(self, users, rate, seed, servers=1):
        if rate <= 0 or not users:
            raise ValueError(f'{rate} visits a second of {len(users)} users: both must be above 0')
        self._users, self._rate, self._servers = users, rate, servers
        self._random = random.Random(seed)
        self._at = 0.0

    def next(self):
        """(seconds from the start, Visit), in ascending order of time."""
        draw = self._random
        self._at += draw.expovariate(self._rate)
        kind = draw.choices(list(SHARES), SHARES.values())[0]
        size = min(SIZE['most'], int(draw.lognormvariate(math.log(SIZE['median']), SIZE['sigma'])) + 1)
        how = {'via': draw.choices(list(ROADS), ROADS.values())[0], 'size': size, 'family': draw.choice((4, 6)),
               'server': draw.randrange(self._servers)}
        visit = Visit(kind, draw.choice(self._users), how)
        getattr(self, '_' + kind.replace('-', '_'))(visit, draw)
        return self._at, visit

    def _plain(self, visit, draw):
        pass

    def _datagrams(self, visit, draw):
        visit.how['via'] = BESIDE

    def _chunked(self, visit, draw):
        visit.how['framing'] = 'chunked'

    def _upload(self, visit, draw):
        visit.how['body'] = draw.randrange(1, 50_000)

    def _slow_reader(self, visit, draw):
        visit.how['stall_after'] = draw.randrange(visit.how['size'])
        visit.resumes = draw.uniform(0.5, 5)

    def _leaves(self, visit, draw):
        visit.leaves, visit.reset = draw.uniform(0, 3), draw.random() < 0.5

    def _reset_by_server(self, visit, draw):
        visit.cut = visit.how['send'] = draw.randrange(visit.how['size'])
        visit.how['then'] = 'reset'

    def _closed_by_server(self, visit, draw):
        self._reset_by_server(visit, draw)
        visit.how['then'] = 'close'

    def _silent_server(self, visit, draw):
        self._reset_by_server(visit, draw)
        visit.how['then'] = 'hang'
        visit.leaves = draw.uniform(1, 8)
