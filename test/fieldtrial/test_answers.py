# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run tells people: a sentence with a mark for each topic, one screen, and pictures."""
import io
import re

import pytest
import synthetic

from fieldtrial.analysis import answers, runs, verdict
from fieldtrial.analysis.measures import Measures
from fieldtrial.base.spec import Answer, Profile
from fieldtrial.load import workloads
from fieldtrial.report import __main__ as program, screen
from fieldtrial.report.build import write_report

CAKE = synthetic.Arm('router-cake', queue_ms=8, drops_per_mb=20, latency_s=(0.5, 0.5, 0.5), page_s=(9.0, 9.0, 9.0))
BUSY = [(round(number * 4.0, 2), 0.4) for number in range(1, 17)]
QUIET = ()


def a_run(directory, only=None, stalls=None, seconds=200.0):
    """A run with every topic, or only some workloads. stalls: {arm: stalls of the host}."""
    for arm in (synthetic.STOCK, CAKE, synthetic.OURS):
        def cell(workload, arm=arm, **more):
            if only and workload not in only:
                return None
            path = directory / f'{workload}-{arm.name}'
            synthetic.make_cell(path, arm, workload, stalls=(stalls or {}).get(arm.name, QUIET), **more)
            return path
        cell('https-pages', pages=True, buffer_bdp=4.0, objects=12, idle=20, seconds=seconds)
        cell('https-backlogged', inflight=4)
        if arm is CAKE:
            continue
        ours = arm is synthetic.OURS
        if path := cell('video', rate_bps=10e6, segment_s=4.0, players=2):
            rates = {'gold': 1.05e6 if ours else 375e3, 'silver': 560e3, 'bronze': 235e3}
            synthetic.play(path, rates, 0 if ours else 4.0)
        if path := cell('call', buffer_bdp=4.0):
            synthetic.talk(path, [70.0 if ours else 390.0] * 60, 0 if ours else 10)
    return directory


def told_of(directory):
    """{topic: Told}."""
    groups = verdict.by_condition([Measures(cell) for cell in runs.read_run(directory).cells])
    return {each.topic: each for each in answers.told(groups)}


@pytest.fixture(scope='module', name='told')
def every_topic(tmp_path_factory):
    """The topics of a run that has all."""
    return told_of(a_run(tmp_path_factory.mktemp('told') / 'run'))


def test_each_topic_is_a_sentence_with_both_figures_and_a_mark(told):
    assert list(told) == ['Pages', 'Downloads', 'Video', 'Calls', 'Fairness', 'Queue']
    assert {each.mark for each in told.values()} == {answers.BETTER}
    assert told['Calls'].sentence() == (
        '95 % of the voice packets arrive within 70.0 ms instead of 390 ms with unmodified Squid; its opinion score (1 '
        'to 4.5) is 4.36 instead of 1.79.')
    assert told['Video'].sentence() == (
        "A gold user's video has 1.05 Mbit/s instead of 374 kbit/s with unmodified Squid; playback stalls 0.0 % of the "
        'time instead of 6.7 %.')
    assert told['Fairness'].sentence() == (
        'With weights 4:2:1, bandwidth per user is 4.00:2.00:1 instead of 1.00:1.00:1 with unmodified Squid (CAKE on a '
        'router: 1.00:1.00:1).')
    assert told['Queue'].sentence() == (
        "A packet waits 58.0 ms in the provider's queue instead of 160 ms with unmodified Squid (CAKE on a router: "
        '8.00 ms); 0.3 % of the packets are dropped instead of 3.8 %.')
    assert re.fullmatch(
        r"A gold user's page loads in [\d.]+ s instead of [\d.]+ s with unmodified Squid \(CAKE on a router: [\d.]+ s\)"
        r'; a page of any user in [\d.]+ s instead of [\d.]+ s\.', told['Pages'].sentence())


def test_a_topic_that_was_not_run_is_not_told(tmp_path):
    assert list(told_of(a_run(tmp_path, only=('call',)))) == ['Calls', 'Fairness', 'Queue']
    assert list(told_of(a_run(tmp_path / 'pages', only=('https-pages',)))) == ['Pages', 'Queue']


@pytest.mark.parametrize('more, mark', [
    ({'queue_ms': 130.0}, answers.BETTER), ({'queue_ms': 156.0}, answers.SAME), ({'queue_ms': 170.0}, answers.WORSE),
    ({'queue_ms': 130.0, 'drops_per_mb': 80.0}, answers.WORSE), ({'drops_per_mb': 38.0}, answers.SAME)])
