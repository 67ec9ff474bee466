#!/bin/bash
# Do the serial tests pass whatever the optimizer is told, and does -ffast-math change nothing?
#
#   tests/quality/flags/run.sh            a part: see `quick` below
#   tests/quality/flags/run.sh --full     every compiler, level and serial test (half an hour)
#   tests/quality/flags/run.sh --self-check   is a header without its pragmas noticed?
#
#   flags       gcc and clang at -O0, -O1, -O3 and -O3 -march=native -ffp-contract=off run
#               tests/unit/*/test_NAME.c: the answers may not depend on it.
#               With the fused products of plain -march=native functions may disagree at the rim
#               (the manuals say so): there only what has no rim is run.
#   fast        -ffast-math and -Ofast change nothing: tests/quality/portability/bits.c prints the
#               same lines; linked with the flag too, which makes denormals zero, but for the forces
#               between bodies of many scales. tests/quality/flags/fast_math.c: the same lines, NaN
#               and infinity refused by their index, where only one of two files has the flag, and
#               where both are one.
#   threads     tests/unit/all/test_threads.c and the tests of desc.parallel under ThreadSanitizer.
#
# A compiler that is not there is skipped. SPDX-License-Identifier: MIT OR Unlicense
set -u
cd "$(dirname "$0")/../../.." || exit 1
. tests/common/units.sh
out=build/flags
mkdir -p $out
full= self=
for argument; do
    case $argument in
    --full) full=yes ;;
    --self-check) self=yes ;;
    *) echo "flags/run.sh: what is '$argument'?"; exit 2 ;;
    esac
done
export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}"
includes="-I. $(pkg-config --cflags cmocka 2>/dev/null) $(pkg-config --cflags stb 2>/dev/null)"
libraries="$(pkg-config --libs cmocka 2>/dev/null || echo -lcmocka) -lm -lpthread"

passes() { echo "ok       $1"; passed=$((passed + 1)); }
fails() {
    echo "FAILED   $1"; sed -n '1,30s/^\(.\{1,200\}\).*/    | \1/p' "$log"; keep "$log" "$1"
    failed=$((failed + 1))
}
skips() { echo "skipped  $1"; skipped=$((skipped + 1)); }

