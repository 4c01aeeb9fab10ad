# SPDX-License-Identifier: GPL-2.0-or-later
""".ci/nightly asks for the newest revisions, checks both series, and fails if either does not fit."""
import pathlib
import shutil
import subprocess

import pytest

NIGHTLY = pathlib.Path(__file__).resolve().parents[2] / '.ci/nightly'


@pytest.mark.parametrize('broken', ('', 'fetch 6', 'refresh 6', 'refresh 7'))
def test_both_series_are_checked(tmp_path, broken):
    """fetch and refresh are scripts that note what they were called with."""
    for folder in ('.ci', 'squid-patches'):
        (tmp_path / folder).mkdir()
    shutil.copy(NIGHTLY, tmp_path / '.ci')
    for name in ('fetch', 'refresh'):
        path = tmp_path / 'squid-patches' / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path}/called"\n'
                        f'for series; do :; done\n[ "{name} $series" != "{broken}" ]\n')
        path.chmod(0o755)
    done = subprocess.run([tmp_path / '.ci/nightly'], capture_output=True, text=True, check=False)
    called = (tmp_path / 'called').read_text().splitlines()
    assert called == [call for call in ('fetch --update 6', 'refresh 6', 'fetch --update 7', 'refresh 7')
                      if not (broken == 'fetch 6' and call == 'refresh 6')]
    assert done.returncode == bool(broken)
    assert [line[:14] for line in done.stdout.splitlines()] == [
        f'{"FAIL" if broken[-1:] == series else "PASS"}: series {series}' for series in '67']
