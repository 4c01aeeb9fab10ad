# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading a run, its figures, the table and the page."""
import base64
import dataclasses
import io
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import numpy as np
import pytest
import synthetic

from fieldtrial.analysis import runs, verdict, wording
from fieldtrial.analysis.measures import Measures, settle_s
from fieldtrial.analysis.stats import StatsError
from fieldtrial.base.errors import TrialError
from fieldtrial.report import __main__ as program, svg, table
from fieldtrial.report.build import write_report


@pytest.fixture(name='cell')
def one_cell(tmp_path):
    """Directory of a cell of the default arm."""
    synthetic.make_cell(tmp_path / 'run' / 'cell', synthetic.OURS, 'backlogged', inflight=4)
    return tmp_path / 'run' / 'cell'


@pytest.fixture(scope='module', name='written')
def written_run(tmp_path_factory):
    """(directory, verdicts.txt, verdict) of a full run."""
    directory = tmp_path_factory.mktemp('written') / 'run'
    synthetic.make_run(directory)
    judged = write_report(directory, io.StringIO())
    return directory, (directory / 'verdicts.txt').read_text(), judged


def measures_of(path):
    return Measures(runs.read_cell(path))


# --- reading ---------------------------------------------------------------------------------------------------------

def test_figures_of_a_cell_are_those_it_was_made_with(cell):
    arm, measures = synthetic.OURS, measures_of(cell)
    assert measures.utilisation() == pytest.approx(arm.utilisation, rel=1e-4)
    assert measures.goodput_share() == pytest.approx(synthetic.GOODPUT, rel=1e-3)
    assert measures.queue_mean_ms() == pytest.approx(arm.queue_ms, rel=0.01)
    assert measures.drops_per_mb() == pytest.approx(arm.drops_per_mb, rel=1e-3)
    assert measures.drop_share() == pytest.approx(arm.drops_per_mb / (arm.drops_per_mb + 1000), rel=1e-2)
    assert measures.cpu_per_gb() == pytest.approx(arm.cpu_per_gb, rel=1e-3)
    assert measures.peak_rss_mb() == pytest.approx((40_000 + 50 * 70) * 1.024e-3)
    ratios, errors = measures.ratios()
    assert ratios == pytest.approx({'gold': 4, 'silver': 2, 'bronze': 1}, rel=1e-3)
    assert max(map(abs, errors.values())) < 1e-3


def test_latency_only_of_requests_begun_in_the_interval(cell):
    requests = runs.read_cell(cell).requests
    begun = (requests['t_start'] >= 10) & (requests['t_start'] < 70)
    assert 0 < begun.sum() < len(begun)
    assert measures_of(cell).sample().survival.count == begun.sum()


def test_size_classes_hold_every_request_once(cell):
    measures = measures_of(cell)
    parts = [measures.sample(None, size).survival.count for size in ('small', 'medium', 'large')]
    assert sum(parts) == measures.sample().survival.count
    assert measures.sample(near=True).survival.count + measures.sample(near=False).survival.count == sum(parts)


def test_tunnels_that_did_not_last_are_said(cell):
    path = cell / 'meta.json'
    meta = json.loads(path.read_text())
    for counts, said in (({'opened': 9}, False), ({'opened': 9, 'lost': 2}, True), ({'failed': 1}, True)):
        path.write_text(json.dumps(meta | {'tunnels': counts}))
        found = [note for note in table.notes({'msfrs': measures_of(cell)}) if note.startswith('tunnels')]
        assert bool(found) == said, found
    assert found == ['tunnels lost before their time, or not opened: MSF-RS 0 lost, 1 failed']


def test_ratios_after_disturbances_are_shown_for_every_arm(tmp_path):
    group = {}
    for arm in (synthetic.STOCK, synthetic.OURS):
        synthetic.make_cell(tmp_path / arm.name, arm, 'disturbed', phases=synthetic.disturbances(70.0))
        group[arm.name] = measures_of(tmp_path / arm.name)
    assert [note for note in table.notes(group) if 'after' in note] == [
        f'per user, 10 to 20 s after: {what}: unmodified Squid 1.00:1.00:1, MSF-RS 4.00:2.00:1'
        for what in ('lower rate', 'link down')]


