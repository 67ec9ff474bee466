# Read by run.sh --self-check. Can the matrix fail? Each entry breaks one rule in a copy of
# toy/toy.h (for what toy.h lacks, of
# nlist.h), and names the row that has to notice, and a word that it has to say. A check that cannot
# fail would be worse than none.

. "$here/../../common/units.sh"

self_check() {
    local jobs_here=$jobs
    quiet=yes
    only=nothing headers_dir=$here/toy
    fresh; matrix toy                   # asks the compilers what they know
    jobs=1                              # each entry is a process of its own

    # The header as it is: every one of the rows used below is ok.
    unit plant "" "$CC c99" "" ""

    unit plant "a warning in the implementation" \
        "$CC c99 -O2: implementation" "Wconversion" \
        "s/int64_t count = 0;/& short lost = (short)1; lost = (short)(lost + array->n); lost += i;/"
    unit plant "a warning in a file that only includes" \
        "$CC c99: included, not used" "unused-variable" \
        "s/return !(a < b)/int unused; &/"
    unit plant "a static that _STATIC leaves unused" \
        "$CC c99 -O0: _STATIC, nothing used" "unused-function" \
        "s/__attribute__((unused)) static/static/"
    unit plant "a function that C++ refuses" \
        "$CXX c++11: implementation" "invalid conversion" \
        "s/memset(pairs, 0/int64_t *again = (void *)pairs; memset(again, 0/"
    unit plant "a reserved name" \
        "clang c99: implementation" "Wreserved-identifier" \
        "s/toy_i_equal_after/_toy_equal_after/"
    unit plant "an implementation without a guard" \
        "$CC c99: implementation included twice" "redefinition" \
        "s/ && !defined(TOY_IMPLEMENTATION_DONE)//"
    unit plant "a wrong answer" \
        "$CC c99 -O3: _REAL=double, _STATIC" "0 of 2 right" \
        "s/j = i + 1; j < array/j = i + 3; j < array/"
    unit plant "a wrong answer for doubles" \
        "$CC c99 -O0: _REAL=double\$" "0 of 2 right" \
        "s/return !(a < b)/return TOY_I_REAL_KIND == 1 \\&\\& !(a < b)/"
    unit plant "doubles that link with floats" \
        "$CC c99: float and double do not link" "must not link" \
        "s/TOY_I_REAL_KIND == 2/0/"
    unit plant "no word about _CUDA without nvcc" \
        "$CC c99: _IMPLEMENTATION with _CUDA" "cuda_runtime|namespace|No such file" \
        "s/^#error.*//"
    unit plant "a CUDA header in the declarations" \
        "$CC c99: _CUDA declares" "cuda_runtime" \
        "s/^struct CUstream_st;/#include <cuda_runtime.h>/"
    unit plant "a macro without prefix" \
        "$CC c99: every macro" "ARRAY_MAX" \
        "s/^#define TOY_VERSION_MAJOR 0/&\\n#define ARRAY_MAX 5/"
    unit plant "a macro without prefix, only in the implementation" \
        "$CC c99: every macro" "MIN" \
        "s/^#define TOY_IMPLEMENTATION_DONE/&\\n#define MIN 1/"
    unit plant "a standard macro taken away" \
        "$CC c99: every macro" "INT8_MAX" \
        "s/^#define TOY_VERSION_MAJOR 0/&\\n#undef INT8_MAX/"
    unit plant "a function without prefix" \
        "$CC c99: every symbol" "count_them" \
        "s/^TOY_API toy_result toy_count_pairs(.*)\$/int count_them(void); int count_them(void) { return 1; }\\n&/"
    unit plant "a static function without prefix" \
        "$CC c99: every symbol" "equal_after" \
        "s/toy_i_equal_after/equal_after/"
    unit plant "a static array without prefix" \
        "$CC c99: every symbol" "table" \
        "s/^static int64_t/static int table[3]; &/"
    unit plant "a type without prefix" \
        "$CC c99: every declared name" "number" \
        "s/^typedef TOY_REAL toy_real;/& typedef int number;/"
    unit plant "an enumerator without prefix" \
        "$CC c99: every declared name" "OTHER" \
        "s/TOY_OK, /TOY_OK, OTHER, /"
    unit plant "something that tcc cannot do" \
        "tcc: two users" "unheard_of" \
        "s/int64_t count = 0;/& __builtin_unheard_of();/"
    unit plant "sizes that 32 bits cannot hold" \
        "$CC -m32 c99: two users" "overflow" \
        "s/int64_t count = 0;/& size_t big = 4294967296u; (void)big;/"
    unit plant "something that Windows lacks" \
        "mingw-w64: two users" "sys/mman.h" \
        "s/#include <string.h>/&\\n#include <sys\\/mman.h>/"
    unit plant "a host warning in the CUDA part" \
        "nvcc c.*17: _CUDA, one .cu" "Wconversion" \
        "s/cudaLaunchConfig_t config/short narrow = on_device->n; (void)narrow; &/"
    unit plant "a device warning in the CUDA part" \
        "nvcc c.*17: _CUDA, one .cu" "unused" \
        "s/if (i >= array.n) return;/int unused; &/"
    unit plant "a kernel without prefix" \
        "nvcc c.*17: _CUDA, one .cu" "^count$" \
        "s/toy_i_count/count/"
    unit plant "a macro of the CUDA part without prefix" \
        "nvcc c.*17: every macro" "WARP" \
        "s/^namespace {/#define WARP 32\\n&/"

    unit plant "a third number of an array of two" \
        "$CC c99 -O2 -O3: users in 2D, stb" "array-bounds" \
        "s/p\[ugrid_i_third(grid)\]/p[2]/" ugrid

    unit plant "a feeder that is not made use of" \
        "$CC c99 -O0: fed by ugrid.h" "implicit declaration|undeclared" \
        "s/ifdef UGRID_H/ifdef NOBODY_H/" nlist
    unit plant "a feeder with another real type, and no word" \
        "$CC c99: not fed with another _REAL" "must not compile|incompatible" \
        "/^#if defined(UGRID_H)/,/^#endif/d" nlist
    unit plant "a function without prefix where there is a feeder" \
        "$CC c99: fed, every symbol" "beside_ugrid" \
        "s/^#ifdef UGRID_H/&\n__attribute__((unused)) static int beside_ugrid(void) { return 1; }/" nlist

    unit plant "a part that does not look at the version" \
        "a part of another version is refused" "must not compile" \
        "/VERSION_PATCH != 100/,/^#endif/d"
    unit plant "a part that may stand alone" \
        "a part without its header is refused" "unknown type name|undeclared|VERSION" \
        "/^#ifndef TOY_H\$/{N;/is a part of/{N;d}}"
    unit plant "a hook that does not say which file is missing" \
        "a part that is missing is refused" "No such file" \
        "/^#if defined(__has_include)/,/^#endif/d"
    unit plant "a hook inside the guard of the header" \
        "parts that come when the header is there already" "toy_most" \
        "s/^#ifdef TOY_WITH_MOST/#if defined(TOY_WITH_MOST) \&\& !defined(TOY_SEEN)\n#define TOY_SEEN/; s/^#endif \/\* TOY_H \*\//&\n#ifndef TOY_WITH_MOST\n#define TOY_SEEN\n#endif/"
    unit plant "a core that calls its part" \
        "toy: $CC c99 -O0: two users" "toy_most" \
        "s/^    memset(pairs, 0/    { toy_real number; (void)toy_most(array, \&number); }\n&/"
    unit plant "a struct that grows by the macro of a part" \
        "users with and without parts" "1 of 2 right" \
        "s/typedef struct toy_array { /&\n#ifdef TOY_WITH_MOST\nint32_t more[8];\n#endif\n/"
    unit plant "a part with a name of its own" \
        "toy.all: $CC c99: every symbol" "most_of_all" \
        "s/^TOY_API toy_result toy_most(.*)\$/int most_of_all(void); int most_of_all(void) { return 1; }\n&/"
    unit plant "a single file with other symbols" \
        "toy single: with most: the same text" "toy_added" \
        "s/^#error \"toy.h: TOY_WITH_MOST needs.*/&/; s/^#if defined(__has_include)\$/#ifdef TOY_IMPLEMENTATION\nint toy_added(void); int toy_added(void) { return __COUNTER__; }\n#endif\n&/; s/^#define TOY_MOST_IMPLEMENTATION_DONE/&\n#if __INCLUDE_LEVEL__ > 1\nint toy_added_too(void); int toy_added_too(void) { return 2; }\n#endif/"

    all_units
    jobs=$jobs_here
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

# The texts that a fault is planted into: of the header, its parts, its kernels.
texts_of() { (cd "$headers_dir" && ls "$1.h" cuda/"$1"*.cu more/"$1"_*.h 2>/dev/null); }

# plant WHAT ROW WORD SED [HEADER]: with SED applied to a copy of the header (toy), a row whose name
# matches ROW must fail, and its log must hold WORD (else it failed for another reason). WHAT empty:
# nothing is broken, the rows are ok.
plant() {
    local what=$1 row=$2 word=$3 change=$4 subject=${5:-toy} original=$root file
    # names of rows are matched as regular expressions, and g++ is meant literally
    only=${row//+/\\+}
    work=$(mktemp -d "$units/XXXXXX")
    headers_dir=$work/headers
    [ "$subject" != toy ] || original=$here/toy
    if [ ! -f "$original/$subject.h" ]; then
        echo "skipped  $what: no $subject.h"; skipped=$((skipped + 1)); return
    fi
    mkdir -p "$headers_dir/cuda"
    [ "$subject" = toy ] || cp "$root"/*.h "$headers_dir"
    cp "$original/$subject.h" "$headers_dir/"
    cp -r "$original/cuda" "$headers_dir/"
    [ ! -d "$original/more" ] || cp -r "$original/more" "$headers_dir/"
    for file in $(texts_of "$subject"); do sed -i "$change" "$headers_dir/$file"; done
    fresh; matrix "$subject"; wait
    verdict
}

verdict() {
    if [ "$what" ] && diff -r "$headers_dir/cuda" "$original/cuda" >/dev/null &&
        { [ ! -d "$original/more" ] || diff -r "$headers_dir/more" "$original/more" >/dev/null; } &&
        cmp -s "$headers_dir/$subject.h" "$original/$subject.h"; then
        miss "nothing was changed by: $what"
    elif [ "$(count_rows ok)$(count_rows FAILED)" = 00 ]; then
        echo "skipped  $what: its compiler is missing"; skipped=$((skipped + 1))
    elif [ "$what" = "" ]; then
        if [ "$(count_rows FAILED)" -eq 0 ]; then passes "the toy header as it is"
        else miss "the toy header as it is does not pass"; fi
    elif [ "$(count_rows FAILED)" -gt 0 ] && grep -qE -- "$word" "$work"/rows/*/log; then
        passes "noticed: $what"
    else
        miss "not noticed: $what (row $row, word $word)"
    fi
}

passes() { echo "ok       $1"; passed=$((passed + 1)); }
miss() {
    echo "FAILED   $1"; failed=$((failed + 1)); sed 's/^/    | /' "$work"/rows/*/log | tail -n 20
}
