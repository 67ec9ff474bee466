#!/bin/bash
# The vendor matrix: is a header fit to be copied into another program?
#
#   tests/quality/vendor/run.sh                    every header that exists
#   tests/quality/vendor/run.sh --header ugrid     one of them
#   tests/quality/vendor/run.sh --only 'g++.*c++17'  the rows whose name matches
#   tests/quality/vendor/run.sh --but 'windows'      the others
#   tests/quality/vendor/run.sh --self-check       does the matrix notice broken rules? (on
#                                                  toy/toy.h)
#
# One row per case: ok, FAILED (then what the compiler said) or skipped (and why). The last line is
# "N passed, M failed, K skipped". A missing compiler skips its rows and fails nothing.
#
# For each header there is a small user of it, use_<header>.c, which returns 1 when the answer is
# right, and flat_<header>.c, one in 2D. Each row has a kit, a folder with copies of no more files
# than a stranger would copy:
#
#   lbvh          the header alone: what its front end says, and programs that are not optimized
#   lbvh+world    with one part (more/lbvh_world.h), and the parts that this one needs: some rows
#   lbvh+all      with all parts: all rows
#   lbvh single   one file with all parts (packaging/single.sh): the same text
#
# Environment: JOBS (rows at a time, 2), CC CXX (default gcc, g++), NVCC, STB_CFLAGS, STB_LIBS, FULL
# (1: more standards, nvcc's other rows).
set -u
export LC_ALL=C   # compilers must say "undefined reference", whatever the user's language

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
headers_dir=$root
work=${VENDOR_WORK:-$root/build/vendor}
export WINEPREFIX=$work/wine WINEDEBUG=-all     # not the user's
jobs=${JOBS:-2}
headers="ugrid lbvh nlist nbody"
only='.' but=' ^'
quiet=
label='' kit='' with='' parts=''        # of the rows that follow

# What the headers promise to be free of (docs/contributing.md, "Rules").
warn="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Werror"
clang_warn="$warn -Wreserved-identifier"

have() { command -v "$1" >/dev/null 2>&1; }
skip() { echo "$*"; exit 77; }                 # ends a row: not tested here, and why
say()  { echo "+ $*"; "$@"; }                  # shows the command in the row's log

# ------------------------------------------------------------------------------------------------
# Rows: each runs in a process of its own, $jobs at a time, in a folder of its own ($OUT).
# ------------------------------------------------------------------------------------------------

row_number=0

# row NAME FUNCTION ARGS...: starts a row.
row() {
    local name="$label: $1"; shift
    [[ $name =~ $only && ! $name =~ $but ]] || return 0
    while (( $(jobs -rp | wc -l) >= jobs )); do wait -n; done
    row_number=$((row_number + 1))
    run_row "$work/rows/$(printf %04d $row_number)" "$name" "$@" &
}

run_row() {
    OUT=$1; local name=$2 result text status; shift 2
    mkdir -p "$OUT"
    ( "$@" ) >"$OUT/log" 2>&1 </dev/null
    status=$?
    case $status in
    0)  result=ok;      text="ok       $name" ;;
    77) result=skipped; text="skipped  $name: $(tail -n 1 "$OUT/log")" ;;
    *)  result=FAILED;  text="FAILED   $name"$'\n'$(explain)
        # beside the log of this group (tests/run_all.sh)
        [ ! "${LOGS:-}" ] || cp "$OUT/log" "$LOGS/vendor-$(basename "$OUT").log" ;;
    esac
    echo "$name" >"$OUT/name"
    echo $result >"$OUT/result"
    [ "$quiet" ] || printf '%s\n' "$text"     # one write: rows that end together do not mix
}

# What the compiler said; after a few failed rows, which tend to be one mistake, only where to find
# it.
explain() {
    if [ "$(count_rows FAILED)" -ge 5 ]; then echo "    | log: $OUT/log"; return; fi
    grep -v '^+ ' "$OUT/log" | head -n 30 | cut -c 1-300 | sed 's/^/    | /'
}

count_rows() { cat "$work"/rows/*/result 2>/dev/null | grep -c "^$1\$"; }

# ------------------------------------------------------------------------------------------------
# Kits: which files are there.
# ------------------------------------------------------------------------------------------------

part_names() {
    local file
    for file in "$headers_dir/more/${header}_"*.h; do
        [ ! -f "$file" ] || basename "$file" .h | sed "s/^${header}_//"
    done
}

upper() { echo "$1" | tr a-z A-Z; }

# Those that may come when the header is there already, and those that may not: they say so.
late_parts() { local part; for part in $parts; do is_early "$part" || echo "$part"; done; }
is_early() {
    grep -q "^#error.*define ${HEADER}_WITH_[A-Z]* before " "$headers_dir/more/${header}_$1.h"
}

# with_parts PART...: the macros that add them.
with_parts() { local part; for part; do printf ' -D%s_WITH_%s' "$HEADER" "$(upper "$part")"; done; }

# A part and those that it needs, in one line: their macros are set when its is.
needed_parts() {
    # shellcheck disable=SC2046
    echo "#include \"$header.h\"" | $CC -x c -dM -E -I"$headers_dir" $(with_parts "$1") - |
        sed -n "s/^#define ${HEADER}_WITH_\([A-Z0-9_]*\).*/\1/p" | tr A-Z a-z | sort | paste -sd' '
}

# copy_files FOLDER HEADER PART...: the header, its kernels where the folder's name ends with .cuda,
# parts
copy_files() {
    local to=$1 of=$2 part; shift 2
    place "$headers_dir/$of.h" "$to" || return 1
    case $to in *.cuda) for part in $(own_kernels "$of"); do copy_kernels "$to" "$part"; done ;;
    esac
    for part; do
        place "$headers_dir/more/${of}_$part.h" "$to/more"
        case $to in *.cuda) copy_kernels "$to" "${of}_$part" ;; esac
    done
}
# cuda/nlist.cu, and what belongs to no part: cuda/nlist_templates.cu
own_kernels() {
    local file name
    for file in "$headers_dir/cuda/$1.cu" "$headers_dir/cuda/$1"_*.cu; do
        name=$(basename "$file" .cu)
        [ -f "$headers_dir/more/$name.h" ] || echo "$name"
    done
}
copy_kernels() {
    [ -f "$headers_dir/cuda/$2.cu" ] || return 0
    place "$headers_dir/cuda/$2.cu" "$1/cuda"
}
# A file that is there already is not written again: a row of before may be compiling it.
place() {
    cmp -s "$1" "$2/$(basename "$1")" || { mkdir -p "$2" && cp "$1" "$2/"; }
}

