#!/bin/bash
# Tests examples/coating: what rays deposit on tablets and spheres in a drum.
#
#   tests/examples/test_coating.sh [PROGRAM]      default: build/coating
#
# Mass is conserved; statistics are computed again from the masses of all particles; every search
# must deposit the same. The hits of grid and tree are compared with brute force by the program
# (--time), a ray and a shape with a walk along the ray in tests/unit/shapes/test_shapes.c.
. "$(dirname "$0")/examples.sh" coating "${1:-}"

coating() { run --out out.png --masses masses.txt "$@"; }
seen() { echo "exit status $status; $(head -c 300 "$work/err.txt") $(tail -n 8 "$work/out.txt" |
    head -c 1200)"; }
above() { awk -v a="$(figure "$1")" -v b="$2" 'BEGIN { exit !(a != "" && a > b) }'; }
summed() { awk '{ sum += $3 } END { printf "%.9g", sum }' "$work/masses.txt"; }
# timed NAME FIELD: of a line of --time
timed() { awk -v name="$1" -v field="$2" '$1 == "time:" && $2 == name { print $field }' \
    "$work/out.txt"; }

# ---- conservation --------------------------------------------------------------------------------

conservation() {
    local bursts small_run=(-n 60 --seconds 0.1)
    coating "${small_run[@]}"
    report $status "a short run" "$(seen)"
    cp "$work/masses.txt" "$work/first.txt"; cp "$work/out.png" "$work/bed.png"
    bursts=$(($(figure steps) / 50))
    [ "$(figure rays)" -eq $((500 * bursts)) ]; report $? "a burst every 50 steps" "$(seen)"
    above hits 1000 && ! above hits "$(figure rays)"; report $? "many rays hit, not all" "$(seen)"
    expect_near "mass on the particles: that of the rays that hit" "$(summed)" \
        "$(times "$(figure hits)" "$(figure mass)")" 1e-5
    expect_near "... as printed" "$(figure deposited)" "$(summed)" 1e-7
    expect_near "what is sprayed: 500 mg per second" \
        "$(figure sprayed)" "$(times "$(figure mass)" "$(figure rays)")" 1e-5
    awk -v a="$(figure sprayed)" 'BEGIN { exit !(a > 49 && a < 50.1) }'
    report $? "0.1 s at 500 mg per second" "$(figure sprayed)"
    read -r mean spread <<<"$(awk '{ n++; sum += $3; x[n] = $3 }
        END { for (k = 1; k <= n; k++) squares += (x[k] - sum / n) ^ 2
              printf "%.9g %.9g\n", sum / n, sqrt(squares / n) }' "$work/masses.txt")"
    expect_near "mean" "$(figure mean)" "$mean" 1e-7
    expect_near "spread" "$(figure spread)" "$spread" 1e-6
    [ "$(awk '$2 == "sphere"' "$work/masses.txt" | wc -l)" -eq 18 ] &&
        [ "$(awk '$2 == "tablet"' "$work/masses.txt" | wc -l)" -eq 42 ]
    report $? "30 percent are spheres" "$(cut -d' ' -f2 "$work/masses.txt" | sort | uniq -c)"
    # The bed turns over: the first line has the larger spread, in parts of the mean.
    awk '$2 == "s:" { gsub(/[(]/, ""); spread = $14; if (!first) first = spread }
         END { exit !(first > 0 && spread < first) }' "$work/out.txt"
    report $? "it becomes more even" "$(seen)"
    coating "${small_run[@]}" --seed 2
    ! cmp -s "$work/first.txt" "$work/masses.txt"; report $? "another seed, another coating" ""
    coating "${small_run[@]}" --rate 250
    expect_near "half the rate, half the mass" "$(times 2 "$(summed)")" \
        "$(awk '{ sum += $3 } END { printf "%.9g", sum }' "$work/first.txt")" 1e-6
}

# ---- searches ------------------------------------------------------------------------------------

