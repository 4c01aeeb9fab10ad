# SPDX-License-Identifier: GPL-2.0-or-later
"""A user's browser: Chromium that loads pages of the servers (site/pages.py), and measures itself when it paints. It
runs as a Unix user of its own, whose connections have the address of the trial's user (site/lan.py)."""
import asyncio
import dataclasses
import json
import os
from urllib.parse import urlsplit

from . import devtools, records
from ...base.errors import TrialError
from ...site import addresses, pages

#: Reports each paint and the load event, in ms since the start of the navigation. A frame is reported once it has been
#: shown; so the load event is reported two frames later, and paints may follow even then.
WATCH = '''(() => {
  const tell = (what, ms) => msfrsTell(JSON.stringify([location.href, what, ms]));
  const watch = (type, note) => new PerformanceObserver((list) => list.getEntries().forEach(note))
    .observe({type, buffered: true});
  watch("paint", (entry) => { if (entry.name === "first-contentful-paint") tell("fcp", entry.startTime); });
  watch("largest-contentful-paint", (entry) => tell("lcp", entry.startTime));
  addEventListener("load", () => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(
    () => tell("load", performance.getEntriesByType("navigation")[0].loadEventEnd)))));
})()'''
#: From the load event until the last paint is reported, s: thirty frames, for a browser on a busy machine. Later
#: reports are lost; twice as long would only lengthen the time between pages.
SETTLE_S = 0.5
#: How requests were sent, as one of run.WAYS, by Chromium's name of the protocol.
WAYS = {'h2': 'h2', 'http/1.1': 'https'}


@dataclasses.dataclass
class _Page:
    """A page that is being loaded. requests: {id in the protocol: records.Request}, all that have begun."""
    name: str
    url: str
    t_start: float
    requests: dict = dataclasses.field(default_factory=dict)
    told: dict = dataclasses.field(default_factory=dict)    # s since t_start: fcp, lcp, load