def test_better_is_what_has_nothing_worse(tmp_path, more, mark):
    """Stock has 160 ms and 40 drops per MB. Less than 5 %, or than a user notices, is the same."""
    for arm in (synthetic.STOCK, synthetic.Arm('msfrs', **{'queue_ms': 160.0, **more})):
        synthetic.make_cell(tmp_path / arm.name, arm, 'backlogged')
    assert told_of(tmp_path)['Queue'].mark == mark


def test_what_noise_explains_is_the_same(tmp_path):
    """Pages whose means differ by a tenth, of three users in a minute, and in an hour."""
    for seconds, mark in ((60.0, answers.SAME), (3600.0, answers.BETTER)):
        for arm in (synthetic.STOCK, synthetic.Arm('msfrs', page_s=(10.0, 10.0, 10.0))):
            synthetic.make_cell(tmp_path / f'{seconds}' / arm.name, arm, 'pages', pages=True, seconds=seconds,
                                counts=(1, 1, 1))
        assert told_of(tmp_path / f'{seconds}')['Pages'].mark == mark


@pytest.mark.parametrize('busy', ['stock', 'msfrs'])
def test_on_a_busy_host_a_topic_is_not_judged(tmp_path, busy):
    found = told_of(a_run(tmp_path, only=('https-backlogged',), stalls={busy: BUSY}))
    assert {each.mark for each in found.values()} == {answers.UNJUDGED}
    assert all(each.why.startswith('Not judged: the host stalled for up to 400 ms') for each in found.values())
    text = written(tmp_path)
    assert text.count('not judged\n') == 3 and 'better' not in text
    assert '; 1 of 3 cells cannot be judged because of that: ' in ' '.join(text.split())


def test_a_peer_on_a_busy_host_is_not_told(tmp_path):
    found = told_of(a_run(tmp_path, only=('https-backlogged',), stalls={'router-cake': BUSY}))
    assert {each.mark for each in found.values()} == {answers.BETTER}
    assert not any('CAKE' in each.sentence() for each in found.values())


def test_without_unmodified_squid_nothing_is_judged(tmp_path):
    synthetic.make_cell(tmp_path / 'msfrs', synthetic.OURS, 'backlogged')
    queue = told_of(tmp_path)['Queue']
    assert queue.sentence() == "A packet waits 58.0 ms in the provider's queue; 0.3 % of the packets are dropped."
    assert (queue.mark, queue.why) == (answers.UNJUDGED, 'Not judged: this run has no such figure of unmodified Squid.')


def test_a_condition_that_is_judged_is_told_before_one_that_is_not(tmp_path):
    for name, arm, more in (('a', synthetic.OURS, {'buffer_bdp': 1.5}), ('b', synthetic.OURS, {'buffer_bdp': 4.0}),
                            ('c', synthetic.STOCK, {'buffer_bdp': 4.0})):
        synthetic.make_cell(tmp_path / name, arm, 'backlogged', **more)
    queue = told_of(tmp_path)['Queue']
    assert (queue.cell.buffer_bdp, queue.mark) == (4.0, answers.BETTER)


def seeds(directory, ours_ms, stalls=()):
    """Saturated cells of as many seeds, with stock's queue of 160 ms; those of `stalls` on a busy host."""
    for seed, queue_ms in enumerate(ours_ms, start=1):
        for arm in (synthetic.STOCK, synthetic.Arm('msfrs', queue_ms=queue_ms, drops_per_mb=3.5)):
            synthetic.make_cell(directory / f'{arm.name}-{seed}', arm, 'backlogged', seed=seed, inflight=4,
                                stalls=BUSY if seed in stalls else QUIET)
    return directory


@pytest.mark.parametrize('ours_ms, mean, mark', [
    ((100.0, 110.0, 120.0), '110 ms', answers.BETTER), ((80.0, 80.0, 170.0), '110 ms', answers.BETTER),
    ((200.0, 210.0, 220.0), '210 ms', answers.WORSE)])
def test_of_several_seeds_the_mean_is_told(tmp_path, ours_ms, mean, mark):
    queue = told_of(seeds(tmp_path, ours_ms))['Queue']
    assert queue.clauses[0] == f"a packet waits {mean} in the provider's queue instead of 160 ms with unmodified Squid"
    assert (queue.mark, queue.seeds) == (mark, 3)
    assert queue.condition().endswith('60 s, means of seeds 1, 2, 3') and 'seed 1' not in queue.condition()


