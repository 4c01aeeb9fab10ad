# SPDX-License-Identifier: GPL-2.0-or-later
"""Headless Chromium, controlled by its DevTools protocol over two pipes: JSON messages, each ended by a NUL byte."""
import asyncio
import contextlib
import fcntl
import itertools
import json
import os
import shutil

from ...site.processes import tail

PROGRAM = 'chromium'
#: No requests of its own, such as for updates, and no QUIC. The sandbox needs rights that a container may lack; the
#: only pages are our own.
FLAGS = ('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
         '--disable-background-networking', '--disable-component-update', '--remote-debugging-pipe',
         '--hide-scrollbars')
#: The longest message that is read: a screenshot of a long page.
MOST_BYTES = 2 ** 27
CLOSE_S = 5.0


class CommandError(Exception):
    """Chromium reported an error for a command."""


class EndedError(ConnectionError):
    """Chromium has ended, or its page has crashed; str() has the end of its log."""


def missing():
    """Why there is no browser here, as text; '' if there is one."""
    return '' if shutil.which(PROGRAM) else f'{PROGRAM}: not found (package {PROGRAM})'


class Chromium:
    """A browser with one page. heard: called with the name and the parameters of each of the page's events."""

    def __init__(self, directory, heard):
        """directory: for its profile, as `profile`, and its log; it is also its home."""
        self._directory, self._heard = directory, heard
        self._numbers, self._answers, self._session = itertools.count(1), {}, None
        self._process = self._out = self._listening = None

    async def start(self, prefix=(), flags=()):
        """Starts it. prefix: of its command line. flags: in addition to FLAGS. Raises EndedError."""
        there, out = os.pipe()
        into, back = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (there, back)]

        def place():
            for fd, number in zip(ends, (3, 4)):
                os.dup2(fd, number)

        with open(f'{self._directory}/chromium.log', 'ab') as log:
            self._process = await asyncio.create_subprocess_exec(
                *prefix, PROGRAM, *FLAGS, *flags, f'--user-data-dir={self._directory}/profile', 'about:blank',
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(3, 4), preexec_fn=place,
                start_new_session=True, env={'PATH': os.environ['PATH'], 'HOME': str(self._directory)})
        for fd in (there, back, *ends):
            os.close(fd)
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(MOST_BYTES)
        self._out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(out, 'wb', 0))
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(into, 'rb', 0))
        self._listening = asyncio.create_task(self._listen(reader))
        target = next(info for info in (await self.ask('Target.getTargets'))['targetInfos'] if info['type'] == 'page')
        attached = await self.ask('Target.attachToTarget', targetId=target['targetId'], flatten=True)
        self._session = attached['sessionId']

    async def ask(self, method, **params):
        """Sends a command and returns its result. Raises CommandError or EndedError."""
        if self._listening.done():
            raise self._ended()
        number = next(self._numbers)
        message = {'id': number, 'method': method, 'params': params}
        if self._session:
            message['sessionId'] = self._session
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._out.write(json.dumps(message).encode() + b'\0')
        return await answer

    def _ended(self):
        return EndedError(f'chromium has ended; the end of its log:\n{tail(f"{self._directory}/chromium.log")}')

    async def _listen(self, reader):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while said := json.loads((await reader.readuntil(b'\0'))[:-1]):
                self._take(said)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._ended())
        self._heard('Inspector.detached', {})

    def _take(self, said):
        if 'id' not in said:
            self._heard(said['method'], said.get('params', {}))
            return
        answer = self._answers.pop(said['id'])
        if answer.done():       # the caller was cancelled
            return
        if 'error' in said:
            answer.set_exception(CommandError(said['error']))
        else:
            answer.set_result(said['result'])

    async def close(self):
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), CLOSE_S)
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.wait()
        if self._listening:
            self._listening.cancel()
        if self._out:
            self._out.close()
