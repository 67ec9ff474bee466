#!/bin/bash
# Tests examples/galaxy as its user sees it: files in, files out, figures, pictures, window, exit
# statuses.
#
#   tests/examples/test_galaxy.sh [PROGRAM]        default: build/galaxy; with build/cuda/galaxy
#                                         (any path with "cuda" in it) the GPU's program is tested.
#                                         TEST_SMALL: less work, for the emulator.
#
# Says "FAILED" for each check that fails and "N passed, M failed[, K skipped]" at the end. Where a
# number is expected it comes from a formula beside the check, or from awk, which reads the written
# bodies and sums over all pairs.
. "$(dirname "$0")/examples.sh" galaxy "${1:-}"

galaxy() { run "$@"; }
seen() {
    echo "exit status $status; $(head -c 900 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}
# below NAME LIMIT: a figure of the last run
below() {
    awk -v a="$(value "$2")" -v b="$3" 'BEGIN { exit !(a != "" && a + 0 <= b) }'
    report $? "$1: $2" "$(value "$2"), over $3"
}
bodies() { grep -v '^#' "$work/$1"; }

# ---- what the written bodies say -----------------------------------------------------------------

# sums FILE LAW SOFTENING: energies, momentum and so on, over all pairs
sums() {
    awk -v law="$2" -v soft="$3" -v n=0 '
        /^#/ { next }
        { x[n] = $1; y[n] = $2; m[n] = $5; n++
          k += $5 * ($3 ^ 2 + $4 ^ 2) / 2; mass += $5; px += $5 * $3; py += $5 * $4
          angular += $5 * ($1 * $4 - $2 * $3); cx += $5 * $1; cy += $5 * $2 }
        END {
            for (i = 0; i < n; i++) for (j = 0; j < i; j++) {
                d = sqrt((x[i] - x[j]) ^ 2 + (y[i] - y[j]) ^ 2 + soft ^ 2)
                if (d > 0) p += m[i] * m[j] * (law == "inverse" ? log(d) : -1 / d)
            }
            printf "bodies %d\nmass %.9g\nkinetic %.9g\npotential %.9g\n", n, mass, k, p
            printf "momentum_x %.9g\nmomentum_y %.9g\nangular %.9g\n", px, py, angular
            printf "centre_x %.9g\ncentre_y %.9g\n", cx / mass, cy / mass
        }' "$work/$1"
}

# figures NAME FILE LAW SOFTENING WHEN TOLERANCE: the figures of the last run against those of its
# file. TOLERANCE: of the potential, the only one that the tree has made.
figures() {
    local name
    sums "$2" "$3" "$4" >"$work/sums.txt"
    for name in bodies mass; do
        expect_near "$1: $name" "$(value $name)" "$(value $name "$work/sums.txt")" 1e-6
    done
    expect_near "$1: kinetic energy" "$(value "$5_kinetic")" "$(value kinetic "$work/sums.txt")" \
        1e-6
    expect_near "$1: potential" "$(value "$5_potential")" "$(value potential "$work/sums.txt")" "$6"
    for name in momentum_x momentum_y centre_x centre_y; do
        expect "$1: $name" "$(value "$5_$name")" "$(value $name "$work/sums.txt")" 1e-7
    done
    expect "$1: angular momentum" "$(value "$5_angular")" "$(value angular "$work/sums.txt")" 1e-6
}

# apart FILE FILE: the largest distance, along an axis, of a body in one from the same body in the
# other
apart() {
    awk -v n=0 -v m=0 '/^#/ { next }
         NR == FNR { for (a = 1; a <= 2; a++) p[n, a] = $a; n++; next }
         { for (a = 1; a <= 2; a++) { d = p[m, a] - $a; if (d < 0) d = -d;
             if (!(d <= most)) most = d } m++ }
         END { print n == m ? most + 0 : "other bodies" }' "$work/$1" "$work/$2"
}

# discs FILE: of each disc, its bodies without the heavy one; their mean distance from that, and
# mean angular momentum around it; the share of radial motion in their speeds
discs() {
    awk -v n=0 '/^#/ { next }
         { x[n] = $1; y[n] = $2; u[n] = $3; v[n] = $4; m[n] = $5; n++ }
         END {
             for (i = 0; i < n; i++) if (m[i] > 20 * m[1]) { if (i) s = i }
             for (k = 0; k < 2; k++) {
                 h = k ? s : 0; end = k ? n : s; r = l = out = all = 0
                 for (i = h + 1; i < end; i++) {
                     dx = x[i] - x[h]; dy = y[i] - y[h]; d = sqrt(dx ^ 2 + dy ^ 2)
                     r += d; l += dx * (v[i] - v[h]) - dy * (u[i] - u[h])
                     out += (dx * (u[i] - u[h]) + dy * (v[i] - v[h])) ^ 2 / d ^ 2;
                     all += (u[i] - u[h]) ^ 2 + (v[i] - v[h]) ^ 2
                 }
                 c = end - h - 1
                 printf "count_%d %d\nradius_%d %.6f\nspin_%d %.6f\nheavy_%d %.6f\n", k, c, k,
                     r / c, k, l / c, k, m[h]
                 printf "radial_%d %.6f\n", k, sqrt(out / all)
             }
         }' "$work/$1"
}

# ---- runs ----------------------------------------------------------------------------------------

run_n=600 run_steps=100
[ "$small" ] && run_n=90 run_steps=12

# Energies and so on of the start and of a run; none of these can be right if the force is not that
# of the potential.
against_awk() {
    local law mass
    for law in inverse-square inverse; do
        galaxy -n $run_n --law $law --steps 0 --write start.txt --check
        report $status "the start, $law" "$(seen)"
        figures "the start, $law" start.txt $law 0.05 start 5e-4
        is "the start, $law" bodies $run_n
        expect "the start, $law: mass" "$(value mass)" 1.6 1e-5
        for mass in momentum_x momentum_y centre_x centre_y; do
            expect "the start, $law: $mass" "$(value start_$mass)" 0 1e-6
        done
        galaxy -n $run_n --law $law --steps $run_steps --softening 0.1 --write end.txt --check
        report $status "a run, $law" "$(seen)"
        figures "a run, $law" end.txt $law 0.1 end 5e-4
        below "a run, $law" energy_drift 1e-4
        below "a run, $law" momentum_drift 1e-5
        below "a run, $law" angular_drift 1e-4
        below "a run, $law" force_error 1e-2
        [ "$(apart start.txt end.txt)" != 0 ]; report $? "a run, $law: bodies move"
    done
}

# The same start in ways that are far more exact, or the source's: positions after a while.
methods() {
    local options tolerance steps=$run_steps
    [ "$small" ] && steps=3
    galaxy -n $run_n --steps $steps --method direct --write direct.txt --check
    report $status "direct" "$(seen)"
    below "direct" force_error 1e-6
    while read -r tolerance options; do
        case $small$options in yes*--order\ 8) continue ;; esac
        # shellcheck disable=SC2086
        galaxy -n $run_n --steps $steps --write other.txt --check $options
        report $status "$options" "$(seen)"
        expect "$options: bodies where the direct sum has them" "$(apart direct.txt other.txt)" 0 \
            "$tolerance"
    done <<'LINES'
1e-4 --method virtual-particles
1e-4 --method virtual-particles --levels 4
1e-5 --method force-nodes --order 8
3e-4 --method force-nodes --order 6 --leaf 16
5e-3 --method force-nodes --order 1 --levels 4
8e-3 --method force-nodes
LINES
}

