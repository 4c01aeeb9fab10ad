# SPDX-License-Identifier: GPL-2.0-or-later
"""What the documents name is in the code."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = [path.read_text() for folder in ('src', 'squid-patches/files') for path in sorted((ROOT / folder).rglob('*'))
        if path.suffix in ('.h', '.cc', '.cci')]
PATCHES = [path.read_text() for path in sorted((ROOT / 'squid-patches').rglob('*.patch'))]


def named(page):
    """(type, member) of each `Type::member` and `Type::member()` on a page; a member with parentheses is a function."""
    return re.findall(r'`(?:\w+::)*(\w+)::(\w+(?:\(\))?)`', page.read_text())


@pytest.mark.parametrize('page', sorted((ROOT / 'docs').rglob('*.md')), ids=lambda path: path.stem)
def test_members_of_types_are_in_the_files_of_these_types(page):
    for owner, member in named(page):
        files = [text for text in CODE if re.search(rf'\b(class|struct|namespace)\s+{owner}\b', text)]
        # Squid's own, which our patches change.
        files = files or [text for text in PATCHES if f'{owner}::' in text]
        there = rf'\b{re.escape(member[:-1])}' if member.endswith('()') else rf'\b{member}\b'
        assert any(re.search(there, text) for text in files), f'{page.name}: {owner}::{member} is not in the code'
