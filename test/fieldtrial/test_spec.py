# SPDX-License-Identifier: GPL-2.0-or-later
"""What a spec may say, and the exact words with which the rest is refused."""
import json

import pytest

from fieldtrial.load import spec as specs
from fieldtrial.load.traffic import sizes
from fieldtrial.base.strict import SpecError
from fieldtrial.site import grid
from simulated import data

KINDS = ('https-backlogged, https-pages, https-open, disturbed, few, bypass, backlogged, unequal, phases, pages, '
         'open, cbr, excess, url-list')
WRONG = [
    ({'version': 2}, 'version: 2 is not 1'),
    ({'wordload': 'open'}, 'wordload: no such key'),
    ({'workload': 'closed'}, f'workload: "closed" is not one of {KINDS}'),
    ({'parameters': [4]}, 'parameters: [4] is not an object {name: value}'),
    ({'parameters': {'inflight': 0}}, 'parameters.inflight: 0 is not a whole number from 1 to 256 requests'),
    ({'parameters': {'inflight': True}}, 'parameters.inflight: True is not a whole number from 1 to 256 requests'),
    ({'parameters': {'inflight': 1.5}}, 'parameters.inflight: 1.5 is not a whole number from 1 to 256 requests'),
    ({'parameters': {'think_s': 'nan'}}, "parameters.think_s: 'nan' is not a number from 0 to 3600 s"),
    ({'parameters': {'load': 0.85}},
     'parameters.load: workload backlogged has no such parameter (it has: inflight, think_s)'),
    ({'seed': -1}, 'seed: -1 is not a number of at least 0'),
    ({'seed': 1.5}, 'seed: 1.5 is not a whole number'),
    ({'seed': float('inf')}, 'seed: Infinity is not a number of at least 0'),
    ({'duration_s': 0}, 'duration_s: 0 is not a number of at least 0.1 and at most 86400'),
    ({'duration_s': float('nan')}, 'duration_s: NaN is not a number of at least 0.1 and at most 86400'),
    ({'drain_s': '5'}, 'drain_s: "5" is not a number of at least 0 and at most 3600'),
    ({'rate_bps': 100}, 'rate_bps: 100 is not a number of at least 8000 and at most 1e+11'),
    ({'classes': []}, 'classes: [] is not a list of 1 to 1000'),
    ({'classes': ['gold', 'gold']}, 'classes: ["gold", "gold"] is not a list without repeats'),
    ({'classes': ['gold', 'a b']},
     'classes[1]: "a b" is not a name of letters, digits, "_", "." and "-" (at most 63)'),
    ({'users': [3]}, 'users[0]: 3 is not an object {...}'),
    ({'users': [{'name': 'a', 'class': 'lead', 'addresses': ['198.18.0.1']}]},
     'users[0].class: "lead" is not one of gold, silver, bronze'),
    ({'users': [{'name': 'a', 'class': 'gold', 'addresses': ['198.18.0.256']}]},
     'users[0].addresses[0]: "198.18.0.256" is not an IPv4 or IPv6 address'),
    ({'users': [{'name': 'a', 'class': 'gold'}]}, 'users[0].addresses: missing'),
    ({'users': [{'name': 'a', 'class': 'gold', 'addresses': ['::1'], 'age': 3}]},
     'users[0].age: no such key'),
    ({'users': 2 * [{'name': 'a', 'class': 'gold', 'addresses': ['::1']}]},
     'users: name "a" is used twice; each must be another'),
    ({'servers': [{'name': 'a..b'}]}, 'servers[0].name: "a..b" is not a host name'),
    ({'servers': [{'name': '-a.test'}]}, 'servers[0].name: "-a.test" is not a host name'),
    ({'servers': [{'name': 64 * 'a' + '.test'}]}, f'servers[0].name: "{64 * "a"}.test" is not a host name'),
    ({'servers': [{'name': 's', 'rtt_ms': -1}]},
     'servers[0].rtt_ms: -1 is not a number of at least 0 and at most 60000'),
    ({'sizes': {'distribution': 'pareto'}}, 'sizes.distribution: "pareto" is not lognormal or fixed'),
    ({'sizes': {'distribution': 'fixed', 'size': 1}},
     'sizes.size: 1 is not a number of at least 64 and at most 1.28e+08'),
    ({'sizes': {'distribution': 'lognormal', 'mean': 3}}, 'sizes.mean: no such key'),
    ({'tls_share': 0.5},
     'tls_ca: "" is not a file with the certificate of the servers (needed with tls_share > 0, and for workloads over '
     'HTTP/2)'),
    ({'workload': 'https-open', 'tls_ca': '/none'},
     'tls_ca: "/none" is not a file with the certificate of the servers (needed with tls_share > 0, and for workloads '
     'over HTTP/2)'),
    ({'port': 0}, 'port: 0 is not a number of at least 1 and at most 65535'),
]


@pytest.mark.parametrize('change, message', WRONG, ids=[message[:40] for _, message in WRONG])
def test_refused(tmp_path, change, message):
    with pytest.raises(SpecError) as refusal:
        specs.parse(data(tmp_path, **change), 'x.json')
    assert str(refusal.value) == f'x.json: {message}'


def test_directory_must_exist(tmp_path):
    with pytest.raises(SpecError, match='out: ".*/none" is not a directory'):
        specs.parse(data(tmp_path / 'none'))


@pytest.mark.parametrize('key', ['version', 'workload', 'seed', 'duration_s', 'rate_bps', 'classes', 'users',
                                 'servers', 'out'])
def test_required(tmp_path, key):
    spec = data(tmp_path)
    del spec[key]
    with pytest.raises(SpecError, match=f'^spec: {key}: missing$'):
        specs.parse(spec)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(SpecError, match='none.json: No such file or directory$'):
        specs.load(f'{tmp_path}/none.json')
    (tmp_path / 'half.json').write_text('{"version":')
    with pytest.raises(SpecError, match='half.json: not JSON: '):
        specs.load(f'{tmp_path}/half.json')
    (tmp_path / 'latin.json').write_bytes(b'"\xe4"')
    with pytest.raises(SpecError, match='latin.json: not JSON: '):
        specs.load(f'{tmp_path}/latin.json')


def test_defaults(tmp_path):
    spec = specs.parse(data(tmp_path))
    assert (spec.drain_s, spec.tls_share, spec.port, spec.tls_port, spec.t0_monotonic) == (0.0, 0.0, 80, 443, 0.0)
    assert spec.workload.values == {'inflight': 4, 'think_s': 0.0}
    assert (spec.sizes.m, spec.sizes.s, spec.sizes.cap) == (sizes.PAPER_M, sizes.PAPER_S, 2_000_000)
    assert specs.parse(data(tmp_path, rate_bps=10e6)).sizes.cap == 10_000_000


def test_as_json_has_what_was_filled_in(tmp_path):
    written = json.loads(json.dumps(specs.as_json(specs.parse(data(tmp_path)))))
    assert written['workload'] == 'backlogged' and written['parameters'] == {'inflight': 4, 'think_s': 0.0}
    assert written['users'][0] == {'name': 'gold-1', 'class': 'gold', 'addresses': ['198.18.0.1']}
    assert written['sizes']['max'] == grid.nearest(2_000_000)


def test_addresses_in_their_usual_spelling(tmp_path):
    spec = specs.parse(data(tmp_path, users=[
        {'name': 'a', 'class': 'gold', 'addresses': ['2001:2:0:0:0:0:0:1', '198.18.0.1']}]))
    assert spec.users[0].addresses == ('2001:2::1', '198.18.0.1')
