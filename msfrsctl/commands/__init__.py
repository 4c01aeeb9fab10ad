# SPDX-License-Identifier: GPL-2.0-or-later
"""The subcommands. Each module has HELP, gather(options, site) that returns the data of --json, and show(data) that
returns them as text; arguments(parser), if it has options; code(data), if the exit code depends on the data. A command
that runs continuously has frames(options, site) in place of gather."""
