#!/bin/bash
# The soak: a drum and a dam for as long as you like, while their lists change at random
# (tests/quality/soak/README.md).
#
#   tests/quality/soak/run.sh [--minutes M]      each scene for M minutes (30), one after the other,
#                                                each time with another seed unless SEED is set
#   tests/quality/soak/run.sh --sanitized        the same with -O1 and AddressSanitizer,
#                                                UndefinedBehaviorSanitizer
#   tests/quality/soak/run.sh --self-check       are planted bugs found? Does a seed mean the same
#                                                run twice? (--only 'skin|lost': those that match)
#
# The last line is "N passed, M failed, K skipped". Environment: CC (cc), SEED, PARTICLES (2000),
# SOAK_HEADERS (where the headers are).
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${SOAK_WORK:-$root/build/soak}
headers=${SOAK_HEADERS:-$root}
particles=${PARTICLES:-2000}
minutes=30
mode=run
only=.
passed=0 failed=0
flags=${SOAK_CFLAGS:--O2 -g1}
sanitize="-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
# Little is kept of what was freed: else that is most of what is resident.
export ASAN_OPTIONS="quarantine_size_mb=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"

pass() { passed=$((passed + 1)); echo "ok       $*"; }
fail() { failed=$((failed + 1)); echo "FAILED   $*"; }

# compile HEADERS PROGRAM FLAGS
# shellcheck disable=SC2086
compile() { ${CC:-cc} -std=c99 -Wall -Wextra $3 -I"$1" "$here/soak.c" -o "$2" -lm; }

run_scenes() {
    local scene seed
    compile "$headers" "$work/soak" "$flags" || { fail "soak.c does not compile"; return; }
    for scene in drum dam; do
        seed=${SEED:-$(($(date +%s) % 1000000))}
        if "$work/soak" --scene $scene --minutes "$minutes" --seed "$seed" --particles "$particles"
        then pass "$scene, $minutes minutes, seed $seed"
        else fail "$scene, $minutes minutes, seed $seed"; fi
    done
}

# planted WHAT WORD SED-COMMAND SOAK-OPTIONS: a copy of nlist.h with one thing changed. Found is a
# failure that says WORD.
planted() {
    local what=$1 word=$2 change=$3 from=$work/planted status
    shift 3
    [[ $what =~ $only ]] || return 0
    rm -rf "$from"; mkdir -p "$from"
    cp -r "$headers"/*.h "$headers/more" "$from/"
    sed -i "$change" "$from/nlist.h"
    if cmp -s "$headers/nlist.h" "$from/nlist.h"; then
        fail "\"$what\" could not be planted, the line has changed"; return
    fi
    if ! compile "$from" "$work/planted-soak" "$flags" 2>"$work/planted.compile.log"; then
        fail "\"$what\" does not compile"; return
    fi
    "$work/planted-soak" "$@" --seed 1 >"$work/planted.log" 2>&1
    status=$?
    if [ $status -eq 1 ] && grep '^FAILURE' "$work/planted.log" | grep -q "$word"
    then pass "\"$what\" was found: $(grep -m1 '^FAILURE' "$work/planted.log" | cut -c 9-150)"
    else fail "\"$what\" was not found (exit $status)"; tail -n 12 "$work/planted.log" |
        sed 's/^/    | /'; fi
}

self_check() {
    local once twice scene
    planted 'the history of one entry is not carried' 'bytes say' \
        's/if (bytes > 0 \&\& old >= 0) memcpy/if (bytes > 0 \&\& old >= 0 \&\& !(old % 97 == 5 \&\& i == 77)) memcpy/' --scene drum --particles 300 --steps 20000
    planted 'a particle is lost by a remap' 'bytes say' \
        's/old_of\[new_id\[i\]\] = i;/if (i != 77 || n == list->n) old_of[new_id[i]] = i;/' \
        --scene dam --particles 300 --steps 20000
    planted 'a pair changes its row in a remap' 'bytes say\|in the row of' \
        's/: had ? had\[was\] : was, i,/: i, i,/' \
        --scene drum --particles 300 --steps 20000
    planted 'a list is kept for too long' 'the list has' \
        's/nlist_real const halved = list->desc.skin \/ 2;/nlist_real const halved = list->desc.skin * 4;/' --scene drum --particles 300 --steps 30000
    planted 'a check that gives nothing back' 'its allocator' \
        '/^NLIST_API nlist_result nlist_verify/,$ s/    nlist_i_release(&list->desc.allocator, &met);/    (void)met;/' --scene dam --particles 300 --steps 1000
    planted 'a block that grows for ever' 'more than' \
        's/    if (bytes <= block->bytes) return NLIST_OK;/    if (which != NLIST_I_BEGIN \&\& bytes <= block->bytes) return NLIST_OK;\n    if (bytes <= block->bytes) bytes = block->bytes + 262144;/' \
        --scene dam --particles 300 --steps 20000
    compile "$headers" "$work/soak-twice" "$flags" || { fail "soak.c does not compile"; return; }
    for scene in drum dam; do
        [[ "$scene twice" =~ $only ]] || continue
        once=$("$work/soak-twice" --scene $scene --particles 300 --steps 4000 --full |
            grep '  state')
        twice=$("$work/soak-twice" --scene $scene --particles 300 --steps 4000 --full |
            grep '  state')
        if [ "$once" ] && [ "$once" = "$twice" ]; then
            pass "$scene: a seed means the same run twice"
        else
            fail "$scene: one seed, two runs: $once, $twice"
        fi
    done
}

while [ $# -gt 0 ]; do
    case $1 in
    --minutes) minutes=$2; shift ;;
    --sanitized) flags=$sanitize ;;
    --self-check) mode=self_check ;;
    --only) only=$2; shift ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done
mkdir -p "$work" || exit 1
if [ $mode = self_check ]; then self_check; else run_scenes; fi
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
