#!/bin/bash
# Tests examples/boids as its user sees it: figures, text, pictures, window, exit statuses.
#
#   tests/examples/test_boids.sh [PROGRAM]     default: build/boids; with build/cuda/boids (any path
#                                     with "cuda" in it) the GPU's program is tested. TEST_SMALL:
#                                     less work, for the emulator.
#
# Says "FAILED" for each check that fails and "N passed, M failed[, K skipped]" at the end.
# Neighbours are counted a second time in awk, over all pairs of the birds that the program wrote.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
program=$(realpath "${1:-build/boids}")
[ -x "$program" ] || { echo "no program $program: make build/boids"; echo "0 passed, 1 failed";
    exit 1; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cuda=no; case $program in *cuda*) cuda=yes ;; esac
small=${TEST_SMALL:+yes}
n=600; [ "$small" ] && n=150
passed=0 failed=0 skipped=0

report() {      # report STATUS NAME [WHAT WAS SEEN]
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)); echo "FAILED   $2: ${3:-}"
    fi
}
skip() { skipped=$((skipped + 1)); echo "skipped  $1"; }

# boids ARGUMENTS...: sets status; stdout and stderr go to files.
boids() { (cd "$work" && "$program" "$@") >"$work/out.txt" 2>"$work/err.txt"; status=$?; }
seen() {
    echo "exit status $status; $(head -c 300 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}
# value NAME [FILE]: of the last run with --check
value() { awk -v name="$1" '$1 == name { print $2 }' "${2:-$work/out.txt}"; }
is() { [ "$2" = "$3" ]; report $? "$1" "found $2, expected $3; $(seen)"; }

# ---- against all pairs ---------------------------------------------------------------------------

# count FILE: neighbours within 1 on the torus that the file's first line tells; whether a bird is
# outside it; speeds
count() {
    awk 'NR == 1 { for (k = 1; k <= NF; k++) if (!w && $k == "x") { w = $(k - 1);
        h = $(k + 1) + 0 } next }
         { x[n] = $1; y[n] = $2; v = sqrt($3 * $3 + $4 * $4); n++
           if (!(v >= 3 * (1 - 1e-6) && v <= 6 * (1 + 1e-6))) bad++
           if (!($1 >= 0 && $1 < w && $2 >= 0 && $2 < h)) out++ }
         END {
            for (i = 0; i < n; i++) for (j = 0; j < i; j++) {
                dx = x[i] - x[j]; dx = dx < 0 ? -dx : dx; if (dx > w / 2) dx = w - dx
                dy = y[i] - y[j]; dy = dy < 0 ? -dy : dy; if (dy > h / 2) dy = h - dy
                if (dx * dx + dy * dy <= 1) near += 2
            }
            printf "birds %d\nnear %d\nout %d\nbad %d\n", n, near, out, bad
         }' n=0 "$1"
}

against_all_pairs() {
    local steps near
    while read -r steps near; do
        boids --boids $n --near "$near" --steps "$steps" --write birds.txt --check
        report $status "$steps steps" "$(seen)"
        count "$work/birds.txt" >"$work/count.txt"
        is "$steps steps: birds" "$(value birds "$work/count.txt")" $n
        is "$steps steps: neighbours" "$(value near)" "$(value near "$work/count.txt")"
        is "$steps steps: birds outside" "$(value out "$work/count.txt")" 0
        # (at the start they have any speed up to 6)
        [ "$steps" = 0 ] || is "$steps steps: too slow or too fast" \
            "$(value bad "$work/count.txt")" 0
    done <<'LINES'
0 12
1 12
40 12
40 3
200 12
12 100
LINES
}

# ---- the same flock, bit for bit -----------------------------------------------------------------

