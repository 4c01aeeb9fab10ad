# SPDX-License-Identifier: GPL-2.0-or-later
"""From options to cells: which cells run, in which order and for how long; refused options and their messages."""
import collections
import dataclasses
import os
import subprocess
import types

import pytest

from fieldtrial import cli, options, plan, runner
from fieldtrial.analysis import targets
from fieldtrial.base import disturbance
from fieldtrial.base.errors import TrialError
from fieldtrial.base.spec import Condition
from fieldtrial.load import http3, quic, workloads
from fieldtrial.load.traffic import devtools


def chosen(*argv):
    return plan.chosen(options.read(list(argv)))


def test_a_fast_link_and_many_users():
    near, mixed, many, bump = chosen('--plan-name', 'scale')
    assert (bump.workload, bump.arms, bump.lanes) == ('bump', ('stock', 'off', 'msfrs'), 12)
    assert near.parameters['size'] and not mixed.parameters['size']
    for condition in near, mixed:
        assert (condition.workload, condition.arms, condition.rate_bps) == ('scale', ('off', 'msfrs'), 1e9)
        assert sum(condition.counts) == 200 and not any(condition.rtts_ms)
    assert (many.workload, many.arms, many.rate_bps) == ('backlogged', ('stock', 'msfrs'), 100e6)
    assert sum(many.counts) == 2000


def test_full_run_has_what_the_targets_need():
    found = collections.defaultdict(set)
    for condition in plan.full():
        key = condition.workload, condition.rate_bps, condition.buffer_bdp
        found[key].update(condition.arms)
        assert condition.warmup_s < condition.duration_s / 2
    for rate in (2e6, 10e6):
        assert {'stock', 'msfrs'} <= found['backlogged', rate, 1.5]
    for buffer in (1.5, 10):
        assert {'stock', 'stock-htb', 'msfrs'} <= found['pages', 2e6, buffer]
    assert {'stock', 'msfrs'} <= found['backlogged', 2e6, 10]
    assert {'stock', 'stock-htb', 'msfrs'} <= found['https-pages', 2e6, 4]
    for rate in (2e6, 10e6, 100e6):
        for buffer in (1.5, 10):
            assert 'msfrs' in found['https-backlogged', rate, buffer]
        assert 'stock' in found['https-backlogged', rate, 1.5]
    for workload in ('disturbed', 'https-open', 'bypass'):
        assert {'stock', 'msfrs'} <= found[workload, 2e6, 1.5]
    assert {condition.parameters.get('idle', 20) for condition in plan.full()
            if condition.workload == 'https-pages'} == {0, 20}
    assert {condition.rtts_ms[0] for condition in plan.full() if condition.rtts_ms} == {2.0, 40.0, 200.0}
    for key in (('quic-backlogged', 2e6, 1.5), ('quic-pages', 2e6, 4)):
        assert {'stock-quic', 'msfrs', 'msfrs-edge-party'} <= found[key]
    assert {'unequal', 'phases', 'cbr', 'open', 'excess'} <= {workload for workload, _, _ in found}
    assert {condition.parameters['share'] for condition in plan.full() if condition.workload == 'cbr'} == {.2, .4, .6}
    assert {condition.parameters['load'] for condition in plan.full() if condition.workload == 'open'} == {.85, .95}
    for key in (('open', 2e6, 1.5), ('open', 2e6, 10), ('backlogged', 2e6, 1.5)):
        assert {'stock', 'msfrs', 'sjf'} <= found[key]


_LOADS, _RATES = ({'load': 0.85}, {'load': 0.95}), ({'rate_bps': 2e6}, {'rate_bps': 10e6})
#: The cells that the limits of the targets were chosen for, by the workloads that a target judges.
WANTED = {
    ('https-backlogged',): (*_RATES, {'gold': 24}, {'rtts_ms': plan.NEAR}, {'rtts_ms': plan.FAR}),
    ('https-pages',): ({'idle': 20}, {'idle': 0}),
    ('https-open',): _LOADS[1:], ('https-open', 'open'): _LOADS[1:], ('open',): _LOADS,
    ('https-backlogged', 'backlogged'): tuple({'rate_bps': rate, 'buffer_bdp': buffer}
                                              for rate in (2e6, 10e6, 100e6) for buffer in (1.5, 10)),
    ('few',): (*({'downloads': count, 'gold': 1} for count in (1, 2, 3)),
               {'downloads': 3, 'gold': 3, 'rate_bps': 10e6, 'rtts_ms': plan.NEAR}),
    ('bypass',): ({'quic': False}, {'quic': True}),
    ('quic-backlogged',): ({'flood': 0}, {'flood': 2}, {'flood': 0.5}), ('quic-pages',): ({},),
    ('quic-backlogged', 'quic-pages'): ({'flood': 0},), ('video',): ({},), ('call',): ({},),
    ('backlogged',): _RATES, ('unequal',): ({'gold': 24},), ('phases',): ({},), ('excess',): ({},),
    ('silent',): ({'dead': 100}, {'thinking': 30}, {'streams': 10, 'beside': 0}),
    ('cbr',): ({'share': 0.2}, {'share': 0.4}, {'share': 0.6}),
    ('pages',): ({'buffer_bdp': 1.5}, {'buffer_bdp': 10}), ('backlogged', 'pages'): ({'buffer_bdp': 10},)}


