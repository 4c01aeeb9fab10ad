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

# rules FOLDER: how to build each plugin there, one shared library a file NAME.cc; its headers are the folder's.
rules() {
    echo "noinst_HEADERS += $(echo "$1"/*.h)"
    for source in "$1"/*.cc; do
        name=$(basename "$source" .cc)
        cat << EOF
pkglib_LTLIBRARIES += $name.la
${name}_la_SOURCES = $source
${name}_la_CXXFLAGS = \$(PLUGIN_CXXFLAGS)
${name}_la_LDFLAGS = \$(PLUGIN_LDFLAGS)
EOF
    done
}
{
    rules src/sched
    rules src/aqm
    echo 'if SATELLITES_ON'
    rules src/satellites/sched
    rules src/satellites/aqm
    echo 'endif'
} > cfgaux/plugins.am
exec autoreconf --install
