#!/bin/bash
# Does README.md say the truth? Its programs are taken out of its text, built with the commands of its text in a
# folder that holds only what the text says to copy, and run; what they print must be what the text shows.
#
#   tests/test_readme.sh               called by `make test-readme`, which knows how to run kernels on the CPU
#   tests/test_readme.sh --self-check  plants mistakes into copies of the texts: does it find them?
#
# In README.md a comment line above a ``` block says what the block is:
#
#   <!-- program: NAME -->    a whole program (.c or .cu) or CMakeLists.txt
#   <!-- commands: NAME -->   how to get the files and build and run it: literally, in an empty folder
#   <!-- prints: NAME -->     what the run prints
#   <!-- not tested -->       a block of C, CUDA or CMake that is none of these
#
# Also: the example in the comment of each header, the sketch of its API (sketch_ugrid.c and so on), links, and names of make targets.
# The last line is "N passed, M failed, K skipped".
#
# Environment: CC, NVCC, GPU (not empty: there is one), EMU_CXX EMU_SANITIZE EMU_OBJECT (compiler, flags and object of the
# emulator; see emu/emu.mk), JOBS (checks at a time, 2), PARTS (some of text c manual cuda cmake sketch) and ONLY (the one program
# or header to look at), README and MANUAL (texts to take instead of README.md and of the header that MANUAL_OF names).
set -u
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
. "$root/tests/units.sh"
. "$root/tests/manual.sh"
readme=${README:-$root/README.md}
strict='-std=c99 -Wall -Wextra -Wpedantic -Werror -O0'    # the headers meet the optimizer's warnings in tests/vendor
compilers=${CC:-cc}
[ "${PARTS:-}" ] || compilers="$compilers clang"     # one opinion is enough for a part

have() { command -v "$1" >/dev/null 2>&1; }
skip() { skipped=$((skipped + 1)); echo "skipped  $*"; }

# check NAME COMMAND...: in the folder $work/here; what it says is shown where it fails.
check() {
    name=$1; shift
    if (cd "$work/here" && "$@") >"$log" 2>&1 </dev/null; then
        passed=$((passed + 1)); echo "ok       $name"
    else
        failed=$((failed + 1)); echo "FAILED   $name"; head -n 30 "$log" | cut -c 1-200 | sed 's/^/    | /'
    fi
}

# ---- the text -----------------------------------------------------------------------------------

# block KIND NAME: the lines of the block below that comment.
block() {
    awk -v mark="<!-- $1: $2 -->" '
        inside && /^```/ { exit }
        inside { print; next }
        armed && /^```/ { inside = 1; next }
        armed && NF { exit }
        $0 == mark { armed = 1 }' "$readme"
}

names() { sed -n "s/^<!-- program: \(.*\.$1\) -->\$/\1/p" "$readme" | chosen; }
chosen() { if [ "${ONLY:-}" ]; then grep -x "$ONLY"; else cat; fi; }

# Every block of code is either tested or says that it is not.
all_marked() {
    awk '/^```/ && !inside { inside = 1
                if (/^```(c|cpp|cuda|cmake)$/ && before !~ /^<!-- (program: .*|not tested) -->$/) { print NR ": " before " " $0; bad = 1 } next }
        /^```/ { inside = 0 }
        { before = $0 }
        END { exit bad }' "$readme"
}

# Headers that are there.
headers() { for h in ugrid lbvh nlist nbody; do [ ! -f "$root/$h.h" ] || echo $h; done | chosen; }

# The headers of ours that a program in the folder includes are copied beside it; cuda/*.cu too, where there is a folder for them.
copy_included() {
    for h in $(sed -n 's/^ *#include "\([a-z]*\)\.h".*/\1/p' "$work/here/$1"); do
        cp "$root/$h.h" "$work/here/"
        [ ! -d "$work/here/cuda" ] || cp "$root/cuda/$h.cu" "$work/here/cuda/"
    done
}

# The header whose example is tested.
manual_of() { if [ "${MANUAL_OF:-}" = "$1" ]; then echo "$MANUAL"; else echo "$root/$1.h"; fi; }

links() {
    bad=0
    for to in $(grep -o '](\([^)]*\))' "$readme" | sed 's/^](//; s/)$//; s/#.*//'; grep -o 'src="[^"]*"' "$readme" | sed 's/src="//; s/"//'); do
        case $to in http://*|https://*) continue ;; esac
        [ -e "$root/$to" ] || { echo "no such file: $to"; bad=1; }
    done
    return $bad
}

make_targets() {
    bad=0
    for target in $(grep -o '\(^ *\|`\)make [a-z][a-z-]*' "$readme" | sed 's/.*make //' | sort -u); do
        grep -Eq "^(.* )?$target( .*)?:" "$root/Makefile" || { echo "no such target: $target"; bad=1; }
    done
    return $bad
}

# ---- building and running -------------------------------------------------------------------------

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
    [ "$1" = CMakeLists.txt ] || rm "$work/here/nearfield"
    block program "$1" >"$work/here/$1"
    block prints "$1" >"$work/expected"
}