def test_repeated_disturbances_are_shown_together(tmp_path):
    synthetic.make_cell(tmp_path / 'msfrs', synthetic.OURS, 'disturbed', seconds=90,
                        phases=synthetic.disturbances(100.0, only='down', repeat=3))
    assert [note for note in table.notes({'msfrs': measures_of(tmp_path / 'msfrs')}) if 'after' in note] == [
        'per user, 10 to 20 s after: link down: MSF-RS 4.00:2.00:1 (3 times)']


def test_what_users_through_squid_have_beside_others_is_shown(tmp_path):
    """And figures are of these users alone, whatever the others received."""
    group = {}
    for arm, served in ((synthetic.STOCK, 0.5), (synthetic.OURS, 0.25)):
        synthetic.make_cell(tmp_path / arm.name, arm, 'bypass', direct=('gold-2', 'silver-2', 'bronze-2'),
                            counts=(2, 2, 2), served=served)
        group[arm.name] = measures_of(tmp_path / arm.name)
    assert 'of C, bodies of the users through Squid (50 % of all users): unmodified Squid 50.0 %, MSF-RS 25.0 %' in \
        list(table.notes(group))
    ours = group['msfrs']
    assert ours.payload_bytes() == pytest.approx(0.25 * 2e6 / 8 * 60)
    assert set(ours.cell.requests['user']) == set(ours.cell.users) == {'gold-1', 'silver-1', 'bronze-1'}
    assert set(ours.cell.direct) == {'gold-2', 'silver-2', 'bronze-2'}
    assert wording.condition(ours.cell) == (
        'Half bypass Squid: 2 Mbit/s, 3 by TCP past it, ISP buffer 1.5 BDP, 1+1+1 users, 60 s')


def test_what_went_by_http3_is_shown_and_what_is_due_to_whom(tmp_path):
    group, half = {}, ('gold-2', 'silver-2', 'bronze-2')
    for arm, more in ((synthetic.Arm('stock-quic'), 2.0), (synthetic.OURS, 1.0)):
        synthetic.make_cell(tmp_path / arm.name, arm, 'quic-backlogged', counts=(2, 2, 2), http3=half, more=more,
                            inflight=4, tcp=1, flood=0.0)
        group[arm.name] = measures_of(tmp_path / arm.name)
    notes = list(table.notes(group))
    assert 'answers that went by HTTP/3, to those who speak it: QUIC past stock 100.0 %, MSF-RS 100.0 %' in notes
    assert ('had of what is due to them, in bodies: QUIC past stock HTTP/3 0.78:1.56:3.11 | TCP 0.39:0.78:1.56, MSF-RS '
            'HTTP/3 1.00:1.00:1.00 | TCP 1.00:1.00:1.00') in notes
    assert wording.condition(group['msfrs'].cell) == (
        'Backlogged, HTTP/3 beside TCP: 2 Mbit/s, 1 of 4 by TCP all the same, ISP buffer 1.5 BDP, 2+2+2 users, 60 s')


def test_a_users_part_of_the_link_is_what_came_past_squid_and_a_part_of_the_rest(tmp_path):
    """A request's bytes are assumed to arrive evenly; bytes not by HTTP/3 came through Squid, where each user's share
    of the link is proportional to its bodies."""
    synthetic.make_cell(tmp_path / 'cell', synthetic.Arm('stock-quic'), 'quic-backlogged', counts=(1, 1, 1),
                        http3=('gold-1',), past={'gold-1': 0.3}, inflight=4, tcp=1, flood=0.0)
    cell = measures_of(tmp_path / 'cell').cell      # measured from 10 to 70 s
    requests = {name: column[:2] for name, column in cell.requests.items()}
    for name, values in {'user': ('gold-1',) * 2, 'scheme': ('h3', 'h2'), 't_first_byte': (0, 20), 't_end': (40, 50),
                         'bytes': (4e6, 1e6)}.items():
        requests[name] = np.array(values, dtype=requests[name].dtype)
    received = {'t': np.array([0.0, 10.0, 70.0]), 'gold-1': np.array([0, 1e6, 7e6]),
                'silver-1': np.array([0, 0, 6e6]), 'bronze-1': np.array([0, 0, 3e6])}
    got = Measures(dataclasses.replace(cell, requests=requests, received=received)).link_user_bytes()
    rest = (0.99 - 0.3) * 2e6 / 8 * 60
    assert got == {user: pytest.approx(amount) for user, amount in (
        ('gold-1', 0.3 * 2e6 / 8 * 60 + rest / 4), ('silver-1', rest / 2), ('bronze-1', rest / 4))}