same_flock() {
    local method walk digest steps=60 near
    boids --boids $n --steps $steps --check; digest=$(value digest) near=$(value near)
    [ ${#digest} -eq 16 ]; report $? "a digest" "$(seen)"
    for method in auto count sort fixed list list-packed tight; do
        for walk in auto cells strips modular hybrid; do
            boids --boids $n --steps $steps --method $method --walk $walk --check
            case $method,$walk in
            fixed,[sh]* | list*,[sh]* | tight,[sh]*)
                [ $status -eq 2 ] && grep -q BAD_WALK "$work/err.txt"
                report $? "refused: $method, $walk" "$(seen)"
                continue ;;
            esac
            is "$method, $walk: digest" "$(value digest)" "$digest"
            is "$method, $walk: near" "$(value near)" "$near"
            [ $cuda = no ] || is "$method, $walk: the serial steps" "$(value reference_agrees)" 1
        done
    done
    boids --boids $n --steps $steps --seed 2 --check
    [ "$(value digest)" != "$digest" ]; report $? "--seed: another flock" "$(seen)"
    boids --boids $n --steps $((steps + 1)) --check
    [ "$(value digest)" != "$digest" ]; report $? "another step: another flock" "$(seen)"
}

# Rules have consequences: they flock, so each sees more than at the start, and they fly with their
# neighbours.
they_flock() {
    local start
    [ "$small" ] && return
    boids --boids 3000 --steps 0 --check; start=$(value near)
    awk -v a="$start" 'BEGIN { exit !(a > 0.9 * 12 * 3000 && a < 1.1 * 12 * 3000) }';
        report $? "--near: 12 each at the start" "$start"
    boids --boids 3000 --steps 600 --check
    awk -v a="$start" -v b="$(value near)" 'BEGIN { exit !(b > 1.3 * a) }';
        report $? "they flock" "$start, then $(value near)"
    boids --boids 3000 --steps 600 --write birds.txt --check
    awk 'NR > 1 { v = sqrt($3 * $3 + $4 * $4); x[n] = $1; y[n] = $2; c[n] = $3 / v; s[n] = $4 / v;
        n++ }
         END { for (i = 0; i < n; i++) for (j = 0; j < i; j++)
                   if ((x[i] - x[j]) ^ 2 + (y[i] - y[j]) ^ 2 <= 1) {
                       sum += c[i] * c[j] + s[i] * s[j]; k++ }
               exit !(sum / k > 0.7) }' n=0 "$work/birds.txt"
    report $? "neighbours fly the same way"
}

# ---- command line --------------------------------------------------------------------------------

command_line() {
    local line
    boids --help
    [ $status -eq 0 ] && grep -q -- '--boids N' "$work/out.txt"; report $? "--help" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        boids $line
        [ $status -eq 2 ] && [ -s "$work/err.txt" ]; report $? "exit status 2: $line" "$(seen)"
    done <<'LINES'
--no-such-option
--boids
--boids 0
--boids 1.5
--boids 10x
--steps -1
--near 0
--near nan
--method fast
--walk left
--width 10
--png
LINES
    boids --boids 1 --steps 30 --check
    [ $status -eq 0 ] && [ "$(value near)" = 0 ]; report $? "one bird" "$(seen)"
    boids --boids 20 --steps 2 --write no/where.txt
    [ $status -eq 1 ] && grep -q '^boids: no/where.txt: ' "$work/err.txt"
    report $? "cannot write there" "$(seen)"
    boids --boids 20 --steps 2 --png /dev/null/a.png
    [ $status -eq 1 ] && grep -q '^boids: /dev/null/a.png: ' "$work/err.txt"
    report $? "cannot draw there" "$(seen)"
    boids --boids 200 --steps 5 --bench
    [ $status -eq 0 ] && grep -q '^200 boids, 5 steps: [0-9.]* ms a step, ' "$work/out.txt"
    report $? "--bench" "$(seen)"
}

# ---- pictures ------------------------------------------------------------------------------------

# picture FILE: width, height; pixels that are dark, mostly red, mostly green, mostly blue (below
# the line of text); white in that line
make_png_reader() {
    cat >"$work/png.c" <<'SOURCE'
#include <stdio.h>
#include <stb/stb_image.h>
int main(int argc, char **argv)
{
    int w, h, n, k, count[5] = {0, 0, 0, 0, 0};
    unsigned char *p = argc > 1 ? stbi_load(argv[1], &w, &h, &n, 3) : NULL;
    if (!p) return 1;
    for (k = 0; k < w * h; k++, p += 3) {
        int const most = p[0] > p[1] ? (p[0] > p[2] ? 0 : 2) : p[1] > p[2] ? 1 : 2;
        if (k < 26 * w) count[4] += p[0] > 200 && p[1] > 200 && p[2] > 200;
        else count[p[most] < 60 ? 0 : most + 1]++;
    }
    printf("%d %d %d %d %d %d %d\n", w, h, count[0], count[1], count[2], count[3], count[4]);
    return 0;
}
SOURCE
    local cflags=${STB_CFLAGS-$(pkg-config --cflags stb)} libs=${STB_LIBS-$(pkg-config --libs stb)}
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c99 "$work/png.c" -o "$work/png" $cflags $libs -lm
}

