#!/bin/bash
# Do the headers compile for compilers and systems that are not here?
#
#   tests/quality/compilers/run.sh               all of it
#   tests/quality/compilers/run.sh --self-check  plants what only gcc, clang or Linux know: is it
#                                                found?
#
# MSVC    clang for x86_64-, i686- and aarch64-pc-windows-msvc, as itself (clang-cl) and in place of
# cl: then what the headers keep for
#         gcc and clang is hidden, and poisoned (compilers/not_msvc.h). The C library is a stand-in
#         of declarations (compilers/msvc).
# zig     ziglang from PyPI, in build/zig, compiles and links the examples of the headers' comments
# for Windows, macOS and Linux with
#         musl, on x86_64 and aarch64. Those that this machine can run (itself, wine, qemu) must
#         print what they should.
#
# after   gcc, clang, mingw and clang-cl: a function that stands after the headers compiles to the
#         same instructions as without them, whatever the options for floating point are.
#
# Says "ok", "FAILED" or "skipped" per check; the last line is "N passed, M failed, K skipped".
# Environment: JOBS (checks at a time, 2), HEADERS (the folder of the headers), ONLY (parts: msvc cl
# zig after).
set -u
export LC_ALL=C
cd "$(dirname "$0")/../../.." && mkdir -p build/compilers || exit 1
. tests/common/units.sh
. tests/common/manual.sh
headers=${HEADERS:-.}
names="ugrid lbvh nlist nbody"
clang=${CLANG:-clang}
warn="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wvla -Wmicrosoft -Werror"
warn="$warn -Wno-pragma-once-outside-header"
export ZIG_GLOBAL_CACHE_DIR=$PWD/build/zig-cache ZIG_LOCAL_CACHE_DIR=$PWD/build/zig-cache

skip() { skipped=$((skipped + 1)); echo "skipped  compilers: $*"; }

# check NAME COMMAND...: what it says is shown where it fails.
check() {
    local name=$1 said; shift
    if said=$("$@" 2>&1); then passed=$((passed + 1)); echo "ok       compilers: $name"; return; fi
    failed=$((failed + 1)); echo "FAILED   compilers: $name"; head -n 12 <<<"$said" | cut -c 1-200 |
        sed 's/^/    | /'
}

upper() { tr a-z A-Z <<<"$1"; }

# ---- MSVC ----------------------------------------------------------------------------------------

