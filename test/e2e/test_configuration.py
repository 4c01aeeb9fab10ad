# SPDX-License-Identifier: GPL-2.0-or-later
"""squid.conf beyond single lines: the dump, included files, and the effect of an error on a running Squid.

The messages for single errors are in test_directives.py.
"""
import http.client
import os
import pathlib
import pwd
import signal
import subprocess
import textwrap

import pytest
import yaml

from background import PATIENCE, wait_until
from fieldtrial.site.netns import temporary_directory
from gateway import OFF
from installation import SQUID

PORT = 3128
LISTENING = 'Accepting HTTP'        #: message in cache.log at every start and reconfiguration
GOOD = ('msfrs on', 'msfrs_link rate=20Mbit', 'msfrs_class gold weight=4', 'msfrs_class bronze weight=1 default',
        'msfrs_access gold allow office')
#: Every directive and every option, with no default value among them.
ALL = ('msfrs on',
       'msfrs_link rate=0.5Gbit interface=lo overhead=5.5% packet_overhead=34 rtt=0.2s shared',
       'msfrs_window target=99.9% interval=500ms growth=1.5 reserve=75% patience=2s floor=20%',
       'msfrs_quantum 48 KB',
       'msfrs_class gold weight=4',
       'msfrs_class silver weight=2.5 quota=1.5GB/week over=bronze',
       'msfrs_class bronze weight=1 default',
       'msfrs_access gold deny guests',
       'msfrs_access gold allow office !guests',
       'msfrs_access silver allow guests',
       'msfrs_user src6/56',
       'msfrs_queue max_wait=1.5min max_per_user=16 max_queued=1000',
       'msfrs_arbiter msf users=fifo wake=paper ahead=32768',
       'msfrs_admission none',
       f'msfrs_excess /dev/shm/msfrs-e2e-{os.getpid()}.sock',
       f'msfrs_quota_file /dev/shm/msfrs-e2e-{os.getpid()}.quota')


class Squid:
    """Squid on a separate host, without users: for its messages about its configuration."""

    def __init__(self, host, directory):
        self.host, self.directory = host, pathlib.Path(directory)
        self.conf = self.directory / 'squid.conf'
        self._process = None
        proxy = pwd.getpwnam('proxy')
        os.chown(self.directory, proxy.pw_uid, proxy.pw_gid)

    def write(self, *lines):
        common = textwrap.dedent(f'''\
            http_port 127.0.0.1:{PORT}
            visible_hostname gateway.test
            dns_nameservers 127.0.0.1
            http_access allow localhost
            cachemgr_passwd none config
            cache_effective_user proxy
            cache_log {self.directory}/cache.log
            access_log none
            pid_filename {self.directory}/squid.pid
            coredump_dir {self.directory}
            shutdown_lifetime 1 second
            acl office src 198.18.1.0/24
            acl guests src 198.18.2.0/24 2001:2:0:2::/64
            ''')
        self.conf.write_text(common + '\n'.join(lines) + '\n')

    def line(self, text):
        """FILE:LINE of a line of the configuration, as in messages."""
        return f'{self.conf}:{self.conf.read_text().splitlines().index(text) + 1}'

    def parse(self, *lines):
        """The result of `squid -k parse`: (exit code, stderr)."""
        self.write(*lines)
        done = subprocess.run(self.host.enter([str(SQUID), '-k', 'parse', '-f', str(self.conf)]), capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        return done.returncode, done.stderr

    def start(self, *lines):
        self.write(*lines)
        self._process = self.host.popen([str(SQUID), '-N', '-f', str(self.conf)], stderr=subprocess.DEVNULL)
        self.wait_until(lambda: f':{PORT} ' in self.host.run('ss', '-ltn'), 'listening')

    def stop(self):
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self):
        """Its exit code, after it has exited; None if it never started."""
        return self._process and self._process.wait(PATIENCE)

    def reconfigure(self, *lines, good=True):
        self.write(*lines)
        before = self.log().count(LISTENING)
        self._process.send_signal(signal.SIGHUP)
        if good:
            self.wait_until(lambda: self.log().count(LISTENING) > before, 'listening again')

    def log(self):
        return (self.directory / 'cache.log').read_text()

    def page(self, action):
        """(Content-Type, text) of a cache manager report."""
        with self.host.inside():
            connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=PATIENCE)
            connection.connect()
        connection.request('GET', f'/squid-internal-mgr/{action}')
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        text = answer.read().decode(errors='replace')     # mgr:config prints garbage at qos_flows
        connection.close()
        return answer.getheader('Content-Type'), text

    def dump(self):
        """The msfrs lines of mgr:config."""
        return [line for line in self.page('config')[1].splitlines() if line.startswith('msfrs')]

    def wait_until(self, condition, what):
        def alive():
            assert self._process.poll() is None, f'Squid ended; {self.log()}'
        return wait_until(condition, what, check=alive)


