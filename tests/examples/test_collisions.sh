#!/bin/bash
# Tests examples/collisions: multiparticle collision dynamics.
#
#   tests/examples/test_collisions.sh [PROGRAM]      default: build/collisions
#
# What is expected: the viscosity of Kikuchi et al. (2003), momentum and energy to rounding, numbers
# of particles per cell by Poisson's law, and the same sums in all three ways.
. "$(dirname "$0")/examples.sh" collisions "${1:-}"

collisions() { run --out out.png "$@"; }
seen() { echo "exit status $status; $(head -c 300 "$work/err.txt") $(tail -n 2 "$work/out.txt" |
    head -c 900)"; }
below() { awk -v a="$(figure "$1")" -v b="$2" 'BEGIN { exit !(a != "" && (a < 0 ? -a : a) < b) }'; }

# kept MOMENTUM ENERGY: per particle and relative
kept() { below momentum "$1" && below energy "$2"; report $? "momentum and energy" "$(seen)"; }

# viscous NAME BAR: the decay of the flow, against theory. A flow of speed U that was set exactly is
# known to sqrt(2 / n) / U later, which is 3 % of what is left of it with the default's numbers.
viscous() { within "$(figure ratio)" 1 "$2"; report $? "$1: viscosity" "$(seen)"; }

# Poisson's law has variance = mean; that of so many cells is known to sqrt(2 / cells).
poisson() { near "$(figure variance)" "$(figure mean)" "$1"
    report $? "particles per cell" "$(seen)"; }

# theory DIM M DT DEGREES: the two parts of the viscosity, typed again.
theory() {
    awk -v d="$1" -v m="$2" -v t="$3" -v a="$4" 'BEGIN {
        a *= 3.14159265358979 / 180; e = m - 1 + exp(-m)
        if (d == 2) { s = m / (e * (1 - cos(2 * a))); w = 12 }
        else { s = 5 * m / (e * (4 - 2 * cos(a) - 2 * cos(2 * a))); w = 18 }
        printf "%.5f", t * (s - 0.5) + e * (1 - cos(a)) / (w * m * t) }'
}

# noise M DT DEGREES K: what fluctuations add in 2D, typed again.
noise() {
    awk -v m="$1" -v k="$4" -v nu="$(theory 2 "$1" "$2" "$3")" 'BEGIN {
        printf "%.5f", sqrt(nu * nu - log(k) / (8 * 3.14159265358979 * m)) - nu }'
}

# ---- on one core ---------------------------------------------------------------------------------

flow_in_2d() {
    collisions
    report $status "vortices in 2D" "$(seen)"
    cp "$work/out.png" "$work/two.png"; cp "$work/out.txt" "$work/two.txt"
    viscous "2D" 0.08; kept 1e-14 1e-11; poisson 0.04
    expect "the theory in 2D" "$(figure theory)" "$(theory 2 10 0.1 130)" 1e-5
    expect "every particle is in one cell" "$(figure mean)" 10 0
    # Where particles fly far between collisions, streaming carries the momentum, too.
    collisions --dt 1
    viscous "2D, long flights" 0.08; kept 1e-14 1e-11
    expect "the theory of long flights" "$(figure theory)" "$(theory 2 10 1 130)" 1e-5
    # A wave of shear: of the same fluid, half as fast.
    collisions --size 64 --waves 1 --shear
    viscous "2D, shear" 0.15; kept 1e-14 1e-11
    expect "what fluctuations add" "$(figure noise)" "$(noise 10 0.1 130 0.0981748)" 1e-5
    collisions --size 64 --waves 1 --shear --dt 1 --angle 90 --until 0.01
    expect "what they add to a thin fluid" "$(figure noise)" "$(noise 10 1 90 0.0981748)" 1e-5
    # The checks can fail: cells that stay where they are make another fluid.
    collisions --size 64 --waves 1 --mean 20 --no-shift
    kept 1e-14 1e-11
    ! within "$(figure ratio)" 1 0.25; report $? "cells must be shifted" "$(seen)"
}

# direct and header add the particles of a cell in one order, lists in the other.
same_fluid() {
    local way
    for way in direct header lists; do
        collisions --dim $1 --size 16 --waves 1 --until 0.2 --sums $way
        report $status "$1D, $way" "$(seen)"
        kept 1e-14 1e-11
        grep figures: "$work/out.txt" >"$work/$way.txt"
    done
    cmp -s "$work/direct.txt" "$work/header.txt"
    report $? "$1D: direct and header, the same bits" "$(cat "$work"/{direct,header}.txt)"
    ! cmp -s "$work/lists.txt" "$work/header.txt"
    report $? "$1D: lists, other bits" "$(cat "$work"/{lists,header}.txt)"
}

