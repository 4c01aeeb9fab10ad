# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults on a real link raise the alerts of conf/prometheus, by the metrics that Squid exports meanwhile; the host of
Prometheus gets these metrics and nothing else."""
import http.client
import json
import pathlib
import subprocess
import time

import pytest
import yaml

from background import PATIENCE
from fieldtrial.site.addresses import GATEWAY_IN4
from fieldtrial.site.world import FORWARD_PORT
from test_reports import families, samples, scrape

RULES = pathlib.Path(__file__).resolve().parents[2] / 'conf/prometheus/msfrs-alerts.yaml'
#: Minutes for which a fault lasts: more than any alert waits for.
LASTS = 40
#: As in docs/user/watching.md; the first lines of squid.conf.
ACCESS = ('acl prometheus src {}', 'acl metrics urlpath_regex ^/squid-internal-mgr/msfrs-metrics$',
          'http_access allow manager metrics prometheus', 'http_access deny manager !localhost')


class Exported:
    """The metrics of a gateway at a time."""

    def __init__(self, link):
        self.at = time.monotonic()
        text = scrape(link)[1]
        self.values = samples(text)
        self.rows = {(sample.name, tuple(sorted(sample.labels.items()))): (family.type, sample.value)
                     for family in families(text) for sample in family.samples}

    def get(self, name):
        return self.values.get((name,), 0)

    def share_past(self):
        return self.get('msfrs_link_utilisation_ratio') - self.get('msfrs_link_own_ratio')


def series(before, after):
    """What Prometheus has if it goes on like this: gauges as now, counters with their growth since `before`."""
    for (name, labels), (kind, value) in after.rows.items():
        growth = (value - before.rows[name, labels][1]) * 60 / (after.at - before.at) if kind == 'counter' else 0
        text = ','.join(f'{key}={json.dumps(word)}' for key, word in (('job', 'msfrs'), ('instance', 'gw'), *labels))
        yield {'series': f'{name}{{{text}}}', 'values': f'{value:f}+{growth:f}x{LASTS}'}


def assert_alert(tmp_path, alert, fires, before, after):
    step = {'expr': f'sum by (instance) (ALERTS{{alertname="{alert}",alertstate="firing"}})', 'eval_time': f'{LASTS}m',
            'exp_samples': [{'labels': '{instance="gw"}', 'value': 1}] if fires else []}
    tests = {'rule_files': [str(RULES)], 'evaluation_interval': '1m', 'tests': [
        {'interval': '1m', 'input_series': list(series(before, after)), 'promql_expr_test': [step]}]}
    path = tmp_path / 'alert_test.yaml'
    path.write_text(yaml.safe_dump(tests))
    done = subprocess.run(['promtool', 'test', 'rules', path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def once(link, condition, what):
    """The metrics with which condition(metrics) is true for the first time."""
    return link.gateway.wait_until(lambda: condition(now := Exported(link)) and now, what)


def test_traffic_past_squid(slow_link, tmp_path):
    slow_link.gateway.start('msfrs_window interval=1s')
    load = slow_link.users.load(slow_link.world.users)
    idle = Exported(slow_link)
    through = once(slow_link, lambda now: now.get('msfrs_link_own_ratio') > 0.85, 'responses have the link')
    assert_alert(tmp_path, 'MsfrsTrafficBesideSquid', False, idle, through)
    load.stop(abort=True)
    load = slow_link.users.load(slow_link.world.users, via='tls')      # is not intercepted
    past = once(slow_link, lambda now: now.share_past() > 0.5, 'it is past Squid')
    assert_alert(tmp_path, 'MsfrsTrafficBesideSquid', True, through, past)
    load.stop(abort=True)


@pytest.mark.parametrize('times', (1, 2))
def test_a_rate_that_the_link_does_not_carry(slow_link, tmp_path, times):
    slow_link.gateway.start('msfrs_window interval=1s', rate=times * slow_link.world.rate_bps)
    load = slow_link.users.load(slow_link.world.users)

    def wanted(more_than):
        return once(slow_link, lambda now: now.get('msfrs_link_wanted_seconds_total') > more_than, 'requests wait')
    before, after = wanted(3), wanted(8)
    assert_alert(tmp_path, 'MsfrsRateNotReached', times == 2, before, after)
    load.stop(abort=True)


def test_prometheus_gets_the_metrics_and_nothing_else(slow_link):
    prometheus, other = slow_link.of('gold')

    def status(user, path):
        with slow_link.world.host_of(user).inside():
            connection = http.client.HTTPConnection(GATEWAY_IN4, FORWARD_PORT, PATIENCE, source_address=(user.v4, 0))
            connection.connect()
        connection.request('GET', path)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    slow_link.gateway.early = tuple(line.format(prometheus.v4) for line in ACCESS)
    slow_link.gateway.start()
    assert status(prometheus, '/squid-internal-mgr/msfrs-metrics') == 200
    assert status(prometheus, '/squid-internal-mgr/msfrs-users') == 403
    assert status(prometheus, '/squid-internal-mgr/menu') == 403
    assert status(other, '/squid-internal-mgr/msfrs-metrics') == 403