# use_kit LABEL PART...: the rows that follow are built from these files. A header that others feed
# has these beside it.
use_kit() {
    local folder feeder; label=$1; shift
    kit=$work/kits/${label// /-} with=$(with_parts "$@")
    for folder in "$kit" "$kit.cuda"; do
        copy_files "$folder" "$header" "$@"
        if is_fed; then
            for feeder in ugrid lbvh; do
                # shellcheck disable=SC2046
                copy_files "$folder" $feeder
            done
        fi
    done
}

# ------------------------------------------------------------------------------------------------
# Sources: the ways in which a program can include a header.
# ------------------------------------------------------------------------------------------------

write_sources() {
    src=$work/src/$header
    mkdir -p "$src"
    local include="#include \"$header.h\"" implement="#define ${HEADER}_IMPLEMENTATION"
    put() { printf '%s\n' "${@:2}" >"$src/$1"; }
    put include.c        "$include"
    put twice.c          "$include" "$include"
    put impl.c           "$implement" "$include"
    put impl_twice.c     "$implement" "$include" "$include"
    put late_impl.c      "$include" "$implement" "$include"
    # parts that come when the header has been included already
    local macros=()
    mapfile -t macros < <(for part in $(late_parts); do
        echo "#define ${HEADER}_WITH_$(upper "$part")"; done)
    put late_parts.c     "$include" "${macros[@]}" "$include" "$include"
    put late_parts_impl.c "$implement" "$include" "${macros[@]}" "$include" "$include"
    # what windows.h does to the program: words that a header may then not use
    put windows_words.c  "#define near" "#define far" "#define small char" \
        "#define interface struct" "$implement" "$include"
    put static_unused.c  "#define ${HEADER}_STATIC" "$implement" "$include"
    put static_use.c     "#define ${HEADER}_STATIC" "$implement" "#include \"$here/use_$header.c\""
    put static_flat.c    "#define ${HEADER}_STATIC" "$implement" "#include \"$here/flat_$header.c\""
    put stb_impl.c       "#include <stb_ds.h>" "$implement" "$include"
    put cuda_impl.cu     "$implement" "#define ${HEADER}_CUDA" "$include"
    put cuda_include.c   "#define ${HEADER}_CUDA" "$include"
    put cuda_use.c       "#define ${HEADER}_CUDA" "#include \"$here/use_$header.c\""
    put not_nvcc.c       "$implement" "#define ${HEADER}_CUDA" "$include"
    put main.c           "#include <stdio.h>" "int use_a(void);" "int use_b(void);" \
        'int main(void) { int right = use_a() + use_b(); printf("%d of 2 right\n", right); return right != 2; }'
    put fed_by_ugrid.c   '#include "ugrid.h"' "$implement" "$include"
    put fed_by_lbvh.c    '#include "lbvh.h"' "$implement" "$include"
    put fed_by_both.c    '#include "ugrid.h"' '#include "lbvh.h"' "$implement" "$include"
    put fed_backwards.c  '#include "lbvh.h"' '#include "ugrid.h"' "$implement" "$include"
    put fed_too_late.c   "$include" '#include "ugrid.h"' '#include "lbvh.h"' "$implement" "$include"
    put fed_include.c    '#include "ugrid.h"' '#include "lbvh.h"' "$include" '#include "ugrid.h"' \
        '#include "lbvh.h"' "$include"
    put feeders.c        '#define UGRID_IMPLEMENTATION' '#include "ugrid.h"' \
        '#define LBVH_IMPLEMENTATION' '#include "lbvh.h"'
    put fed_static.c     '#define UGRID_STATIC' '#define LBVH_STATIC' "#define ${HEADER}_STATIC" \
        '#define UGRID_IMPLEMENTATION' \
                         '#define LBVH_IMPLEMENTATION' "$implement" \
                         "#include \"$here/use_$header.c\""
    put fed_cuda.cu      '#define UGRID_CUDA' '#define LBVH_CUDA' "#define ${HEADER}_CUDA" \
        '#define UGRID_IMPLEMENTATION' \
                         '#define LBVH_IMPLEMENTATION' "$implement" '#include "ugrid.h"' \
                         '#include "lbvh.h"' "$include"
    put fed_cuda_use.c   '#define UGRID_CUDA' '#define LBVH_CUDA' "#define ${HEADER}_CUDA" \
        "#include \"$here/use_$header.c\""
    cp "$src/impl.c" "$src/impl.cu"
    cp "$src/include.c" "$src/include.cu"
    cp "$src/cuda_include.c" "$src/cuda_include.cu"
}

# ------------------------------------------------------------------------------------------------
# What a row can do. COMMAND is a compiler with its language, standard, level and warnings.
# ------------------------------------------------------------------------------------------------

# compile COMMAND OBJECT SOURCE FLAGS...
compile() {
    local command=$1 object=$2 source=$3; shift 3
    # shellcheck disable=SC2086
    say $command $with "$@" -I"$kit" -c "$source" -o "$OUT/$object"
}

only_compiles() {
    local command=$1 s; shift; for s; do compile "$command" "$s.o" "$src/$s" || return 1; done
}

# link_and_run LINKER OBJECTS...: the program must say that both users got the right answer.
link_and_run() {
    local linker=$1; shift
    # shellcheck disable=SC2086
    ( cd "$OUT" && say $linker "$@" ${libraries:-} -lm -o program ) || return 1
    [ -f "$OUT/program" ] || mv "$OUT/program.exe" "$OUT/program"
    say timeout 600 "$OUT/program" | tee "$OUT/said"
    grep -qx '2 of 2 right' "$OUT/said"
}

# Two ordinary files, one with the implementation, linked and run.
program() {
    local command=$1 linker=$2; shift 2
    compile "$command" impl.o "$src/${implementation:-impl.c}" "$@" &&
    compile "$command" a.o "$here/use_$header.c" -DUSE=use_a "$@" &&
    compile "$command" b.o "$here/use_$header.c" -DUSE=use_b "$@" &&
    compile "$command" main.o "$src/main.c" &&
    link_and_run "$linker" impl.o a.o b.o main.o
}

# _STATIC: two files of one program, each with an implementation of its own. (They are one text: the
# optimizer is asked once.)
static_program() {
    local command=$1 linker=$2; shift 2
    compile "$command" a.o "$src/static_use.c" -DUSE=use_a "$@" &&
    compile "${command/-O3/-O0}" b.o "$src/static_use.c" -DUSE=use_b "$@" &&
    compile "$command" main.o "$src/main.c" &&
    link_and_run "$linker" a.o b.o main.o
}

# two_levels A B COMMAND LINKER FLAGS...: a user in 2D, compiled at -O3 and -O2 (where gcc looks
# into arrays that it sees whole), from the file A, and an implementation from B, which the users do
# not see; none where A has its own.
two_levels() {
    local user=$1 implementation=$2 command=$3 linker=$4 objects="a.o b.o main.o"; shift 4
    compile "$command -O3" a.o "$user" -DUSE=use_a "$@" &&
    compile "$command -O2" b.o "$user" -DUSE=use_b "$@" &&
    compile "$command" main.o "$src/main.c" || return 1
    if [ "$implementation" ]; then
        compile "$command -O0" impl.o "$implementation" "$@" || return 1; objects="$objects impl.o"
    fi
    # shellcheck disable=SC2086
    link_and_run "$linker" $objects
}

flat_program() { two_levels "$here/flat_$header.c" "$src/${implementation:-impl.c}" "$@"; }
flat_static_program() { two_levels "$src/static_flat.c" "" "$@"; }

# with_stb HOW COMMAND LINKER FLAGS...: either of them with stb_ds.h in front, which adds the stb_ds
# forms.
with_stb() {
    local how=$1 command=$2 linker=$3 stb libraries implementation=stb_impl.c; shift 3
    stb=$(stb_flags) || skip "no stb_ds.h"
    libraries=${STB_LIBS:-$(pkg-config --libs stb)}
    # shellcheck disable=SC2086
    $how "$command" "$linker" -DWITH_STB_DS $stb "$@"
}

# fed_program SOURCE COMMAND LINKER FLAGS...: for a header that others feed, which are built in a
# file of their own.
fed_program() {
    local source=$1 command=$2 linker=$3; shift 3
    compile "$command" impl.o "$src/$source" "$@" &&
    compile "$command -O0" feeders.o "$src/feeders.c" "$@" &&
    compile "$command" a.o "$here/use_$header.c" -DUSE=use_a "$@" &&
    compile "$command" b.o "$here/use_$header.c" -DUSE=use_b "$@" &&
    compile "$command" main.o "$src/main.c" &&
    link_and_run "$linker" impl.o feeders.o a.o b.o main.o
}

# All of it in each of two files.
fed_static_program() {
    local command=$1 linker=$2; shift 2
    compile "$command" a.o "$src/fed_static.c" -DUSE=use_a "$@" &&
    compile "$command" b.o "$src/fed_static.c" -DUSE=use_b "$@" &&
    compile "$command" main.o "$src/main.c" &&
    link_and_run "$linker" a.o b.o main.o
}

# Another number type than that of a feeder: an #error that says so.
refuses_mixed_feeders() {
    local feeder
    for feeder in ugrid lbvh; do
        if compile "$1" mixed.o "$src/fed_by_$feeder.c" "-D${HEADER}_REAL=double" >"$OUT/said" 2>&1;
            then
            echo "${HEADER}_REAL=double must not compile with a $feeder.h of floats"; return 1
        fi
        cat "$OUT/said"
        grep -qi "error.*${HEADER}_REAL and ${feeder}_REAL" "$OUT/said" || return 1
    done
}

# As system headers: their own warnings are not ours.
stb_flags() {
    local flags=${STB_CFLAGS:-$(pkg-config --cflags stb 2>/dev/null)}
    [ "$flags" ] || return 1
    echo "$flags" | sed 's/-I/-isystem /g'
}

links_not() {   # links_not LINKER OBJECTS...: must fail, and for the right reason
    local linker=$1; shift
    # shellcheck disable=SC2086
    if ( cd "$OUT" && say $linker "$@" -lm -o program ) >"$OUT/link" 2>&1; then
        echo "this program must not link"; return 1
    fi
    cat "$OUT/link"
    grep -q 'undefined reference' "$OUT/link"
}

# A float file and a double file in one program: in both directions it must not link.
mixed_reals() {
    local cc=$1 linker=$2 d="-D${HEADER}_REAL=double"
    compile "$cc" impl_f.o "$src/impl.c" && compile "$cc" impl_d.o "$src/impl.c" "$d" &&
    compile "$cc" a_f.o "$here/use_$header.c" -DUSE=use_a &&
    compile "$cc" b_d.o "$here/use_$header.c" -DUSE=use_b "$d" &&
    compile "$cc" main.o "$src/main.c" &&
    links_not "$linker" impl_f.o a_f.o b_d.o main.o &&
    links_not "$linker" impl_d.o a_f.o b_d.o main.o
}

# IMPLEMENTATION with CUDA in a file that nvcc does not compile: an #error that says so.
refuses_cuda() {
    if compile "$1" not_nvcc.o "$src/not_nvcc.c" >"$OUT/said" 2>&1; then
        echo "${HEADER}_IMPLEMENTATION with ${HEADER}_CUDA must not compile without nvcc"; return 1
    fi
    cat "$OUT/said"
    grep -q "error.*${HEADER}_CUDA" "$OUT/said"
}

# _CUDA in a file of plain C: declarations, and no CUDA header read, even where one could be found.
declares_cuda() {
    only_compiles "$1" cuda_include.c cuda_use.c || return 1
    # shellcheck disable=SC2086
    if $1 $with -M -I"$kit" "$src/cuda_include.c" |
        grep -E '/(cuda_runtime|cuda_runtime_api|driver_types|cuda)\.h'; then
        echo "${HEADER}_CUDA must not read a CUDA header in plain C"; return 1
    fi
}

# ------------------------------------------------------------------------------------------------
# Names: everything that a header brings in begins with its name.
# ------------------------------------------------------------------------------------------------

# The one foreign name that the design allows: a declaration of cudaStream_t's struct.
# $feeders: of the headers that were included before it, in rows where there are some.
ours() { grep -Ev "^(${header}|${HEADER}${feeders:+|$feeders})(_|\$)|^CUstream_st\$"; }

# The <headers> that ours include, as a file of their own: what they bring is not our doing.
# `-H` lists the included files with one dot per level: two are what our header includes itself
# (C++'s <math.h> reads the <stdlib.h> of C, which is another file than its own); so are three below
# one of our parts. cuda/*.cu are read by nvcc alone.
write_base() {
    local cc=$1 file=$2; shift 2
    # shellcheck disable=SC2086
    $cc $with "$@" -H -E -I"$kit" "$file" 2>&1 >/dev/null |
        awk '/^\.\. / { part = /\/more\//; print } part && /^\.\.\. /' >"$OUT/included"
    included_names | sort -u |
    while read -r name; do
        if grep -q "/$name\$" "$OUT/included"; then echo "#include <$name>"; fi
    done >"$OUT/base.c"
    echo "typedef int ${header}_base;" >>"$OUT/base.c"
}

# Names of the <headers> that the files of the kit include, those in the folder cuda with "cuda".
included_names() {
    find "$kit" -name "$header*.h" -o -name "$header*.cu" | { if [ "${1:-}" ]; then cat; else
        grep -v '\.cu$'; fi; } | xargs sed -n 's/^ *# *include *<\([^>]*\)>.*/\1/p'
}

# check_macros COMMAND SOURCE FLAGS...: macros added, changed or removed against the bare system
# headers.
check_macros() {
    local cc=$1 file=$2; shift 2
    write_base "$cc" "$file" "$@"
    # shellcheck disable=SC2086
    {
        $cc $with "$@" -dM -E "$OUT/base.c" | sort >"$OUT/base.macros" &&
        $cc $with "$@" -dM -E -I"$kit" "$file" | sort >"$OUT/with.macros"
    } || return 1
    grep -q "define ${HEADER}_" "$OUT/with.macros" ||
        { echo "no macro found: the check is broken"; return 1; }
    diff "$OUT/base.macros" "$OUT/with.macros" | sed -n 's/^[<>] #define \([A-Za-z0-9_]*\).*/\1/p' |
        sort -u |
        ours >"$OUT/foreign"
    no_foreign "macros"
}

no_foreign() {
    [ -s "$OUT/foreign" ] || return 0
    echo "$1 without the prefix ${header}_ or ${HEADER}_:"; cat "$OUT/foreign"; return 1
}

macros() {
    local cc=$1
    check_macros "$cc" "$src/include.c" && check_macros "$cc" "$src/impl.c" &&
    check_macros "$cc" "$src/static_unused.c" &&
    check_macros "$cc" "$src/impl.c" "-D${HEADER}_REAL=double" &&
    check_macros "$cc" "$src/cuda_include.c"
}

# check_symbols COMMAND SOURCE FLAGS...: all symbols that the object defines, static ones too.
check_symbols() {
    local cc=$1 file=$2; shift 2
    write_base "$cc" "$file" "$@"
    compile "$cc" symbols.o "$file" "$@" && compile "$cc" base.o "$OUT/base.c" "$@" || return 1
    defined_symbols "$OUT/symbols.o" >"$OUT/with.symbols"
    defined_symbols "$OUT/base.o" >"$OUT/base.symbols"
    grep -q "^${header}_" "$OUT/with.symbols" ||
        { echo "no symbol found: the check is broken"; return 1; }
    comm -13 "$OUT/base.symbols" "$OUT/with.symbols" | ours >"$OUT/foreign"
    no_foreign "symbols"
}

# Left out: the compiler's own (`__func__.0`) and static variables inside functions (`text.0`,
# `function::text`), which no other file can see. What the compiler splits off (`name.part.0`) is
# `name`.
defined_symbols() {
    nm -C --defined-only "$1" | sed 's/^[0-9a-f]* *//' | grep -v '^[bdr] [^ ]*\.[0-9]*$' |
        sed 's/^. //; s/[.(:].*//' | grep . | sort -u
}

symbols() {
    local cc="$1 -O0"
    # gcc can keep functions that are not called; clang has no such switch.
    case $1 in gcc*|g++*|$CC*|$CXX*) cc="$cc -fkeep-static-functions -fkeep-inline-functions" ;; \
        esac
    check_symbols "$cc" "$src/$2" &&
        { [ "$2" != impl.c ] || check_symbols "$cc" "$src/$2" "-D${HEADER}_REAL=double"; }
}

