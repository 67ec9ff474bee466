#!/bin/bash
# All groups of tests, one after the other, also after a failure; then the sums. Called by `make test`.
#
# A group is a target of the Makefile. It says "N passed, M failed[, K skipped]" on a line of its own
# (several times: they are added), or it runs cmocka, whose sums are read; else it counts as one.
set -u
cd "$(dirname "$0")/.." && rm -rf build/log && mkdir -p build/log || exit 1
jobs=${JOBS:-2}
groups="test-serial test-flags test-fuzz test-examples test-readme test-python consumers test-packages test-vendor test-portability test-figures test-emu test-cuda"

# Two jobs at a time, unless the user said -j: then his number holds.
make_group() {
    case ${MAKEFLAGS:-} in
    *jobserver*) ${MAKE:-make} --no-print-directory "$1" ;;
    *) ${MAKE:-make} --no-print-directory -j"$jobs" "$1" ;;
    esac
}

# Prints "passed failed skipped" of a group's log and exit status.
count() {
    awk -v status="$2" '
        /^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ { p += $1; f += $3; k += $5; said = 1 }
        /^\[  PASSED  \] [0-9]+ test/  { cp += $4 }
        /^\[  FAILED  \] [0-9]+ test/  { cf += $4 }
        /^\[  SKIPPED \] [0-9]+ test/  { ck += $4 }
        END {
            if (!said) { p = cp; f = cf; k = ck }
            if (!said && p + f + k == 0 && status == 0) p = 1
            if (status != 0 && f == 0) f = 1
            print p + 0, f + 0, k + 0
        }' "$1"
}

passed=0 failed=0 skipped=0
table=$(printf '%-18s %8s %8s %8s %8s %8s' group passed failed skipped seconds "of CPU")
TIMEFORMAT='%U %S'
cpu_seconds() { awk '{ printf "%.0f\n", $1 + $2 }' build/log/time; }

for group in $groups; do
    echo; echo "== $group"
    start=$SECONDS
    { time make_group "$group" 2>&1 </dev/null | tee "build/log/$group.log"; status=${PIPESTATUS[0]}; } 2>build/log/time
    read -r p f k < <(count "build/log/$group.log" "$status")
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + k))
    table+=$(printf '\n%-18s %8d %8d %8d %8d %8d' "$group" "$p" "$f" "$k" $((SECONDS - start)) "$(cpu_seconds)")
done

echo; echo "== all tests (logs: build/log)"
echo "$table"
if [ $skipped -gt 0 ]; then echo; cat build/log/*.log | grep '^skipped ' | sort -u | head -n 20; fi
echo
if [ $failed -eq 0 ]; then echo "All tests passed."; else echo "Some tests FAILED."; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
