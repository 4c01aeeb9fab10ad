# SPDX-License-Identifier: GPL-2.0-or-later
"""What all packages speak of, and which imports none of them: errors, paths, the words for disturbances,
and the specification of a cell."""
