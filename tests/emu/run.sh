#!/bin/bash
# Runs programs that emu.mk has built: tests/emu/run.sh DIR [selftest] [bugs] [programs NAME...], or
# DIR quick PROGRAM...
#
#   selftest   the emulator's self-test in all modes and orders
#   bugs       each planted bug in the mode that has to find it; and all programs without their bugs
#              in every mode, where nothing may be reported
#   quick      each program PROGRAM... once, with little work
#   programs   the named programs in all modes; then a table of kernels and launches, in which no
#              kernel of cuda/ may be missing
# SPDX-License-Identifier: MIT
set -u
dir=$1
shift
. "$(dirname "$0")/../common/units.sh"
limit=3600     # seconds, for what hangs: the longest takes minutes

export TSAN_OPTIONS="halt_on_error=1 history_size=4 ${TSAN_OPTIONS:-}"
export ASAN_OPTIONS="redzone=512 ${ASAN_OPTIONS:-}"

passes() { echo "ok       $1"; passed=$((passed + 1)); }
fails() {
    echo "FAILED   $1"
    sed -n '1,40s/^\(.\{1,200\}\).*/    | \1/p' "$log"
    keep "$log" "$1"
    failed=$((failed + 1))
}
skips() { echo "skipped  $1"; skipped=$((skipped + 1)); }

if [ ! -x "$dir/selftest.asan" ] && [ $# -eq 1 -o "${1:-}" != quick ]; then
    echo 'skipped  kernels on the CPU: no C++ compiler (clang++-14 with libclang-rt-14-dev is best, g++ does)'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
if [ "${1:-}" = quick ]; then :
elif [ ! -x "$dir/selftest.tsan" ]
then skips 'ThreadSanitizer and MemorySanitizer: they need clang++ and libclang-rt'
elif [ ! -x "$dir/selftest.msan" ]; then skips 'MemorySanitizer: make test FULL=1'; fi

# good PROGRAM ARGUMENT VARIABLES...: has to end without a word from the emulator or a sanitizer.
good() {
    local program=$1 argument=$2 start=$SECONDS
    shift 2
    [ -x "$program" ] || return 0
    log=$units/log.$BASHPID
    [ ! "${reported:-}" ] || export EMU_REPORT=$units/kernels.$BASHPID
    if timeout $limit $same_addresses env "$@" "$program" $argument >"$log" 2>&1 </dev/null; then
        passes "$(basename "$program") $argument $* ($((SECONDS - start)) s)"
    else
        fails "$(basename "$program") $argument $*"
    fi
}

# Tests of the host's side of calls. They take long, and neither another order of the threads nor
# races of kernels, which the other tests launch, too, are anything to them: the run in order has
# them.
host_side='growth,out of memory,launch errors,too large,graph,deep capture,unfit remap'

# Each build in the orders that make sense for it, the longest first. TEST_SMALL asks a program for
# less work: a thousand elements where one thread takes a hundred times as long, and where all that
# is new is another order of the threads.
all_modes() {
    local name=$1 argument=${2:-}
    unit good "$dir/$name.asan" "$argument" EMU_ORDER=random EMU_SEED=${EMU_SEED:-1} EMU_PREEMPT=4 \
        EMU_LAZY=1 EMU_BLOCKS=3 TEST_SKIP="$host_side"
    unit good "$dir/$name.asan" "$argument" EMU_ORDER=forward
    unit good "$dir/$name.tsan" "$argument" EMU_ORDER=random EMU_SEED=${EMU_SEED:-1} \
        TEST_SKIP="$host_side" TEST_SMALL=1
    unit good "$dir/$name.tsan" "$argument" EMU_TSAN_BLOCKS=1 TEST_SKIP="$host_side" TEST_SMALL=1
    [ ! "${FULL:-}" ] || unit good "$dir/$name.asan" "$argument" EMU_ORDER=reverse TEST_SMALL=1
    unit good "$dir/$name.msan" "$argument" EMU_ORDER=forward TEST_SMALL=1
}

# More seeds, for the small programs of the emulator itself (EMU_SEEDS).
more_seeds() {
    local name=$1 argument=${2:-} build seed
    for build in asan tsan msan; do
        for seed in ${EMU_SEEDS:-2 3}; do
            unit good "$dir/$name.$build" "$argument" EMU_ORDER=random EMU_SEED=$seed \
                EMU_PREEMPT=4 EMU_LAZY=1 EMU_BLOCKS=3
        done
    done
}

# found NAME REPORT PROGRAM VARIABLES...: has to fail, and to say REPORT.
found() {
    local name=$1 report=$2 program=$3
    shift 3
    log=$units/log.$BASHPID
    if [ ! -x "$program" ]; then
        skips "bug $name: no $(basename "$program")"
    elif timeout $limit $same_addresses env "$@" "$program" "$name" >"$log" 2>&1 </dev/null; then
        fails "bug $name not found ($(basename "$program") $*)"
    elif tr '\n' ' ' <"$log" | grep -Eq -- "$report"; then
        passes "bug $name found ($(basename "$program") $*)"
    else
        fails "bug $name: another report than '$report' ($(basename "$program") $*)"
    fi
}

find_bug() {
    local name=$1 mode=$2 report=$3 order
    for order in forward reverse random; do
        case $mode in
        any) found "$name" "$report" "$dir/bugs.asan" EMU_ORDER=$order EMU_HANG=1 ;;
        tsan) found "$name" "$report" "$dir/bugs.tsan" EMU_ORDER=$order ;;
        tsan-blocks) found "$name" "$report" "$dir/bugs.tsan" EMU_ORDER=$order EMU_TSAN_BLOCKS=1 ;;
        msan) found "$name" "$report" "$dir/bugs.msan" EMU_ORDER=$order ;;
        lazy) found "$name" "$report" "$dir/bugs.asan" EMU_ORDER=$order EMU_LAZY=1 ;;
        esac
    done
    case $mode in
    blocks)
        [ -x "$dir/bugs.tsan" ] &&
            found "$name" "$report" "$dir/bugs.asan" EMU_ORDER=random EMU_BLOCKS=4 ;;
    esac
}

