#!/bin/bash
# Tests examples/curves: the curves, the sums, the lines that its model of a cache fetches.
#
#   tests/examples/test_curves.sh [PROGRAM]      default: build/curves
#
# Curves and sums are made again in awk, from what is printed: Morton's numbers from the bits of x
# and y, Hilbert's curve by what defines it, sums by all pairs. Lists with a mistake in them show
# that each check can fail.
. "$(dirname "$0")/examples.sh" curves "${1:-}"

curves() { run --out out.png --rounds 1 "$@"; }
seen() { echo "exit status $status; $(head -c 300 "$work/err.txt") $(tail -n 8 "$work/out.txt")"; }

# ---- curves and sums -----------------------------------------------------------------------------

# -v side, n: what is expected. Prints what is wrong, and fails.
cat >"$work/check.awk" <<'AWK'
function wrong(what) { if (!bad) print what; bad = 1 }
function abs(v) { return v < 0 ? -v : v }
function morton(x, y,    bit, code) {
    for (bit = 1; bit < side; bit *= 2)
        code += bit * bit * (int(x / bit) % 2 + 2 * (int(y / bit) % 2))
    return code
}
# Each curve visits every cell once. Hilbert's: each cell is beside the one before, and the cells of
# a square of 2 x 2, 4 x 4, ... follow each other.
$1 == "cell" {
    if ($3 != count[$2] + 0) wrong($2 ": number " $3)
    count[$2]++
    if (($2, $5, $6) in visited || $5 < 0 || $5 >= side || $6 < 0 || $6 >= side)
        wrong($2 ": cell " $5 " " $6)
    visited[$2, $5, $6] = 1
    if ($2 == "rows" && $3 != $6 * side + $5) wrong("rows: " $0)
    if ($2 == "Morton" && $3 != morton($5, $6)) wrong("Morton: " $0)
    if ($2 == "Hilbert") {
        if ($3 > 0 && abs($5 - x) + abs($6 - y) != 1) wrong("Hilbert jumps to " $5 " " $6)
        for (edge = 2; edge < side; edge *= 2) {
            part = int($3 / edge ^ 2)
            square = int($5 / edge) " " int($6 / edge)
            if ((edge, part) in square_of && square_of[edge, part] != square)
                wrong("Hilbert: " $0 " in another square")
            square_of[edge, part] = square
        }
        x = $5; y = $6
    }
}
$1 == "particle" { px[$2] = $4; py[$2] = $5; for (k = 0; k < 4; k++) sum[$2, k] = $(7 + k); m++ }
END {
    if (count["rows"] != side * side || count["Morton"] != side * side ||
        count["Hilbert"] != side * side || m != n) wrong("cells or particles are missing")
    for (i = 0; i < n; i++) {
        expected = 0
        for (j = 0; j < n; j++)
            if (j != i && (px[i] - px[j]) ^ 2 + (py[i] - py[j]) ^ 2 <= 1 / side ^ 2) expected += j
        for (k = 0; k < 4; k++)
            if (sum[i, k] != expected) wrong("particle " i ", sum " k ": " sum[i, k] ", " expected)
        all += expected
    }
    if (!all && n > 100) wrong("no neighbours")
    exit bad
}
AWK
check() { awk -v side="$1" -v n="$2" -f "$work/check.awk" "${3:-$work/out.txt}"; }

lists() {
    local side n
    while read -r side n; do
        curves --cells "$side" -n "$n" --list
        report "$status" "--cells $side -n $n" "$(seen)"
        fault=$(check "$side" "$n")
        report $? "--cells $side -n $n: curves and sums" "$fault"
    done <<'SIZES'
2 1
4 40
16 400
32 10
SIZES
}

