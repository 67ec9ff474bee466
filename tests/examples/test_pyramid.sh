#!/bin/bash
# Tests examples/pyramid, serial and CUDA: four spheres that stay where they are, if contacts have a
# history.
#
#   tests/examples/test_pyramid.sh [PROGRAM]      default: build/pyramid; also build/cuda/pyramid
#
# Expected forces come from statics, worked out in awk below: they do not depend on how contacts are
# simulated. The runs without history, and with too little friction, show that the checks can fail.
. "$(dirname "$0")/examples.sh" pyramid "${1:-}"

pyramid() { run --out out.png "$@"; }
seen() {
    echo "exit status $status; $(head -c 300 "$work/err.txt") $(tail -n 9 "$work/out.txt" |
        head -c 900)"
}
# below NAME LIMIT, above NAME LIMIT
below() { awk -v a="$(figure "$1")" -v b="$2" 'BEGIN { exit !(a != "" && a < b) }'; }
above() { awk -v a="$(figure "$1")" -v b="$2" 'BEGIN { exit !(a != "" && a > b) }'; }

# ---- does it stand? ------------------------------------------------------------------------------

# Moved by less than a hundredth of a radius in all the time, and at rest. At the start nothing is
# pressed together yet: the heap sinks by some thousandths, as deep as the contacts are soft.
stands() { below with 0.01 && above top_with 2.62 && below speed_with 1e-6; }
# Further than a radius from where it was, and the top on the floor: its middle at 1 radius, a
# little less as it is pressed in.
fell() { above "$1" 1 && below "top_$1" 1.05; }

# The forces of statics: normal forces in weights, and friction in parts of the normal force. N and
# f act between the top and a sphere below, at an angle a from the vertical:
#   the top does not fall:       3 (N cos a + f sin a) = 1
#   a sphere below does not go:  N sin a - f cos a = f     (the torques: the floor's friction is the
#                                same f)
# cos a is sqrt(2/3) as the source puts the spheres; as they lie in the end it comes from the height
# of the top. (A weight presses
# 0.001 radii in.)
# contacts TOLERANCE: are the six contacts there, and no other?
contacts() {
    awk -v t="$1" -v top="$(figure top_with)" '
        BEGIN {
            c = (top - (1 - 0.001 * 4 / 3)) / (2 - 0.001 / 3); s = sqrt(1 - c * c)
            part = s / (1 + c); n = 1 / (3 * (c + part * s)); floor = 1 + 1 / 3
            if (c - sqrt(2 / 3) > 0.005 || sqrt(2 / 3) - c > 0.005) wrong++
        }
        function far(a, b) { return (a - b) ^ 2 > (t * b) ^ 2 }
        $1 == "contact" {
            all++
            if ($3 == "floor") { floors++; if (far($5, floor) ||
                far($7, part * n / floor)) wrong++ }
            else if ($3 == 3) { tops++; if (far($5, n) || far($7, part)) wrong++ }
        }
        END { exit !(all == 6 && floors == 3 && tops == 3 && !wrong) }' "$work/out.txt"
}

# The GPU's heap beside the serial one, at each second; and the energy that is left.
beside_serial() {
    [ "$(grep -c 'off the serial heap by' "$work/out.txt")" -eq "$1" ]
    report $? "$1 comparisons with the serial heap" "$(seen)"
    [ "$(awk '/off the serial heap/ && $NF < 1e-7' "$work/out.txt" | wc -l)" -eq "$1" ]
    report $? "both heaps are the same" "$(grep 'off the serial' "$work/out.txt")"
}
energy() { sed -n "s/^$1 history.* energy \([^,]*\),.*/\1/p" "$work/out.txt" | tail -n 1; }

default_run() {
    if [ $cuda = yes ]; then pyramid --check; else pyramid; fi
    report $status "the default run" "$(seen)"
    cp "$work/out.txt" "$work/first.txt"; cp "$work/out.png" "$work/first.png"
    grep -q '^with history   10.000 s' "$work/out.txt"; report $? "10 s with history" "$(seen)"
    grep -q '^without history    2.000 s' "$work/out.txt"; report $? "2 s without" "$(seen)"
    stands; report $? "with history it stays" "$(seen)"
    fell without; report $? "without it does not" "$(seen)"
    contacts 0.001; report $? "the forces are those of statics" "$(grep '^contact' "$work/out.txt")"
    # Not creeping: nothing moves any more after the first second.
    [ "$(awk '/^with history/ && $3 >= 1 { print $11 }' "$work/out.txt" | sort -u |
        wc -l)" -eq 1 ]
    report $? "it does not creep" "$(grep '^with history' "$work/out.txt")"
    [ $cuda = no ] || { beside_serial 14; at_rest; }
}
at_rest() {
    awk -v e="$(energy with)" 'BEGIN { exit !(e != "" && e < 1e-12) }'
    report $? "with history it comes to rest" "$(energy with)"
    awk -v e="$(energy without)" 'BEGIN { exit !(e > 1e-6) }'
    report $? "without it rolls" "$(energy without)"
}

