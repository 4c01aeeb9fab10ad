# SPDX-License-Identifier: GPL-2.0-or-later
"""The Grafana dashboard and the Prometheus rules of conf/ use only metrics and labels that Squid exports."""
import json
import pathlib
import re

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / 'conf/grafana/msfrs-dashboard.json'
ALERTS = ROOT / 'conf/prometheus/msfrs-alerts.yaml'


@pytest.fixture(scope='module', name='emitted')
def _emitted():
    """Names of the samples of a gateway that has every figure, as test/report/ makes sure."""
    names = set(re.findall(r'^msfrs_\w+', (ROOT / 'test/report/gateway.metrics').read_text(), re.MULTILINE))
    assert len(names) > 50
    return names


def queries():
    """(where, PromQL)"""
    board = json.loads(DASHBOARD.read_text())
    for panel in board['panels']:
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
    assert names or query.startswith('up{'), f'{where} asks for nothing of ours'
    assert names <= emitted, f'{where} names {names - emitted}, which Squid does not write'
    assert set(re.findall(r'(\w+)=~?"', query)) <= {'instance', 'quantile', 'job'}
    assert query.count('(') == query.count(')') and query.count('{') == query.count('}')


def test_panels_have_places():
    """On a grid of 24 columns, without overlaps."""
    taken = set()
    for panel in json.loads(DASHBOARD.read_text())['panels']:
        at = panel['gridPos']
        places = {(x, y) for x in range(at['x'], at['x'] + at['w']) for y in range(at['y'], at['y'] + at['h'])}
        assert not taken & places and at['x'] + at['w'] <= 24, panel['title']
        taken |= places


def test_alerts_say_what_to_do():
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())['groups'] for rule in group['rules']]
    assert len({rule['alert'] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule['for'] and rule['labels']['severity'] in ('critical', 'warning', 'info')
        assert set(rule['annotations']) == {'summary', 'description'}
