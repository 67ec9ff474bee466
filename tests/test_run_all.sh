#!/bin/bash
# Tests tests/run_all.sh: does it add up, does a run that fails end with the names of what failed,
# and are its logs kept? And: does a test program fail where its filter matches no test?
#
#   tests/test_run_all.sh
#
# In a folder of its own a small program takes make's place: its "groups" say what real ones say.
# The last line is "N passed, M failed".
# SPDX-License-Identifier: MIT OR Unlicense
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
passed=0 failed=0
unset MAKEFLAGS LOGS DEPS_DONE

report() {      # report STATUS NAME
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1)); echo "FAILED   run_all: $2"; sed 's/^/    | /' "$work/said"
}

mkdir -p "$work/tests/unit" "$work/tests/common" && cp tests/run_all.sh "$work/tests/" &&
    cp tests/unit/run.sh "$work/tests/unit/" &&
    cp tests/common/units.sh "$work/tests/common/" || exit 1
cat >"$work/make" <<'END'
#!/bin/bash
for group; do :; done
case $group in
prepared)        [ ! -e unprepared ] || { echo "cc: a header is missing"; exit 1; } ;;
good)            echo "ok       one"; echo "3 passed, 0 failed, 1 skipped" ;;
one-check-fails)
    echo "ok       one"; echo "FAILED   the moon: it is 3 km away"; echo "    | more"
    echo "2 passed, 1 failed"; exit 1 ;;
dies)            echo "1 passed, 0 failed"; echo "cc: killed by signal 9"; exit 137 ;;
by-cmocka)       echo "[ RUN      ] test_it"; echo "[  PASSED  ] 4 test(s)." ;;
nothing-said)    ;;
hangs)           touch hanging; until [ -e enough ]; do sleep 0.05; done ;;
program)         mkdir -p build/tests; tests/unit/run.sh "$PWD/bad.program" ;;
esac
END
cat >"$work/bad.program" <<'END'
#!/bin/sh
printf '%s\n' '[ RUN      ] test_good' '[       OK ] test_good' '[ RUN      ] test_bad' \
    'x.c:1: check failed' '[  FAILED  ] test_bad' \
    '[  PASSED  ] 1 test(s).' '[  FAILED  ] all: 1 test(s), listed below:' '[  FAILED  ] test_bad'
exit 1
END
chmod +x "$work/make" "$work/bad.program"

# run GROUPS...: sets status; what is said goes into a file.
run() {
    (cd "$work" && MAKE=$work/make JOBS=${jobs:-2} tests/run_all.sh prepared "$@") >"$work/said" \
        2>&1 </dev/null; status=$?
}
says() { grep -qx -- "$1" "$work/said"; }
# last TEXT LINES: among the last lines
last() { tail -n "$2" "$work/said" | grep -qF -- "$1"; }
# there FILE TEXT: the kept log has it
there() { grep -qF -- "$2" "$work/build/log.failed/$1" 2>/dev/null; }

run good by-cmocka nothing-said
[ $status -eq 0 ] && says '8 passed, 0 failed, 1 skipped'
report $? "a run without a failure: the sums"
[ ! -e "$work/build/log.failed" ]; report $? "a run without a failure keeps no logs"

run good one-check-fails by-cmocka
[ $status -eq 1 ] && says '9 passed, 1 failed, 1 skipped'; report $? "a planted failure: the sums"
last 'one-check-fails: the moon: it is 3 km away' 3
report $? "a planted failure: the last lines name the check"
last '(log: build/log.failed/one-check-fails.log)' 2 && there one-check-fails.log 'it is 3 km away'
report $? "a planted failure: the last lines name the log, and it is there"

run good
[ $status -eq 0 ] && there one-check-fails.log 'it is 3 km away'
report $? "the next run leaves the logs of the one that failed"

run dies good one-check-fails
[ $status -eq 1 ] && says '6 passed, 2 failed, 1 skipped'
report $? "a group that dies without a word of failure: the sums"
last 'dies: exit status 137' 10 && last 'killed by signal 9' 10 && last 'the moon' 10 &&
    there dies.log 'killed by signal 9'
report $? "a group that dies: named with its last words, beside the other one"

run program
[ $status -eq 1 ] && last 'bad.program: 1 of 2 (test_bad, exit status 1' 4 &&
    there bad.program.log 'check failed'
report $? "a test program: its test is named, and its own log is kept"

touch "$work/unprepared"
run good
[ $status -eq 1 ] && last 'make prepared' 2 && last '0 passed, 1 failed' 1 &&
    there prepared.log 'a header is missing'
report $? "what cannot be prepared is named"
rm "$work/unprepared"

if command -v flock >/dev/null; then
    run hangs & other=$!
    until [ -e "$work/hanging" ]; do sleep 0.05; kill -0 $other 2>/dev/null || break; done
    (cd "$work" && MAKE=$work/make tests/run_all.sh prepared good) >"$work/second" 2>&1; second=$?
    touch "$work/enough"
    wait $other
    [ $second -eq 1 ] && grep -q 'run in this folder already' "$work/second"
    report $? "a second run in the same folder is refused"
fi

# A program of two tests in two groups, over tests/common/testing.h.
cat >"$work/filtered.c" <<'END'
typedef float toy_real;
typedef struct toy_allocator {
    void *(*alloc)(size_t, void *);
    void (*free)(void *, size_t, void *);
    void *user;
} toy_allocator;
#define TESTED toy
#include "tests/common/testing.h"
static void test_one(void **state) { (void)state; }
static void test_two(void **state) { (void)state; }
static const struct CMUnitTest first[] = {TEST(test_one)}, second[] = {TEST(test_two)};
int main(void)
{
    int failed = 0;
    if (getenv("TOY_TEST_ONLY")) cmocka_set_test_filter(getenv("TOY_TEST_ONLY"));
    RUN_GROUP(failed, first, NULL);
    RUN_GROUP(failed, second, NULL);
    return failed;
}
END
# filtered WANTED-STATUS GROUP FILTER: empty: none
filtered() {
    env ${2:+TEST_GROUP="$2"} ${3:+TOY_TEST_ONLY="$3"} "$work/filtered" >"$work/said" 2>&1
    [ $? -eq "$1" ]
    report $? "a program of test_one and test_two, group '$2', filter '$3': exit status $1"
}
# shellcheck disable=SC2046
${CC:-cc} -std=c99 -include stddef.h -I. ${CMOCKA_CFLAGS:-$(pkg-config --cflags cmocka)} \
    "$work/filtered.c" -o "$work/filtered" ${CMOCKA_LIBS:-$(pkg-config --libs cmocka)} -lm \
    >"$work/said" 2>&1
report $? "a program with tests/common/testing.h compiles"
filtered 0 '' ''; filtered 0 '' test_one; filtered 0 '' 'test_t?o'; filtered 0 '' '*two'
filtered 1 '' test; filtered 1 '' 'test_three*'
filtered 0 second ''; filtered 0 second 'test_*'; filtered 1 second test_one; filtered 1 third ''
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
