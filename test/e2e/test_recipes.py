# SPDX-License-Identifier: GPL-2.0-or-later
"""Squid accepts the configurations in the documentation."""
import pathlib
import re
import subprocess

import pytest

from installation import SQUID

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADING = re.compile(r'^## ([^\n]+)$|^```squid\.conf\n(.*?)^```', re.M | re.S)


def recipes():
    """Heading and configuration of each."""
    heading = ''
    for found in HEADING.finditer((ROOT / 'docs/user/recipes.md').read_text()):
        heading = found[1] or heading
        if found[2]:
            yield pytest.param(found[2], id=heading.replace(' ', '-'))


@pytest.mark.parametrize('lines', recipes())
def test_squid_takes_it(lines, tmp_path):
    conf = tmp_path / 'squid.conf'
    conf.write_text(f'http_port 3128\nvisible_hostname gateway\npid_filename {tmp_path}/pid\n{lines}')
    done = subprocess.run([SQUID, '-k', 'parse', '-f', conf], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if re.search('ERROR|FATAL|WARNING', line)
            and 'there is no interface' not in line]     # on this machine
    assert done.returncode == 0 and not said, done.stderr
