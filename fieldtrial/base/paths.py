# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are in the source tree, which is also how the images have them."""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: What `./check` and `./trial` install: the delay line, msfrs-edge, Squid.
PROGRAMS = ROOT / 'build/install/sbin'