# Types, enumerators, functions and variables of file scope, from the debugger's information:
# one line per name.
declared_names() {
    readelf --debug-dump=info "$1" 2>/dev/null | awk '
        /Abbrev Number/ {
            tag = ""
            depth = $0; sub(/^ *</, "", depth); sub(/>.*/, "", depth)
            if (match($0, /DW_TAG_[a-z_]*/)) tag = substr($0, RSTART, RLENGTH)
            wanted = depth == 1 &&
                tag ~ /typedef|structure|union|enumeration|subprogram|variable/ ||
                     depth == 2 && tag ~ /enumerator/
        }
        wanted && /DW_AT_name/ { sub(/ *$/, ""); print $NF; wanted = 0 }' | sort -u
}

names() {
    local cc=$1 keep="-g -O0 -fno-eliminate-unused-debug-types -fno-eliminate-unused-debug-symbols" file
    for file in include impl cuda_include; do
        write_base "$cc" "$src/$file.c"
        # shellcheck disable=SC2086
        { compile "$cc" with.o "$src/$file.c" $keep && compile "$cc" base.o "$OUT/base.c" $keep; } \
            || return 1
        # What the file only calls (memset) is not its own, and so are reserved names of the
        # system's headers (_mm_add_ps).
        $cc -E "$OUT/base.c" | grep -oE '\b_[A-Za-z0-9_]*' | sort -u >"$OUT/reserved"
        { nm -u "$OUT/with.o" | sed 's/^ *U //'; cat "$OUT/reserved"; } >"$OUT/others"
        declared_names "$OUT/with.o" | grep -vxFf "$OUT/others" >"$OUT/with.names"
        declared_names "$OUT/base.o" >"$OUT/base.names"
        grep -q "^${header}_" "$OUT/with.names" ||
            { echo "no name found: the check is broken"; return 1; }
        comm -13 "$OUT/base.names" "$OUT/with.names" | ours >"$OUT/foreign"
        no_foreign "names ($file.c)" || return 1
    done
}

