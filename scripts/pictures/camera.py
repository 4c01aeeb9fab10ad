# SPDX-License-Identifier: GPL-2.0-or-later
"""A browser that is filmed."""
import asyncio
import base64
import contextlib
import pathlib
import time

from fieldtrial.base.errors import TrialError
from fieldtrial.load.traffic import devtools

#: Longest time until a page shows what is waited for, s: after msfrsctl off, what Squid has begun ends within a minute.
PATIENCE_S = 120.0
QUALITY = 92    # of JPEG: the film is compressed once more


class Camera:
    """Chromium. `frames`: (time in s since the epoch, file) of all that was filmed; `loaded`: when a page last was."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.frames, self.loaded = [], None
        self._chromium = devtools.Chromium(directory, self._heard)
        self._tasks = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def on(cls, directory, prefix=(), flags=()):
        """A camera. directory: for the browser's files and the frames; prefix, flags: of devtools.Chromium.start."""
        made = cls(directory)
        try:
            await made._chromium.start(prefix, flags)
            await made.ask('Page.enable')
            yield made
        finally:
            await made._chromium.close()

    async def ask(self, method, **params):
        return await self._chromium.ask(method, **params)

    def _heard(self, method, params):
        if method == 'Page.loadEventFired':
            self.loaded = time.time()
        elif method == 'Page.screencastFrame':
            file = self.directory / f'{len(self.frames):05d}.jpg'
            file.write_bytes(base64.b64decode(params['data']))
            self.frames.append((params['metadata']['timestamp'], file))
            task = asyncio.ensure_future(self.ask('Page.screencastFrameAck', sessionId=params['sessionId']))
            self._tasks.add(task)       # the loop holds weak references only
            task.add_done_callback(self._tasks.discard)

    async def shape(self, width, height, *, dark=False):
        await self.ask('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                       mobile=width < 500)
        await self.ask('Emulation.setEmulatedMedia',
                       features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    async def open(self, url):
        self.loaded = None
        await self.ask('Page.navigate', url=url)

    async def do(self, expression):
        """The value of a JavaScript expression."""
        said = await self.ask('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        return said['result'].get('value')

    async def wait_for(self, expression):
        """Waits until a JavaScript expression is true. Raises TrialError."""
        end = time.monotonic() + PATIENCE_S
        while not await self.do(f'Boolean({expression})'):
            if time.monotonic() > end:
                raise TrialError(f'{expression} is not so after {PATIENCE_S:g} s')
            await asyncio.sleep(0.1)

    async def roll(self):
        """Films from now on: a frame whenever the page looks different."""
        await self.ask('Page.startScreencast', format='jpeg', quality=QUALITY)

    async def cut(self):
        await self.ask('Page.stopScreencast')

    async def picture(self, **how):
        """The bytes of a picture of what is seen; how: parameters of Page.captureScreenshot."""
        return base64.b64decode((await self.ask('Page.captureScreenshot', **{'format': 'png', **how}))['data'])
