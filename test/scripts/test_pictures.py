# SPDX-License-Identifier: GPL-2.0-or-later
"""The film: which frame and caption are seen when."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / 'scripts')]

from pictures import film  # noqa: E402 (needs the path above)

FRAMES = [(99.9, pathlib.Path('/f/0.jpg')), (101.0, pathlib.Path('/f/1.jpg')), (102.5, pathlib.Path('/f/2.jpg'))]
CAPTIONS = [(0.0, 'one', ''), (1.5, 'two', 'msfrsctl on')]


@pytest.mark.parametrize('at, file, caption, clock, done', [
    (0.0, 0, 'one', '0.0 s', False), (0.9, 0, 'one', '0.9 s', False), (1.0, 1, 'one', '1.0 s', False),
    (1.5, 1, 'two', '1.5 s', False), (2.0, 1, 'two', '2.0 s', True), (9.0, 2, 'two', '2.0 s', True)])
def test_a_clock_stops_when_the_page_is_there(at, file, caption, clock, done):
    shot = film.Shot(10.0, CAPTIONS, [film.Pane(FRAMES, 'left', True, 102.0)], 100.0)
    seen = film.state(shot, at)
    assert seen['caption'] == caption and seen['command'] == ('msfrsctl on' if caption == 'two' else '')
    assert seen['panes'] == [{'label': 'left', 'clock': clock, 'done': done, 'file': f'file:///f/{file}.jpg'}]


def test_a_page_that_never_came_counts_on():
    shot = film.Shot(10.0, CAPTIONS, [film.Pane(FRAMES, clock=True), film.Pane(FRAMES)], 100.0)
    assert [(pane['clock'], pane['done']) for pane in film.state(shot, 9.0)['panes']] == [('9.0 s', False), ('', False)]


def test_the_first_frame_is_seen_before_it_was_taken():
    assert film.state(film.Shot(1.0, CAPTIONS, [film.Pane(FRAMES)], 90.0), 0.0)['panes'][0]['file'].endswith('/0.jpg')


def test_the_frames_of_a_film_are_those_of_its_shots():
    seen = film.states([film.Shot(1.0, [(0.0, 'title', '')]), film.Shot(2.0, CAPTIONS, [film.Pane(FRAMES)], 100.0)])
    assert len(seen) == 3 * film.FPS
    assert [state['caption'] for state in seen].count('title') == film.FPS and not seen[0]['panes']


@pytest.mark.parametrize('without, ours, said', [
    (112.0, 107.0, [(7.0, 'Complete after 7.0 s: with.', ''),
                    (12.0, 'Complete after 7.0 s: with, after 12.0 s: without.', '')]),
    (None, 107.0, [(7.0, 'Complete after 7.0 s: with.', '')]),
    (106.0, 107.0, [(6.0, 'Complete after 6.0 s: without.', ''),
                    (7.0, 'Complete after 6.0 s: without, after 7.0 s: with.', '')]),
    (None, None, [])])
def test_whoever_wins_is_said(without, ours, said):
    panes = [film.Pane([], 'without', True, without), film.Pane([], 'with', True, ours)]
    assert film.results(panes, 100.0) == said
