# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything that the documentation names exists: links, headings, paths in code spans, members of classes."""
import pathlib
import posixpath
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACKED = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard'], cwd=ROOT, check=True,
                         capture_output=True, text=True).stdout.split()
PAGES = [name for name in TRACKED if name.endswith('.md') and (ROOT / name).exists()]
FOLDERS = {str(parent) for name in TRACKED for parent in pathlib.PurePosixPath(name).parents}
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
SPAN = re.compile(r'`([^`\n]+)`')
PATH = re.compile(r'[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*/?')


def prose(page):
    """The text of a page without its code blocks."""
    return re.sub(r'^ *```.*?^ *```', '', (ROOT / page).read_text(), flags=re.M | re.S)


def anchors(page):
    """The headings of a page, as used in links."""
    headings = re.findall(r'^#+ (.*)$', prose(page), flags=re.M)
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


def there(path):
    return path in TRACKED or path.rstrip('/') in FOLDERS


def beside(folder, path):
    """A name relative to a folder, as a name relative to the top."""
    return posixpath.normpath(posixpath.join(folder, path))


@pytest.mark.parametrize('page', PAGES)
def test_links(page):
    for link in LINK.findall(prose(page)):
        if re.match(r'[a-z]+:', link):
            continue
        path, _, anchor = link.partition('#')
        target = beside(posixpath.dirname(page), path) if path else page
        assert there(target), f'{page} links to {link}: there is no {target}'
        assert not anchor or anchor in anchors(target), f'{page} links to {link}: {target} has no such heading'


@pytest.mark.parametrize('page', PAGES)
def test_paths(page):
    """A code span is a path if its first part is one of our folders, or if it is the name of a page."""
    here = posixpath.dirname(page)
    for span in SPAN.findall(prose(page)):
        first, slash, _ = span.partition('/')
        if not PATH.fullmatch(span) or (here, first) == ('squid-patches', 'src'):  # Squid's src
            continue
        if slash:
            places = [folder for folder in ('', here) if first != '.' and beside(folder, first) in FOLDERS]
        else:
            places = ['', here, 'docs/user', 'docs/design', 'docs/lab'] if span.endswith('.md') else []
        assert not places or any(there(beside(folder, span)) for folder in places), \
            f'{page} names {span}, which is not there'


@pytest.fixture(scope='module')
def words():
    """All names in the sources, including those of Squid in the patches."""
    sources = (ROOT / name for name in TRACKED if re.match(r'(src|squid-patches)/.*\.(h|cc|patch)$', name))
    return {word for path in sources if path.exists() for word in re.findall(r'\w+', path.read_text(errors='replace'))}


@pytest.mark.parametrize('page', [page for page in PAGES if page.startswith('docs/')])
def test_members(page, words):
    for span in SPAN.findall(prose(page)):
        for name in re.findall(r'\b(\w+)::(\w+)', span):
            assert set(name) <= words or name[0] == 'msfrs', f'{page} names {span}, which is not in the sources'
        for name in re.findall(r'\b(\w+)\(\)', span):
            assert name in words, f'{page} names {name}(), which is not in the sources'


def test_pages_that_sources_name():
    for name in TRACKED:
        if name.startswith('docs/') or not (ROOT / name).is_file():
            continue
        for page in re.findall(r'\bdocs/[a-z/-]+\.md\b', (ROOT / name).read_text(errors='replace')):
            assert page in TRACKED, f'{name} names {page}, which is not there'