# ------------------------------------------------------------------------------------------------
# The matrix
# ------------------------------------------------------------------------------------------------

# The compilers are asked once, also by the self-check, which goes through the matrix many times.
declare -A known=()

# knows COMPILER-WITH-FLAGS LANGUAGE
knows() {
    [ "${known[$1]:-}" ] ||
        known[$1]=$(echo 'typedef int known;' | $1 -x "$2" -fsyntax-only - 2>/dev/null &&
        echo yes || echo no)
    [ "${known[$1]}" = yes ]
}

links() {
    [ "${known[$1 links]:-}" ] ||
        known[$1 links]=$(printf '#include <stdlib.h>\nint main(void) { return 0; }\n' |
        $1 -x "$2" - -o /dev/null 2>/dev/null && echo yes || echo no)
    [ "${known[$1 links]}" = yes ]
}

# one_of_each COMPILER COMPILERS...: what differs by language or by compiler, but not by both, is
# compiled by one pair of them: gcc and clang++, or clang and g++, in which each compiler and each
# language are. FULL: by all four.
one_of_each() {
    local compiler=$1 each; shift
    [ ! "${FULL:-}" ] || return 0
    for each; do [ "$compiler" != "$each" ] || return 0; done
    return 1
}

# A header alone is the beginning of the text that it is with all its parts. So what optimizers,
# other compilers and feeders make of that text is asked once: with all parts. FULL: of both.
whole() { [ "${FULL:-}" ] || [ ! "$parts" ] || [ "$label" != "$header" ]; }

# Each standard is asked whether it understands the header. gcc's optimizer has warnings of its own,
# the same for all of them: the main standard has it at -O2 here, at -O0 and -O3 in the programs
# below. (Clang's warnings are those of its front end.)
standards() {   # standards COMPILER WARNINGS LANGUAGE MAIN-STANDARD STANDARDS...
    local compiler=$1 warnings=$2 language=$3 main=$4 std c; shift 4
    for std; do
        c="$compiler -x $language -std=$std"
        if ! knows "$c" "$language"; then
            row "$compiler $std" skip "$compiler does not know -std=$std"; continue
        fi
        row "$compiler $std: included, not used" only_compiles "$c -O0 $warnings" include.c
        if [ "$std" = "$main" ] && [[ $compiler != clang* ]]; then row "$compiler $std -O2: implementation" only_compiles \
            "$c -O2 $warnings" impl.c
        else row "$compiler $std: implementation" only_compiles "$c -fsyntax-only $warnings" impl.c
        fi
    done
}

