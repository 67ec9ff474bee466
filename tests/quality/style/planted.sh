#!/bin/bash
# The self-checks plant faults into copies of the sources, by scripts of sed that quote a line. Does
# each still change its file? (The self-checks say so, too, but run with FULL=1 only.)
#
# A call in a self-check, such as `planted NAME HEADER WHAT SED`, is read here with a function of
# that name that tries the script. Prints what does not apply: nothing, where all is well.
# SPDX-License-Identifier: MIT OR Unlicense
set -u
cd "$(dirname "$0")/../../.." || exit 1
tried=0

# quotes SCRIPT FILE SED
quotes() {
    tried=$((tried + 1))
    ! sed "$3" "$2" 2>&1 | cmp -s - "$2" || echo "$1: nothing in $2 is changed by $3"
}

# The calls of a function, over all their lines, out of a script.
calls() { awk -v name="$2" '$0 ~ "^ *" name " " { here = 1 } here { print } !/\\$/ { here = 0 }' "$1"; }

script=tests/quality/fuzz/run.sh
planted() { quotes $script "$2.h" "$4"; }
eval "$(calls $script 'planted [a-z]* [a-z/_]*')"

script=tests/quality/soak/run.sh
planted() { quotes $script nlist.h "$3"; }
eval "$(calls $script planted)"

script=tests/examples/test_mpi_slabs.sh
planted() { quotes $script "examples/mpi/$2" "$3"; }
eval "$(calls $script planted)"

script=tests/quality/portability/run.sh
plant() {
    case $4 in
    '') ;;
    bits.c) quotes $script tests/quality/portability/bits.c "$5" ;;
    *) quotes $script "$4" "$5" ;;
    esac
}
unit() { "$@"; }
eval "$(calls $script 'unit plant')"

script=tests/quality/vendor/self_check.sh CC=gcc CXX=g++
plant() {
    if [ $# -gt 4 ]; then quotes $script "$5.h" "$4"
    elif [ "$1" ]; then
        local toy; mapfile -t toy < <(find tests/quality/vendor/toy -type f)
        sed -s "$4" "${toy[@]}" | cmp -s - <(cat "${toy[@]}") &&
            echo "$script: nothing in toy/ is changed by $4"
    fi
}
eval "$(calls $script 'unit plant')"

[ $tried -ge 30 ] || echo "only $tried quoted lines were found"
