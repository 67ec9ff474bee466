#!/bin/bash
# Do the serial tests pass whatever the optimizer is told, and is refused what they could not pass with?
#
#   tests/test_flags.sh            a part: see `quick` below
#   tests/test_flags.sh --full     every compiler, level and serial test (half an hour)
#   tests/test_flags.sh --self-check   is a refusal that was taken out noticed?
#
#   flags       gcc and clang at -O0, -O1, -O3 and -O3 -march=native -ffp-contract=off run tests/test_NAME.c: the answers may not depend on it.
#               With the fused products of plain -march=native functions may disagree at the rim (the manuals say so): there only
#               what has no rim is run.
#   refused     -Ofast and -ffast-math: each header, with and without its implementation, says by #error that it is not to be built so.
#   threads     tests/test_threads.c under ThreadSanitizer.
#
# A compiler that is not there is skipped. SPDX-License-Identifier: MIT OR Unlicense
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/units.sh
out=build/flags
mkdir -p $out
full= self=
for argument; do
    case $argument in
    --full) full=yes ;;
    --self-check) self=yes ;;
    *) echo "test_flags.sh: what is '$argument'?"; exit 2 ;;
    esac
done
export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}"
includes="-I. $(pkg-config --cflags cmocka 2>/dev/null) $(pkg-config --cflags stb 2>/dev/null)"
libraries="$(pkg-config --libs cmocka 2>/dev/null || echo -lcmocka) -lm -lpthread"

passes() { echo "ok       $1"; passed=$((passed + 1)); }
fails() { echo "FAILED   $1"; sed -n '1,30s/^\(.\{1,200\}\).*/    | \1/p' "$log"; keep "$log" "$1"; failed=$((failed + 1)); }
skips() { echo "skipped  $1"; skipped=$((skipped + 1)); }

# try NAME SMALL COMPILER FLAGS...: builds tests/test_NAME.c and runs it; SMALL: less work, as under valgrind.
try() {
    local name=$1 small=$2 start=$SECONDS program; shift 2
    log=$units/log.$BASHPID program=$units/program.$BASHPID
    # shellcheck disable=SC2086
    if ! "$@" -std=c99 -g1 $includes tests/test_$name.c -o $program $libraries >$log 2>&1; then fails "test_$name does not build: $*"; return; fi
    if [ "$small" ]; then export TEST_SMALL=1; fi
    if timeout 3600 $same_addresses $program >$log 2>&1 </dev/null; then passes "test_$name, $* ($((SECONDS - start)) s)"
    else grep -v '^\[ RUN\|^\[  *OK' $log >$log.short; mv $log.short $log; fails "test_$name, $*"; fi
    rm -f $program
}

# refused HEADER MACRO COMPILER FLAGS...: has to be refused, in words that name the flag.
refused() {
    local header=$1 macro=$2; shift 2
    log=$units/log.$BASHPID
    printf '#define %s\n#include "%s"\nint main(void) { return 0; }\n' "$macro" "$header" >$units/refused.$BASHPID.c
    if "$@" -std=c99 -I${headers:-.} -I. -fsyntax-only $units/refused.$BASHPID.c >$log 2>&1; then fails "$header with $macro is built by $*"
    elif grep -q "error.*$header: -ffast-math" $log; then passes "$header with $macro is refused by $*"
    else fails "$header with $macro, $*: not refused in words"; fi
}

all_refusals() {
    local compiler header flag upper
    for compiler in $compilers; do for header in ugrid.h lbvh.h nlist.h nbody.h; do for flag in -Ofast -ffast-math -ffinite-math-only; do
        upper=$(echo "${header%.h}" | tr a-z A-Z)
        unit refused $header ${upper}_IMPLEMENTATION $compiler $flag
        if [ "$full" ] || [ $flag = -ffast-math ]; then unit refused $header ${upper}_CALLED $compiler $flag; fi
    done; done; done
}

compilers=
for compiler in gcc clang; do
    if command -v $compiler >/dev/null; then compilers="${compilers:+$compilers }$compiler"; else skips "$compiler: not installed"; fi
done
[ "$compilers" ] || { echo '0 passed, 0 failed, 1 skipped'; exit 0; }

# Without its #error a header is built, and that has to be found.
if [ "$self" ]; then
    headers=$units/headers
    mkdir -p $headers
    for header in ugrid.h lbvh.h nlist.h nbody.h; do sed '/^#error.*-ffast-math/d' $header >$headers/$header; done
    found=0 wanted=0
    for header in ugrid.h lbvh.h nlist.h nbody.h; do
        wanted=$((wanted + 1))
        (refused $header X gcc -Ofast; [ $failed -gt 0 ]) >/dev/null && found=$((found + 1))
    done
    if [ $found -eq $wanted ]; then passes "headers without a refusal are noticed"; else log=/dev/null; fails "$found of $wanted headers without a refusal are noticed"; fi
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ]
    exit
fi

all_refusals
if [ "$full" ]; then
    for compiler in $compilers; do
        for level in -O0 -O1 -O2 -O3 '-O3 -march=native -ffp-contract=off'; do
            for source in tests/test_*.c; do
                name=${source#tests/test_}
                # shellcheck disable=SC2086
                unit try "${name%.c}" '' $compiler $level
            done
        done
        for name in faults limits threads; do unit try $name '' $compiler -O3 -march=native; done
        unit try threads '' $compiler -O1 -fsanitize=thread
    done
else
    # quick: what compiles in a few seconds each; each level once, and each compiler with and without optimization.
    for compiler in $compilers; do unit try limits yes $compiler -O0; done
    unit try floats yes "${compilers##* }" -O1
    unit try faults yes "${compilers%% ?*}" -O3 -march=native
    unit try lbvh_calls yes "${compilers##* }" -O3 -march=native -ffp-contract=off
    unit try threads yes "${compilers##* }" -O1 -fsanitize=thread
fi
all_units
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
