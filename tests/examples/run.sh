#!/bin/bash
# Tests examples, JOBS (2) at a time: tests/examples/run.sh PROGRAM... Each has a
# tests/test_NAME.sh, which gets the program and says "N passed, M failed" itself.
# build/emu/cuda_NAME.asan, kernels on the CPU, does less work.
set -u
here=$(dirname "$0")
. "$here/../common/units.sh"

# (EMU_LEAKS: a program that refuses its input ends at once.)
example() {
    local name=${1##*/}
    echo "$1"
    case $name in
    cuda_*.asan)
        name=${name#cuda_} name=${name%.asan}; export TEST_SMALL=1 EMU_QUIET=1 EMU_LEAKS=0 ;;
    esac
    $same_addresses "$here/test_$name.sh" "$1" 2>&1 | sed "s/^FAILED  */&${1##*/}: /"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
}

for program; do unit example "$program"; done
all_units
[ "$failed" -eq 0 ]
