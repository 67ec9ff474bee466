#!/bin/bash
# The form of every text of the repository: lines of at most 100 columns, no tabs, no blanks at the
# end of a line, a newline at the end of the file; in C and CUDA the braces of .clang-format.
#
# Longer lines are allowed where a break would change what they are: rows of data (nbody_cases.h,
# CSV files, the fuzz corpus), tables in Markdown, addresses, pages that a script makes, regular
# expressions of performance*.template, and in scripts a quoted word of 40 characters and more, such
# as a program of sed.
#
#   tests/quality/style/run.sh                 all of them
#   tests/quality/style/run.sh --self-check    is each fault noticed?
#
# Also: do the contents of each header list its banners? And planted.sh. The last line is "N passed,
# M failed". SPDX-License-Identifier: MIT OR Unlicense
set -u
export LC_ALL=C.UTF-8
cd "$(dirname "$0")/../../.." || exit 1
passed=0 failed=0

texts() {
    find . \( -name .git -o -path ./build -o -path ./.ci -o -name __pycache__ \) -prune -o \
        -type f -print |
        grep -vE '\.(png|csv|log)$|nbody_cases|fuzz/corpus/|bench/results/|/LICENSE' |
        grep -v 'performance.*\.template' | sort
}

# Lines that are too long, but for those that the head of this file names.
too_long() {
    LC_ALL=C awk '{ shown = $0; gsub(/[\200-\277]/, "", shown) }    # UTF-8: a column, not its bytes
        length(shown) > 100 {
            if (FILENAME ~ /\.md$/ && /^[|]|https?:/) next
            if (FILENAME ~ /\.sh$/ && long_word($0)) next
            print FILENAME ":" FNR ": " length }
        # Are there 40 characters and more between two quotes, or before or behind one?
        function long_word(line,   n, k, part) {
            n = split(line, part, /["\047]/)
            for (k = 1; n > 1 && k <= n; k++) if (length(part[k]) >= 40) return 1
            return 0
        }' "$@"
}

# Banners of a header (>>name at the begin of a line) that its contents do not list.
not_in_contents() {
    local header contents name
    for header in ugrid lbvh nlist nbody; do
        contents=$(awk '/^   >>contents/ { here = 1; next } here && /^   >>/ { exit } here' \
            "$header.h" | tr -s ' ,;:' '\n')
        for name in $(sed -n 's/^   >>\([a-z0-9_-]*\).*/\1/p' "$header.h"); do
            [ "$name" = contents ] || echo "$contents" | grep -qx -e "$name" ||
                echo "$header.h: >>$name"
        done
    done
}

report() {      # report NAME WHERE: WHERE is empty where all is well
    if [ ! "$2" ]; then passed=$((passed + 1)); echo "ok       $1"; return; fi
    failed=$((failed + 1)); echo "FAILED   $1"; echo "$2" | head -n 20 | sed 's/^/    | /'
}

check() {       # check FILE...
    report 'lines of at most 100 columns' "$(too_long "$@")"
    report 'no tabs but in makefiles' \
        "$(for f; do case $f in *.mk|*Makefile|*/debian/*) ;; *) echo "$f" ;; esac; done |
            xargs grep -nP '\t' | cut -c 1-80)"
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
mapfile -t files < <(texts)
check "${files[@]}"
report 'the contents of a header list its banners' "$(not_in_contents)"
report 'faults that self-checks plant still find their lines' "$(tests/quality/style/planted.sh)"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