# try NAME SMALL COMPILER FLAGS...: builds tests/unit/*/test_NAME.c and runs it; SMALL: less work,
# as under valgrind.
try() {
    local name=$1 small=$2 start=$SECONDS program; shift 2
    log=$units/log.$BASHPID program=$units/program.$BASHPID
    # shellcheck disable=SC2086
    if ! "$@" -std=c99 -g1 $includes tests/unit/*/test_$name.c -o $program $libraries >$log 2>&1;
        then
        fails "test_$name does not build: $*"; return
    fi
    if [ "$small" ]; then export TEST_SMALL=1; fi
    if timeout 3600 $same_addresses $program >$log 2>&1 </dev/null;
        then passes "test_$name, $* ($((SECONDS - start)) s)"
    else grep -v '^\[ RUN\|^\[  *OK' $log >$log.short; mv $log.short $log; fails "test_$name, $*"
    fi
    rm -f $program
}

# What tests/quality/portability/bits.c prints without the flags, against which the others are
# compared.
reference() {
    gcc -std=c99 -O2 -I. tests/quality/portability/bits.c -o $units/bits -lm &&
        $units/bits quick >$units/bits.plain
}

# fast HEADERS COMPILER FLAGS...: the same bits, whether the flag links or not.
fast() {
    local headers=$1 name=$units/fast.$BASHPID; shift
    log=$units/log.$BASHPID
    if ! "$@" -std=c99 -Wall -Wextra -Werror -I$headers -I. -c tests/quality/portability/bits.c \
        -o $name.o >$log 2>&1 ||
        ! $1 $name.o -o $name -lm >>$log 2>&1; then fails "bits.c does not build: $*"; return; fi
    $name quick >$name.said 2>>$log
    if diff $units/bits.plain $name.said >$log; then
        passes "the same bits, $*"
    else
        fails "other bits, $*"
    fi
    "$@" $name.o -o $name -lm && $name quick >$name.said
    if diff <(grep -v '^nbody scales' $units/bits.plain) <(grep -v '^nbody scales' $name.said) \
        >$log; then passes "the same bits, $*, linked so"
    else fails "other bits, $*, linked so"; fi
}

# mixed HEADERS COMPILER FLAGS...: tests/quality/flags/fast_math.c as two files, of which one has
# the flags, and as one.
mixed() {
    local headers=$1 compiler=$2 part=$units/mixed.$BASHPID program \
        impl=-DFAST_MATH_IMPLEMENTATION options; shift 2
    log=$units/log.$BASHPID
    options="-std=c99 -Wall -Wextra -Werror -I$headers -c tests/quality/flags/fast_math.c"
    if ! { $compiler -O0 $options $impl -o $part.plain.o &&
        $compiler "$@" $options $impl -o $part.fast.o &&
        $compiler -O0 $options -o $part.caller.plain.o &&
        $compiler "$@" $options -o $part.caller.fast.o &&
        $compiler "$@" $options $impl -DFAST_MATH_ONE_FILE -o $part.one.o; } >$log 2>&1;
        then fails "fast_math.c does not build: $compiler $*"; return; fi
    $compiler $part.plain.o $part.caller.plain.o -o $part -lm && $part >$part.plain
    grep -c 'grid 0 1 77, near 0; tree 1 55; list 1 77; bodies 1 77; radius 1' $part.plain |
        grep -qx 4 || { cp $part.plain $log; fails "NaN is refused, $compiler"; return; }
    for program in "plain.o caller.fast.o" "fast.o caller.plain.o" "fast.o caller.fast.o" one.o; do
        # shellcheck disable=SC2086
        $compiler $(printf "$part.%s " $program) -o $part -lm && $part >$part.said
        if diff $part.plain $part.said >$log; then
            passes "$compiler $*: $program"
        else
            fails "$compiler $*: $program"
        fi
    done
}

all_fast() {
    local compiler flags
    reference || { log=/dev/null; fails "bits.c"; return; }
    for compiler in $compilers; do
        for flags in '-O2 -ffast-math' -Ofast '-O3 -ffinite-math-only' \
            '-Ofast -march=native -ffp-contract=off'; do
            case $full$compiler$flags in yes* | gcc-Ofast | clang*-O2\ -ffast-math) ;;
            *) continue ;; esac
            # shellcheck disable=SC2086
            unit fast . $compiler $flags
        done
        unit mixed . $compiler -O2 -ffast-math
    done
}

compilers=
for compiler in gcc clang; do
    if command -v $compiler >/dev/null; then
        compilers="${compilers:+$compilers }$compiler"
    else
        skips "$compiler: not installed"
    fi
done
[ "$compilers" ] || { echo '0 passed, 0 failed, 1 skipped'; exit 0; }

# A header that is compiled with the flag has to be found. (ugrid.h and nlist.h print the same bits
# even so: what they compute is held in order by its form alone.)
if [ "$self" ]; then
    reference
    found=0 wanted=0
    for header in lbvh.h nbody.h; do
        headers=$units/headers.$header wanted=$((wanted + 1))
        mkdir -p $headers
        cp -r *.h more $headers
        sed -i 's/^\(#pragma GCC optimize\)(.*/\1("O2")/' $headers/$header
        (fast $headers gcc -O2 -ffast-math; [ $failed -gt 0 ]) >/dev/null && found=$((found + 1))
    done
    log=/dev/null
    if [ $found -eq $wanted ]; then
        passes "headers without their pragmas are noticed"
    else
        fails "$found of $wanted headers without their pragmas are noticed"
    fi
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ]
    exit
fi

all_fast
if [ "$full" ]; then
    for compiler in $compilers; do
        for level in -O0 -O1 -O2 -O3 '-O3 -march=native -ffp-contract=off'; do
            for source in tests/unit/*/test_*.c; do
                name=${source##*/test_}
                # shellcheck disable=SC2086
                unit try "${name%.c}" '' $compiler $level
            done
        done
        for name in faults limits threads; do unit try $name '' $compiler -O3 -march=native; done
        for name in threads ugrid_parallel lbvh_parallel nlist_parallel nbody_parallel; do
            unit try $name '' $compiler -O1 -fsanitize=thread
        done
    done
else
    # quick: what compiles in a few seconds each; each level once, and each compiler with and
    # without optimization.
    for compiler in $compilers; do unit try limits yes $compiler -O0; done
    unit try floats yes "${compilers##* }" -O1
    unit try faults yes "${compilers%% ?*}" -O3 -march=native
    unit try lbvh yes "${compilers##* }" -O3 -march=native -ffp-contract=off
    for name in threads ugrid_parallel lbvh_parallel nlist_parallel nbody_parallel; do
        unit try $name yes "${compilers##* }" -O1 -fsanitize=thread
    done
fi
all_units
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
