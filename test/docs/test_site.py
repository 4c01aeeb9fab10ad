# SPDX-License-Identifier: GPL-2.0-or-later
"""The documentation site: it has every page of docs/, and it can be built."""
import pathlib
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


def test_it_is_made(tmp_path):
    """Strictly: a broken link is an error."""
    pytest.importorskip('mkdocs')
    done = subprocess.run([ROOT / 'scripts/make-site', '--out', tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 'msfrs_arbiter' in (tmp_path / 'directives.html').read_text()
    # Reading a page fetches nothing from elsewhere.
    assert 'src="http' not in (tmp_path / 'index.html').read_text()
