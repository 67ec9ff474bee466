#!/bin/bash
# Tests examples/fluidised_bed: where the gas carries the grains, and bubbles that rise.
#
#   tests/examples/test_fluidised_bed.sh [PROGRAM]      default: build/fluidised_bed
#
# Expected velocities are worked out in awk below, from the published formulas. A bed that is
# carried bears its whole weight on the gas; in one at rest the pressure is Ergun's.
. "$(dirname "$0")/examples.sh" fluidised_bed "${1:-}"

seen() {
    echo "exit status $status; $(head -c 300 "$work/err.txt") $(tail -n 9 "$work/out.txt" |
        head -c 900)"
}
# between NAME LOW HIGH
between() {
    awk -v a="$(figure "$1")" -v low="$2" -v high="$3" \
        'BEGIN { exit !(a != "" && a >= low && a <= high) }'
}

# glass POROSITY: Wen and Yu's velocity, and Ergun's at that porosity; of beads of 1 mm in air
glass() {
    awk -v e="$1" 'BEGIN {
        d = 0.001; rho = 1.2; mu = 1.8e-5; weight = (2500 - rho) * 9.81
        ar = d ^ 3 * rho * weight / mu ^ 2
        low = 0; high = 5
        for (k = 0; k < 60; k++) {
            u = (low + high) / 2
            drag = 150 * (1 - e) * mu * u / (e ^ 3 * d ^ 2) + 1.75 * rho * u ^ 2 / (e ^ 3 * d)
            if (drag > weight) high = u; else low = u
        }
        printf "%.5f %.5f\n", (sqrt(33.7 ^ 2 + 0.0408 * ar) - 33.7) * mu / (rho * d), u }'
}

# ergun_pressure POROSITY PART VELOCITY: at that part of the velocity, in weights
ergun_pressure() {
    awk -v e="$1" -v part="$2" -v whole="$3" 'BEGIN {
        d = 0.001; u = part * whole
        drag = 150 * (1 - e) * 1.8e-5 * u / (e ^ 3 * d ^ 2) + 1.75 * 1.2 * u ^ 2 / (e ^ 3 * d)
        print drag / ((2500 - 1.2) * 9.81) }'
}

# The velocity at which the bed is carried, and what it is like above and below.
curve() {
    local wen_yu ergun
    run --curve --wide 14 --deep 12 --high 10 --seconds 0.02 --out curve.png
    report $status "the curve" "$(seen)"
    read -r wen_yu ergun <<<"$(glass "$(figure porosity)")"
    expect_near "Wen and Yu's velocity" "$(figure wen_yu)" "$wen_yu" 0.001
    expect_near "the measured velocity beside Ergun's" "$(figure onset)" "$ergun" 0.1
    expect_near "the measured velocity beside Wen and Yu's" "$(figure onset)" "$wen_yu" 0.34
    between porosity 0.38 0.46; report $? "grains at rest are packed" "$(seen)"
    between drop_fast 0.85 1.15; report $? "the gas carries the weight" "$(seen)"
    between speed_slow 0 0.001; report $? "at rest below" "$(seen)"
    between speed_fast 0.003 1; report $? "in motion above" "$(seen)"
    awk -v fast="$(figure height_fast)" -v slow="$(figure height_slow)" \
        'BEGIN { exit !(fast > 1.08 * slow && slow > 0.007) }'
    report $? "expanded above" "$(seen)"
    # At the lowest velocity the pressure, in weights, is that of Ergun's formula.
    expect_near "the pressure at rest beside Ergun's" "$(awk '$2 == "0.150" { print $3 }' \
        "$work/out.txt")" "$(ergun_pressure "$(figure porosity)" 0.15 "$wen_yu")" 0.1
    is_picture curve.png 600 400 3
}

bubbles() {
    run --wide 30 --deep 4 --high 20 --seconds 0.3 --out bed.png
    report $status "bubbles" "$(seen)"
    between bubbles 0.02 0.4; report $? "there are bubbles" "$(seen)"
    between rise 0.04 0.6; report $? "they rise" "$(seen)"
    between drop 0.85 1.15; report $? "the gas carries the weight on average" "$(seen)"
    is_picture bed.png 940 +380 1000
    run --wide 24 --deep 4 --high 12 --speed 0.5 --seconds 0.05 --out rest.png
    between bubbles 0 0.001 && between rise 0 0 && between drop 0.05 0.6
    report $? "none at half of the velocity" "$(seen)"
}

command_line() {
    local line
    run --help
    grep -q -- '--curve' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        run $line
        [ $status -eq 2 ] && [ "$(cut -c1-15 "$work/err.txt")" = 'fluidised_bed: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--wide 2
--speed -1
--seconds nan
--deep 1000 --wide 1000 --high 1000
--curve now
LINES
    run --wide 6 --deep 3 --high 6 --speed 0.1 --curve --seconds 0.001
    [ $status -eq 0 ] || [ $status -eq 1 ]; report $? "the smallest bed" "$(seen)"
    run --wide 6 --deep 3 --high 6 --seconds 0.01 --out /dev/null/out.png
    [ $status -eq 1 ] && grep -q '^fluidised_bed: /dev/null' "$work/err.txt"
    report $? "a picture that cannot be written" "$(seen)"
}

make_png_reader || { sum_up; exit 1; }
curve; bubbles; command_line
sum_up
