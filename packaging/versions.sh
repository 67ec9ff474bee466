#!/bin/bash
# Prints every place that names nearfield's version, as lines "VERSION PLACE"; "none PLACE" where it
# is not found, "VERSION,DATE PLACE" where the date is not that of CHANGELOG.md.
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
released=$(sed -n 's/^## \[[0-9.]*\] - \([0-9-]*\)$/\1/p' CHANGELOG.md | head -n 1)

# changes FILE: the newest entry under >>changes, a line "   X.Y.Z, DATE  what changed"
changes() {
    awk -v date="$released" '/^   >>changes/ { here = 1 }
        here && /^   [0-9]+\.[0-9.]+[, ]/ {
            version = $1; sub(/,$/, "", version)
            if (!match($0, /[0-9]+-[0-9][0-9]-[0-9][0-9]/)) version = version ",undated"
            else if (substr($0, RSTART, RLENGTH) != date)
                version = version "," substr($0, RSTART, RLENGTH)
            print version; exit }' "$1"
}

# checked FILE: the number that a part or a .cu file compares, 10000 X + 100 Y + Z, as X.Y.Z
checked() {
    within "$1" '^#[elif]* 10000 \* [A-Z]*_VERSION_MAJOR + .* != \([0-9]\{1,\}\)' |
        awk '{ printf "%d.%d.%d\n", $1 / 10000, $1 / 100 % 100, $1 % 100 }'
}

for header in ugrid lbvh nlist nbody; do
    macro=$(echo $header | tr a-z A-Z)_VERSION
    place "$header.h, ${macro}_..." "$(for part in MAJOR MINOR PATCH;
        do within $header.h "^#define ${macro}_$part $number"; done | paste -sd .)"
    place "$header.h, >>changes" "$(changes $header.h)"
    for file in $header.h more/"$header"_*.h cuda/$header.cu cuda/"$header"_*.cu; do
        [ -f "$file" ] || continue
        place "$file, first line" "$(within "$file" "^\/\* ${file//\//\\/} - v$number -")"
        [ "$file" != "$header.h" ] || continue
        place "$file, its check" "$(checked "$file")"
        place "$file, its words" \
            "$(within "$file" "^#error \"${file//\//\\/} $number and $header.h ")"
    done
done
file=more/nearfield.hpp
place "$file, first line" "$(within $file "^\/\* ${file//\//\\/} - v$number -")"
for header in ugrid lbvh nlist nbody; do
    macro=$(echo $header | tr a-z A-Z)_VERSION
    place "$file, its check of $header.h" \
        "$(grep "^#if 10000 \* $macro" $file | checked /dev/stdin)"
    place "$file, its words on $header.h" \
        "$(within $file "^#error \"${file//\//\\/} $number and $header.h ")"
done
place CMakeLists.txt "$(within CMakeLists.txt "^project(nearfield VERSION $number ")"
place CITATION.cff "$(within CITATION.cff "^version: $number")"
place clib.json "$(within clib.json "^ *\"version\": \"$number\"")"
place packaging/vcpkg/nearfield/vcpkg.json \
    "$(within packaging/vcpkg/nearfield/vcpkg.json "^ *\"version\": \"$number\"")"
place packaging/conan/conanfile.py \
    "$(within packaging/conan/conanfile.py "^ *version = \"$number\"")"
place packaging/debian/changelog "$(within packaging/debian/changelog "^nearfield ($number)")"
place CHANGELOG.md "$(within CHANGELOG.md "^## \[$number\]")"
