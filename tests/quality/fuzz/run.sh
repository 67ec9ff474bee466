#!/bin/bash
# Fuzzes the headers: any bytes become descs, points and calls, and the answers are compared with
# brute force.
#
#   tests/quality/fuzz/run.sh                     the corpus, then so many inputs for each fuzzer
#                                         (FUZZ_RUNS, 1000), the same ones each time (FUZZ_SEED);
#                                         FUZZ_SECONDS: so many seconds instead
#   tests/quality/fuzz/run.sh --long MINUTES      minutes for each (10); what is new goes to
#                                                 build/fuzz/grown/NAME
#   tests/quality/fuzz/run.sh --only 'ugrid|load' those whose names match
#   tests/quality/fuzz/run.sh --self-check        is a planted bug found, by each fuzzer?
#   tests/quality/fuzz/run.sh --minimise          adds what a long run found to the corpus, as few
#                                                 and small files as cover as much
#
# With clang and libFuzzer (Debian: clang, libclang-rt-NN-dev). Where they are missing, the corpus
# and some made inputs are run by standalone.c, compiled by $CC, with sanitizers where it has them.
# The last line is "N passed, M failed, K skipped".
# Environment: FUZZ_RUNS, FUZZ_SECONDS, FUZZ_SEED, CLANG, CC (cc), FUZZ_HEADERS (where the headers
# are), FUZZ_STANDALONE=1: as if there were no clang.
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${FUZZ_WORK:-$root/build/fuzz}
headers=${FUZZ_HEADERS:-$root}
made_inputs=${FUZZ_RUNS:-1000}
# or a time; in a number of runs a busy machine tries what an idle one does
amount=-runs=$made_inputs
[ ! "${FUZZ_SECONDS:-}" ] || amount=-max_total_time=$FUZZ_SECONDS
seed=${FUZZ_SEED:-1}         # 0: another one each time, which long runs take
fuzzers="ugrid lbvh wide world nlist nbody load"
only=.
mode=quick
passed=0 failed=0 skipped=0

flags="-std=c99 -O1 -g1 -fno-omit-frame-pointer -ffp-contract=off"
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
# Each input within ten minutes (what hangs; most take milliseconds) and 2 GB. Little is kept of
# what was freed: inputs are many and small.
limits="-timeout=600 -reload=0 -rss_limit_mb=2048 -max_len=1024 -print_final_stats=1"
export ASAN_OPTIONS="quarantine_size_mb=16:allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"

say()  { echo "$*"; }
pass() { passed=$((passed + 1)); say "ok       $*"; }
fail() { failed=$((failed + 1)); say "FAILED   $*"; }
skip() { skipped=$((skipped + 1)); say "skipped  $*"; }
# (addresses that are compared, too, lead libFuzzer to its next inputs)
same_addresses=$(setarch -R true 2>/dev/null && echo setarch -R)

# A clang that has libFuzzer; the newest of several.
find_clang() {
    local c
    for c in ${CLANG:-clang $(compgen -c clang- | grep -E '^clang-[0-9]+$' | sort -t- -k2 -rn)}; do
        command -v "$c" >/dev/null 2>&1 || continue
        echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n > 99; }' >"$work/hello.c"
        "$c" -fsanitize=fuzzer,address,undefined "$work/hello.c" -o "$work/hello" 2>/dev/null &&
            { echo "$c"; return; }
    done
}

# compile NAME HEADERS PROGRAM: with libFuzzer, or with the small main.
compile() {
    local name=$1 from=$2 program=$3 cc=${CC:-cc}
    if [ "$clang" ]; then
        # shellcheck disable=SC2086
        $clang $flags -fsanitize=fuzzer ${sanitize} -I"$from" -I"$here" "$here/fuzz_$name.c" -o \
            "$program" -lm
        return
    fi
    # shellcheck disable=SC2086
    $cc $flags $sanitize -I"$from" -I"$here" "$here/fuzz_$name.c" "$here/standalone.c" -o \
        "$program" -lm 2>/dev/null ||
        $cc -std=c99 -O1 -I"$from" -I"$here" "$here/fuzz_$name.c" "$here/standalone.c" -o \
        "$program" -lm
}

