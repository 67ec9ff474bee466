#!/bin/bash
# Runs test programs, JOBS (2) at a time, shows what failed, and sums up: tests/unit/run.sh
# PROGRAM...
#
# A program may do less work when the variable TEST_SMALL is set. The short ones of these are also
# run under valgrind, so small (NAME.plain only: sanitizers and valgrind do not go together). With
# sanitizers all do less; FULL: as much.
#
# Of the big products each of the builds runs a part, another one; UGRID_TEST_SHARE=1 make
# test-serial runs all of each.
set -u
. "$(dirname "$0")/../common/units.sh"

# cmocka's own sums, of all groups in the program.
sum() {
    sed -n "s/^\[  $1 *\] \([0-9]*\) test(s).*/\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'
}

# The names that cmocka gave; of a program that ended early, the test in which it did.
failed_tests() {
    awk '/^\[ RUN / { now = $NF }
         /^\[ +OK \]/ { now = "" }
         /^\[  FAILED  \] [A-Za-z0-9_]+$/ { if (!said[$NF]++) printf "%s, ", $NF; now = "" }
         END { if (now) printf "it ended in %s, ", now }' "$log"
}

skipped_tests() {
    sed -n 's/^\[  SKIPPED \] \(test_[A-Za-z0-9_]*\)$/\1/p' "$log" | sort -u | paste -sd' ' -
}

# run NAME COMMAND...
run() {
    local name=$1 start=$SECONDS status p f k; shift
    log=build/tests/$name.log
    timeout 3600 $same_addresses "$@" >"$log" 2>&1 </dev/null
    status=$?
    p=$(sum PASSED) f=$(sum FAILED) k=$(sum SKIPPED)
    if [ $((p + f + k)) -eq 0 ]; then echo "(no sum from cmocka)" >>"$log"; f=1; fi
    # it crashed, leaked or hung
    if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + k))
    [ "$k" -eq 0 ] || echo "skipped  $name: $(skipped_tests): make test-unit has what takes long"
    if [ "$f" -eq 0 ]; then echo "ok       $name: $p tests, $((SECONDS - start)) s"; return; fi
    echo "FAILED   $name: $f of $((p + f)) ($(failed_tests)exit status $status; log: $log)"
    grep -v '^\[ RUN  \|^\[  *OK ' "$log" | tail -n 40 | cut -c 1-300 | sed 's/^/    | /'
    keep "$log" "$name"
}

# Is it short, of half a second without valgrind? FULL: of three. (By name: a busy machine must not
# leave out others than an idle one.)
short() {
    case $1 in
    test_faults.* | test_floats.* | test_limits.* | test_nlist.* | test_lbvh.*) ;;
    test_nbody.* | test_verify.*) [ "${FULL:-}" ] ;;
    *) false ;;
    esac
}

# group NAME: the group of its tests that is short, where not all of them are.
group() {
    case $1 in
    test_nlist.*) echo TEST_GROUP=walls ;;
    test_lbvh.*) [ "${FULL:-}" ] || echo TEST_GROUP=calls ;;
    esac
}

under_valgrind() {
    local name=$1 program=$2 why=
    export TEST_SMALL=1
    if ! valgrind -q true >/dev/null 2>&1; then why="no valgrind"
    elif ! short "$name"; then why="takes too long there"; fi
    if [ "$why" ]; then
        echo "skipped  $name under valgrind: $why"; skipped=$((skipped + 1)); return
    fi
    # shellcheck disable=SC2046
    run "$name.valgrind" env $(group "$name") \
        valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=all "$program"
}

# part PROGRAM: of test_ugrid's big products one k-th, and which.
part() {
    case $1 in
    *.quick-double) echo UGRID_TEST_SHARE=256 UGRID_TEST_LOT=5 ;;
    *.quick) echo UGRID_TEST_SHARE=96 UGRID_TEST_LOT=9 ;;
    *.double-sanitized)
        echo UGRID_TEST_SHARE=192 UGRID_TEST_LOT=7; [ "${FULL:-}" ] || echo TEST_SMALL=1 ;;
    *.sanitized)
        echo UGRID_TEST_SHARE=$([ "${TEST_QUICK:-}" ] && echo 96 || echo 48) UGRID_TEST_LOT=3
        [ "${FULL:-}" ] || echo TEST_SMALL=1 ;;
    *.double) echo UGRID_TEST_SHARE=8 UGRID_TEST_LOT=1 ;;
    *) echo UGRID_TEST_SHARE=4 UGRID_TEST_LOT=0 ;;
    esac
}

export UBSAN_OPTIONS=print_stacktrace=1
for program; do
    name=$(basename "$program")
    # shellcheck disable=SC2046
    unit run "$name" env $([ "${UGRID_TEST_SHARE:-}" ] || part "$name") "$program"
    case $name in *.plain) unit under_valgrind "$name" "$program" ;; esac
done
all_units
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
