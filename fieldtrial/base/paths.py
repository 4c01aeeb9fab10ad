# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths in the source tree; the container images have the same layout."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Installed by `./check` and `./trial`: the delay line, msfrs-edge, Squid.
PROGRAMS = ROOT / 'build/install/sbin'
#: Packages that `scripts/install-packages` takes from PyPI, where Debian lacks them.
MODULES = ROOT / 'build/python'
#: Build directories of ./trial, for programs that are not installed, and of developers.
BUILDS = ('build/obj-trial', 'build/obj')


def built(name):
    """Path of a program that is built but not installed, or None."""
    found = [path for path in (ROOT / build / name for build in BUILDS) if path.is_file()]
    return found[0] if found else None
