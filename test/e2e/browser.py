# SPDX-License-Identifier: GPL-2.0-or-later
"""Headless Chromium on a host of a test, controlled by its DevTools protocol over two pipes."""
import base64
import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

from background import PATIENCE

PROGRAM = shutil.which('chromium')
FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
         '--disable-background-networking', '--disable-component-update', '--remote-debugging-pipe',
         '--hide-scrollbars')


class CommandError(Exception):
    """Chromium reported an error for a command."""


class Browser:
    """One page. `requests`: the URLs that it requested; `complaints`: its errors and violations of the policy."""

    def __init__(self, host, directory):
        there, self._out = os.pipe()
        self._in, back = os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (there, back)]

        def place():
            for fd, number in zip(ends, (3, 4)):
                os.dup2(fd, number)

        self._process = subprocess.Popen(
            ['setpriv', '--pdeathsig', 'KILL', *host.enter([PROGRAM, *FLAGS, f'--user-data-dir={directory}/chromium',
                                                            'about:blank'])],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=place, start_new_session=True, env={**os.environ, 'HOME': str(directory)})
        for fd in (there, back, *ends):
            os.close(fd)
        self._number = 0
        self._read = b''
        self._session = None
        self.requests, self.complaints = [], []
        target = next(info for info in self.ask('Target.getTargets')['targetInfos'] if info['type'] == 'page')
        self._session = self.ask('Target.attachToTarget', targetId=target['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.ask(f'{domain}.enable')

    def ask(self, method, **params):
        """Sends a command and returns its result."""
        self._number += 1
        message = {'id': self._number, 'method': method, 'params': params}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._out, json.dumps(message).encode() + b'\0')
        while True:
            said = self._next()
            if said.get('id') == self._number:
                if 'error' in said:
                    raise CommandError(method, said['error'])
                return said['result']
            self._note(said)

    def _next(self):
        end = time.monotonic() + PATIENCE
        while b'\0' not in self._read:
            readable, _, _ = select.select([self._in], [], [], max(0, end - time.monotonic()))
            assert readable, 'chromium says nothing'
            piece = os.read(self._in, 1 << 20)
            assert piece, 'chromium has ended'
            self._read += piece
        said, _, self._read = self._read.partition(b'\0')
        return json.loads(said)

    def _note(self, said):
        params = said.get('params', {})
        if said.get('method') == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'])
        elif said.get('method') == 'Runtime.exceptionThrown':
            self.complaints.append(params['exceptionDetails'].get('exception', params['exceptionDetails']))
        elif said.get('method') == 'Log.entryAdded' and params['entry']['level'] in ('error', 'warning'):
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
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
