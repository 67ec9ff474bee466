#!/bin/bash
# Tests packaging/fortran: is the module what the headers are (the size of every type, the number of
# every constant), do calls agree with brute force, and does the Lennard-Jones liquid keep its
# energy? Skipped without gfortran (make deps installs it) or python3.
#
#   tests/fortran/run.sh
#
# Says "ok", "FAILED" or "skipped" per check, and "N passed, M failed[, K skipped]" at the end.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
out=build/fortran gfortran=${GFORTRAN:-gfortran} passed=0 failed=0
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT

report() {      # report STATUS NAME [WHAT WAS SEEN]
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "ok       fortran: $2"; return; fi
    failed=$((failed + 1)); echo "FAILED   fortran: $2: ${3:-}"
}
for tool in "$gfortran" python3; do
    command -v "$tool" >/dev/null || {
        echo "skipped  fortran: no $tool"; echo "0 passed, 0 failed, 1 skipped"; exit 0
    }
done
${MAKE:-make} -s fortran >"$work/log" 2>&1 </dev/null
report $? "make fortran" "$(tail -n 5 "$work/log")"
[ ! -s "$work/log" ]; report $? "no warning" "$(head -n 5 "$work/log")"

# The types of both modules, and the constants, as C has them.
sizes() {
    gcc -I. "$@" $out/sizes.c -o "$work/sizes_c" && "$work/sizes_c"
}
{
    sizes && sizes -DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double -DNBODY_REAL=double
} >"$work/c.txt" 2>"$work/log"
$gfortran -I$out -J"$work" $out/sizes.f90 $out/nearfield.o -o "$work/sizes_f" \
    2>>"$work/log" && "$work/sizes_f" >"$work/f.txt"
[ "$(wc -l <"$work/c.txt")" -gt 300 ] && cmp -s "$work/c.txt" "$work/f.txt"
report $? "types and constants" "$(tail -n 3 "$work/log"; diff "$work/c.txt" "$work/f.txt" | head)"

$gfortran -std=f2018 -Wall -O1 -I$out tests/fortran/check.f90 $out/nearfield.o -o "$work/check" \
    -Lbuild -lnearfield -Wl,-rpath,"$PWD/build" >"$work/log" 2>&1 &&
    "$work/check" >"$work/check.txt"
report $? "check.f90 runs" "$(head -n 5 "$work/log")"
[ "$(grep -c '^ok' "$work/check.txt")" = 4 ] && ! grep -q '^FAILED' "$work/check.txt"
report $? "calls agree with brute force" "$(cat "$work/check.txt")"

# lj: energy per atom at the start is 3/2 of the temperature, and the potential of the crystal,
# which awk sums over all images of its 4 atoms.
crystal=$(awk 'function law(r,   a) { a = r ^ -6; return 4 * (a * a - a) }
    BEGIN {
        cut = 2.5; a = cut ^ -6; slope = 24 * (2 * a * a - a) / cut; edge = (4 / 0.8442) ^ (1 / 3)
        for (x = -8; x <= 8; x++) for (y = -8; y <= 8; y++) for (z = -8; z <= 8; z++) {
            r = edge / 2 * sqrt(x * x + y * y + z * z)
            if ((x + y + z) % 2 == 0 && r > 0 && r < cut)
                sum += law(r) - law(cut) + (r - cut) * slope
        }
        printf "%.6f", sum / 2
    }')
$out/lj 300 5 >"$work/lj.txt" 2>&1
report $? "lj runs" "$(tail -n 3 "$work/lj.txt")"
awk -v crystal="$crystal" 'NR == 1 { d = $8 - 1.5 * $4 - crystal; exit !(d * d < 1e-6) }' \
    "$work/lj.txt"
report $? "lj: the energy of the crystal, $crystal" "$(head -n 1 "$work/lj.txt")"
tail -n 1 "$work/lj.txt" | sed 's/[,;:]/ /g' | awk '
    { exit !($1 == 500 && $5 > 3 && $5 < 150 && $16 < 0.003 && $18 < 1e-10) }'
report $? "lj: energy and momentum are kept" "$(tail -n 1 "$work/lj.txt")"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
