# SPDX-License-Identifier: GPL-2.0-or-later
"""The documentation site: it has every page of docs/, it can be built and searched, and has the pictures there are."""
import asyncio
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / 'scripts')]

from fieldtrial.load.traffic import devtools  # noqa: E402 (needs the path above)
from pictures.camera import Camera  # noqa: E402
SITE = yaml.safe_load((ROOT / 'mkdocs.yml').read_text())


def pages(entry):
    if isinstance(entry, str):
        yield entry
    for part in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from pages(part)


NAV = list(pages(SITE['nav']))


@pytest.mark.parametrize('page', sorted(str(path.relative_to(ROOT)) for path in (ROOT / 'docs').glob('**/*.md')))
def test_a_page_is_in_the_navigation(page):
    assert page in NAV


def test_the_navigation_names_each_page_once():
    assert len(set(NAV)) == len(NAV)


def script(name):
    """A program of scripts/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace('-', '_'), str(ROOT / 'scripts' / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def made(out, *more):
    """The site, in a directory."""
    pytest.importorskip('mkdocs')
    done = subprocess.run([ROOT / 'scripts/make-site', '--out', out, *more], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    """Strictly: a broken link is an error."""
    return made(tmp_path_factory.mktemp('site'))


def test_it_is_made(site):
    assert 'msfrs_arbiter' in (site / 'directives.html').read_text()
    # Reading a page fetches nothing from elsewhere.
    assert 'src="http' not in (site / 'index.html').read_text()
    assert 'pictures/' not in (site / 'index.html').read_text(), 'without --pictures'


def test_every_page_can_be_found(site):
    found = {entry['location'].partition('#')[0] for entry in json.loads(
        (site / 'search/search_index.json').read_text())['docs'] if entry['text']}
    assert {re.sub('(README)?[.]md$', lambda end: 'index.html' if end[1] else '.html', page) for page in NAV} <= found


#: Scripts that run before those of the page: none, and one that lets its worker start late.
STARTS = {'at once': '', 'late': '''
    window.Worker = class extends Worker {
        postMessage(message) { setTimeout(() => super.postMessage(message), 1000); }
    };'''}


@pytest.mark.parametrize('start', STARTS)
def test_it_is_searched_without_a_server(site, tmp_path, start):
    """In a browser that reads files, also from a page in a folder and by who types before the search is ready."""
    if why := devtools.missing():
        pytest.skip(why)

    async def search():
        async with Camera.on(tmp_path) as browser:
            await browser.ask('Page.addScriptToEvaluateOnNewDocument', source=STARTS[start])
            await browser.open((site / 'docs/user/page.html').as_uri())
            await browser.wait_for('document.readyState === "complete"')
            await browser.do('document.querySelector("[data-md-toggle=search]").click()')
            await browser.do('''{
                const field = document.querySelector("[data-md-component=search-query]");
                field.focus();
                field.value = "msfrs_arbiter";
                field.dispatchEvent(new Event("keyup", {bubbles: true})); }''')
            await browser.wait_for('document.querySelector(".md-search-result__link")')
            return await browser.do(
                '[...document.querySelectorAll(".md-search-result__link")].map((link) => link.pathname)')
    assert f'{site}/directives.html' in asyncio.run(search())


WIDE, PHONE = (b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0' + pixels for pixels in (b'\5\0', b'\1\x86'))
QUOTED = 'What &quot;it&quot; shows'
PICTURES = {
    'a.png': (WIDE, f'<img class="picture" src="../../pictures/a.png" alt="{QUOTED}">'),
    'a-dark.png': (PHONE, '<img class="picture narrow" src="../../pictures/a-dark.png#only-dark" '
                   f'alt="{QUOTED}">'),
    'a.txt': (b'1 < 2\n', '*What "it" shows:*\n\n<pre class="wrapped"><code>1 &lt; 2</code></pre>'),
    'a.webm': (b'', '<video controls preload="none" width="100%" poster="../../pictures/a.png" '
               f'src="../../pictures/a.webm" aria-label="{QUOTED}"></video>')}


@pytest.mark.parametrize('name', PICTURES)
def test_a_picture_is_in_its_place(tmp_path, name):
    folder, pictures = tmp_path / 'pages', tmp_path / 'made'
    (folder / 'docs/user').mkdir(parents=True)
    pictures.mkdir()
    content, placed = PICTURES[name]
    (pictures / name).write_bytes(content)
    page = folder / 'docs/user/page.md'
    page.write_text('Before.\n\n<!-- picture a: What\n"it" shows -->\n\n<!-- picture b: No -->\nAfter.\n')
    script('make-site').place_pictures(folder, pictures)
    text = page.read_text()
    assert text.startswith(f'Before.\n\n{placed}') and text.endswith('\n\n\nAfter.\n')
    assert (folder / 'pictures' / name).exists()