# One standard: all ways to include it, built into programs that run.
programs() {    # programs COMPILER WARNINGS LANGUAGE STANDARD
    local compiler=$1 c="$1 -x $3 -std=$4" name="$1 $4" double="-D${HEADER}_REAL=double"
    row "$name: included twice" only_compiles "$c -fsyntax-only $2" twice.c
    row "$name: implementation included twice" only_compiles "$c -fsyntax-only $2" impl_twice.c \
        late_impl.c
    row "$name: after the macros of windows.h" only_compiles "$c -fsyntax-only $2" windows_words.c
    row "$name -O0: _STATIC, nothing used" only_compiles "$c -O0 $2" static_unused.c
    c="$c -O0 $2"
    row "$name -O0: two users and an implementation" program "$c" "$compiler"
    if ! one_of_each "$compiler" "$CC"; then
        row "$name -O0: _REAL=double, _STATIC, stb_ds.h included before" with_stb static_program \
            "$c" "$compiler" "$double"
        return
    fi
    row "$name -O0: _STATIC in two files" static_program "$c" "$compiler"
    row "$name -O0: _REAL=double" program "$c" "$compiler" "$double"
    row "$name -O0: stb_ds.h included before" with_stb program "$c" "$compiler"
    c=${c/-O0/-O3}
    [ ! "${FULL:-}" ] || row "$name -O3: two users and an implementation" program "$c" "$compiler"
    ! whole || row "$name -O3: _REAL=double, _STATIC, stb_ds.h included before" with_stb static_program "$c" \
        "$compiler" "$double"
}

# In 2D arrays have two numbers where they have three in 3D. (gcc and g++ are one optimizer; _STATIC
# shows it a program as a whole.)
flat_users() {  # flat_users COMPILER WARNINGS LANGUAGE STANDARD
    local c="$1 -x $3 -std=$4 $2" name="$1 $4"
    [ -f "$here/flat_$header.c" ] && whole || return 0
    ! one_of_each "$1" "$CC" ||
        row "$name -O2 -O3: users in 2D, stb_ds.h included before" with_stb flat_program "$c" "$1"
    ! one_of_each "$1" "$CXX" ||
        row "$name -O2 -O3: users in 2D, _STATIC" flat_static_program "$c" "$1"
}

# A header that others feed, after these, before them, and in any order.
feeds() {       # feeds COMPILER WARNINGS LANGUAGE STANDARD
    local compiler=$1 c="$1 -x $3 -std=$4 -O0 $2" name="$1 $4"
    local double="-DUGRID_REAL=double -DLBVH_REAL=double -D${HEADER}_REAL=double" \
        feeders="ugrid|UGRID|lbvh|LBVH" both="-DWITH_UGRID -DWITH_LBVH"
    # shellcheck disable=SC2086
    {
        row "$name: both feeders, all included twice" only_compiles "$c" fed_include.c
        row "$name -O0: fed by both, the other way round" fed_program fed_backwards.c "$c" \
            "$compiler" $both
        if one_of_each "$compiler" "$CC" clang++; then
            row "$name -O0: fed by ugrid.h" fed_program fed_by_ugrid.c "$c" "$compiler" \
                -DWITH_UGRID
            row "$name -O0: fed by lbvh.h" fed_program fed_by_lbvh.c "$c" "$compiler" -DWITH_LBVH
            row "$name -O0: feeders that come too late" fed_program fed_too_late.c "$c" "$compiler"
        fi
        [ ! "${FULL:-}" ] || row "$name -O3: fed by both" fed_program fed_by_both.c "${c/-O0/-O3}" \
            "$compiler" $both
        if one_of_each "$compiler" clang "$CXX"; then
            row "$name -O3: fed by both, _REAL=double" fed_program fed_by_both.c "${c/-O0/-O3}" \
                "$compiler" $both $double
            row "$name -O0: fed by both, _STATIC" fed_static_program "$c" "$compiler" $both
        fi
    }
    row "$name: not fed with another _REAL" refuses_mixed_feeders "$c"
    row "$name: fed, every macro has the prefix" check_macros "$compiler -x $3 -std=$4" \
        "$src/fed_by_both.c"
    ! one_of_each "$compiler" "$CC" clang++ ||
        row "$name: fed, every symbol has the prefix" symbols "$compiler -x $3 -std=$4" \
            fed_by_both.c
}

# One compiler: a standard of its own for everything, the others for what differs by language.
family() {      # family COMPILER WARNINGS LANGUAGE MAIN-STANDARD STANDARDS...
    local compiler=$1 warnings=$2 language=$3 main=$4 c; shift 4
    if ! have "$compiler"; then row "$compiler" skip "no $compiler"; return; fi
    c="$compiler -x $language -std=$main"
    standards "$compiler" "$warnings" "$language" "$main" "$@"
    if [ "$compiler" != clang++ ] || [ "${FULL:-}" ]; then
        programs "$compiler" "$warnings" "$language" "$main"
    fi
    case $compiler in
    clang*) [ ! "${FULL:-}" ] || flat_users "$compiler" "$warnings" "$language" "$main" ;;
    *) flat_users "$compiler" "$warnings" "$language" "$main" ;;
    esac
    ! one_of_each "$compiler" "$CC" clang++ ||
        row "$compiler $main: float and double do not link" mixed_reals "$c $warnings" "$compiler"
    row "$compiler $main: _IMPLEMENTATION with _CUDA is refused" refuses_cuda "$c $warnings"
    row "$compiler $main: _CUDA declares, without any CUDA header" declares_cuda "$c $warnings"
    row "$compiler $main: every macro has the prefix" macros "$c"
    if one_of_each "$compiler" "$CC" clang++; then
        row "$compiler $main: every symbol has the prefix" symbols "$c" impl.c
        row "$compiler $main: every declared name has the prefix" names "$c"
    fi
    if is_fed && whole; then feeds "$compiler" "$warnings" "$language" "$main"; fi
}

is_fed() { [ "$header" = nlist ]; }

thirty_two_bits() {     # thirty_two_bits COMPILER LANGUAGE STANDARD
    local name="$1 -m32 $3" c="$1 -m32 -x $2 -std=$3 -O2 $warn"
    if ! links "$1 -m32" "$2"; then
        row "$name" skip "$1 has no 32-bit libraries (Debian: $1-multilib)"; return
    fi
    row "$name: two users and an implementation" program "$c" "$1 -m32"
    row "$name: _REAL=double" program "${c/-O2/-O0}" "$1 -m32" "-D${HEADER}_REAL=double"
}

other_compilers() {
    local c
    if have tcc; then
        c="tcc -Wall -Werror"
        row "tcc: included, not used" only_compiles "$c" include.c twice.c
        row "tcc: two users and an implementation" program "$c" tcc
        row "tcc: _STATIC in two files" static_program "$c" tcc
        row "tcc: implementation included twice" only_compiles "$c" impl_twice.c late_impl.c
        row "tcc: _REAL=double" program "$c" tcc "-D${HEADER}_REAL=double"
        row "tcc: stb_ds.h included before" with_stb program "$c" tcc
        if is_fed; then
            row "tcc: fed by both" fed_program fed_by_both.c "$c" tcc -DWITH_UGRID -DWITH_LBVH
        fi
    else row "tcc" skip "no tcc"; fi
    if have x86_64-w64-mingw32-gcc; then
        c="x86_64-w64-mingw32-gcc -std=c99 -O2 $warn"
        row "mingw-w64: two users and an implementation" windows_program "$c" program
        row "mingw-w64: _REAL=double, _STATIC" windows_program "${c/-O2/-O0}" static_program \
            "-D${HEADER}_REAL=double"
    else row "mingw-w64" skip "no x86_64-w64-mingw32-gcc"; fi
}

