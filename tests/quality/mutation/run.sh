#!/bin/bash
# Do the tests notice when a header is wrong? Changes one operator, constant or statement at a time
# and runs the tests.
#
#   tests/quality/mutation/run.sh                       60 mutants of each header and each part,
#                                                       sampled with a fixed seed: hours
#   tests/quality/mutation/run.sh --cuda                of each .cu file instead, tested on the
#                                                       emulator of tests/emu
#   tests/quality/mutation/run.sh --header lbvh         of one of them; more/lbvh_wide: of a part;
#                                                       cuda/lbvh: of kernels
#   tests/quality/mutation/run.sh --mutants 20          so many of each
#   tests/quality/mutation/run.sh --seed 2              another sample
#   tests/quality/mutation/run.sh --jobs 16             so many at a time
#   tests/quality/mutation/run.sh --minutes 30          stops after that, with what there is
#   tests/quality/mutation/run.sh --only lbvh.h:2057    every mutant of that line, again
#                                                       (lbvh.h:2057:9: of that column;
#                                                       cuda/lbvh.cu:90)
#   tests/quality/mutation/run.sh --survivors           again those that survived: after a test was
#                                                       added
#   tests/quality/mutation/run.sh --hasty               the quick tests only; --survivors then does
#                                                       the rest
#   tests/quality/mutation/run.sh --report              what there is; survivors with the lines
#                                                       around them
#   tests/quality/mutation/run.sh --list --header lbvh  what can be changed: line, column, kind,
#                                                       before, after
#   tests/quality/mutation/run.sh --self-check          is a mutant caught that must be, and does
#                                                       one survive that changes nothing?
#   tests/quality/mutation/run.sh --results FILE        keeps the results there
#   tests/quality/mutation/run.sh --pack FOLDER         copies cmocka and stb there, for a machine
#                                                       without them; there: --libraries FOLDER
#
# Results are kept in build/mutation/results.tsv; the next run goes on where this one stopped, for
# files that have not changed since.
# It works on copies of the headers and tests; the repository is not touched. Low priority.
# A mutant is caught when a test fails, crashes or takes several times the processor time that is
# usual. One that the quick tests leave alive meets the full ones, the same with sanitizers, with
# doubles and in valgrind (--cuda: the emulator's other modes and orders), and last the corpus of
# tests/quality/fuzz, which is counted apart.
# The last line is "N passed, M failed, K skipped": of mutants, caught, survived, and such as do not
# compile (another takes their place).
# Survivors are not an error by themselves: README.md says which ones cannot be noticed.
# Environment: CC (cc), CXX (clang++ if it has its sanitizers, else g++).
set -u
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${MUTATION_WORK:-$root/build/mutation}
names="ugrid lbvh nlist nbody"
names="$names $(cd "$root" && ls more/*.h 2>/dev/null | sed 's/\.h$//' | paste -sd' ')"
mutants=60
seed=1
jobs=1
minutes=100000
mode=run
only=
hasty=
libraries=
cc=${CC:-cc}
results=$work/results.tsv
# what is compiled: here as it is; a worker has a copy of its own
tree=$work/whole
own=$work                               # where programs and logs are: likewise
valgrind=
valgrind -q true >/dev/null 2>&1 && valgrind=yes

export ASAN_OPTIONS=quarantine_size_mb=16:allocator_may_return_null=1
export TSAN_OPTIONS=halt_on_error=1:history_size=4
export EMU_QUIET=1
export CMOCKA_TEST_ABORT=1              # the first failing test ends the program
ulimit -c 0

# What is mutated: a header (lbvh), a part of it (more/lbvh_wide), or the kernels of either
# (cuda/lbvh, cuda/lbvh_wide).
file_of() { case $1 in cuda/*) echo "$1.cu" ;; *) echo "$1.h" ;; esac; }
slug() { echo "${1//\//_}"; }
core_of() { local name=${1#*/}; echo "${name%%_*}"; }