# The other commands, as they stand.
build_and_run() {
    block commands "$program" | grep -Ev '^(cp|mkdir) ' >"$work/commands.sh"
    [ -s "$work/commands.sh" ] || { echo "no commands for $program"; return 1; }
    sh -e "$work/commands.sh" >"$work/printed" && same_output
}

same_output() { [ -s "$work/expected" ] && diff "$work/expected" "$work/printed"; }

warning_free() {
    for compiler in $compilers; do
        have "$compiler" || continue
        # shellcheck disable=SC2086
        "$compiler" $strict "$@" || return
    done
}

c_program() {
    program=$1
    folder_for "$program"
    check "README $program: compiles without a warning as C99" warning_free "$program" -o strict -lm
    check "README $program: its commands, and it prints what README says" build_and_run
}

manual_program() {
    empty_folder
    manual_example "$(manual_of "$1")" >"$work/here/program.c"
    copy_included program.c
    manual_prints "$1" >"$work/expected"
    check "$1.h, example: compiles without a warning as C99" warning_free program.c -o program -lm
    check "$1.h, example: runs" manual_runs
}
# Its exit status says whether the number of pairs is right. A number with many digits is compared in two.
manual_runs() {
    ./program >"$work/all_digits" &&
    awk '{ for (k = 1; k <= NF; k++) if ($k ~ /^-?[0-9]+\.[0-9][0-9][0-9]+$/) $k = sprintf("%.2f", $k); print }' \
        "$work/all_digits" >"$work/printed" && same_output
}

# ---- CUDA -------------------------------------------------------------------------------------------

# The emulator is no CUDA compiler: kernel<<<...>>>(...) becomes the call that nvcc makes of it.
launches='s/\([a-z_][a-z_0-9]*\)<<<\([^,]*\), \([^,]*\), \([^,]*\), \([^>]*\)>>>(\(.*\));/readme_launch(\2, \3, \4, \5, \1, \6);/'

write_launch() {
    cat <<'end'
template <class... Parameters, class... Arguments>
static void readme_launch(int grid, int block, int shared, cudaStream_t stream, void (*kernel)(Parameters...), Arguments... arguments)
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
    "$EMU_CXX" -std=c++17 -Wall -Wextra -Werror -O0 -g -ffp-contract=off $EMU_SANITIZE -fno-sanitize-recover=all -I. \
        -I"$root/tests/emu/include" -I"$root/tests/emu" -D__CUDACC__ -include cuda_runtime.h -include launch.h \
        -x c++ on_cpu.cu -x none "$EMU_OBJECT" "$@" -o on_cpu &&
    EMU_ORDER=random EMU_QUIET=1 $same_addresses ./on_cpu >"$work/printed" && same_output
}

nvcc_compiles() {
    export NVCC_APPEND_FLAGS="-Xcompiler -Wall,-Wextra,-Werror -Werror all-warnings"
    PATH=$(dirname "$NVCC"):$PATH
    if [ "${GPU:-}" ]; then build_and_run; return; fi
    # To PTX, which takes half the time: what runs on the host is compiled once more by the emulator.
    block commands "$program" | sed -n "s/-arch=native/-ptx -arch=$("$NVCC" --list-gpu-code | head -n 1)/; /^nvcc/p" >"$work/commands.sh"
    [ -s "$work/commands.sh" ] && sh -e "$work/commands.sh"
}

with_nvcc() {
    program=$1
    folder_for "$program"
    if [ ! "${NVCC:-}" ]; then skip "README $program with nvcc: no nvcc"
    elif [ "${GPU:-}" ]; then check "README $program: its commands, and it prints what README says" nvcc_compiles
    else
        check "README $program: nvcc compiles it" nvcc_compiles
        skip "README $program on a GPU: no GPU"
    fi
}

on_cpu() {
    program=$1
    folder_for "$program"
    if [ ! "${EMU_OBJECT:-}" ]; then skip "README $program on the CPU: no emulator (a C++ compiler, and make test-readme)"
    else check "README $program: on the CPU it prints what README says" emulate "$program"; fi
}

# ---- the sketch: C that calls CUDA ----------------------------------------------------------------