# Two points: a parabola. D + D^3 / 3 = t sqrt(M / (2 q^3)) gives distance q (1 + D^2) and direction
# 2 atan D (Barker's equation).
parabola() {
    local steps=1000 dt=0.005
    [ "$small" ] && steps=100 dt=0.03
    galaxy -n 2 --softening 0 --steps 0 --turn 0 --write near.txt --check
    galaxy -n 2 --softening 0 --steps $steps --dt $dt --turn 0 --write far.txt --check
    report $status "two bodies" "$(seen)"
    below "two bodies" energy_drift 1e-4
    awk -v t="$(times $steps $dt)" -v n=0 '
        function barker(d) { return d + d ^ 3 / 3 }
        /^#/ { next }
        { x[n] = $1; y[n] = $2; n++ }
        END {
            q = 1.3; pi = 3.14159265358979
            for (k = 0; k < 2; k++) { dx[k] = x[2 * k + 1] - x[2 * k];
                                      dy[k] = y[2 * k + 1] - y[2 * k] }
            at = -sqrt(3 / q - 1); want = barker(at) + t * sqrt(1.6 / (2 * q ^ 3)); d = 0
            for (k = 0; k < 60; k++) d -= (barker(d) - want) / (1 + d * d)
            angle = atan2(dy[1], dx[1]) - atan2(dy[0], dx[0]); if (angle < 0) angle += 2 * pi
            r = sqrt(dx[1] ^ 2 + dy[1] ^ 2) - q * (1 + d * d);
            a = angle - 2 * (atan2(d, 1) - atan2(at, 1))
            print r, a
            exit !(n == 4 && r * r < 1e-6 && a * a < 1e-6)
        }' "$work/near.txt" "$work/far.txt" >"$work/parabola.txt"
    report $? "two bodies: a parabola" "wrong by distance, angle: $(cat "$work/parabola.txt")"
}

