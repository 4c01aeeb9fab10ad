# SPDX-License-Identifier: GPL-2.0-or-later
"""The workloads with simulated servers and clock: users, objects and times of requests, and their records."""
import collections
import itertools
import statistics
import zlib

import aiohttp
import pytest

from fieldtrial.base import ladder
from fieldtrial.base.errors import TrialError
from fieldtrial.load import workloads
from fieldtrial.load.traffic import adaptation, arrivals, idle, offers, run as running, sizes
from fieldtrial.site import grid
from simulated import Answer, Clients, Outcome, spec as a_spec


def starts(outcome, **wanted):
    """t_start of the requests whose columns match `wanted`."""
    return [float(row['t_start']) for row in outcome.requests
            if all(row[column] == value for column, value in wanted.items())]


def sequence(outcome, user):
    """(server, size) of a user's requests in the order of the requests."""
    return [(server, path.split('/')[2]) for name, server, path in outcome.clients.asked if name == user]


def test_every_workload_is_complete():
    assert workloads.names() == ['evening', 'https-pages', 'https-backlogged', 'browser', 'https-open', 'disturbed',
                                 'few', 'video', 'call', 'silent', 'internet', 'bypass', 'quic-backlogged', 'quic-pages', 'scale',
                                 'backlogged', 'bump', 'unequal', 'phases', 'pages', 'open', 'cbr', 'excess',
                                 'url-list']
    profiles = [workloads.get(name).profile for name in workloads.names()]
    assert len({profile.title for profile in profiles}) == len({profile.rank for profile in profiles}) == len(profiles)
    for name in workloads.names():
        workload = workloads.get(name)
        assert workload.name == name and workload.summary
        assert 'profile' in vars(workload), 'not that of the class it is made from'
        assert workload().values == {parameter.name: parameter.default for parameter in workload.parameters}
        for parameter in workload.parameters:
            if parameter.kind != 'text':
                assert parameter.read(parameter.default) == parameter.default
                assert parameter.read({True: 'yes', False: 'no'}[parameter.default] if parameter.kind == 'yes/no'
                                      else str(parameter.default)) == parameter.default


@pytest.mark.parametrize('inflight', [1, 4])
def test_backlogged_keeps_so_many_in_flight(tmp_path, inflight):
    outcome = Outcome(tmp_path, parameters={'inflight': inflight})
    users = [user.name for user in outcome.spec.users]
    assert outcome.clients.most == {name: inflight for name in users}
    # 0.2 s for each response, so 20 s are enough for 100 in each slot; no slot is idle in between.
    assert collections.Counter(row['user'] for row in outcome.requests) == {name: 100 * inflight for name in users}
    assert {row['outcome'] for row in outcome.requests} == {'ok'}