run_bugs() {
    local name mode report
    "$dir/bugs.asan" --list 2>/dev/null >"$dir/bugs.list"
    while IFS='|' read -r name mode report; do
        unit find_bug "$name" "$mode" "$report"
    done <"$dir/bugs.list"
    all_modes bugs --fixed
    more_seeds bugs --fixed
}

# The names after __global__ in cuda/*.cu.
kernels_in_source() {
    perl -0777 -ne 's{/\*.*?\*/|//[^\n]*}{}gs;
        $bounds = qr/(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)\s*)?/;
        print "$1\n" while /__global__\s+(?:static\s+)?${bounds}void\s+$bounds(\w+)/g' cuda/*.cu
}

# From lines "launches name" of all runs: a table, and what is missing in it.
report_kernels() {
    local report=$1 name missing=
    awk '{ n = $1; $1 = ""; sub(/^ /, ""); sum[$0] += n; all += n }
         END { for (k in sum) { printf "    %8d  %s\n", sum[k], k; if (sum[k]) used++ }
               printf "emu: %d launches of %d kernels\n", all, used }' "$report" | sort -k2
    for name in $(kernels_in_source) \
        $(awk '{ n = $1; $1 = ""; s[$0] += n } END { for (k in s) if (!s[k]) { gsub(/ /, "", k); print k } }' "$report"); do
        awk -v name="$name" '{ n = $1; $1 = ""; gsub(/ /, ""); base = $0; sub(/<.*/, "", base);
            sub(/.*::/, "", base)
                               if ((base == name || $0 == name) && n > 0) hit = 1 } END {
                                   exit !hit }' "$report" || missing="$missing $name"
    done
    log=$units/log
    : >"$log"
    if [ -z "$missing" ]; then passes 'every kernel of cuda/ was executed'
    else fails "kernels that no test executed:$missing"; fi
}

run_programs() {
    if [ $# -eq 0 ]; then
        skips 'kernels of cuda/ on the CPU: no tests/cuda/test_*.cu yet'
        return
    fi
    local program reported=yes
    for program in "$@"; do all_modes "$program"; done
    all_units
    cat "$units"/kernels.* >"$dir/kernels.txt"
    report_kernels "$dir/kernels.txt"
}

quick_programs() {
    local program slow="$host_side,deep,deep again,deep cells full"
    skips "tests of the host's side, or long: make test-emu has them ($slow)"
    for program; do
        unit good "$program" "" EMU_ORDER=random EMU_SEED=${EMU_SEED:-1} TEST_SKIP="$slow" \
            TEST_SMALL=1
    done
}

while [ $# -gt 0 ]; do
    case $1 in
    quick) shift; quick_programs "$@"; break ;;
    selftest) all_modes selftest; more_seeds selftest; shift ;;
    bugs) run_bugs; shift ;;
    programs) shift; run_programs "$@"; break ;;
    *) echo "run.sh: what is '$1'?"; exit 2 ;;
    esac
done
all_units
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
