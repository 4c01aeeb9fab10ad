# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m fieldtrial: the trial itself, without the build that ./trial does first."""
import sys

from .cli import main

sys.exit(main())
