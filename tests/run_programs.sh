#!/bin/bash
# Runs test programs, JOBS (2) at a time, shows what failed, and sums up: tests/run_programs.sh PROGRAM...
#
# A program may do less work when the variable TEST_SMALL is set. One that then ends within three seconds is
# also run under valgrind (NAME.plain only: sanitizers and valgrind do not go together).
set -u
jobs=${JOBS:-2}

# cmocka's own sums, of all groups in the program.
sum() { sed -n "s/^\[  $1 *\] \([0-9]*\) test(s).*/\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'; }

# run NAME COMMAND...: leaves "passed failed skipped" in NAME.sums.
run() {
    local name=$1 start=$SECONDS status p f k text; shift
    log=build/tests/$name.log
    timeout 600 "$@" >"$log" 2>&1 </dev/null
    status=$?
    p=$(sum PASSED) f=$(sum FAILED) k=$(sum SKIPPED)
    if [ $((p + f + k)) -eq 0 ]; then echo "(no sum from cmocka)" >>"$log"; f=1; fi
    if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi                    # it crashed, leaked or hung
    echo "$p $f $k" >"build/tests/$name.sums"
    if [ "$f" -eq 0 ]; then text="ok       $name: $p tests, $((SECONDS - start)) s"
    else
        text="FAILED   $name: $f of $((p + f)) (exit status $status; log: $log)"$'\n'
        text+=$(grep -v '^\[ RUN  \|^\[  *OK ' "$log" | tail -n 40 | cut -c 1-300 | sed 's/^/    | /')
    fi
    printf '%s\n' "$text"
}

under_valgrind() {
    local name=$1 program=$2 why=
    export TEST_SMALL=1
    if ! valgrind -q true >/dev/null 2>&1; then why="no valgrind"
    elif timeout 3 "$program" >/dev/null 2>&1 </dev/null; [ $? -eq 124 ]; then why="takes too long there"; fi
    if [ "$why" ]; then
        echo "skipped  $name under valgrind: $why"; echo "0 0 1" >"build/tests/$name.valgrind.sums"; return
    fi
    run "$name.valgrind" valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=all "$program"
}

export UBSAN_OPTIONS=print_stacktrace=1
rm -f build/tests/*.sums
for program; do
    while (( $(jobs -rp | wc -l) >= jobs )); do wait -n; done
    name=$(basename "$program")
    {
        run "$name" "$program"
        case $name in *.plain) under_valgrind "$name" "$program" ;; esac
    } &
done
wait
cat build/tests/*.sums /dev/null | awk '
    { p += $1; f += $2; k += $3 }
    END { printf "%d passed, %d failed, %d skipped\n", p, f, k; exit f > 0 }'
