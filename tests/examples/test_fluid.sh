#!/bin/bash
# Tests examples/fluid: the dam break beside measurements, a tank at rest, a drop in free flight.
#
#   tests/examples/test_fluid.sh [PROGRAM]      default: build/fluid
#
# What is expected: the front of Martin and Moyce (1952), rho g depth, the exact axes of a drop,
# energy that does not grow, momentum, density sums over all pairs.
. "$(dirname "$0")/examples.sh" fluid "${1:-}"

fluid() { run --out out.png "$@"; }
seen() { echo "exit status $status; $(head -c 300 "$work/err.txt") $(tail -n 4 "$work/out.txt" |
    head -c 900)"; }
below() { awk -v a="$(figure "$1")" -v b="$2" 'BEGIN { exit !(a != "" && (a < 0 ? -a : a) < b) }'; }
above() { awk -v a="$(figure "$1")" -v b="$2" 'BEGIN { exit !(a != "" && a > b) }'; }
sums() { below density "$1" && above neighbours 15
    report $? "densities are the sums over all pairs" "$(seen)"; }
energy() { below grows "$1"; report $? "energy does not grow" "$(seen)"; }

# ---- dam -----------------------------------------------------------------------------------------

# Without friction of bed and air, and without a gate that must be drawn, the front is ahead: by up
# to 15 % as it is. Where both pass Z = 1.44 at one time it is within 6 % from there on.
dam() {
    fluid --across 16
    report $status "a column twice as high as wide" "$(seen)"
    cp "$work/out.png" "$work/dam.png"; cp "$work/out.txt" "$work/dam.txt"
    below most 0.15; report $? "the front of the experiment, n^2 = 2" "$(seen)"
    below shifted 0.06; report $? "the same, in its own time" "$(seen)"
    below energy 0.1; report $? "little energy is lost" "$(seen)"
    energy 5e-4; sums 1e-12
    # A figure of the test's own: the last front that was printed, against the last measurement
    # before it, Z = 4.11 at T = 3.33.
    awk '$1 == "T" && $2 + 0 > 3.39 { z = $NF } END { exit !(z > 4.11 && z < 4.11 * 1.15) }' \
        "$work/out.txt"
    report $? "the front at the end" "$(seen)"
    fluid --across 16 --column 1
    report $status "a square column" "$(seen)"
    below most 0.15 && below shifted 0.06; report $? "the front, n^2 = 1" "$(seen)"
    energy 5e-4
    fluid --dim 3 --across 8 --until 1
    report $status "3D" "$(seen)"
    awk '$1 == "T" && $2 + 0 > 0.99 { z = $NF } END { exit !(z > 1.3 && z < 1.6) }' "$work/out.txt"
    report $? "the front in 3D" "$(seen)"
    energy 1e-3; sums 1e-12
    # The checks can fail: water as thick as honey is late.
    fluid --across 16 --viscosity 2
    ! below shifted 0.06 || ! below most 0.15; report $? "another fluid is seen" "$(seen)"
}

# ---- still ---------------------------------------------------------------------------------------

still() {
    fluid --scene still --across 12
    report $status "a tank at rest" "$(seen)"
    below most 0.04 && below mean 0.02; report $? "pressure is rho g depth" "$(seen)"
    below motion 1e-4; report $? "it stays at rest" "$(seen)"
    energy 5e-4; sums 1e-12
    cp "$work/out.png" "$work/still.png"
}

# ---- drop ----------------------------------------------------------------------------------------

drop() {
    fluid --scene drop --across 24
    report $status "a drop" "$(seen)"
    below momentum 1e-13 && below turning 1e-13; report $? "momentum is kept" "$(seen)"
    below most 0.02; report $? "its axis is the exact one" "$(seen)"
    energy 1e-6; sums 1e-12
    [ "$(figure walls)" -eq 0 ] && above builds 5 &&
        awk -v b="$(figure builds)" -v s="$(figure steps)" 'BEGIN { exit !(2 * b < s) }'
    report $? "a list serves several steps" "$(seen)"
    fluid --scene drop --dim 3 --across 10 --until 0.2 --vtk --time
    report $status "a drop in 3D" "$(seen)"
    below momentum 1e-13 && below turning 1e-13; report $? "momentum is kept in 3D" "$(seen)"
    grep -q '^time: [0-9.]* ms a step' "$work/out.txt" && grep -q '^forces: ' "$work/out.txt"
    report $? "times are printed" "$(seen)"
    [ "$(head -c 400 "$work/fluid_0003.vtk" | grep -a -c '^POINTS ')" -eq 1 ] &&
        [ "$(grep -a '^POINTS' "$work/fluid_0003.vtk" | cut -d' ' -f2)" -eq "$(figure fluid)" ]
    report $? "a file for ParaView" "$(head -c 200 "$work/fluid_0003.vtk" | tr -d '\0')"
    sums 1e-12
    # Without viscosity nothing is lost.
    fluid --scene drop --across 16 --viscosity 0 --courant 0.05 --until 0.3
    below energy 2e-3; report $? "energy is kept without viscosity" "$(seen)"
}

