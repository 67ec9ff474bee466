#!/bin/bash
# Tests examples/broad_phase as its user sees it: files in, files out, figures, exit statuses.
#
#   tests/examples/test_broad_phase.sh [PROGRAM]   default: build/broad_phase; with
#                                         build/cuda/broad_phase (any path with "cuda" in it) the
#                                         GPU's program is tested. TEST_SMALL: less work, for the
#                                         emulator.
#
# Says "FAILED" for each check that fails and "N passed, M failed" at the end. Where a number is
# expected it comes from a drawing or a formula beside the check, or from awk, which compares all
# spheres with all.
. "$(dirname "$0")/examples.sh" broad_phase "${1:-}"

broad() { run "$@"; }
seen() {
    echo "exit status $status; $(head -c 400 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}

# ---- pairs -------------------------------------------------------------------------------------

# spheres NAME PAIRS TEXT(printf): these spheres have so many pairs of overlapping boxes, by all
# methods.
spheres() {
    printf '%b' "$3" >"$work/spheres.txt"
    broad --read spheres.txt --check --runs 1 --sweep
    report $status "$1" "$(seen)"
    is "$1" grid_pairs "$2"
    is "$1" tree_pairs "$2"
    is "$1" sweep_pairs "$2"
}

# All spheres against all, in awk. Boxes, not balls: corners count. 9 digits are exact for a float,
# but its box is rounded:
# pairs that close to each other would be doubtful, and are told.
all_pairs() {
    awk '!/^#/ { n++; for (a = 1; a <= 3; a++) x[n, a] = $a; r[n] = $4 }
         END {
             for (a = 1; a <= 3; a++) for (i = 1; i <= n; i++) {
                 if (i == 1 || x[i, a] < low[a]) low[a] = x[i, a]
                 if (i == 1 || x[i, a] > high[a]) high[a] = x[i, a]
                 if (i == n && (a == 1 || high[a] - low[a] > high[longest] - low[longest]))
                     longest = a
             }
             for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) {
                 gap = -1
                 for (a = 1; a <= 3; a++) {
                     d = x[i, a] - x[j, a]; if (d < 0) d = -d; d -= r[i] + r[j]
                     if (d > gap) gap = d
                     if (a == longest) { along += d <= 0; doubtful += d < 1e-9 && d > -1e-9 }
                 }
                 pairs += gap <= 0; doubtful += gap < 1e-8 && gap > -1e-8
             }
             print pairs + 0, doubtful + 0, along + 0
         }' "$1"
}

by_hand() {
    #    0   1   2   3   4   5        radius 0.5: neighbours touch face to face, and closed boxes
    #        that touch overlap
    spheres 'a row that touches' 5 \
        '0 0 0 0.5\n1 0 0 0.5\n2 0 0 0.5\n3 0 0 0.5\n4 0 0 0.5\n5 0 0 0.5\n'
    # the same two, along each axis, either one first
    spheres 'two that touch: x' 1 '0 0 0 0.5\n1 0 0 0.5\n'
    spheres 'two that touch: -x' 1 '1 0 0 0.5\n0 0 0 0.5\n'
    spheres 'two that touch: y' 1 '0 0 0 0.5\n0 1 0 0.5\n'
    spheres 'two that touch: -y' 1 '0 1 0 0.5\n0 0 0 0.5\n'
    spheres 'two that touch: z' 1 '0 0 0 0.5\n0 0 1 0.5\n'
    spheres 'two that touch: -z' 1 '0 0 1 0.5\n0 0 0 0.5\n'
    spheres 'a row with gaps' 0 '0 0 0 0.49\n1 0 0 0.49\n2 0 0 0.49\n'
    spheres 'boxes overlap at corners where balls do not' 1 '0 0 0 1\n1.9 1.9 1.9 1\n'
    spheres 'one sphere' 0 '1 2 3 4\n'
    spheres 'two in one place' 1 '1 2 3 4\n1 2 3 4\n'
    spheres 'ten in one place' 45 "$(printf '1 2 3 0.25\\n%.0s' 1 2 3 4 5 6 7 8 9 10)"
    spheres 'a large one over a row' 4 \
        '0 0 0 10\n-9 0 0 0.1\n-3 0 0 0.1\n3 0 0 0.1\n9 0 0 0.1\n20 0 0 0.1\n'
    spheres 'comments, blank lines, tabs, CRLF' 1 '# two\n\n0\t0 0 1 # here\r\n 1e0 +0.5 0 1'
    is 'comments' spheres 2
    is 'comments' largest_radius 1
}