@pytest.mark.parametrize('make', [plan.full, plan.today])
def test_both_plans_have_the_cells_that_the_main_targets_are_about(make):
    """And all arms that these targets compare."""
    cells = []
    for condition in make():
        population = plan.population(condition, ('gold', 'silver', 'bronze'))
        cells.append((condition, workloads.get(condition.workload)(condition.parameters).values | {
            'rate_bps': condition.rate_bps, 'buffer_bdp': condition.buffer_bdp, 'rtts_ms': condition.rtts_ms,
            'gold': population['gold']}))
    for target in targets.TARGETS:
        if make is plan.today and not set(target.workloads) & {
                'https-pages', 'https-open', 'https-backlogged', 'few', 'bypass'} or target.traced or \
                target.section in (targets.SAME, targets.SCALE, targets.DISTURBED):
            continue
        for wanted in WANTED[target.workloads]:
            if make is plan.today and wanted.get('rate_bps') == 100e6 or 'flood' in wanted and not target.only(
                    types.SimpleNamespace(parameters=wanted)):
                continue
            assert any(condition.workload in target.workloads and wanted.items() <= cell.items() and
                       {target.arm, target.against or target.arm} <= set(condition.arms)
                       for condition, cell in cells), (target.name, wanted)


def test_todays_plan_sees_every_disturbance_twenty_times_with_three_seeds():
    asked = options.read(['--plan-name', 'today', '--seed', '1,2,3', '--lanes', '6'])
    counts = collections.Counter()
    for condition in plan.chosen(asked):
        assert condition.workload in ('https-pages', 'https-open', 'https-backlogged', 'disturbed', 'few', 'bypass')
        workload = workloads.get(condition.workload)(condition.parameters)
        counts.update(each.kind for each in workload.disturbances(condition.duration_s))
    assert set(counts) == set(disturbance.LABELS) - set(disturbance.ENDS) and min(counts.values()) >= 20
    assert cli.seconds_of(plan.cells_of(plan.chosen(asked), asked, None), 6) < 75 * 60


def test_part_of_a_plan_can_be_named():
    whole = plan.today()
    assert chosen('--plan-name', 'today') == whole
    assert chosen('--plan-name', 'today', '--workloads', 'few,bypass') == [
        each for each in whole if each.workload in ('few', 'bypass')]
    near, = chosen('--plan-name', 'today', '--workloads', 'few', '--rates', '10')
    assert (near.rtts_ms, near.parameters) == (plan.NEAR, {'downloads': 3, 'users': 3})
    assert chosen('--plan-name', 'full') == chosen()


def test_a_run_is_as_long_as_repeated_disturbances_take():
    condition, = chosen('--workloads', 'disturbed', '--set', 'disturbed.repeat=20', '--set', 'disturbed.only=down')
    assert condition.duration_s == 50 + 20 * 8 + 19 * 25 + 20
    condition, = chosen('--workloads', 'disturbed', '--set', 'disturbed.repeat=20', '--seconds', '300')
    assert condition.duration_s == 300


def test_without_the_programs_quic_is_left_out(monkeypatch, capsys):
    monkeypatch.setattr(quic.shutil, 'which', lambda name, path=None: None if name == 'gtlsclient' else f'/x/{name}')
    conditions = plan.bypass()
    assert cli.possible(conditions, 'namespaces') == conditions[:1]
    assert capsys.readouterr().out == ('users past Squid by QUIC are left out: gtlsclient not found (Debian: '
                                       'ngtcp2-client, ngtcp2-server)\n')
    monkeypatch.setattr(quic.shutil, 'which', lambda name, path=None: f'/x/{name}')
    assert cli.possible(conditions, 'namespaces') == conditions
    assert cli.possible(conditions, 'containers') == conditions[:1]