# Compiled and linked; run only where wine is there.
windows_program() {
    local command=$1 how=$2; shift 2
    link_and_run() {
        local linker=$1; shift
        # shellcheck disable=SC2086
        ( cd "$OUT" && say $linker "$@" -o program.exe ) || return 1
        have wine || return 0
        say timeout 1200 wine "$OUT/program.exe" | tr -d '\r' | tee "$OUT/said"
        grep -qx '2 of 2 right' "$OUT/said"
    }
    $how "$command" x86_64-w64-mingw32-gcc "$@"
}

# ------------------------------------------------------------------------------------------------
# nvcc
# ------------------------------------------------------------------------------------------------

find_nvcc() {
    local candidate
    for candidate in "${NVCC:-}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc \
        /usr/local/cuda-*/bin/nvcc; do
        if [ -x "$candidate" ]; then echo "$candidate"; return; fi
    done
}

# The GPU code is compiled to PTX for the oldest architecture that this nvcc knows: the matrix looks
# for warnings and for symbols, `make cuda` compiles for real; so not optimized (-G), which takes
# two thirds of the time.
# No -Wpedantic: nvcc's own output breaks it.
# CUDA's headers become system headers (-isystem): their warnings are not ours.
nvcc_command() {
    local nvcc=$1 std=$2 oldest include host
    oldest=$("$nvcc" --list-gpu-arch | head -n 1)
    include=$(cd "$(dirname "$nvcc")/.." && pwd)/include
    host=$(echo "$warn" | sed 's/ -Wpedantic//; s/ -Werror//; s/ /,/g')
    echo "$nvcc -std=$std -arch=$oldest -G -isystem $include -Xcompiler $host -Werror all-warnings"
}

# A .cu with the CUDA part, a plain C file that only sees declarations, and one that does not care.
cuda_program() {
    local nvcc=$1 linker=$2 cc=$3; shift 3
    compile "$nvcc" impl.o "$src/cuda_impl.cu" "$@" &&
    compile "$cc" a.o "$src/cuda_use.c" -DUSE=use_a "$@" &&
    compile "$cc" b.o "$here/use_$header.c" -DUSE=use_b "$@" &&
    compile "$cc" main.o "$src/main.c" &&
    link_and_run "$linker" impl.o a.o b.o main.o
}

# In a .cu the users are C++ too.
cu_program() {
    local nvcc="$1 -x cu" linker=$2; shift 2
    program "$nvcc" "$linker" "$@"
}

# The same, and as the object file is there: every symbol has the prefix.
cuda_program_and_symbols() { cuda_program "$@" && cuda_symbols "$OUT/impl.o"; }

# Feeders and header in one .cu: all three with their CUDA parts.
fed_cuda_program() {
    local nvcc=$1 linker=$2 cc=$3; shift 3
    compile "$nvcc" impl.o "$src/fed_cuda.cu" "$@" &&
    compile "$cc" a.o "$src/fed_cuda_use.c" -DUSE=use_a "$@" &&
    compile "$cc" b.o "$here/use_$header.c" -DUSE=use_b "$@" &&
    compile "$cc" main.o "$src/main.c" &&
    link_and_run "$linker" impl.o a.o b.o main.o
}

# Symbols of the CUDA part: the strong ones, and everything in our anonymous namespace (the kernels;
# CUB has some too, inside other namespaces). Weak symbols are instances of templates, other static
# ones nvcc's.
cuda_symbols() {
    nm -C --defined-only "$1" >"$OUT/symbols"
    grep -q " ${header}_cuda_" "$OUT/symbols" ||
        { echo "no ${header}_cuda_ symbol found: the check is broken"; return 1; }
    {
        grep -oE '(^|[^:])\(anonymous namespace\)::[A-Za-z0-9_]*' "$OUT/symbols" | sed 's/.*:://'
        sed -n 's/^[0-9a-f]* *[TDBRC] //p' "$OUT/symbols" |
            grep -v '^(anonymous\|^__device_stub__' | sed 's/[.(<].*//'
    } | sed 's/^__wrapper__device_stub_//' | sort -u | ours >"$OUT/foreign"
    no_foreign "symbols"
}

# Macros of the CUDA part, against the <headers> that the two files name, as far as they are here
# (arm_neon.h).
cuda_macros() {
    local nvcc=$1
    included_names cuda | sort -u |
        sed 's/.*/#if __has_include(<&>)\n#include <&>\n#endif/' >"$OUT/base.cu"
    # shellcheck disable=SC2086
    {
        $nvcc $with -E -Xcompiler -dM "$OUT/base.cu" | sort >"$OUT/base.macros" &&
        $nvcc $with -E -Xcompiler -dM -I"$kit" "$src/cuda_impl.cu" | sort >"$OUT/with.macros"
    } || return 1
    grep -q "define ${HEADER}_" "$OUT/with.macros" ||
        { echo "no macro found: the check is broken"; return 1; }
    comm -13 "$OUT/base.macros" "$OUT/with.macros" | sed -n 's/^#define \([A-Za-z0-9_]*\).*/\1/p' |
        sort -u |
        ours >"$OUT/foreign"
    no_foreign "macros"
}

cuda_rows() {
    local nvcc n cc="$CC -std=c99 -O2 $warn" double="-D${HEADER}_REAL=double" kit=$kit.cuda
    nvcc=$(find_nvcc)
    if [ ! "$nvcc" ]; then row "nvcc" skip "no nvcc"; return; fi
    n=$(nvcc_command "$nvcc" c++17)
    if [ "${FULL:-}" ]; then
        row "nvcc c++17: as .cu, declarations" only_compiles "$n" include.cu
        row "nvcc c++17: as .cu, without _CUDA" cu_program "$n" "$nvcc"
    fi
    if [ ! -f "$kit/cuda/$header.cu" ]; then
        row "nvcc, _CUDA" skip "no cuda/$header.cu"; return
    fi
    [ ! "${FULL:-}" ] || row "nvcc c++17: _CUDA, declarations" only_compiles "$n" cuda_include.cu
    row "nvcc c++17: _CUDA, one .cu and two C files; every symbol has the prefix" \
        cuda_program_and_symbols "$n" "$nvcc" "$cc"
    if is_fed && [ "${FULL:-}" ]; then
        # shellcheck disable=SC2086
        row "nvcc c++20: _CUDA, fed by both, _REAL=double" fed_cuda_program \
            "$(nvcc_command "$nvcc" c++20)" "$nvcc" "$cc" \
            -DWITH_UGRID -DWITH_LBVH -DUGRID_REAL=double -DLBVH_REAL=double $double
    elif [ "$header" = nbody ] || [ "${FULL:-}" ]; then # doubles
        row "nvcc c++20: _CUDA, _REAL=double" cuda_program "$(nvcc_command "$nvcc" c++20)" "$nvcc" \
            "$cc" $double
    fi
    row "nvcc c++17: every macro has the prefix" cuda_macros "$n"
}