# On the CPU kernels take a thousand times as long: how the heap is pressed together.
short_run() {
    pyramid --check --seconds 0.02
    report $status "0.02 s" "$(seen)"
    below with 0.005 && above without 0.01; report $? "it begins to slip without history" "$(seen)"
    [ "$(grep -c '^contact' "$work/out.txt")" -eq 6 ]; report $? "six contacts" "$(seen)"
    beside_serial 4
}

# Each sphere below is held by friction if that is at least tan(a/2) = 0.3178 between the spheres,
# history or not. (Built up from nothing it trembles at first, which asks for a little more.)
friction() {
    pyramid --mu 0.34 --seconds 3
    stands; report $? "friction 0.34 is enough" "$(seen)"
    contacts 0.001; report $? "friction 0.34: the forces of statics" \
        "$(grep '^contact' "$work/out.txt")"
    fell without; report $? "friction 0.34, without history" "$(seen)"
    pyramid --mu 0.31 --seconds 8
    ! stands; report $? "friction 0.31 is not, and this check can fail" "$(seen)"
    fell with; report $? "friction 0.31: it falls" "$(seen)"
    ! contacts 0.1; report $? "friction 0.31: no forces of statics" "$(seen)"
    [ "$(awk '$1 == "contact" && $3 == "floor" && $5 > 0.99 && $5 < 1.01' "$work/out.txt" |
        wc -l)" -eq 4 ]
    report $? "friction 0.31: in the end each lies on the floor with its weight" \
        "$(grep '^contact' "$work/out.txt")"
}

# The forces must be seen to be wrong when they are.
checks_can_fail() {
    cp "$work/first.txt" "$work/out.txt"
    contacts 0.001; report $? "the first run once more"
    sed '/contact 1 3/s/normal 0.33/normal 0.34/' "$work/first.txt" >"$work/out.txt"
    ! contacts 0.001; report $? "another force of the top is seen"
    sed '/contact 2 floor/s/friction 0.07/friction 0.08/' "$work/first.txt" >"$work/out.txt"
    ! contacts 0.001; report $? "another friction is seen"
    sed '/contact 0 3/d' "$work/first.txt" >"$work/out.txt"
    ! contacts 0.001; report $? "a contact that is missing is seen"
    sed 's/^contact 0 3.*/&\n&/' "$work/first.txt" >"$work/out.txt"
    ! contacts 0.001; report $? "a contact that is there twice is seen"
}

# ---- command line, pictures ----------------------------------------------------------------------

command_line() {
    local line
    pyramid --help
    report $status "--help" "$(seen)"
    grep -q -- '--mu M' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        pyramid $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-9 "$work/err.txt")" = 'pyramid: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
heap
--mu
--mu -1
--mu much
--seconds 0
--seconds nan
--out
LINES
    pyramid --seconds 0.001 --out new/folder/out.png
    [ "$status" -eq 0 ] && [ -s "$work/new/folder/out.png" ]
    report $? "makes the folder of its picture" "$(seen)"
    pyramid --seconds 0.001 --out /dev/null/out.png
    [ $status -eq 1 ] && grep -q '^pyramid: /dev/null' "$work/err.txt"
    report $? "refused: cannot draw there" "$(seen)"
}

# Of a picture: for the two rows of panels, how many pixels of panel 2 and of panel 3 differ from
# panel 1.
differences='
    for (int row = 0; row < 2; row++)
        for (int panel = 1; panel < 3; panel++) {
            int other = 0;
            for (int y = row * h / 2; y < row * h / 2 + 260; y++)
                for (int x = 0; x < w / 3; x++) {
                    const unsigned char *a = rgb + 3 * (y * w + x), *b = a + 3 * panel * (w / 3);
                    other += abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2]) > 90;
                }
            printf(" %d", other);
        }'

pictures() {
    local without1 without2 with1 with2
    make_png_reader "$differences" || return
    is_picture first.png 1200 580 1000
    read -r without1 without2 with1 with2 <<<"$more"
    [ "$without1" -gt 3000 ] && [ "$without2" -gt "$without1" ]
    report $? "without history the pictures differ" "pixels: $more"
    [ "$with1" -lt 300 ] && [ "$with2" -lt 300 ]
    report $? "with history they hardly do" "pixels: $more"
}

if [ "$small" ]; then short_run; command_line; sum_up; exit; fi
default_run; friction; checks_can_fail; command_line; pictures
sum_up
