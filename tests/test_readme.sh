#!/bin/bash
# Are README.md and docs/*.md true? Their programs are taken out of the text, built with the
# commands of the text in a folder that holds only what the text says to copy, and run; what they
# print must be what the text shows.
#
#   tests/test_readme.sh               called by `make test-readme`, which knows how to run kernels
#                                      on the CPU
#   tests/test_readme.sh --self-check  plants mistakes into copies of the texts: does it find them?
#
# In a page a comment line above a ``` block says what the block is:
#
#   <!-- program: NAME -->      a whole program (.c, .cpp, .cu) or CMakeLists.txt
#   <!-- commands: NAME -->     how to get the files and build and run it: literally, in an empty
#                               folder
#   <!-- prints: NAME -->       what the run prints
#   <!-- prototypes: HEADER --> declarations, copied from that header or part, such as
#                               more/lbvh_wide.h (comments may be left out)
#   <!-- not tested -->         a block of C, CUDA or CMake that is none of these
#
# Also: the example in the comment of each header; links and their
# #anchors; names of make targets, of functions, types and constants; how long the pages are, and
# the cells of the table below <!-- table: choice --> in README.md; the figures of reach.txt in
# docs/learn.md. The last line is "N passed, M failed, K skipped".
#
# Environment: CC, NVCC, GPU (not empty: there is one), EMU_CXX EMU_SANITIZE EMU_OBJECT (compiler,
# flags and object of the emulator; see emu/emu.mk), JOBS (checks at a time, 2), QUICK (not empty:
# one compiler, not optimized, and the CUDA program of README.md alone), PARTS (some of text
# c manual cuda cmake) and ONLY (the one program or header to look at), CHANGED and CHANGED_OF (a
# text to take instead of the page or header that CHANGED_OF names).
set -u
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
. "$root/tests/common/units.sh"
. "$root/tests/common/manual.sh"
pages=$(cd "$root" && echo README.md docs/*.md)
example_pages=$(cd "$root" && echo examples/README.md examples/*/README.md)
# the headers meet the optimizer's warnings in tests/quality/vendor
warnings='-std=c99 -Wall -Wextra -Wpedantic -Werror'
compilers=${CC:-cc}
[ "${PARTS:-}${QUICK:-}" ] || compilers="$compilers clang"     # one opinion is enough for a part

have() { command -v "$1" >/dev/null 2>&1; }
skip() { skipped=$((skipped + 1)); echo "skipped  $*"; }

# check NAME COMMAND...: in the folder $work/here; what it says is shown where it fails.
check() {
    name=$1; shift
    if (cd "$work/here" && "$@") >"$log" 2>&1 </dev/null; then
        passed=$((passed + 1)); echo "ok       $name"
    else
        failed=$((failed + 1)); echo "FAILED   $name"; head -n 30 "$log" | cut -c 1-200 |
            sed 's/^/    | /'
    fi
}

# ---- the text -----------------------------------------------------------------------------------

# The file that holds a page or a header.
text_of() { if [ "${CHANGED_OF:-}" = "$1" ]; then echo "$CHANGED"; else echo "$root/$1"; fi; }

# block KIND NAME: the lines of the block below that comment, in whatever page it stands.
block() {
    for page in $pages; do
        awk -v mark="<!-- $1: $2 -->" '
            inside && /^```/ { exit }
            inside { print; next }
            armed && /^```/ { inside = 1; next }
            armed && NF { exit }
            $0 == mark { armed = 1 }' "$(text_of "$page")"
    done
}

all_names() {
    for page in $pages; do sed -n "s/^<!-- program: \(.*\) -->\$/\1/p" "$(text_of "$page")"; done
}
names() { all_names | grep "\.$1\$" | chosen; }
chosen() { if [ "${ONLY:-}" ]; then grep -x "$ONLY"; else cat; fi; }
page_of() {
    for page in $pages; do grep -qx "<!-- program: $1 -->" "$root/$page" && echo "$page"; done
}