# ------------------------------------------------------------------------------------------------

# The oldest and the newest; FULL: those between, too.
c_years='c99 c17' cxx_years='c++11 c++20'
if [ "${FULL:-}" ]; then c_years='c99 c11 c17' cxx_years='c++11 c++14 c++17 c++20'; fi

# All rows, for a header alone and for one with all its parts.
full_rows() {
    # shellcheck disable=SC2086
    family "$CC"  "$warn"       c   c99   $c_years
    family clang  "$clang_warn" c   c99   $c_years
    family "$CXX" "$warn"       c++ c++17 $cxx_years
    family clang++ "$clang_warn" c++ c++17 $cxx_years
    if have "$CXX"; then
        row "$CXX c++17: without exceptions and RTTI" \
            only_compiles "$CXX -x c++ -std=c++17 -fsyntax-only -fno-exceptions -fno-rtti $warn" \
            impl.c
    fi
    whole || return 0       # (kernels alone: the programs of docs/ compile them)
    thirty_two_bits "$CC" c c99
    if [ "${FULL:-}" ]; then
        if have "$CXX"; then
            thirty_two_bits "$CXX" c++ c++17
        else
            row "$CXX -m32" skip "no $CXX"
        fi
    fi
    other_compilers
    cuda_rows
}

# One part: what could differ from the header with all of them is what it takes from another one.
part_rows() {
    row "$CC c99 -O0: two users and an implementation" program "$CC -std=c99 -O0 $warn" "$CC"
    if have clang; then row "clang c99: implementation" only_compiles \
        "clang -std=c99 -fsyntax-only $clang_warn" impl.c; fi
    if have "$CXX"; then row "$CXX c++17: implementation" only_compiles \
        "$CXX -x c++ -std=c++17 -fsyntax-only $warn" impl.c; fi
}

# ------------------------------------------------------------------------------------------------
# Parts: whether their macros are there or not, and what a stranger can do wrong.
# ------------------------------------------------------------------------------------------------

# Both with the warnings of the matrix.
two_compilers() {
    echo "$CC -std=c99 $warn"
    ! have clang++ || echo "clang++ -x c++ -std=c++17 $clang_warn"
}

# says_instead PATTERN: the command that follows must fail, and say this in an error.
says_instead() {
    local pattern=$1; shift
    if "$@" >"$OUT/said" 2>&1; then echo "this must not compile"; return 1; fi
    cat "$OUT/said"
    grep -q "error.*$pattern" "$OUT/said"
}

# A file of a part that was not copied. (What does not know __has_include says "No such file".)
refuses_without_part() {
    local part command
    two_compilers >"$OUT/compilers"
    for part in $parts; do
        while read -r command; do
            with=$(with_parts "$part")
            says_instead "$header.h: ${HEADER}_WITH_$(upper "$part") needs .*${header}_$part.h" \
                only_compiles "$command -fsyntax-only" include.c || return 1
        done <"$OUT/compilers"
    done
}

# A part, and kernels, of another release.
refuses_other_version() {
    local part nvcc from=$kit.cuda; nvcc=$(find_nvcc)
    other_version /more/
    for part in $parts; do
        with=$(with_parts "$part")
        says_instead "more/${header}_$part.h .* different versions" \
            only_compiles "$CC -std=c99 -fsyntax-only" include.c || return 1
    done
    [ "$nvcc" ] && [ -f "$from/cuda/$header.cu" ] || return 0
    for part in $(own_kernels "$header") $(printf "${header}_%s " $parts); do
        [ -f "$from/cuda/$part.cu" ] || continue
        other_version "/$part.cu"
        with=
        [ ! -f "$from/more/$part.h" ] || with=$(with_parts "${part#"${header}"_}")
        # shellcheck disable=SC2086
        says_instead "cuda/$part.cu .* different versions" "$nvcc" $with -E -I"$kit" \
            "$src/cuda_impl.cu" -o "$OUT/impl.i" || return 1
    done
}

# other_version FILES: a kit whose header is of another version than all the rest, of which only
# these look at it.
other_version() {
    kit=$OUT/kit
    rm -rf "$kit" && cp -r "$from" "$kit"
    sed -i "s/^#define ${HEADER}_VERSION_PATCH .*/#define ${HEADER}_VERSION_PATCH 77/" \
        "$kit/$header.h"
    find "$kit/more" "$kit/cuda" -type f | grep -v "$1" |
        xargs -r sed -i "s/_VERSION_PATCH != .*/_VERSION_PATCH == 0/"
}

# A part is no header.
refuses_part_alone() {
    local part
    with=
    for part in $parts; do
        echo "#include \"more/${header}_$part.h\"" >"$OUT/part.c"
        says_instead "more/${header}_$part.h is a part of $header.h" \
            compile "$CC -std=c99 -fsyntax-only" part.o "$OUT/part.c" || return 1
    done
}

# A macro in the files that use a part, and not in the one with the implementation. Troubleshooting
# in docs/install.md has the linker's words. (A part without functions to call: its options are
# refused by a result, NBODY_NO_PART, and the users do not get the right answer.)
user_without_implementation() {
    local cc=$1 linker=$2 part
    for part in $parts; do
        grep -q "^${HEADER}_API" "$headers_dir/more/${header}_$part.h" || continue # adds no call
        with=
        compile "$cc" impl.o "$src/impl.c" && compile "$cc" main.o "$src/main.c" || return 1
        # shellcheck disable=SC2046
        with=$(with_parts $(needed_parts "$part"))
        compile "$cc" a.o "$here/use_$header.c" -DUSE=use_a &&
        compile "$cc" b.o "$here/use_$header.c" -DUSE=use_b || return 1
        ! links_not "$linker" impl.o a.o b.o main.o || continue
        ( link_and_run "$linker" impl.o a.o b.o main.o ) && return 1
        grep -qx '0 of 2 right' "$OUT/said" || return 1
    done
}

# Files that use no part need no macro, beside others and an implementation that have all.
users_of_both_kinds() {
    local cc=$1 linker=$2 all=$with
    compile "$cc" impl.o "$src/impl.c" && compile "$cc" a.o "$here/use_$header.c" -DUSE=use_a &&
        compile "$cc" main.o "$src/main.c" || return 1
    with=
    compile "$cc" b.o "$here/use_$header.c" -DUSE=use_b && with=$all &&
        link_and_run "$linker" impl.o a.o b.o main.o
}

parts_that_come_late() {
    local command
    with=
    two_compilers >"$OUT/compilers"
    while read -r command; do
        only_compiles "$command -fsyntax-only" late_parts.c late_parts_impl.c || return 1
    done <"$OUT/compilers"
    # shellcheck disable=SC2046
    same_symbols_of "$src/impl.c" "$(with_parts $(late_parts))" "$kit" "$src/late_parts_impl.c" '' \
        "$kit"
}