# What went wrong, and how to see it again.
explain() {     # explain LOG NAME
    grep -E 'check failed|runtime error|ERROR: |SUMMARY|timeout|Test unit' "$1" | head -n 12 |
        cut -c 1-300 | sed 's/^/    | /'
    say "    | log: $1; again: see tests/quality/fuzz/README.md"
    # beside the log of this group (tests/run_all.sh)
    [ ! "${LOGS:-}" ] || cp "$1" "$LOGS/fuzz-$2.log"
}

corpus_of() { find "$work/corpus/$1" -type f 2>/dev/null | sort; }
unpack() {
    rm -rf "$work/corpus/$1"; "$here/corpus.sh" unpack "$here/corpus/$1.txt" "$work/corpus/$1"
}

# fuzz NAME PROGRAM AMOUNT LOG [FOLDER]: the corpus, each file once, then at random. The folder
# takes what is new.
fuzz() {
    local name=$1 program=$2 amount=$3 log=$4 grown=${5:-} stop status
    if [ ! "$clang" ]; then
        # shellcheck disable=SC2046
        ( cd "$work" && timeout 3600 "$program" "$made_inputs" $(corpus_of "$name") ) >"$log" 2>&1
        return
    fi
    # shellcheck disable=SC2086
    {
        ( cd "$work" && $same_addresses "$program" $limits -runs=0 -artifact_prefix="$work/$name-" \
            "$work/corpus/$name" ) >"$log" 2>&1 || return 1
        [ "$grown" ] || { grown=$(mktemp -d "$work/new.XXXXXX"); stop=$grown; }
        ( cd "$work" && $same_addresses "$program" $limits -seed="$seed" "$amount" \
            -artifact_prefix="$work/$name-" "$grown" "$work/corpus/$name" ) >>"$log" 2>&1
        status=$?
    }
    [ "${stop:-}" ] && rm -rf "$stop"
    return $status
}

runs_in() {
    sed -n 's/^stat::number_of_executed_units: *//p; s/.*, \([0-9]*\) made inputs$/\1/p' "$1" |
        tail -n 1
}

run_all() {
    local name grown
    [ $mode = long ] && amount=-max_total_time=$((minutes * 60)) && seed=${FUZZ_SEED:-0}
    for name in $fuzzers; do
        [[ $name =~ $only ]] || continue
        if ! compile "$name" "$headers" "$work/$name" >"$work/$name.compile.log" 2>&1; then
            fail "$name: does not compile"; head -n 20 "$work/$name.compile.log" |
                sed 's/^/    | /'; continue
        fi
        grown=
        if [ $mode = long ]; then grown=$work/grown/$name; mkdir -p "$grown"; fi
        if fuzz "$name" "$work/$name" "$amount" "$work/$name.log" "$grown"; then
            pass "$name: $(corpus_of "$name" | wc -l) inputs, $(runs_in "$work/$name.log") runs"
        else
            fail "$name"; explain "$work/$name.log" "$name"
        fi
    done
}

# ------------------------------------------------------------------------------------------------
# Planted bugs: a copy of the headers with one thing changed by sed. Found is what fails.
# ------------------------------------------------------------------------------------------------