def test_without_caddy_or_aioquic_http3_is_left_out(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(http3, 'MODULES', tmp_path)
    monkeypatch.setattr(http3.importlib.util, 'find_spec', lambda name: None)
    monkeypatch.setattr(http3.shutil, 'which', lambda name, path=None: f'/x/{name}')
    conditions = plan.few() + plan.quic()
    assert cli.possible(conditions, 'namespaces') == plan.few()
    assert capsys.readouterr().out == ('users of HTTP/3 are left out: python3 has no module aioquic (Debian 13: '
                                       'python3-aioquic, else PyPI)\n')
    (tmp_path / 'aioquic').mkdir()
    assert cli.possible(conditions, 'namespaces') == conditions
    assert cli.possible(conditions, 'containers') == plan.few()
    monkeypatch.setattr(http3.shutil, 'which', lambda name, path=None: None)
    assert http3.missing() == 'caddy not found (Debian: caddy)'


def test_without_chromium_users_with_a_browser_are_left_out(monkeypatch, capsys):
    conditions = [*plan.few(), Condition('browser', ('msfrs',), 60, 20)]
    monkeypatch.setattr(devtools.shutil, 'which', lambda name, path=None: None)
    assert cli.possible(conditions, 'namespaces') == plan.few()
    assert capsys.readouterr().out == 'users with a browser are left out: chromium: not found (package chromium)\n'
    monkeypatch.setattr(devtools.shutil, 'which', lambda name, path=None: f'/x/{name}')
    assert cli.possible(conditions, 'namespaces') == conditions
    assert cli.possible(conditions, 'containers') == plan.few()


def test_where_all_is_left_out_that_is_said(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(cli.preflight, 'check', lambda options: None)
    monkeypatch.setattr(cli.netns, 'sweep', lambda: ())
    monkeypatch.setattr(http3, 'MODULES', tmp_path)
    monkeypatch.setattr(http3.importlib.util, 'find_spec', lambda name: None)
    assert cli.main(['--workloads', 'quic-pages', '--out', str(tmp_path / 'out')]) == 1
    assert capsys.readouterr().err == 'trial: nothing of what was asked for can be run here\n'
    assert not (tmp_path / 'out').exists()


def test_a_kernel_without_a_qdisc_is_said_and_its_stand_in_runs(monkeypatch, capsys):
    asked, why = options.read(['--arms', 'stock,stock-fq_codel,stock-cake']), 'this kernel has no such thing'
    conditions = plan.chosen(asked)[:1]
    monkeypatch.setattr(cli.preflight, 'lacking', lambda arms, hosts: {
        arm.name: why for arm in arms if arm.name in ('stock-fq_codel', 'stock-cake', 'stock-htb')})
    (condition,), said = cli.runnable(conditions, 'namespaces')
    assert condition.arms == ('stock', 'stock-sqm')
    assert said == [f'arm stock-fq_codel: not run, {why}; stock-sqm stands for it', f'arm stock-cake: not run, {why}']
    assert capsys.readouterr().out.splitlines() == said
    assert runner.meta_of(asked, [], conditions, said)['not_run'] == said
    with pytest.raises(TrialError, match=f'^arm stock-cake: not run, {why}$'):
        cli.runnable([dataclasses.replace(condition, arms=('stock-cake',))], 'namespaces')


def test_a_kernel_with_all_qdiscs_runs_the_plan_as_it_is(monkeypatch, capsys):
    monkeypatch.setattr(cli.preflight, 'lacking', lambda arms, hosts: {})
    assert cli.runnable(chosen(), 'namespaces') == (chosen(), [])
    assert capsys.readouterr().out == ''


def test_both_plans_have_the_fields_baseline_over_kept_tunnels():
    for make, workload in ((plan.full, 'https-backlogged'), (plan.full, 'https-open'), (plan.full, 'https-pages'),
                           (plan.today, 'https-pages')):
        assert any({'stock', 'stock-fq_codel', 'stock-cake', 'msfrs'} <= set(each.arms) for each in make()
                   if each.workload == workload)


def test_cbr_is_measured_over_whole_periods():
    for condition in plan.full() + plan.quick(6):
        if condition.workload == 'cbr':
            assert condition.warmup_s % 40 == 0
            assert (condition.duration_s - condition.warmup_s) % 80 == 0


def test_labels_are_unique_and_good_for_a_directory():
    for conditions in (plan.full(), plan.quick(6), plan.quick(1),
                       chosen('--seed', '1,2', '--set', 'url-list.list=/a/b')):
        labels = [condition.label() for condition in conditions]
        assert len(set(labels)) == len(labels)
        assert not any(set(label) & set('/ \n') for label in labels)


@pytest.mark.parametrize('lanes', [1, 2, 3, 4, 6, 12])
def test_quick_fits_into_ten_minutes_with_any_number_of_lanes(lanes):
    asked = options.read(['--quick', '--lanes', str(lanes)])
    kept, dropped = cli.fitting(plan.chosen(asked), asked, cli.QUICK_S)
    assert dropped == []
    assert cli.seconds_of(plan.cells_of(kept, asked, None), lanes) <= cli.QUICK_S < 600
    assert {condition.workload for condition in kept} == {'https-pages', 'https-backlogged', 'internet', 'call',
                                                          'video'}
    for condition in kept:
        assert {'stock', 'msfrs'} <= set(condition.arms) and condition.duration_s - condition.warmup_s >= 20
    assert any('router-cake' in condition.arms for condition in kept) == (lanes > 2)


def test_every_topic_of_a_quick_run_has_a_figure_of_both_squids():
    profiles = [workloads.get(condition.workload).profile for condition in plan.quick(6)]
    topics = {answer.topic for profile in profiles for answer in profile.told()}
    assert topics == {'Pages', 'Downloads', 'Internet', 'Calls', 'Video', 'Fairness', 'Queue'}


def test_an_evening_takes_as_long_as_the_help_says():
    for more, minutes in (([], 240), (['--seconds', '600'], 41)):
        asked = options.read(['--evening', *more])
        cells = plan.cells_of(plan.chosen(asked), asked, None)
        assert [spec.arm for spec in cells] == ['stock', 'router-cake', 'router-sqm', 'msfrs']
        assert cli.seconds_of(cells, asked.lanes) / 60 == pytest.approx(minutes, rel=0.01)
    text = ' '.join(options.parser().format_help().split())
    assert 'That takes four hours; with --seconds 600 it takes 41 minutes' in text


def test_full_run_on_two_processors_takes_less_than_90_minutes():
    asked = options.read(['--lanes', '6'])
    assert cli.seconds_of(plan.cells_of(plan.chosen(asked), asked, None), 6) < 90 * 60


@pytest.mark.parametrize('cells, lanes, seconds', [
    ([], 2, 0),
    ([(10, 1), (10, 1)], 2, 10),
    ([(10, 1), (10, 1)], 1, 20),
    ([(10, 1), (30, 1), (10, 1)], 2, 30),
    ([(10, 2), (10, 1), (10, 1)], 2, 20),
    ([(10, 9)], 2, 10),
    ([(10, 1), (5, 2), (5, 1)], 2, 20),     # in order: the last waits for its predecessor
])
def test_schedule(cells, lanes, seconds):
    assert plan.schedule_seconds(cells, lanes) == seconds


def test_options_that_name_conditions_give_every_combination():
    conditions = chosen('--workloads', 'open,backlogged', '--rates', '2,5', '--buffers', '4', '--set', 'open.load=0.7',
                        '--arms', 'msfrs,stock')
    assert [(each.workload, each.rate_bps, each.buffer_bdp, each.parameters) for each in conditions] == [
        ('open', 2e6, 4, {'load': 0.7}), ('open', 5e6, 4, {'load': 0.7}),
        ('backlogged', 2e6, 4, {}), ('backlogged', 5e6, 4, {})]
    assert all(each.arms == ('stock', 'msfrs') for each in conditions)


def test_seconds_and_seeds():
    conditions = chosen('--workloads', 'pages', '--seconds', '60', '--seed', '3,4')
    assert [(each.seed, each.duration_s, each.warmup_s) for each in conditions] == [(3, 60, 15), (4, 60, 15)]


def test_population_follows_workload_rate_and_option():
    classes = ('gold', 'silver', 'bronze')
    for workload, told, expected in (('backlogged', {}, (4, 4, 4)), ('backlogged', {'rate_bps': 10e6}, (12, 12, 12)),
                                     ('unequal', {}, (24, 4, 4)), ('unequal', {'counts': (1, 2, 3)}, (1, 2, 3))):
        condition = Condition(workload, (), 1, 0, **told)
        assert plan.population(condition, classes) == dict(zip(classes, expected))


def test_cells_of_a_condition_differ_in_the_arm_only():
    asked = options.read(['--workloads', 'backlogged'])
    cells = plan.cells_of(plan.chosen(asked), asked, None)
    assert [spec.arm for spec in cells] == [*plan.ALL, *plan.UNFAIR, *plan.QUEUEING]
    first = cells[0]
    for spec in cells[1:]:
        assert spec.name != first.name
        own = dict.fromkeys(('arms', 'name', 'directory'))
        assert vars(spec) | own == vars(first) | own


def test_a_cell_survives_its_file(tmp_path):
    asked = options.read(['--workloads', 'open', '--sizes', 'lognormal:9:1.5:100000', '--workers', '4',
                          '--gateways', '3'])
    spec = plan.cells_of(plan.chosen(asked), asked, tmp_path)[0]
    spec.store(tmp_path / 'cell.json')
    assert type(spec).read(tmp_path / 'cell.json') == spec
    assert (spec.workers, spec.gateways) == (4, 3)


@pytest.mark.parametrize('argv, words', [
    (['--rates', '0'], "argument --rates: '0': expected rates in Mbit/s, each 0.1 to 1000, with commas between"),
    (['--rates', '2;3'], "argument --rates: '2;3': expected rates in Mbit/s, each 0.1 to 1000, with commas between"),
    (['--arms', 'fast'],
     "argument --arms: 'fast' is unknown; there are stock, stock-quic, off, stock-pools, stock-htb, stock-htb-least, "
     "stock-fq_codel, stock-cake, stock-sqm, router, router-cake, router-cake-ingress, router-sqm, "
     "router-fq_codel, msfrs-paper, msfrs, msfrs-least, msfrs-auto, msfrs-edge, "
     "msfrs-edge-party, sjf, fifo, drr, msfq"),
    (['--users', '4.7,4,4'], "argument --users: '4.7,4,4': expected numbers of users, each 1 to 1000, with commas "
                             'between'),
    (['--seed', '1.5'], "argument --seed: '1.5': expected whole numbers, each 0 to 2.14748e+09, with commas between"),
    (['--users', '4,4'], '--users has 2 numbers for 3 classes (gold, silver, bronze)'),
    (['--weights', 'gold=4,gold=2'], "argument --weights: 'gold=4,gold=2': expected 1 to 7 classes, each once"),
    (['--weights', 'gold=0'], "argument --weights: 'gold=0': expected NAME=WEIGHT, the name in small letters and "
                              "digits, the weight above 0 and at most 10000"),
    (['--set', 'open=1'], "argument --set: 'open=1': expected WORKLOAD.PARAMETER=VALUE, for example open.load=0.9"),
    (['--set', 'open.load=3'], "argument --set: load: '3' is not a number from 0.01 to 2"),
    (['--sizes', 'pareto:1'],
     "argument --sizes: 'pareto:1': expected lognormal:M:S or lognormal:M:S:MAX, M up to 20 and S from 0.01 to 10, or "
     'fixed:BYTES; sizes are 64 to 128000000 bytes'),
    (['--lanes', '0'], "argument --lanes: '0': expected a whole number, 1 to 64"),
    (['--workers', '0'], "argument --workers: '0': expected a whole number, 1 to 32"),
    (['--gateways', '8'], "argument --gateways: '8': expected a whole number, 1 to 7"),
    (['--gateways', '2', '--arms', 'stock,stock-htb'], '--gateways 2: arm stock-htb is for one gateway'),
    (['--workers', '2', '--hosts', 'containers'],
     '--workers 2: only with --hosts namespaces, whose Squids have a directory each for the sockets of their workers'),
    (['--quick', '--plan-name', 'today'], '--quick is a plan of its own: leave --plan-name today out'),
    (['--set', 'few.downloads=1', '--plan-name', 'full'],
     '--set makes conditions that no plan has: leave --plan-name full out'),
    (['--seconds', '5'], "argument --seconds: '5': expected a number of seconds, 20 to 86400"),
])
def test_wrong_options_are_refused_with_what_is_allowed(argv, words, capsys):
    with pytest.raises(SystemExit) as end:
        options.read(argv)
    assert end.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(f'./trial: error: {words}')


def test_a_list_that_is_not_there_is_said_before_anything_runs(tmp_path, capsys):
    """The same for a file that is not a valid list."""
    path = tmp_path / 'my.list'
    for said in (' No such file or directory', "1: 'x' is not a size from 0 to 128000000 bytes"):
        assert cli.main(['--plan', '--workloads', 'url-list', '--set', f'url-list.list={path}']) == 1
        assert capsys.readouterr().err == f'trial: {path}:{said}\n'
        path.write_text('http://h.test/ x\n')
    path.write_text('http://h.test/ 3000\n')
    assert cli.main(['--plan', '--workloads', 'url-list', '--set', f'url-list.list={path}']) == 0


@pytest.mark.parametrize('series, folder', (('', 'install'), ('7', 'install'), ('6', 'install-6')))
def test_each_series_has_its_folder(series, folder):
    """As squid-patches/build installs it."""
    installed = subprocess.run(['bash', '-ec', '. squid-patches/lib.sh; set_series ${0:-$default_series}; series_prefix',
                                series], cwd=options.ROOT, capture_output=True, text=True, check=True)
    chosen_squid = options.read(['--squid-series', series] if series else []).squid
    assert chosen_squid == f'{options.ROOT}/build/{folder}/sbin/squid'
    assert installed.stdout == f'{options.ROOT}/build/{folder}\n'


def test_a_first_look_compares_with_the_patched_squid_off(monkeypatch, tmp_path):
    """This halves what is compiled; the whole plan uses the unpatched Squid, if it is built."""
    monkeypatch.setattr(options, 'ROOT', tmp_path)
    stock = tmp_path / 'build/install-stock/sbin/squid'
    stock.parent.mkdir(parents=True)
    assert options.read([]).stock_squid == options.read([]).squid
    stock.touch()
    assert options.read([]).stock_squid == str(stock)
    assert options.read(['--quick']).stock_squid == options.read(['--quick']).squid
    assert options.read(['--quick', '--stock-squid', '/x']).stock_squid == '/x'


def test_isp_edge_refuses_a_rate_that_changes(capsys):
    assert cli.main(['--plan', '--workloads', 'disturbed', '--isp', 'edge']) == 1
    assert capsys.readouterr().err == (
        'trial: workload disturbed: the rate of --isp edge cannot be changed under way; leave that out with --set '
        'disturbed.rate_s=0, or take --isp tbf\n')
    assert cli.main(['--plan', '--workloads', 'disturbed', '--isp', 'edge', '--set', 'disturbed.rate_s=0']) == 0


def test_several_gateways_run_the_arms_that_are_for_several():
    few, many = (chosen('--workloads', 'backlogged,excess', '--gateways', count) for count in '12')
    assert [condition.arms for condition in few] == [(*plan.ALL, *plan.UNFAIR, *plan.QUEUEING), ('msfrs', 'msfrs-edge')]
    assert [condition.arms for condition in many] == [
        tuple(arm for arm in few[0].arms if arm not in ('stock-pools', 'stock-htb')), ('msfrs',)]


def test_a_store_that_stops_takes_several_gateways(capsys):
    asked = '--plan', '--workloads', 'disturbed', '--set', 'disturbed.only=store', '--set'
    assert cli.main([*asked, 'disturbed.store_s=30']) == 1
    assert capsys.readouterr().err == (
        'trial: workload disturbed: one gateway has no store that could stop; leave that out with --set '
        'disturbed.store_s=0, or take --gateways 2\n')
    assert cli.main([*asked, 'disturbed.store_s=0', '--gateways', '2']) == 1
    assert capsys.readouterr().err == 'trial: workload disturbed: only: store happens for 0 s; see store_s\n'
    assert cli.main([*asked, 'disturbed.store_s=30', '--gateways', '2']) == 0


def test_a_cell_too_short_for_any_disturbance_is_refused(capsys):
    assert cli.main(['--plan', '--workloads', 'disturbed', '--seconds', '60']) == 1
    assert 'no disturbance fits into 60 s' in capsys.readouterr().err


def test_near_servers_do_not_make_the_buffer_small():
    asked = options.read([])
    near = next(spec for spec in plan.cells_of(plan.chosen(asked), asked, None) if set(spec.rtts_ms) == {2.0})
    assert near.buffer_rtt_ms == pytest.approx(154) and '2ms' in near.name


def test_lanes_follow_the_processors(monkeypatch):
    monkeypatch.setattr(os, 'cpu_count', lambda: 4)
    assert options.read([]).lanes == 12