@pytest.fixture
def squid(fabric):
    with temporary_directory() as directory:
        made = Squid(fabric.host('gw'), directory)
        yield made
        made.stop()


def test_a_dump_parses_to_the_same_configuration(squid):
    squid.start(*ALL)
    first, report = squid.dump(), yaml.safe_load(squid.page('msfrs')[1])
    assert first == list(ALL)
    squid.stop()
    squid.start(*first)
    assert squid.dump() == first
    again = yaml.safe_load(squid.page('msfrs')[1])
    for changing in ('outstanding', 'limit', 'utilisation', 'history'):
        del report['window'][changing], again['window'][changing]
    del report['parties'], again['parties']     # contain its pid
    del report['link']['metered'], again['link']['metered']     # known after the first interval
    del report['classes'][1]['quota']['ends_in'], again['classes'][1]['quota']['ends_in']
    assert again == report


def test_every_option_reaches_the_scheduler(squid):
    squid.start(*ALL)
    report = yaml.safe_load(squid.page('msfrs')[1])
    link, window = report['link'], report['window']
    assert [link[name] for name in ('rate', 'interface', 'overhead', 'packet_overhead', 'rtt')] == [
        500e6, 'lo', 0.055, 34, 0.2]
    assert [window[name] for name in ('target', 'interval', 'growth', 'reserve', 'patience', 'floor')] == [0.999, 0.5, 1.5, 0.75, 2.0, 0.2]
    assert [report[name] for name in ('quantum', 'max_wait', 'max_per_user', 'max_queued')] == [49152, 90, 16, 1000]
    assert (report['arbiter'], report['admission']) == ('msf users=fifo wake=paper ahead=32768', 'none')
    assert [(row['name'], row['weight'], row['default']) for row in report['classes']] == [
        ('gold', 4, False), ('silver', 2.5, False), ('bronze', 1, True)]
    limited = report['classes'][1]['quota']
    assert (limited['bytes'], limited['period'], limited['over']) == (1.5 * 2**30, 'week', 'bronze')


def test_a_mistake_in_an_included_file_names_that_file(squid):
    part = squid.directory / 'msfrs.conf'
    part.write_text('msfrs_class gold weight=4\n\nmsfrs_access gild allow office\n'
                    'msfrs_class bronze weight=1 default\n')
    code, said = squid.parse(f'include {part}')
    assert code
    assert f'{part}:3: msfrs_access: class gild is unknown; known are gold, bronze' in said
    assert (f'Bungled {part} line 3: msfrs_access gild allow office' in said            # Squid 6 says it twice
            or f'FATAL: configuration failure: {part}:3:' in said)


def test_squid_does_not_start_with_a_mistake(squid):
    squid.write('msfrs on')
    done = subprocess.run(squid.host.enter([str(SQUID), '-N', '-f', str(squid.conf)]), capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert done.returncode
    assert f'{squid.line("msfrs on")}: msfrs: on needs the rate of the link' in done.stderr


@pytest.mark.parametrize('wrong', ('msfrs_class gold weight=0', 'refresh_pattern'), ids=('ours', 'one-of-squids'))
def test_reconfiguring_with_a_mistake_ends_squid_as_with_any_directive(squid, wrong):
    squid.start(*GOOD)
    squid.reconfigure(*(line for line in GOOD if 'weight=4' not in line), wrong, good=False)
    assert squid.ended() not in (0, None)
    line = squid.line(wrong).rpartition(':')[2]
    assert f'FATAL: Bungled {squid.conf} line {line}: {wrong}' in squid.log()


def test_switched_off_and_on_again(squid):
    squid.start('msfrs off', *GOOD[1:])
    assert yaml.safe_load(squid.page('msfrs')[1]) == OFF
    squid.reconfigure(*GOOD)
    assert yaml.safe_load(squid.page('msfrs')[1])['scheduling']
    squid.reconfigure('msfrs off', *GOOD[1:])
    assert not yaml.safe_load(squid.page('msfrs')[1])['scheduling']
    assert squid.dump() == ['msfrs off', *GOOD[1:]]