# Programs, one a line: test, flags, environment. First what is quick (fastest first), then, for
# survivors, what takes longer.
quick() {
    case $1 in
    ugrid) echo "test_ugrid -O1 UGRID_TEST_SHARE=1024"; echo "test_ugrid_filter -O0 TEST_SMALL=1"
           echo "test_ugrid_outside -O0 TEST_SMALL=1" ;;
    lbvh) echo "test_lbvh -O0 TEST_SMALL=1"; echo "test_lbvh_world -O0 TEST_SMALL=1"
          echo "test_lbvh_wide -O0 TEST_SMALL=1" ;;
    nlist) echo "test_nlist -O0 TEST_SMALL=1"; echo "test_nlist_boxes -O0 TEST_SMALL=1"
           echo "test_nlist_rows -O0 TEST_SMALL=1"; echo "test_nlist_parallel -O0 TEST_SMALL=1" ;;
    nbody) echo "test_nbody -O1 TEST_SMALL=1" ;;
    more/*)
        # a test of its name, else those of its header
        if [ "$(source_of "test_${1#more/}")" ]; then echo "test_${1#more/} -O0 TEST_SMALL=1"
        else quick "$(core_of "$1")" | grep -v test_verify; fi ;;
    cuda/nlist_boxes)
        echo "cuda/test_nlist_boxes EMULATED TEST_SMALL=1"
        echo "cuda/test_nlist_boxes ADDRESS TEST_SMALL=1,EMU_ORDER=reverse" ;;
    cuda/*)
        echo "cuda/test_$(core_of "$1") EMULATED TEST_SMALL=1"
        echo "cuda/test_$(core_of "$1") ADDRESS TEST_SMALL=1,EMU_ORDER=reverse" ;;
    esac
    case $1 in cuda/*) ;; *) echo "test_verify -O0 TEST_SMALL=1" ;; esac
}
thorough() { case $1 in cuda/*) thorough_cuda "${1#cuda/}" ;; *) thorough_serial "$1" ;; esac; }
thorough_cuda() {
    local test; test=$(quick "cuda/$1" | head -n 1 | cut -d' ' -f1)
    echo "$test EMULATED EMU_ORDER=forward"
    echo "$test CHECKED TEST_SMALL=1,EMU_ORDER=random,EMU_PREEMPT=4,EMU_LAZY=1,EMU_BLOCKS=3"
    echo "$test CHECKED EMU_ORDER=forward"
    echo "cuda/test_faults CHECKED TEST_SMALL=1"
    echo "cuda/test_totals CHECKED TEST_SMALL=1"
    case $1 in ugrid|lbvh) echo "cuda/test_nlist ADDRESS TEST_SMALL=1" ;; esac
    [ "$clang" ] || return
    echo "$test THREADS TEST_SMALL=1,EMU_ORDER=random"
    echo "$test THREADS TEST_SMALL=1,EMU_TSAN_BLOCKS=1"
    echo "$test MEMORY TEST_SMALL=1,EMU_ORDER=forward"
}
thorough_serial() {
    local test double=DOUBLE
    case $(core_of "$1") in lbvh|nlist) double=DOUBLE0 ;; esac
    for test in $(tests_of "$1"); do
        echo "$test $double TEST_SMALL=1,UGRID_TEST_SHARE=512,UGRID_TEST_LOT=1"
        echo "$test SANITIZED TEST_SMALL=1,UGRID_TEST_SHARE=1024,UGRID_TEST_LOT=3"
        echo "$test -O1 UGRID_TEST_SHARE=16"
    done
    case $1 in ugrid|lbvh) echo "test_nlist -O0 TEST_SMALL=1" ;; esac
    for test in test_verify test_limits test_floats; do
        [ "$(source_of "$test")" ] && echo "$test SANITIZED TEST_SMALL=1"
    done
    [ "$valgrind" ] || return
    for test in $(tests_of "$1"); do
        case $test in
        test_ugrid) ;;                                                              # takes minutes
        # and so do its calls
        test_nbody) echo "$test VALGRIND TEST_SMALL=1,TEST_GROUP=fields" ;;
        *) echo "$test VALGRIND TEST_SMALL=1" ;;
        esac
    done
}
tests_of() { quick "$1" | cut -d' ' -f1 | grep -v '^test_verify$' | sort -u; }      # its own
fuzzers() {
    case $1 in
    cuda/*) ;;
    lbvh) echo "lbvh wide world load" ;;
    more/lbvh_wide) echo wide ;;
    more/lbvh_world) echo world ;;
    more/*) core_of "$1" ;;
    nlist) echo "nlist load" ;;
    *) echo "$1" ;;
    esac
}

flags() {
    case $1 in
    SANITIZED)
        echo "-O0 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all" ;;
    VALGRIND) echo "-O1 -g1" ;;
    EMULATED) echo "-O1" ;;
    # compiles in half the time of -O1
    ADDRESS) echo "-O0 -g1 -fsanitize=address $shared_section" ;;
    CHECKED)
        echo "-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all $shared_section" ;;
    THREADS) echo "-O1 -g1 -fsanitize=thread" ;;
    MEMORY) echo "-O1 -g1 -fno-omit-frame-pointer -fsanitize=memory -D_GLIBCXX_ASSERTIONS" ;;
    DOUBLE*)
        [ "$1" = DOUBLE ] && echo -O1
        echo "-DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double -DNBODY_REAL=double" ;;
    *) echo "$1" ;;
    esac
}

now() { date +%s; }
stop_at=
left() { echo $((stop_at - $(now))); }
late() { [ "$(left)" -le 0 ]; }
in_time() { local seconds; seconds=$(left); timeout -k 5 $((seconds > 0 ? seconds : 1)) "$@"; }

# ---- the copy ------------------------------------------------------------------------------------

copy_tree() {
    rm -rf "$work/whole" "$work"/worker.* "$work"/baseline.* "$work/queue"
    mkdir -p "$work/whole/tests" "$work/queue"
    cp -r "$root"/*.h "$root/more" "$root/cuda" "$work/whole/"
    cp -r "$root"/tests/{common,unit,cuda,emu} "$work/whole/tests/"
}

packages() {
    case ${libraries:+carried}$1 in
    carried--cflags) echo "-I$libraries" ;;
    carried--libs) echo "-L$libraries -Wl,-rpath,$libraries -lcmocka -lstb" ;;
    *) pkg-config "$1" cmocka stb ;;
    esac
}

# What packages() finds in --libraries FOLDER.
pack() {
    local name headers
    # shellcheck disable=SC2046
    headers=$(printf '#include <%s>\n' stdarg.h stddef.h setjmp.h cmocka.h stb/stb_ds.h |
        $cc $(pkg-config --cflags cmocka stb) -x c -M - |
        tr -s ' \\' '\n\n' | grep -E '/(cmocka|stb_ds)[^/]*\.h$')
    mkdir -p "$1/stb" || return
    for name in $headers; do
        case $name in */stb_ds.h) cp "$name" "$1/stb/" ;; *) cp "$name" "$1/" ;; esac || return
    done
    for name in cmocka stb; do
        cp -L "$($cc -print-file-name=lib$name.so.0)" "$1/lib$name.so.0" &&
            cp "$1/lib$name.so.0" "$1/lib$name.so" || return
    done
    [ -f "$1/cmocka.h" ] && [ -f "$1/stb/stb_ds.h" ] ||
        { echo "FAILED   the headers of cmocka and stb are not to be found"; return 1; }
    echo "$1 has what the tests need: $(cd "$1" && find . -type f | sort | tr '\n' ' ')"
}

