# SPDX-License-Identifier: GPL-2.0-or-later
"""A mistake on the command line of the scripts ends them at once, with a sentence that names it."""
import pathlib
import subprocess

import pytest

PATCHES = pathlib.Path(__file__).resolve().parents[2] / 'squid-patches'


@pytest.mark.parametrize('words, sentence', (
    (('directives', 'write', '/none'), 'directives: cannot write /none/cf.data.pre: No such file or directory; '
                                       'give src/msfrs of a Squid source tree'),
    (('build', '7', '--alone', 'tunnel'), "build: --alone 'tunnel' is no change that stands alone; known are: pipeline, "
     'pipeline-order interim, listen, keep-listening, stdio-log, daemon-log, clock-set, half-closed, mgr, unverified, '
     'verify-in-time, acl acl-node'),
    (('build', '7', '--source', '/none'),
     'build: /none is no source tree of Squid; make one with: squid-patches/refresh 7 --checkout /none'),
))
def test_it_is_named(words, sentence):
    done = subprocess.run([PATCHES / words[0], *words[1:]], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (1, sentence)
