# SPDX-License-Identifier: GPL-2.0-or-later
"""Imports between the packages of the trial have one direction, so that each can be understood and changed with
knowledge only of those below it."""
import ast
import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2] / 'fieldtrial'
#: Files outside the trial that start its programs by module name.
STARTERS = [TOP.parent / name for name in ('Makefile.am', 'trial', 'docker/Dockerfile', 'docker/compose.yaml')]
#: {folder: the other folders that its files may import}. The analysis reads files: it knows neither site nor load.
MAY = {
    'base': (),
    'site': ('base',),
    'load/traffic': ('base', 'site'),
    'load/workloads': ('base', 'site', 'load/traffic'),
    'load': ('base', 'site', 'load/traffic', 'load/workloads'),
    'analysis': ('base',),
    'report': ('base', 'analysis'),
    '.': ('base', 'site', 'load/traffic', 'load/workloads', 'load', 'analysis', 'report'),
}


def imported(path, top):
    """(line, folder below `top`) for each module of the same tree that the file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.ImportFrom):
            here = path.parents[node.level - 1] if node.level else top.parent
            where = here.joinpath(*(node.module or '').split('.'))
            found = [where / alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [top.parent.joinpath(*alias.name.split('.')) for alias in node.names]
        else:
            continue
        for each in found:
            folder = next((each if each.is_dir() else each.parent for each in (each, each.parent)
                           if each.is_dir() or each.with_suffix('.py').is_file()), None)
            if folder and folder.is_relative_to(top):
                yield node.lineno, str(folder.relative_to(top))


def against(top, may):
    """The imports of the tree `top` that `may` does not allow: 'file:line: folder'."""
    for path in sorted(top.rglob('*.py')):
        folder = str(path.parent.relative_to(top))
        for line, other in imported(path, top):
            if other != folder and other not in may.get(folder, ()):
                yield f'{path.relative_to(top)}:{line}: {other}'


def test_no_import_against_the_direction():
    assert list(against(TOP, MAY)) == []


def test_the_direction_has_no_cycle():
    known = []
    for folder, allowed in MAY.items():     # each may import only folders before it
        assert set(allowed) <= set(known), folder
        known.append(folder)


def test_every_folder_has_its_place():
    assert {str(path.parent.relative_to(TOP)) for path in TOP.rglob('*.py')} == set(MAY)


def test_what_is_started_by_its_name_is_a_program():
    texts = [path.read_text(encoding='utf-8') for path in (*STARTERS, *TOP.rglob('*.py'))]
    names = {name for text in texts for name in re.findall(r"""-m["', ]+(fieldtrial[.\w]*)""", text)}
    assert {'fieldtrial', 'fieldtrial.cell', 'fieldtrial.site.agent'} <= names
    for name in sorted(names):
        path = TOP.parent.joinpath(*name.split('.'))
        source = path / '__main__.py' if path.is_dir() else path.with_suffix('.py')
        assert 'sys.exit(main(' in source.read_text(encoding='utf-8'), name


@pytest.mark.parametrize('line', ('from ..high import b', 'from ..high.b import X', 'from tree.high import b',
                                  'import tree.high.b', 'from .. import high', 'def f():\n    from ..high import b',
                                  'from .. import main', 'from ..main import run'))
def test_an_import_upwards_is_found(tmp_path, line):
    for name, text in (('low/a.py', line), ('high/b.py', 'X = 1'), ('main.py', 'def run(): pass')):
        path = tmp_path / 'tree' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found, = against(tmp_path / 'tree', {'low': (), 'high': ('low',), '.': ('high', 'low')})
    assert found.startswith('low/a.py:') and found.endswith((': high', ': .'))
