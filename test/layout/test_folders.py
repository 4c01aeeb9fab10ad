# SPDX-License-Identifier: GPL-2.0-or-later
"""Includes between the folders of src/ have no cycle, and the core includes nothing of src/satellites/."""
import pathlib
import re

import pytest

SRC = pathlib.Path(__file__).resolve().parents[2] / 'src'


def includes(top):
    """{folder: {folder that it includes: 'file:line' of one include}} of the C++ below `top`, itself left out."""
    graph = {}
    for path in sorted(top.rglob('*')):
        if path.suffix not in ('.cc', '.h', '.c'):
            continue
        folder = str(path.parent.relative_to(top))
        mine = graph.setdefault(folder, {})
        for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
            if (named := re.match(r'\s*#\s*include\s*"([^"]+)"', line)) and (top / named[1]).is_file():
                if (other := str(pathlib.PurePath(named[1]).parent)) != folder:
                    mine.setdefault(other, f'{path.relative_to(top)}:{number}')
    return graph


def cycles(graph):
    """Each cycle once, as 'a -> b (file:line) -> a (file:line)'."""
    found, done = [], set()

    def visit(folder, path):
        if folder in path:
            ring = [*path[path.index(folder):], folder]
            found.append(ring[0] + ''.join(f' -> {to} ({graph[at][to]})' for at, to in zip(ring, ring[1:])))
        elif folder not in done:
            for other in graph.get(folder, {}):
                visit(other, [*path, folder])
            done.add(folder)

    for folder in graph:
        visit(folder, [])
    return found


def outward(graph):
    """Includes from the core into the satellites."""
    return [f'{place}: {other}' for folder, others in graph.items() if not folder.startswith('satellites')
            for other, place in others.items() if other.startswith('satellites')]


def test_no_cycle_between_folders():
    assert cycles(includes(SRC)) == []


def test_the_core_includes_no_satellite():
    assert outward(includes(SRC)) == []


@pytest.mark.parametrize('files, ring, out', (
    ({'a/x.h': 'b/y.h', 'b/y.h': ''}, 0, 0),
    ({'a/x.h': 'b/y.h', 'b/y.h': 'c/z.h', 'c/z.h': 'a/x.h'}, 1, 0),
    ({'a/x.h': 'satellites/s/y.h', 'satellites/s/y.h': ''}, 0, 1),
    ({'a/x.h': '', 'satellites/s/y.h': 'a/x.h'}, 0, 0),
))
def test_the_check_finds_what_it_looks_for(tmp_path, files, ring, out):
    for name, included in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#include "{included}"\n' if included else '', encoding='utf-8')
    graph = includes(tmp_path)
    assert (len(cycles(graph)), len(outward(graph))) == (ring, out)