def test_what_had_no_answer_went_by_nothing(tmp_path):
    """The table has it as it was requested; a retry over TCP may have been intended."""
    synthetic.make_cell(tmp_path / 'cell', synthetic.OURS, 'quic-backlogged', counts=(2, 2, 2), http3=('gold-2',),
                        inflight=4, tcp=1, flood=0.0)
    measures = measures_of(tmp_path / 'cell')
    requests = measures.cell.requests
    own = np.flatnonzero(requests['user'] == 'gold-2')
    requests['scheme'][own[::2]] = 'h2'
    requests['t_first_byte'][own[1::2]] = np.nan
    assert measures.http3_share() == 0.0


def test_uploads_are_in_no_figure_of_what_was_received(tmp_path, cell):
    """They have a line of their own, next to the parts of what was."""
    path = cell / 'requests.csv'
    header, *rows = path.read_text().splitlines()
    before = measures_of(cell).sample().survival.count
    path.write_text('\n'.join([header, *rows, *(
        f'{t},{t},{t + 3},gold-1,gold,s12,12,2000000,2000000,200,ok,,upload,h2' for t in (5, 20, 40)),
        '50,50,51,gold-1,gold,s12,12,1000,1000,200,ok,,segment,h2']) + '\n')
    measures = measures_of(cell)
    assert measures.sample().survival.count == before + 1
    assert 'uploads, mean time: MSF-RS 3.00 s (2)' in table.notes({'msfrs': measures})
    assert sum(measures.kinds().values()) == pytest.approx(1) and list(measures.kinds()) == ['page', 'segment']


def test_a_router_has_no_figures_of_squid(cell):
    """Instead of zeros, which would look as if it cost nothing."""
    header, *rows = (cell / 'squid.csv').read_text().splitlines()
    (cell / 'squid.csv').write_text('\n'.join([header, *(f'{row.split(",")[0]},0,0' for row in rows)]) + '\n')
    row = next(line for line in table.arms_text([{'msfrs': measures_of(cell)}]).splitlines() if 'MSF-RS' in line)
    assert row.split()[-2:] == ['-', '-']


def test_ten_seconds_are_shown_beside_the_whole(cell):
    assert any(note.startswith('off the weights in ten seconds, on average: MSF-RS 0.0 % (quanta alone, 6 under way: ')
               for note in table.notes({'msfrs': measures_of(cell)}))


def test_phases_leave_out_their_start_and_the_warm_up(tmp_path):
    synthetic.make_cell(tmp_path / 'cell', synthetic.OURS, 'phases', phases=synthetic.four_phases(70.0))
    measures = measures_of(tmp_path / 'cell')
    assert [(start, stop) for _, start, stop, _ in measures.phases()] == [
        (10, 17.5), (22.5, 35), (40, 52.5), (57.5, 70)]
    assert [label for label, _, _ in measures.phase_ratios()] == ['all', 'without gold', 'all again']


def test_settling_time_has_bounds():
    assert [settle_s(length) for length in (10, 100, 1000)] == [5, 10, 20]


def test_a_phase_that_is_too_short_is_not_measured(tmp_path):
    synthetic.make_cell(tmp_path / 'cell', synthetic.OURS, 'phases', seconds=10.0, phases=synthetic.four_phases(20.0))
    with pytest.raises(StatsError, match="phase 'all' ends at 5 s, .* the warm-up, 10 s$"):
        measures_of(tmp_path / 'cell').phases()


