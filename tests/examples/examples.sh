# Read by the tests of the examples: . "$(dirname "$0")/examples.sh" NAME [PROGRAM].
# SPDX-License-Identifier: MIT OR Unlicense
#
#   $program, $work   build/NAME unless PROGRAM is given; a folder that goes away when the script
#                     ends
#   $cuda, $small     yes or no: is it the GPU's program; yes or empty: TEST_SMALL
#   run ARGUMENTS...  the program, in $work: sets status; stdout and stderr go to out.txt and
#                     err.txt
#   report STATUS NAME [WHAT WAS SEEN]      counts a check, and tells of one that failed
#   sum_up            the last command: how many checks passed

set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
program=$(realpath "${2:-build/$1}")
[ -x "$program" ] || { echo "no program $program: make build/$1"; echo "0 passed, 1 failed"; exit 1;
    }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cuda=no; case $program in *cuda*) cuda=yes ;; esac
small=${TEST_SMALL:+yes}
passed=0 failed=0 skipped=0

report() {
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)); echo "FAILED   $2: ${3:-}"
    fi
}
skip() { skipped=$((skipped + 1)); echo "skipped  $1"; }
sum_up() {
    echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
    [ $failed -eq 0 ]
}

run() { (cd "$work" && "$program" "$@") >"$work/out.txt" 2>"$work/err.txt"; status=$?; }

# ---- numbers ------------------------------------------------------------------------------------

# value NAME [FILE]: as printed with --check, a name and a number a line
value() { awk -v name="$1" '$1 == name { print $2 }' "${2:-$work/out.txt}"; }
# figure NAME: from the last line, "figures: NAME VALUE NAME VALUE ..."
figure() {
    awk -v name="$1" '/^figures:/ { for (k = 2; k < NF; k += 2) if ($k == name) print $(k + 1) }' \
        "$work/out.txt"
}
is() { [ "$(value "$2")" = "$3" ]; report $? "$1: $2" "$(value "$2"), not $3; $(seen)"; }
# times A B: product, for tolerances
times() { awk -v a="$1" -v b="$2" 'BEGIN { d = a * b; print d < 0 ? -d : d }'; }
# within A B DISTANCE, near A B RELATIVE: do two numbers agree?
within() {
    awk -v a="$1" -v b="$2" -v t="$3" \
        'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b != "" && d <= t) }'
}
near() { within "$1" "$2" "$(times "$2" "$3")"; }
expect() { within "$2" "$3" "$4"; report $? "$1" "found $2, expected $3 within $4"; }
expect_near() { near "$2" "$3" "$4"; report $? "$1" "found $2, expected $3 within $4 of it"; }

# ---- pictures -----------------------------------------------------------------------------------

# make_png_reader [C]: makes $work/png, which prints width, height and number of colors of a PNG
# that decodes, and what the statements in C print, which know argv, w, h and rgb.
make_png_reader() {
    cat >"$work/png.c" <<SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <stb/stb_image.h>
int main(int argc, char **argv)
{
    int w, h, n, k, colors = 0;
    unsigned char *seen = calloc(1, 1 << 24),
                  *rgb = argc > 1 ? stbi_load(argv[1], &w, &h, &n, 3) : NULL;
    if (!rgb || !seen) return 1;
    for (k = 0; k < w * h; k++) {
        unsigned char *cell = seen + (rgb[3 * k] | rgb[3 * k + 1] << 8 | rgb[3 * k + 2] << 16);
        colors += !*cell;
        *cell = 1;
    }
    printf("%d %d %d", w, h, colors);
    ${1:-}
    return 0;
}
SOURCE
    # shellcheck disable=SC2046,SC2086
    ${CC:-cc} -std=c99 "$work/png.c" -o "$work/png" ${STB_CFLAGS-$(pkg-config --cflags stb)} \
        ${STB_LIBS-$(pkg-config --libs stb)} -lm ||
        { report 1 "compile a PNG reader"; return 1; }
}

# is_picture FILE WIDTH HEIGHT COLORS: decodes, and has more colors; HEIGHT +600: or higher. Sets
# more, to what the reader adds.
is_picture() {
    local width height colors
    read -r width height colors more <<<"$("$work/png" "$work/$1" || echo 0 0 0)"
    [ "$width" -eq "$2" ] && [ "$colors" -gt "$4" ] &&
        case $3 in +*) [ "$height" -ge "$3" ] ;; *) [ "$height" -eq "$3" ] ;; esac
    report $? "$1 is a picture" "width, height, colors: $width $height $colors"
}
