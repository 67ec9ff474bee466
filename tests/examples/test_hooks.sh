#!/bin/bash
# Tests examples/hooks: concave bodies of spheres that rest, collide, and hang on each other.
#
#   tests/examples/test_hooks.sh [PROGRAM]      default: build/hooks
#
# Expected are conservation laws and the weight. What history does is seen without it, and what the
# convex hulls of two hooks would do is said by examples/common/shapes.h.
. "$(dirname "$0")/examples.sh" hooks "${1:-}"

seen() {
    echo "exit status $status; $(head -c 300 "$work/err.txt") $(tail -n 9 "$work/out.txt" |
        head -c 900)"
}
# between NAME LOW HIGH
between() {
    awk -v a="$(figure "$1")" -v low="$2" -v high="$3" \
        'BEGIN { exit !(a != "" && a >= low && a <= high) }'
}

run -n 24 --seconds 0.25 --out out.png
report $status "the default scenes" "$(seen)"
between rest_with 0 0.001; report $? "a body at rest on a slope stays" "$(seen)"
between rest_without 0.02 10; report $? "without history it creeps" "$(seen)"
between turned 0.2 3; report $? "two bodies meet" "$(seen)"
between energy -1e-3 1e-3; report $? "a collision without damping keeps energy" "$(seen)"
between momentum 0 1e-12 && between turning 0 1e-9
report $? "momentum and angular momentum" "$(seen)"
between sunk 0 0.2; report $? "a hook hangs on another" "$(seen)"
between held 0.999 1.001; report $? "by its weight" "$(seen)"
between deep 1 1; report $? "where their convex hulls would overlap" "$(seen)"
# 12 crosses of 5 spheres and 12 hooks of 8.
grep -q '^heap: 24 bodies of 156 spheres after 0.25 s: [1-9][0-9]* contacts' "$work/out.txt"
report $? "a heap" "$(seen)"
make_png_reader && is_picture out.png 900 450 500

# Friction below the slope's tangent of 0.364 holds nothing: 1/2 g (sin - mu cos) t^2 = 0.18 m.
run -n 1 --mu 0.2 --seconds 0.001 --out out.png
expect_near "a slope that is too steep, radii" "$(figure rest_with)" \
    "$(awk 'BEGIN { a = 20 * atan2(0, -1) / 180
                    print 0.5 * 9.81 * (sin(a) - 0.2 * cos(a)) * 0.25 / 0.003 }')" 0.02

run --help
grep -q -- '--mu M' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
for line in '-n 0' '--seconds nan' '--mu -1' 'more'; do
    # shellcheck disable=SC2086
    run $line
    [ $status -eq 2 ] && grep -q '^hooks: ' "$work/err.txt"
    report $? "refused: $line" "$(seen)"
done
run -n 1 --seconds 0.001 --out /dev/null/out.png
[ $status -eq 1 ] && grep -q '^hooks: /dev/null' "$work/err.txt"
report $? "a picture that cannot be written" "$(seen)"
sum_up