against_all() {
    local n=800 pairs doubtful along seed ratio
    [ "${TEST_SMALL:-}" ] && n=400
    for seed in 1 4 9; do
        for ratio in 10 3 1; do
            broad -n $n --seed $seed --ratio $ratio --write all.txt --check --runs 1 --sweep
            report $status "n $n, seed $seed, ratio $ratio" "$(seen)"
            read -r pairs doubtful along < <(all_pairs "$work/all.txt")
            report "$doubtful" "awk is sure: seed $seed, ratio $ratio"
            is "all against all: seed $seed, ratio $ratio" grid_pairs "$pairs"
            is "all against all: seed $seed, ratio $ratio" tree_pairs "$pairs"
            is "all against all: seed $seed, ratio $ratio" sweep_pairs "$pairs"
            is "all that overlap along an axis: seed $seed, ratio $ratio" sweep_tests "$along"
            is "seed $seed, ratio $ratio" agree 1
            [ "$(value grid_hash)" = "$(value tree_hash)" ] &&
                [ "$(value sweep_hash)" = "$(value tree_hash)" ] &&
                [ "$(value grid_hash)" != 0000000000000000 ]
            report $? "seed $seed, ratio $ratio: hashes" "$(seen)"
            [ $cuda = no ] || is "seed $seed, ratio $ratio: the GPU's tree is the serial one" \
                reference_agrees 1
        done
    done
}

# n spheres in one cell: the grid compares each pair. The tree compares fewer boxes, but each
# overlapping pair.
#
# Four in one place: the tree is ((0 1) (2 3)). From leaf 0 on it is 1, (2 3), 2, 3; from leaf 1 (2
# 3), 2, 3; from leaf 2: 3.
# Apart, in a row: from leaf 0 on it is 1, (2 3); from leaf 1 (2 3); from leaf 2: 3.
tests_counted() {
    spheres 'four in one place' 6 '1 1 1 1\n1 1 1 1\n1 1 1 1\n1 1 1 1\n'
    is 'four in one place' tree_tests 8
    spheres 'four apart' 0 '0 0 0 0.1\n1 0 0 0.1\n2 0 0 0.1\n3 0 0 0.1\n'
    is 'four apart' tree_tests 4
    broad -n 300 --check --runs 1 --write cell.txt
    is 'all in one cell' grid_tests $((301 * 300 / 2))
    awk -v t="$(value tree_tests)" -v g="$(value grid_tests)" -v p="$(value tree_pairs)" \
        'BEGIN { exit !(t > p && t < g) }'
    report $? "the tree tests fewer boxes" "$(seen)"
    broad --read cell.txt --check --runs 1; cp "$work/out.txt" "$work/again.txt"
    broad -n 300 --check --runs 2
    cmp -s "$work/out.txt" "$work/again.txt"
    report $? "written and read again: the same figures" "$(diff "$work/out.txt" "$work/again.txt")"
    broad -n 300 --seed 5 --check --runs 1
    ! cmp -s "$work/out.txt" "$work/again.txt"; report $? "another seed, another start"
}

# As many small ones as asked for, the large ones of the source's mixture (276 per million, of ten
# times the radius), half the room.
mixture() {
    local n=8000
    broad -n $n --write m.txt --check --runs 1
    is "mixture" spheres $((n + 2))
    awk '!/^#/ { v += 4 / 3 * 3.14159265 * $4 ^ 3; for (a = 1; a <= 3; a++) if ($a > m) m = $a
               if ($4 > 0.009) large++ }
         END { exit !(large == 2 && v / m ^ 3 > 0.45 && v / m ^ 3 < 0.55) }' "$work/m.txt"
    report $? "mixture: two large ones, half full"
}