# Every block of code is either tested or says that it is not.
all_marked() {
    bad=0
    for page in $pages; do
        awk -v page="$page" '/^```/ && !inside { inside = 1
                    if (/^```(c|cpp|cuda|cmake)$/ &&
                        before !~ /^<!-- (program: .*|prototypes: .*|not tested) -->$/) {
                        print page ":" NR ": " before " " $0; bad = 1 } next }
            /^```/ { inside = 0 }
            { before = $0 }
            END { exit bad }' "$(text_of "$page")" || bad=1
    done
    return $bad
}

# A name belongs to one program.
named_once() { twice=$(all_names | sort | uniq -d); echo "$twice"; [ -z "$twice" ]; }

# Headers that are there.
headers() { for h in ugrid lbvh nlist nbody; do [ ! -f "$root/$h.h" ] || echo $h; done | chosen; }

# The headers of ours that a program in the folder includes are copied beside it; cuda/*.cu too,
# where there is a folder for them.
copy_included() {
    for h in $(sed -n 's/^ *#include "\([a-z]*\)\.h".*/\1/p' "$work/here/$1"); do
        cp "$root/$h.h" "$work/here/"
        [ ! -d "$work/here/cuda" ] || cp "$root/cuda/$h"*.cu "$work/here/cuda/"
    done
}

# What the links and pictures of a page point to; code is left out.
targets() {
    awk '/^```/ { code = !code }
        code { next }
        { gsub(/`[^`]*`/, ""); gsub(/<img src="[^"]*"/, "](&)"); gsub(/<img src=|"/, "")
          while (match($0, /\]\([^)]*\)/)) { print substr($0, RSTART + 2, RLENGTH - 3);
              $0 = substr($0, RSTART + RLENGTH) } }' "$1"
}

# The anchors of a page: its headings in small letters, without punctuation, - for each space; the
# second of a name gets -1.
anchors() {
    awk '/^```/ { code = !code }
        code || !/^#+ / { next }
        { sub(/^#+ /, "")
          while (match($0, /\]\([^)]*\)/)) $0 = substr($0, 1, RSTART - 1) substr($0,
              RSTART + RLENGTH)
          $0 = tolower($0); gsub(/[^a-z0-9 _-]/, ""); gsub(/ /, "-")
          print $0 (seen[$0]++ ? "-" seen[$0] - 1 : "") }' "$1"
}

links() {
    bad=0
    for page in $pages $example_pages; do
        for to in $(targets "$(text_of "$page")"); do
            case $to in http://*|https://*) continue ;; esac
            file=${to%%#*} anchor=
            case $to in *'#'*) anchor=${to#*#} ;; esac
            if [ "$file" ]; then file=$(dirname "$page")/$file; else file=$page; fi
            file=$(realpath -ms --relative-to=. "$file")
            if [ ! -e "$root/$file" ]; then echo "$page: no such file: $to"; bad=1
            elif [ "$anchor" ] && ! anchors "$(text_of "$file")" | grep -qx -e "$anchor"; then
                echo "$page: no such heading: $to"; bad=1
            fi
        done
    done
    return $bad
}

make_targets() {
    bad=0
    for page in $pages $example_pages; do
        for target in $(grep -o '\(^ *\|`\)make [a-z][a-z-]*/*' "$(text_of "$page")" |
            sed '/\/$/d; s/.*make //' | sort -u); do
            grep -Eq "^([^#[:space:]][^#]* )?$target( [^#]*)?:" "$root/Makefile" \
                "$root"/examples/*.mk "$root"/tests/*/*.mk ||
                { echo "$page: no such target: $target"; bad=1; }
        done
    done
    return $bad
}

# Words that look like names of the headers, or of examples: are they? (Words that end with _ begin
# several names.)
words() {
    grep -Eho '\b(ugrid|lbvh|nlist|nbody|UGRID|LBVH|NLIST|NBODY)_[A-Za-z0-9_]*[A-Za-z0-9]\b' "$@" |
        sort -u
}
names_exist() {
    bad=0
    { cd "$root" && words ./*.h more/*.h cuda/*.cu; ls examples examples/* | sed 's/[.:].*//'; } \
        2>/dev/null >"$work/known"
    for page in $pages $example_pages; do
        # shellcheck disable=SC2046
        unknown=$(words "$(text_of "$page")" | grep -vxFf "$work/known")
        [ -z "$unknown" ] || { echo "$page: not in the headers:" $unknown; bad=1; }
    done
    return $bad
}

# C without comments, all white space one blank.
squeezed() {
    awk 'BEGIN { RS = "[*]/" } { sub(/\/[*].*/, " "); printf "%s ", $0 }' | sed 's,//.*,,' |
        tr -s ' \n\t' ' '
}

# The declarations of a block, one on a line.
declarations() {
    squeezed | awk '{ for (k = 1; k <= length($0); k++) {
            c = substr($0, k, 1)
            if (c == ";" && !depth) { sub(/^ /, "", one); print one; one = ""; continue }
            depth += (c == "{") - (c == "}")
            one = one c } }
        END { if (one ~ /[^ ]/) print one }'
}

# Does the header or part that the mark names say the same? Every mark names one that is there.
prototypes() {
    bad=0 seen=0
    for page in $pages; do
        for header in $(sed -n 's/^<!-- prototypes: \(.*\) -->$/\1/p' "$(text_of "$page")"); do
            [ -f "$root/$header" ] || { echo "$page: prototypes of $header: no such file"; bad=1; }
        done
    done
    for header in $(cd "$root" && echo *.h more/*.h); do
        squeezed <"$root/$header" >"$work/squeezed"
        for page in $pages; do
            awk -v mark="<!-- prototypes: $header -->" '
                inside && /^```/ { inside = 0 }
                inside { print }
                armed && /^```/ { inside = 1; armed = 0 }
                $0 == mark { armed = 1 }' "$(text_of "$page")" | declarations >"$work/declared"
            while IFS= read -r one; do
                seen=$((seen + 1))
                grep -qF -e "$one" "$work/squeezed" ||
                    { echo "$page: $header does not say: $one"; bad=1; }
            done <"$work/declared"
        done
    done
    [ $seen -gt 0 ] && return $bad
}

# Has docs/learn.md a row for each line of reach.txt, with its figures?
reach_figures() {
    awk 'FNR == NR { if (/^[a-z]/) wanted["| `" $1 "` | " $4 " | " $5 " |"] = 1; next }
        { delete wanted[$0] }
        END { for (row in wanted) { print "missing: " row; bad = 1 } exit bad }' \
        "$root/tests/quality/style/reach.txt" "$(text_of docs/learn.md)"
}

lengths() {
    bad=0
    for page in $pages; do
        lines=$(wc -l <"$(text_of "$page")") most=300
        [ "$page" != README.md ] || most=240
        [ "$lines" -le $most ] || { echo "$page has $lines lines, more than $most"; bad=1; }
    done
    bytes=$(wc -c <"$(text_of README.md)")
    [ "$bytes" -le 16384 ] || { echo "README.md has $bytes bytes, more than 16384"; bad=1; }
    return $bad
}

choice_table() {
    awk -F ' *[|] *' '/^<!-- table: choice -->$/ { here = 1; next }
        here && !/^[|]/ { exit }
        here { rows++; for (k = 2; k < NF; k++) if (length($k) > 80) {
            print length($k) " characters: " $k; bad = 1 } }
        END { exit bad || rows < 3 }' "$(text_of README.md)"
}

# Tables are made of a CSV file: what is met, missed, left out, and taken where there is no file.
performance_tables() {
    mkdir -p csv
    cat >csv/bench.gpu.csv <<'end'
# machine: a GPU
# command: bench
# date: 2026-01-02
program,group,workload,method,n,ms,M_per_s,floor_ms,bar_ms,peer_ms,value,unit
bench,build,even,"COUNT, fast",1000000,0.5,2000,0.25,0.5,2,,
bench,build,even,SORT,1000000,12,83,0.25,9,0,,
bench,search,even,SORT,1000000,3,83,0,0,0,,
end
    cat >csv/bench.cpu.csv <<'end'
program,group,workload,method,n,ms,M_per_s,floor_ms,bar_ms,peer_ms,value,unit,base_ms,bar_ratio
bench,build,even,COUNT,2000,8,250,0,1,1,,,10,0.9
bench,build,even,SORT,2000,10,200,0,11,1,,,10,0.9
end
    cat >even.template <<'end'
@machine bench.gpu
@end
@table bench.gpu; group=^build$
@end
@table bench.cpu
@end
@matrix bench.cpu; across=n; show=rate
@end
@table none.cpu
typed
@end
end
    cat >expected <<'end'
a GPU;
2026-01-02; `bench`
| workload | method | n | ms | M/s | x floor | bar ms | peer ms | x peer |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| even | COUNT, fast | 1M | 0.500 | 2000 | 2.00 | 0.500: met | 2.00 | 0.25 |
| even | SORT | 1M | 12.0 | 83.0 | 48.00 | 9.00: **missed** | – | – |
| workload | method | n | ms | M/s | x base | bar ms |
| --- | --- | --- | --- | --- | --- | --- |
| even | COUNT | 2k | 8.00 | 250 | 0.80 | 0.90 times 10.0: met |
| even | SORT | 2k | 10.0 | 200 | 1.00 | 0.90 times 10.0: **missed** |
| million/s | 2k |
|---|---|
| COUNT | 250 |
| SORT | 200 |
typed
end
    CSV=csv TEMPLATES=. "$root/tests/bench/performance.sh" --check even expected
}

# ---- building and running ------------------------------------------------------------------------

# A folder for each unit of work, since two run at a time.
empty_folder() {
    work=$(mktemp -d "$units/XXXXXX") || exit 1
    log=$work/log
    mkdir "$work/here"
}

# The program and the files that its commands copy from `nearfield`, and then no nearfield any more.
folder_for() {
    empty_folder
    ln -s "$root" "$work/here/nearfield"
    block commands "$1" | grep -E '^(cp|mkdir) ' >"$work/get.sh"
    (cd "$work/here" && sh -e "$work/get.sh") || echo "the copying commands for $1 fail"
    case $1 in CMakeLists.txt | *.cpp) ;; *) rm "$work/here/nearfield" ;; esac    # used where it is
    block program "$1" >"$work/here/$1"
    block prints "$1" >"$work/expected"
}

# The other commands, as they stand. Quick: not optimized, which must print the same, and C with the
# warnings of c_program.
build_and_run() {
    block commands "$program" | grep -Ev '^(cp|mkdir) ' |
        sed "${QUICK:+s/ -O[23] / -O0 /; s/^cc /cc $warnings /}" >"$work/commands.sh"
    [ -s "$work/commands.sh" ] || { echo "no commands for $program"; return 1; }
    sh -e "$work/commands.sh" >"$work/printed" && same_output
}

same_output() { [ -s "$work/expected" ] && diff "$work/expected" "$work/printed"; }

warning_free() {
    for compiler in $compilers; do
        have "$compiler" || continue
        # shellcheck disable=SC2086
        "$compiler" $warnings -fsyntax-only "$@" || return
    done
}

c_program() {
    program=$1
    folder_for "$program"
    [ "${QUICK:-}" ] ||
        check "$(page_of "$program") $program: compiles without a warning as C99" warning_free \
            "$program"
    check "$(page_of "$program") $program: its commands, and it prints what the page says" \
        build_and_run
}

cpp_program() {
    program=$1
    if ! have c++; then skip "$(page_of "$program") $program: no c++"; return; fi
    folder_for "$program"
    check "$(page_of "$program") $program: its commands, and it prints what the page says" \
        build_and_run
}

manual_program() {
    empty_folder
    manual_example "$(text_of "$1.h")" >"$work/here/program.c"
    copy_included program.c
    manual_prints "$1" >"$work/expected"
    [ "${QUICK:-}" ] ||
        check "$1.h, example: compiles without a warning as C99" warning_free program.c
    check "$1.h, example: runs" manual_runs
}
# Its exit status says whether the number of pairs is right. A number with many digits is compared
# in two.
manual_runs() {
    # shellcheck disable=SC2086
    ${CC:-cc} $warnings -O0 program.c -o program -lm && ./program >"$work/all_digits" &&
    awk '{ for (k = 1; k <= NF; k++)
               if ($k ~ /^-?[0-9]+\.[0-9][0-9][0-9]+$/) $k = sprintf("%.2f", $k)
           print }' \
        "$work/all_digits" >"$work/printed" && same_output
}

# ---- CUDA ----------------------------------------------------------------------------------------

# The emulator is no CUDA compiler: kernel<<<...>>>(...) becomes the call that nvcc makes of it.
launched='\([a-z_][a-z_0-9]*\)<<<\([^,]*\), \([^,]*\), \([^,]*\), \([^>]*\)>>>(\(.*\));'
launches="s/$launched/readme_launch(\\2, \\3, \\4, \\5, \\1, \\6);/"

write_launch() {
    cat <<'end'
template <class... Parameters, class... Arguments>
static void readme_launch(int grid, int block, int shared, cudaStream_t stream,
                          void (*kernel)(Parameters...), Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)grid);
    config.blockDim = dim3((unsigned)block);
    config.dynamicSmemBytes = (size_t)shared;
    config.stream = stream;
    if (cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...) != cudaSuccess) abort();
}
end
}

# emulate PROGRAM OBJECTS...
emulate() {
    source=$1; shift
    sed "$launches" "$source" >on_cpu.cu
    write_launch >launch.h
    # shellcheck disable=SC2086
    "$EMU_CXX" -std=c++17 -Wall -Wextra -Werror -O0 -ffp-contract=off $EMU_SANITIZE \
        -fno-sanitize-recover=all -I. \
        -I"$root/tests/emu/include" -I"$root/tests/emu" -D__CUDACC__ -include cuda_runtime.h \
        -include launch.h \
        -x c++ on_cpu.cu -x none "$EMU_OBJECT" "$@" -o on_cpu &&
    EMU_ORDER=random EMU_QUIET=1 $same_addresses ./on_cpu >"$work/printed" && same_output
}

nvcc_compiles() {
    export NVCC_APPEND_FLAGS="-Xcompiler -Wall,-Wextra,-Werror -Werror all-warnings"
    PATH=$(dirname "$NVCC"):$PATH
    if [ "${GPU:-}" ]; then build_and_run; return; fi
    # To PTX, which takes half the time: what runs on the host is compiled once more by the
    # emulator.
    block commands "$program" | sed -n "s/-arch=native/-ptx -arch=$("$NVCC" --list-gpu-code |
        head -n 1)/; /^nvcc/p" >"$work/commands.sh"
    [ -s "$work/commands.sh" ] && sh -e "$work/commands.sh"
}

with_nvcc() {
    program=$1
    folder_for "$program"
    if [ ! "${NVCC:-}" ]; then skip "$(page_of "$program") $program with nvcc: no nvcc"
    elif [ "${GPU:-}" ]; then check \
        "$(page_of "$program") $program: its commands, and it prints what the page says" \
        nvcc_compiles
    else
        check "$(page_of "$program") $program: nvcc compiles it" nvcc_compiles
        skip "$(page_of "$program") $program on a GPU: no GPU"
    fi
}

on_cpu() {
    program=$1
    folder_for "$program"
    if [ "${QUICK:-}" ] && [ "$(page_of "$program")" != README.md ]
        then skip "$(page_of "$program") $program on the CPU: make test-readme has all"
    elif [ ! "${EMU_OBJECT:-}" ]
        then skip "$(page_of "$program") $program on the CPU: no emulator (a C++ compiler, and" \
            "make test-readme)"
    else check "$(page_of "$program") $program: on the CPU it prints what the page says" emulate \
        "$program"; fi
}

cmake_project() {
    program=CMakeLists.txt
    if ! have cmake; then skip "$(page_of "$program") $program: no cmake"; return; fi
    folder_for "$program"
    block program near.c >"$work/here/near.c"
    check "$(page_of "$program") $program: its commands, and it prints what the page says" \
        build_and_run
}

# ---- can it fail? -------------------------------------------------------------------------------

# mistake WHERE NAME SED_SCRIPT REPORT: a text changed like this has to fail in that part of the
# test, with that report.
# WHERE is a page (its text is meant), a program, or a header whose example is meant.
mistake() {
    empty_folder
    part=text only= what=$2 report=$4 of=$1
    case $1 in *.c) part=c only=$1 of=$(page_of "$1") ;; *.cu) part=cuda only=$1 of=$(page_of \
        "$1") ;; esac
    [ ! -f "$root/$1.h" ] || part=manual only=$1 of=$1.h
    sed "$3" "$root/$of" >"$work/changed"
    if env NVCC= JOBS=1 PARTS="$part" ONLY="$only" CHANGED_OF="$of" CHANGED="$work/changed" \
        "$root/tests/test_readme.sh" >"$work/said" 2>&1
    then found=no; else found=yes; fi
    if [ $found = yes ] && grep -q "^FAILED   $report" "$work/said"; then
        passed=$((passed + 1)); echo "ok       mistake found: $what"
    else
        failed=$((failed + 1)); echo "FAILED   mistake not found: $what"; tail -n 20 "$work/said" |
            sed 's/^/    | /'
    fi
}

self_check() {
    unit mistake README.md 'code that is not tested'    '1a\
\
```c\
int x;\
```' \
        'pages: every block of code is tested'
    unit mistake docs/limits.md 'the same in docs'     '1a\
\
```cuda\
int x;\
```' \
        'pages: every block of code is tested'
    unit mistake README.md 'a link into nothing'       '1a\
[x](no/such/file.md)'                                                             'pages: links'
    unit mistake docs/learn.md 'a link out of docs into nothing' '1a\
[x](../no/such/file.md)'                                                          'pages: links'
    unit mistake docs/learn.md 'a heading that is not there' '1a\
[x](limits.md#no-such-heading)'                                                   'pages: links'
    unit mistake README.md 'a target into nothing'     '1a\
`make everything`' \
        'pages: make targets'
    unit mistake docs/learn.md 'a function into nothing' '1a\
`ugrid_i_build_county`'                                                           'pages: names'
    unit mistake docs/start-lbvh.md 'another parameter' \
        's/lbvh_real \*t, lbvh_real \*u,$/lbvh_real *t,/' 'pages: prototypes'
    unit mistake docs/start-rays.md 'another parameter of a part' \
        's/ uint8_t \*hit);$/ uint8_t *hits);/' 'pages: prototypes'
    unit mistake docs/start-rays.md 'prototypes of no header' \
        's,^<!-- prototypes: more/lbvh_wide.h -->,<!-- prototypes: more/lbvh_wider.h -->,' \
        'pages: prototypes'
    unit mistake docs/learn.md 'a figure that reach.txt does not have' \
        's/^| `ugrid_build` | [0-9]* /| `ugrid_build` | 1 /' 'docs/learn.md: the figures'
    unit mistake README.md 'a long README'             p                          'pages: lengths'
    unit mistake README.md 'a wide cell' \
        '/^<!-- table: choice -->$/,/^$/s/ |$/'"$(printf ' and so on,%.0s' {1..7})"' |/' \
        'README.md: cells'
    unit mistake docs/performance.md 'a figure typed by hand' \
        '0,/| [0-9]*[.][0-9]* |/s//| 0.999 |/' 'docs/performance.md is what'
    unit mistake README.md 'a figure of its own' \
        '/^## Numbers/,/^## /s/| [0-9.]* | H/| 0.999 | H/' \
        'README.md: its figures'
    unit mistake docs/limits.md 'a program of the same name' '1a\
<!-- program: near.c -->' \
        'pages: a name belongs to one program'
    unit mistake near.c   'another output'            's/^0: 1 3$/0: 3/' \
        'README.md near.c: its commands'
    unit mistake near.c   'a program that is wrong'   's/desc.periodic\[0\] = 1;/;/' \
        'README.md near.c: its commands'
    unit mistake near.c   'an unused variable'        's/^    int32_t i;$/    int32_t i, j;/' \
        'README.md near.c: compiles'
    unit mistake near.c   'a file not copied'         '/^cp nearfield\/ugrid.h/d' \
        'README.md near.c: compiles'
    unit mistake near.c   'a wrong command'           's/^cc -O3 near.c/cc -O3 nearly.c/' \
        'README.md near.c: its commands'
    unit mistake contacts.c 'contacts that forget' \
        's/^        ugrid_build(/        nlist_free(\&list);\n&/' \
        'docs/start-nlist.md contacts.c: its commands'
    unit mistake gravity.c 'bodies that repel'        's/desc.gravity = 1/desc.gravity = -1/' \
        'docs/start-nbody.md gravity.c: its commands'
    for header in $(headers); do
        unit mistake "$header" "an example of $header.h without a declaration" \
            's/^           [a-z]* [a-z]* = {0};$//' "$header.h, example: compiles"
    done
    if [ ! "${EMU_OBJECT:-}" ]; then unit skip 'planted mistakes in CUDA: no emulator'; return; fi
    unit mistake near.cu  'another output of CUDA'    's/^1: 1 near/1: 2 near/' \
        'README.md near.cu: on the CPU'
    unit mistake near.cu  'a kernel out of bounds' \
        's/(place >= device.grid.n)/(place > device.grid.n)/' 'README.md near.cu: on the CPU'
}

# ---- all of it ----------------------------------------------------------------------------------

part_text() { unit text; }
text() {
    empty_folder
    check "pages: every block of code is tested, or says that it is not" all_marked
    check "pages: a name belongs to one program" named_once
    check "pages: links lead somewhere, and their anchors too" links
    check "pages: make targets exist" make_targets
    check "pages: names of functions, types and constants exist" names_exist
    check "pages: prototypes are those of the headers" prototypes
    check "docs/learn.md: the figures of reach.txt" reach_figures
    check "pages: lengths" lengths
    check "README.md: cells of the choice table" choice_table
    for page in performance performance-gpu; do
        check "docs/$page.md is what tests/bench/performance.sh makes" \
            "$root/tests/bench/performance.sh" --check $page "$(text_of docs/$page.md)"
    done
    check "README.md: its figures stand in docs/performance.md or performance-gpu.md" \
        "$root/tests/bench/performance.sh" --figures "$(text_of README.md)"
    check "performance.sh: tables are made of CSV files" performance_tables
}
part_c()      {
    for p in $(names c); do unit c_program "$p"; done
    for p in $(names cpp); do unit cpp_program "$p"; done
}
part_manual() { for h in $(headers); do unit manual_program "$h"; done; }
# (Where the emulator runs a program, nvcc is asked only with a GPU, or FULL=1.)
part_cuda() {
    for p in $(names cu); do
        if [ "${GPU:-}${FULL:-}" ] || [ ! "${EMU_OBJECT:-}" ]; then unit with_nvcc "$p"; fi
        unit on_cpu "$p"
    done
}
part_cmake()  { unit cmake_project; }

case ${1:-} in
'') for part in ${PARTS:-text c manual cuda cmake}; do "part_$part"; done ;;
--self-check) self_check ;;
*) sed -n '2,33s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
all_units
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
