#!/bin/bash
# more/nearfield.hpp: compiled by g++ and clang++ without a warning, run with sanitizers, and no
# slower than C by instructions.
#
#   tests/cpp/run.sh              clang++ (else g++) with sanitizers, both compilers' warnings
#   tests/cpp/run.sh --quick      warnings only
#   tests/cpp/run.sh --self-check planted faults are found
#
# FULL=1: also g++'s program, and instructions of C++ over C by callgrind, where valgrind is.
# The last line is "N passed, M failed, K skipped". SPDX-License-Identifier: MIT OR Unlicense
set -u
cd "$(dirname "$0")/../.." || exit 1
out=$(mktemp -d) && trap 'rm -rf "$out"' EXIT || exit 1
passed=0 failed=0 skipped=0 tree=.
strict="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Werror"
# what no C++17 program can avoid, and padding, which the structs of C have
everything="-Weverything -Wno-c++98-compat -Wno-c++98-compat-pedantic -Wno-padded -Werror
    -Wno-unknown-warning-option -Wno-unsafe-buffer-usage -Wno-switch-default -Wno-nrvo"
# The C functions have tests of their own with -fsanitize=undefined, which takes long to compile.
sanitize="-O0 -g1 -fno-omit-frame-pointer -fsanitize=address -fno-sanitize-recover=all"

row() {         # row NAME COMMAND...: 77 is skipped, with the last line as the reason
    local name=$1 status; shift
    "$@" >"$out/log" 2>&1; status=$?
    case $status in
    0) passed=$((passed + 1)); echo "ok       $name" ;;
    77) skipped=$((skipped + 1)); echo "skipped  $name: $(tail -n 1 "$out/log")" ;;
    *) failed=$((failed + 1)); echo "FAILED   $name"; head -n 20 "$out/log" | sed 's/^/    | /' ;;
    esac
}

# The header, alone and with everything, and its test. Without exceptions: the header.
no_warning() {  # no_warning COMPILER FLAGS...
    local cc=$1; shift
    command -v "$cc" >/dev/null || { echo "no $cc"; return 77; }
    echo '#include "more/nearfield.hpp"' >"$out/user.cpp"
    "$cc" -std=c++20 -fsyntax-only "$@" -I"$tree" tests/cpp/test_nearfield.cpp &&
    "$cc" -std=c++17 -fsyntax-only "$@" -I"$tree" -DLBVH_WITH_WORLD -DNLIST_WITH_BOXES \
        "$out/user.cpp" &&
    "$cc" -std=c++17 -fsyntax-only "$@" -I"$tree" -fno-exceptions -DNEARFIELD_DOUBLE \
        "$out/user.cpp" &&
    "$cc" -std=c++17 -fsyntax-only "$@" -I"$tree" -DUGRID_CUDA -DLBVH_CUDA -DNLIST_CUDA \
        -DNBODY_CUDA "$out/user.cpp"
}

# In a file of the caller that includes a C header, also those of C's casts.
no_warning_of_c() {
    local header file
    for header in ugrid lbvh nlist nbody; do
        file=$out/$header.cpp
        echo "#include \"$header.h\"" >"$file"
        if [ "$1" = clang++ ]; then set -- clang++ $everything; fi
        "$@" -std=c++17 -fsyntax-only -I"$tree" "$file" || return 1
    done
}

