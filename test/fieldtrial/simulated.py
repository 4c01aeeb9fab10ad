# SPDX-License-Identifier: GPL-2.0-or-later
"""A load generator's environment without network or waiting: a loop whose clock jumps, and servers with the response
times that a test sets."""
import asyncio
import collections
import selectors

from fieldtrial.base import typed
from fieldtrial.load import workloads
from fieldtrial.load.spec import Spec
from fieldtrial.load.traffic import offers, records, run as running


class _Jump(selectors.DefaultSelector):
    """Never waits, but advances the loop's clock by the time-out."""

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
    """Time passes only when all tasks wait."""

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
    """A simulated server's response: header after `wait`, `size` bytes (None: all) in ten pieces over `transfer` s."""

    def __init__(self, wait=0.1, transfer=0.1, status=200, size=None, error=None):
        self.wait, self.transfer, self.status, self.size, self.error = wait, transfer, status, size, error


class Clients:
    """Replaces load.client.Clients: `answer(user, server, size)` gives the result of a request."""

    def __init__(self, spec, answer):
        self._spec, self._answer = spec, answer
        self.now = collections.Counter()       #: requests in flight, by user
        self.most = collections.Counter()      #: greatest number of them
        self.asked = []                        #: (user, server, path) of every request
        self.ways = collections.Counter()      #: requests by way (run.WAYS)
        self.silent = []                       #: (user, path, via) of every request that nobody answers
        self.sent = []                         #: (user, bytes) of every upload
        self.tunnels = Tunnels()

    def reachable(self, _user):
        return self._spec.servers

    async def ask_silent(self, user, path, via):
        self.silent.append((user.name, path, via))
        await asyncio.get_running_loop().create_future()

    def post(self, user, server, path, size):
        self.sent.append((user.name, size))
        return _Exchange(self, user, self._answer(user, server, 0), 0)

    def get(self, user, server, path, via):
        self.asked.append((user.name, server.name, path))
        self.ways[via] += 1
        return _Exchange(self, user, self._answer(user, server, int(path.split('/')[2])), int(path.split('/')[2]))


class Tunnels:
    """Replaces load.http2.Tunnels for idle tunnels, and records when each was open."""

    def __init__(self):
        self.counts = collections.Counter()
        self.idle = []      #: [user, server, when opened, when closed]
        self.refuse = lambda number: False    #: by the tunnel's number: whether it fails to open

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


def user(name, cls, address):
    """A user with this single address, as JSON."""
    return {'name': name, 'cls': cls, 'v6' if ':' in address else 'v4': address}


def server(name, v4='127.0.0.1', v6=None, group='near', rtt_ms=0.1):
    """A server, likewise."""
    return {'name': name, 'v4': v4, 'v6': v6, 'group': group, 'rtt_ms': rtt_ms}


def data(out, workload='backlogged', counts=(2, 2, 2), mine=None, **more):
    """A spec as JSON: classes gold, silver and bronze with `counts` users, two servers. mine: names; None: all."""
    if workload in workloads.names() and workloads.get(workload)().tunnels():
        more.setdefault('tls_ca', __file__)     # some file
    made = {'name': 'cell', 'directory': str(out), 'out': str(out), 'arms': ['msfrs'], 'workload': workload, 'seed': 7,
            'duration_s': 20, 'warmup_s': 0, 'rate_bps': 2_000_000, 'weights': {'gold': 4, 'silver': 2, 'bronze': 1},
            'squid': '', 'stock_squid': '', 't0_monotonic': 0, 'at_once': True,
            'users': [user(f'{name}-{number + 1}', name, f'198.18.{place}.{number + 1}')
                      for place, (name, count) in enumerate(zip(('gold', 'silver', 'bronze'), counts))
                      for number in range(count)],
            'servers': [server('s01.test', '198.19.0.1', rtt_ms=12), server('s02.test', '198.19.0.2', rtt_ms=296)],
            **more}
    return made | {'mine': [each for each in made['users'] if mine is None or each['name'] in mine]}


def spec(out, **more):
    """The same as a Spec."""
    return typed.of(Spec, data(out, **more), 'spec')


class Outcome:
    """A completed run: its spec, the run, the clients, and `requests` and `pages` as lists of dictionaries."""

    def __init__(self, out, answer=lambda *_: Answer(), clients=lambda made: None, **more):
        self.spec = spec(out, **more)
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
        self.offered = self.spec.model.prepare(drawn)
        recorder = records.Records(self.spec.out, self.spec.mine)
        self.run = running.Run(drawn, self.clients, recorder, loop, loop.time())
        work = asyncio.ensure_future(self.spec.model.run(self.run))
        await asyncio.wait([work], timeout=self.spec.duration_s + self.spec.drain_s)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await self.run.close()
        if not work.cancelled():
            work.result()
        recorder.close()

    @staticmethod
    def _rows(out, name):
        with open(f'{out}/{name}', encoding='utf-8') as file:
            header = file.readline().strip().split(',')
            return [dict(zip(header, line.strip().split(','))) for line in file]
