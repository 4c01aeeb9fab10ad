# SPDX-License-Identifier: GPL-2.0-or-later
"""What `squid -k parse` prints about lines that Squid ignores, and where they are."""
import pytest

from msfrsctl.parsed import MOST, errors
from msfrsctl.squidconf import SquidConf
from msfrsctl.system import Done

ICAP = "ERROR: 'icap_enable' requires --enable-icap-client"


@pytest.fixture
def conf(gateway):
    def made(*lines):
        gateway.conf.write_text(''.join(f'{line}\n' for line in lines))
        return SquidConf(gateway.machine, gateway.conf)
    return made


def said(*lines):
    return Done(0, '', ''.join(f'2026/11/29 13:00:00| {line}\n' for line in lines))


def test_the_line_is_named(conf, gateway):
    other = gateway.root / 'other.conf'
    other.write_text('# of another file\nicap_enable on # scan\n')
    made = conf('http_port \\', '  3128', 'if false', 'icap_enable on', 'endif', f'include {other}', 'via off')
    done = said(f'Processing Configuration File: {gateway.conf} (depth 0)', 'Processing: http_port   3128',
                f'Processing: include {other}', f'Processing Configuration File: {other} (depth 1)',
                'Processing: icap_enable on # scan', 'WARNING: something else', ICAP, 'Processing: via off')
    (what, do), = errors(done, made)
    assert what == f"{other}:2: icap_enable on: 'icap_enable' requires --enable-icap-client"
    assert 'squid-msfrs' in do


def test_what_is_said_after_the_last_line_is_of_none(conf):
    made = conf('http_port 3128', 'acl x src 10.0.0.0/8')
    done = said('Processing: http_port 3128', 'Processing: acl x src 10.0.0.0/8', 'Initializing', 'ERROR: no access')
    assert errors(done, made) == [('no access', 'correct or remove the line: Squid ignores it, or part of it')]


def test_an_obsolete_line(conf):
    done = said('Processing: ident_timeout 5', "ERROR: Directive 'ident_timeout' is obsolete.")
    (what, do), = errors(done, conf('http_port 3128', 'ident_timeout 5'))
    assert ':2: ident_timeout 5: ' in what and 'this version of Squid ignores it' in do


def test_each_once_and_not_without_end(conf):
    made = conf('http_port 3128')
    assert errors(said(*['ERROR: x'] * 9), made) == [('x', 'correct or remove the line: Squid ignores it, or part of it')]
    assert len(errors(said(*(f'ERROR: {n}' for n in range(99))), made)) == MOST
    assert errors(said('Processing: http_port 3128', 'WARNING: x'), made) == []