# on_circle NAME ANGLE: is the second body there?
on_circle() {
    awk -v a="$2" 'NR == 3 { exit !(($1 - cos(a)) ^ 2 + ($2 - sin(a)) ^ 2 < 1e-10) }' \
        "$work/turned.txt"
    report $? "$1: where the bodies are" "$(cat "$work/turned.txt")"
}

# Two bodies on a circle of radius 1, each drawn inwards by 1 / 2^2 = v^2; or 1 / 2 = v^2.
circle() {
    printf '# two bodies\n-1 0 0 -0.5 1\r\n\n  1 0\t0 0.5 1   # the other one\n' >"$work/circle.txt"
    galaxy --read circle.txt --softening 0 --dt 0.01 --steps 100 --write turned.txt --check
    report $status "a circle" "$(seen)"
    is "a circle" bodies 2
    on_circle "a circle" 0.5
    awk 'BEGIN { v = sqrt(0.5); print -1, 0, 0, -v, 1; print 1, 0, 0, v, 1 }' >"$work/circle.txt"
    galaxy --read circle.txt --softening 0 --dt 0.01 --steps 100 --law inverse --write turned.txt \
        --check
    on_circle "a circle, --law inverse" 0.70710678
}

# Discs far from each other stay as they are: they neither fall together nor fly apart. A quarter of
# a turn of the rim, many of the middle. (Most of the mass in the middle, or they would clump.)
discs_hold() {
    local n=2000 steps=300 k
    [ "$small" ] && n=200 steps=10
    galaxy -n $n --apart 100 --steps 0 --heart 0.7 --dispersion 0 --retrograde --write start.txt \
        --check
    discs start.txt >"$work/before.txt"
    galaxy -n $n --apart 100 --steps $steps --heart 0.7 --dispersion 0 --retrograde \
        --write end.txt --check
    report $status "discs alone" "$(seen)"
    discs end.txt >"$work/after.txt"
    for k in 0 1; do
        expect_near "disc $k: size" "$(value radius_$k "$work/after.txt")" \
            "$(value radius_$k "$work/before.txt")" 0.04
        expect_near "disc $k: spin" "$(value spin_$k "$work/after.txt")" \
            "$(value spin_$k "$work/before.txt")" 0.02
    done
    # the mean of r over exp(-3 r) r, 0 .. 1, and the same for the other one, which has 0.6 of the
    # mass and of the area
    expect_near "disc 0: mean distance" "$(value radius_0 "$work/before.txt")" 0.4801 0.02
    expect_near "disc 1: mean distance" "$(value radius_1 "$work/before.txt")" \
        "$(awk 'BEGIN { print 0.4801 * sqrt(0.6) }')" 0.02
    expect "disc 0: heavy body" "$(value heavy_0 "$work/before.txt")" 0.7 1e-6
    expect "disc 1: heavy body" "$(value heavy_1 "$work/before.txt")" 0.42 1e-6
    [ "$(value count_1 "$work/before.txt")" -eq $((n * 3 / 8 - 1)) ]
    report $? "disc 1: its bodies" "$(cat "$work/before.txt")"
    awk -v a="$(value spin_0 "$work/before.txt")" -v b="$(value spin_1 "$work/before.txt")" \
        'BEGIN { exit !(a > 0.2 && b < -0.1) }'
    report $? "--retrograde: the second turns the other way" "$(cat "$work/before.txt")"
    # s^2 of the circular speed^2 is along the radius, and as much across
    galaxy -n 2000 --apart 100 --steps 0 --dispersion 0.2 --write start.txt --check
    discs start.txt >"$work/before.txt"
    for k in 0 1; do
        expect "--dispersion, disc $k" "$(value radial_$k "$work/before.txt")" \
            "$(awk 'BEGIN { print 0.2 / sqrt(1.08) }')" 0.015
    done
}

