# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory that workers share: whatever happens to /dev/shm, with or without memory from the kernel, they serve."""
import contextlib
import http.client
import os
import signal

import pytest
import yaml

from background import PATIENCE, wait_until
from fieldtrial.site.netns import temporary_directory
from fieldtrial.site.world import sockets_of
from gateway import harm
from installation import SQUID
from neighbours import gateways
from test_configuration import PORT
from test_reports import families
from test_workers import Workers

pytestmark = pytest.mark.skipif(not sockets_of(SQUID).is_dir(), reason='this Squid has been moved')

LINES = ('msfrs on', 'msfrs_link rate=20Mbit', 'msfrs_class all weight=1 default', 'cache deny all',
         'http_access allow all')
#: Each user's entry is on a separate page, which the user's first request touches.
USERS = 60
OWN_SHM = 'sh', '-c', 'mount -t tmpfs -o size=64M msfrs /dev/shm && exec "$@"', 'sh'
NO_MORE = 'unshare', '--ipc', 'sh', '-c', 'echo 0 > /proc/sys/kernel/shmmni && exec "$@"', 'sh'


@contextlib.contextmanager
def squid(fabric, number, within=(), expected=''):
    """expected: text of the errors that may occur."""
    with temporary_directory() as directory:
        made = Workers(fabric.host('gw'), directory, number, within)
        yield made
        assert made.stop() == 0
        assert all(expected and expected in line for line in harm(made.log())), made.log()


def statuses(made):
    """The statuses that USERS get for an object of a server that does not run, for which Squid itself answers 503."""
    found = set()
    for number in range(USERS):
        with made.host.inside():
            connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=PATIENCE,
                                                    source_address=(f'127.0.1.{number + 1}', 0))
            connection.connect()
        with contextlib.closing(connection):
            connection.request('GET', 'http://127.0.0.1:9/')
            with contextlib.suppress(http.client.HTTPException, ConnectionError):
                found.add(connection.getresponse().status)
                continue
        found.add(0)
    return found


def live(made):
    return [(party['live'], party['pid']) for party in made.parties()]


def shares(made, number):
    """Starts Squid; all its workers share the link."""
    made.start(*LINES)
    wait_until(lambda: [party for party, _ in live(made)] == [True] * number, lambda: live(made))


def spoilt(made, command):
    """Checks that users are served by the same workers as before, after a command in Squid's mount namespace."""
    shares(made, 3)
    before = live(made)
    made.host.run('nsenter', '--target', str(made.pid()), '--mount', 'sh', '-c', command)
    assert statuses(made) == {503}
    assert live(made) == before
    assert yaml.safe_load(made.ask('msfrs')[2])['alone'] is None


def test_a_full_dev_shm(fabric):
    with squid(fabric, 3, OWN_SHM) as made:
        spoilt(made, 'dd if=/dev/zero of=/dev/shm/fill bs=64k 2>/dev/null; df /dev/shm | grep -q 100%')


def test_a_file_that_the_group_cuts_short(fabric):
    """None exists for Squid's ledger. Squid's own files are accessible only to its user."""
    with squid(fabric, 3, OWN_SHM) as made:
        spoilt(made, 'for name in /dev/shm/*msfrs*; do [ ! -e "$name" ] || truncate --size 0 "$name"; done')


@pytest.mark.parametrize('number', (1, 2))
def test_no_memory_to_share(fabric, number):
    with squid(fabric, number, NO_MORE, 'schedules alone') as made:
        made.start(*(line + ' shared' if 'msfrs_link' in line else line for line in LINES))
        wait_until(lambda: yaml.safe_load(made.ask('msfrs')[2])['link']['rate'] == 20e6, 'all workers')
        report = yaml.safe_load(made.ask('msfrs')[2])
        assert report['alone'].startswith('since what they share cannot be used: ')
        assert 'parties' not in report
        degraded = next(family for family in families(made.ask('msfrs-metrics')[2])
                        if family.name == 'msfrs_ledger_degraded')
        assert [sample.value for sample in degraded.samples] == [1]
        assert statuses(made) == {503}
        said = [line for line in made.log().splitlines() if 'schedules alone' in line]
        assert len(said) == 1 + number, said
        assert 'No space left on device; kernel.shmmax, shmall or shmmni (sysctl) allow no more' in said[0]


def test_nothing_is_left_at_the_end_and_what_was_left_is_replaced(fabric):
    with squid(fabric, 2) as made:
        memory = gateways.Memory(f'/{made.name}-msfrs_ledger.shm')
        shares(made, 2)
        left = memory.map().slot(0)
        for pid in made.host.pids():
            os.kill(pid, signal.SIGKILL)
        made.ended()
        memory.map()    # it has not been removed
        shares(made, 2)
        assert memory.map().slot(0).pid != left.pid
    with pytest.raises(FileNotFoundError):
        memory.map()