# The ways in which a program includes a header; what windows.h does to the program comes first.
write_sources() {
    local name include implement
    src=$units/src
    mkdir -p "$src"
    for name in $names; do
        include="#include \"$name.h\"" implement="#define $(upper "$name")_IMPLEMENTATION"
        printf '%s\n' "$include" "$include" >"$src/$name.include.c"
        printf '%s\n' "$include" "$implement" "$include" >"$src/$name.late.c"
        printf '%s\n' "#define $(upper "$name")_STATIC" "$implement" "$include" \
            >"$src/$name.static.c"
        printf '%s\n' '#define min(a, b) (((a) < (b)) ? (a) : (b))' \
            '#define max(a, b) (((a) > (b)) ? (a) : (b))' '#define near' '#define far' \
            '#define small char' '#define interface struct' '#define IN' '#define OUT' \
            '#define ERROR 0' '#define TRUE 1' '#define FALSE 0' \
            "$implement" "$include" >"$src/$name.windows.c"
        manual_example "$headers/$name.h" >"$src/$name.example.c"
    done
    # all headers with all parts in one file; a file for each alone has no parts
    {
        for name in "$headers"/more/*.h; do part_macro "$name"; done
        for name in $names; do
            printf '#define %s_IMPLEMENTATION\n#include "%s.h"\n' "$(upper "$name")" "$name"
        done
    } >"$src/all.c"
}

# more/lbvh_world.h: #define LBVH_WITH_WORLD
part_macro() { basename "$1" .h | tr a-z A-Z | sed 's/_/_WITH_/; s/^/#define /'; }

# msvc TARGET LANGUAGE STANDARD REAL FLAGS... SOURCE: to object code
msvc() {
    local target=$1 language=$2 standard=$3 real=$4 name reals=
    for name in $names; do reals="$reals -D$(upper "$name")_REAL=$real"; done
    # shellcheck disable=SC2086
    "$clang" --target="$target-pc-windows-msvc" -fms-compatibility -fms-extensions -nostdlibinc \
        -isystem tests/quality/compilers/msvc \
        -x "$language" -std="$standard" $warn $reals -I"$headers" -c "${@:5}" -o /dev/null
}

language_of() { case $1 in c++*) echo c++ ;; *) echo c ;; esac; }

# every_source TARGET STANDARD FLAGS...: of all headers, in float and double
every_source() {
    local target=$1 standard=$2 real source; shift 2
    for source in "$src"/*.c; do
        for real in float double; do
            # C, with arrays of float
            case $source-$real-$standard in *.example.c-double-* | *.example.c-*-c++*) continue ;; \
                esac
            msvc "$target" "$(language_of "$standard")" "$standard" $real "$@" "$source" || return 1
        done
    done
}

as_cl="-include tests/quality/compilers/not_msvc.h"

msvc_rows() {
    local standard target
    for standard in c11 c++14 c++17 c++20; do
        unit check "MSVC, $standard: clang" every_source x86_64 $standard
        # shellcheck disable=SC2086
        unit check "MSVC, $standard: clang in place of cl" every_source x86_64 $standard $as_cl
    done
    for target in i686 aarch64; do
        for standard in c11 c++17; do
            # shellcheck disable=SC2086
            unit check "MSVC, $target, $standard: clang in place of cl" every_source $target \
                $standard $as_cl
        done
    done
    # shellcheck disable=SC2086
    for target in -mavx -mavx512f; do
        unit check "MSVC, $target: vectors" every_source x86_64 c11 $as_cl $target
    done
}

# clang-cl at /W4, as a project of Visual Studio calls it
clang_cl() {
    local standard=$1 source
    for source in "$src"/*.c; do
        case $source-$standard in *.example.c-c++*) continue ;; esac
        "$clang" --driver-mode=cl --target=x86_64-pc-windows-msvc /nologo /c /W4 /WX /X -Xclang \
            -isystem -Xclang tests/quality/compilers/msvc "/I$headers" "/std:$standard" \
            "$([[ $standard == c++* ]] && echo /TP || echo /TC)" /Fo/dev/null -- "$source" ||
            return 1
    done
}

part_msvc() {
    command -v "$clang" >/dev/null || { unit skip "MSVC: no clang"; return; }
    msvc_rows
}

part_cl() {
    local standard
    command -v "$clang" >/dev/null || { unit skip "clang-cl: no clang"; return; }
    for standard in c11 c++14 c++17 c++20; do
        unit check "clang-cl /W4 /std:$standard" clang_cl $standard
    done
}

# ---- zig -----------------------------------------------------------------------------------------

zig=build/zig/bin/python-zig

fetch_zig() {
    [ -x $zig ] || { python3 -m venv build/zig &&
        timeout 600 build/zig/bin/pip install -q --disable-pip-version-check ziglang; } \
        >build/compilers/pip.txt 2>&1
    [ -x $zig ]
}

# What kind of program it is, and for which processor.
machine() {
    local begin offset
    begin=$(od -An -tx1 -N4 "$1" | tr -d ' ')
    case $begin in
    4d5a*)
        offset=$(od -An -tu4 -j60 -N4 "$1" | tr -d ' ')
        echo "windows $(od -An -tx2 -j$((offset + 4)) -N2 "$1" | tr -d ' ')" ;;
    cffaedfe) echo "macos $(od -An -tx4 -j4 -N4 "$1" | tr -d ' ')" ;;
    7f454c46) echo "linux $(od -An -tx2 -j18 -N2 "$1" | tr -d ' ')" ;;
    *)        echo "unknown $begin" ;;
    esac
}

machine_of() {
    case $1 in
    x86_64-windows*) echo windows 8664 ;; aarch64-windows*) echo windows aa64 ;;
    x86_64-macos)    echo macos 01000007 ;; aarch64-macos)  echo macos 0100000c ;;
    x86_64-linux*)   echo linux 003e ;;   aarch64-linux*)   echo linux 00b7 ;;
    esac
}

# The command that runs programs of a target here; none: 1.
runner() {
    case $1-$(uname -sm) in
    x86_64-linux*"-Linux x86_64" | aarch64-linux*"-Linux aarch64") echo env ;;
    aarch64-linux*"-Linux "*) command -v qemu-aarch64-static ;;
    x86_64-windows*"-Linux x86_64") command -v wine ;;
    *) return 1 ;;
    esac
}

links_for() {       # links_for TARGET NAME
    local program=build/compilers/$2.$1.exe
    manual_example "$headers/$2.h" >"build/compilers/$2.$1.c"
    timeout 1200 $zig cc -target "$1" -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror -I"$headers" \
        "build/compilers/$2.$1.c" -o "$program" -lm &&
        [ "$(machine "$program")" = "$(machine_of "$1")" ] ||
        { echo "$program: $(machine "$program")"; return 1; }
}

runs_here() {       # runs_here TARGET NAME
    diff <(manual_prints "$2") \
        <(WINEDEBUG=-all timeout 120 "$(runner "$1")" "build/compilers/$2.$1.exe" | tr -d '\r')
}

# The first program of a target takes a minute or more: zig builds the C library from its source.
zig_target() {
    local target=$1 name
    for name in $names; do
        check "zig cc -target $target: the example of $name.h" links_for "$target" "$name"
        [ ! -f "build/compilers/$name.$target.exe" ] || ! runner "$target" >/dev/null ||
            check "$target: the example of $name.h prints what it should" runs_here "$target" \
            "$name"
    done
}

part_zig() {
    local target
    fetch_zig || { unit skip \
        "zig: no ziglang, and pip cannot get it ($(tail -n 1 build/compilers/pip.txt))"; return; }
    rm -f build/compilers/*.exe
    for target in ${ZIG_TARGETS:-x86_64-windows-gnu aarch64-windows-gnu x86_64-macos aarch64-macos \
        x86_64-linux-musl aarch64-linux-musl}; do
        unit zig_target $target
    done
}

# ---- after ---------------------------------------------------------------------------------------

# What fused products, another order of sums, and NaN that does not exist would change.
write_functions_after() {
    cat <<'end'
#ifdef __cplusplus
extern "C"
#endif
double after(const double *v, double a, double b);
double after(const double *v, double a, double b)
{
    double const sum = v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7];
    return (a == a ? a * b + sum : v[8]) / 3.0 + (v[9] + a - a) * 0.0;
}
end
}

# instructions_after OBJECT: of the function `after`, without addresses
instructions_after() {
    objdump -d --no-show-raw-insn "$1" | sed -n '/<after>:/,/^$/p' |
        sed '1d; s/^ *[0-9a-f]*:[ \t]*//; s/ *#.*//; s/[0-9a-fx]*(%rip)/(%rip)/
            s/[0-9a-f]* <.*>//; /^$/d; /nop/d; /^xchg  *%ax,%ax/d'
}

# same_after COMPILER FLAGS...
same_after() {
    local work=$units/after.$BASHPID form
    mkdir -p "$work" && write_functions_after >"$work/without.c" &&
        cat <(sed '/_IMPLEMENTATION$/d' "$src/all.c") "$work/without.c" >"$work/with.c" || return 1
    for form in with without; do
        "$@" -I"$headers" -c "$work/$form.c" -o "$work/$form.o" || return 1
        instructions_after "$work/$form.o" >"$work/$form.s"
    done
    [ "$(wc -l <"$work/without.s")" -gt 8 ] && diff "$work/without.s" "$work/with.s"
}

part_after() {
    local compiler math
    for math in -O2 '-O2 -ffast-math' '-O2 -ffp-contract=off' '-O2 -ffast-math -ffp-contract=off' \
        '-O2 -ffinite-math-only'; do
        for compiler in "gcc -std=c99" "g++ -x c++ -std=c++17" "clang -std=c99" \
            "clang++ -x c++ -std=c++17" "x86_64-w64-mingw32-gcc -std=c99"; do
            command -v "${compiler%% *}" >/dev/null ||
                { unit skip "after the headers: no ${compiler%% *}"; continue; }
            # shellcheck disable=SC2086
            unit check "after the headers: $compiler $math -mfma" same_after $compiler $math -mfma
        done
    done
    command -v "$clang" >/dev/null || { unit skip "after the headers: no clang"; return; }
    for math in precise fast strict; do
        unit check "after the headers: clang-cl /fp:$math" same_after \
            "$clang" --driver-mode=cl --target=x86_64-pc-windows-msvc /nologo -Xclang -isystem \
            -Xclang tests/quality/compilers/msvc /O2 /arch:AVX2 "/fp:$math"
    done
}

# ---- can it fail? --------------------------------------------------------------------------------

# mistake PART FILE WHAT SED-SCRIPT REPORT: in a copy of the headers
mistake() {
    local copy=$units/copy.$BASHPID
    mkdir "$copy" && cp -r ./*.h more "$copy/"
    sed -i "$4" "$copy/$2.h"
    if cmp -s "$2.h" "$copy/$2.h"; then
        failed=$((failed + 1)); echo "FAILED   compilers: not planted: $3"; return
    fi
    if ! HEADERS=$copy ONLY=$1 JOBS=1 ZIG_TARGETS=x86_64-linux-musl tests/quality/compilers/run.sh \
        >"$copy/said" 2>&1 &&
        grep -q "^FAILED   compilers: $5" "$copy/said"
    then passed=$((passed + 1)); echo "ok       compilers: mistake found: $3"
    else failed=$((failed + 1)); echo "FAILED   compilers: mistake not found: $3"
    tail -n 3 "$copy/said"; fi
}

self_check() {
    if command -v "$clang" >/dev/null; then
        unit mistake msvc lbvh 'an attribute of gcc' \
            's/^#define LBVH_FN_HOT static inline$/& __attribute__((hot))/' \
            'MSVC, .* in place of cl'
        unit mistake msvc ugrid 'a builtin of gcc' \
            's/^#define UGRID_I_PREFETCH(address) ((void).*/#define UGRID_I_PREFETCH(a) __builtin_prefetch(a, 1)/' \
            'MSVC, .* in place of cl'
        unit mistake msvc more/nlist_boxes 'restrict' \
            's/^#define NLIST_I_RESTRICT __restrict$/#define NLIST_I_RESTRICT restrict/' 'MSVC, c11'
        unit mistake msvc nbody 'vectors divided by /' \
            's/_mm_div_ps(_mm_set1_ps(1), four)/(_mm_set1_ps(1) \/ four)/' \
            'MSVC, c11: clang'
        unit mistake msvc nbody 'a constant of POSIX' '$a\
static inline double nbody_i_pi(void) { return M_PI; }' 'MSVC, c11: clang'
        unit mistake msvc ugrid 'long for 64 bits' 's/^#define UGRID_VERSION_MAJOR.*/&\
static inline int64_t *ugrid_i_as_long(long *x) { return x; }/' 'MSVC, c11: clang'
        unit mistake cl ugrid 'a variable not used' \
            's/^    ugrid_real const limit = (ugrid_real)536870912;/&\
    int32_t unused;/' 'clang-cl /W4'
        unit mistake after nlist 'options that stay' 's/^#pragma float_control(pop)$//' \
            'after the headers: clang.*-ffast-math'
    else skip "self-check: no clang"; fi
    unit mistake after nlist 'options of gcc that stay' 's/^#pragma GCC pop_options$//' \
        'after the headers: gcc.*-ffast-math'
    if fetch_zig; then unit mistake zig ugrid 'another output' 's/walk.id, i)/walk.id, i + 1)/' \
        'x86_64-linux-musl: the example of ugrid.h prints'
    else skip "self-check: no ziglang"; fi
}

case ${1:-} in
'') write_sources; for part in ${ONLY:-zig msvc cl after}; do "part_$part"; done ;;
--self-check) self_check ;;
*) sed -n '2,21s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
all_units
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
