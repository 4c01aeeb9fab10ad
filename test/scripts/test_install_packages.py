# SPDX-License-Identifier: GPL-2.0-or-later
"""The packages of a purpose on a release of Debian."""
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: Past releases, and releases far in the future, so that the result is the same on any machine.
PACKAGES = '''\
all: every
all 8+: since
all 8-: gone
all 900-: pypi/wheel
all 1000+: later
other: another
'''


def test_bounds_of_releases(tmp_path):
    shutil.copy(ROOT / 'scripts/install-packages', tmp_path)
    (tmp_path / 'packages').write_text(PACKAGES)
    listed = subprocess.run([tmp_path / 'install-packages', '--list', 'all'], capture_output=True, text=True,
                            check=True).stdout.split()
    assert listed in (['every', 'pypi/wheel', 'since'], ['every', 'since'])     # the latter without a number
