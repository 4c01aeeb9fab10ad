# SPDX-License-Identifier: GPL-2.0-or-later
"""The contents of a spec, and the exact messages with which anything else is refused."""
import json

import pytest

from fieldtrial.base import typed
from fieldtrial.base.errors import TrialError
from fieldtrial.load.spec import Spec
from fieldtrial.load.traffic import sizes
from fieldtrial.site import grid
from simulated import data, spec

WRONG = [
    ({'wordload': 'open'}, 'wordload: no such key'),
    ({'workload': 4}, 'workload: 4 is not a text'),
    ({'parameters': [4]}, 'parameters: [4] is not an object {...}'),
    ({'seed': 1.5}, 'seed: 1.5 is not a whole number'),
    ({'seed': True}, 'seed: true is not a whole number'),
    ({'duration_s': float('nan')}, 'duration_s: NaN is not a number'),
    ({'drain_s': '5'}, 'drain_s: "5" is not a number'),
    ({'keep': 1}, 'keep: 1 is not true or false'),
    ({'weights': {'gold': None}}, 'weights.gold: null is not a number'),
    ({'arms': 'msfrs'}, 'arms: "msfrs" is not a list'),
    ({'servers': [{'name': 's', 'group': '', 'rtt_ms': 1}, 3]}, 'servers[1]: 3 is not an object {...}'),
    ({'servers': [{'name': 's', 'rtt_ms': -1}]}, 'servers[0].group: missing'),
    ({'servers': [{'name': 's', 'group': '', 'rtt_ms': 1, 'age': 3}]}, 'servers[0].age: no such key'),
]


@pytest.mark.parametrize('change, message', WRONG, ids=[message[:40] for _, message in WRONG])
def test_refused(tmp_path, change, message):
    with pytest.raises(typed.SpecError) as refusal:
        typed.of(Spec, data(tmp_path) | change, 'x.json')
    assert str(refusal.value) == f'x.json: {message}'


@pytest.mark.parametrize('change, message', [
    ({'workload': 'closed'}, "workload 'closed': there are evening, "),
    ({'parameters': {'inflight': 0}}, 'inflight: 0 is not a whole number from 1 to 256 requests'),
    ({'parameters': {'inflight': True}}, 'inflight: True is not a whole number from 1 to 256 requests'),
    ({'parameters': {'inflight': 1.5}}, 'inflight: 1.5 is not a whole number from 1 to 256 requests'),
    ({'parameters': {'think_s': 'nan'}}, "think_s: 'nan' is not a number from 0 to 3600 s"),
    ({'parameters': {'load': 0.85}}, 'load: workload backlogged has no such parameter (it has: inflight, think_s)'),
])
def test_a_workload_and_its_parameters_are_refused(tmp_path, change, message):
    with pytest.raises(TrialError) as refusal:
        assert spec(tmp_path, **change).model
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize('text', ['pareto:1', 'fixed', 'fixed:1', 'fixed:64:64', 'lognormal:9', 'lognormal:9:0',
                                  'lognormal:9:1:63', 'lognormal:9:x', 'lognormal:nan:1'])
def test_sizes_that_are_refused(text):
    with pytest.raises(TrialError, match=f'^{text!r}: expected lognormal:M:S or lognormal:M:S:MAX, M up to 20 and S'):
        sizes.read(text, 2e6)


def test_sizes():
    read = sizes.read(None, 2e6)
    assert (read.m, read.s, read.cap) == (sizes.PAPER_M, sizes.PAPER_S, 2_000_000)
    assert sizes.read(None, 10e6).cap == 10_000_000 and sizes.read('lognormal:9:1', 8e3).cap == 100_000
    read = sizes.read('lognormal:9:1.5:200000', 2e6)
    assert (read.m, read.s, read.cap) == (9.0, 1.5, 200_000)
    assert sizes.read('fixed:16384', 2e6).size == grid.nearest(16_384)


@pytest.mark.parametrize('key', ['workload', 'arms', 'duration_s', 'weights', 'users', 'servers', 't0_monotonic'])
def test_required(tmp_path, key):
    told = data(tmp_path)
    del told[key]
    with pytest.raises(typed.SpecError, match=f'^spec: {key}: missing$'):
        typed.of(Spec, told, 'spec')


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(typed.SpecError, match='none.json: No such file or directory$'):
        Spec.read(f'{tmp_path}/none.json')
    (tmp_path / 'half.json').write_text('{"name":')
    with pytest.raises(typed.SpecError, match='half.json: not JSON: '):
        Spec.read(f'{tmp_path}/half.json')
    (tmp_path / 'latin.json').write_bytes(b'"\xe4"')
    with pytest.raises(typed.SpecError, match='latin.json: not JSON: '):
        Spec.read(f'{tmp_path}/latin.json')
    (tmp_path / 'list.json').write_text('[]')
    with pytest.raises(typed.SpecError, match=r'list.json: \[\] is not an object'):
        Spec.read(f'{tmp_path}/list.json')


def test_a_spec_survives_its_file(tmp_path):
    told = spec(tmp_path, counts=(2, 1, 0), rtts_ms=[12.0, 296.0], tls_ca='/x')
    told.store(tmp_path / 'load.json')
    assert Spec.read(tmp_path / 'load.json') == told


def test_what_is_said_has_what_was_filled_in(tmp_path):
    said = json.loads(json.dumps(spec(tmp_path, mine=['gold-2']).said()))
    assert said == json.loads(json.dumps(spec(tmp_path).said())), 'whoever makes which part'
    assert said['workload'] == 'backlogged' and said['parameters'] == {'inflight': 4, 'think_s': 0.0}
    assert said['users'][0] == {'name': 'gold-1', 'cls': 'gold', 'v4': '198.18.0.1', 'v6': None}
    assert said['sizes']['max'] == grid.nearest(2_000_000)
