#!/bin/bash
# Groups of tests, two at a time, also after a failure; then the sums. Called by `make test` and
# `make test-all`:
#
#   tests/run_all.sh PREPARE GROUP...     PREPARE: a target that makes what several groups need
#
# A group is a target of the Makefile. It says "N passed, M failed[, K skipped]" on a line of its
# own (several times: they are added), or it runs cmocka, whose sums are read; else it counts as
# one. What it says is in build/log, and shown when it has ended.
# JOBS (2) at a time: they are shared by two groups, since few keep two cores busy to their end.
#
# The last lines of a run that fails name each check that failed, and its log. The logs of such a
# run stay in build/log.failed until another one fails.
set -u
cd "$(dirname "$0")/.." && mkdir -p build || exit 1
jobs=${JOBS:-2}
lanes=$((jobs > 1 ? 2 : 1))
prepare=$1; shift
groups=$*

# Two runs in one folder would write the same files. (Programs do not inherit the lock, since some
# stay for a while: wineserver.)
exec 9>build/test.lock
if command -v flock >/dev/null && ! flock -n 9; then
    echo "Tests run in this folder already. Wait for its end, or test a copy of the folder." >&2
    exit 1
fi
rm -rf build/log && mkdir build/log || exit 1
export LOGS=$PWD/build/log      # whole logs of what fails go there, too

# As many jobs as a lane has, unless the user said -j: then his number holds.
make_group() {
    export JOBS=$((jobs / lanes))
    case ${MAKEFLAGS:-} in
    *jobserver*) ${MAKE:-make} --no-print-directory "$1" ;;
    *) ${MAKE:-make} --no-print-directory -j"$JOBS" "$1" ;;
    esac 9>&-
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

# In the end build/log/GROUP.sum has "passed failed skipped exit-status seconds user-seconds
# system-seconds".
run_group() {
    local group=$1 log=build/log/$1.log start=$SECONDS status
    { time make_group "$group" >"$log" 2>&1 </dev/null; status=$?; } 2>"build/log/$group.time"
    echo "$(count "$log" "$status") $status $((SECONDS - start)) $(cat "build/log/$group.time")" \
        >"build/log/$group.sum"
    printf '\n== %s\n%s\n' "$group" "$(cat "$log")"
}

# What failed in a group, one line each: what its log calls FAILED; where that is nothing, how it
# ended.
name_failures() {
    local group=$1 status=$2 log=build/log/$1.log
    if grep -q '^FAILED ' "$log" 2>/dev/null; then sed -n "s/^FAILED  */  $group: /p" "$log" |
        cut -c 1-200
    else
        echo "  $group: exit status $status; its last words:"
        grep . "$log" 2>/dev/null | tail -n 5 | cut -c 1-200 | sed 's/^/      | /'
    fi
    echo "      (log: build/log.failed/$group.log)"
}

# The run's logs, where the next run does not remove them.
keep_logs() { rm -rf build/log.failed && cp -r build/log build/log.failed; }

# What several groups need, before two of them make it at once.
if ! ( set -o pipefail; ${MAKE:-make} --no-print-directory -j"$jobs" "$prepare" 2>&1 9>&- |
    tee build/log/prepared.log ); then
    keep_logs
    echo "FAILED   make $prepare, so nothing was tested (log: build/log.failed/prepared.log)"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi

for group in $groups; do
    while (( $(jobs -rp | wc -l) >= lanes )); do wait -n; done
    echo "== $group begins"
    run_group "$group" &
done
wait

passed=0 failed=0 skipped=0 cpu=0 failures=
echo; echo "== all tests (logs: build/log)"
printf '%-18s %8s %8s %8s %8s %8s\n' group passed failed skipped seconds "of CPU"
for group in $groups; do
    read -r p f k status seconds user system < <(cat "build/log/$group.sum" 2>/dev/null ||
        echo 0 1 0 none 0 0 0)
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + k))
    [ "$f" -eq 0 ] || failures+=$(name_failures "$group" "$status")$'\n'
    cpu=$(awk "BEGIN { print $cpu + $user + $system }")
    printf '%-18s %8d %8d %8d %8d %8.0f\n' "$group" "$p" "$f" "$k" "$seconds" \
        "$(awk "BEGIN { print $user + $system }")"
done
printf '%-18s %8d %8d %8d %8d %8.0f\n' "all" $passed $failed $skipped $SECONDS "$cpu"
if [ $skipped -gt 0 ]; then echo; cat build/log/*.log | grep '^skipped ' | sort -u | head -n 40; fi
echo
if [ $failed -eq 0 ];
    then echo "All tests passed in $((SECONDS / 60)):$(printf %02d $((SECONDS % 60))) minutes."
else keep_logs; printf 'Some tests FAILED:\n%s' "$failures"; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
