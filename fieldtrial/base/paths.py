# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are in the source tree, which is also how the images have them."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: What `./check` and `./trial` install: the delay line, msfrs-edge, Squid.
PROGRAMS = ROOT / 'build/install/sbin'
#: What `scripts/install-packages` takes from PyPI, where Debian has not.
MODULES = ROOT / 'build/python'
#: Where ./trial builds what is not installed, and where a developer does.
BUILDS = ('build/obj-trial', 'build/obj')


def built(name):
    """A program that is built and not installed, or None."""
    found = [path for path in (ROOT / build / name for build in BUILDS) if path.is_file()]
    return found[0] if found else None
