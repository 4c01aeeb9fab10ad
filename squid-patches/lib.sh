# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What fetch, build and refresh share: names, paths and how they talk to the user. Sourced, never run.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
work=$root/build/squid # everything these scripts make, except the installations

# Progress and messages go to stderr; stdout is for results that another program may read.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }

# What is built where nobody asks for another: in build/install, the packages, the trial and the images.
# shellcheck disable=SC2034 # read by the scripts
default_series=7

# The upstream version that a series takes, as a pattern for the upstream part of a Debian version, and the
# Debian suites it comes from. The one place to change when a series moves on.
# shellcheck disable=SC2034 # read by the scripts
set_series() {
    series=$1
    case $series in
        6) upstream='6.13' security=trixie-security suites='trixie trixie-updates' ;;
        7) upstream='7.*' security='' suites='sid' ;;
        *) die "series '$series' is unknown; known are 6 (Squid 6.13, Debian 13) and 7 (Squid 7, Debian unstable)" ;;
    esac
    sources=$work/sources/$series
    patches=$here/$series
}

# The lines of FILE without comments, and without those that are then empty.
uncommented() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"; }

# The path of patch NAME: the series' own, or else the one in common/, whether or not that exists.
patch_of() { if [ -e "$patches/$1.patch" ]; then echo "$patches/$1.patch"; else echo "$here/common/$1.patch"; fi; }

# The paths of the patches, in order.
series_patches() {
    local name
    for name in $(uncommented "$here/series"); do patch_of "$name"; done
}

# The changes that need nothing of ours, each a line with the names of its patches.
changes_alone() { uncommented "$here/series" | sed '/^build$/,$d'; }

# Where the series is installed, if --prefix does not say so.
series_prefix() { echo "$root/build/install$([ "$series" = $default_series ] || echo "-$series")"; }

# Whether lines of PATCH may have moved: common patches are exact for series 6, if none before them is left out.
may_move() { [ -n "${alone-}" ] || { [ "$series" != 6 ] && [[ $1 == "$here"/common/* ]]; }; }

# The version in configure.ac.
version_of_tree() {
    local version
    version=$(sed -nE 's/^AC_INIT\(\[msfrs\], \[([0-9.]+)\]\)$/\1/p' "$root/configure.ac")
    [ -n "$version" ] || die "configure.ac has no line AC_INIT([msfrs], [VERSION]), with a VERSION such as 1.2.0"
    echo "$version"
}

# need COMMAND PURPOSE: refuses to go on without COMMAND.
need() {
    command -v "$1" >/dev/null || die "command '$1' is missing; run: scripts/install-packages $2"
}

# logged LOG WHAT COMMAND...: runs COMMAND with its output in LOG; when it fails, shows the lines that say why.
logged() {
    local log=$1 what=$2 rc=0
    shift 2
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 </dev/null || rc=$?
    [ "$rc" -eq 0 ] && return 0
    say "$what failed (exit $rc); the lines that matter of $log:"
    { grep -nE 'error: |Error [0-9]|undefined reference|\*\*\*|^E: ' "$log" | tail -n 12; } >&2 || true
    say "its last lines:"
    tail -n 8 "$log" >&2
    return "$rc"
}

# The .dsc that fetch recorded, after comparing it with the checksum taken when apt had verified it. Empty when
# there is none.
fetched_dsc() {
    [ -r "$sources/fetched" ] || return 0
    (cd "$sources" && sha256sum --quiet --check fetched >&2) ||
        die "$sources differs from what was fetched; delete that directory and fetch again"
    awk '$2 ~ /\.dsc$/ {print $2}' "$sources/fetched"
}

# Sets dsc to the .dsc of the series, fetched now if it is not there.
need_source() {
    dsc=$(fetched_dsc)
    if [ -z "$dsc" ]; then
        "$here/fetch" "$series"
        dsc=$(fetched_dsc)
    fi
}

# unpack DSC DIR: Debian's source with Debian's patches, nothing of ours.
unpack() {
    rm -rf "$2"
    mkdir -p "$(dirname "$2")"
    logged "$work/log/unpack-$series.log" "unpacking ${1##*/}" \
        dpkg-source --no-copy --no-check -x "$1" "$2"
}

# apply_strictly DIR PATCH: applies PATCH in DIR only if it fits exactly, or with its lines moved where they may.
apply_strictly() {
    local out
    if ! out=$(patch -d "$1" -p1 --fuzz=0 --no-backup-if-mismatch --force -i "$2" 2>&1); then
        printf '%s\n' "$out" | grep -E 'FAILED|find file|malformed|open patch' | tail -n 12 >&2
        die "${2##*/} does not apply to $(basename "$1"); port it (squid-patches/README.md tells how)"
    fi
    if ! may_move "$2" && printf '%s\n' "$out" | grep -qE 'offset|fuzz|Reversed'; then
        printf '%s\n' "$out" >&2
        die "${2##*/} applies only with an offset; run: squid-patches/refresh $series --write"
    fi
}

# The files of our library below src/ that Squid is compiled with.
library_files() { grep -oE '\<src/[a-z0-9_/]+\.(cc|h)\>' "$root/src/library.am" | cut -d / -f 2-; }

# write_library DIR: our library as a part of Squid, in DIR, its src/msfrs/lib: squid.h comes first, and an include
# names its file from src/ on.
write_library() {
    mkdir -p "$1"
    (cd "$root/src" && library_files | xargs cp --parents -t "$1")
    (cd "$1" && library_files | xargs sed -i 's|^#include "|&msfrs/lib/|' &&
        library_files | grep '\.cc$' | xargs sed -i '0,/^#include/s//#include "squid.h"\n&/')
    { printf 'LIBRARY_SOURCES ='; library_files | xargs printf ' \\\n\tlib/%s'; echo; } >"$1/sources.am"
}

# apply_all DIR: the series in DIR, a source as `unpack` leaves it, and our whole files.
apply_all() {
    local patch
    for patch in $(series_patches); do apply_strictly "$1" "$patch"; done
    (cd "$here/files" && find . -type f ! -name Makefile.in ! -path './src/msfrs/lib/*' -print0 |
        xargs -0 cp --parents -t "$1")
    "$here/directives" write "$1/src/msfrs"
    write_library "$1/src/msfrs/lib"
}
