#!/bin/bash
# Tests examples/tablets: a tablet that leans at a wall, tablets in free flight, a drum.
#
#   tests/examples/test_tablets.sh [PROGRAM]      default: build/tablets
#
# What is expected are laws: the forces of statics, momentum, energy. That the checks can fail is
# seen without history and with too little friction.
. "$(dirname "$0")/examples.sh" tablets "${1:-}"

tablets() { run --out out.png "$@"; }
seen() { echo "exit status $status; $(head -c 300 "$work/err.txt") $(tail -n 6 "$work/out.txt" |
    head -c 900)"; }
below() { awk -v a="$(figure "$1")" -v b="$2" 'BEGIN { exit !(a != "" && (a < 0 ? -a : a) < b) }'; }
above() { awk -v a="$(figure "$1")" -v b="$2" 'BEGIN { exit !(a != "" && a > b) }'; }

# ---- lean: figure 6.3 ----------------------------------------------------------------------------

# A ladder: normal forces and friction of floor and wall hold each other and the weight. (Both
# frictions act against sliding; how they share the load, statics leave open.)
statics() {
    awk -v t="$1" '
        function far(a, b) { return (a - b) ^ 2 > t ^ 2 }
        $1 == "floor:" { n = $3; f = $5 }
        $1 == "wall:" { w = $3; g = $5 }
        $1 == "rest:" { force = $3; torque = $5 }
        END { exit !(w > 0 && !far(n + g, 1) && !far(w + f, 0) && f * f < (0.75 * n) ^ 2 &&
            g * g < (0.75 * w) ^ 2 && force < t && torque < t) }' "$work/out.txt"
}

lean() {
    tablets
    report $status "the default run" "$(seen)"
    cp "$work/out.txt" "$work/lean.txt"; cp "$work/out.png" "$work/lean.png"
    grep -q '^with history *5 s' "$work/out.txt"; report $? "5 s with history" "$(seen)"
    below with 0.01; report $? "with history it stays" "$(seen)"
    above without 0.4; report $? "without it slips" "$(seen)"
    statics 1e-5; report $? "the forces are those of statics" "$(seen)"
    sed 's/^wall: normal 0.1/wall: normal 0.2/' "$work/lean.txt" >"$work/out.txt"
    ! statics 1e-5; report $? "another force is seen" "$(seen)"
    tablets --mu 0.1 --seconds 1
    above with 0.4; report $? "with friction 0.1 it slips, history or not" "$(seen)"
    tablets --radius 0.01 --band 0.004 --cap 0.001 --rounding 0.001 --lean 40 --seconds 2
    below with 0.01 && above without 0.4; report $? "other sizes, another angle" "$(seen)"
}

# ---- cloud: conservation -------------------------------------------------------------------------

cloud() {
    tablets --scene cloud --seconds 0.1 -n 100
    report $status "the cloud" "$(seen)"
    above contacts 3; report $? "tablets meet" "$(seen)"
    below energy 1e-3; report $? "energy is kept" "$(seen)"
    below momentum 1e-12 && below turning 1e-11; report $? "momentum is kept" "$(seen)"
    # Springs hold a part of it while tablets touch: no line is far off.
    awk '$2 == "s:" { if (!first) first = $4; if (($4 / first - 1) ^ 2 > 1e-6) wrong = 1 }
         END { exit !(first > 0 && !wrong) }' "$work/out.txt"
    report $? "energy is kept all the time" "$(seen)"
    tablets --scene cloud --seconds 0.1 -n 60 --spheres 0.5
    above contacts 3; report $? "tablets and spheres meet" "$(seen)"
    below energy 1e-3 && below momentum 1e-12 && below turning 1e-11
    report $? "with spheres energy and momentum are kept" "$(seen)"
}

# ---- drum ----------------------------------------------------------------------------------------