def test_samples_that_end_early_are_not_stretched(cell):
    lines = (cell / 'link.csv').read_text().splitlines()
    (cell / 'link.csv').write_text('\n'.join(lines[:500]) + '\n')
    with pytest.raises(StatsError, match='samples cover 0.0 to 49.8 s, 70.0 s is outside'):
        measures_of(cell).utilisation()


def replace(path, old, new):
    """Replaces the first `old` of a file."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize('name, old, new, message', [
    ('link.csv', '0.1,', 'soon,', "link.csv:3: t is 'soon'; a number is needed"),
    ('link.csv', 't,rx_bytes,backlog_bytes', 't,rx_bytes,backlog',
     'link.csv:1: no column backlog_bytes; found t, rx_bytes, backlog, drops, sent_bytes, '
     'sent_packets'),
    ('squid.csv', '\n0.5,', '\n0.5,1,', 'squid.csv:3: 4 fields; the header has 3'),
    ('squid.csv', '\n0.0,0.0,', '\n0.0,9.0,', 'squid.csv:3: cpu_s falls from 9 to 0.00486591; it must never do so'),
    ('squid.csv', '\n0.0,0.0,', '\n0.0,nan,', 'squid.csv:2: cpu_s is not a finite number'),
    ('stat.json', '"rate_bps": 2000000.0', '"rate_bps": "fast"',
     'stat.json: rate_bps: "fast" is not a number'),
    ('stat.json', '"t_stop": 70.0', '"t_stop": 3', 'stat.json: t_stop: 3.0 is not after t_start, 10'),
    ('stat.json', '"gold-1": "gold"', '"gold-1": "tin"',
     'stat.json: users.gold-1: "tin" is not one of gold, silver, bronze'),
    ('stat.json', '"gold": 4', '"gold": 0', 'stat.json: weights.gold: 0.0 is not above 0'),
    ('stat.json', '"arm": "msfrs"', '"arm": 7', 'stat.json: arm: 7 is not a text'),
])
def test_bad_files_are_refused_with_place_and_reason(cell, name, old, new, message):
    replace(cell / name, old, new)
    with pytest.raises(TrialError) as caught:
        runs.read_cell(cell)
    assert str(caught.value).replace(f'{cell}/', '') == message


def test_an_empty_file_is_refused(cell):
    (cell / 'requests.csv').write_text('')
    with pytest.raises(runs.LoadError, match='requests.csv:1: empty; a header with t_start'):
        runs.read_cell(cell)


def test_a_bad_cell_is_left_out_of_the_run(tmp_path, cell):
    synthetic.make_cell(tmp_path / 'run' / 'other', synthetic.STOCK, 'backlogged')
    (cell / 'link.csv').write_text('t\n')
    (tmp_path / 'run' / 'half').mkdir()
    run = runs.read_run(tmp_path / 'run')
    assert [each.arm for each in run.cells] == ['stock']
    assert run.left_out['cell'] == 'cell/link.csv:1: no column rx_bytes; found t'
    assert run.left_out['half'] == 'did not run to its end (no stat.json)'


def test_a_run_says_why_a_cell_failed(tmp_path, cell):
    (tmp_path / 'run' / 'half').mkdir()
    (tmp_path / 'run' / 'meta.json').write_text(json.dumps({'cells_failed': {'half': 'Squid\nended with 1\n'}}))
    assert runs.read_run(cell.parent).left_out['half'] == 'ended with 1'


# --- the table -------------------------------------------------------------------------------------------------------

def test_the_table_has_100_columns(written):
    assert max(map(len, written[1].splitlines())) <= 100


def test_the_table_shows_each_condition_and_the_verdict(written):
    text = written[1]
    assert text.count('unmodified Squid ') >= 9
    assert re.search(r'^MSF-RS +4\.00:2\.00:1 +98\.6 +94\.0 ', text, re.M)
    assert re.search(r'^MSF-RS +- +98\.6 +94\.0 ', text, re.M)        # phases have no ratio over all classes
    assert 'CBR beside\n  utilisation: at least 97.91 % (MSF-RS)\n  ok       2 Mbit/s, CBR 40 %' in text
    assert re.search(r'^\d+ of \d+ targets reached, \d+ missed$', text, re.M)


def test_what_was_not_measured_is_not_listed(written):
    page = (written[0] / 'report.html').read_text()
    for text in (written[1], page):
        assert 'few users' not in text and 'Not measured' not in text and 'Not in this run' not in text


def test_an_arm_that_the_kernel_could_not_run_is_said(tmp_path):
    """In the terminal, and on the page before its table of contents."""
    directory, out = tmp_path / 'run', io.StringIO()
    synthetic.make_run(directory, full=False)
    sentence = 'arm stock-cake: not run, this kernel has no CAKE (sch_cake)'
    meta = directory / 'meta.json'
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {'not_run': [sentence]}))
    write_report(directory, out)
    assert out.getvalue().startswith(f'{sentence}\n')
    assert sentence in (directory / 'report.html').read_text().partition('<nav>')[0]


@pytest.mark.parametrize('workload, parameters, said', [
    ('https-pages', {'idle': 20}, '2 Mbit/s, 20 idle tunnels a user, ISP buffer 1.5 BDP'),
    ('https-pages', {'idle': 0}, '2 Mbit/s, no idle tunnels, ISP buffer 1.5 BDP'),
    ('disturbed', {'http2': 0.5}, '2 Mbit/s, 50 % over HTTP/2, ISP buffer 1.5 BDP'),
    ('disturbed', {'http2': 1.0}, '2 Mbit/s, ISP buffer 1.5 BDP')])
def test_conditions_are_told_apart_in_words(tmp_path, workload, parameters, said):
    synthetic.make_cell(tmp_path / 'cell', synthetic.OURS, workload, **parameters)
    assert wording.setting(runs.read_cell(tmp_path / 'cell')) == said


def test_servers_at_one_distance_are_said(cell):
    stat = json.loads((cell / 'stat.json').read_text())
    (cell / 'stat.json').write_text(json.dumps(stat | {'rtts_ms': [2.0, 2.0]}))
    assert wording.setting(runs.read_cell(cell)) == '2 Mbit/s, servers at 2 ms, ISP buffer 1.5 BDP'


def test_repeated_seeds_are_told_apart(tmp_path):
    for seed in (1, 2):
        synthetic.make_cell(tmp_path / 'run' / str(seed), synthetic.OURS, 'backlogged', seed=seed)
    write_report(tmp_path / 'run', io.StringIO())
    text = (tmp_path / 'run' / 'verdicts.txt').read_text()
    assert 'ISP buffer 1.5 BDP, seed 1, 4+4+4 users' in text and 'ISP buffer 1.5 BDP, seed 2, 4+4+4 users' in text


@pytest.mark.parametrize('value, text', [(0.0412, '41.2 ms'), (1.234, '1.23 s'), (12.34, '12.3 s'), (451.2, '451 s'),
                                         (float('inf'), 'not reached'), (0, '0 ms')])
def test_seconds_in_words(value, text):
    assert wording.seconds(value) == text


def test_signed_percent_has_no_negative_zero():
    assert wording.signed_percent(-0.00001) == '0.0 %'
    assert wording.signed_percent(0.02) == '+2.0 %'


# --- the page --------------------------------------------------------------------------------------------------------

PLOT = 'data:image/svg+xml;base64,'


def plot(source):
    """The SVG text of a plot of the page."""
    return base64.b64decode(source.removeprefix(PLOT)).decode()


class Page(HTMLParser):
    """Checks that elements nest, and collects ids, links and references to external resources."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.loads, self.names, self.plots, self.styles = [], [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.note(tag, dict(attrs))
        if tag not in ('meta', 'img'):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, dict(attrs))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:], self.getpos())
        self.open.pop()

    def note(self, tag, attributes):
        """One element."""
        self.names.append(tag)
        self.ids += [attributes['id']] if 'id' in attributes else []
        self.links += [attributes['href']] if tag == 'a' else []
        sources = [value for name, value in attributes.items() if name in ('src', 'srcset', 'data', 'action')]
        self.plots += [source for source in sources if source.startswith(PLOT)]
        self.loads += [source for source in sources if not source.startswith(PLOT)]
        self.styles += [attributes['style']] if 'style' in attributes else []
        self.loads += [value for name, value in attributes.items()
                       if name in ('href', 'xlink:href') and tag != 'a' and not value.startswith('#')]


