# SPDX-License-Identifier: GPL-2.0-or-later
"""Headless Chromium on a host of a test."""
import base64
import contextlib
import pathlib
import time

from background import PATIENCE, Loop
from fieldtrial.load.traffic import devtools
from fieldtrial.load.traffic.devtools import CommandError


class Browser:
    """One page. `requests`: the URLs that it requested; `complaints`: its errors and violations of the policy."""

    def __init__(self, host, directory):
        self.requests, self.complaints = [], []
        self._ending = contextlib.ExitStack()
        self._loop = self._ending.enter_context(Loop())
        self._chromium = devtools.Chromium(directory, self._note)
        self._loop.call(self._chromium.start(('setpriv', '--pdeathsig', 'KILL', *host.enter([]))))
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.ask(f'{domain}.enable')

    def ask(self, method, **params):
        """Sends a command and returns its result."""
        return self._loop.call(self._chromium.ask(method, **params))

    def _note(self, method, params):
        if method == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'])
        elif method == 'Runtime.exceptionThrown':
            self.complaints.append(params['exceptionDetails'].get('exception', params['exceptionDetails']))
        elif method == 'Log.entryAdded' and params['entry']['level'] in ('error', 'warning'):
            self.complaints.append(params['entry']['text'])

    def shape(self, width, height, *, dark=False, phone=False):
        self.ask('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.ask('Emulation.setEmulatedMedia',
                 features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def open(self, url):
        self.ask('Page.navigate', url=url)

    def evaluate(self, expression):
        """The value of a JavaScript expression."""
        said = self.ask('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in said, said['exceptionDetails']
        return said['result'].get('value')

    def wait_until(self, condition):
        """Waits until an expression is true, on whatever page is loaded by then."""
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(CommandError):     # evaluated during a page change
                if self.evaluate(f'Promise.resolve({condition}).then(Boolean)'):
                    return
            assert time.monotonic() < end, f'{condition} is not so; {self.complaints}'

    def press(self, key):
        for kind in ('keyDown', 'keyUp'):
            self.ask('Input.dispatchKeyEvent', type=kind, key=key, code=key,
                     windowsVirtualKeyCode={'Tab': 9, 'Enter': 13}[key], text='\r' if key == 'Enter' else '')

    def screenshot(self, path, *, whole=True):
        """Writes a PNG of the page."""
        picture = self.ask('Page.captureScreenshot', format='png', captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(picture['data']))

    def close(self):
        self._loop.call(self._chromium.close())
        self._ending.close()
