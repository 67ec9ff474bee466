#!/bin/bash
# Tests packaging/site without a network: is every public function in the API reference, with its
# prototype, its comment and the line where it stands; do links lead somewhere? With FULL=1 also all
# links of the site that `make site` makes, for which MkDocs comes from PyPI.
#
#   tests/site/run.sh
#
# The functions are those that gcc sees (-aux-info), not those that the reference finds. Says "ok",
# "FAILED" or "skipped" per check, and "N passed, M failed[, K skipped]" at the end.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
for tool in python3 gcc; do
    command -v $tool >/dev/null || {
        echo "skipped  site: no $tool"; echo "0 passed, 0 failed, 1 skipped"; exit 0
    }
done
{
    grep -ohE '\b(UGRID|LBVH|NLIST|NBODY)_WITH_[A-Z]+\b' more/*.h | sort -u |
        grep -v _DOUBLE | sed 's/^/#define /'
    for header in UGRID LBVH NLIST NBODY; do echo "#define ${header}_CUDA"; done
    for header in ugrid lbvh nlist nbody; do echo "#include \"$header.h\""; done
} >"$work/all.c"
{
    gcc -std=c99 -I. -fsyntax-only -aux-info "$work/aux.txt" "$work/all.c" &&
        python3 packaging/site/site.py . "$work/site" &&
        python3 tests/site/check.py . "$work/site/pages" "$work/aux.txt"
} >"$work/said.txt" 2>&1 || echo "FAILED   site: $(tail -n 3 "$work/said.txt")" >>"$work/said.txt"
if [ "${FULL:-}" ]; then
    ${MAKE:-make} -s site >"$work/log" 2>&1 </dev/null && echo "ok       site: make site" ||
        echo "FAILED   site: make site: $(tail -n 5 "$work/log")"
fi >>"$work/said.txt"
cat "$work/said.txt"
passed=$(grep -c '^ok ' "$work/said.txt") failed=$(grep -c '^FAILED' "$work/said.txt")
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
