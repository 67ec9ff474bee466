# Read by run.sh --self-check. Can the matrix fail? Each entry breaks one rule in a copy of toy/toy.h,
# and names the row that has to notice, and a word that it has to say. A check that cannot fail would be worse than none.

self_check() {
    local real_work=$work
    work=$work/self-check quiet=yes headers=toy headers_dir=$work/toy
    checked=0 missed=0 left_out=0

    # The header as it is: every one of the rows used below is ok.
    plant "" "$CC c99" "" ""

    plant "a warning in the implementation" \
        "$CC c99 -O2: implementation" "Wconversion" \
        "s/int64_t count = 0;/& short lost = (short)1; lost = (short)(lost + array->n); lost += i;/"
    plant "a warning for who only includes" \
        "$CC c99: included, not used" "unused-variable" \
        "s/return !(a < b)/int unused; &/"
    plant "a static that _STATIC leaves unused" \
        "$CC c99 -O3: _STATIC in two files" "unused-function" \
        "s/__attribute__((unused)) static/static/"
    plant "a function that C++ refuses" \
        "$CXX c++11 -O0: implementation" "invalid conversion" \
        "s/memset(pairs, 0/int64_t *again = (void *)pairs; memset(again, 0/"
    plant "a reserved name" \
        "clang c99 -O0: implementation" "Wreserved-identifier" \
        "s/toy_i_equal_after/_toy_equal_after/"
    plant "an implementation without a guard" \
        "$CC c99 -O3: implementation included twice" "redefinition" \
        "s/ && !defined(TOY_IMPLEMENTATION_DONE)//"
    plant "a wrong answer" \
        "$CC c99 -O3: two users" "0 of 2 right" \
        "s/j = i + 1; j < array/j = i + 3; j < array/"
    plant "a wrong answer for doubles" \
        "$CC c99 -O3: _REAL=double\$" "0 of 2 right" \
        "s/return !(a < b)/return TOY_I_REAL_KIND == 1 \\&\\& !(a < b)/"
    plant "doubles that link with floats" \
        "$CC c99: float and double do not link" "must not link" \
        "s/TOY_I_REAL_KIND == 2/0/"
    plant "no word about _CUDA without nvcc" \
        "$CC c99: _IMPLEMENTATION with _CUDA" "cuda_runtime|namespace" \
        "s/^#error.*//"
    plant "a CUDA header in the declarations" \
        "$CC c99: _CUDA declares" "cuda_runtime" \
        "s/^struct CUstream_st;/#include <cuda_runtime.h>/"
    plant "a macro without prefix" \
        "$CC c99: every macro" "ARRAY_MAX" \
        "s/^#define TOY_VERSION_MAJOR 0/&\\n#define ARRAY_MAX 5/"
    plant "a macro without prefix, only in the implementation" \
        "$CC c99: every macro" "MIN" \
        "s/^#define TOY_IMPLEMENTATION_DONE/&\\n#define MIN 1/"
    plant "a standard macro taken away" \
        "$CC c99: every macro" "INT8_MAX" \
        "s/^#define TOY_VERSION_MAJOR 0/&\\n#undef INT8_MAX/"
    plant "a function without prefix" \
        "$CC c99: every symbol" "count_them" \
        "s/^TOY_API toy_result toy_count_pairs(.*)\$/int count_them(void); int count_them(void) { return 1; }\\n&/"
    plant "a static function without prefix" \
        "$CC c99: every symbol" "equal_after" \
        "s/toy_i_equal_after/equal_after/"
    plant "a static array without prefix" \
        "$CC c99: every symbol" "table" \
        "s/^static int64_t/static int table[3]; &/"
    plant "a type without prefix" \
        "$CC c99: every declared name" "number" \
        "s/^typedef TOY_REAL toy_real;/& typedef int number;/"
    plant "an enumerator without prefix" \
        "$CC c99: every declared name" "OTHER" \
        "s/TOY_OK, /TOY_OK, OTHER, /"
    plant "something that tcc cannot do" \
        "tcc: two users" "unheard_of" \
        "s/int64_t count = 0;/& __builtin_unheard_of();/"
    plant "sizes that 32 bits cannot hold" \
        "$CC -m32 c99: two users" "overflow" \
        "s/int64_t count = 0;/& size_t big = 4294967296u; (void)big;/"
    plant "something that Windows lacks" \
        "mingw-w64: two users" "sys/mman.h" \
        "s/#include <string.h>/&\\n#include <sys\\/mman.h>/"
    plant "a host warning in the CUDA part" \
        "nvcc c.*17: _CUDA, one .cu" "Wconversion" \
        "s/cudaLaunchConfig_t config/short narrow = on_device->n; (void)narrow; &/"
    plant "a device warning in the CUDA part" \
        "nvcc c.*17: _CUDA, one .cu" "unused" \
        "s/if (i >= array.n) return;/int unused; &/"
    plant "a kernel without prefix" \
        "nvcc c.*17: every symbol" "^count$" \
        "s/toy_i_count/count/"
    plant "a macro of the CUDA part without prefix" \
        "nvcc c.*17: every macro" "WARP" \
        "s/^namespace {/#define WARP 32\\n&/"

    wait
    rm -rf "$headers_dir"
    echo "$checked passed, $missed failed, $left_out skipped"
    work=$real_work
    [ "$missed" -eq 0 ]
}

# plant WHAT ROW WORD SED: with SED applied to the toy header, a row whose name matches ROW must fail, and
# its log must hold WORD (else it failed for another reason). WHAT empty: nothing is broken, the rows are ok.
plant() {
    local what=$1 row=$2 word=$3 change=$4
    only=${row//+/\\+}    # names of rows are matched as regular expressions, and g++ is meant literally
    rm -rf "$headers_dir"; mkdir -p "$headers_dir/cuda"
    sed "$change" "$here/toy/toy.h" >"$headers_dir/toy.h"
    sed "$change" "$here/toy/cuda/toy.cu" >"$headers_dir/cuda/toy.cu"
    fresh; matrix toy; wait
    verdict
}

verdict() {
    if [ "$what" ] && diff -r "$headers_dir" "$here/toy" >/dev/null; then
        miss "nothing was changed by: $what"
    elif [ "$(count_rows ok)$(count_rows FAILED)" = 00 ]; then
        echo "skipped  $what: its compiler is missing"; left_out=$((left_out + 1))
    elif [ "$what" = "" ]; then
        if [ "$(count_rows FAILED)" -eq 0 ]; then passes "the toy header as it is"
        else miss "the toy header as it is does not pass"; fi
    elif [ "$(count_rows FAILED)" -gt 0 ] && grep -qE -- "$word" "$work"/rows/*/log; then
        passes "noticed: $what"
    else
        miss "not noticed: $what (row $row, word $word)"
    fi
}

passes() { echo "ok       $1"; checked=$((checked + 1)); }
miss()   { echo "FAILED   $1"; missed=$((missed + 1)); sed 's/^/    | /' "$work"/rows/*/log | tail -n 20; }
