# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the gateway itself, and clients that end half of their connection: Squid does not end, and nobody is cut
off."""
import errno
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from background import content, wait_until
from both_ends import both_ends_of
from fieldtrial.base.paths import ROOT
from fieldtrial.site.world import INTERCEPT_PORT, INTERCEPT_TLS_PORT, LAN
from gateway import NARROW
from test_limits import hold_up
from test_plugins import WRONG, compile_shared, place    # noqa: F401 (the last is a fixture)

pytestmark = pytest.mark.link(rate_bps=8e6, rtts_ms=(2.0,))
#: The configuration that administrators copy.
SHIPPED = (ROOT / 'conf/squid/squid.conf').read_text()


def shipped(name):
    """A line of the shipped squid.conf."""
    return re.search(rf'^{name} .*', SHIPPED, re.MULTILINE)[0]


class Disk:
    """A small file system."""

    def __init__(self, path):
        self.path, self._files = path, 0
        path.mkdir()
        subprocess.run(('mount', '-t', 'tmpfs', '-o', 'size=128k,nr_inodes=16,mode=1777', 'msfrs-test', path),
                       check=True)

    def fill(self):
        """Leaves neither a block nor a file."""
        for _ in range(16):
            try:
                with (self.path / f'filler{self._files}').open('wb', buffering=0) as file:
                    self._files += 1
                    while file.write(bytes(4096)):
                        pass
            except OSError as problem:
                assert problem.errno == errno.ENOSPC

    def empty(self):
        for file in self.path.glob('filler*'):
            file.unlink()

    def close(self):
        subprocess.run(('umount', '-l', self.path), check=True)


@pytest.fixture
def disk(slow_link):
    made = Disk(slow_link.gateway.directory / 'disk')
    yield made
    slow_link.gateway.stop()
    made.close()


@pytest.mark.parametrize('module', ('stdio', 'daemon'))
def test_a_full_file_system_of_the_logs(slow_link, disk, module):
    """With the log line as shipped, and with that of Debian's Squid: full while Squid runs, when the logs are rotated, and
    when Squid starts. Once there is room, the log continues without a command."""
    gateway, log = slow_link.gateway, disk.path / 'access.log'
    line = shipped('access_log').replace('/var/log/msfrs', str(disk.path)) if module == 'stdio' else \
        f'access_log daemon:{log} logformat=msfrs'
    lines = ('logformat msfrs %ts.%03tu %>a %ru', line, shipped('logfile_rotate'),
             f'cache_log {disk.path}/cache.log')

    def served(times=3):
        for _ in range(times):
            assert slow_link.users.get(slow_link.of('gold')[0], via='intercept').wait().good

    def logged():
        return len(log.read_text().splitlines()) if log.exists() else 0

    def rotate():
        """As logrotate does."""
        if log.exists():
            log.rename(log.with_suffix('.old'))
        assert gateway.command('-k', 'rotate').returncode == 0
        opened = pathlib.Path(f'/proc/{next(iter(gateway.processes()))}/fd')
        gateway.wait_until(lambda: not any(os.readlink(file).endswith('access.old') for file in opened.iterdir()),
                           'the log is closed')

    gateway.start(*lines)
    served()
    gateway.wait_until(lambda: logged() == 3, lambda: f'3 lines: {logged()}')
    disk.fill()
    served(100)
    rotate()
    served()
    rotate()
    served()
    disk.empty()
    served()
    gateway.wait_until(logged, 'the log goes on')
    assert module == 'daemon' or 'is written again after' in (disk.path / 'cache.log').read_text()

    log.unlink()
    disk.fill()
    gateway.stop()
    gateway.start(*lines)
    served()
    disk.empty()
    served()
    gateway.wait_until(logged, 'the log goes on')
    assert all(len(line.split()) <= 3 for line in log.read_text().splitlines()), 'a record begins a line'


HALF = 'half_closed_clients on', 'msfrs_quantum 4 KB'
ANSWER = content('answer', 0, 3000)
HEAD = f'HTTP/1.1 200 OK\r\nContent-Length: {len(ANSWER)}\r\n\r\n'.encode()


def request(ends, method='GET', header=''):
    return f'{method} http://{ends.address}/ HTTP/1.1\r\nHost: {ends.address}\r\n{header}\r\n'.encode()


def let_pass(link, seconds):
    """A transfer past Squid takes so long."""
    assert link.users.get(link.of('silver')[0], via='beside', size=seconds * 1000, pace=1000).wait().good


@pytest.mark.sanitized
def test_a_client_that_closes_its_half(slow_link):
    """Squid looks once a second whether the other half was closed, too."""
    with both_ends_of(slow_link, HALF) as ends:
        user = slow_link.of('gold')[0]
        pairs = {times: ends.plain(user, request(ends) * times) for times in (1, 2)}
        for pair in pairs.values():
            pair.client.leave()
        let_pass(slow_link, 4)
        for times, pair in pairs.items():
            for count in range(1, times + 1):
                slow_link.gateway.wait_until(lambda: pair.server.heard.count(b'GET ') == count, 'the request')
                pair.server.say(HEAD + ANSWER)
                slow_link.gateway.wait_until(lambda: pair.client.heard.count(ANSWER) == count,
                                             lambda: f'answer {count} of {times}: {pair.client.heard[:400]}')
        cut = ends.plain(user, request(ends, 'POST', 'Content-Length: 1000\r\n') + bytes(100))
        cut.client.leave()
        slow_link.gateway.wait_until(lambda: cut.server.over, 'a request without its end is given up')
        let_pass(slow_link, 3)


SHORT = ('client_lifetime 2 seconds', 'request_timeout 2 seconds', 'pconn_timeout 2 seconds',
         'client_idle_pconn_timeout 2 seconds', 'write_timeout 2 seconds', 'request_start_timeout 2 seconds')


@pytest.mark.parametrize('via', ('connect', 'tls'))
def test_an_idle_tunnel_lives_as_long_as_read_timeout(slow_link, via):
    """That is the directive which the shipped configuration raises, for push services; all others are short here."""
    slow_link.world.start_names(same=True)      # Squid resolves the name of a CONNECT, and there is one server
    gateway = slow_link.gateway.start(*SHORT, shipped('read_timeout'))
    gateway.intercept_tls()
    how = {'via': via, 'name': 's01.test'}
    idle = slow_link.users.get(slow_link.of('gold')[0], gate='later', **how)
    let_pass(slow_link, 5)
    assert not idle.finished
    slow_link.origin.open_gate('later')
    assert idle.wait().good
    gateway.reconfigure('read_timeout 2 seconds')
    cut = slow_link.users.get(slow_link.of('gold')[0], gate='never', **how)
    assert not cut.wait().whole


#: A library to preload: the time of day is as many seconds ahead as the file `ahead` has bytes, and as many back as `back`
#: has.
CLOCK = r'''
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long size(const char *path) { struct stat s; return stat(path, &s) == 0 ? s.st_size : 0; }
int clock_gettime(clockid_t clock, struct timespec *t)
{
    const int result = syscall(SYS_clock_gettime, clock, t);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec += size(PLACE "/ahead") - size(PLACE "/back");
    return result;
}
int gettimeofday(struct timeval *t, void *zone)
{
    struct timespec s;
    const int result = clock_gettime(CLOCK_REALTIME, &s);
    t->tv_sec = s.tv_sec;
    t->tv_usec = s.tv_nsec / 1000;
    return result;
}
time_t time(time_t *t)
{
    struct timespec s;
    clock_gettime(CLOCK_REALTIME, &s);
    return t ? *t = s.tv_sec : s.tv_sec;
}
'''


def test_a_clock_that_is_set(slow_link, place, monkeypatch):    # noqa: F811 (a fixture)
    """Three hours ahead, as by the first answer of a time server: nobody is cut who may be idle for two. Six hours back:
    timeouts and the scheduler run on."""
    compile_shared(place / 'clock.so', CLOCK, f'-DPLACE="{place}"')
    slow_link.world.start_names(same=True)
    gateway = slow_link.gateway
    with monkeypatch.context() as preloaded:
        preloaded.setenv('LD_PRELOAD', str(place / 'clock.so'))
        gateway.start(shipped('read_timeout'))
    gateway.intercept_tls()
    (one, two), other = slow_link.of('gold'), slow_link.of('silver')[0]
    idle = [slow_link.users.get(user, via=via, name='s01.test', gate='later')
            for user in (one, two) for via in ('connect', 'tls', 'proxy')]
    gateway.wait_for(queued=0, in_flight=0, silent=len(idle))
    (place / 'ahead').touch()
    os.truncate(place / 'ahead', 3 * 3600)
    assert slow_link.users.get(other).wait().good
    gateway.wait_until(lambda: 'The clock was set by 10' in gateway.cache_log(), 'Squid has noticed')
    let_pass(slow_link, 3)
    assert not any(fetch.finished for fetch in idle)
    slow_link.origin.open_gate('later')
    assert all(fetch.wait().good for fetch in idle)

    gateway.reconfigure('read_timeout 3 seconds')
    cut = slow_link.users.get(one, via='connect', gate='never')
    gateway.wait_for(queued=0, in_flight=0, silent=1)
    (place / 'back').touch()
    os.truncate(place / 'back', 6 * 3600)
    assert not cut.wait().whole
    assert slow_link.users.get(other, size=100_000).wait().good


#: Runs msfrsctl as installed below a directory.
CTL = 'import sys; from msfrsctl.cli import main; sys.exit(main(sys.argv[2:], prefix=sys.argv[1]))'
#: A scheduler that never returns.
LOOPS = WRONG.replace('pick() { return 0; }', 'pick() { for (;;) __asm__(""); }')


class Watch:
    """msfrsctl watch on a link's gateway."""

    def __init__(self, link):
        world, directory = link.world, link.gateway.directory
        (directory / 'share/msfrs').mkdir(parents=True)
        (directory / 'share/msfrs/iptables').symlink_to(ROOT / 'conf/iptables')
        (directory / 'iptables.conf').write_text(
            f'inside = {LAN}\nredirect-ports = {INTERCEPT_PORT},{INTERCEPT_TLS_PORT}\n')
        self._log = world.directory / 'watch.log'
        world.start(world.gateway, ['env', f'PYTHONPATH={ROOT}', sys.executable, '-c', CTL, directory, 'watch', '--etc',
                                    directory, '--squid', link.gateway.installation.program, '--squid-conf',
                                    directory / 'squid.conf', '--state', directory / 'state'], self._log.name)

    def said(self):
        return self._log.read_text()