# spoiled NAME SCRIPT OF SED: is it seen in the list?
spoiled() {
    sed -E "$2" "$work/good.txt" >"$work/bad.txt"
    ! cmp -s "$work/good.txt" "$work/bad.txt" && ! check 8 150 "$work/bad.txt" >"$work/fault.txt"
    report $? "seen: $1" "$(cat "$work/fault.txt")"
}
checks_can_fail() {
    curves --cells 8 -n 150 --list
    cp "$work/out.txt" "$work/good.txt"
    check 8 150; report $? "a list without a mistake"
    spoiled "a cell twice" 's/^(cell rows 5 at) 5 0/\1 4 0/'
    spoiled "a cell missing" '/^cell Hilbert 63 /d'
    spoiled "two cells of Morton's curve exchanged" \
        's/^(cell Morton 1 at) 1 0/\1 0 1/; s/^(cell Morton 2 at) 0 1/\1 1 0/'
    spoiled "a jump of Hilbert's curve" \
        's/^(cell Hilbert 1 at) 0 1/\1 1 1/; s/^(cell Hilbert 2 at) 1 1/\1 0 1/'
    spoiled "a sum of one order" 's/^(particle 7 .*) [0-9]+$/\1 1/'
    # a snake: every step to a neighbour, but no Hilbert curve
    awk '$1 " " $2 == "cell Hilbert" { y = int($3 / 8); x = $3 % 8; if (y % 2) x = 7 - x
         $5 = x; $6 = y } { print }' "$work/good.txt" >"$work/bad.txt"
    ! check 8 150 "$work/bad.txt" >"$work/fault.txt"
    report $? "seen: rows forwards and back are no Hilbert curve"
}

# ---- the model of a cache ------------------------------------------------------------------------

# between NAME LOW HIGH
between() {
    awk -v a="$(figure "$1")" -v l="$2" -v h="$3" 'BEGIN { exit !(a != "" && a > l && a < h) }'
    report $? "$4: lines of $1 between $2 and $3" "$(figure "$1")"
}
# With 4 records in a line, 1/4 line per particle is the least: each is fetched once. With rows it
# is 3/4 where three rows of cells do not fit into 32 KB: 256 cells of 4 particles are 16 KB a row.
lines() {
    curves --cells 256
    between rows 0.73 0.77 "256 cells"
    between strips 0.73 0.77 "256 cells"
    between Morton 0.25 0.35 "256 cells"
    between Hilbert 0.25 0.30 "256 cells"
    [ "$(figure rows)" = "$(figure strips)" ]
    report $? "strips read the same lines as rows" "$(seen)"
    awk -v h="$(figure Hilbert)" -v m="$(figure Morton)" 'BEGIN { exit !(h < m) }'
    report $? "Hilbert below Morton" "$(seen)"
    curves --cells 32
    for order in rows Morton Hilbert; do between $order 0.2499 0.30 "32 cells: three rows fit"; done
    # 32 x 32 cells of one particle are 16 KB: each line is fetched once
    curves --cells 32 -n 1024
    for order in rows Morton Hilbert; do
        [ "$(figure $order)" = 0.2500 ]
        report $? "all fit: 1024 records are 256 lines: $order" "$(figure $order)"
    done
}

# ---- picture and command line --------------------------------------------------------------------

pictures() {
    make_png_reader || return
    curves --cells 64 -n 5000
    is_picture out.png 1248 +900 100
    cp "$work/out.png" "$work/one.png"
    curves --cells 64 -n 5000 --seed 2
    ! cmp -s "$work/one.png" "$work/out.png"; report $? "another seed, another picture"
}

command_line() {
    local line
    curves --help
    report "$status" "--help" "$(seen)"
    grep -q -- '--cells C' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        run $line
        [ "$status" -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-8 "$work/err.txt")" = 'curves: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
file
-n 0
-n 2.5
--rounds 0
--cells 1
--cells 12
--cells 8192
--cells
--out
LINES
    curves --cells 8 --out new/folder/out.png
    [ "$status" -eq 0 ] && [ -s "$work/new/folder/out.png" ]
    report $? "makes the folder of its picture" "$(seen)"
    curves --cells 8 --out /dev/null/out.png
    [ "$status" -eq 1 ] && grep -q '^curves: /dev/null' "$work/err.txt"
    report $? "refused: cannot draw there" "$(seen)"
}

lists; checks_can_fail; lines; pictures; command_line
sum_up
