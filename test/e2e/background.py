# SPDX-License-Identifier: GPL-2.0-or-later
"""What the traffic of the tests stands on: an event loop in a thread of its own, waiting, and bodies to recognise."""
import asyncio
import random
import threading
import time
import zlib

#: Seconds that anything may take which must happen; far more than it takes, also with a sanitized Squid.
PATIENCE = 40.0

#: A prime number of bytes, so that no two places of a body look alike within what tests transfer.
_PATTERN = random.Random(1).randbytes(1_000_003)


def content(key, offset, length):
    """A piece of the body that belongs to a key: the same for the server that sends it and the client that checks."""
    start = (zlib.crc32(key.encode()) + offset) % len(_PATTERN)
    piece = _PATTERN[start:start + length]
    while len(piece) < length:
        piece += _PATTERN[:length - len(piece)]
    return piece


def wait_until(condition, what, timeout=PATIENCE, check=None):
    """Waits until condition() is true and returns what it gave. `check` is called meanwhile, to fail early."""
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
    """An asyncio event loop that runs beside the test. Usable with `with`; leaving it cancels what is left."""

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
        """What the coroutine returns, once it has."""
        return self.start(coroutine).result(PATIENCE)

    def start(self, coroutine):
        """Lets a coroutine run; its concurrent Future, which also cancels it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    async def _cancel_all(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=PATIENCE / 4) if tasks else None
