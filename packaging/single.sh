#!/bin/sh
# Writes each header with all its parts as one file, for those who want one: OUT/NAME.h, and
# OUT/cuda with the kernels. Which parts are compiled, the macros say, as ever: LBVH_WITH_WORLD and
# so on. more/nearfield.hpp, for C++, goes with them.
#
#   packaging/single.sh [OUT [TREE [NAME...]]]      build/single, this tree, all headers
#
# SPDX-License-Identifier: MIT OR Unlicense
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$here/build/single} tree=${2:-$here}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
[ $# -gt 0 ] || set -- ugrid lbvh nlist nbody

# A hook is where a header includes a part, with a check in front of it:
#
#   #if defined(__has_include)
#   #if !__has_include("more/lbvh_world.h")
#   #error "..."
#   #endif
#   #endif
#   #include "more/lbvh_world.h"
#
# The check goes, and the part's text stands for the include. From there the kernels are in cuda/.
joined() {
    awk -v tree="$tree" '
        { line[NR] = $0 }
        END { for (n = 1; n <= NR; n++) {
            if (line[n] ~ /^#if defined\(__has_include\)$/ &&
                line[n + 1] ~ /^#if !__has_include\("more\//) {
                for (ends = 0; ends < 2; n++) ends += line[n] ~ /^#endif/
                n--
                continue
            }
            if (line[n] !~ /^#include "more\//) { print line[n]; continue }
            name = line[n]; sub(/^#include "/, "", name); sub(/".*/, "", name)
            insert(name) } }
        function insert(name,   text, read) {
            read = 0
            while ((getline text < (tree "/" name)) > 0) {
                sub(/^#include "\.\.\/cuda\//, "#include \"cuda/", text)
                print text
                read++
            }
            if (!read) { print tree "/" name ": it is not there" >"/dev/stderr"; exit 1 }
        }' "$tree/$1.h"
}

mkdir -p "$out/cuda"
for header; do
    joined "$header" >"$out/$header.h.new"
    if grep -n '__has_include("more/\|^ *# *include *"\(more\|\.\.\)/' "$out/$header.h.new"; then
        echo "$header.h: this names a part, but is no hook as packaging/single.sh knows it" >&2
        exit 1
    fi
    mv "$out/$header.h.new" "$out/$header.h"
    for kernels in "$tree/cuda/$header.cu" "$tree"/cuda/"$header"_*.cu; do
        [ ! -f "$kernels" ] || cp "$kernels" "$out/cuda/"
    done
done
if [ -f "$tree/more/nearfield.hpp" ]; then
    mkdir -p "$out/more"
    cp "$tree/more/nearfield.hpp" "$out/more/"
fi