# source_of TEST: test_NAME or cuda/test_NAME
source_of() {
    case $1 in
    cuda/*) ls "$tree"/tests/cuda/*/"${1#cuda/}.cu" ;;
    *) ls "$tree"/tests/unit/*/"$1.c" ;;
    esac 2>/dev/null
}

# compile TEST HOW: into $own/program.
built=
compile() {
    [ "$built" != "$1 $2" ] || return 0
    built=
    case $1 in
    cuda/*) compile_emulated "$@" ;;
    *) compile_serial "$@" ;;
    esac >"$own/compile.log" 2>&1 || return
    built="$1 $2"
}
compile_serial() {
    # shellcheck disable=SC2046
    in_time $cc -std=c99 -w $(flags "$2") -I"$tree" $(packages --cflags) "$(source_of "$1")" -o \
        "$own/program" \
        -Wl,--as-needed $(packages --libs) -lm
}
compile_emulated() {
    local object=emu.o
    [ "$2" = MEMORY ] && object=emu.msan.o
    # shellcheck disable=SC2046
    in_time $cxx $(emulator) $(flags "$2") "$(source_of "$1")" -x none "$work/$object" -o \
        "$own/program" \
        -Wl,--as-needed $(packages --libs)
}

# What tests/emu/README.md says, for programs.
emulator() {
    echo "-std=c++17 -w -I$tree/tests/emu/include -I$tree/tests/emu -I$tree -x c++ -D__CUDACC__ -include cuda_runtime.h -ffp-contract=off"
    packages --cflags
}

# The compiler for CUDA parts; and the emulator, once.
clang= shared_section= cxx=
choose_emulator() {
    local include="-I$work/whole/tests/emu/include -I$work/whole/tests/emu"
    cxx=${CXX:-$(command -v clang++-14 clang++ | head -n 1)}
    case $cxx in *clang*) has_sanitizers "$cxx" && clang=yes || cxx= ;; esac
    cxx=${cxx:-g++}
    [ "$clang" ] || shared_section=-fsanitize-sections=.emu_shared
    set -- -std=c++17 -O2 -g1 -w -fno-builtin
    [ "$clang" ] || set -- "$@" -fno-tree-loop-distribute-patterns
    # shellcheck disable=SC2086
    $cxx "$@" $include -c "$work/whole/tests/emu/emu.cc" -o "$work/emu.o" || return
    # shellcheck disable=SC2086
    [ ! "$clang" ] || [ "$hasty" ] ||
        $cxx "$@" $include -fsanitize=memory -c "$work/whole/tests/emu/emu.cc" -o "$work/emu.msan.o"
}
has_sanitizers() {
    echo 'int main() { return 0; }' | $1 -x c++ - -fsanitize=thread -o "$work/probe" >/dev/null 2>&1
}

# Some machines forbid what LeakSanitizer does.
allow_no_leaks() {
    echo 'int main() { return 0; }' | $cc -x c - -fsanitize=address -o "$work/probe" >/dev/null \
        2>&1 || return 0
    "$work/probe" >/dev/null 2>&1 || export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
}

# run_it SECONDS HOW ENVIRONMENT COMMAND...: at most so much processor time, 4 GB (a sanitizer needs
# address space) and 20 MB of messages.
run_it() {
    local limit=$1 how=$2 environment=$3 patience=$(($1 * 8 + 60)); shift 3
    [ "$patience" -lt "$(left)" ] || patience=$(left)
    (
        ulimit -St "$limit"
        case $how in
        SANITIZED|ADDRESS|CHECKED|THREADS|MEMORY) ;;
        VALGRIND)
            set -- valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=all \
                "$@" ;;
        *) ulimit -v 4000000 ;;
        esac
        ulimit -f 40000
        [ "$patience" -gt 0 ] || exit 124
        # shellcheck disable=SC2046
        env $(echo "$environment" | tr ',' ' ') timeout -k 5 "$patience" "$@"; exit $?
    ) >"$own/program.log" 2>&1 </dev/null
}

# What each quick program takes on a file that is right; it must pass there. Measured once a run.
declare -A usual
baseline() {
    local part test how environment count=0 status=0 key
    while read -r test how environment; do
        count=$((count + 1))
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
        ( own=$work/baseline.$count; mkdir -p "$own" && measure "$test" "$how" "$environment" ) &
    done < <(for part in $parts; do quick "$part"; done | sort -u)
    wait
    while [ $count -gt 0 ]; do
        read -r test how environment key <"$work/baseline.$count/usual" || status=1
        usual["$test $how $environment"]=$key
        count=$((count - 1))
    done
    return $status
}
measure() {
    local seconds
    : >"$own/usual"
    compile "$1" "$2" || { echo "FAILED   $1 ($2) does not compile: $own/compile.log"; return 1; }
    seconds=$(TIMEFORMAT='%U %S'; { time run_it 600 "$2" "$3" "$own/program" || echo failed; } 2>&1)
    case $seconds in *failed*) echo "FAILED   $1 ($2) fails on the file as it is: $own/program.log";
        return 1 ;; esac
    echo "$1 $2 $3 $(echo "$seconds" | awk '{ print int($1 + $2) + 1 }')" >"$own/usual"
}

# ---- mutants -------------------------------------------------------------------------------------

# The lines of a file that its tests compile: no directives, nothing for another processor.
live_lines() {
    local part=$1 test
    for test in $(tests_of "$part"); do
        # shellcheck disable=SC2046
        case $test in
        cuda/*) $cxx $(emulator) -E "$(source_of "$test")" 2>/dev/null ;;
        *) $cc -std=c99 -E -I"$tree" $(packages --cflags) "$(source_of "$test")" 2>/dev/null ;;
        esac
    done | awk -v name="$(basename "$(file_of "$part")")" '
        /^# [0-9]+ "/ { file = $3; gsub(/"/, "", file); sub(/.*\//, "", file); line = $2; next }
        file == name && /[^ \t]/ { print line }
        { line++ }' | sort -un
}

sites() {
    live_lines "$1" >"$work/live" &&
        awk -f "$here/sites.awk" "$work/live" "$work/whole/$(file_of "$1")"
}

# The sites in a random order, always the same for a seed. There are many constants: one is
# taken a third as often as the rest.
shuffled() {
    awk -F'\t' -v seed="$1" \
        'BEGIN { OFS = "\t"; r = (seed * 7919 + 12345) % 2147483647; for (k = 0; k < 20; k++) r = r * 16807 % 2147483647 }
        { r = r * 16807 % 2147483647; key = r / 2147483647 * ($3 == "const" ? 3 : 1);
          printf "%.9f\t%s\n", key, $0 }' | sort -n | cut -f2-
}

# apply PART LINE COLUMN BEFORE AFTER: into the worker's copy.
apply() {
    local file
    file=$(file_of "$1")
    built=
    B=$4 A=$5 awk -v line="$2" -v col="$3" '
        NR == line {
            b = ENVIRON["B"]
            if (substr($0, col, length(b)) != b) exit 3
            $0 = substr($0, 1, col - 1) ENVIRON["A"] substr($0, col + length(b))
        }
        { print }' "$work/whole/$file" >"$own/new" && mv "$own/new" "$tree/$file"
}
restore() { built=; cp "$work/whole/$(file_of "$1")" "$tree/$(file_of "$1")"; }

# meet PART STAGE: the programs of a stage; sets verdict and by.
meet() {
    local part=$1 test how environment limit status
    while read -r test how environment; do
        if ! compile "$test" "$how"; then
            late && { verdict=unfinished; return; }
            verdict=uncompilable by=$test
            [ "$2" = quick ] || { verdict=caught; by="$test $how: does not compile"; }
            return
        fi
        limit=$((${usual[$test $how $environment]:-120} * 5 + 8))
        run_it $limit "$how" "$environment" "$own/program"; status=$?
        [ $status -ne 0 ] || continue
        case $status in 124|137) late && { verdict=unfinished; return; } ;; esac
        [ "$2" = quick ] || innocent "$part" "$test" "$how" "$environment" || exit 1
        verdict=caught
        by="$test $how: $(where_it_failed)"
        case $status in 124|137|152) by="$by (time)" ;; esac
        return
    done < <($2 "$part")
}

# The test that failed: of cmocka's the last that began; of those in tests/cuda the first that says
# so, or what came after the last good one.
where_it_failed() {
    sed -n 's/^\[ RUN *\] //p' "$own/program.log" | tail -n 1
    awk '/^FAILED / { print $2; exit } /^ok / { last = $2 } END { if (last) print "after " last }' \
        "$own/program.log" | head -n 1
}

# The corpus, no made inputs.
meet_fuzzers() {
    local name
    for name in $(fuzzers "$1"); do
        [ -d "$work/corpus/$name" ] ||
            "$root/tests/quality/fuzz/corpus.sh" unpack \
            "$root/tests/quality/fuzz/corpus/$name.txt" "$work/corpus/$name"
        # shellcheck disable=SC2046
        if ! $cc -std=c99 -w -O0 -g1 -ffp-contract=off -fsanitize=address,undefined \
            -fno-sanitize-recover=all -I"$tree" -I"$root/tests/quality/fuzz" \
            "$root/tests/quality/fuzz/fuzz_$name.c" "$root/tests/quality/fuzz/standalone.c" -o \
            "$own/program" -lm >"$own/compile.log" 2>&1; then continue; fi
        # shellcheck disable=SC2046
        ( cd "$own" && run_it 60 SANITIZED X=1 "$own/program" 0 \
            $(find "$work/corpus/$name" -type f | sort) ) ||
            { verdict=fuzz; by="corpus of $name: $(tail -n 1 "$own/program.log" | cut -c 1-80 |
            tr '\t' ' ')"; return; }
    done
}

# try PART LINE COLUMN KIND BEFORE AFTER: one mutant; its verdict is added to the results, unless
# time is over.
try() {
    local part=$1 start file
    start=$(now) file=$(file_of "$1")
    verdict=survived by=-
    apply "$1" "$2" "$3" "$5" "$6" ||
        { echo "FAILED   $file:$2:$3 has no '$5'"; restore "$part"; return 1; }
    meet "$part" quick
    if [ $verdict = survived ] && [ "$hasty" ]; then by="not tried by the thorough tests"; fi
    if [ $verdict = survived ] && [ ! "$hasty" ]; then meet "$part" thorough; fi
    if [ $verdict = survived ] && [ ! "$hasty" ]; then meet_fuzzers "$part"; fi
    restore "$part"
    [ $verdict != unfinished ] || return 0
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$part" "$(sum_of "$part")" "$2" "$3" "$4" \
        "$5" "$6" $verdict "$by" $(($(now) - start)) >>"$results"
    printf '%-9s %s:%s: %s -> %s   [%s, %s s]\n' $verdict "$file" "$2" "$(shorter "$5")" \
        "$(shorter "${6:-(nothing)}")" "$by" $(($(now) - start))
}

# Does a slow program pass on the file as it is? Asked when it has failed on a mutant, once a
# worker.
declare -A good
innocent() {
    local part=$1 test=$2 how=$3 environment=$4 file result=0
    [ "${good[$test $how $environment]:-}" ] && return
    good[$test $how $environment]=yes
    file=$tree/$(file_of "$part")
    mv "$own/program.log" "$own/program.log.mutant"
    cp "$file" "$own/mutant.kept"
    restore "$part"
    { compile "$test" "$how" && run_it 900 "$how" "$environment" "$own/program"; } || late ||
        { echo "FAILED   $test ($how) fails on the file as it is: $own/program.log"; result=1; }
    built=
    cp "$own/mutant.kept" "$file"
    mv "$own/program.log.mutant" "$own/program.log"
    return $result
}

shorter() { local t=$1; if [ ${#t} -gt 90 ]; then t="${t:0:87}..."; fi; echo "$t"; }

# Results count while the file's text is the same.
sum_of() { cksum <"$work/whole/$(file_of "$1")" | cut -d' ' -f1; }

# The newest verdict on each mutant of a file as it is now: line, column, kind, before, after,
# verdict, by.
verdicts() {
    awk -F'\t' -v part="$1" -v sum="$(sum_of "$1")" 'BEGIN { OFS = "\t" }
        $1 == part && $2 == sum { key = $3 OFS $4 OFS $5 OFS $6 OFS $7;
                                  if (!(key in v)) order[++n] = key; v[key] = $8 OFS $9 }
        END { for (k = 1; k <= n; k++) print order[k], v[order[k]] }' "$results"
}

# ---- the queue: rows of mutants in the order in which they are taken, and how many of each part --

# enqueue PART: rows from stdin, after what is known of each: - nothing, done, or that it does not
# compile.
enqueue() {
    local file
    file=$work/queue/$(slug "$1")
    # Tabs are blanks to `read`: an empty field would be lost. So another separator.
    cat >"$file.rows"
    verdicts "$1" >"$file.known"
    awk -F'\t' -v fresh="$2" '
        FILENAME == ARGV[1] { v[$1 FS $2 FS $3 FS $4 FS $5] = $6 == "uncompilable" ? "no" : "done";
                              next }
        { print (!fresh && ($0 in v) ? v[$0] : "-") FS $0 }' "$file.known" "$file.rows" |
        tr '\t' '\001' >"$file.queue"
    echo "0 0" >"$file.state"
}

# take: the next row of the part of which the fewest are taken, into part, line, col, kind, before,
# after.
take() {
    local status
    exec 9>"$work/queue/lock"; flock 9
    take_locked; status=$?
    exec 9>&-
    return $status
}
take_locked() {
    local p file at taken best= least=$mutants state
    for p in $parts; do
        file=$work/queue/$(slug "$p")
        skip_known "$file"
        read -r at taken <"$file.state"
        if [ "$taken" -lt "$least" ] && [ "$at" -lt "$(wc -l <"$file.queue")" ]; then
            best=$p least=$taken
        fi
    done
    [ "$best" ] || return
    part=$best file=$work/queue/$(slug "$best")
    read -r at taken <"$file.state"
    echo "$((at + 1)) $((taken + 1))" >"$file.state"
    IFS=$'\001' read -r state line col kind before after < <(tail -n +$((at + 1)) "$file.queue")
}
skip_known() {
    awk -F'\001' -v most="$mutants" '
        FILENAME == ARGV[1] { split($0, s, " "); at = s[1]; taken = s[2]; next }
        FNR <= at || stop { next }
        $1 == "-" || taken >= most { stop = 1; next }
        { at++; taken += $1 == "done" }
        END { print at, taken }' "$1.state" "$1.queue" >"$1.state.new" &&
        mv "$1.state.new" "$1.state"
}
# One that does not compile: another takes its place.
give_back() {
    local at taken file
    file=$work/queue/$(slug "$1")
    exec 9>"$work/queue/lock"; flock 9
    read -r at taken <"$file.state"
    echo "$at $((taken - 1))" >"$file.state"
    exec 9>&-
}

worker() {
    local part line col kind before after
    own=$work/worker.$1 tree=$work/worker.$1/tree
    mkdir -p "$own" && cp -r "$work/whole" "$tree" || return
    while ! late && take; do
        try "$part" "$line" "$col" "$kind" "$before" "$after" || return 1
        [ $verdict != uncompilable ] || give_back "$part"
    done
}
work_off() {
    local k pids= status=0
    for k in $(seq "$jobs"); do worker "$k" & pids="$pids $!"; done
    for k in $pids; do wait "$k" || status=1; done
    return $status
}

# The sample: the first of the shuffled sites, until enough of them compiled.
sample() {
    local part
    baseline || return 1
    for part in $parts; do sites "$part" | shuffled "$seed" | enqueue "$part" ""; done
    work_off
}

again() {       # again ROWS: the sites that this command prints for a part
    local part
    mutants=1000000
    baseline || return 1
    for part in $parts; do $1 "$part" | enqueue "$part" fresh; done
    work_off
}
of_the_line() {
    local place=${only#*.*:}
    sites "$1" | awk -F'\t' -v line="${place%%:*}" -v col="${place#"${place%%:*}"}" \
        '$1 == line && (col == "" || ":" $2 == col)'
}
that_survived() {
    verdicts "$1" | awk -F'\t' \
        'BEGIN { OFS = "\t" } $6 == "survived" || $6 == "fuzz" { print $1, $2, $3, $4, $5 }'
}

# ---- the report ----------------------------------------------------------------------------------

report() {
    local p
    for p in $parts; do
        verdicts "$p" | awk -v p="$p" -v file="$(file_of "$p")" '{ print p "\t" file "\t" $0 }'
    done >"$work/verdicts.tsv"
    echo
    awk -F'\t' '
        function row(name, all, caught, only, survived, also) {
            printf "%-11s %8d %16d %24d %10d %16d %8.1f %%\n", name, all, caught, only, survived,
                also, all ? 100 * caught / all : 0
        }
        { n[$8 == "uncompilable" ? "skip" : "all", $1]++; v[$8, $1]++
          quick[$1] += $8 == "caught" &&
              $9 !~ /SANITIZED|DOUBLE|VALGRIND|ADDRESS|CHECKED|THREADS|MEMORY/
          if (!($1 in seen)) { seen[$1]; order[++k] = $1 } }
        END {
            printf "%-11s %8s %16s %24s %10s %16s %10s\n", "part", "mutants", "caught by tests",
                "of these only in", "survived", "also survived", "caught"
            printf "%-11s %8s %16s %24s %10s %16s\n", "", "", "", "other builds, valgrind",
                "the tests", "the fuzz corpus"
            for (i = 1; i <= k; i++) {
                h = order[i]; s = v["survived", h]; f = v["fuzz", h]; c = v["caught", h]
                row(h, n["all", h], c, c - quick[h], s + f, s)
                A += n["all", h]; C += c; Q += c - quick[h]; S += s; F += f
            }
            row("all", A, C, Q, S + F, S)
        }' "$work/verdicts.tsv"
    survivors_in_place
    echo
    awk -F'\t' '{ c += $8 == "caught"; s += $8 == "survived" || $8 == "fuzz"
                  u += $8 == "uncompilable" }
        END { print c + 0 " passed, " s + 0 " failed, " u + 0 " skipped" }' "$work/verdicts.tsv"
}

# Each survivor: what is changed, in which function, and the lines around it.
survivors_in_place() {
    local file line col kind before after verdict by
    while IFS=$'\001' read -r file line col kind before after verdict by; do
        printf '\nsurvived  %s:%s:%s  %s:  %s  ->  %s   [%s]\n' "$file" "$line" "$col" "$kind" \
            "$(shorter "$before")" "$(shorter "${after:-(nothing)}")" \
            "$([ "$verdict" = fuzz ] && echo "the fuzz corpus finds it" || echo "$by")"
        awk -v at="$line" '
            FNR <= at && /^[A-Za-z].*\(/ && !/;$/ &&
                !/^(template|namespace|struct|union|enum|typedef)/ { name = FNR; text = $0 }
            FNR >= at - 4 &&
                FNR <= at + 3 { around = around (FNR == at ? "  > " : "    ") FNR ": " $0 "\n";
                                if (!first) first = FNR }
            END { if (name && name < first) print "    " name ": " text "\n    ...";
                  printf "%s", around }' "$work/whole/$file"
    done < <(awk -F'\t' '$8 == "survived" || $8 == "fuzz"' "$work/verdicts.tsv" | cut -f2- |
        tr '\t' '\001')
}

# must_be VERDICT PART KIND PATTERN BEFORE AFTER: the first line with PATTERN, changed, must come
# out so.
must_be() {
    local want=$1 line text before
    line=$(grep -nF -- "$4" "$root/$(file_of "$2")" | head -n 1 | cut -d: -f1)
    text=$(sed -n "${line:-0}p" "$root/$(file_of "$2")" 2>/dev/null)
    before=${text%%"$5"*}
    try "$2" "${line:-0}" $((${#before} + 1)) "$3" "$5" "$6" && [ "$verdict" = "$want" ] && return
    echo "FAILED   $2: $4: $verdict, not $want"
    return 1
}

# A comparison turned round must be caught; a change that changes nothing must survive.
self_check() {
    local status=0
    parts="lbvh cuda/lbvh"
    baseline || exit 1
    own=$work/worker.1 tree=$work/worker.1/tree
    mkdir -p "$own" && cp -r "$work/whole" "$tree" || exit 1
    must_be caught lbvh compare 'return (node->min[0] <= max[0]) & ' '<=' '<' || status=1
    must_be survived lbvh none 'if (!tree) return LBVH_BAD_ARGUMENT;' '!tree' '(!tree)' || status=1
    # out of bounds: ADDRESS sees it
    must_be caught cuda/lbvh compare 'if (i >= n) return;' '>=' '>' || status=1
    must_be survived cuda/lbvh none 'if (!gpu || !queries) return' '!gpu' '(!gpu)' || status=1
    exit $status
}

while [ $# -gt 0 ]; do
    case $1 in
    --cuda) names=$(cd "$root" && ls cuda/*.cu | sed 's/\.cu$//' | paste -sd' ') ;;
    --header) names=$2; shift ;;
    --mutants) mutants=$2; shift ;;
    --seed) seed=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --minutes) minutes=$2; shift ;;
    --only) only=$2; mode=only; shift ;;
    --survivors) mode=survivors ;;
    --hasty) hasty=yes ;;
    --list) mode=list ;;
    --report) mode=report ;;
    --results) results=$(realpath "$2") || exit; shift ;;
    --libraries) libraries=$(realpath "$2") || exit; shift ;;
    --pack) pack "$2"; exit ;;
    --self-check) mode=self_check; results=$work/self_check.tsv ;;
    *) sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done
parts=$names
[ $mode != only ] || { parts=${only%%:*}; parts=${parts%.*}; }

renice -n 10 $$ >/dev/null 2>&1
mkdir -p "$work" || exit 1
touch "$results"
stop_at=$(($(now) + minutes * 60))
copy_tree
allow_no_leaks
case "$mode $parts" in
report*) ;;
self_check*|*cuda/*)
    choose_emulator || { echo "FAILED   tests/emu/emu.cc does not compile"; exit 1; } ;;
esac

status=0
case $mode in
self_check) self_check ;;
list)
    for part in $parts; do
        sites "$part" | awk -v f="$(file_of "$part")" '{ print f ":" $0 }'
    done; exit ;;
only) again of_the_line; exit ;;
survivors) again that_survived || status=1 ;;
run) sample || status=1 ;;
esac
report
exit $status
