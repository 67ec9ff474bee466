#!/bin/bash
# The promised bits on other machines: bits.c is built for each of them, run in an emulator, and has
# to print what x86-64 prints.
#
#   tests/quality/portability/run.sh               a third of the cases, one build per machine: half
#                                                  a minute
#   tests/quality/portability/run.sh --full        all cases on all machines, more compilers and
#                                                  flags, doubles, and the serial tests: about an
#                                                  hour
#   tests/quality/portability/run.sh --only REGEX  the rows whose name matches (with or without
#                                                  --full)
#   tests/quality/portability/run.sh --self-check  is a difference noticed? (planted into copies of
#                                                  the headers)
#
# A missing compiler or emulator skips its rows. The last line is "N passed, M failed, K skipped".
# Environment: CC (gcc), JOBS (rows at a time, 2), PORTABILITY_WORK (build/portability).
set -u
export LC_ALL=C WINEDEBUG=-all NODE_PATH=${NODE_PATH:-/usr/share/nodejs}

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${PORTABILITY_WORK:-$root/build/portability}
CC=${CC:-gcc}; [ "$CC" = cc ] && CC=gcc
only='.' full='' self_check=''
export WINEPREFIX=$work/wine

while [ $# -gt 0 ]; do
    case $1 in
    --full) full=yes ;;
    --only) only=$2; shift ;;
    --self-check) self_check=yes ;;
    *) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done
. "$here/../../common/units.sh"

have() { command -v "${1%% *}" >/dev/null 2>&1; }
wanted() { [[ "portability: $1" =~ $only ]]; }
ok()      { echo "ok       portability: $*"; passed=$((passed + 1)); }
skip()    { echo "skipped  portability: $*"; skipped=$((skipped + 1)); }
failure() {     # failure WHAT LOG
    echo "FAILED   portability: $1"; failed=$((failed + 1))
    [ ! -f "$2" ] || head -n 20 "$2" | cut -c 1-300 | sed 's/^/    | /'
    [ ! -f "$2" ] || keep "$2" "portability $1"
}

# ------------------------------------------------------------------------------------------------
# A row: one machine, one compiler, one set of flags
# ------------------------------------------------------------------------------------------------

# What a program said, without what need not be equal: the sum at the end, and whether malloc as it
# is will do.
cases() { tr -d '\r' <"$1" | grep -v '^end \|^bad malloc\|^malloc'"${left_out:-}"; }

# program OUT COMMAND: builds bits.c from the copies in $headers. The file's name ends as the
# machine wants it.
program() {
    # shellcheck disable=SC2086
    nice $2 $bits_flags -I"$headers" "$headers/bits.c" -o "$1" -lm $libs >"$out/log" 2>&1
}

# compare PART MOST: the case lines of $out/said and of $out/expected; says how many are equal, or
# which are not.
compare() {
    cases "$out/said" >"$out/is"; cases "$out/expected" >"$out/should"
    {
        grep '^end ' "$out/said" >/dev/null ||
            echo "the program did not come to its end: $(tail -n 1 "$out/said")"
        grep '^bad ' "$out/is"
        diff "$out/should" "$out/is" | sed -n 's/^> */differs: /p' | grep -v 'differs: bad'
        diff "$out/should" "$out/is" | sed -n 's/^< */expected: /p' | head -n 3
    } >"$out/differences"
    equal=$(comm -12 <(sort "$out/should") <(sort "$out/is") | wc -l)
    [ ! -s "$out/differences" ]
}