searches() {
    local search shape
    coating -n 40 --seconds 0.03 --search brute
    report $status "by brute force" "$(seen)"
    cp "$work/masses.txt" "$work/brute.txt"
    for search in loose tight tree wide; do
        coating -n 40 --seconds 0.03 --search $search
        [ $status -eq 0 ] && cmp -s "$work/brute.txt" "$work/masses.txt"
        report $? "$search: the same masses" "$(seen)"
    done
    # Flat and thick tablets, wide cones, several nozzles; hits at the edge of the grid.
    for shape in "--spheres 1" "--radius 0.01 --band 0.004 --cap 0.01" "--cap 0.0001 --angle 60" \
        "--nozzles 5 --height 0.85 --angle 75" "--height -0.4 --angle 80"; do
        # shellcheck disable=SC2086
        coating -n 90 --seconds 0.002 --rays 4000 --every 10 --time $shape
        [ "$(grep -c '^time:' "$work/out.txt")" -eq 5 ] &&
            [ "$(awk '/^time:/ { sum += $NF } END { print sum }' "$work/out.txt")" = 0 ]
        report $? "$shape: all searches have the same hits" "$(seen)"
        above hits 100; report $? "$shape: rays hit" "$(seen)"
    done
    coating -n 500 --seconds 0.0002 --every 1 --rays 2000 --time
    [ "$(timed brute 5)" = 500.00 ]; report $? "brute force tests all" "$(seen)"
    awk -v tree="$(timed tree 5)" -v loose="$(timed loose 5)" -v tight="$(timed tight 5)" \
        'BEGIN { exit !(tree >= 0.5 && tree < loose && loose < tight) }'
    report $? "a tree tests fewer than a grid" "$(seen)"
    awk -v loose="$(timed loose 6)" -v tight="$(timed tight 6)" \
        'BEGIN { exit !(tight >= 1 && loose > 9 * tight) }'
    report $? "a tight grid looks at fewer cells" "$(seen)"
}

# ---- on a GPU ------------------------------------------------------------------------------------

gpu() {
    coating -n 40 --seconds 0.004 --every 10 --rays 200 --check --time
    report $status "all searches agree with serial ones" "$(seen)"
    [ "$(grep -c '^check:' "$work/out.txt")" -eq 4 ] &&
        [ "$(grep -c '^time:' "$work/out.txt")" -eq 3 ]
    report $? "four searches, three timed" "$(seen)"
    above hits 100; report $? "rays hit" "$(seen)"
    expect_near "mass on the particles: that of the rays that hit" "$(summed)" \
        "$(times "$(figure hits)" "$(figure mass)")" 1e-5
    cp "$work/masses.txt" "$work/tree.txt"
    coating -n 40 --seconds 0.004 --every 10 --rays 200 --search tight
    near "$(summed)" "$(awk '{ sum += $3 } END { print sum }' "$work/tree.txt")" 1e-3
    report $? "with a grid nearly the same mass" "$(seen)"
}

# ---- command line, picture -----------------------------------------------------------------------

command_line() {
    local line
    coating --help
    grep -q -- '--nozzles N' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        coating $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-9 "$work/err.txt")" = 'coating: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
spray
--search
--search heap
--angle 90
--rate nan
--cap 0.005
-n 0
--check
LINES
    run -n 20 --seconds 0.001 --out new/folder/out.png
    [ "$status" -eq 0 ] && [ -s "$work/new/folder/out.png" ]
    report $? "makes the folder of its picture" "$(seen)"
    run -n 20 --seconds 0.001 --out /dev/null/out.png
    [ $status -eq 1 ] && grep -q '^coating: /dev/null' "$work/err.txt"
    report $? "refused: cannot draw there" "$(seen)"
}

# In the left half the bed: bright and dark particles. On the right the curves, in their color.
curves='
    int line = 0, coat = 0;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            const unsigned char *a = rgb + 3 * (y * w + x);
            if (x > w / 2) line += a[0] > 170 && a[1] < 90 && a[2] < 70;
            else coat += a[0] > a[2] + 40;
        }
    printf(" %d %d", line, coat);'

picture() {
    local line coat
    make_png_reader "$curves" || return
    is_picture bed.png 1200 600 300
    read -r line coat <<<"$more"
    [ "$line" -gt 800 ] && [ "$coat" -gt 3000 ]
    report $? "two curves, and coated particles" "pixels: $more"
}

if [ $cuda = yes ]; then gpu; else conservation; searches; command_line; picture; fi
sum_up
