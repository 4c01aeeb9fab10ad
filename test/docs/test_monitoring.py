# SPDX-License-Identifier: GPL-2.0-or-later
"""The Grafana dashboard and the Prometheus rules of conf/: they use only metrics and labels that Squid exports, each
alert fires when it should (test/monitoring), and panels show what they say."""
import json
import pathlib
import re
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / 'conf/grafana/msfrs-dashboard.json'
ALERTS = ROOT / 'conf/prometheus/msfrs-alerts.yaml'
ALERT_TESTS = ROOT / 'test/monitoring/alerts_test.yaml'


@pytest.fixture(scope='module', name='emitted')
def _emitted():
    """Names of the samples of a gateway that has every figure, as test/report/ makes sure."""
    names = set(re.findall(r'^msfrs_\w+', (ROOT / 'test/report/gateway.metrics').read_text(), re.MULTILINE))
    assert len(names) > 50
    return names


def promtool(*words):
    """Its output, if it succeeds."""
    done = subprocess.run(['promtool', *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def panels():
    """The panels that show something, without the headings."""
    return [panel for panel in json.loads(DASHBOARD.read_text())['panels'] if panel['type'] != 'row']


def queries():
    """(where, PromQL)"""
    board = json.loads(DASHBOARD.read_text())
    for panel in panels():
        for target in panel['targets']:
            yield f'panel "{panel["title"]}"', target['expr']
    for variable in board['templating']['list']:
        if variable['type'] == 'query':
            yield f'variable {variable["name"]}', variable['query']['query']
    for group in yaml.safe_load(ALERTS.read_text())['groups']:
        for rule in group['rules']:
            yield f'alert {rule["alert"]}', rule['expr']


QUERIES = list(queries())


@pytest.mark.parametrize('where, query', QUERIES, ids=[where for where, _ in QUERIES])
def test_metrics(emitted, where, query):
    names = set(re.findall(r'\bmsfrs_\w+', query))
    assert names or query.startswith('up{') or 'ALERTS{' in query, f'{where} asks for nothing of ours'
    assert names <= emitted, f'{where} names {names - emitted}, which Squid does not write'
    assert set(re.findall(r'(\w+)=~?"', query)) <= {'instance', 'quantile', 'job', 'alertname', 'alertstate'}


def test_panels_have_places():
    """On a grid of 24 columns, without overlaps."""
    taken = set()
    for panel in json.loads(DASHBOARD.read_text())['panels']:
        at = panel['gridPos']
        places = {(x, y) for x in range(at['x'], at['x'] + at['w']) for y in range(at['y'], at['y'] + at['h'])}
        assert not taken & places and at['x'] + at['w'] <= 24, panel['title']
        taken |= places


def alert_rules():
    return [rule for group in yaml.safe_load(ALERTS.read_text())['groups'] for rule in group['rules']]


def test_alerts_say_what_to_do():
    rules = alert_rules()
    assert len({rule['alert'] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule['for'] and rule['labels']['severity'] in ('critical', 'warning', 'info')
        assert set(rule['annotations']) == {'summary', 'description'}
    text = (ROOT / 'docs/user/watching.md').read_text()
    assert re.findall(r'^\| `(Msfrs\w+)` \|', text, re.M) == [rule['alert'] for rule in rules], 'the page has them all'


def test_alerts_are_valid():
    promtool('check', 'rules', '--lint=all', '--lint-fatal', ALERTS)


def test_alerts_fire_when_they_should_and_only_then():
    tests = yaml.safe_load(ALERT_TESTS.read_text())['tests']
    assert [test['name'] for test in tests] == [rule['alert'] for rule in alert_rules()]
    for test in tests:
        fired = [sample['labels'] for step in test['promql_expr_test'] for sample in step['exp_samples']]
        assert fired and all(f'alertname="{test["name"]}"' in labels for labels in fired), test['name']
        assert any('instance="below"' in series['series'] for series in test['input_series']), test['name']
    promtool('test', 'rules', ALERT_TESTS)


def test_panels_are_valid(tmp_path):
    """Their queries, as rules for promtool."""
    rules = [{'record': f'panel:{number}', 'expr': target['expr']}
             for number, target in enumerate(target for panel in panels() for target in panel['targets'])]
    (tmp_path / 'panels.yaml').write_text(yaml.safe_dump({'groups': [{'name': 'panels', 'rules': rules}]}))
    promtool('check', 'rules', tmp_path / 'panels.yaml')


#: A gateway of 20 Mbit/s: gold, weight 4, one user; bronze, weight 1, two. In flight: 2.5 MB/s * 0.8 * (60 + 40) ms.
GATEWAY = {
    'msfrs_link_capacity_bytes_per_second{}': '2.5e6x10', 'msfrs_link_utilisation_ratio{}': '0.9x10',
    'msfrs_link_own_ratio{}': '0.8x10', 'msfrs_link_base_round_trip_seconds{}': '0.06x10',
    'msfrs_link_queue_seconds{}': '0.04x10', 'msfrs_window_queue_target_seconds{}': '0.05x10',
    'msfrs_link_wanted_bytes_total{}': '0+6e7x10', 'msfrs_link_wanted_seconds_total{}': '0+30x10',
    'msfrs_class_weight{class="gold"}': '4x10', 'msfrs_class_weight{class="bronze"}': '1x10',
    'msfrs_class_users{class="gold"}': '1x10', 'msfrs_class_users{class="bronze"}': '2x10',
    'msfrs_class_received_bytes_total{class="gold"}': '0+6e7x10',
    'msfrs_class_received_bytes_total{class="bronze"}': '0+3e7x10',
    'msfrs_class_excess_bytes_total{class="gold"}': '0+0x10',
    'msfrs_class_excess_bytes_total{class="bronze"}': '0+3e7x10',
}


@pytest.mark.parametrize('title, legend, wanted', (
    ('Bypasses Squid', '{{instance}}', {'instance="a"': 0.1}),
    ('Traffic that bypasses Squid', 'all', {'instance="a"': 2e6}),
    ('Traffic that bypasses Squid', '{{class}}', {'class="gold"': 0, 'class="bronze"': 8e6}),
    ('Bytes in flight', 'window', {'instance="a"': 275e3}),
    ('Bytes in flight', 'in flight', {'instance="a"': 200e3}),
    ('Fair share and share by class', '{{class}}: fair share', {'class="gold"': 2 / 3, 'class="bronze"': 1 / 3}),
    ('Fair share and share by class', '{{class}}', {'class="gold"': 0.5, 'class="bronze"': 0.5}),
    ('Carried while requests wait', '{{instance}}', {'instance="a"': 0.8}),
))
def test_what_panels_show(tmp_path, title, legend, wanted):
    """As Grafana asks for them, of gateway `a`; gateway `b` has the same figures."""
    query, = (target['expr'] for panel in panels() if panel['title'] == title for target in panel['targets']
              if target['legendFormat'] == legend)
    series = [{'series': name.replace('{', f'{{instance="{gateway}",job="msfrs",'), 'values': values}
              for name, values in GATEWAY.items() for gateway in 'ab']
    # promtool compares exactly, so with whole thousandths.
    step = {'expr': f'round(1000 * ({query.replace("$instance", "a")}))', 'eval_time': '2m', 'exp_samples': [
        {'labels': f'{{{label}}}', 'value': round(1000 * value)} for label, value in wanted.items()]}
    test = {'tests': [{'interval': '30s', 'input_series': series, 'promql_expr_test': [step]}]}
    (tmp_path / 'panel_test.yaml').write_text(yaml.safe_dump(test))
    promtool('test', 'rules', tmp_path / 'panel_test.yaml')
