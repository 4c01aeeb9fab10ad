# SPDX-License-Identifier: GPL-2.0-or-later
"""Squid accepts the configurations in the documentation, and what Debian's Squid accepts."""
import pathlib
import re
import subprocess

import pytest

from installation import SQUID
from msfrsctl.parsed import errors
from msfrsctl.squidconf import SquidConf
from msfrsctl.system import Done, System

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADING = re.compile(r'^## ([^\n]+)$|^```squid\.conf\n(.*?)^```', re.M | re.S)

#: Of a gateway with a virus scanner, logins, a filter and a neighbour.
FEATURES = f'''
icap_enable on
icap_service scan respmod_precache icap://127.0.0.1:1344/scan
adaptation_access scan allow all
snmp_port 3401
wccp2_router 192.0.2.1
auth_param digest program {SQUID.parents[1]}/libexec/digest_file_auth /etc/passwords
auth_param ntlm program {SQUID.parents[1]}/libexec/ntlm_fake_auth
auth_param negotiate program {SQUID.parents[1]}/libexec/negotiate_kerberos_auth
external_acl_type group %SRC {SQUID.parents[1]}/libexec/ext_file_userip_acl -f /etc/groups
url_rewrite_program {SQUID.parents[1]}/libexec/url_fake_rewrite
cache_peer 192.0.2.2 sibling 3128 3130
digest_generation on
htcp_port 4827
'''


def recipes():
    """Heading and configuration of each."""
    heading = ''
    for found in HEADING.finditer((ROOT / 'docs/user/recipes.md').read_text()):
        heading = found[1] or heading
        if found[2]:
            yield pytest.param(found[2], id=heading.replace(' ', '-'))


def parse(tmp_path, lines):
    """The result of `squid -k parse`, and the lines of it that are no good news."""
    conf = tmp_path / 'squid.conf'
    conf.write_text(f'http_port 3128\nvisible_hostname gateway\npid_filename {tmp_path}/pid\n{lines}')
    done = subprocess.run([SQUID, '-k', 'parse', '-f', conf], capture_output=True, text=True, check=False)
    return done, [line for line in done.stderr.splitlines() if re.search('ERROR|FATAL|WARNING', line)
                  and 'there is no interface' not in line]     # on this machine


@pytest.mark.parametrize('lines', recipes())
def test_squid_takes_it(lines, tmp_path):
    done, said = parse(tmp_path, lines)
    assert done.returncode == 0 and not said, done.stderr


def test_squid_has_the_features_of_debians(tmp_path):
    done, said = parse(tmp_path, FEATURES)
    assert done.returncode == 0 and not said, done.stderr


def test_a_feature_that_it_was_built_without(tmp_path):
    """As msfrsctl setup and doctor report it: Squid itself exits with 0, and names no place."""
    done, _ = parse(tmp_path, '# scan\necap_enable on\nvia off\n')
    found = errors(Done(done.returncode, done.stdout, done.stderr), SquidConf(System(), tmp_path / 'squid.conf'))
    assert done.returncode == 0
    assert [what for what, _ in found] == [
        f"{tmp_path}/squid.conf:5: ecap_enable on: 'ecap_enable' requires --enable-ecap"]