# Leapfrog is of second order, Euler of first; and a run that is cut in two is the same run.
steps_in_time() {
    local n=$run_n whole=40
    [ "$small" ] && n=40 whole=8
    galaxy -n $n --steps $whole --dt 0.01 --check; cp "$work/out.txt" "$work/leapfrog.txt"
    galaxy -n $n --steps $whole --dt 0.01 --integrator euler --check
    awk -v a="$(value energy_drift "$work/leapfrog.txt")" -v b="$(value energy_drift)" \
        'BEGIN { exit !(b > 5 * a && b < 0.1) }'
    report $? "--integrator euler" \
        "$(value energy_drift) and $(value energy_drift "$work/leapfrog.txt")"
    galaxy -n $n --steps $whole --write whole.txt --check
    galaxy -n $n --steps $((whole / 2)) --write part.txt --report 3 --check
    galaxy --read part.txt --steps $((whole / 2)) --write parts.txt --report 1 --check
    report $status "a run in two parts" "$(seen)"
    [ $cuda = yes ] || { cmp -s <(bodies whole.txt) <(bodies parts.txt);
        report $? "a run in two parts: every digit"; }
    expect "a run in two parts" "$(apart whole.txt parts.txt)" 0 2e-6
    galaxy --read parts.txt --steps 0 --write again.txt --check
    cmp -s <(bodies parts.txt) <(bodies again.txt)
    report $? "read and written: every digit" "$(seen)"
    galaxy --read parts.txt --steps 2 --write parts.txt --check
    [ "$(bodies parts.txt | wc -l)" -eq $n ]; report $? "written where it was read" "$(seen)"
    galaxy -n $n --steps 0 --seed 2 --write seed.txt
    galaxy -n $n --steps 0 --seed 2 --write again.txt
    cmp -s "$work/seed.txt" "$work/again.txt" && [ "$(apart seed.txt whole.txt)" != 0 ]
    report $? "--seed: the same start, another one"
}

