# SPDX-License-Identifier: GPL-2.0-or-later
"""`python3 -m msfrsctl` in the source tree; the installed program is `msfrsctl.in`."""
import pathlib
import re
import sys

from .cli import main

SAID = (pathlib.Path(__file__).resolve().parents[1] / 'configure.ac').read_text()
sys.exit(main(sys.argv[1:], version=re.search(r'AC_INIT\(\[msfrs\], \[(.*?)\]', SAID)[1]))
