# SPDX-License-Identifier: GPL-2.0-or-later
"""Squid with several workers: what it says as a whole."""
import contextlib
import http.client

import pytest
import yaml

from background import PATIENCE, wait_until
from fieldtrial.site.netns import temporary_directory
from fieldtrial.site.world import private_sockets, sockets_of
from gateway import harm
from installation import SQUID
from test_configuration import PORT, Squid
from test_reports import OPENMETRICS, families

#: More than what a message between the workers could hold.
CLASSES = [f'class-{number:02d}-with-a-long-name' for number in range(40)]


class Workers(Squid):
    """Two of them."""

    def start(self, *lines):
        self.write('workers 2', *lines)
        self._process = self.host.popen([*private_sockets(SQUID), str(SQUID), '--foreground', '-n', 'workers',
                                         '-f', str(self.conf)])
        self.wait_until(lambda: 200 == self.ask('msfrs')[0], 'two workers that answer')

    def ask(self, action):
        """(status, Content-Type, text) of a cache manager report; status 0: nobody is there."""
        with self.host.inside():
            connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=PATIENCE)
            with contextlib.suppress(ConnectionError):
                connection.connect()
        if not connection.sock:
            return 0, '', ''
        with contextlib.closing(connection):
            connection.request('GET', f'/squid-internal-mgr/{action}')
            answer = connection.getresponse()
            return answer.status, answer.getheader('Content-Type'), answer.read().decode()


@pytest.fixture
def workers(fabric):
    if not sockets_of(SQUID).is_dir():
        pytest.skip(f'{SQUID} has been moved')
    with temporary_directory() as directory:
        made = Workers(fabric.host('gw'), directory)
        made.start('msfrs on', 'msfrs_link rate=20Mbit', *(f'msfrs_class {name} weight=1' for name in CLASSES),
                   'msfrs_class rest weight=1 default')
        yield made
        assert made.stop() == 0
        assert not harm(made.log())


def test_reports(workers):
    """Both are of all workers, and in one piece each."""
    def rate():
        return yaml.safe_load(workers.ask('msfrs')[2]).get('link', {}).get('rate')

    wait_until(lambda: rate() == 20 * 10**6, 'both workers')
    status, kind, text = workers.ask('msfrs-metrics')
    assert (status, kind) == (200, OPENMETRICS)
    assert text.endswith('# EOF\n') and text.count('# EOF') == 1 and text.count('# TYPE msfrs_class_users ') == 1
    found = {family.name: family for family in families(text)}
    assert [sample.value for sample in found['msfrs_link_capacity_bytes_per_second'].samples] == [2_500_000]
    for name in ('msfrs_class_users', 'msfrs_class_requests'):
        assert [sample.labels for sample in found[name].samples] == [{'class': cls} for cls in [*CLASSES, 'rest']]
    assert len(yaml.safe_load(workers.ask('msfrs')[2])['classes']) == 41
