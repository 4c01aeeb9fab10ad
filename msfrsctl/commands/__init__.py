# SPDX-License-Identifier: GPL-2.0-or-later
"""The subcommands. Each module has HELP, arguments(parser), gather(options, site) that returns what --json prints,
and show(data) that returns it as text; where the exit code depends on it, code(data). One that goes on
has frames(options, site) in place of gather."""
