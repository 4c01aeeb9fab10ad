# SPDX-License-Identifier: GPL-2.0-or-later
"""Squid is compiled with the files of src/library.am. They need no other file of ours, and automake knows all."""
import pathlib
import re
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    """The copy that Squid's tree gets as src/msfrs/lib."""
    copy = tmp_path_factory.mktemp('msfrs') / 'lib'
    subprocess.run(['bash', '-euc', '. squid-patches/lib.sh; write_library "$0"', copy], cwd=TOP, check=True)
    return copy


def files(library):
    return {str(path.relative_to(library)): path.read_text(encoding='utf-8')
            for path in library.rglob('*') if path.suffix in ('.cc', '.h')}


def test_its_includes_are_its_own(library):
    there = files(library)
    for name, text in there.items():
        included = re.findall(r'^#include "(.*)"', text, re.MULTILINE)
        own = [path.removeprefix('msfrs/lib/') for path in included if path.startswith('msfrs/lib/')]
        assert not set(own) - set(there), name
        # Squid wants its own header before all others.
        assert [path for path in included if not path.startswith('msfrs/lib/')] == ['squid.h'] * name.endswith('.cc')
        assert name.endswith('.h') or text.index('#include "squid.h"') == text.index('#include'), name


def test_automake_compiles_each_file(library):
    listed = re.findall(r'lib/(\S+)', (library / 'sources.am').read_text(encoding='ascii'))
    assert sorted(listed) == sorted(files(library))


def test_the_list_has_the_whole_of_its_folders(library):
    """A new file of such a folder is compiled both here and in Squid, or in neither."""
    there = set(files(library))
    folders = {name.split('/')[0] for name in there} - {'sched'} # of which only the heap, beside the plugins
    assert there >= {f'{folder}/{path.name}' for folder in folders for path in (TOP / 'src' / folder).iterdir()
                     if path.suffix in ('.cc', '.h')}