# machine NAME COMMAND RUNNER ORDER PART [note]: builds, runs and compares. ORDER: little or big.
# PART: arguments of bits, "" for all.
# note: nothing is promised for these flags; what differs is said, and only checks that do not hold
# are failures.
machine() {
    local name=$1 command=$2 runner=$3 order=$4 part=$5 note=${6:-} out libs='' bits_flags='' \
        exe=program reference=float status
    out=$work/rows/$(echo "$name" | tr -c 'a-zA-Z0-9\n' '_'); rm -rf "$out"; mkdir -p "$out"
    case $command in
    *REAL=double*) reference=double ;;
    esac
    case $command in
    emcc*)
        exe=program.js
        libs="-sSINGLE_FILE=1 -sALLOW_MEMORY_GROWTH=1 -sNODERAWFS=1 -sENVIRONMENT=node" ;;
    *mingw*) exe=program.exe ;;
    esac
    program "$out/$exe" "$command" || { failure "$name does not compile" "$out/log"; return; }
    cp "$work/$reference.${part:-all}" "$out/expected" ||
        { failure "$name: no reference" "$out/log"; return; }
    ( cd "$out" && timeout 3000 $runner "./$exe" $part ) >"$out/said" 2>"$out/log" </dev/null
    status=$?
    if compare; then ok "$name: $equal cases equal"
    elif [ "$note" ] && [ $status -le 1 ] && grep -q '^end ' "$out/said"; then
        ok "$name: $note: $equal cases equal, $(grep -c '^differs' \
            "$out/differences") differ, $(grep -c '^bad ' "$out/is") checks do not hold"
        return
    else
        failure "$name: $(grep -c '^differs' "$out/differences") of $(wc -l \
            <"$out/should") cases differ" "$out/differences"
        head -n 5 "$out/log" | sed 's/^/    | /'
        return
    fi
    plain_malloc "$name"
    files "$name" "$runner" "./$exe" "$order" "$reference"
}

# Does a zeroed desc do, whose memory comes from malloc, also where that aligns to 8 bytes?
plain_malloc() {
    grep -q '^bad malloc' "$out/said" || return 0
    grep '^bad malloc' "$out/said" >"$out/differences"
    failure "$1, memory from malloc" "$out/differences"
}

# Saved trees and lists: the same byte order reads them, another one refuses them, and never
# anything else.
files() {
    local name=$1 runner=$2 program=$3 order=$4 theirs=$work/$5.files
    mkdir -p "$out/files"
    ( cd "$out" && ln -sfn "$theirs" theirs
      $runner "$program" save files; echo "end saved"
      $runner "$program" load theirs ) >"$out/loaded" 2>>"$out/log" </dev/null
    ( cd "$out" && $runner "$program" load files ) >"$out/own" 2>>"$out/log" </dev/null
    "$work/$5" load "$out/files" >"$out/there"
    {
        diff "$work/$5.loaded" <(tr -d '\r' <"$out/own") | sed 's/^/its own files: /'
        if [ "$order" = little ]; then
            diff "$work/$5.loaded" <(tr -d '\r' <"$out/loaded" | grep -v '^end') |
                sed 's/^/files of x86-64 here: /'
            diff "$work/$5.loaded" "$out/there" | sed 's/^/its files on x86-64: /'
            diff -rq "$theirs" "$out/files"
        else
            diff "$work/refused" <(tr -d '\r' <"$out/loaded" | grep -v '^end') |
                sed 's/^/files of x86-64 here: /'
            diff "$work/refused" "$out/there" | sed 's/^/its files on x86-64: /'
        fi
    } >"$out/differences" 2>&1
    if [ -s "$out/differences" ]; then failure "$name, saved files" "$out/differences"
    elif [ "$order" = little ]
    then ok "$name, saved files: read here and on x86-64, the same bytes"
    else ok "$name, saved files: read here, refused on x86-64 as its are here"; fi
}

# row NAME COMMAND RUNNER ORDER PART [note]
row() {
    wanted "$1" || return 0
    if ! have "$2"; then unit skip "$1: no ${2%% *}"
    elif [ "$3" ] && ! have "$3"; then unit skip "$1: no ${3%% *}"
    elif [[ $2 == *-m32* ]] && ! links_32_bit; then unit skip "$1: gcc -m32 does not link"
    elif [[ $3 == node* ]] && ! emcc_works
    then unit skip "$1: emcc cannot build here (see $work/emcc.log)"
    elif [[ $3 == wine* ]] && ! wine_works; then unit skip "$1: wine does not run programs here"
    else unit machine "$@"; fi
}