gpu_against_serial() {
    [ $cuda = yes ] || return
    local options n=20000 steps=50
    [ "$small" ] && n=200 steps=6
    while read -r options; do
        # shellcheck disable=SC2086
        galaxy -n $n --steps $steps --check $options
        report $status "GPU against serial: $options" "$(seen)"
        is "GPU against serial: $options" reference_agrees 1
        awk -v a="$(value reference_moved)" 'BEGIN { exit !(a > 1e-4) }';
            report $? "GPU against serial: bodies move" "$(seen)"
    done <<'LINES'
--order 4
--law inverse --order 6
--method virtual-particles --integrator euler
LINES
}

# ---- bad input, command line ---------------------------------------------------------------------

refused() {     # refused NAME FILE TEXT: exit status 1, and the message begins with file and place
    galaxy --read "$2" --steps 0 --check
    [ $status -eq 1 ] && grep -q "^galaxy: $3" "$work/err.txt" && [ ! -s "$work/out.txt" ]
    report $? "refused: $1" "$(seen)"
}

bad_files() {
    printf '1 2 3 4 5\n\n1 2 3 4\n' >"$work/four.txt"
    refused 'four numbers' four.txt 'four.txt:3: "1 2 3 4" is not five finite numbers'
    printf '1 2 3 4 5 6\n' >"$work/six.txt"
    refused 'six numbers' six.txt 'six.txt:1: .* is not five'
    printf '# a b\n1 2 x 4 5\n' >"$work/word.txt"
    refused 'a word' word.txt 'word.txt:2: .* is not five'
    printf '1 2 3.5x 4 5\n' >"$work/tail.txt"
    refused 'a number with a tail' tail.txt 'tail.txt:1: .* is not five'
    printf '1 2 nan 4 5\n' >"$work/nan.txt"; refused 'nan' nan.txt 'nan.txt:1: .* is not five'
    printf '1 2 inf 4 5\n' >"$work/inf.txt"; refused 'inf' inf.txt 'inf.txt:1: .* is not five'
    printf '1 2 1e39 4 5\n' >"$work/large.txt"
    refused 'too large' large.txt 'large.txt:1: .* is not five'
    printf '1 2 3 4 5\n1 2 3 4 -5\n' >"$work/less.txt"
    refused 'a negative mass' less.txt 'less.txt:2: the mass -5 is negative'
    printf '1 2 3 4 5\n1 2 3\0004 5\n' >"$work/zero.txt"
    refused 'a zero byte' zero.txt 'zero.txt:2: .* is not five'
    { printf '1 2 3 4 '; printf '%0600d' 5; echo; } >"$work/wide.txt"
    refused 'a long line' wide.txt 'wide.txt:1: the line is longer'
    printf '# nobody\n' >"$work/empty.txt"; refused 'no bodies' empty.txt 'empty.txt: holds no body'
    refused 'no such file' none.txt 'none.txt: No such file'
    refused 'a folder' . '.: Is a directory'
    galaxy -n 10 --steps 0 --write no/where.txt
    [ $status -eq 1 ] && grep -q '^galaxy: no/where.txt: ' "$work/err.txt"
    report $? "refused: cannot write there" "$(seen)"
    galaxy -n 10 --steps 0 --frames 1 --out /dev/null/here
    report $((status != 1)) "refused: cannot make that folder" "$(seen)"
    # odd, but no reason to refuse: bodies without mass, at one place, one alone
    printf '1 1 0 0 0\n1 1 0 0 0\n' >"$work/massless.txt"
    galaxy --read massless.txt --steps 3 --frames 1 --out odd --check
    [ $status -eq 0 ] && ! grep -qi nan "$work/out.txt"; report $? "no mass at all" "$(seen)"
    printf '1 1 0 0 1\n1 1 0 0 2\n1 1 0 0 3\n' >"$work/one_place.txt"
    galaxy --read one_place.txt --softening 0 --steps 3 --write moved.txt --check
    [ $status -eq 0 ] && cmp -s <(bodies one_place.txt) <(bodies moved.txt)
    report $? "all at one place" "$(seen)"
    printf '1 2 3 4 5' >"$work/alone.txt"
    galaxy --read alone.txt --steps 10 --dt 0.5 --write moved.txt --frames 1 --out odd --check
    [ "$(bodies moved.txt)" = '16 22 3 4 5' ]; report $? "a body alone goes straight on" "$(seen)"
}