# A part that changes what the header itself declares or compiles must have its macro from the
# beginning.
refuses_late() {
    local part early=
    with=
    for part in $parts; do
        is_early "$part" || continue
        early=yes
        printf '%s\n' "#define ${HEADER}_IMPLEMENTATION" "#include \"$header.h\"" \
            "#define ${HEADER}_WITH_$(upper "$part")" "#include \"$header.h\"" >"$OUT/late.c"
        says_instead "define ${HEADER}_WITH_$(upper "$part") before " \
            compile "$CC -std=c99 -fsyntax-only" late.o "$OUT/late.c" || return 1
    done
    [ "$early" ] || skip "$header.h has no such part"
}

# symbols_of NAME SOURCE MACROS FOLDER: names and sizes of what the object has.
symbols_of() {
    # shellcheck disable=SC2086
    say $CC -std=c99 -O0 -DNDEBUG $3 -I"$4" -c "$2" -o "$OUT/$1.o" &&
        nm -S "$OUT/$1.o" | sed 's/^[0-9a-f]* //' | sort >"$OUT/$1.symbols"
}

# same_symbols_of SOURCE MACROS FOLDER SOURCE MACROS FOLDER
same_symbols_of() {
    symbols_of one "$1" "$2" "$3" && symbols_of other "$4" "$5" "$6" || return 1
    grep -q " ${header}_" "$OUT/one.symbols" || { echo "no symbol: the check is broken"; return 1; }
    diff "$OUT/one.symbols" "$OUT/other.symbols" | head -n 20
    cmp "$OUT/one.symbols" "$OUT/other.symbols"
}

# text_of NAME FOLDER: what the compiler reads, when all is included.
text_of() {
    # shellcheck disable=SC2086
    say $CC -std=c99 -E -P -DNDEBUG $with -I"$2" "$src/impl.c" -o "$OUT/$1.i" || return 1
    grep -v '^ *$' "$OUT/$1.i" >"$OUT/$1.text"
}

# The single file against the header with parts beside it.
same_text() {
    text_of kit "$kit" && text_of single "$single" || return 1
    grep -q " ${header}_" "$OUT/kit.text" || { echo "no name: the check is broken"; return 1; }
    diff "$OUT/kit.text" "$OUT/single.text" | head -n 20
    cmp "$OUT/kit.text" "$OUT/single.text"
}

# ... and nvcc reads the same kernels there, by the names of all that they are preprocessed to.
same_kernels() {
    local nvcc folder; nvcc=$(find_nvcc)
    [ "$nvcc" ] || skip "no nvcc"
    for folder in "$kit" "$single"; do
        # shellcheck disable=SC2086
        "$nvcc" -E -DNDEBUG $with -I"$folder" "$src/cuda_impl.cu" -o "$OUT/impl.i" || return 1
        grep -v '^#\|^ *$' "$OUT/impl.i" >"$OUT/$(basename "$folder").text"
    done
    grep -q "${header}_cuda" "$OUT/$(basename "$kit").text" &&
        cmp "$OUT/$(basename "$kit").text" "$OUT/$(basename "$single").text"
}

parts_rows() {
    row "parts that come when the header is there already" parts_that_come_late
    row "parts that must not come so late are refused" refuses_late
    row "$CC c99: users with and without parts" users_of_both_kinds "$CC -std=c99 -O0 $warn" "$CC"
    row "a part of another version is refused" refuses_other_version
    row "a part without its header is refused" refuses_part_alone
    use_kit "$header"
    row "a part that is missing is refused" refuses_without_part
    use_kit "$header+all" $parts
    row "$CC c99: parts in the users alone do not link" user_without_implementation \
        "$CC -std=c99 -O0 $warn" "$CC"
}

single_rows() {
    local part single=$work/kits/$header-single
    mkdir -p "$single"
    # (what feeds it lies beside it)
    cp "$kit"/*.h "$single/"
    "$root/packaging/single.sh" "$single" "$headers_dir" "$header" >"$work/single.log" 2>&1 ||
        { row "packaging/single.sh" cat_and_fail "$work/single.log"; return; }
    # shellcheck disable=SC2046
    for part in $parts; do
        use_kit "$header+$part" $(needed_parts "$part")
        label="$header single"; row "with $part: the same text" same_text
    done
    use_kit "$header"; label="$header single"
    row "without parts: the same text" same_text
    # shellcheck disable=SC2086
    use_kit "$header+all" $parts; label="$header single"
    [ ! "$parts" ] || row "with all parts: the same text" same_text
    [ ! -f "$kit.cuda/cuda/$header.cu" ] || kit=$kit.cuda row "the same kernels" same_kernels
    kit=$single
    row "$CC c99 -O0: two users and an implementation" program "$CC -std=c99 -O0 $warn" "$CC"
    if have "$CXX"; then row "$CXX c++17: implementation" only_compiles \
        "$CXX -x c++ -std=c++17 -fsyntax-only $warn" impl.c; fi
}
cat_and_fail() { cat "$1"; return 1; }

matrix() {      # matrix HEADER
    local part
    header=$1; HEADER=$(upper "$header") label=$header
    if [ ! -f "$here/use_$header.c" ]; then
        row "tests/quality/vendor/use_$header.c is there" false; return
    fi
    parts=$(part_names | paste -sd' ')
    write_sources
    use_kit "$header"; full_rows
    for part in $parts; do
        # shellcheck disable=SC2046
        use_kit "$header+$part" $(needed_parts "$part"); part_rows
    done
    if [ "$parts" ]; then
        # shellcheck disable=SC2086
        use_kit "$header+all" $parts; full_rows; parts_rows
    fi
    single_rows
}

fresh() {
    rm -rf "$work/rows" "$work/src" "$work/kits"
    mkdir -p "$work/rows"
    row_number=0 feeders=
}

run_matrix() {
    local h found=
    fresh
    for h in $headers; do
        [ -f "$headers_dir/$h.h" ] || continue
        found=yes; matrix "$h"
    done
    wait
    [ "$found" ] || { echo "no header in $headers_dir"; exit 1; }
}

CC=${CC:-gcc}; [ "$CC" = cc ] && CC=gcc
CXX=${CXX:-g++}; [ "$CXX" = c++ ] && CXX=g++

while [ $# -gt 0 ]; do
    case $1 in
    --header) headers=$2; shift ;;
    --only) only=$2; shift ;;
    --but) but=$2; shift ;;
    --dir) headers_dir=$2; shift ;;
    --self-check) . "$here/self_check.sh"; self_check; exit ;;
    *) sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done

run_matrix
failed=$(count_rows FAILED)
if [ "$failed" -gt 0 ]; then
    echo "failed rows:"
    for r in "$work"/rows/*; do
        grep -q FAILED "$r/result" && echo "  $(cat "$r/name")  (log: $r/log)"
    done
fi
echo "$(count_rows ok) passed, $failed failed, $(count_rows skipped) skipped"
[ "$failed" -eq 0 ] && [ "$(count_rows ok)" -gt 0 ]