drum() {
    tablets --scene drum --seconds 0.06 -n 60 --forms
    report $status "the drum" "$(seen)"
    cp "$work/out.png" "$work/drum.png"; grep ' contacts$' "$work/out.txt" >"$work/planes.txt"
    below outside 0.1; report $? "no tablet leaves it" "$(seen)"
    above contacts 10; report $? "tablets touch" "$(seen)"
    # The forms add the same forces.
    [ "$(grep -c '^form:' "$work/out.txt")" -eq 5 ] &&
        awk '/^form:/ && $NF > 1e-9 { wrong = 1 } END { exit wrong }' "$work/out.txt"
    report $? "all forms give the same forces" "$(grep '^form:' "$work/out.txt")"
    [ "$(awk '$1 == "form:" { print $2 }' "$work/out.txt" | sort -u | wc -l)" -eq 5 ]
    report $? "five forms are timed" "$(seen)"
    tablets --scene drum --packed --seconds 0.02 -n 100
    report $status "the packed drum" "$(seen)"
    below outside 0.1; report $? "no tablet leaves it, packed" "$(seen)"
    above contacts 100; report $? "packed, tablets touch at once" "$(seen)"
    # The order in memory decides nothing.
    tablets --scene drum --packed --seconds 0.001 -n 100 --save order.tab
    grep ' contacts$' "$work/out.txt" >"$work/order.txt"; cp "$work/out.png" "$work/order.png"
    tablets --scene drum --packed --seconds 0.001 -n 100 --shuffle --save shuffled.tab
    [ -s "$work/order.txt" ] && grep ' contacts$' "$work/out.txt" | cmp -s - "$work/order.txt"
    report $? "in random order the same happens" "$(seen)"
    cmp -s "$work/out.png" "$work/order.png"; report $? "and is drawn" "$(seen)"
    ! cmp -s "$work/shuffled.tab" "$work/order.tab"; report $? "in another order" "$(seen)"
}

# ---- drum of triangles ---------------------------------------------------------------------------

# Lines of both drums agree in every digit: many triangles push as one plane does.
mesh() {
    local pieces
    for pieces in 1 5; do
        tablets --scene drum --seconds 0.06 -n 60 --mesh $pieces
        report $status "the drum of triangles, $pieces" "$(seen)"
        [ -s "$work/planes.txt" ] && grep ' contacts$' "$work/out.txt" | cmp -s - "$work/planes.txt"
        report $? "the same as in the drum of planes, $pieces" "$(seen)"
    done
    cp "$work/out.png" "$work/mesh.png"
    tablets --scene drum --seconds 0.08 -n 60 --mesh 2 --lifters 0.01 --rpm 90
    report $status "lifters" "$(seen)"
    below outside 0.1; report $? "no tablet leaves it, lifters" "$(seen)"
    above contacts 10; report $? "tablets touch, lifters" "$(seen)"
    cp "$work/out.png" "$work/lifters.png"
}

# ---- sorted, saved, loaded, copied ---------------------------------------------------------------

# same NAME FILE FILE: bytes of two states.
same() { cmp -s "$work/$2" "$work/$3"; report $? "$1" "$(seen)"; }

saved() {
    local walls
    for walls in '' '--mesh 3'; do
        # shellcheck disable=SC2086
        tablets --scene drum $walls --packed --seconds 0.008 -n 60 --sort-every 7
        report $status "sorted every 7 steps $walls" "$(seen)"
        grep ' contacts$' "$work/out.txt" >"$work/sorted.txt"
        # shellcheck disable=SC2086
        tablets --scene drum $walls --packed --seconds 0.008 -n 60
        [ -s "$work/sorted.txt" ] && grep ' contacts$' "$work/out.txt" | cmp -s - "$work/sorted.txt"
        report $? "as without sorting $walls" "$(seen)"
        # shellcheck disable=SC2086
        tablets --scene drum $walls --packed --seconds 0.004 -n 60 --sort-every 7 --save half.tab
        # shellcheck disable=SC2086
        tablets --scene drum $walls --packed --seconds 0.004 -n 60 --sort-every 7 --load half.tab \
            --save parts.tab
        # shellcheck disable=SC2086
        tablets --scene drum $walls --packed --seconds 0.00802 -n 60 --sort-every 7 --save whole.tab
        report $status "saved $walls" "$(seen)"
        same "a run in two parts has the same bits $walls" parts.tab whole.tab
    done
    tablets --scene drum --mesh 3 --packed --seconds 0.001 -n 60 --load half.tab --rounding 0.0004
    [ $status -eq 1 ] && grep -q 'another set-up: rounding' "$work/err.txt"
    report $? "refused: another set-up" "$(seen)"
    head -c 9000 "$work/half.tab" >"$work/short.tab"
    tablets --scene drum --mesh 3 --packed --seconds 0.001 -n 60 --load short.tab
    [ $status -eq 1 ] && grep -q 'too short' "$work/err.txt"
    report $? "refused: a file that is cut" "$(seen)"
}