def test_cut_at_the_end_is_recorded_as_unfinished(tmp_path):
    slow = Answer(wait=0.5, transfer=2.5)
    outcome = Outcome(tmp_path, answer=lambda *_: slow, sizes='fixed:10000')
    unfinished = [row for row in outcome.requests if row['outcome'] == 'unfinished']
    assert len(unfinished) == outcome.run.most_in_flight == 24 and outcome.run.in_flight == 0
    size = grid.nearest(10_000)
    for row in unfinished:      # the seventh began at 18 s; 6 of its 10 pieces arrived by 20 s
        assert float(row['t_start']) == 18.0 and float(row['t_end']) == 20.0
        assert int(row['bytes']) in (size * 5 // 10, size * 6 // 10)
    assert sum(int(row['bytes']) for row in outcome.requests) == sum(outcome.run.records.by_class().values())


def test_drain_lets_them_end(tmp_path):
    outcome = Outcome(tmp_path, answer=lambda *_: Answer(wait=0.5, transfer=2.5), drain_s=5)
    assert {row['outcome'] for row in outcome.requests} == {'ok'}
    assert max(float(row['t_start']) for row in outcome.requests) < 20.0
    assert max(float(row['t_end']) for row in outcome.requests) == 21.0


def test_think_time(tmp_path):
    outcome = Outcome(tmp_path, duration_s=4000, parameters={'inflight': 1, 'think_s': 5})
    gaps = [later - earlier - 0.2 for user in outcome.spec.users
            for earlier, later in itertools.pairwise(starts(outcome, user=user.name))]
    assert len(gaps) > 4000
    assert statistics.mean(gaps) == pytest.approx(5.0, rel=0.05)
    assert statistics.stdev(gaps) == pytest.approx(5.0, rel=0.05)


def test_the_same_is_offered_whatever_the_answers(tmp_path):
    outcomes = []
    for name, answer in (('fast', lambda *_: Answer(0.05, 0.1)),
                         ('slow', lambda _, server, size: Answer(0.3 if server.group == 'far' else 0.1, size / 1e5))):
        (tmp_path / name).mkdir()
        outcomes.append(Outcome(tmp_path / name, answer=answer))
    for user in outcomes[0].spec.users:
        fast, slow = (sequence(outcome, user.name) for outcome in outcomes)
        assert 10 < len(slow) < len(fast)
        assert fast[:len(slow)] == slow
    assert sequence(outcomes[0], 'gold-1')[:20] != sequence(outcomes[0], 'gold-2')[:20]
    (tmp_path / 'other').mkdir()
    other = Outcome(tmp_path / 'other', seed=8)
    assert sequence(other, 'gold-1')[:20] != sequence(outcomes[0], 'gold-1')[:20]


def test_no_path_is_asked_for_twice(tmp_path):
    outcome = Outcome(tmp_path)
    assert len({path for _, _, path in outcome.clients.asked}) == len(outcome.clients.asked) == len(outcome.requests)


def test_silent_asks_as_often_as_it_says(tmp_path):
    users = workloads.get('silent')({'streams': 2}).population(('gold', 'silver', 'bronze'), 4)
    outcome = Outcome(tmp_path, workload='silent', counts=tuple(users.values()), at_once=False, tls_ca=__file__,
                      parameters={'dead': 5, 'thinking': 2, 'streams': 2})
    assert sum(path == '/b/64/dead' for _, path, _ in outcome.clients.silent) == 5 * 20
    assert starts(outcome, kind='late') == pytest.approx([number / 2 for number in range(2 * 20)])
    paths = {user: path for user, _, path in outcome.clients.asked if path.startswith(('/w/', '/s/'))}
    assert paths['bronze-4'].startswith('/w/1004/2/') and paths['bronze-6'] == '/s/120000/48000/bronze-6'
    assert {row['user'] for row in outcome.pages} == {'gold-1', 'silver-1', 'bronze-1'}
    assert outcome.clients.most['gold-2'] == outcome.clients.most['bronze-3'] == 2


def test_silent_refuses_servers_that_answer_at_once(tmp_path):
    with pytest.raises(TrialError, match='^workload silent: with --at-once no server answers late or sends streams'):
        Outcome(tmp_path, workload='silent', parameters={'streams': 2})


def test_unequal_wants_24_in_the_first_class():
    unequal = workloads.get('unequal')
    assert unequal().population(('gold', 'silver', 'bronze'), 4) == {'gold': 24, 'silver': 4, 'bronze': 4}
    assert unequal({'first': 8}).population(('a', 'b'), 2) == {'a': 8, 'b': 2}
    assert workloads.get('open')().population(('a', 'b'), 2) == {'a': 2, 'b': 2}


def test_phases(tmp_path):
    outcome = Outcome(tmp_path, workload='phases', answer=lambda *_: Answer(wait=0.15, transfer=0.15))
    phases = outcome.spec.model.phases(outcome.spec)
    assert [(phase.t_start, phase.t_end) for phase in phases] == [(0, 5), (5, 10), (10, 15), (15, 20)]
    assert [phase.label for phase in phases] == ['all', 'without gold', 'without gold and silver', 'all again']
    active = [('gold', 'silver', 'bronze'), ('silver', 'bronze'), ('bronze',), ('gold', 'silver', 'bronze')]
    assert [phase.classes for phase in phases] == active
    for phase in phases:
        for name in outcome.spec.classes:
            inside = [t for t in starts(outcome, **{'class': name}) if phase.t_start <= t < phase.t_end]
            # 16 or 17 requests of 0.3 s start in a phase, for each of 4 in flight of 2 users.
            assert len(inside) in (range(8 * 16, 8 * 17 + 1) if name in phase.classes else [0])


def test_cbr_declares_its_stream():
    stream, = workloads.get('cbr')({'share': 0.6, 'period_s': 80}).beside(2_000_000, 240)
    assert (stream.rate_bps, stream.bursts, stream.receiver) == (1_200_000, ((80, 160),), None)
    often, = workloads.get('cbr')().beside(2_000_000, 230)
    assert often.bursts == ((40, 80), (120, 160), (200, 230))
    assert workloads.get('cbr')().beside(2_000_000, 40) == ()
    assert workloads.get('backlogged')().beside(2_000_000, 240) == ()


def test_excess_declares_a_stream_to_the_first_user():
    stream, = workloads.get('excess')({'share': 0.05}).beside(2_000_000, 240)
    assert (stream.rate_bps, stream.bursts, stream.receiver) == (100_000, ((0, 240),), 0)


def test_pages(tmp_path):
    outcome = Outcome(tmp_path, workload='pages', duration_s=200, drain_s=50)
    assert outcome.clients.most == {user.name: 6 for user in outcome.spec.users}
    assert len(outcome.pages) > 100
    for page in outcome.pages:
        rows = [row for row in outcome.requests if row['page'] == page['page']]
        assert [row['kind'] for row in rows] == ['document'] + 11 * ['object']
        assert len({row['server'] for row in rows}) == 1
        assert min(float(row['t_start']) for row in rows[1:]) >= float(rows[0]['t_end'])
        assert (page['complete'], page['outcome'], page['objects']) == ('1', 'ok', '12')
        assert int(page['bytes']) == sum(int(row['bytes']) for row in rows)
        # The document, then eleven over six connections: three times 0.2 s.
        assert float(page['t_end']) - float(page['t_start']) == pytest.approx(0.6, abs=1e-5)
    gaps = [float(later['t_start']) - float(earlier['t_end']) for user in outcome.spec.users
            for earlier, later in itertools.pairwise(page for page in outcome.pages if page['user'] == user.name)]
    assert statistics.mean(gaps) == pytest.approx(5.0, rel=0.2)


def test_page_whose_document_fails_has_no_objects(tmp_path):
    outcome = Outcome(tmp_path, workload='pages', answer=lambda *_: Answer(status=404))
    assert {row['kind'] for row in outcome.requests} == {'document'}
    assert {(page['objects'], page['complete'], page['outcome']) for page in outcome.pages} == {('1', '0', 'error')}


def test_page_with_a_failed_object_is_not_complete(tmp_path):
    calls = itertools.count()
    outcome = Outcome(tmp_path, workload='pages', drain_s=50,
                      answer=lambda *_: Answer(status=500 if next(calls) % 5 == 4 else 200))
    broken = {row['page'] for row in outcome.requests if row['outcome'] == 'error'}
    assert broken
    assert {page['page'] for page in outcome.pages if page['outcome'] == 'error'} == broken
    assert all(page['objects'] == '12' for page in outcome.pages if page['objects'] != '1')


def test_pages_cut_at_the_end(tmp_path):
    outcome = Outcome(tmp_path, workload='pages', answer=lambda *_: Answer(wait=8.0), parameters={'think_s': 0})
    assert [(page['complete'], page['outcome'], page['t_end']) for page in outcome.pages] == \
        6 * [('0', 'unfinished', '20.000000')]
    assert collections.Counter(row['outcome'] for row in outcome.requests) == {'ok': 6 * 7, 'unfinished': 6 * 5}


def test_pages_with_background(tmp_path):
    outcome = Outcome(tmp_path, workload='pages', parameters={'background': 2})
    background = [row for row in outcome.requests if row['kind'] == 'background']
    assert len(background) == 6 * 2 * 100 and {row['page'] for row in background} == {''}
    assert any(row['kind'] == 'document' for row in outcome.requests)


@pytest.mark.parametrize('workload', ['backlogged', 'open', 'pages'])
def test_over_https_the_same_is_asked_for_on_tunnels(tmp_path, workload):
    outcomes = []
    for name in (workload, f'https-{workload}'):
        (tmp_path / name).mkdir()
        outcomes.append(Outcome(tmp_path / name, workload=name, drain_s=5))
    plain, https = outcomes
    assert set(plain.clients.ways) == {'http'} and set(https.clients.ways) == {'h2'}
    assert {row['scheme'] for row in plain.requests} == {'http'} and {row['scheme'] for row in https.requests} == {'h2'}
    assert {row['outcome'] for row in https.requests} == {'ok'}
    assert https.offered == plain.offered
    for user in plain.spec.users:
        a, b = sequence(plain, user.name), sequence(https, user.name)
        assert len(a) > 10 and a[:len(b)] == b[:len(a)]


def test_a_page_over_https_asks_for_all_its_objects_at_once(tmp_path):
    outcome = Outcome(tmp_path, workload='https-pages', duration_s=200, drain_s=50)
    assert outcome.clients.most == {user.name: 11 for user in outcome.spec.users}
    assert len(outcome.pages) > 100
    for page in outcome.pages:      # the document, then eleven at once
        assert float(page['t_end']) - float(page['t_start']) == pytest.approx(0.4, abs=1e-5)


def test_idle_tunnels_stay_open_for_the_whole_run(tmp_path):
    outcome = Outcome(tmp_path, workload='https-pages', drain_s=50)
    held = outcome.clients.tunnels.idle
    assert collections.Counter(user for user, *_ in held) == {user.name: 20 for user in outcome.spec.users}
    assert collections.Counter(server for _, server, *_ in held) == {'s01.test': 60, 's02.test': 60}
    assert all(0 <= opened <= idle.OPENING_S and closed == 20.0 for *_, opened, closed in held)
    (tmp_path / 'none').mkdir()
    none = Outcome(tmp_path / 'none', workload='https-pages', drain_s=50, parameters={'idle': 0})
    assert none.clients.tunnels.idle == []
    assert [row['t_start'] for row in none.requests] == [row['t_start'] for row in outcome.requests]


def test_an_idle_tunnel_that_cannot_be_opened_is_counted(tmp_path):
    def clients(made):
        made.tunnels.refuse = lambda number: number >= 7
    outcome = Outcome(tmp_path, workload='https-pages', drain_s=50, clients=clients)
    assert dict(outcome.run.errors) == {'idle tunnel: ConnectionRefusedError: no': 113}
    assert dict(outcome.run.tunnels) == {'opened': 7, 'failed': 113}
    assert {row['outcome'] for row in outcome.requests} == {'ok'}


@pytest.mark.parametrize('parameters, encrypts', (({}, True), ({'http2': 0, 'only': 'rate'}, True),
                                                  ({'http2': 0, 'tunnels_s': 0}, False)))
def test_disturbed_users_need_tls_where_they_have_tunnels(parameters, encrypts):
    assert workloads.get('disturbed')(parameters).encrypts() == encrypts


def test_disturbances_come_one_after_the_other_with_time_to_recover():
    workload = workloads.get('disturbed')()
    every = workload.disturbances(1000)
    assert [each.kind for each in every] == ['rate', 'down', 'cbr', 'stall', 'tunnels']
    assert [(each.t_start, each.t_end) for each in every] == [(50, 80), (105, 113), (138, 158), (183, 198), (223, 243)]
    assert [each.value for each in every] == [0.5, 0.0, 0.5, 0.0, 200]
    assert workload.disturbances(263) == every and workload.disturbances(262) == every[:4]
    fewer = workloads.get('disturbed')({'rate_s': 0, 'stall_s': 0, 'calm_s': 100, 'first_s': 20}).disturbances(1000)
    assert [(each.kind, each.t_start) for each in fewer] == [('down', 20), ('cbr', 128), ('tunnels', 248)]
    with pytest.raises(TrialError, match=r'^workload disturbed: no disturbance fits into 60 s; the first begins at 50 s '):
        workload.disturbances(60)
    stream, = workload.beside(2_000_000, 263)
    assert (stream.rate_bps, stream.bursts) == (1_000_000, ((138, 158),))
    assert workload.beside(2_000_000, 157) == ()


def test_disturbances_are_repeated_and_the_run_is_as_long_as_that_takes():
    twice = workloads.get('disturbed')({'repeat': 2, 'stall_s': 0, 'rate_s': 0, 'tunnels_s': 0})
    assert twice.whole_s() == 50 + 2 * 28 + 3 * 25 + 20
    assert [(each.kind, each.t_start) for each in twice.disturbances(201)] == [
        ('down', 50), ('cbr', 83), ('down', 128), ('cbr', 161)]
    assert [each.kind for each in twice.disturbances(200)] == ['down', 'cbr', 'down']
    stream, = twice.beside(2_000_000, 201)
    assert stream.bursts == ((83, 103), (161, 181))
    alone = workloads.get('disturbed')({'repeat': 20, 'only': 'down'})
    assert [each.kind for each in alone.disturbances(alone.whole_s())] == 20 * ['down']
    assert workloads.get('backlogged')().whole_s() is None
    with pytest.raises(TrialError, match="only: 'rain' is not rate, down, cbr, stall, tunnels or store$"):
        workloads.get('disturbed')({'only': 'rain'}).check()


def test_few_users_have_large_downloads_all_the_time(tmp_path):
    outcome = Outcome(tmp_path, workload='few', counts=(1, 1, 1), parameters={'downloads': 2})
    assert outcome.clients.most == {user.name: 2 for user in outcome.spec.users}
    size, = {int(row['size']) for row in outcome.requests}
    assert size == pytest.approx(4.0 * 2e6 / 8, rel=0.01)
    assert set(outcome.clients.ways) == {'h2'}
    assert workloads.get('few')({'users': 3}).population(['a', 'b'], 12) == {'a': 3, 'b': 3}


def test_players_take_the_bitrate_that_segments_come_with(tmp_path):
    seconds = {'gold': 1.0, 'silver': 2.0, 'bronze': 20.0}      # of each segment, whatever its size
    outcome = Outcome(tmp_path, workload='video', counts=(3, 3, 3), rate_bps=10e6, drain_s=20, duration_s=100,
                      parameters={'players': 1, 'beside': 2, 'buffer_s': 16.0, 'rule': 'throughput', 'video_s': 900.0},
                      answer=lambda user, *_: Answer(wait=0.0, transfer=seconds[user.cls]))
    rows = [row for row in outcome.requests if row['kind'] == 'segment']
    assert {row['user'] for row in rows} == {'gold-1', 'silver-1', 'bronze-1'}
    of = {user: [int(row['size']) * 8 / 4 for row in rows if row['user'] == user] for user in ('gold-1', 'silver-1')}
    assert of['gold-1'][0] == pytest.approx(ladder.LADDER[0], rel=0.01), 'nothing is known yet'
    # In 1 s four times the bitrate arrived, in 2 s twice: both end at the top, the faster one sooner.
    assert of['gold-1'][-1] == of['silver-1'][-1] == pytest.approx(ladder.LADDER[-1], rel=0.01)
    assert of['gold-1'].index(of['gold-1'][-1]) < of['silver-1'].index(of['silver-1'][-1])
    begun = starts(outcome, kind='segment', user='gold-1')
    assert begun[3] < 5 and begun[-1] - begun[-2] == pytest.approx(4.0), 'the buffer is full: one comes as one is played'
    assert {row['size'] for row in rows if row['user'] == 'bronze-1'} == {str(grid.nearest(235e3 * 4 / 8))}
    assert {row['user'] for row in outcome.requests if row['kind'] == 'object'} == {
        f'{name}-{number}' for name in seconds for number in (2, 3)}


def test_half_of_the_players_of_a_class_have_bola(tmp_path):
    """Everything arrives in no time: the throughput rule goes to the top at once, BOLA only with a long buffer."""
    outcome = Outcome(tmp_path, workload='video', counts=(4, 4, 4), parameters={'players': 2, 'beside': 2},
                      answer=lambda *_: Answer(wait=0.0, transfer=0.1))
    rates = {}
    for row in outcome.requests:
        if row['kind'] == 'segment' and row['page'].endswith('-v1'):
            rates.setdefault(row['user'], []).append(round(int(row['size']) * 8 / 4e3))
    assert set(rates) == {f'{name}-{number}' for name in ('gold', 'silver', 'bronze') for number in (1, 2)}
    assert {rates[f'{name}-1'][1] for name in ('gold', 'silver', 'bronze')} == {5753}
    assert rates['bronze-2'][:7] == [*4 * [237], 556, 2360, 5753], 'below 13 s of video the lowest'
    rule = workloads.get('video')({'rule': 'bola'}).rules(outcome.spec.users)
    assert set(rule.values()) == {adaptation.bola}


def test_a_video_is_followed_by_another_and_the_first_was_begun_before(tmp_path):
    outcome = Outcome(tmp_path, workload='video', counts=(3, 3, 3), duration_s=300,
                      parameters={'players': 1, 'beside': 2, 'video_s': 40.0},
                      answer=lambda *_: Answer(wait=0.0, transfer=0.5))
    videos = {}
    for row in outcome.requests:
        if row['kind'] == 'segment':
            videos.setdefault(row['user'], {}).setdefault(row['page'], []).append(row)
    for found in videos.values():
        first, *whole, _last = found.values()
        assert 1 <= len(first) <= 10 and {len(rows) for rows in whole} == {10}
        for rows, after in itertools.pairwise(whole):
            assert len({row['server'] for row in rows}) == 1
            # Shown to its end, 0.5 s after its start and 40 s long, before the next is requested.
            assert float(after[0]['t_start']) - float(rows[0]['t_start']) == pytest.approx(40.5)
    assert len({len(next(iter(found.values()))) for found in videos.values()}) > 1


@pytest.mark.parametrize('values, said', [
    ({'rule': 'best'}, "workload video: rule: 'best' is not throughput, bola or both"),
    ({'buffer_s': 7}, 'workload video: buffer_s: 7 s hold less than two segments of 4 s (segment_s)')])
def test_players_that_cannot_play_are_refused(values, said):
    with pytest.raises(TrialError) as error:
        workloads.get('video')(values).check()
    assert str(error.value) == said


def test_a_call_is_fifty_datagrams_a_second_all_the_time():
    stream, = workloads.get('call')().beside(2e6, 60)
    assert (stream.rate_bps / 8 / stream.frame, stream.bursts, stream.timed) == (50, ((0.0, 60),), True)
    assert stream.rate_bps == pytest.approx(85_600) and stream.receiver is None


def test_an_evening_has_its_parts(tmp_path):
    evening = workloads.get('evening')
    assert evening().population(['gold', 'silver', 'bronze'], 4) == {'gold': 30, 'silver': 90, 'bronze': 180}
    outcome = Outcome(tmp_path, workload='evening', counts=(10, 20, 40), rate_bps=50e6, duration_s=900, drain_s=60,
                      answer=lambda *_: Answer(wait=0.0, transfer=0.5))
    users = {kind: {row['user'] for row in outcome.requests if row['kind'] == kind}
             for kind in ('document', 'object', 'segment', 'update')}
    assert len(users['document']) == len(users['object']) == 70
    assert {kind: [sum(user.startswith(name) for user in users[kind]) for name in ('gold', 'silver', 'bronze')]
            for kind in ('segment', 'update')} == {'segment': [2, 4, 8], 'update': [0, 1, 2]}
    speak = {row['user'] for row in outcome.requests if row['scheme'] == 'h3'}
    assert speak == {'gold-10', 'silver-10', 'silver-20', *(f'bronze-{n}' for n in (10, 20, 30, 40))}
    assert {row['kind'] for row in outcome.requests if row['scheme'] == 'h3'} == {'document', 'object'}
    sent = [row for row in outcome.requests if row['kind'] == 'upload']
    assert {row['user'] for row in sent} == {'silver-19', 'bronze-19', 'bronze-39'}
    assert {(row['scheme'], row['size'], row['bytes'], row['outcome']) for row in sent} == {
        ('h2', str(grid.nearest(2e6)), str(grid.nearest(2e6)), 'ok')}
    assert len(sent) == len(outcome.clients.sent) == pytest.approx(3 * 900 / 120, abs=12)
    received = sum(int(row['bytes']) for row in outcome.requests if row['kind'] != 'upload')
    assert sum(outcome.run.records.by_class().values()) == received, 'what is sent is not received'
    call, = outcome.spec.model.beside(50e6, 900)
    assert call.timed and call.receiver is None


def test_the_ladder_has_a_step_for_any_rate():
    assert [ladder.highest(rate) for rate in (0, 235e3, 374e3, 375e3, 1e9)] == [235e3, 235e3, 235e3, 375e3, 5.8e6]


def test_half_of_the_users_bypass_squid(tmp_path):
    outcome = Outcome(tmp_path, workload='bypass', counts=(3, 2, 1), drain_s=5, parameters={'connections': 2},
                      answer=lambda _user, _server, size: Answer(transfer=7.0 if size > 100_000_000 else 0.1))
    direct = {row['user'] for row in outcome.requests if row['scheme'] == 'direct'}
    assert direct == {'gold-2', 'silver-2'}     # the only user of a class is not direct
    assert {row['scheme'] for row in outcome.requests if row['user'] not in direct} == {'h2'}
    rows = [row for row in outcome.requests if row['scheme'] == 'direct']
    # Two at a time for each, one after the other, each from one server, all of the greatest size.
    assert collections.Counter((row['user'], row['server']) for row in rows) == {
        (user, server): 6 for user, server in (('gold-2', 's01.test'), ('silver-2', 's02.test'))}
    assert {row['size'] for row in rows} == {str(grid.sizes()[-1])} and {row['kind'] for row in rows} == {'bulk'}
    assert outcome.clients.most['gold-2'] == 2 and outcome.clients.most['gold-1'] == 4


def test_by_quic_the_load_generator_leaves_them_to_others(tmp_path):
    outcome = Outcome(tmp_path, workload='bypass', counts=(4, 2, 2), parameters={'quic': True})
    assert {row['scheme'] for row in outcome.requests} == {'h2'}
    workload, spec = outcome.spec.model, outcome.spec
    assert {user.name for user in workload.direct(spec.users)} == {'gold-2', 'gold-4', 'silver-2', 'bronze-2'}
    assert {row['user'] for row in outcome.requests} == {'gold-1', 'gold-3', 'silver-1', 'bronze-1'}
    assert [(user.name, server.name) for user, server in workload.quic_downloads(spec.users, spec.servers)] == [
        ('gold-2', 's01.test'), ('gold-4', 's01.test'), ('silver-2', 's02.test'), ('bronze-2', 's02.test')]
    assert workloads.get('bypass')().quic_downloads(spec.users, spec.servers) == ()


def schemes(outcome):
    """{user: {scheme: requests}}."""
    found = {}
    for row in outcome.requests:
        found.setdefault(row['user'], collections.Counter())[row['scheme']] += 1
    return found


def test_every_second_user_of_a_class_speaks_http3(tmp_path):
    outcome = Outcome(tmp_path, workload='quic-backlogged', counts=(4, 2, 1))
    speak = {user.name for user in outcome.spec.model.quic_users(outcome.spec.users)}
    assert speak == {'gold-2', 'gold-4', 'silver-2'}
    assert schemes(outcome) == {user.name: {'h3': 300, 'h2': 100} if user.name in speak else {'h2': 400}
                                for user in outcome.spec.users}
    assert outcome.clients.most == {user.name: 4 for user in outcome.spec.users}
    assert workloads.get('https-backlogged')().quic_users(outcome.spec.users) == ()


def test_as_much_over_tcp_as_is_asked_for_and_a_flood(tmp_path):
    outcome = Outcome(tmp_path, workload='quic-backlogged', parameters={'tcp': 0, 'inflight': 2})
    assert schemes(outcome)['gold-2'] == {'h3': 200}
    assert outcome.spec.model.beside(2e6, 20.0) == ()
    stream, = workloads.get('quic-backlogged')({'flood': 2}).beside(2e6, 20.0)
    assert (stream.rate_bps, stream.bursts, stream.receiver) == (4e6, ((0.0, 20.0),), 0)


def test_pages_over_http3_are_those_over_tunnels(tmp_path):
    outcomes = {}
    for name in ('quic-pages', 'https-pages'):
        (tmp_path / name).mkdir()
        outcomes[name] = Outcome(tmp_path / name, workload=name, duration_s=200, drain_s=50)
    ours, plain = outcomes.values()
    assert {user: set(of) for user, of in schemes(ours).items()} == {
        f'{name}-{number}': {way} for name in ('gold', 'silver', 'bronze') for number, way in ((1, 'h2'), (2, 'h3'))}
    assert [(row['page'], row['t_start']) for row in ours.pages] == [
        (row['page'], row['t_start']) for row in plain.pages] != []
    assert ours.clients.tunnels.idle == []


def test_disturbed_says_in_its_phases_what_is_judged(tmp_path):
    spec = a_spec(tmp_path, workload='disturbed', duration_s=120)
    phases = spec.model.phases(spec)
    assert [(phase.t_start, phase.t_end, phase.label, phase.after) for phase in phases] == [
        (0, 50, 'before', ''), (50, 80, 'lower rate', ''), (80, 120, 'after lower rate', 'lower rate')]
    assert {phase.classes for phase in phases} == {spec.classes}


@pytest.mark.parametrize('seconds, judged', [(30, 'store stopped'), (19, '')])
def test_shares_are_judged_while_the_store_is_stopped_and_afterwards(tmp_path, seconds, judged):
    spec = a_spec(tmp_path, workload='disturbed', duration_s=200, parameters={'only': 'store', 'store_s': seconds})
    assert [(phase.t_start, phase.label, phase.after) for phase in spec.model.phases(spec)] == [
        (0, 'before', ''), (50, 'store stopped', judged), (50 + seconds, 'after store back', 'store back')]


@pytest.mark.parametrize('http2, ways', [(1.0, {'h2': 4}), (0.5, {'h2': 2, 'http': 2}), (0.0, {'http': 4})])
def test_disturbed_is_saturated_all_the_time(tmp_path, http2, ways):
    outcome = Outcome(tmp_path, workload='disturbed', duration_s=40,
                      parameters={'http2': http2, 'first_s': 5, 'rate_s': 10})
    assert outcome.clients.most == {user.name: 4 for user in outcome.spec.users}
    assert len(outcome.requests) == 6 * 4 * 200     # 0.2 s each, and no pause between phases
    assert {way: count / 1200 for way, count in outcome.clients.ways.items()} == ways


def test_disturbed_opens_so_many_idle_tunnels_in_all(tmp_path):
    parameters = {'tunnels': 20, 'first_s': 5, **dict.fromkeys(('rate_s', 'down_s', 'cbr_s', 'stall_s'), 0)}
    outcome = Outcome(tmp_path, workload='disturbed', duration_s=60, parameters=parameters)
    held = outcome.clients.tunnels.idle
    assert sorted(collections.Counter(user for user, *_ in held).values()) == [3, 3, 3, 3, 4, 4]
    assert all(4.999 < opened <= 5 + idle.OPENING_S and closed == pytest.approx(25) for *_, opened, closed in held)


@pytest.mark.parametrize('load', [0.5, 0.95])
def test_open_offers_the_load(tmp_path, load):
    outcome = Outcome(tmp_path, workload='open', duration_s=1000, drain_s=10, parameters={'load': load})
    rows = outcome.requests
    wire = sum(sizes.wire_bytes(int(row['size'])) for row in rows)
    assert wire * 8 / 2e6 / 1000 == pytest.approx(load, rel=0.002)
    assert outcome.offered['arrivals'] == len(rows) and outcome.offered['wire_bytes'] == wire
    assert outcome.offered['load'] == pytest.approx(load, rel=0.002)
    # Poisson: exponential gaps, so mean and deviation are alike, counts in 10 s vary as much as their mean.
    times = sorted(starts(outcome))
    assert 0 < times[0] and times[-1] < 1000
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert statistics.stdev(gaps) == pytest.approx(statistics.mean(gaps), rel=0.05)
    counts = collections.Counter(int(t // 10) for t in times)
    counts = [counts[number] for number in range(100)]
    assert statistics.variance(counts) == pytest.approx(statistics.mean(counts), rel=0.3)
    # Users are equally likely.
    by_user = collections.Counter(row['user'] for row in rows)
    assert all(count == pytest.approx(len(rows) / 6, rel=0.15) for count in by_user.values())


def test_open_arrivals_do_not_wait_for_answers(tmp_path):
    (tmp_path / 'fast').mkdir()
    (tmp_path / 'dead').mkdir()
    fast = Outcome(tmp_path / 'fast', workload='open', drain_s=5)
    dead = Outcome(tmp_path / 'dead', workload='open', drain_s=5, answer=lambda *_: Answer(wait=1e6))
    columns = ('user', 'server', 'size', 't_start')
    wanted = [sorted(tuple(row[column] for column in columns) for row in outcome.requests) for outcome in (fast, dead)]
    assert wanted[0] == wanted[1] and len(wanted[0]) > 50
    assert {row['outcome'] for row in dead.requests} == {'unfinished'}
    assert {row['t_end'] for row in dead.requests} == {'25.000000'}


def test_more_arrivals_than_bounded_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrivals, 'MOST_ARRIVALS', 100)
    spec = a_spec(tmp_path, workload='open', rate_bps=1e9, duration_s=86_400, sizes='fixed:64')
    with pytest.raises(TrialError, match='^more than 100 arrivals in 86400 s: use a shorter run'):
        spec.model.prepare(offers.Offers(spec, Clients(spec, None).reachable))


@pytest.mark.parametrize('answer, outcome, text', [
    (Answer(status=503), 'refused', None),
    (Answer(status=502), 'error', 'status 502'),
    (Answer(size=10), 'error', 'the body is shorter or longer than what was asked for'),
    (Answer(error=aiohttp.ClientPayloadError('cut')), 'error', 'ClientPayloadError: cut'),
    (Answer(error=ConnectionResetError('reset')), 'error', 'ConnectionResetError: reset'),
])
def test_failures_are_told_apart_and_not_repeated_at_once(tmp_path, answer, outcome, text):
    done = Outcome(tmp_path, answer=lambda *_: answer, parameters={'inflight': 1})
    assert {row['outcome'] for row in done.requests} == {outcome}
    assert {row['status'] for row in done.requests} == {'0' if answer.error else str(answer.status)}
    assert {bool(row['t_first_byte']) for row in done.requests} == {not answer.error}
    assert dict(done.run.errors) == ({text: len(done.requests)} if text else {})
    gaps = [later - earlier for earlier, later in itertools.pairwise(sorted(starts(done, user='gold-1')))]
    assert min(gaps) >= running.PAUSE_AFTER_FAILURE_S


def test_in_flight_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(running, 'MOST_IN_FLIGHT', 10)
    outcome = Outcome(tmp_path, workload='open', answer=lambda *_: Answer(wait=1e6))
    ends = collections.Counter(row['outcome'] for row in outcome.requests)
    assert ends['unfinished'] == 10 and ends['error'] == len(outcome.requests) - 10 > 0
    assert dict(outcome.run.errors) == {'not sent: 10 requests were in flight': ends['error']}


def test_different_error_texts_are_bounded(tmp_path):
    serial = itertools.count()
    outcome = Outcome(tmp_path, answer=lambda *_: Answer(error=OSError(f'number {next(serial)}')))
    assert len(outcome.run.errors) == running.MOST_ERROR_TEXTS + 1
    assert sum(outcome.run.errors.values()) == len(outcome.requests)
    assert outcome.run.errors['others'] > 0


LIST = '''# a comment
http://www.a.example/x 5000
https://b.example:8443/y?z=1 20000   # another

c.example/z 0
http://www.a.example/x 5000
\xfcber.example/ 700
'''


def test_url_list(tmp_path):
    (tmp_path / 'my.list').write_bytes(LIST.encode('latin-1'))     # the encoding need not be UTF-8
    outcome = Outcome(tmp_path, workload='url-list', drain_s=5,
                      parameters={'list': f'{tmp_path}/my.list', 'load': 0.3, 'cache': 'yes'})
    rows = sorted(outcome.requests, key=lambda row: float(row['t_start']))
    expected = [grid.nearest(size) for size in (5000, 20000, 0, 5000, 700)]
    assert [int(row['size']) for row in rows] == [size for size, _ in zip(itertools.cycle(expected), rows)]
    paths = {path for _, _, path in outcome.clients.asked}
    assert len(paths) == 4 and all(path.startswith('/c/') for path in paths)
    servers = [row['server'] for row in rows]
    assert servers[0] == servers[3] == outcome.spec.servers[zlib.crc32(b'www.a.example') % 2].name
    assert len({row['user'] for row in rows}) == 6


@pytest.mark.parametrize('text, message', [
    ('', 'my.list: no line with "URL BYTES" in it'),
    ('# nothing\n', 'my.list: no line with "URL BYTES" in it'),
    ('\nhttp://a/ \n', 'my.list:2: 1 words, allowed are 2: URL BYTES'),
    ('http://a/ 1 2\n', 'my.list:1: 3 words, allowed are 2: URL BYTES'),
    ('http:///x 1\n', "my.list:1: 'http:///x' is not a URL with a host name"),
    ('http://a/ -1\n', "my.list:1: '-1' is not a size from 0 to 128000000 bytes"),
    ('http://a/ 1e3\n', "my.list:1: '1e3' is not a size from 0 to 128000000 bytes"),
    ('http://a/ 128000001\n', "my.list:1: '128000001' is not a size from 0 to 128000000 bytes"),
    ('http://[/ 5\n', "my.list:1: 'http://[/' is not a URL with a host name"),
])
def test_url_list_refused(tmp_path, text, message):
    (tmp_path / 'my.list').write_text(text)
    with pytest.raises(TrialError) as refusal:
        Outcome(tmp_path, workload='url-list', parameters={'list': f'{tmp_path}/my.list'})
    assert str(refusal.value) == f'{tmp_path}/{message}'


def test_url_list_needs_a_list(tmp_path):
    with pytest.raises(TrialError, match='^workload url-list: list: missing; give a file with "URL BYTES"'):
        Outcome(tmp_path, workload='url-list')
    with pytest.raises(TrialError, match='none: No such file or directory$'):
        Outcome(tmp_path, workload='url-list', parameters={'list': f'{tmp_path}/none'})
