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
#   tests/quality/style/run.sh --reach         reach.txt, with the figures of now
#   tests/quality/style/run.sh --self-check    is each fault noticed?
#
# Of headers, parts and .cu files: do the contents list the banners, is each there once, and is what
# is named there? Does a reader of a function still have to read no more than reach.txt says? Are
# the blocks that headers share still copies (blocks.sh)? And planted.sh. The last line is "N passed, M failed". SPDX-License-Identifier: MIT OR Unlicense
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

# The texts of the headers: core, parts, kernels, in the folder $tree.
tree=.
members() { (cd "$tree" && ls ./*.h more/*.h cuda/*.cu 2>/dev/null | sed 's,^\./,,'); }

# Lines "FILE LINE NAME", of banners (a line of a comment that begins with >>name, alone, or before a
# colon or words in brackets), and of what else names one.
banners() {
    (cd "$tree" && members | xargs awk '/^   >>[a-z0-9_-]+(:| \([^()]*\)$|$)/ {
        name = $1; gsub(/[>:]/, "", name); print FILENAME, FNR, name }')
}
mentions() {
    (cd "$tree" && members | xargs awk '{ rest = $0
        while (match(rest, /(^|[^A-Za-z0-9_>])>>[a-z][a-z0-9_-]*/)) {
            name = substr(rest, RSTART, RLENGTH); sub(/^.*>>/, "", name); sub(/-$/, "", name)
            rest = substr(rest, RSTART + RLENGTH)
            if (name != "name" && name != "contents") print FILENAME, FNR, name } }')
}

# Banners that the contents of their file do not list.
not_in_contents() {
    local file line name contents
    for file in $(members); do
        contents=$(awk '/^   >>contents/ { here = 1; sub(/>>contents/, "") }
            here && /^   >>/ { exit }
            here { print }
            here && /\*\// { exit }' "$tree/$file" | sed 's/>>/ /g' | tr -s ' ,;:.()' '\n')
        banners | grep "^$file " | while read -r file line name; do
            [ "$name" = contents ] || echo "$contents" | grep -qx -e "$name" ||
                echo "$file:$line: >>$name"
        done
    done
}

# A name belongs to one place of its file.
banners_twice() { banners | awk 'seen[$1, $3]++ { print $1 ":" $2 ": >>" $3 " again" }'; }

# What is named is there; and a core does not name sections that only its parts have.
named_but_not_there() {
    { banners | sed 's/^/banner /'; mentions | sed 's/^/named /'; } | awk '
        { file = $2; core = file; sub(/^(more|cuda)\//, "", core); sub(/[._].*/, "", core)
          part = file ~ /^[a-z]+\/[a-z]+_/ }
        $1 == "banner" { there[$4] = 1; has[core, part, $4] = 1; next }
        !($4 in there) { print file ":" $3 ": there is no >>" $4 }
        ($4 in there) && !part && !((core, 0, $4) in has) && ((core, 1, $4) in has) {
            print file ":" $3 ": >>" $4 " stands in a part" }'
}

# What a reader of a root has to read (reach.awk) may not grow beyond what reach.txt says.
reach_grew() {
    awk -v dir="$tree" -f tests/quality/style/reach.awk tests/quality/style/reach.txt |
        paste -d'|' - tests/quality/style/reach.txt | awk -F'|' '/^#/ || !NF { next }
            { split($1, is, " "); split($2, was, " ") }
            $1 ~ /no such function/ { print $1; next }
            is[4] > was[4] + 0 || is[5] > was[5] + 0 {
                print is[1] ": " is[4] " functions, " is[5] " lines; reach.txt says " was[4] ", " \
                    was[5] }'
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

headers_are_right() {
    report 'the contents of a header, a part, a .cu file list its banners' "$(not_in_contents)"
    report 'no banner stands twice in a file' "$(banners_twice)"
    report 'what is named by >> is there' "$(named_but_not_there)"
    report 'what a reader of a function reaches has not grown (reach.txt)' "$(reach_grew)"
    report 'blocks that headers share are copies (blocks/)' \
        "$(tests/quality/style/blocks.sh "$(cd "$tree" && pwd)")"
}

# plant WHAT AWK-PROGRAM FILE REPORT: a copy of the headers with one change; just that report fails.
plant() {
    tree=$work/tree
    rm -rf "$tree"; mkdir "$tree"
    tar c $(ls ./*.h cuda/*.cu more/*.h 2>/dev/null) | tar x -C "$tree"
    awk "$2" "$3" >"$tree/$3"
    ! cmp -s "$3" "$tree/$3" || echo "FAILED   style: $1: nothing is changed"
    headers_are_right >"$work/said"
    if [ "$(grep -c '^FAILED' "$work/said")" = 1 ] && grep -q "^FAILED   $4" "$work/said"; then
        found=$((found + 1)); return
    fi
    echo "FAILED   style: $1 in $3 is not noticed"; sed 's/^/    | /' "$work/said"
}

self_check() {
    local found
    work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
    printf 'int f(void) {\n\treturn 0; \n}%0110d' 0 >"$work/bad.c"
    found=$(check "$work/bad.c" | grep -c '^FAILED')
    [ "$found" -eq 5 ] || echo "FAILED   style: $found of 5 faults of form are noticed"
    # in the first root of the list: a statement more, and another function
    local root file; read -r root file _ < <(grep '^[a-z]' tests/quality/style/reach.txt)
    plant 'a line more' '{ print } index($0, "'"$root"'(") && /^[A-Za-z]/ { here = 1 }
        here && $0 == "{" { print "    (void)0;"; here = 0 }' "$file" 'what a reader'
    plant 'a function more' '{ print } index($0, "'"$root"'(") && /^[A-Za-z]/ { here = 1 }
        here && $0 == "{" { print "    planted_i_more();"; here = 0 }
        END { print "static void planted_i_more(void)\n{\n}" }' "$file" 'what a reader'
    plant 'a banner that no contents list' '{ print } END { print "/* -\n   >>planted: new\n*/" }' \
        "$file" 'the contents'
    plant 'a banner again' '{ print } END { print "/* -\n   >>use\n*/" }' "$file" 'no banner'
    plant 'a copy that differs' '{ sub(/0x100000001B3ull/, "0x100000001B1ull"); print }' "$file" \
        'blocks'
    plant 'a name that nothing has' '{ print } END { print "/* (>>planted) */" }' "$file" 'what is'
    echo "$found passed, $((11 - found)) failed"
    [ "$found" -eq 11 ]; exit
}

case ${1:-} in
--self-check) self_check ;;
--reach) awk -f tests/quality/style/reach.awk tests/quality/style/reach.txt; exit ;;
esac
mapfile -t files < <(texts)
check "${files[@]}"
headers_are_right
report 'faults that self-checks plant still find their lines' "$(tests/quality/style/planted.sh)"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