# Copies of a part: a tablet near an end meets its image. Energy is that of the parts.
copies() {
    tablets --scene drum --mesh 2 --packed --seconds 0.01 -n 60 --slice 2 --save part.tab
    report $status "a slice" "$(seen)"
    cp "$work/out.txt" "$work/part.txt"
    tablets --scene drum --mesh 2 --packed --seconds 0.002 -n 120 --copies 2 --load part.tab
    report $status "two slices side by side" "$(seen)"
    below outside 0.05; report $? "no tablet leaves the copies" "$(seen)"
    [ "$(awk -v part="$(grep ' contacts$' "$work/part.txt" | tail -n 1)" '
        function far(a, b) { return a > 2.002 * b || a < 1.998 * b }
        / contacts$/ { gsub(/[(,]/, ""); gsub(/[(,]/, "", part); split(part, was, " ")
                       print !far($7, was[7]) && !far($9, was[9]); exit }' "$work/out.txt")" = 1 ]
    report $? "twice the energy of flight and spin of the part" "$(seen)"
    tablets --scene drum --packed --seconds 0.01 -n 60 --slice 2 --save planes.tab
    tablets --scene drum --mesh 2 --packed --seconds 0.002 -n 120 --copies 2 --load planes.tab
    report $status "slices that turned between planes, in a drum of triangles" "$(seen)"
    below outside 0.05; report $? "no tablet leaves those copies" "$(seen)"
    tablets --scene drum --packed --seconds 0.002 -n 120 --copies 2 --load part.tab
    [ $status -eq 1 ] && grep -q 'another set-up: pieces of the mesh' "$work/err.txt"
    report $? "refused: triangles between planes" "$(seen)"
    tablets --scene box --seconds 0.01 -n 50 --save part.tab
    tablets --scene box --seconds 0.002 -n 300 --copies 6 --load part.tab
    report $status "six boxes side by side" "$(seen)"
    below outside 0.05; report $? "no tablet leaves the boxes" "$(seen)"
}

# ---- on a GPU: the steps of tablets.c ------------------------------------------------------------

gpu() {
    tablets --scene cloud -n 30 --seconds 0.06 --steps 15 --skin 0.3 --check
    report $status "the cloud agrees with serial steps" "$(seen)"
    above contacts 0; report $? "tablets meet" "$(seen)"
    below energy 1e-2; report $? "energy is kept" "$(seen)"
    below momentum 1e-5 && below turning 1e-4; report $? "momentum is kept" "$(seen)"
    tablets --scene drum -n 40 --seconds 0.03 --steps 15 --check --forms
    report $status "the drum agrees with serial steps" "$(seen)"
    [ "$(grep -c '^form:' "$work/out.txt")" -eq 5 ] &&
        awk '/^form:/ && $NF > 1e-4 { wrong = 1 } END { exit wrong }' "$work/out.txt"
    report $? "all forms give the same forces" "$(grep '^form:' "$work/out.txt")"
    tablets --scene drum -n 60 --packed --seconds 0.004 --steps 15 --mesh 3 --check
    report $status "the drum of triangles agrees with serial steps" "$(seen)"
    tablets --scene drum -n 60 --packed --seconds 0.004 --steps 15 --check
    report $status "the packed drum agrees with serial steps" "$(seen)"
    grep -q '^time: [0-9.]* ms a step, [0-9.]* steps/s in the last [0-9]* steps; [0-9]* MiB$' \
        "$work/out.txt"
    report $? "time per step and memory" "$(seen)"
    tablets --scene drum -n 60 --packed --seconds 0.004 --steps 15 --mesh 3 --sort-every 5 --check
    report $status "sorted, the drum of triangles agrees with serial steps" "$(seen)"
    tablets --scene drum -n 30 --slice 2 --packed --seconds 0.002 --mesh 2 --save part.tab
    tablets --scene drum -n 60 --copies 2 --load part.tab --packed --mesh 2 --shuffle \
        --tables tables.csv --tables-steps 20
    report $status "tables of the drum" "$(seen)"
    [ "$(grep -c '^tablets,orders,time' "$work/tables.csv")" -eq 100 ] &&
        [ "$(grep -c '^tablets,orders,stages.*whole step' "$work/tables.csv")" -eq 5 ] &&
        [ "$(grep -c '^tablets,history,stages.*whole step' "$work/tables.csv")" -eq 2 ]
    report $? "all of them" "$(seen)"
    tablets
    [ $status -eq 2 ] && grep -q 'scene lean' "$work/err.txt"
    report $? "lean is refused" "$(seen)"
}

# ---- command line, pictures ----------------------------------------------------------------------

command_line() {
    local line
    tablets --help
    grep -q -- '--rounding R' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        tablets $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-9 "$work/err.txt")" = 'tablets: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
heap
--scene
--scene heap
--mu -1
--radius nan
--cap 0.005
--rounding 0.002
--spheres 2
--scene drum --packed --spheres 0.5
--scene box --mesh 2
--scene drum --lifters 0.01
--scene drum --mesh 2 --lifters 0.01 --packed
--scene box --slice 2
--scene drum --copies 2
--scene drum --tables x.csv
-n 0
LINES
    tablets --seconds 0.001 --out new/folder/out.png
    [ "$status" -eq 0 ] && [ -s "$work/new/folder/out.png" ]
    report $? "makes the folder of its picture" "$(seen)"
    tablets --seconds 0.001 --out /dev/null/out.png
    [ $status -eq 1 ] && grep -q '^tablets: /dev/null' "$work/err.txt"
    report $? "refused: cannot draw there" "$(seen)"
    tablets --scene drum -n 60 --rpm 1000
    [ $status -eq 1 ] && grep -q 'overlap by more than' "$work/err.txt"
    report $? "contacts that are too deep end the run" "$(seen)"
}

# How many pixels of the second and the fourth panel differ from the first, in each row.
differences='
    for (int row = 0; row < 2; row++)
        for (int panel = 1; panel < 4; panel += 2) {
            int other = 0;
            for (int y = row * h / 2; y < row * h / 2 + 300; y++)
                for (int x = 0; x < w / 4; x++) {
                    const unsigned char *a = rgb + 3 * (y * w + x), *b = a + 3 * panel * (w / 4);
                    other += abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2]) > 90;
                }
            printf(" %d", other);
        }'

pictures() {
    local without1 without2 with1 with2
    make_png_reader "$differences" || return
    is_picture lean.png 1200 660 300
    read -r without1 without2 with1 with2 <<<"$more"
    [ "$without1" -gt 1500 ] && [ "$without2" -gt 3000 ]
    report $? "without history the pictures differ" "pixels: $more"
    [ "$with1" -lt 300 ] && [ "$with2" -lt 300 ]
    report $? "with history they hardly do" "pixels: $more"
    is_picture drum.png 600 600 1000
    is_picture mesh.png 600 600 1000
    is_picture lifters.png 600 600 1000
}

if [ $cuda = yes ]; then gpu; else
    lean; cloud; drum; mesh; saved; copies; command_line; pictures
fi
sum_up
