# SPDX-License-Identifier: GPL-2.0-or-later
"""Closed loop by curl, a process for each user: a client that takes less of the machine than what is measured.

What a process says of its requests goes to a file that is looked into from time to time: so latencies are as curl has
measured them, and the times of ends, and of bytes, are late by up to LOOK_S. What is under way at the end of a run is
in no record.
"""
import asyncio
import itertools
import os
import subprocess
import tempfile

from . import closed, records
from .run import PAUSE_AFTER_FAILURE_S

#: Requests of a user's first process, by how much more each further one has, and the most: a quick start for all, and
#: few starts later.
FIRST, MORE, MOST = 32, 4, 2048
LOOK_S = 0.1
#: For each request, when it has ended, on standard error.
SAID = '%{stderr}%{urlnum} %{exitcode} %{http_code} %{size_download} %{time_starttransfer} %{time_total}\\n'


async def run(run, inflight, size=None):
    """This generator's users make requests until the run's time is over. size: see closed.run."""
    async with asyncio.TaskGroup() as tasks:
        for user in run.spec.mine:
            tasks.create_task(_user(run, user, inflight, closed.offers_of(run, user, size=size)))
            await asyncio.sleep(0)      # a start takes a while: bytes are sampled meanwhile


async def _user(run, user, inflight, offers):
    count, number = FIRST, 0
    while run.now() < run.spec.duration_s:
        await _round(run, user, inflight, list(itertools.islice(offers, count)), number)
        count, number = min(count * MORE, MOST), number + 1


async def _round(run, user, inflight, wanted, number):
    """One process, to its end or that of the run. number: of the process, for names that are not asked for again."""
    with tempfile.TemporaryFile('w+') as urls, tempfile.TemporaryFile('a+b') as said:
        for index, offer in enumerate(wanted):
            where = f'{offer.server.name}:{run.spec.port}'
            urls.write(f'url = "http://{where}/b/{offer.size}/{user.name}-{number}-{index}"\n')
        urls.seek(0)
        process = subprocess.Popen(_command(run, user, inflight), stdin=urls, stdout=subprocess.DEVNULL, stderr=said)
        at = 0
        try:
            while process.poll() is None and run.now() < run.spec.duration_s:
                await asyncio.sleep(LOOK_S)
                at = _take(run, user, wanted, said, at)
        finally:
            process.terminate()
            process.wait()
            _take(run, user, wanted, said, at)
    if process.returncode > 0:      # at the first request that failed
        await asyncio.sleep(PAUSE_AFTER_FAILURE_S)


def _command(run, user, inflight):
    made = ['curl', '-q', '--silent', '--no-progress-meter', '--fail-early', '--globoff', '--noproxy', '*', '--parallel',
            '--parallel-immediate', '--parallel-max', str(inflight), '--write-out', SAID, '--config', '-']
    for server in run.offers.reachable(user):
        source, address = run.road(user, server)
        shown = f'[{address}]' if ':' in address else address
        made += ['--resolve', f'{server.name}:{run.spec.port}:{shown}']
    return [*made, '--interface', source]


def _take(run, user, wanted, said, at):
    """Records what has been said since position `at`; the position after it."""
    # curl has the same open file: a position that is set here is where it wrote last a moment later.
    lines, newline, _ = os.pread(said.fileno(), os.fstat(said.fileno()).st_size - at, at).rpartition(b'\n')
    now = run.now()
    for line in lines.splitlines():
        number, code, status, size, first, total = line.split()
        offer, start = wanted[int(number)], now - float(total)
        request = records.Request(user, offer.server, offer.size, 'http', 'object', '', start, t_end=now)
        request.status = int(status)
        if float(first):
            request.t_first_byte = start + float(first)
        run.told(request, int(size), '' if code == b'0' else f'curl: exit code {int(code)}')
    return at + len(lines) + len(newline)
