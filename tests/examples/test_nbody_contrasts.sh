#!/bin/bash
# Tests examples/nbody_contrasts: the errors of Barnes and Hut's tree, meshes and nodes, beside
# nbody.h, against the program's own direct sums.
#
#   tests/examples/test_nbody_contrasts.sh [PROGRAM]      default: build/nbody_contrasts
#
# Bars: a monopole tree has errors that fall with the square of the opening angle; P3M's fall with
# the spacings of the mesh within its reach; a mesh alone is no help for near bodies, and right for
# far ones. The oracle is checked by direct summation in nbody.h, which shares no code with it.
. "$(dirname "$0")/examples.sh" nbody_contrasts "${1:-}"

contrasts() { run --rounds 1 --out out.png "$@"; }
seen() { echo "exit status $status; $(head -c 300 "$work/err.txt" | head -n 3)"
    head -c 2500 "$work/out.txt"; }

# column METHOD NUMBER COLUMN: of the table, from the right: 1 momentum, 2 terms, 3 worst, 4 mean
column() {
    awk -v m="$1" -v n="$2" -v c="$3" '{ name = $1; at = 2
        if ($1 == "force" || $1 == "nodes") { name = $1 " " $2; at = 3 }
        if (name == m && $at == n) print $(NF + 1 - c) }' "$work/out.txt"
}
between() { awk -v a="$1" -v b="$2" -v c="$3" 'BEGIN { exit !(a != "" && a >= b && a <= c) }'; }
# mean METHOD NUMBER LEAST MOST: the mean error is in these bars
mean() {
    between "$(column "$1" "$2" 4)" "$3" "$4"
    report $? "$1 $2: mean error" "$(column "$1" "$2" 4), not $3 .. $4; $(seen)"
}
# falls METHOD NUMBER OTHER LEAST MOST: error of the first over that of the second
falls() {
    local ratio
    ratio=$(awk -v a="$(column "$1" "$2" 4)" -v b="$(column "$1" "$3" 4)" 'BEGIN { print a / b }')
    between "$ratio" "$4" "$5"; report $? "$1: from $2 to $3 the error falls" "$ratio; $(seen)"
}
keeps_momentum() {
    between "$(column "$1" "$2" 1)" 0 1e-13
    report $? "$1 $2: momentum" "$(column "$1" "$2" 1); $(seen)"
}

# Measured with seeds 1 .. 3; the bars are 1.5 times beyond their extremes and more.
even() {
    contrasts --mesh 512
    report $status "20,000 bodies" "$(seen)"
    cp "$work/out.png" "$work/even.png"
    mean direct 0 0 1e-13
    mean Barnes-Hut 1 3e-2 1.2e-1
    mean Barnes-Hut 0.5 5e-3 2e-2
    mean Barnes-Hut 0.25 1e-3 4e-3
    falls Barnes-Hut 1 0.5 4 9
    falls Barnes-Hut 0.5 0.25 3.5 8
    mean mesh 512 0.2 0.6
    falls mesh 64 512 1.5 5
    mean P3M 4 1e-2 6e-2
    mean P3M 12 2e-4 1.2e-3
    falls P3M 6 12 6 25
    mean "nodes alone" 2 2e-3 9e-3; mean "nodes alone" 8 1.5e-4 9e-4
    falls "nodes alone" 2 8 5 25
    mean "force nodes" 1 2e-4 2e-3
    mean "force nodes" 4 1e-4 6e-4
    mean "force nodes" 8 3e-8 5e-7
    keeps_momentum mesh 512; keeps_momentum P3M 12; keeps_momentum direct 0
    # At the errors that both reach, ours needs fewer terms; nodes alone need most.
    between "$(column "force nodes" 1 2)" 0 "$(column "nodes alone" 8 2)"
    report $? "order 1: fewer terms than nodes alone" "$(seen)"
    between "$(column "force nodes" 4 2)" 0 "$(column Barnes-Hut 0.18 2)"
    report $? "order 4: fewer terms than the tree with a larger error" "$(seen)"
}

clumps() {
    contrasts --clumps --mesh 512 --seed 3
    report $status "clumps" "$(seen)"
    mean direct 0 0 1e-13
    mean Barnes-Hut 0.25 1e-4 4e-3
    falls Barnes-Hut 1 0.25 8 80
    mean P3M 12 1e-6 3e-3
    mean "nodes alone" 8 1e-6 3e-3
    mean "force nodes" 8 1e-9 1e-6
    keeps_momentum P3M 12
}

# Two bodies, far apart for each mesh: every method is nearly right.
two() {
    contrasts -n 2 --mesh 512
    report $status "two bodies" "$(seen)"
    mean direct 0 0 1e-13
    mean Barnes-Hut 1 0 1e-13
    mean mesh 512 0 3e-3; falls mesh 128 512 6 30
    mean P3M 12 0 1e-3
    mean "nodes alone" 8 0 1e-1
}

command_line() {
    local line
    contrasts --help
    grep -q -- '--mesh M' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        contrasts $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            grep -q '^nbody_contrasts: ' "$work/err.txt"
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
-n 1
--mesh 32
--rounds 0
--seed
LINES
    contrasts -n 10 --mesh 64 --out /dev/null/where.png
    [ $status -eq 1 ] && grep -q 'where\.png\|/dev/null' "$work/err.txt"
    report $? "refused: cannot draw there" "$(seen)"
}

colors='
    int tree = 0, ours = 0;
    for (k = 0; k < w * h; k++) {
        const unsigned char *a = rgb + 3 * k;
        tree += a[0] > 200 && a[1] < 120 && a[2] < 60;
        ours += a[0] < 60 && a[1] < 120 && a[2] > 180;
    }
    printf(" %d %d", tree, ours);'

pictures() {
    local tree ours
    make_png_reader "$colors" || return
    is_picture even.png 900 600 30
    read -r tree ours <<<"$more"
    [ "$tree" -gt 500 ] && [ "$ours" -gt 300 ]; report $? "curves are drawn" "pixels: $more"
}

even; clumps; two; command_line; pictures
sum_up