# ---- on a GPU: the steps of fluid.c --------------------------------------------------------------

gpu() {
    fluid --scene drop --across 12 --until 0.06 --check
    report $status "the drop agrees with serial steps" "$(seen)"
    below momentum 1e-5 && below turning 1e-5; report $? "momentum is kept" "$(seen)"
    sums 1e-5
    fluid --across 6 --until 0.1 --check --time
    report $status "the dam agrees with serial steps" "$(seen)"
    grep -q '^time: [0-9.]* ms a step' "$work/out.txt" && grep -q '^forces: ' "$work/out.txt"
    report $? "times are printed" "$(seen)"
    sums 1e-5
}

# ---- command line, pictures ----------------------------------------------------------------------

command_line() {
    local line
    fluid --help
    grep -q -- '--smoothing H' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        fluid $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-7 "$work/err.txt")" = 'fluid: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
heap
--scene
--scene heap
--dim 4
--across 3
--viscosity -1
--skin 0
--smoothing nan
--check
LINES
    fluid --scene drop --across 4 --until 0.001 --out /dev/null/where.png
    [ $status -eq 1 ] && grep -q 'where\.png\|/dev/null' "$work/err.txt"
    report $? "refused: cannot draw there" "$(seen)"
}

# How many pixels of the plot are discs, and how many are the line.
colors='
    int discs = 0, line = 0;
    for (int y = h / 2; y < h; y++)
        for (int x = w / 2; x < w; x++) {
            const unsigned char *a = rgb + 3 * (y * w + x);
            discs += a[0] > 190 && a[1] < 90 && a[2] < 70;
            line += a[0] < 60 && a[1] < 120 && a[2] > 160;
        }
    printf(" %d %d", discs, line);'

pictures() {
    local discs line file
    make_png_reader "$colors" || return
    for file in dam.png still.png; do
        is_picture $file 1200 660 300
        read -r discs line <<<"$more"
        [ "$discs" -gt 200 ] && [ "$line" -gt 400 ]
        report $? "measurements and a line in $file" "pixels: $more"
    done
}

# Live: it moves, waits, goes on and ends.
window() {
    local display empty pid server
    . tests/examples/screen.sh
    (cd "$work" && env -u DISPLAY SDL_VIDEODRIVER=x11 "$program" --across 8 --window) \
        >"$work/out.txt" 2>"$work/err.txt"
    status=$?
    grep -q '^fluid: --window: .' "$work/err.txt"; report $? "--window without a screen" "$(seen)"
    [ $status -eq 1 ] || { skip "the window of fluid: no SDL2 (libsdl2-dev) when it was built"
        return; }
    command -v Xvfb >/dev/null || { skip "the window of fluid: no Xvfb (xvfb)"; return; }
    start_screen 1280x720 || { report 1 "Xvfb starts"; return; }
    (cd "$work" && DISPLAY=:$display SDL_VIDEODRIVER=x11 exec "$program" --across 12 --window) \
        >"$work/out.txt" 2>"$work/err.txt" &
    pid=$!
    eventually screen_shows_it; report $? "the window shows the fluid" "$(cat "$work/err.txt")"
    eventually screen_changes; report $? "it flows"
    if command -v xdotool >/dev/null; then
        DISPLAY=:$display xdotool mousemove 400 300 key space
        eventually screen_rests; report $? "space: it waits"
        DISPLAY=:$display xdotool key space
        eventually screen_changes; report $? "space again: it flows on"
    else
        skip "the keys of fluid: no xdotool"
    fi
    kill -TERM $pid 2>/dev/null # SDL takes it as a click on the window's cross
    eventually gone $pid || kill -KILL $pid
    wait $pid; status=$?
    [ $status -eq 0 ] && grep -q '^window: [1-9][0-9]* steps$' "$work/out.txt"
    report $? "closed" "$(seen)"
    stop_screen
}

if [ $cuda = yes ]; then gpu; else dam; still; drop; command_line; pictures; window; fi
sum_up
