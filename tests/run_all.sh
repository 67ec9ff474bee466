#!/bin/bash
# All groups of tests, two at a time, also after a failure; then the sums. Called by `make test`.
#
# A group is a target of the Makefile. It says "N passed, M failed[, K skipped]" on a line of its own (several times: they are
# added), or it runs cmocka, whose sums are read; else it counts as one. What it says is in build/log, and shown when it has ended.
# JOBS (2) at a time: they are shared by two groups, since few keep two cores busy to their end.
set -u
cd "$(dirname "$0")/.." && rm -rf build/log && mkdir -p build/log || exit 1
jobs=${JOBS:-2}
lanes=$((jobs > 1 ? 2 : 1))
# The longest first.
groups="test-emu test-serial test-examples test-vendor test-cuda test-readme test-python consumers test-fuzz test-portability
    test-packages test-flags test-figures"

# As many jobs as a lane has, unless the user said -j: then his number holds.
make_group() {
    export JOBS=$((jobs / lanes))
    case ${MAKEFLAGS:-} in
    *jobserver*) ${MAKE:-make} --no-print-directory "$1" ;;
    *) ${MAKE:-make} --no-print-directory -j"$JOBS" "$1" ;;
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

TIMEFORMAT='%U %S'

# In the end build/log/GROUP.sum has "passed failed skipped seconds user-seconds system-seconds".
run_group() {
    local group=$1 log=build/log/$1.log start=$SECONDS status
    { time make_group "$group" >"$log" 2>&1 </dev/null; status=$?; } 2>"build/log/$group.time"
    echo "$(count "$log" "$status") $((SECONDS - start)) $(cat "build/log/$group.time")" >"build/log/$group.sum"
    printf '\n== %s\n%s\n' "$group" "$(cat "$log")"
}

if [ "${FULL:-}" ] || [ "${CI:-}" = true ]; then groups="$groups test-compilers"; fi

# What several groups need, before two of them make it at once.
${MAKE:-make} --no-print-directory -j"$jobs" test-prepared || exit 1

for group in $groups; do
    while (( $(jobs -rp | wc -l) >= lanes )); do wait -n; done
    echo "== $group begins"
    run_group "$group" &
done
wait

passed=0 failed=0 skipped=0
echo; echo "== all tests (logs: build/log)"
printf '%-18s %8s %8s %8s %8s %8s\n' group passed failed skipped seconds "of CPU"
for group in $groups; do
    read -r p f k seconds user system < <(cat "build/log/$group.sum" 2>/dev/null || echo 0 1 0 0 0 0)
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + k))
    printf '%-18s %8d %8d %8d %8d %8.0f\n' "$group" "$p" "$f" "$k" "$seconds" "$(awk "BEGIN { print $user + $system }")"
done
if [ $skipped -gt 0 ]; then echo; cat build/log/*.log | grep '^skipped ' | sort -u | head -n 20; fi
echo
if [ $failed -eq 0 ]; then echo "All tests passed in $((SECONDS / 60)):$(printf %02d $((SECONDS % 60))) minutes."; else echo "Some tests FAILED."; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