# is_picture FILE WIDTH HEIGHT: birds of all colors on a dark ground, and text
is_picture() {
    local got all
    got=$("$work/png" "$1") || got="0 0 0 0 0 0 0"
    all="$1 $2 $3 $got"
    # shellcheck disable=SC2086
    set -- $all
    [ "$4" -eq "$2" ] && [ "$5" -eq "$3" ] && [ "$6" -gt $(($2 * $3 / 5)) ] && [ "$7" -gt 300 ] &&
        [ "$8" -gt 300 ] &&
        [ "$9" -gt 300 ] && [ "${10}" -gt 300 ]
    report $? "${1##*/} is a picture" "width, height, dark, red, green, blue, text: ${all#* * * }"
}

pictures() {
    local size=1280 birds=3000
    [ "$small" ] && birds=200
    make_png_reader || { report 1 "compile a PNG reader"; return; }
    boids --boids $birds --steps 30 --png new/a.png
    [ $status -eq 0 ] && grep -q 'picture: new/a.png' "$work/out.txt"; report $? "--png" "$(seen)"
    is_picture "$work/new/a.png" $size $((size * 9 / 16))
    boids --boids $birds --steps 31 --png new/b.png
    ! cmp -s "$work/new/a.png" "$work/new/b.png"; report $? "they move" "$(seen)"
    [ "$small" ] && return
    boids --boids 100000 --steps 2 --width 960 --png crowd.png # smaller than pixels
    is_picture "$work/crowd.png" 960 540
    boids --boids 30 --steps 2 --width 640 --png few.png
    report $status "large birds" "$(seen)"
}

# ---- window --------------------------------------------------------------------------------------

window() {
    local display empty pid server
    . tests/examples/screen.sh
    (cd "$work" && env -u DISPLAY SDL_VIDEODRIVER=x11 "$program" --boids 50 --steps 2 --window) \
        >"$work/out.txt" 2>"$work/err.txt"
    status=$?
    if [ $status -eq 2 ]; then
        grep -q -- '--window: ' "$work/err.txt"; report $? "--window in a program without" "$(seen)"
        [ $cuda = yes ] || skip "the window of boids: no SDL2 (libsdl2-dev) when it was built"
        return
    fi
    [ $status -eq 1 ] && grep -q '^boids: --window: .' "$work/err.txt"
    report $? "--window without a screen" "$(seen)"
    command -v Xvfb >/dev/null || { skip "the window of boids: no Xvfb (xvfb)"; return; }
    start_screen 1280x720 || { report 1 "Xvfb starts"; return; }
    (cd "$work" && DISPLAY=:$display SDL_VIDEODRIVER=x11 exec "$program" --boids 3000 --window) \
        >"$work/out.txt" 2>"$work/err.txt" &
    pid=$!
    eventually screen_shows_it
    report $? "the window shows them" "$(screen_colors) colors; $(cat "$work/err.txt")"
    eventually screen_changes; report $? "they fly"
    if command -v xdotool >/dev/null; then
        keys "$pid"
    else
        skip "the keys of boids: no xdotool"
    fi
    kill -TERM $pid 2>/dev/null # SDL takes it as a click on the window's cross
    eventually gone $pid || kill -KILL $pid
    wait $pid; status=$?
    [ $status -eq 0 ] && grep -q '^3000 boids, [0-9]* steps' "$work/out.txt"
    report $? "closed" "$(seen)"
    stop_screen
}

press() { DISPLAY=:$display xdotool "$@"; sleep 0.3; }
# (it is there as soon as it is begun)
decodes() { "$work/png" "$work/$1" >/dev/null 2>&1; }

keys() {
    press mousemove 400 300; press key s
    eventually decodes boids_00.png; report $? "s saves a picture"
    is_picture "$work/boids_00.png" 1280 720
    press mousemove 900 500; press key 5; press key w; press key s
    eventually decodes boids_01.png; report $? "s saves another"
    is_picture "$work/boids_01.png" 1280 720
    press key space
    eventually screen_rests; report $? "space: they wait"
    press key space
    eventually screen_changes; report $? "space again: they fly on"
    press key q
    eventually gone "$1"; report $? "q quits"
}

against_all_pairs; same_flock; they_flock; command_line; pictures; window
echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
[ $failed -eq 0 ]