# Both implementations in one file, with all parts: what depends on the real type is taken back.
all_parts() {
    local part macros=''
    command -v "$1" >/dev/null || { echo "no $1"; return 77; }
    for part in "$tree"/more/*_*.h; do
        part=$(basename "$part" .h)
        macros="$macros -D$(echo "${part%%_*}_WITH_${part#*_}" | tr a-z A-Z)"
    done
    # shellcheck disable=SC2086
    "$1" -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I"$tree" -DNEARFIELD_IMPLEMENTATION \
        -DNEARFIELD_DOUBLE $macros -x c++ "$tree/more/nearfield.hpp"
}

program() {     # program COMPILER FLAGS...: built in two parts, one has the implementation
    local cc=$1; shift
    command -v "$cc" >/dev/null || { echo "no $cc"; return 77; }
    printf '#define NEARFIELD_IMPLEMENTATION\n#define NEARFIELD_DOUBLE\n%s\n' \
        '#define LBVH_WITH_WORLD
#define NBODY_WITH_FUNCTION
#include "more/nearfield.hpp"' >"$out/implementation.cpp"
    [ -f "$out/$cc.o" ] ||
        "$cc" -std=c++17 "$@" -I"$tree" -c -o "$out/$cc.o" "$out/implementation.cpp" || return 1
    case "$*" in *sanitize*) set -- "$@" -fsanitize=undefined ;; esac
    "$cc" -std=c++17 "$@" -I"$tree" -o "$out/program" tests/cpp/test_nearfield.cpp "$out/$cc.o" &&
        "$out/program"
}

# Instructions of both forms, without what comes before. Bars: what a check of arguments costs, and
# tree_pairs, which keeps its pairs for a moment.
instructions() {
    local work bar base c cpp
    command -v valgrind >/dev/null || { echo "no valgrind"; return 77; }
    count() {
        valgrind --tool=callgrind --callgrind-out-file=/dev/null "$out/bench" "$@" 2000 2>&1 |
            awk '/Collected/ { print $4 }'
    }
    "$1" -std=c++17 -O3 -I. -o "$out/bench" tests/cpp/bench_nearfield.cpp || return 1
    for work in within:1.15 each_pair:1.1 pairs:1.1 neighbors:1.01 overlaps:1.1 tree_pairs:1.5 \
        tree_each_pair:1.1 row:1.05 each_contact:1.05 sum:1.1; do
        bar=${work#*:} work=${work%:*}
        base=$(count "$work" none) c=$(count "$work" c) cpp=$(count "$work" cpp)
        awk -v w="$work" -v bar="$bar" -v c=$((c - base)) -v cpp=$((cpp - base)) 'BEGIN {
            printf "%-16s %.3f (bar %s)\n", w, cpp / c, bar; exit !(c > 0 && cpp <= bar * c) }' ||
            return 1
    done
}

# planted NAME SED WHAT...: with that change to the header, WHAT fails
planted() {
    local name=$1 change=$2; shift 2
    rm -rf "$out/tree"; mkdir "$out/tree"
    cp -r ./*.h more "$out/tree"
    sed -i "$change" "$out/tree/more/nearfield.hpp"
    cmp -s more/nearfield.hpp "$out/tree/more/nearfield.hpp" && { echo "no change"; return 1; }
    tree=$out/tree
    if "$@"; then tree=.; echo "not noticed: $name"; return 1; fi
    tree=.
}

compiler=clang++; command -v clang++ >/dev/null || compiler=g++
case ${1:-} in
--quick)
    row 'clang++ -Weverything: nearfield.hpp' no_warning clang++ $everything
    row 'g++: nearfield.hpp' no_warning g++ $strict -Wold-style-cast -Wuseless-cast ;;
--self-check)
    row 'a macro of floats is left for doubles' planted macro '/^#undef LBVH_I_INFINITE/d' \
        all_parts "$compiler"
    row 'a moved object is emptied' planted move 's/other.object_ = Object{};//' \
        program "$compiler" $sanitize
    row 'results are looked at' planted result 's/else if (code) throw/else if (!code) throw/' \
        program "$compiler" $sanitize
    row 'exceptions leave the call' planted thrown 's/std::rethrow_exception(thrown_)/(void)0/' \
        program "$compiler" $sanitize ;;
*)
    row 'clang++ -Weverything: nearfield.hpp' no_warning clang++ $everything
    row 'g++: nearfield.hpp' no_warning g++ $strict -Wold-style-cast -Wuseless-cast
    row 'clang++ -Weverything: the C headers' no_warning_of_c clang++
    row 'g++ -Wuseless-cast: the C headers' no_warning_of_c g++ $strict -Wold-style-cast \
        -Wuseless-cast -Wzero-as-null-pointer-constant
    row "$compiler: both implementations, all parts" all_parts "$compiler"
    row "$compiler, sanitizers: float and double in one program" program "$compiler" $sanitize
    if [ "${FULL:-}" ]; then
        row 'g++ -O2: float and double in one program' program g++ -O2
        row "instructions of C++ over C, g++ -O3" instructions g++
        row "instructions of C++ over C, clang++ -O3" instructions clang++
    fi ;;
esac
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
