# SPDX-License-Identifier: GPL-2.0-or-later
import sys

from .live import main

sys.exit(main())
