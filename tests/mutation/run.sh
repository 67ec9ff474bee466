#!/bin/bash
# Do the tests notice when a header is wrong? Changes one operator, constant or statement of a header at a time and runs its tests.
#
#   tests/mutation/run.sh                       60 mutants of each header, sampled with a fixed seed: hours
#   tests/mutation/run.sh --header lbvh         of one of them
#   tests/mutation/run.sh --mutants 20          so many of each
#   tests/mutation/run.sh --seed 2              another sample
#   tests/mutation/run.sh --minutes 30          stops after that, with what there is
#   tests/mutation/run.sh --only lbvh.h:2057    every mutant of that line, again (lbvh.h:2057:9: of that column)
#   tests/mutation/run.sh --survivors           again those that survived: after a test was added
#   tests/mutation/run.sh --hasty               the quick tests only; --survivors then does the rest
#   tests/mutation/run.sh --report              what there is
#   tests/mutation/run.sh --list --header lbvh  what can be changed: line, column, kind, before, after
#   tests/mutation/run.sh --self-check          is a mutant caught that must be, and does one survive that changes nothing?
#
# Results are kept in build/mutation/results.tsv; the next run goes on where this one stopped, for headers that have not changed since.
# It works on a copy of the headers and tests; the repository is not touched. One process at a time, at low priority.
# A mutant is caught when a test fails, crashes or takes several times as long as usual. One that the quick tests leave alive meets the
# full ones, the same with sanitizers, with doubles and in valgrind, and last the corpus of tests/fuzz, which is counted apart.
# The last line is "N passed, M failed, K skipped": of mutants, caught, survived, and such as do not compile (another takes their place).
# Survivors are not an error by themselves: README.md says which ones cannot be noticed. Environment: CC (cc).
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${MUTATION_WORK:-$root/build/mutation}
headers="ugrid lbvh nlist nbody"
mutants=60
seed=1
minutes=100000
mode=run
only=
hasty=
cc=${CC:-cc}
results=$work/results.tsv
valgrind=
valgrind -q true >/dev/null 2>&1 && valgrind=yes

export ASAN_OPTIONS=quarantine_size_mb=16:allocator_may_return_null=1
export CMOCKA_TEST_ABORT=1              # the first failing test ends the program
ulimit -c 0

# Programs, one a line: test, flags, environment. First what is quick (fastest first), then, for survivors, what takes longer.
quick() {
    case $1 in
    ugrid) echo "test_ugrid -O1 UGRID_TEST_SHARE=1024" ;;
    lbvh)  echo "test_lbvh_calls -O0 TEST_SMALL=1"; echo "test_lbvh -O0 TEST_SMALL=1" ;;
    nlist) echo "test_nlist -O0 TEST_SMALL=1"; echo "test_nlist_walls -O0 TEST_SMALL=1"; echo "test_nlist_calls -O0 TEST_SMALL=1" ;;
    nbody) echo "test_nbody_calls -O1 TEST_SMALL=1"; echo "test_nbody -O1 TEST_SMALL=1" ;;
    esac
}
thorough() {
    local test double=DOUBLE
    case $1 in lbvh|nlist) double=DOUBLE0 ;; esac
    for test in $(tests_of "$1"); do
        echo "$test $double TEST_SMALL=1,UGRID_TEST_SHARE=512,UGRID_TEST_LOT=1"
        echo "$test SANITIZED TEST_SMALL=1,UGRID_TEST_SHARE=1024,UGRID_TEST_LOT=3"
        echo "$test -O1 UGRID_TEST_SHARE=16"
    done
    case $1 in ugrid|lbvh) echo "test_nlist -O0 TEST_SMALL=1"; echo "test_nlist_calls -O0 TEST_SMALL=1" ;; esac
    case $1 in lbvh) echo "test_nlist_walls -O0 TEST_SMALL=1" ;; esac
    for test in test_verify test_limits test_floats; do
        [ -f "$work/tree/tests/$test.c" ] && echo "$test SANITIZED TEST_SMALL=1"
    done
    [ "$valgrind" ] || return
    for test in $(tests_of "$1"); do
        case $test in test_ugrid|test_nbody_calls) ;; *) echo "$test VALGRIND TEST_SMALL=1" ;; esac   # these take minutes
    done
}
tests_of() { quick "$1" | cut -d' ' -f1; }
fuzzers() {
    case $1 in
    lbvh|nlist) echo "$1 load" ;;
    *) echo "$1" ;;
    esac
}