# One main per header: it calls the sketch with data on both sides. They print the number of pairs, or 1 where the forces are right.
sketch_main_ugrid() {
    cat <<'end'
#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"
#include <stdio.h>
extern "C" int64_t sketch(const float *pos, int32_t n, int32_t i, float radius, const float *d_pos, struct CUstream_st *stream);
int main()
{
    float const pos[9] = {0.01f, 0.5f, 0.5f,   0.99f, 0.5f, 0.5f,   0.5f, 0.5f, 0.5f}; /* one pair, through the periodic wall */
    float *d_pos;
    if (cudaMalloc(&d_pos, sizeof pos) || cudaMemcpy(d_pos, pos, sizeof pos, cudaMemcpyHostToDevice)) return 1;
    printf("%d\n", (int)sketch(pos, 3, 0, 0.04f, d_pos, 0));
    return cudaDeviceSynchronize() || cudaFree(d_pos);
}
end
}

sketch_main_lbvh() {
    cat <<'end'
#define LBVH_IMPLEMENTATION
#define LBVH_CUDA
#include "lbvh.h"
#include <stdio.h>
extern "C" int64_t sketch(const float *boxes, int32_t n, const float *box, const float *d_boxes, struct CUstream_st *stream);
int main()
{
    float const boxes[18] = {0, 0, 0, 2, 2, 2,   1, 1, 1, 3, 3, 3,   8, 8, 8, 9, 9, 9}; /* one pair */
    float *d_boxes;
    if (cudaMalloc(&d_boxes, sizeof boxes) || cudaMemcpy(d_boxes, boxes, sizeof boxes, cudaMemcpyHostToDevice)) return 1;
    printf("%d\n", (int)sketch(boxes, 3, boxes, d_boxes, 0));
    return cudaDeviceSynchronize() || cudaFree(d_boxes);
}
end
}

sketch_main_nlist() {
    cat <<'end'
#define UGRID_IMPLEMENTATION
#define UGRID_CUDA
#include "ugrid.h"
#define NLIST_IMPLEMENTATION
#define NLIST_CUDA
#include "nlist.h"
#include <stdio.h>
extern "C" int64_t sketch(const float *pos, int32_t n, int32_t i, float r, const float *d_pos, struct CUstream_st *stream);
int main()
{
    float const pos[9] = {0.50f, 0.5f, 0.5f,   0.53f, 0.5f, 0.5f,   0.9f, 0.5f, 0.5f}; /* one contact */
    float *d_pos;
    if (cudaMalloc(&d_pos, sizeof pos) || cudaMemcpy(d_pos, pos, sizeof pos, cudaMemcpyHostToDevice)) return 1;
    printf("%d\n", (int)sketch(pos, 3, 0, 0.04f, d_pos, 0));
    return cudaDeviceSynchronize() || cudaFree(d_pos);
}
end
}

sketch_main_nbody() {
    cat <<'end'
#define NBODY_IMPLEMENTATION
#define NBODY_CUDA
#include "nbody.h"
#include <stdio.h>
extern "C" int sketch(const float *pos, const float *mass, int32_t n, float *acc, const float *d_pos, const float *d_mass, float *d_acc,
                      struct CUstream_st *stream);
int main()
{
    float const pos[4] = {-1, 0, 1, 0}, mass[2] = {1, 3}; /* each is drawn by a quarter of the other's mass */
    float acc[4], back[4], *d_pos, *d_mass, *d_acc;
    if (cudaMalloc(&d_pos, sizeof pos) || cudaMalloc(&d_mass, sizeof mass) || cudaMalloc(&d_acc, sizeof acc) ||
        cudaMemcpy(d_pos, pos, sizeof pos, cudaMemcpyHostToDevice) || cudaMemcpy(d_mass, mass, sizeof mass, cudaMemcpyHostToDevice)) return 1;
    int const n = sketch(pos, mass, 2, acc, d_pos, d_mass, d_acc, 0);
    if (cudaDeviceSynchronize() || cudaMemcpy(back, d_acc, sizeof back, cudaMemcpyDeviceToHost)) return 1;
    printf("%d\n", n == 2 && acc[0] == 0.75f && acc[2] == -0.25f && fabsf(back[0] - 0.75f) < 1e-6f && fabsf(back[2] + 0.25f) < 1e-6f);
    return cudaFree(d_pos) || cudaFree(d_mass) || cudaFree(d_acc);
}
end
}

api_sketch() {
    [ -f "$root/tests/sketch_$1.c" ] || return 0
    empty_folder
    cp "$root/tests/sketch_$1.c" "$work/here/"
    copy_included "sketch_$1.c"
    # It names what it shows, used or not.
    check "sketch of $1.h: compiles as C99" warning_free -Wno-unused-variable -c "sketch_$1.c" -o sketch.o
    if [ ! -f "$root/cuda/$1.cu" ]; then skip "sketch of $1.h on the CPU: no cuda/$1.cu"; return; fi
    mkdir "$work/here/cuda"
    copy_included "sketch_$1.c"
    if [ ! "${EMU_OBJECT:-}" ]; then skip "sketch of $1.h on the CPU: no emulator"; return; fi
    "sketch_main_$1" >"$work/here/main.cu"
    echo 1 >"$work/expected"
    check "sketch of $1.h: runs, called from C" emulate main.cu sketch.o
}

