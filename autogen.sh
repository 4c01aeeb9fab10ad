#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes configure from configure.ac; needs autoconf, automake, libtool and pkg-config.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
    command -v "$tool" > /dev/null || {
        echo "autogen.sh: $tool is missing (Debian: apt install autoconf automake libtool pkg-config)" >&2
        exit 1
    }
done
mkdir -p cfgaux/m4
exec autoreconf --install