def test_the_page_is_whole_and_loads_nothing(written):
    text = (written[0] / 'report.html').read_text()
    page = Page(text)
    assert page.loads == []
    assert 'script' not in page.names and 'link' not in page.names
    assert '@import' not in text and not re.search(r'url\((?!#)', text)
    assert len(page.ids) == len(set(page.ids))
    assert len(page.plots) == page.names.count('img') > 50
    assert not any('href="http' in plot(each) for each in page.plots)
    assert len(text) < 4_000_000


def test_every_link_leads_somewhere(written):
    page = Page((written[0] / 'report.html').read_text())
    for target in page.links:
        assert target[1:] in page.ids if target.startswith('#') else (written[0] / unquote(target)).is_file(), target


def test_plots_have_the_colours_of_their_key(written):
    page = Page((written[0] / 'report.html').read_text())
    drawn = ''.join(map(plot, page.plots))
    for colour in (svg.arm('msfrs'), svg.arm('stock'), svg.of_class(0), svg.of_class(2)):
        assert colour in drawn
    assert {svg.arm('msfrs'), svg.of_class(0)} <= {style.removeprefix('background: ') for style in page.styles}


def test_sections_for_what_was_run(written):
    page = Page((written[0] / 'report.html').read_text())
    assert {'short', 'verdicts', 'throughput', 'window', 'latency', 'pages', 'queue', 'cost', 'figures', 'claim',
            'paper', 'method', 'parameters', 'again', 'raw'} <= set(page.ids)


