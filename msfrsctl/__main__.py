# SPDX-License-Identifier: GPL-2.0-or-later
"""`python3 -m msfrsctl` in the source tree; what is installed is `msfrsctl.in`."""
import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
