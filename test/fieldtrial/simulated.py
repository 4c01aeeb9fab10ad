# SPDX-License-Identifier: GPL-2.0-or-later
"""A load generator's surroundings without network and without waiting: a loop whose clock jumps, and servers whose
answers take as long as the test says."""
import asyncio
import collections
import selectors

from fieldtrial.load import spec as specs, workloads
from fieldtrial.load.traffic import offers, records, run as running


class _Jump(selectors.DefaultSelector):
    """Waits for nothing: tells the loop how far its clock may jump."""

    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready:
            assert timeout is not None, 'everybody waits and nobody will ever wake up'
            self._loop.seconds += max(0.0, timeout)
        return ready


class Loop(asyncio.SelectorEventLoop):
    """Time passes only when everybody waits."""

    def __init__(self):
        self.seconds = 0.0
        super().__init__(_Jump(self))

    def time(self):
        return self.seconds


class _Content:
    def __init__(self, pieces):
        self._pieces = pieces

    async def readany(self):
        async for piece in self._pieces:
            return piece
        return b''


class Answer:
    """What a simulated server does: header after `wait`, `size` bytes (None: all) in ten pieces over `transfer` s."""

    def __init__(self, wait=0.1, transfer=0.1, status=200, size=None, error=None):
        self.wait, self.transfer, self.status, self.size, self.error = wait, transfer, status, size, error


class Clients:
    """Stands for load.client.Clients: `answer(user, server, size)` says what happens to a request."""

    def __init__(self, spec, answer):
        self._spec, self._answer = spec, answer
        self.now = collections.Counter()       #: requests in flight, by user
        self.most = collections.Counter()      #: the most that were
        self.asked = []                        #: (user, server, path) of every request
        self.ways = collections.Counter()      #: requests by way (run.WAYS)
        self.tunnels = Tunnels()

    def reachable(self, _user):
        return self._spec.servers

    def get(self, user, server, path, via):
        self.asked.append((user.name, server.name, path))
        self.ways[via] += 1
        return _Exchange(self, user, self._answer(user, server, int(path.split('/')[2])), int(path.split('/')[2]))


class Tunnels:
    """Stands for load.http2.Tunnels, for those that nobody uses: which there were, and from when to when."""

    def __init__(self):
        self.counts = collections.Counter()
        self.idle = []      #: [user, server, when opened, when closed]
        self.refuse = lambda number: False    #: by the tunnel's number: cannot be opened

    async def open(self, user, server):
        now = asyncio.get_running_loop().time
        if self.refuse(len(self.idle)):
            self.counts['failed'] += 1
            raise ConnectionRefusedError('no')
        self.counts['opened'] += 1
        row = [user.name, server.name, now(), None]
        self.idle.append(row)
        return _Idle(lambda: row.__setitem__(3, now()))


class _Idle:
    def __init__(self, close):
        self.close = close


class _Exchange:
    def __init__(self, clients, user, answer, size):
        self._clients, self._user, self._answer = clients, user, answer
        self._size = size if answer.size is None else answer.size
        self.status, self.content = answer.status, _Content(self._pieces())

    async def __aenter__(self):
        name = self._user.name
        self._clients.now[name] += 1
        self._clients.most[name] = max(self._clients.most[name], self._clients.now[name])
        try:
            await asyncio.sleep(self._answer.wait)
            if self._answer.error:
                raise self._answer.error
        except BaseException:
            self._clients.now[name] -= 1
            raise
        return self

    async def __aexit__(self, *_):
        self._clients.now[self._user.name] -= 1

    async def _pieces(self):
        for number in range(10):
            await asyncio.sleep(self._answer.transfer / 10)
            yield bytes(self._size * (number + 1) // 10 - self._size * number // 10)


def data(out, workload='backlogged', counts=(2, 2, 2), **more):
    """A spec as JSON: classes gold, silver and bronze with so many users, two servers."""
    classes = ['gold', 'silver', 'bronze']
    if workload in workloads.names() and workloads.get(workload)().tunnels():
        more.setdefault('tls_ca', __file__)     # some file
    return {'version': 1, 'workload': workload, 'seed': 7, 'duration_s': 20, 'rate_bps': 2_000_000, 'classes': classes,
            'users': [{'name': f'{name}-{number + 1}', 'class': name, 'addresses': [f'198.18.{place}.{number + 1}']}
                      for place, (name, count) in enumerate(zip(classes, counts)) for number in range(count)],
            'servers': [{'name': 's01.test', 'addresses': ['198.19.0.1'], 'group': 'near', 'rtt_ms': 12},
                        {'name': 's02.test', 'addresses': ['198.19.0.2'], 'group': 'far', 'rtt_ms': 296}],
            'out': str(out), **more}


class Outcome:
    """A run that is over: its spec, the run, the clients, and `requests` and `pages` as lists of dictionaries."""

    def __init__(self, out, answer=lambda *_: Answer(), clients=lambda made: None, **more):
        self.spec = specs.parse(data(out, **more))
        self.clients = Clients(self.spec, answer)
        clients(self.clients)
        loop = Loop()
        try:
            loop.run_until_complete(self._run(loop))
        finally:
            loop.close()
        self.requests, self.pages = (self._rows(out, name) for name in ('requests.csv', 'pages.csv'))

    async def _run(self, loop):
        drawn = offers.Offers(self.spec, self.clients.reachable)
        self.offered = self.spec.workload.prepare(drawn)
        recorder = records.Records(self.spec.out, self.spec.mine)
        self.run = running.Run(drawn, self.clients, recorder, loop, loop.time())
        work = asyncio.ensure_future(self.spec.workload.run(self.run))
        await asyncio.wait([work], timeout=self.spec.duration_s + self.spec.drain_s)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        if not work.cancelled():
            work.result()
        recorder.close()

    @staticmethod
    def _rows(out, name):
        with open(f'{out}/{name}', encoding='utf-8') as file:
            header = file.readline().strip().split(',')
            return [dict(zip(header, line.strip().split(','))) for line in file]