def test_seeds_that_disagree_are_the_same():
    def cells(*values):
        return [type('Cell', (), {'queue_mean_ms': lambda self, value=value: value})() for value in values]
    what = answers.Quantity('Queue', lambda m, _: m.queue_mean_ms(), str, least=5.0)
    assert answers._compared(what, None, cells(80, 80, 170), cells(160, 160, 160)) == answers.SAME
    assert answers._compared(what, None, cells(80, 80, 150), cells(160, 160, 160)) == answers.BETTER
    assert answers._compared(what, None, cells(80), cells(160)) == answers.BETTER


def test_a_seed_on_a_busy_host_is_left_out(tmp_path):
    queue = told_of(seeds(tmp_path, (100.0, 150.0, 120.0), stalls=(2,)))['Queue']
    assert (queue.seeds, queue.mark) == (2, answers.BETTER) and ' 110 ms ' in queue.clauses[0]
    assert queue.condition().endswith('seeds 1, 3')
    assert told_of(seeds(tmp_path / 'all', (100.0, 150.0), stalls=(1, 2)))['Queue'].mark == answers.UNJUDGED


def test_several_seeds_are_on_the_screen_and_in_tables_with_their_spread(tmp_path):
    text = written(seeds(tmp_path / 'run', (100.0, 110.0, 120.0)), pictures_in=tmp_path / 'pictures')
    assert 'Seeds      Means of up to 3 seeds; the report has the spread.' in text
    assert len(text.splitlines()) <= screen.LINES and max(map(len, text.splitlines()[:-3])) <= screen.WIDTH
    lines = (tmp_path / 'run' / 'verdicts.txt').read_text().splitlines()
    assert '  queue, ms: unmodified Squid 160, MSF-RS 110 (100 to 120)' in lines
    assert max(map(len, lines)) <= 100
    page = (tmp_path / 'run' / 'report.html').read_text()
    assert '>110<div class="note">100 to 120</div></td>' in page and 'means of seeds 1, 2, 3' in page
    assert 'a line in a bar is from the least to the greatest' in page
    assert '>110</text>' in (tmp_path / 'pictures' / 'queue-queue.svg').read_text()


def test_one_seed_has_no_spread(whole):
    written(whole)
    assert 'seeds' not in (whole / 'verdicts.txt').read_text()
    assert 'a line in a bar' not in (whole / 'report.html').read_text()


def test_a_workload_tells_of_times_of_its_own(tmp_path, monkeypatch):
    """It writes them into pages.csv, and needs no other file."""
    paint = Answer('Painting', {'pages.paint_s': 'a page shows something in {}'})
    monkeypatch.setattr(workloads.get('pages'), 'profile', Profile('Pages in browsers', answers=(paint,)))
    for arm in (synthetic.STOCK, synthetic.OURS):
        path = tmp_path / arm.name / 'pages.csv'
        synthetic.make_cell(path.parent, arm, 'pages', pages=True)
        header, *rows = path.read_text().splitlines()
        paint_s = 1.25 if arm is synthetic.OURS else 3
        path.write_text('\n'.join([f'{header},paint_s', *(f'{row},{paint_s}' for row in rows)]))
    only, = told_of(tmp_path).values()
    assert (only.topic, only.mark) == ('Painting', answers.BETTER)
    assert only.sentence() == 'A page shows something in 1.25 s instead of 3.00 s with unmodified Squid.'


@pytest.mark.parametrize('figure, said', [('cpu', '42.0 s/GB instead of 60.0 s/GB'), ('object', None)])
def test_what_only_new_workloads_tell_of_can_be_told(tmp_path, monkeypatch, figure, said):
    answer = Answer('New', {figure: 'it takes {}'})
    monkeypatch.setattr(workloads.get('backlogged'), 'profile', Profile('New', answers=(answer,)))
    for arm in (synthetic.STOCK, synthetic.OURS):
        synthetic.make_cell(tmp_path / arm.name, arm, 'backlogged')
    only, = told_of(tmp_path).values()
    assert only.mark == answers.BETTER
    assert said is None or only.sentence() == f'It takes {said} with unmodified Squid.'


def test_every_figure_that_a_workload_tells_of_exists():
    for name in workloads.names():
        for answer in workloads.get(name).profile.told():
            for figure, text in answer.clauses.items():
                assert answers.quantity(figure.partition(':')[0]) and text.count('{}') == 1