def test_the_page_tells_how_to_run_it_again(written):
    text = (written[0] / 'report.html').read_text()
    assert '<pre>sudo ./trial --seed 1</pre>' in text
    assert f'python3 -m fieldtrial.report build/trial/{written[0].name}' in text


def test_a_configuration_can_be_copied_from_the_page(cell):
    """Elsewhere a figure and its unit are separated by a no-break space."""
    replace(cell / 'stat.json', '"squid_conf": "msfrs on', '"squid_conf": "cache_mem 8 MB')
    write_report(cell.parent, io.StringIO())
    text = (cell.parent / 'report.html').read_text()
    assert '<pre>cache_mem 8 MB\n</pre>' in text and 'up to 16\u00a0kB' in text


def test_the_page_says_how_large_objects_were(written):
    assert '<td>max 2000000</td>' in (written[0] / 'report.html').read_text()


def test_names_from_files_are_escaped(tmp_path, cell):
    replace(cell / 'stat.json', '"squid": "6.13"', '"squid": "<script>alert(1)</script>"')
    replace(cell / 'stat.json', '"arm": "msfrs"', '"arm": "a\\"><img src=x>"')
    write_report(cell.parent, io.StringIO())
    page = Page((cell.parent / 'report.html').read_text())
    assert page.loads == []
    assert 'script' not in page.names and page.names.count('img') == len(page.plots)


def test_a_run_with_one_small_cell_makes_a_page(tmp_path):
    synthetic.make_cell(tmp_path / 'run' / 'cell', synthetic.STOCK, 'backlogged', seconds=4.0, warm_up=0.0,
                        counts=(1, 0, 0))
    assert program.main([str(tmp_path / 'run')]) == 0
    assert program.main([str(tmp_path / 'run'), '--strict']) == verdict.EXIT_NOTHING
    Page((tmp_path / 'run' / 'report.html').read_text())


def test_the_program(tmp_path, cell, capsys):
    assert program.main([str(cell.parent)]) == verdict.EXIT_REACHED
    assert capsys.readouterr().out.rstrip().endswith(f'report: {cell.parent}/report.html')
    assert program.main([str(tmp_path / 'none')]) == 1
    assert capsys.readouterr().err == (f'{tmp_path}/none: no such directory; give the directory of a run, as in '
                                       'build/trial/<UTC time>\n')
    (tmp_path / 'empty').mkdir()
    assert program.main([str(tmp_path / 'empty')]) == 1
    assert 'no cell here' in capsys.readouterr().err