planted() {     # planted NAME HEADER WHAT SED-COMMAND
    local name=$1 header=$2 what=$3 change=$4 from=$work/planted
    [[ $name =~ $only ]] || return 0
    rm -rf "$from"; mkdir -p "$from"
    cp -r "$headers"/*.h "$headers/more" "$from/"
    sed -i "$change" "$from/$header.h"
    if cmp -s "$headers/$header.h" "$from/$header.h"; then
        fail "$name: \"$what\" could not be planted, the line has changed"; return
    fi
    if ! compile "$name" "$from" "$work/planted-$name" >"$work/planted-$name.compile.log" 2>&1; then
        fail "$name: \"$what\" does not compile"; return
    fi
    if fuzz "$name" "$work/planted-$name" "-runs=${FUZZ_RUNS:-100000}" "$work/planted-$name.log" \
        >/dev/null 2>&1; then fail "$name: \"$what\" was not found"
    else pass "$name: \"$what\" was found"; fi
}

self_check() {
    planted ugrid ugrid 'a particle at the radius is outside' \
        's/if (ugrid_i_distance2_in_box(grid, at, q) > radius \* radius) continue;/if (ugrid_i_distance2_in_box(grid, at, q) >= radius * radius) continue;/'
    planted ugrid ugrid 'an allocation that fails is used' \
        's/        if (!block->memory) return UGRID_OUT_OF_MEMORY;//'
    planted lbvh lbvh 'boxes that touch do not overlap' \
        's/^    return (node->min\[0\] <= max\[0\]) & /    return (node->min[0] < max[0]) \& /'
    planted wide more/lbvh_wide 'upper sides of boxes are rounded down' \
        's/= (uint8_t)(-lbvh_i_quanta(-box->max\[a\], exponent) - corner)/= (uint8_t)(lbvh_i_quanta(box->max[a], exponent) - corner)/'
    planted world more/lbvh_world 'a pair that exists begins again' \
        's/        if (world->mark\[other\] != world->token) continue;//'
    planted world more/lbvh_world 'pairs of a removed object stay' \
        's/        if (!own->alive ||$/        if (/'
    planted nlist nlist 'a particle at the distance is not listed' \
        's/return d2 <= limit \&\& nlist_i_may_list/return d2 < limit \&\& nlist_i_may_list/'
    planted nbody nbody 'the cell on the right is not beside' \
        's/ \& bits) <= (1u << s) + 1;/ \& bits) < (1u << s) + 1;/'
    planted nbody more/nbody_function 'a law of the caller is too strong between near bodies' \
        's/return law->function.force(d, law->function.user) \/ r;/return 1.1 * law->function.force(d, law->function.user) \/ r;/'
    planted nbody more/nbody_periodic 'in a periodic square the image across the border is not the nearest' \
        's/return d > edge \/ 2 ? d - edge : d < -edge \/ 2 ? d + edge : d;/(void)edge; return d;/'
    planted load lbvh 'links of a loaded tree are not looked at' \
        's/return node->link == left \&\& node->skip == r->skip/return node->skip == r->skip/'
    planted load nlist 'partners of a loaded list may be any' \
        's/if (id < 0 || id >= limit ||/if (id < 0 || id > limit ||/'
}

# What a long run found, and the corpus: merged. Files with names of their own stay.
minimise() {
    local name into
    for name in $fuzzers; do
        [[ $name =~ $only ]] || continue
        [ -d "$work/grown/$name" ] || { skip "$name: nothing in build/fuzz/grown/$name"; continue; }
        compile "$name" "$headers" "$work/$name" || { fail "$name: does not compile"; continue; }
        into=$work/corpus/$name
        if ( cd "$work" && "$work/$name" -set_cover_merge=1 -use_counters=0 -max_len=512 "$into" \
            "$work/grown/$name" ) >"$work/$name.merge.log" 2>&1
        then "$here/corpus.sh" pack "$into" "$here/corpus/$name.txt"
        pass "$name: $(corpus_of "$name" | wc -l) inputs"
        else fail "$name: see $work/$name.merge.log"; fi
    done
}

minutes=10
while [ $# -gt 0 ]; do
    case $1 in
    --quick) mode=quick ;;
    --long) mode=long; if [[ ${2:-} =~ ^[0-9]+$ ]]; then minutes=$2; shift; fi ;;
    --only) only=$2; shift ;;
    --self-check) mode=self_check ;;
    --minimise) mode=minimise ;;
    *) sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done

mkdir -p "$work" || exit 1
clang=
[ "${FUZZ_STANDALONE:-}" ] || clang=$(find_clang)
[ "$clang" ] || skip "libFuzzer: no clang that has it (Debian: clang libclang-rt-14-dev); the corpus and $made_inputs made inputs for each instead"
for name in $fuzzers; do unpack "$name"; done
case $mode in
self_check) self_check ;;
minimise) [ "$clang" ] || exit 1; minimise ;;
*) run_all ;;
esac
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