@pytest.mark.parametrize('clause', ['{} {last}', '{} {1}', '{', '{first.x} {}'])
def test_records_of_another_version_are_read_as_far_as_they_are_understood(tmp_path, monkeypatch, clause):
    found = Answer('New', {'rate': clause}), Answer('../x', {'rate': 'has {}'}), Answer('Old', {'gone': 'it takes {}'})
    monkeypatch.setattr(workloads.get('backlogged'), 'profile', Profile('New', queue=True, answers=found))
    synthetic.make_cell(tmp_path / 'run' / 'msfrs', synthetic.OURS, 'backlogged')
    assert list(told_of(tmp_path / 'run')) == ['../x', 'Queue']
    written(tmp_path / 'run', pictures_in=tmp_path / 'pictures')
    assert 'x-rate.svg' in {path.name.removeprefix('-') for path in (tmp_path / 'pictures').iterdir()}


# --- the screen ------------------------------------------------------------------------------------------------------

class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self):
        return True


def written(directory, out=None, **more):
    """What write_report writes to its stream."""
    out = out or io.StringIO()
    write_report(directory, out, **more)
    return out.getvalue()


@pytest.fixture(scope='module', name='whole')
def whole_run(tmp_path_factory):
    """A run with every topic."""
    return a_run(tmp_path_factory.mktemp('whole') / '1')


def test_the_run_ends_with_one_screen_of_80_columns(whole, monkeypatch):
    monkeypatch.chdir(whole.parent)
    lines = written('1').splitlines()
    assert len(lines) <= screen.LINES and max(map(len, lines)) <= screen.WIDTH
    assert lines[0].startswith('What users get with msfrs')
    topics = [line.split()[0] for line in lines if line.endswith('better')]
    assert topics == ['Pages', 'Downloads', 'Video', 'Calls', 'Fairness', 'Queue']
    assert lines[-2:] == ['verdicts: 1/verdicts.txt', 'report: 1/report.html']
    assert 'Targets' in lines[-3] and (whole / 'verdicts.txt').read_text().count('\n  ok ') > 5


def test_where_lines_are_few_the_longest_sentences_lose_their_last_clauses(whole, monkeypatch):
    full = written(whole).splitlines()
    monkeypatch.setattr(screen, 'LINES', len(full) - 1)
    assert len(written(whole).splitlines()) == len(full) - 1
    monkeypatch.setattr(screen, 'LINES', 1)
    text = written(whole)
    assert 'better' in text and ';' not in text


def test_colours_only_on_a_terminal_that_wants_them(whole, monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.delenv('NO_COLOR', raising=False)
    plain, coloured = written(whole), written(whole, Terminal())
    monkeypatch.setenv('NO_COLOR', '1')
    assert '\x1b' not in plain + written(whole, Terminal())
    assert re.sub(r'\x1b\[\d+m', '', coloured) == plain != coloured


def test_a_run_without_msfrs_tells_nothing(tmp_path):
    synthetic.make_cell(tmp_path / 'stock', synthetic.STOCK, 'backlogged')
    assert written(tmp_path).startswith('This run compared nothing that users would notice.\n')


# --- the pictures ----------------------------------------------------------------------------------------------------

def test_the_page_opens_with_pictures_then_sentences_then_targets(whole):
    written(whole)
    page = (whole / 'report.html').read_text()
    places = [page.index(text) for text in ('alt="Pages: Page load, s', 'alt="Queue: Packets dropped', '>Pages</th>',
                                            '>Queue</th>', '<nav>', 'id="verdicts"')]
    assert places == sorted(places)


def test_pictures_are_written_as_files(whole, tmp_path, capsys):
    assert program.main([str(whole), '--pictures', str(tmp_path / 'new')]) == verdict.EXIT_REACHED
    assert f'pictures: {tmp_path / "new"}\n' in capsys.readouterr().out
    names = {path.name for path in (tmp_path / 'new').iterdir()}
    assert names == {f'{name}.svg' for name in (
        'pages-page', 'downloads-small', 'downloads-rate', 'video-bitrate', 'video-stalled', 'calls-delay',
        'calls-score', 'queue-queue', 'queue-drops')}
    text = (tmp_path / 'new' / 'pages-page.svg').read_text()
    for word in ('gold', 'silver', 'bronze', 'msfrs', 'unmodified Squid', 'CAKE on a router', 'Pages: Page load, s'):
        assert f'>{word}</text>' in text
    (tmp_path / 'file').write_text('')
    assert program.main([str(whole), '--pictures', str(tmp_path / 'file')]) == 1
    assert capsys.readouterr().err == f'{tmp_path}/file: File exists; choose a directory that can be written\n'


def test_an_arm_that_is_not_judged_is_marked_in_pictures(tmp_path):
    a_run(tmp_path / 'run', only=('call',), stalls={'stock': BUSY})
    written(tmp_path / 'run', pictures_in=tmp_path)
    assert '>unmodified Squid (not judged)</text>' in (tmp_path / 'calls-delay.svg').read_text()