# fused NAME COMMAND: the processor has FMA, and the compiler may fuse products with sums. Only
# nbody.h lets it.
fused() {
    local left_out='\|^nbody'
    if grep -qw fma /proc/cpuinfo 2>/dev/null; then row "$@" "" little quick
    elif wanted "$1"; then unit skip "$1: no FMA here"; fi
}

links_32_bit() {
    echo 'int main(void) { return 0; }' | $CC -m32 -x c - -o "$work/hello" 2>/dev/null
}
emcc_works() {
    echo 'int main(void) { return 0; }' >"$work/hello.c"
    ( cd "$work" && emcc hello.c -O2 -sSINGLE_FILE=1 -sENVIRONMENT=node -o hello.js &&
        node hello.js ) >"$work/emcc.log" 2>&1 </dev/null
}
wine_works() {
    echo 'int main(void) { return 42; }' |
        x86_64-w64-mingw32-gcc -x c - -o "$work/hello.exe" 2>/dev/null
    ( cd "$work" && timeout 1200 wine hello.exe ) >/dev/null 2>&1 </dev/null
    [ $? -eq 42 ]
}

# ------------------------------------------------------------------------------------------------
# The rows
# ------------------------------------------------------------------------------------------------

double="-DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double -DNBODY_REAL=double"

# The reference: this machine, gcc -std=c99 -O2. Headers are copied first: they may be edited
# on them. One that is there already and was made of the same is taken again.
references() {
    local real flags part f same=yes
    headers=$work/src
    rm -rf "$work/rows"; mkdir -p "$headers" "$work/rows"
    for f in "$root"/*.h "$here/bits.c" "$here/run.sh"; do
        cmp -s "$f" "$headers/$(basename "$f")" || same=''
    done
    diff -r "$root/more" "$headers/more" >/dev/null 2>&1 || same=''
    for f in float.quick ${full:+float.all double.quick double.all}; do
        [ "$same" ] && [ -s "$work/$f" ] || same=''
    done
    [ ! "$same" ] || [ ! -s "$work/refused" ] || return 0
    rm -rf "$work/src" "$work"/*.files "$work"/float.* "$work"/double.* "$work/refused"
    mkdir -p "$headers"
    cp -r "$root"/*.h "$root/more" "$here/bits.c" "$here/run.sh" "$headers"
    for real in float ${full:+double}; do
        flags=''; [ $real = float ] || flags=$double
        # shellcheck disable=SC2086
        if ! nice $CC -std=c99 -O2 -Wall -Wextra -Werror $flags -I"$headers" "$headers/bits.c" -o \
            "$work/$real" -lm 2>"$work/log"; then
            failure "bits.c does not compile" "$work/log"; finish
        fi
        for part in quick ${full:+all}; do
            # shellcheck disable=SC2046
            "$work/$real" $([ $part = all ] || echo $part) >"$work/$real.$part" ||
                { grep '^bad' "$work/$real.$part" >"$work/log";
                failure "checks on this machine" "$work/log"; finish; }
        done
        mkdir -p "$work/$real.files"
        "$work/$real" save "$work/$real.files" >"$work/log" &&
            "$work/$real" load "$work/$real.files" >"$work/$real.loaded" ||
            { failure "files on this machine" "$work/log"; finish; }
        grep -q refused "$work/$real.loaded" &&
            { failure "files on this machine" "$work/$real.loaded"; finish; }
    done
    sed 's/loaded.*/refused/' "$work/float.loaded" >"$work/refused"
    [ "$(uname -m)" = x86_64 ] || echo "note: the reference is $(uname -m), not x86-64"
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]; exit
}