command_line() {
    galaxy --help
    report $status "--help" "$(seen)"
    grep -q -- '--softening  *E' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    local line
    while read -r line; do
        # shellcheck disable=SC2086
        galaxy $line
        [ $status -eq 2 ] && [ -s "$work/err.txt" ]
        report $? "exit status 2: $line" "$(seen)"
    done <<'LINES'
--no-such-option
-n
-n 1
-n 1.5
-n 1000x
--steps=many
--method fast
--law cube
--integrator rk4
--order 13
--levels 50
--method virtual-particles --order 5
--softening -1
--dt 0
--dt nan
--heart 1
--pericentre 5
--retrograde=yes
LINES
    galaxy -n 20 --steps 10
    [ "$(wc -l <"$work/err.txt")" -le 10 ] && grep -q 'step 10 of 10' "$work/err.txt" &&
        ! grep -q "$(printf '\r')" "$work/err.txt"
    report $? "no terminal: a few lines, no moving bar" "$(seen)"
    [ "$(grep -c '^step .* wrong by' "$work/out.txt")" -eq 6 ]; report $? "six reports" "$(seen)"
    local last='^bodies 20, steps 10, energy -[0-9.]*, drift of energy [0-9.e-]*, of momentum [0-9.e-]*, of angular momentum '
    last+='[0-9.e-]*, force error [0-9.e-]*$'
    tail -n 1 "$work/out.txt" | grep -q "$last"; report $? "the last line has the figures" "$(seen)"
    galaxy -n 20 --steps 5 --check
    [ ! -s "$work/err.txt" ] && awk 'NF != 2 { exit 1 }' "$work/out.txt"
    report $? "--check prints names and values, nothing else" "$(seen)"
}

# ---- pictures ------------------------------------------------------------------------------------

# Of a picture: the color at a place, if one is given; below the title, pixels that have more blue
# than red, more red than blue.
looks='
    if (argc == 4) {
        unsigned char *p = rgb + 3 * (atoi(argv[3]) * w + atoi(argv[2]));
        printf(" %d %d %d", p[0], p[1], p[2]);
        return 0;
    }
    int blue = 0, red = 0;
    for (k = 36 * w; k < w * h; k++) {
        unsigned char *p = rgb + 3 * k;
        blue += p[2] > p[0] + 20;
        red += p[0] > p[2] + 20;
    }
    printf(" %d %d", blue, red);'

# both_discs FILE WIDTH HEIGHT: a picture, with both discs in many colors
both_discs() {
    is_picture "$1" "$2" "$3" 150
    awk '{ exit !($1 > 300 && $2 > 300) }' <<<"$more";
        report $? "$1 has both discs" "blue, red: $more"
}

# light FILE X Y: the sum of the three colors there
light() { "$work/png" "$work/$1" "$2" "$3" | awk '{ print $4 + $5 + $6 }'; }

# Three bodies at known places, 240 pixels a unit of length, their centre of mass at (1, 1) in the
# middle; y goes up.
places() {
    local got
    printf '0 0 0 0 1\n2 0 0 0 1\n1 3 0 0 2\n' |
        awk '{ print $1, $2 * 2 / 3, $3, $4, $5 }' >"$work/three.txt"
    galaxy --read three.txt --steps 0 --frames 1 --view 4 --out three
    report $status "three bodies" "$(seen)"
    for got in 240,636 720,636 480,156; do
        [ "$(light three/frame_0000.png ${got%,*} ${got#*,})" -gt 60 ]
        report $? "three bodies: one is at $got" "$(seen)"
    done
    for got in 480,396 240,156 720,156 230,636; do
        [ "$(light three/frame_0000.png ${got%,*} ${got#*,})" -eq 0 ]
        report $? "three bodies: none is at $got" "$(seen)"
    done
    galaxy --read alone.txt --steps 10 --dt 0.5 --frames 1 --out alone
    [ "$(light alone/frame_0000.png 480 396)" -gt 60 ]
    report $? "a body alone stays in the middle of the picture" "$(seen)"
}