cmake_project() {
    program=CMakeLists.txt
    if ! have cmake; then skip "README $program: no cmake"; return; fi
    folder_for "$program"
    block program near.c >"$work/here/near.c"
    check "README $program: its commands, and it prints what README says" build_and_run
}

# ---- can it fail? -------------------------------------------------------------------------------

# mistake WHERE NAME SED_SCRIPT REPORT: a text changed like this has to fail in that part of the test, with that report.
# WHERE is one of PARTS, a program, or a header whose example is meant.
mistake() {
    empty_folder
    part=$1 only= what=$2 report=$4 text=$root/README.md variable=README
    case $1 in *.c) part=c only=$1 ;; *.cu) part=cuda only=$1 ;; esac
    [ ! -f "$root/$1.h" ] || part=manual only=$1 text=$root/$1.h variable=MANUAL
    sed "$3" "$text" >"$work/changed"
    if env NVCC= JOBS=1 PARTS="$part" ONLY="$only" MANUAL_OF="$1" "$variable=$work/changed" "$root/tests/test_readme.sh" >"$work/said" 2>&1
    then found=no; else found=yes; fi
    if [ $found = yes ] && grep -q "^FAILED   $report" "$work/said"; then
        passed=$((passed + 1)); echo "ok       mistake found: $what"
    else
        failed=$((failed + 1)); echo "FAILED   mistake not found: $what"; tail -n 20 "$work/said" | sed 's/^/    | /'
    fi
}

self_check() {
    unit mistake text     'code that nobody tests'    '1a\
\
```c\
int x;\
```'                                                                              'README: every block of code is tested'
    unit mistake text     'a link into nothing'       '1a\
[x](no/such/file.md)'                                                             'README: links'
    unit mistake text     'a target into nothing'     '1a\
`make everything`'                                                                'README: make targets'
    unit mistake near.c   'another output'            's/^0: 1 3$/0: 3/'          'README near.c: its commands'
    unit mistake near.c   'a program that is wrong'   's/desc.periodic\[0\] = 1;/;/' 'README near.c: its commands'
    unit mistake near.c   'an unused variable'        's/^    int32_t i;$/    int32_t i, j;/' 'README near.c: compiles'
    unit mistake near.c   'a file not copied'         '/^cp nearfield\/ugrid.h/d' 'README near.c: compiles'
    unit mistake near.c   'a wrong command'           's/^cc -O3 near.c/cc -O3 nearly.c/' 'README near.c: its commands'
    unit mistake contacts.c 'contacts that forget'    's/^        ugrid_build(/        nlist_free(\&list);\n&/' 'README contacts.c: its commands'
    unit mistake gravity.c 'bodies that repel'        's/desc.gravity = 1/desc.gravity = -1/' 'README gravity.c: its commands'
    for header in $(headers); do
        unit mistake "$header" "an example of $header.h without a declaration" 's/^           [a-z]* [a-z]* = {0};$//' "$header.h, example: compiles"
    done
    if [ ! "${EMU_OBJECT:-}" ]; then unit skip 'planted mistakes in CUDA: no emulator'; return; fi
    unit mistake near.cu  'another output of CUDA'    's/^1: 1 near/1: 2 near/'   'README near.cu: on the CPU'
    unit mistake near.cu  'a kernel out of bounds'    's/(place >= device.grid.n)/(place > device.grid.n)/' 'README near.cu: on the CPU'
}

# ---- all of it ----------------------------------------------------------------------------------

part_text() { unit text; }
text() {
    empty_folder
    check "README: every block of code is tested, or says that it is not" all_marked
    check "README: links lead somewhere" links
    check "README: make targets exist" make_targets
}
part_c()      { for p in $(names c); do unit c_program "$p"; done; }
part_manual() { for h in $(headers); do unit manual_program "$h"; done; }
# (Where the emulator runs a program, nvcc is asked only with a GPU, or FULL=1.)
part_cuda() {
    for p in $(names cu); do
        if [ "${GPU:-}${FULL:-}" ] || [ ! "${EMU_OBJECT:-}" ]; then unit with_nvcc "$p"; fi
        unit on_cpu "$p"
    done
}
part_cmake()  { unit cmake_project; }
part_sketch() { for h in $(headers); do unit api_sketch "$h"; done; }

case ${1:-} in
'') for part in ${PARTS:-text c manual cuda cmake sketch}; do "part_$part"; done ;;
--self-check) self_check ;;
*) sed -n '2,23s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
all_units
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
