# SPDX-License-Identifier: GPL-2.0-or-later
"""Definitions shared by all packages: errors, paths, the kinds of disturbances, and the specification of a cell.
Imports no other package."""