quick_rows() {
    # s390x: gcc -std=c99 computes floats in double there (FLT_EVAL_METHOD 1), unless told not to
    row "s390x, gcc -std=gnu99 -ffp-contract=off" \
        "s390x-linux-gnu-gcc -static -O2 -std=gnu99 -ffp-contract=off" qemu-s390x-static big quick
    fused "x86-64 with FMA, gcc -std=gnu99 -O3" "$CC -std=gnu99 -O3 -march=haswell"
    row "aarch64, gcc -std=c99" "aarch64-linux-gnu-gcc -static -O2 -std=c99" qemu-aarch64-static \
        little quick
    row "wasm32, emcc -std=c99" "emcc -O1 -std=c99" node little quick
    row "i386, gcc -std=c99 -msse2 -mfpmath=sse" \
        "$CC -m32 -static -O1 -std=c99 -msse2 -mfpmath=sse" "" little quick
    row "Windows 64, mingw-w64 gcc -std=c99" "x86_64-w64-mingw32-gcc -static -O1 -std=c99" wine \
        little quick
    # which has the forms for AVX2 and AVX-512
    row "Windows 64, clang -std=c99" "clang --target=x86_64-w64-mingw32 $(mingw_libraries) -static \
        -O1 -std=c99" wine little quick
    threads_row "threads of the Python library" "$CC -std=c99 -O1" "" -lpthread
    threads_row "threads of the Python library, Windows 64" \
        "x86_64-w64-mingw32-gcc -static -std=c99 -O1" wine
}

mingw_libraries() {
    have x86_64-w64-mingw32-gcc || return 0
    echo "-L$(dirname "$(x86_64-w64-mingw32-gcc -print-libgcc-file-name)")"
}

threads_row() { # threads_row NAME COMMAND RUNNER LIBRARIES
    wanted "$1" || return 0
    if ! have "$2"; then unit skip "$1: no ${2%% *}"; return; fi
    if [ "$3" ] && ! { have "$3" && wine_works; }; then unit skip "$1: no $3"; return; fi
    unit run_threads "$@"
}
run_threads() {
    local out
    out=$(mktemp -d "$work/threads.XXXXXX")
    # shellcheck disable=SC2086
    if { $2 -I"$root" "$here/threads.c" -o "$out/threads.exe" ${4:-} -lm &&
        timeout 300 $3 "$out/threads.exe"; } >"$out/log" 2>&1 </dev/null
    then ok "$1"; else failure "$1" "$out/log"; fi
}

full_rows() {
    local real flags level std
    row "s390x, gcc, all cases" "s390x-linux-gnu-gcc -static -O2 -std=gnu99 -ffp-contract=off" \
        qemu-s390x-static big ""
    row "aarch64, gcc, all cases" "aarch64-linux-gnu-gcc -static -O2 -std=c99" qemu-aarch64-static \
        little ""
    row "armhf, gcc, all cases" "arm-linux-gnueabihf-gcc -static -O2 -std=c99" qemu-arm-static \
        little ""
    row "wasm32, emcc, all cases" "emcc -O2 -std=c99" node little ""
    row "i386, gcc, all cases" "$CC -m32 -static -O2 -std=c99 -msse2 -mfpmath=sse" "" little ""
    row "Windows 64, all cases" "x86_64-w64-mingw32-gcc -static -O2 -std=c99" wine little ""
    for level in -O0 -O1 -O3 "-O3 -march=native -ffp-contract=off"; do
        row "x86-64, $CC $level" "$CC -std=gnu99 $level" "" little ""
        row "x86-64, clang $level" "clang -std=c99 $level" "" little ""
    done
    for real in float double; do
        flags=''; [ $real = float ] || flags=" $double"
        for level in -O0 -O3; do for std in "-std=c99" "-std=gnu99 -ffp-contract=off"; do
            row "aarch64, gcc $std $level $real" "aarch64-linux-gnu-gcc -static $level $std$flags" \
                qemu-aarch64-static little quick
            row "s390x, gcc $std -fexcess-precision=fast $level $real" \
                "s390x-linux-gnu-gcc -static $level $std -fexcess-precision=fast$flags" \
                qemu-s390x-static big quick
            row "armhf, gcc $std $level $real" "arm-linux-gnueabihf-gcc -static $level $std$flags" \
                qemu-arm-static little quick
            row "i386, gcc $std -msse2 -mfpmath=sse $level $real" \
                "$CC -m32 -static -msse2 -mfpmath=sse $level $std$flags" "" little quick
        done; done
        row "wasm32, emcc -O3 $real" "emcc -O3 -std=gnu99$flags" node little quick
        row "wasm32, emcc -O3 -msimd128 $real" "emcc -O3 -msimd128 -std=gnu99$flags" node little \
            quick
        row "Windows 64, -O3 $real" "x86_64-w64-mingw32-gcc -static -O3 -std=gnu99$flags" wine \
            little quick
        row "aarch64, clang -ffp-contract=off -O3 $real" \
            "clang --target=aarch64-linux-gnu -static -O3 -std=c99 -ffp-contract=off$flags" \
            qemu-aarch64-static little quick
        row "s390x, clang -ffp-contract=off -O3 $real" \
            "clang --target=s390x-linux-gnu -static -O3 -std=c99 -ffp-contract=off$flags" \
            qemu-s390x-static big quick
        row "i386 in qemu, gcc $real" "$CC -m32 -static -O2 -std=c99 -msse2 -mfpmath=sse$flags" \
            qemu-i386-static little quick
        # what the headers' comments exclude
        row "aarch64, gcc -std=gnu99 $real" "aarch64-linux-gnu-gcc -static -O2 -std=gnu99$flags" \
            qemu-aarch64-static little quick "fuses, no promise"
        row "aarch64, clang -std=c99 $real" \
            "clang --target=aarch64-linux-gnu -static -O2 -std=c99$flags" qemu-aarch64-static \
            little quick "fuses, no promise"
        row "s390x, gcc -std=gnu99 $real" "s390x-linux-gnu-gcc -static -O2 -std=gnu99$flags" \
            qemu-s390x-static big quick "fuses, no promise"
        row "s390x, gcc -std=c99 $real" "s390x-linux-gnu-gcc -static -O2 -std=c99$flags" \
            qemu-s390x-static big quick "floats in double, no promise"
        row "i386, gcc -std=c99, x87 $real" "$CC -m32 -static -O2 -std=c99$flags" "" little quick \
            "more digits, no promise"
        row "i386, gcc -std=gnu99, x87 $real" "$CC -m32 -static -O2 -std=gnu99$flags" \
            "" little quick "more digits, no promise"
        row "x86-64, gcc -march=native $real" "$CC -O3 -march=native -std=gnu99$flags" \
            "" little quick "fuses, no promise"
    done
}

