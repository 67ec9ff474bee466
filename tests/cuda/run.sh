#!/bin/sh
# Runs what `make cuda` built, on a machine with a GPU. This file lies beside the programs.
#
#   sh run.sh             the tests, each within a minute (sh run.sh tests --share 1: all cases of
#                         each, many minutes;
#                         --only NAME: tests whose names hold this). The logs have the milliseconds
#                         of each test.
#   sh run.sh sanitize    the tests under compute-sanitizer: memcheck, racecheck, initcheck,
#                         synccheck
#   sh run.sh bench       the benchmarks (further words go to each of them; with --only, those that
#                         have such groups; with
#                         --csv x.csv, each writes a file of its own: x.bench_ugrid.csv ...)
#   sh run.sh figures     what the sources' figures show, as figures/*.csv (further words:
#                         figures.sh --help)
#   sh run.sh demo        the examples, each with --demo
#
# The tests may do less work when TEST_SMALL is set, as it is under the sanitizer.
set -u
cd "$(dirname "$0")" || exit 1
passed=0 failed=0 skipped=0

have() { command -v "$1" >/dev/null 2>&1; }
sum() {
    sed -n "s/^\[  $1 *\] \([0-9]*\) test(s).*/\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }'
}

# run NAME COMMAND...: the sums are cmocka's; a crash is a failure; 77 means "cannot be tested
# here".
run() {
    name=$1; shift
    log=$name.log start=$(date +%s)
    "$@" >"$log" 2>&1 </dev/null
    status=$?
    p=$(sum PASSED) f=$(sum FAILED) k=$(sum SKIPPED)
    if [ $status -eq 78 ]; then return; fi              # --only names none of its tests
    if [ $status -eq 77 ]; then k=1; elif [ $status -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ $((p + f + k)) -eq 0 ]; then p=1; fi        # a program without cmocka that ended well
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + k))
    if [ "$f" -eq 0 ]; then
        echo "ok       $name: $p passed, $k skipped, $(($(date +%s) - start)) s"; return
    fi
    echo "FAILED   $name: $f of $((p + f)) (exit status $status; log: $(pwd)/$log)"
    grep -v '^\[ RUN  \|^\[  *OK ' "$log" | tail -n 60 | sed 's/^/    | /'
}

find_sanitizer() {
    for s in "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer \
        /usr/local/cuda-*/bin/compute-sanitizer; do
        if [ -x "$s" ]; then echo "$s"; return; fi
    done
}

tests() { for t in ./test_*; do [ -f "$t" ] && [ -x "$t" ] && echo "${t#./}"; done; }

run_tests() { for t in $(tests); do run "$t" "./$t" "$@"; done; }

run_sanitized() {
    sanitizer=$(find_sanitizer)
    if [ ! "$sanitizer" ]; then
        echo "no compute-sanitizer found: install the CUDA toolkit, or put it into PATH"; exit 1
    fi
    export TEST_SMALL=1
    for t in $(tests); do
        for tool in memcheck racecheck initcheck synccheck; do
            # the tests provoke CUDA errors, and check that they come back
            more="--report-api-errors no"
            [ $tool = memcheck ] && more="$more --leak-check full"
            # Subtrees meet in shared memory by exchanges that acquire and release, which racecheck
            # does not follow: it would warn. The emulator does follow them (make test-emu,
            # ThreadSanitizer).
            [ $tool = racecheck ] &&
                more="$more --kernel-name-exclude kernel_substring=lbvh_i_merge_kernel"
            [ $tool = racecheck ] &&
                more="$more --kernel-name-exclude kernel_substring=lbvh_i_round_kernel"
            # shellcheck disable=SC2086
            run "$t.$tool" "$sanitizer" --tool $tool $more --error-exitcode 9 "./$t"
        done
    done
}

# The groups of a benchmark, as it prints them when it is asked for what it does not know.
groups_of() { "$1" --help 2>/dev/null | sed -n 's/^groups: *//p' | tr , ' '; }

has() {
    wanted=$1; shift; for word in "$@"; do [ "$word" != "$wanted" ] || return 0; done; return 1
}

# The value of --only among the words; the last, as in the benchmarks.
only_of() {
    value=
    while [ $# -gt 0 ]; do
        if [ "$1" = --only ] && [ $# -gt 1 ]; then value=$2; shift; fi
        shift
    done
    echo "$value" | tr , ' '
}

# Those of the groups (first word: a list) that a benchmark has, with commas.
common() {
    list='' groups=$(groups_of "$2")
    # shellcheck disable=SC2086
    for group in $1; do if has "$group" $groups; then list=$list,$group; fi; done
    echo "${list#,}"
}

# A group that no benchmark has would measure nothing.
check_groups() {
    for group in $1; do
        found=
        for b in ./bench_*; do
            if [ -x "$b" ] && [ "$(common "$group" "$b")" ]; then found=1; fi
        done
        if [ ! "$found" ]; then
            echo "no benchmark has a group '$group'. There are:"
            for b in ./bench_*; do
                if [ -x "$b" ]; then echo "  ${b#./}: $(groups_of "$b")"; fi
            done
            exit 2
        fi
    done
}

# run_one PROGRAM WORDS...: with --csv, into a file of its own.
run_one() {
    program=$1 csv='' left=$#; shift
    while [ $((left -= 1)) -gt 0 ]; do           # every word once round
        word=$1; shift
        if [ "$csv" = next ]; then
            case $word in *.csv) word=${word%.csv}.${program#./}.csv ;; *) \
                word=$word.${program#./} ;; esac
        fi
        case $word in --csv) csv=next ;; *) csv='' ;; esac
        set -- "$@" "$word"
    done
    echo; "$program" "$@"
}

run_benches() {
    only=$(only_of "$@")
    check_groups "$only"
    for b in ./bench_*; do
        [ -x "$b" ] || continue
        if [ ! "$only" ]; then run_one "$b" "$@" || exit; continue; fi
        groups=$(common "$only" "$b")
        if [ "$groups" ]; then run_one "$b" "$@" --only "$groups" || exit; fi
    done
}

have nvidia-smi && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
mode=${1:-tests}; [ $# -gt 0 ] && shift
case $mode in
tests)    run_tests "$@" ;;
sanitize) run_sanitized ;;
bench)    run_benches "$@"; exit 0 ;;
figures)  exec sh ./figures.sh "$@" ;;
demo)
    for e in ./*; do
        case $e in ./test_*|./bench_*|*.sh|*.log|*.so*) continue ;; esac
        if [ -f "$e" ] && [ -x "$e" ]; then echo "$e --demo"; "$e" --demo "$@" || exit; fi
    done
    exit 0 ;;
*) sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