flags() {
    case $1 in
    SANITIZED) echo "-O0 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all" ;;
    VALGRIND) echo "-O1 -g1" ;;
    DOUBLE*) [ "$1" = DOUBLE ] && echo -O1; echo "-DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double -DNBODY_REAL=double" ;;
    *) echo "$1" ;;
    esac
}

now() { date +%s; }
stop_at=

# ---- the copy -------------------------------------------------------------------------------------------------------------------

copy_tree() {
    rm -rf "$work/tree"; mkdir -p "$work/tree/tests"
    cp "$root"/*.h "$work/tree/"
    cp "$root"/tests/*.c "$root"/tests/*.h "$work/tree/tests/"
    cp -r "$root/tests/data" "$work/tree/tests/"
    mkdir -p "$work/tree/whole"; cp "$root"/*.h "$work/tree/whole/"
}

packages() { pkg-config "$1" cmocka stb; }

# compile TEST FLAGS: into $work/program.
compile() {
    # shellcheck disable=SC2046
    $cc -std=c99 -w $(flags "$2") -I"$work/tree" $(packages --cflags) "$work/tree/tests/$1.c" -o "$work/program" \
        -Wl,--as-needed $(packages --libs) -lm >"$work/compile.log" 2>&1
}

# run_it SECONDS HOW ENVIRONMENT COMMAND...: at most so long, 4 GB (a sanitizer needs address space) and 20 MB of messages.
run_it() {
    local limit=$1 how=$2 environment=$3; shift 3
    (
        case $how in
        SANITIZED) ;;
        VALGRIND) set -- valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=all "$@" ;;
        *) ulimit -v 4000000 ;;
        esac
        ulimit -f 40000
        # shellcheck disable=SC2046
        env $(echo "$environment" | tr ',' ' ') timeout -k 5 "$limit" "$@"; exit $?
    ) >"$work/program.log" 2>&1 </dev/null
}

# What each program takes on a header that is right; it must pass there. Measured once a run.
declare -A usual
baseline() {
    local header=$1 test how environment start
    while read -r test how environment; do
        [ "${usual[$test $how $environment]:-}" ] && continue
        compile "$test" "$how" || { echo "FAILED   $test ($how) does not compile: $work/compile.log"; return 1; }
        start=$(now)
        run_it 600 "$how" "$environment" "$work/program" ||
            { echo "FAILED   $test ($how) fails on the header as it is: $work/program.log"; return 1; }
        usual["$test $how $environment"]=$(($(now) - start + 1))
    done < <($2 "$header")
}

# ---- mutants --------------------------------------------------------------------------------------------------------------------

# The lines of the header that its tests compile: no directives, nothing for nvcc or another processor.
live_lines() {
    local header=$1 test
    # shellcheck disable=SC2046
    for test in $(tests_of "$header"); do
        $cc -std=c99 -E -I"$work/tree/whole" $(packages --cflags) "$work/tree/tests/$test.c" 2>/dev/null
    done | awk -v name="$header.h" '
        /^# [0-9]+ "/ { file = $3; gsub(/"/, "", file); sub(/.*\//, "", file); line = $2; next }
        file == name && /[^ \t]/ { print line }
        { line++ }' | sort -un
}

sites() { live_lines "$1" >"$work/live" && awk -f "$here/sites.awk" "$work/live" "$work/tree/whole/$1.h"; }

# The sites in an order by chance, always the same for a seed. There are many constants: one is taken a third as often as the rest.
shuffled() {
    awk -F'\t' -v seed="$1" 'BEGIN { OFS = "\t"; r = (seed * 7919 + 12345) % 2147483647; for (k = 0; k < 20; k++) r = r * 16807 % 2147483647 }
        { r = r * 16807 % 2147483647; key = r / 2147483647 * ($3 == "const" ? 3 : 1); printf "%.9f\t%s\n", key, $0 }' | sort -n | cut -f2-
}

# apply HEADER LINE COLUMN BEFORE AFTER: into the copy.
apply() {
    B=$4 A=$5 awk -v line="$2" -v col="$3" '
        NR == line {
            b = ENVIRON["B"]
            if (substr($0, col, length(b)) != b) exit 3
            $0 = substr($0, 1, col - 1) ENVIRON["A"] substr($0, col + length(b))
        }
        { print }' "$work/tree/whole/$1.h" >"$work/tree/$1.h.new" && mv "$work/tree/$1.h.new" "$work/tree/$1.h"
}
restore() { cp "$work/tree/whole/$1.h" "$work/tree/$1.h"; }

# meet HEADER STAGE: the programs of a stage; sets verdict and by.
meet() {
    local header=$1 test how environment limit status
    while read -r test how environment; do
        if ! compile "$test" "$how"; then
            verdict=uncompilable by=$test
            [ "$2" = quick ] || { verdict=caught; by="$test $how: does not compile"; }
            return
        fi
        limit=$((${usual[$test $how $environment]:-60} * 5 + 8))
        run_it $limit "$how" "$environment" "$work/program"; status=$?
        if [ $status -ne 0 ]; then
            [ "$2" = quick ] || innocent "$header" "$test" "$how" "$environment" || exit 1
            verdict=caught
            by="$test $how: $(sed -n 's/^\[ RUN *\] //p' "$work/program.log" | tail -n 1)"
            case $status in 124|137) by="$by (time)" ;; esac
            return
        fi
    done < <($2 "$header")
}

# The corpus, no made inputs.
meet_fuzzers() {
    local header=$1 name
    for name in $(fuzzers "$header"); do
        # shellcheck disable=SC2046
        if ! $cc -std=c99 -w -O0 -g1 -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=all -I"$work/tree" -I"$root/tests/fuzz" \
            "$root/tests/fuzz/fuzz_$name.c" "$root/tests/fuzz/standalone.c" -o "$work/program" -lm >"$work/compile.log" 2>&1; then continue; fi
        # shellcheck disable=SC2046
        ( cd "$work" && run_it 60 SANITIZED X=1 "$work/program" 0 $(find "$root/tests/fuzz/corpus/$name" -type f | sort) ) ||
            { verdict=fuzz; by="corpus of $name: $(tail -n 1 "$work/program.log" | cut -c 1-80 | tr '\t' ' ')"; return; }
    done
}

# try HEADER LINE COLUMN KIND BEFORE AFTER: one mutant; its verdict is added to the results.
try() {
    local header=$1 start
    start=$(now)
    verdict=survived by=-
    apply "$1" "$2" "$3" "$5" "$6" || { echo "FAILED   $1.h:$2:$3 has no '$5'"; restore "$header"; return 1; }
    meet "$header" quick
    if [ $verdict = survived ] && [ "$hasty" ]; then by="not tried by the thorough tests"; fi
    if [ $verdict = survived ] && [ ! "$hasty" ]; then meet "$header" thorough; fi
    if [ $verdict = survived ] && [ ! "$hasty" ]; then meet_fuzzers "$header"; fi
    restore "$header"
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$header" "$(sum_of "$header")" "$2" "$3" "$4" "$5" "$6" $verdict "$by" $(($(now) - start)) >>"$results"
    printf '%-9s %s.h:%s: %s -> %s   [%s, %s s]\n' $verdict "$header" "$2" "$(shorter "$5")" "$(shorter "${6:-(nothing)}")" "$by" $(($(now) - start))
}

# Does a slow program pass on the header as it is? Asked when it has failed on a mutant, once a run.
declare -A good
innocent() {
    local header=$1 test=$2 how=$3 environment=$4 by_then=$work/program.log.mutant result=0
    [ "${good[$test $how $environment]:-}" ] && return
    good[$test $how $environment]=yes
    mv "$work/program.log" "$by_then";
    cp "$work/tree/$header.h" "$work/mutant.kept"
    restore "$header"
    { compile "$test" "$how" && run_it 900 "$how" "$environment" "$work/program"; } ||
        { echo "FAILED   $test ($how) fails on the header as it is: $work/program.log"; result=1; }
    cp "$work/mutant.kept" "$work/tree/$header.h"
    mv "$by_then" "$work/program.log"
    return $result
}

shorter() { local t=$1; if [ ${#t} -gt 90 ]; then t="${t:0:87}..."; fi; echo "$t"; }

# Results count while the header's text is the same.
declare -A sums
sum_of() {
    [ "${sums[$1]:-}" ] || sums[$1]=$(cksum <"$work/tree/whole/$1.h" | cut -d' ' -f1)
    echo "${sums[$1]}"
}

# The newest verdict on each mutant of a header as it is now: line, column, kind, before, after, verdict, by.
verdicts() {
    awk -F'\t' -v header="$1" -v sum="$(sum_of "$1")" 'BEGIN { OFS = "\t" }
        $1 == header && $2 == sum { key = $3 OFS $4 OFS $5 OFS $6 OFS $7; if (!(key in v)) order[++n] = key; v[key] = $8 OFS $9 }
        END { for (k = 1; k <= n; k++) print order[k], v[order[k]] }' "$results"
}

late() { [ "$(now)" -ge "$stop_at" ]; }

# The sample: the first of the shuffled sites, until enough of them compiled.
sample() {
    local header=$1 line col kind before after done_so_far=0 known
    baseline "$header" quick || return 1
    sites "$header" | shuffled "$seed" >"$work/sites.$header"
    verdicts "$header" >"$work/known"
    # Tabs are blanks to `read`: an empty field would be lost. So another separator.
    while IFS=$'\001' read -r line col kind before after; do
        [ $done_so_far -ge "$mutants" ] && break
        known=$(P="$line	$col	$kind	$before	$after	" awk 'index($0, ENVIRON["P"]) == 1' "$work/known" | head -n 1)
        if [ "$known" ]; then
            case $known in *$'\t'uncompilable$'\t'*) ;; *) done_so_far=$((done_so_far + 1)) ;; esac
            continue
        fi
        late && break
        try "$header" "$line" "$col" "$kind" "$before" "$after" || return 1
        [ $verdict = uncompilable ] || done_so_far=$((done_so_far + 1))
    done < <(tr '\t' '\001' <"$work/sites.$header")
}

again() {       # again HEADER FILTER: the sites whose row, after "HEADER.h:LINE<tab>", the awk filter lets through
    local header=$1 line col kind before after
    baseline "$header" quick || return 1
    while IFS=$'\001' read -r line col kind before after; do
        late && break
        try "$header" "$line" "$col" "$kind" "$before" "$after" || return 1
    done < <($2 | tr '\t' '\001')
}
of_the_line() {
    local place=${only#*.h:}
    sites "$header" | awk -F'\t' -v line="${place%%:*}" -v col="${place#"${place%%:*}"}" '$1 == line && (col == "" || ":" $2 == col)'
}
that_survived() { verdicts "$header" | awk -F'\t' 'BEGIN { OFS = "\t" } $6 == "survived" || $6 == "fuzz" { print $1, $2, $3, $4, $5 }'; }

# ---- the report -----------------------------------------------------------------------------------------------------------------

report() {
    local h
    for h in $headers; do verdicts "$h" | awk -v h="$h" '{ print h "\t" $0 }'; done >"$work/verdicts.tsv"
    echo
    awk -F'\t' '
        { n[$7 == "uncompilable" ? "skip" : "all", $1]++; v[$7, $1]++; quick[$1] += $7 == "caught" && $8 !~ /SANITIZED|DOUBLE|VALGRIND/; if (!($1 in seen)) { seen[$1]; order[++k] = $1 } }
        END {
            printf "%-8s %8s %16s %24s %10s %16s\n", "header", "mutants", "caught by tests", "of these only in", "survived", "also survived"
            printf "%-8s %8s %16s %24s %10s %16s\n", "", "", "", "other builds, valgrind", "the tests", "the fuzz corpus"
            for (i = 1; i <= k; i++) {
                h = order[i]
                printf "%-8s %8d %16d %24d %10d %16d\n", h, n["all", h], v["caught", h], v["caught", h] - quick[h], v["survived", h] + v["fuzz", h], v["survived", h]
                a += n["all", h]; c += v["caught", h]; q += v["caught", h] - quick[h]; s += v["survived", h]; f += v["fuzz", h]; u += n["skip", h]
            }
            printf "%-8s %8d %16d %24d %10d %16d\n", "all", a, c, q, s + f, s
        }' "$work/verdicts.tsv"
    if grep -q "	survived	\|	fuzz	" "$work/verdicts.tsv"; then
        echo; echo "survivors:"
        awk -F'\t' '$7 == "survived" || $7 == "fuzz" {
            if ($6 == "") $6 = "(nothing)"
            print "  " $1 ".h:" $2 ": " $5 " -> " $6 "   (column " $3 ($7 == "fuzz" ? "; the fuzz corpus finds it" : "") ")" }' "$work/verdicts.tsv"
    fi
    echo
    awk -F'\t' '{ c += $7 == "caught"; s += $7 == "survived" || $7 == "fuzz"; u += $7 == "uncompilable" }
        END { print c + 0 " passed, " s + 0 " failed, " u + 0 " skipped" }' "$work/verdicts.tsv"
}

# A result of a comparison turned round must be caught; a change that changes nothing must survive.
self_check() {
    local status=0 line
    header=lbvh
    baseline lbvh quick || exit 1
    line=$(grep -n 'return (node->min\[0\] <= max\[0\]) & ' "$root/lbvh.h" | head -n 1 | cut -d: -f1)
    try lbvh "${line:-0}" 27 compare '<=' '<' && [ $verdict = caught ] || { echo "FAILED   boxes that touch: $verdict"; status=1; }
    line=$(grep -n 'if (!tree) return LBVH_BAD_ARGUMENT;' "$root/lbvh.h" | head -n 1 | cut -d: -f1)
    try lbvh "${line:-0}" 9 none '!tree' '(!tree)' && [ $verdict = survived ] || { echo "FAILED   brackets around a condition: $verdict"; status=1; }
    exit $status
}

while [ $# -gt 0 ]; do
    case $1 in
    --header) headers=$2; shift ;;
    --mutants) mutants=$2; shift ;;
    --seed) seed=$2; shift ;;
    --minutes) minutes=$2; shift ;;
    --only) only=$2; mode=only; shift ;;
    --survivors) mode=survivors ;;
    --hasty) hasty=yes ;;
    --list) mode=list ;;
    --report) mode=report ;;
    --self-check) mode=self_check; results=$work/self_check.tsv ;;
    *) sed -n '2,23s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done

renice -n 10 $$ >/dev/null 2>&1
mkdir -p "$work" || exit 1
touch "$results"
stop_at=$(($(now) + minutes * 60))
copy_tree

case $mode in
self_check) self_check ;;
list) for header in $headers; do sites "$header" | awk -v h="$header" '{ print h ".h:" $0 }'; done; exit ;;
report) ;;
only) header=${only%%.h:*}; headers=$header; again "$header" of_the_line; exit ;;
survivors) for header in $headers; do again "$header" that_survived || exit 1; done ;;
run) for header in $headers; do sample "$header" || exit 1; done ;;
esac
report