# ------------------------------------------------------------------------------------------------
# The serial tests, with a small cmocka.h of our own (shim/): there is none for these machines
# ------------------------------------------------------------------------------------------------

# serial NAME COMMAND RUNNER: the small part of each tests/unit/*/test_*.c (TEST_SMALL, as under
# valgrind).
serial() {
    local name=$1 command=$2 runner=$3 test t out libs='' status
    for test in "$root"/tests/unit/*/test_*.c; do
        t=$(basename "$test" .c)
        wanted "$name, $t" || continue
        out=$work/rows/$(echo "$name $t" | tr -c 'a-zA-Z0-9\n' '_'); mkdir -p "$out"
        # shellcheck disable=SC2086
        nice $command -I"$here/shim" -I"$root" -I"$work/include" -I"$work/include/stb" "$test" -o \
            "$out/program" -lm >"$out/log" 2>&1 ||
            { failure "$name, $t does not compile" "$out/log"; continue; }
        ( cd "$root" && TEST_SMALL=1 UGRID_TEST_SHARE=60 timeout 1500 $runner "$out/program" ) \
            >"$out/log" 2>&1 </dev/null
        status=$?
        if [ $status -eq 0 ] && grep -q '^\[  PASSED  \]' "$out/log"; then
            ok "$name, $t: $(sed -n 's/^\[  PASSED  \] //p' "$out/log")"
        elif [ $status -eq 124 ]; then skip "$name, $t: takes longer than 25 minutes"
        else failure "$name, $t (exit status $status)" <(grep -v '^\[ RUN  \|^\[  *OK ' "$out/log")
        fi
    done
}

serial_row() {
    if ! have "$2"; then unit skip "$1: no ${2%% *}"
    elif [ "$3" ] && ! have "$3"; then unit skip "$1: no ${3%% *}"
    elif [[ $2 == *-m32* ]] && ! links_32_bit; then unit skip "$1: gcc -m32 does not link"
    else unit serial "$@"; fi
}

serial_rows() {
    mkdir -p "$work/include"
    [ ! -d /usr/include/stb ] || ln -sfn /usr/include/stb "$work/include/stb"
    serial_row "serial tests, i386" "$CC -m32 -static -O2 -std=c99 -msse2 -mfpmath=sse" ""
    serial_row "serial tests, aarch64" "aarch64-linux-gnu-gcc -static -O2 -std=c99" \
        qemu-aarch64-static
    serial_row "serial tests, s390x" \
        "s390x-linux-gnu-gcc -static -O2 -std=gnu99 -ffp-contract=off" qemu-s390x-static
}

# ------------------------------------------------------------------------------------------------
# Self-check: each plant breaks one thing in a copy, and the row has to fail with a word of what is
# wrong
# ------------------------------------------------------------------------------------------------

# plant WHAT WORD FLAGS FILE SED PART: WHAT empty: nothing is broken, and the row is ok.
plant() {
    local what=$1 word=$2 flags=$3 file=$4 change=$5 part=$6 out said f
    headers=$units/plant.$BASHPID
    mkdir -p "$headers"
    cp -r "$work"/src/* "$headers"
    if [ "$what" ]; then
        sed -i "$change" "$headers/$file"
        if cmp -s "$headers/$file" "$work/src/$file"; then
            echo "FAILED   nothing was changed by: $what"; failed=1; return
        fi
    fi
    said=$(only=.; passed=0 failed=0 skipped=0;
        machine "self-check $BASHPID" "$CC -std=c99 -O0 $flags" "" little "$part"; echo \
            "failed $failed")
    f=${said##*failed }
    if [ "$what" = "" ] && [ "$f" = 0 ]; then echo "ok       nothing planted, nothing found";
        passed=1
    elif [ "$what" ] && [ "$f" != 0 ] && echo "$said" | grep -qE -- "$word"
    then echo "ok       noticed: $what"; passed=1
    else echo "FAILED   not noticed: $what"; echo "$said" | head -n 20 | sed 's/^/    | /'
    failed=1; fi
}

self_check() {
    "$work/float" limits >"$work/float.limits"
    unit plant "" "" "" "" "" quick
    unit plant "a sum in another order" "differs: lbvh" "" lbvh.h \
        's/lbvh_i_kept(lbvh_i_times(x, x) + lbvh_i_times(y, y)) + lbvh_i_times(z, z));/lbvh_i_kept(lbvh_i_times(z, z) + lbvh_i_times(y, y)) + lbvh_i_times(x, x));/' quick
    unit plant "another sum of bits for a cell" "differs: ugrid.*unbounded" "" ugrid.h \
        's/(h ^ h >> 12)/(h ^ h >> 11)/' quick
    unit plant "a logarithm that ends one term earlier" "differs: nbody.*1/d" "" nbody.h \
        's/= nbody_i_times(0.069716114715f, r) - 0.11479733847f;/= -0.11479733847f;/' quick
    unit plant "a program that dies" "did not come to its end" "" bits.c \
        's/^static void nbody_part(void)$/static void nbody_part(void) { abort(); }\n__attribute__((unused)) static void not_called(void)/' quick
    unit plant "a file that cannot be read elsewhere" "files of x86-64 here.*refused" "" nlist.h \
        's/NLIST_I_FILE_VERSION 3/NLIST_I_FILE_VERSION 4/' limits
    unit plant "a wrong code for a foreign file" "by a wrong code|cut" "" lbvh.h \
        's/byte_order = 0x01020304u/byte_order = 0x04030201u/; s/, size)) return LBVH_BAD_FILE;/, size)) return LBVH_BAD_ARGUMENT;/' limits
    if links_32_bit; then
        unit plant "a size that wraps in 32 bits" "bad limits lbvh" "-m32 -msse2 -mfpmath=sse" \
            lbvh.h 's/^.*32-bit size_t \*\/$//' limits
    else unit skip "a size that wraps in 32 bits: gcc -m32 does not link"; fi
    all_units
    finish
}

mkdir -p "$work"
references
if [ "$self_check" ]; then self_check; fi
quick_rows
if [ "$full" ]; then full_rows; serial_rows; fi
all_units
finish
