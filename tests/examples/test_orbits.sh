#!/bin/bash
# Tests examples/orbits: orders of leapfrog and RK4 against exact orbits, the tolerance of
# adaptive steps, forces from outside.
#
#   tests/examples/test_orbits.sh [PROGRAM]      default: build/orbits
#
# The orbits come from Kepler's equation, a parabola, an ellipse around the middle of a halo; the
# forces from nbody.h and from formulas. Errors of 1e-9 and less mean that both are right.
. "$(dirname "$0")/examples.sh" orbits "${1:-}"

seen() { echo "exit status $status; $(head -c 300 "$work/err.txt" | head -n 3)"
    head -c 1800 "$work/out.txt"; }
# value METHOD NUMBER COLUMN: of the table: 3 evaluations, 4 rejected, 5 error, 6 order
value() { awk -v m="$1" -v n="$2" -v c="$3" '$1 == m && $2 == n { print $c }' "$work/out.txt"; }
between() { awk -v a="$1" -v b="$2" -v c="$3" 'BEGIN { exit !(a != "" && a >= b && a <= c) }'; }
# bar METHOD NUMBER COLUMN LEAST MOST TEXT
bar() {
    between "$(value "$1" "$2" "$3")" "$4" "$5"
    report $? "$6 $1 $2: $4 .. $5" "$(value "$1" "$2" "$3"); $(seen)"
}

# orders CASE ARGUMENTS: the errors fall as they must, and are small at the end
orders() {
    local name=$1
    run --case "$@"
    report $status "$name" "$(seen)"
    for steps in 400 800 1600 3200; do bar leapfrog $steps 6 1.95 2.05 "$name: order of"; done
    for steps in 400 800 1600; do bar RK4 $steps 6 3.8 4.5 "$name: order of"; done
    bar RK4 1600 5 1e-13 2e-8 "$name: error of"
    bar leapfrog 3200 5 1e-8 1e-3 "$name: error of"
}
# keeps CASE LEAST MOST: the error at the end is so many times the tolerance of a step
keeps() {
    local tolerance
    for tolerance in 0.0001 1e-06 1e-09; do
        bar adaptive $tolerance 5 "$(awk "BEGIN { print $2 * $tolerance }")" \
            "$(awk "BEGIN { print $3 * $tolerance }")" "$1: error of"
    done
    bar adaptive 0.0001 4 1 1000 "$1: some steps are tried again,"
}

orders pair; keeps pair 10 2000
orders field --eccentricity 0.3; keeps field 1 2000
orders centre; keeps centre 10 5000
orders halo; keeps halo 0.02 20
orders halo -n 40 --seed 3 --periods 0.5

# On a long ellipse the fast half needs short steps, the slow half does not.
run --case centre --eccentricity 0.9
report $status "a long ellipse" "$(seen)"
bar RK4 3200 5 1e-4 1e-3 "a long ellipse:"
bar adaptive 1e-07 5 1e-4 1e-3 "a long ellipse:"
[ $((6 * $(value adaptive 1e-07 3))) -lt "$(value RK4 3200 3)" ]
report $? "a long ellipse: adaptive steps need less than a sixth of the forces" "$(seen)"

# Block time steps: a smaller error of the energy than leapfrog with more forces; 64 steps are few.
run --case cluster -n 60 --periods 0.5
report $status "a binary in a cluster" "$(seen)"
bar blocks 0.01 4 0 2e-3 "a binary in a cluster: error of"
bar leapfrog 512 4 2e-2 1e3 "a binary in a cluster: error of"
[ "$(value blocks 0.01 3)" -lt "$(value leapfrog 512 3)" ]
report $? "a binary in a cluster: blocks take fewer forces than leapfrog" "$(seen)"

run --help
grep -q -- '--case NAME' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
while read -r line; do
    # shellcheck disable=SC2086
    run $line
    [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] && grep -q '^orbits: ' "$work/err.txt"
    report $? "refused: $line" "$(seen)"
done <<'LINES'
--no-such-option
--case moon
--eccentricity 1
-n 1
--periods 0
LINES
sum_up
