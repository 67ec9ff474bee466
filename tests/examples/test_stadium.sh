#!/bin/bash
# Tests examples/stadium: five ways find the same pairs in every stadium, and what is refused is
# said.
#
#   tests/examples/test_stadium.sh [PROGRAM]      default: build/stadium
#
# The program itself compares the pairs of the grids with those of the tree, and ends with 1 where
# they differ.
. "$(dirname "$0")/examples.sh" stadium "${1:-}"

seen() {
    echo "exit status $status; $(head -c 300 "$work/err.txt") $(head -c 1500 "$work/out.txt")"
}
# value TIMES WAY COLUMN: 3 cells, 4 megabytes, 7 pairs
value() { sed 's/as many/as_many/' "$work/out.txt" |
    awk -v t="$1" -v w="$2" -v c="$3" '$1 == t && $2 == w { print $c }'; }

run -n 2000 --out out.png
report $status "2,000 particles" "$(seen)"
grep -q '^ *1000  cells .*refused: too many cells' "$work/out.txt"
report $? "cells of the radius are refused in the largest stadium" "$(seen)"
for times in 1 10 100 1000; do
    [ "$(value $times hashed 7)" -gt 10000 ] &&
        [ "$(value $times hashed 7)" = "$(value $times tree 7)" ] &&
        [ "$(value $times hashed 7)" = "$(value $times fit 7)" ]
    report $? "as many pairs at $times times" "$(seen)"
done
[ "$(value 1000 hashed 4)" = "$(value 1 hashed 4)" ]
report $? "hashed cells take as much memory in every stadium" "$(seen)"
[ "$(head -c 8 "$work/out.png" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ]
report $? "the picture is a PNG" "$(ls -l "$work")"

run -n 300 --tests 0 --out out.png
[ $status -eq 0 ] && [ "$(grep -c 'not run: about' "$work/out.txt")" -eq 4 ]
report $? "--tests 0 leaves out the grid with as many cells" "$(seen)"
run -n 300 --seed 1 --out out.png; first=$(grep '^figures' "$work/out.txt")
run -n 300 --seed 2 --out out.png
[ -n "$first" ] && [ "$first" != "$(grep '^figures' "$work/out.txt")" ]
report $? "--seed: other particles" "$(seen)"
run --help
grep -q -- '--tests T' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
for line in '-n 5' '--seed -1' '--tests x' 'more'; do
    # shellcheck disable=SC2086
    run $line
    [ $status -eq 2 ] && grep -q '^stadium: ' "$work/err.txt"
    report $? "refused: $line" "$(seen)"
done
run -n 300 --out /dev/null/out.png
[ $status -eq 1 ] && grep -q '^stadium: /dev/null' "$work/err.txt"
report $? "a picture that cannot be written" "$(seen)"
sum_up