flow_in_3d() {
    collisions --dim 3 --sums lists --check --time
    report $status "vortices in 3D" "$(seen)"
    viscous "3D" 0.06; kept 1e-14 1e-11; poisson 0.03
    expect "the theory in 3D" "$(figure theory)" "$(theory 3 10 0.1 130)" 1e-5
    is "3D" direct_is_header 1
    expect "lists: the same sums" "$(value lists_differ_by)" 0 1e-12
    times_are_printed
}

times_are_printed() {
    [ "$(grep -c '^sums [a-z]* *[a-z ]*: build [0-9.]* ms, sums [0-9.]* ms: ' \
        "$work/out.txt")" -eq 6 ] && grep -q '^time: [0-9.]* ms a step' "$work/out.txt"
    report $? "times are printed" "$(cat "$work/out.txt")"
}

# ---- on a GPU ------------------------------------------------------------------------------------

gpu() {
    local way
    for way in direct lists header; do
        collisions --size 12 --waves 1 --mean 6 --until 0.1 --sums $way --order 3 --check
        report $status "$way agrees with serial steps" "$(seen)"
        is "2D, $way" reference_agrees 1; kept 1e-6 1e-5
        collisions --dim 3 --size 7 --mean 6 --until 0.3 --sums $way --check
        report $status "$way agrees with serial steps in 3D" "$(seen)"
        is "3D, $way" reference_agrees 1; kept 1e-6 1e-5
    done
    collisions --size 8 --waves 1 --until 0.1 --time
    times_are_printed
    [ "$small" ] && return
    for way in direct lists header; do
        collisions --size 256 --waves 4 --sums $way
        viscous "2D, $way" 0.08; kept 1e-6 2e-4; poisson 0.02
        collisions --dim 3 --size 64 --waves 2 --sums $way
        viscous "3D, $way" 0.06; kept 1e-6 2e-4; poisson 0.02
    done
}

# ---- command line, picture -----------------------------------------------------------------------

command_line() {
    local line
    collisions --help
    grep -q -- '--angle A' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        collisions $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-12 "$work/err.txt")" = 'collisions: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
--sums
--sums trees
--dim 4
--size 3
--mean 1
--dt nan
--angle 180
--dim 3 --size 4096
LINES
    collisions --size 8 --until 0
    [ $status -eq 0 ] && [ "$(figure flow)" = 0.30000 ] && [ "$(figure steps)" = 0 ]
    report $? "no step" "$(seen)"
    collisions --size 8 --until 0 --out /dev/null/where.png
    [ $status -eq 1 ] && grep -q 'where\.png\|/dev/null' "$work/err.txt"
    report $? "refused: cannot draw there" "$(seen)"
}

# Vortices that turn one way or the other, at the start and at the end; discs and the line.
colors='
    int count[2][2] = {{0, 0}, {0, 0}}, discs = 0, line = 0;
    for (int y = 30; y < h - 30; y++)
        for (int x = 0; x < w; x++) {
            const unsigned char *a = rgb + 3 * (y * w + x);
            int const panel = 3 * x / w;
            if (panel < 2 && a[0] > a[2] + 60) count[panel][0]++;
            if (panel < 2 && a[2] > a[0] + 60) count[panel][1]++;
            if (panel == 2) discs += a[0] > 190 && a[1] < 90, line += a[0] < 60 && a[2] > 160;
        }
    printf(" %d %d %d %d %d %d", count[0][0], count[0][1], count[1][0], count[1][1], discs, line);'

pictures() {
    local red blue red2 blue2 discs line
    make_png_reader "$colors" || return
    is_picture two.png 1200 400 100
    read -r red blue red2 blue2 discs line <<<"$more"
    [ "$red" -gt 10000 ] && [ "$blue" -gt 10000 ] &&
        [ $((10 * (red2 + blue2))) -lt $((7 * (red + blue))) ] &&
        [ "$discs" -gt 200 ] && [ "$line" -gt 400 ]
    report $? "vortices and their decay" "pixels: $more"
}

if [ $cuda = yes ]; then
    gpu
else
    flow_in_2d; flow_in_3d; same_fluid 2; same_fluid 3; command_line; pictures
fi
sum_up
