# SPDX-License-Identifier: GPL-2.0-or-later
"""msfrsctl: looks at a gateway with msfrs, explains it, and changes it while it runs. One file a subcommand in
`commands`; what they share is beside it."""