# ---- command line, files -------------------------------------------------------------------------

command_line() {
    broad --help
    report $status "--help" "$(seen)"
    grep -q -- '--ratio  *R' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    local line
    while read -r line; do
        # shellcheck disable=SC2086
        broad $line
        [ $status -eq 2 ] && [ -s "$work/err.txt" ]
        report $? "exit status 2: $line" "$(seen)"
    done <<'LINES'
--no-such-option
-n
-n 0
-n -5
-n 1.5
-n 1000x
-n 99999999999999999999
--ratio 0
--runs 0
--level 0
LINES
    broad -n 300 --runs 1
    local number='[0-9][0-9]*' hash='[0-9a-f]\{16\}'
    local expected="^spheres 301, overlapping boxes $number by grid, $number by tree, hash $hash: the same pairs\$"
    tail -n 1 "$work/out.txt" | grep -q "$expected"
    report $? "the last line has the figures" "$(seen)"
    grep -q 'The \(tree\|grid\) is [0-9.]* times faster' "$work/out.txt"
    report $? "a comparison" "$(seen)"
}

# refused NAME LINE CONTENTS(printf): exit status 1, and the message begins with file:line
refused() {
    printf '%b' "$3" >"$work/bad.txt"
    broad --read bad.txt --check
    [ $status -eq 1 ] && grep -q "^broad_phase: bad.txt:$2: ..." "$work/err.txt" &&
        [ ! -s "$work/out.txt" ]
    report $? "refused: $1" "$(seen)"
}

bad_files() {
    refused 'three numbers'         2 '1 2 3 4\n4 5 6\n'
    refused 'five numbers'          1 '1 2 3 4 5\n'
    refused 'a word'                3 '# c\n1 2 3 4\n1 two 3 4\n'
    refused 'commas'                1 '1,2,3,4\n'
    refused 'nan'                   2 '1 1 1 1\n1 nan 3 4\n'
    refused 'inf'                   1 'inf 2 3 4\n'
    refused 'too large'             1 '1 2 1e99 4\n'
    refused 'radius 0'              1 '1 2 3 0\n'
    refused 'a negative radius'     2 '1 2 3 1\n1 2 3 -1\n'
    refused 'a very long line'      2 "1 2 3 4\n1 2 $(printf '%02000d' 0)\n"
    printf '# nothing\n\n' >"$work/empty.txt"
    broad --read empty.txt; report $((status != 1)) "refused: a file without spheres" "$(seen)"
    broad --read missing.txt; report $((status != 1)) "refused: no such file" "$(seen)"
    broad --read .; report $((status != 1)) "refused: a folder" "$(seen)"
    broad -n 10 --write no/where.txt
    report $((status != 1)) "refused: cannot write there" "$(seen)"
    broad -n 10 --picture /dev/null/where.png
    report $((status != 1)) "refused: cannot draw there" "$(seen)"
    [ -e /dev/full ] || return
    broad -n 1000 --write /dev/full; report $((status != 1)) "refused: the disk is full" "$(seen)"
}

# ---- pictures -----------------------------------------------------------------------------------

pictures() {
    make_png_reader || return
    broad -n 2000 --picture a.png --runs 1
    report $status "--picture" "$(seen)"
    grep -q 'picture: a.png' "$work/out.txt"; report $? "it says where the picture is" "$(seen)"
    is_picture a.png 1512 +721 100
    broad -n 2000 --picture b.png --level 2 --runs 1; is_picture b.png 1512 +721 100
    ! cmp -s "$work/a.png" "$work/b.png"; report $? "another level, another picture"
    printf '1 1 1 1\n' >"$work/one.txt"
    broad --read one.txt --picture one.png --runs 1
    report $status "a picture of one sphere" "$(seen)"
    "$work/png" "$work/one.png" >"$work/size.txt"; report $? "one.png decodes"
    broad --demo -n 1000 --check
    report $status "--demo, small" "$(seen)"
    is_picture build/demo/broad_phase.png 1512 +721 100
}

by_hand; against_all; tests_counted; mixture; command_line; bad_files; pictures
sum_up
