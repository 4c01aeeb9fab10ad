# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of the tests' traffic: an event loop in a thread of its own, waiting, and recognisable bodies."""
import asyncio
import random
import threading
import time
import zlib

#: Seconds that any expected event may take; far more than needed, even with a sanitized Squid.
PATIENCE = 40.0

#: A prime number of bytes, so that the pattern does not repeat within the bodies that tests transfer.
_PATTERN = random.Random(1).randbytes(1_000_003)


def content(key, offset, length):
    """A piece of the body of a key: the same for the server that sends it and the client that checks it."""
    start = (zlib.crc32(key.encode()) + offset) % len(_PATTERN)
    piece = _PATTERN[start:start + length]
    while len(piece) < length:
        piece += _PATTERN[:length - len(piece)]
    return piece


def wait_until(condition, what, timeout=PATIENCE, check=None):
    """Waits until condition() is true and returns its result. `check` is called meanwhile, to fail early."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if check:
            check()
        assert time.monotonic() < end, f'did not come true within {timeout:g} s: {what() if callable(what) else what}'
        time.sleep(0.02)


class Loop:
    """An asyncio event loop that runs beside the test. A context manager; leaving it cancels all remaining tasks."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name='traffic', daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.call(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()

    def call(self, coroutine):
        """Runs a coroutine and returns its result."""
        return self.start(coroutine).result(PATIENCE)

    def start(self, coroutine):
        """Starts a coroutine; returns its concurrent Future, which can also cancel it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    async def _cancel_all(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=PATIENCE / 4) if tasks else None
