# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl inspects a gateway with msfrs, explains its state and changes it at run time. `commands` has one file for
each subcommand; the modules beside it are shared."""