pictures() {
    local n=3000
    make_png_reader "$looks" || return
    places
    [ "$small" ] && n=300
    galaxy -n $n --steps 6 --dt 0.05 --frames 2 --sheet --out pictures
    report $status "--frames --sheet" "$(seen)"
    grep -q 'pictures/frame_0000.png to frame_0001.png' "$work/out.txt" &&
        grep -q 'pictures/sheet.png' "$work/out.txt"
    report $? "it says where the pictures are" "$(seen)"
    both_discs pictures/frame_0000.png 960 756; both_discs pictures/frame_0001.png 960 756
    both_discs pictures/sheet.png 1480 776
    ! cmp -s "$work/pictures/frame_0000.png" "$work/pictures/frame_0001.png"
    report $? "something moves"
    [ ! -e "$work/pictures/frame_0002.png" ]; report $? "two frames" "$(ls "$work/pictures")"
    galaxy --demo -n 100 --steps 5 --out demo; [ -s "$work/demo/sheet.png" ]
    report $? "--demo draws the sheet" "$(seen)"
}

# ---- window --------------------------------------------------------------------------------------

# shown NAME STEPS CHECK: runs with a window until SIGTERM, which SDL takes as a click on the
# window's cross. CHECK: while it is shown
shown() {
    local pid name=$1
    eventually screen_is_empty; report $? "$name: no window yet"
    (cd "$work" && DISPLAY=:$display SDL_VIDEODRIVER=x11 exec "$program" -n 1000 --steps "$2" \
        --window --check) \
        >"$work/out.txt" 2>"$work/err.txt" &
    pid=$!
    eventually screen_shows_it
    report $? "$name: the window shows the bodies" "$(screen_colors) colors; $(cat "$work/err.txt")"
    eventually "$3"; report $? "$name: $3"
    ! gone $pid; report $? "$name: the window stays"
    kill -TERM $pid 2>/dev/null
    eventually gone $pid || kill -KILL $pid
    wait $pid; status=$?
    report $status "$name: closed" "$(seen)"
}

still_there() { sleep 0.5; screen_shows_it; }

window() {
    local display empty server
    . tests/examples/screen.sh
    # (without a screen the program with SDL ends with status 1, the one without SDL with 2)
    (cd "$work" && env -u DISPLAY SDL_VIDEODRIVER=x11 "$program" -n 2 --steps 0 --window) \
        >"$work/out.txt" 2>"$work/err.txt"
    status=$?
    if [ $status -eq 2 ]; then
        grep -q 'without SDL2' "$work/err.txt"; report $? "--window in a program without" "$(seen)"
        [ "$small" ] || skip "the window of galaxy: no SDL2 (libsdl2-dev) when it was built"
        return
    fi
    [ $status -eq 1 ] && grep -q '^galaxy: --window: .' "$work/err.txt"
    report $? "--window without a screen" "$(seen)"
    command -v Xvfb >/dev/null || { skip "the window of galaxy: no Xvfb (xvfb)"; return; }
    start_screen 1100x900 || { report 1 "Xvfb starts"; return; }
    shown "a long run" 100000000 screen_changes
    awk -v k="$(value steps)" 'BEGIN { exit !(k > 10 && k < 100000000) }';
        report $? "a long run: ended by its window" "$(seen)"
    shown "a short run" 20 still_there
    is "a short run" steps 20
    stop_screen
}

against_awk; methods; parabola; circle; discs_hold; steps_in_time; gpu_against_serial
bad_files; command_line; pictures; window
sum_up
