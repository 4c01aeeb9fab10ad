# SPDX-License-Identifier: GPL-2.0-or-later
"""The units of conf/systemd are as restricted as docs/user/security.md states, by `systemd-analyze security`."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: {unit: (exposure, reason why it is not lower)}, from the table.
SAID = {unit: (float(exposure), why.strip()) for unit, exposure, why in
        re.findall(r'^\| `([\w-]+)`.*\| (\d\.\d) \|([^|]*)\|$', (ROOT / 'docs/user/security.md').read_text(), re.M)}
#: Versions of systemd weigh some restrictions slightly differently.
ABOUT = 0.3


@pytest.mark.parametrize('path', sorted((ROOT / 'conf/systemd').glob('*.service')), ids=lambda path: path.stem)
def test_exposure(path):
    exposure, why = SAID[path.stem]
    assert exposure < 3 or why, 'from 3 on the table has a reason'
    if not shutil.which('systemd-analyze'):
        pytest.skip('needs systemd-analyze: Debian package systemd')
    said = subprocess.run(['systemd-analyze', 'security', '--offline=yes', '--no-pager', path], check=True,
                          capture_output=True, text=True).stdout
    found = float(re.search(r'exposure level for .*: ([0-9.]+) ', said)[1])
    assert abs(found - exposure) <= ABOUT, said


@pytest.mark.parametrize('page', ('docs/user/page.md', 'conf/page.conf'))
def test_the_token_is_passed_to_the_page(page):
    """Its unit has a user that is known only while it runs, so it cannot read the file itself."""
    text, unit = (ROOT / page).read_text(), (ROOT / 'conf/systemd/msfrs-page.service').read_text()
    made = re.search(r'openssl rand -hex 16 > ([^)]+)\)', text)[1]
    name = re.search(r'^#? *token /run/credentials/msfrs-page\.service/(\w+)', text, re.M)[1]
    # A credential without a default must exist.
    assert f'\nLoadCredential={name}:{made}\n' in unit and f'\nSetCredential={name}:' in unit
