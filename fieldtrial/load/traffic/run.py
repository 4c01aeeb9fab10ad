# SPDX-License-Identifier: GPL-2.0-or-later
"""One run: its clock, the requests that a workload makes, and the records."""
import asyncio
import collections
import contextlib

from . import records
from ...base.spec import UPLOAD
from ...site import first_byte

#: Most requests in flight: an overloaded gateway must not exhaust the machine's memory and sockets. A request beyond it
#: is recorded as an error at once, and listed in meta.json under "errors".
MOST_IN_FLIGHT = 4_000
#: After a refused or failed request a closed loop waits this long before its next one, as a person would; otherwise it
#: would send a dead gateway thousands of requests per second.
PAUSE_AFTER_FAILURE_S = 1.0
MOST_ERROR_TEXTS = 50
#: After this time without an answer a user gives up a server that never answers; OkHttp's default, in most programs of
#: telephones.
PATIENCE_S = 10.0
#: In the place of an outcome: requests that nobody answers.
SILENT = 'silent'
#: Ways of sending a request: HTTP/1, plain or over TLS, on separate connections; HTTP/2 on the user's tunnel to the
#: server; HTTP/3 on the user's QUIC connection to it, or as HTTP/2 where QUIC is blocked; plain HTTP/1 to a port that
#: is not intercepted.
WAYS = ('http', 'https', 'h2', 'h3', 'direct')


class Run:
    """The interface for workloads. Times are seconds since t0, on the loop's clock (CLOCK_MONOTONIC)."""

    def __init__(self, offers, clients, recorder, loop, t0):
        """t0: start of the run, on the loop's clock."""
        import aiohttp   # here, because workloads are also listed and planned without it installed
        self._failures = (aiohttp.ClientError, OSError)
        self.spec, self.offers, self.records, self.t0 = offers.spec, offers, recorder, t0
        self._clients, self._loop = clients, loop
        self._made_of = collections.Counter()  # {part of a path: requests with it}
        self._silent = set()                   # tasks of requests that nobody answers
        self.in_flight = self.most_in_flight = 0
        self.errors = collections.Counter()    #: error texts, at most MOST_ERROR_TEXTS different ones

    @property
    def tunnels(self):
        """Counts of tunnels: opened, failed and lost; empty if the workload has none."""
        return self._clients.tunnels.counts if self._clients.tunnels else {}

    @property
    def quic(self):
        """The same of QUIC connections."""
        return self._clients.quic.counts if self._clients.quic else {}

    def road(self, user, server):
        """The addresses (from, to) between them; None if there are none."""
        return self._clients.road(user, server)

    def now(self):
        """Seconds since t0."""
        return self._loop.time() - self.t0

    async def sleep_until(self, when):
        """Waits until `when`, seconds since t0."""
        await asyncio.sleep(max(0.0, when - self.now()))

    async def upload(self, user, offer):
        """Posts `offer.size` bytes on the user's tunnel to the server; returns the record, as fetch(). The bytes are in
        no count of bytes received."""
        request = records.Request(user, offer.server, offer.size, 'h2', UPLOAD, '', self.now())
        path = f'/up/{offer.size}/{self.name(user, UPLOAD)}'
        return await self._made(request, self._clients.post(user, offer.server, path, offer.size))

    async def fetch(self, user, offer, kind='object', page='', path=None, wanted_at=None, via=None):
        """Makes one request and reads the whole response; returns its record. If cancelled, it is recorded as
        unfinished.

        path: by default one that is never requested again, so that no cache can answer, and that is the same in every
        arm, because the time to the first byte follows from it (site.first_byte).
        wanted_at: when the user wanted it, if not now: latency counts from then.
        via: one of WAYS; by default HTTP/1, over TLS if the offer is for TLS.
        """
        request = records.Request(user, offer.server, offer.size, via or ('https' if offer.tls else 'http'), kind, page,
                                  self.now() if wanted_at is None else wanted_at)
        path = path or f'/b/{offer.size}/{self.name(user, kind, page)}'
        if not self.spec.at_once and first_byte.silent(self.spec.seed, path):
            self.ask_silent(user, path, request.via)
        return await self._made(request, self._clients.get(user, offer.server, path, request.via))

    def name(self, user, kind, page=''):
        """The last part of a path: that of the nth request of a user of a kind, or of a page of a user."""
        name = f'{page or user.name}-{kind}'
        self._made_of[name] += 1
        return f'{name}-{self._made_of[name]}'

    def ask_silent(self, user, path, via):
        """Makes a request that nobody answers, and counts it. It is in no record, since no arm can change its end; it is
        made beside the others, because a page is complete without it."""
        self.records.outcomes[SILENT] += 1
        task = asyncio.ensure_future(self._ask_silent(user, path, via))
        self._silent.add(task)
        task.add_done_callback(self._silent.discard)

    async def _ask_silent(self, user, path, via):
        with contextlib.suppress(TimeoutError, *self._failures):
            async with asyncio.timeout(PATIENCE_S):
                await self._clients.ask_silent(user, path, via)

    async def close(self):
        """Ends the requests that nobody answers."""
        for task in self._silent:
            task.cancel()
        await asyncio.gather(*self._silent, return_exceptions=True)

    async def _made(self, request, exchange):
        """Makes and records a request; exchange: of client.Clients."""
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.in_flight > MOST_IN_FLIGHT:
                self._error(request, f'not sent: {MOST_IN_FLIGHT} requests were in flight')
            else:
                await self._read(request, exchange)
        except asyncio.CancelledError:
            request.outcome = 'unfinished'
            raise
        except self._failures as error:
            self._error(request, f'{type(error).__name__}: {error}')
        finally:
            self.in_flight -= 1
            request.t_end = self.now()
            self.records.request(request)
        return request

    async def open_tunnel(self, user, server):
        """An additional tunnel of a user without any request; the caller closes it. If it cannot be opened, this is
        counted under `errors` and the result is None."""
        try:
            return await self._clients.tunnels.open(user, server)
        except self._failures as error:
            self._count(f'idle tunnel: {type(error).__name__}: {error}')
            return None

    async def _read(self, request, exchange):
        async with exchange as response:
            request.t_first_byte = self.now()
            request.status = response.status
            request.via = getattr(response, 'via', request.via)     # how it was sent in the end
            while piece := await response.content.readany():
                self.records.received(request, len(piece))
        if request.kind == UPLOAD and not request.got:
            request.got = request.size      # as the server has read it whole
        self._judge(request)

    def told(self, request, got, problem):
        """Judges and records a request made by an external program: bytes received, and the problem, if any."""
        self.records.received(request, got)
        if problem:
            self._error(request, problem)
        else:
            self._judge(request)
        self.records.request(request)

    def _judge(self, request):
        if request.status == 503:
            request.outcome = 'refused'
        elif request.status != 200:
            self._error(request, f'status {request.status}')
        elif request.got != request.size:
            self._error(request, 'the body is shorter or longer than what was asked for')
        else:
            request.outcome = 'ok'

    def _error(self, request, text):
        request.outcome = 'error'
        self._count(text)

    def _count(self, text):
        text = text[:200]
        if text not in self.errors and len(self.errors) >= MOST_ERROR_TEXTS:
            text = 'others'
        self.errors[text] += 1
