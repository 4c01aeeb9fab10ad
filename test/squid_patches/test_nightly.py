# SPDX-License-Identifier: GPL-2.0-or-later
""".ci/nightly asks for the newest revisions, checks both series and fresh machines, and fails if anything does not
fit."""
import pathlib
import shutil
import subprocess

import pytest

NIGHTLY = pathlib.Path(__file__).resolve().parents[2] / '.ci/nightly'


@pytest.mark.parametrize('broken', ('', 'fetch 6', 'refresh 6', 'refresh 7', 'fresh-machine bookworm',
                                    'fresh-machine trixie'))
def test_everything_is_checked(tmp_path, broken):
    """What it calls are scripts that note with what."""
    (tmp_path / '.ci').mkdir()
    shutil.copy(NIGHTLY, tmp_path / '.ci')
    for script in ('squid-patches/fetch', 'squid-patches/refresh', 'scripts/install-packages', 'scripts/make-packages',
                   'test/packaging/fresh-machine'):
        path, name = tmp_path / script, script.rpartition('/')[2]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path}/called"\n'
                        f'for series; do :; done\n[ "{name} $series" != "{broken}" ]\n')
        path.chmod(0o755)
    done = subprocess.run([tmp_path / '.ci/nightly'], capture_output=True, text=True, check=False)
    called = (tmp_path / 'called').read_text().splitlines()
    assert called == [call for call in (
        'fetch --update 6', 'refresh 6', 'fetch --update 7', 'refresh 7',
        *(call for suite in ('bookworm', 'trixie') for call in (
            'install-packages fresh', f'make-packages --lintian --suite {suite}', f'fresh-machine {suite}')))
        if not (broken == 'fetch 6' and call == 'refresh 6')]
    assert done.returncode == bool(broken)
    assert [line.partition(',')[0] for line in done.stdout.splitlines()] == [
        f'{"FAIL" if broken and broken.split()[1] == last else "PASS"}: {what} {last}'
        for what, last in (('series', '6'), ('series', '7'), ('a fresh', 'bookworm'), ('a fresh', 'trixie'))]
