#!/bin/bash
# The form of the sources: lines of at most 100 columns, no tabs, no blanks at the end of a
# line, a newline at the end of the file; in C and CUDA the braces of .clang-format.
#
#   tests/quality/style/run.sh                 all of them
#   tests/quality/style/run.sh --self-check    is each fault noticed?
#
# The last line is "N passed, M failed". SPDX-License-Identifier: MIT OR Unlicense
set -u
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/../../.." || exit 1
passed=0 failed=0

# The headers, their CUDA parts, the examples and the tests of both. Rows of numbers are not
# wrapped.
sources() {
    { ls ./*.h cuda/*
      find examples tests/common tests/unit tests/cuda tests/emu/*.mk tests/quality/*.mk \
          tests/bench/*.mk \
          -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.mk' \)
    } | grep -v 'examples/python\|nbody_cases\|unit/all/\|cuda/all/' | sort
}

report() {      # report NAME WHERE: WHERE is empty where all is well
    if [ ! "$2" ]; then passed=$((passed + 1)); echo "ok       $1"; return; fi
    failed=$((failed + 1)); echo "FAILED   $1"; echo "$2" | head -n 20 | sed 's/^/    | /'
}

check() {       # check FILE...
    report 'lines of at most 100 columns' \
        "$(awk 'length > 100 { print FILENAME ":" FNR ": " length }' "$@")"
    report 'no tabs but in makefiles' "$(grep -nP '\t' "${@/%*.mk//dev/null}" | cut -c 1-80)"
    report 'no blanks at the end of a line' "$(grep -nE ' +$' "$@" | cut -c 1-80)"
    report 'a newline at the end of a file' \
        "$(for f; do [ ! "$(tail -c 1 "$f")" ] || echo "$f"; done)"
    report 'a function begins its body on a line of its own' \
        "$(awk 'FILENAME ~ /\.(c|h|cu|cc)$/ && /^(static|int|void|[A-Z]+_API) .*\) \{$/ {
                    print FILENAME ":" FNR ": " $0 }' "$@")"
}

if [ "${1:-}" = --self-check ]; then
    work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
    printf 'int f(void) {\n\treturn 0; \n}%0110d' 0 >"$work/bad.c"
    found=$(check "$work/bad.c" | grep -c '^FAILED')
    if [ "$found" -eq 5 ]; then echo "1 passed, 0 failed"; exit; fi
    echo "FAILED   style: $found of 5 planted faults are noticed"; echo "0 passed, 1 failed"; exit 1
fi
mapfile -t files < <(sources)
check "${files[@]}"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
