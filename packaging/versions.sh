#!/bin/bash
# Prints every place that names nearfield's version, as lines "VERSION PLACE"; "none PLACE" where it
# is not found.
# tests/quality/packages/run.sh wants them all equal, release.sh changes them.
#
#   packaging/versions.sh [TREE]      SPDX-License-Identifier: MIT OR Unlicense
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

# place NAME TEXT: the first line of TEXT
place() { echo "$(echo "${2:-none}" | head -n 1) $1"; }
# within FILE PATTERN: what stands in the pattern's parentheses
within() { sed -n "s/$2.*/\1/p" "$1" 2>/dev/null; }
number='\([0-9][0-9.]*\)'

for header in ugrid lbvh nlist nbody; do
    macro=$(echo $header | tr a-z A-Z)_VERSION
    place "$header.h, first line" "$(within $header.h "^\/\* $header.h - v$number -")"
    place "$header.h, ${macro}_..." "$(for part in MAJOR MINOR PATCH;
        do within $header.h "^#define ${macro}_$part $number"; done | paste -sd .)"
done
place CMakeLists.txt "$(within CMakeLists.txt "^project(nearfield VERSION $number ")"
place CITATION.cff "$(within CITATION.cff "^version: $number")"
place clib.json "$(within clib.json "^ *\"version\": \"$number\"")"
place packaging/vcpkg/nearfield/vcpkg.json \
    "$(within packaging/vcpkg/nearfield/vcpkg.json "^ *\"version\": \"$number\"")"
place packaging/conan/conanfile.py \
    "$(within packaging/conan/conanfile.py "^ *version = \"$number\"")"
place packaging/debian/changelog "$(within packaging/debian/changelog "^nearfield ($number)")"

# Before the first release CHANGELOG.md has only [Unreleased].
released=$(within CHANGELOG.md "^## \[$number\]")
[ -z "$released" ] || place CHANGELOG.md "$released"