class Browser:
    """The browser of one user of a run.Run."""

    #: Of its command line. The common temporary directory may be closed to its Unix user.
    PREFIX = ('setpriv', '--reuid={uid}', '--regid={uid}', '--clear-groups', '--no-new-privs', '--pdeathsig=KILL',
              'env', 'TMPDIR={directory}')

    def __init__(self, run, user):
        self._run, self._user = run, user
        self._servers = {server.name: server for server in run.spec.servers}
        self._pages = pages.Pages(run.spec.seed, self._servers)
        number = run.spec.users.index(user)
        self._uid = addresses.uid(number)
        # Beside the records, removed with the world. Chromium makes a socket in it: its path may be 45 bytes longer.
        self._directory = f'{run.spec.out}-{number}'
        os.mkdir(self._directory, mode=0o700)
        os.chown(self._directory, self._uid, self._uid)
        self._chromium = devtools.Chromium(self._directory, self._heard)
        self._page, self._loaded = None, None
        self._broken = ''

    async def start(self):
        """Starts it. Raises TrialError."""
        try:
            prefix = [word.format(uid=self._uid, directory=self._directory) for word in self.PREFIX]
            await self._chromium.start(prefix, self.flags())
            for domain in ('Page', 'Runtime', 'Network'):
                await self._chromium.ask(f'{domain}.enable')
            await self._chromium.ask('Runtime.addBinding', name='msfrsTell')
            await self._chromium.ask('Page.addScriptToEvaluateOnNewDocument', source=WATCH)
        except devtools.EndedError as error:
            raise TrialError(f'the browser of {self._user.name} did not start: {error}') from None

    def flags(self):
        """Chromium's flags: the servers' addresses of the user's family, certificates that nobody has signed."""
        roads = ((server.name, self._run.road(self._user, server)) for server in self._servers.values())
        known = (f'MAP {name} {f"[{road[1]}]" if ":" in road[1] else road[1]}' for name, road in roads if road)
        return ('--no-proxy-server', '--ignore-certificate-errors', f'--host-resolver-rules={", ".join(known)}, '
                'MAP * ~NOTFOUND')

    async def load(self, name, server, number):
        """Loads page `number` of a server, and records it and its requests; whether it is complete. name: of this
        load. If cancelled, it records the page as unfinished. Raises TrialError if the browser has ended."""
        url = f'https://{server.name}{pages.path(server.name, number)}?{name}'      # unique
        page = self._page = _Page(name, url, self._run.now())
        self._loaded = asyncio.get_running_loop().create_future()
        outcome, ended = 'unfinished', None
        try:
            said = await self._chromium.ask('Page.navigate', url=url)
            if 'errorText' not in said:
                await self._loaded
                ended = page.t_start + page.told['load']
                await asyncio.sleep(SETTLE_S)
            good = ended is not None and all(each.outcome == 'ok' for each in page.requests.values())
            outcome = 'ok' if good else 'error'
        except devtools.EndedError as error:
            raise TrialError(f'the browser of {self._user.name}: {error}') from None
        finally:
            self._page = None
            self._record(page, outcome, ended)
        return outcome == 'ok'

    def _record(self, page, outcome, ended):
        for request in page.requests.values():
            if not request.outcome:
                request.outcome, request.t_end = 'unfinished', self._run.now()
                self._run.records.request(request)
        # The largest paint is known only once all has been painted.
        self._run.records.page(self._user, page.name, page.t_start, self._run.now() if ended is None else ended,
                               list(page.requests.values()), outcome, fcp_s=page.told.get('fcp'),
                               lcp_s=page.told.get('lcp') if ended is not None else None)

    async def aclose(self):
        await self._chromium.close()

    # --- events ------------------------------------------------------------------------------------------------------

    def _heard(self, method, params):
        if method in ('Inspector.detached', 'Inspector.targetCrashed') and self._loaded and not self._loaded.done():
            self._loaded.set_exception(devtools.EndedError(f'{method}: its page has crashed, or all of it'))
        elif self._page and method in _EVENTS:
            _EVENTS[method](self, self._page, params)

    def _told(self, page, params):
        url, what, ms = json.loads(params['payload'])
        if url == page.url:
            page.told[what] = ms / 1e3
            if what == 'load' and not self._loaded.done():
                self._loaded.set_result(None)

    def _begun(self, page, params):
        url = urlsplit(params['request']['url'])
        server = self._servers.get(url.hostname)
        if server:
            document = params['request']['url'] == page.url
            size = self._pages.size(url.path)
            page.requests[params['requestId']] = records.Request(
                self._user, server, size, 'h2', 'document' if document else 'object', page.name, self._at(params))

    def _answered(self, page, params):
        request = page.requests.get(params['requestId'])
        if request:
            response = params['response']
            request.status, request.via = response['status'], WAYS.get(response.get('protocol'), request.via)
            if timing := response.get('timing'):
                request.t_first_byte = timing['requestTime'] + timing['receiveHeadersEnd'] / 1e3 - self._run.t0

    def _received(self, page, params):
        request = page.requests.get(params['requestId'])
        if request and not request.outcome:
            self._run.records.received(request, params['dataLength'])

    def _ended(self, page, params):
        request = page.requests.get(params['requestId'])
        if request and not request.outcome:
            request.t_end = self._at(params)
            self._run.told(request, 0, params.get('errorText', ''))     # the bytes were counted as they came

    def _at(self, params):
        """The time of an event, s since t0: Chromium has the clock of the loop, CLOCK_MONOTONIC."""
        return params['timestamp'] - self._run.t0


_EVENTS = {'Runtime.bindingCalled': Browser._told, 'Network.requestWillBeSent': Browser._begun,
           'Network.responseReceived': Browser._answered, 'Network.dataReceived': Browser._received,
           'Network.loadingFinished': Browser._ended, 'Network.loadingFailed': Browser._ended}
