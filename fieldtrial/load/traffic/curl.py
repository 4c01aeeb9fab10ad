# SPDX-License-Identifier: GPL-2.0-or-later
"""Closed loop by curl, a process for each user: a client that takes less of the machine than the programs under test.

Each process reports its requests to a file that is polled: latencies are as curl measured them, but the times at which
requests ended and bytes arrived are late by up to LOOK_S. Requests in progress at the end of a run are not recorded.
"""
import asyncio
import itertools
import os
import subprocess
import tempfile

from . import closed, records
from .run import PAUSE_AFTER_FAILURE_S

#: Requests of a user's first process, the factor for each further one, and the maximum: a quick start for all users,
#: and few process starts later.
FIRST, MORE, MOST = 32, 4, 2048
LOOK_S = 0.1
#: Printed for each request on standard error when it has ended.
SAID = '%{stderr}%{urlnum} %{exitcode} %{http_code} %{size_download} %{time_starttransfer} %{time_total}\\n'


async def run(run, inflight, size=None):
    """This generator's users make requests until the end of the run. size: see closed.run."""
    async with asyncio.TaskGroup() as tasks:
        for user in run.spec.mine:
            tasks.create_task(_user(run, user, inflight, closed.offers_of(run, user, size=size)))
            await asyncio.sleep(0)      # starting takes a while: lets bytes be sampled


async def _user(run, user, inflight, offers):
    count, number = FIRST, 0
    while run.now() < run.spec.duration_s:
        await _round(run, user, inflight, list(itertools.islice(offers, count)), number)
        count, number = min(count * MORE, MOST), number + 1


async def _round(run, user, inflight, wanted, number):
    """Runs one process to its end or that of the run. number: of the process, for paths that are not requested
    again."""
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
    if process.returncode > 0:      # stopped at the first failed request
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
    """Records the output since position `at`; returns the position after it."""
    # curl shares this open file description, so seeking here would move the position at which it writes.
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