def asked_from_here(link):
    """What msfrsctl watch does with a port at which connections wait."""
    code = f'from msfrsctl.system import System; print(System().ends("127.0.0.1", {INTERCEPT_PORT}, 10))'
    return link.world.gateway.run('env', f'PYTHONPATH={ROOT}', sys.executable, '-c', code).strip()


@pytest.mark.parametrize('how', ('stopped', 'loops'))
def test_a_squid_that_hangs_is_ended(slow_link, place, how):    # noqa: F811 (a fixture)
    """New connections are sent past it before; its unit, which is not here, starts it again."""
    gateway, (one, two) = slow_link.gateway, slow_link.of('gold')
    if how == 'stopped':
        gateway.start(NARROW, 'msfrs_queue max_queued=1')
        hold_up(slow_link)
        waiting = slow_link.users.get(one)
        gateway.wait_for(queued=1, in_flight=1)
        assert asked_from_here(slow_link) == 'True', 'a full queue does not matter'
        assert slow_link.users.get(two, via='intercept').wait().status == 503
        assert not waiting.finished
    else:
        compile_shared(place / 'other.so', LOOPS)
        gateway.start(f'msfrs_arbiter {place}/other.so')
    watch = Watch(slow_link)
    if how == 'stopped':
        gateway.send(signal.SIGSTOP)
    else:
        slow_link.users.get(one, via='intercept')
        assert asked_from_here(slow_link) == 'False'
    slow_link.users.get(two, via='intercept')
    wait_until(lambda: not gateway.running, watch.said)
    assert 'has not answered for 15 s' in watch.said()
    assert slow_link.users.get(two, via='intercept').wait().good, 'past Squid'
    gateway.start()
    assert slow_link.users.get(two, via='intercept').wait().good
