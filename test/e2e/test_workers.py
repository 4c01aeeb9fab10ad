# SPDX-License-Identifier: GPL-2.0-or-later
"""Squid with several workers, which schedule and report alone: what it says as a whole."""
import contextlib
import http.client

import pytest
import yaml

from background import PATIENCE, wait_until
from fieldtrial.site.netns import temporary_directory
from gateway import harm
from installation import SQUID
from test_configuration import PORT, Squid
from test_reports import OPENMETRICS, families

#: More than what a message between the workers could hold.
CLASSES = [f'class-{number:02d}-with-a-long-name' for number in range(40)]
SOCKETS = SQUID.parents[1] / 'var/run/squid'


class Workers(Squid):
    """Two of them."""

    def start(self, *lines):
        self.write('workers 2', *lines)
        # Their sockets are where Squid was installed, for root alone. `ip netns exec` gives each its own mounts.
        private = f'mount -t tmpfs -o mode=777 msfrs {SOCKETS} && exec "$@"'
        self._process = self.host.popen(['sh', '-c', private, 'sh', str(SQUID), '--foreground', '-n', 'workers',
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
    if not SOCKETS.is_dir():
        pytest.skip(f'{SOCKETS} is not there: this Squid has been moved')
    with temporary_directory() as directory:
        made = Workers(fabric.host('gw'), directory)
        made.start('msfrs on', 'msfrs_link rate=20Mbit', *(f'msfrs_class {name} weight=1' for name in CLASSES),
                   'msfrs_class rest weight=1 default')
        yield made
        assert made.stop() == 0
        assert not harm(made.log())


def test_reports(workers):
    """The metrics are one page of OpenMetrics; the YAML is a document of each."""
    wait_until(lambda: workers.ask('msfrs-metrics')[2].count('msfrs_scheduling{') == 2, 'both answer')
    status, kind, text = workers.ask('msfrs-metrics')
    assert (status, kind) == (200, OPENMETRICS)
    assert text.endswith('# EOF\n') and text.count('# EOF') == 1 and text.count('# TYPE msfrs_class_users ') == 1
    found = {family.name: family for family in families(text)}
    assert {sample.labels['worker'] for family in found.values() for sample in family.samples} == {'1', '2'}
    rate = {sample.labels['worker']: sample.value for sample in found['msfrs_link_capacity_bytes_per_second'].samples}
    assert rate == {'1': 1_250_000, '2': 1_250_000}
    for name in ('msfrs_class_users', 'msfrs_class_requests'):
        assert sorted((sample.labels['worker'], sample.labels['class']) for sample in found[name].samples) == [
            (worker, cls) for worker in '12' for cls in [*CLASSES, 'rest']]
    documents = list(yaml.safe_load_all(workers.ask('msfrs')[2]))
    assert [(document['kid'], document['link']['rate']) for document in documents] == [(1, 10**7), (2, 10**7)]
