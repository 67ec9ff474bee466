# Read by the test scripts: the example in the comment at the top of a header, and what it prints.
# SPDX-License-Identifier: MIT OR Unlicense

# The text between two banners of that file.
manual_example() { sed -n "/^   >>example/,/^   >>options/p" "$1" | sed "1d;\$d;s/^       //"; }

manual_prints() {
    case $1 in
    ugrid) printf '1 is near 0\n0 is near 1\n' ;;
    lbvh)  printf 'box 0 is in the window\nbox 1 is in the window\nbox 2 is ahead, at 8\n' ;;
    nlist) printf '0 and 1 have been together for %d steps\n' 1 2 3 ;;
    nbody) echo 0.28 -0.96 ;;   # cos 5, sin 5
    *)     echo "tests/common/manual.sh does not say yet what the example of $1.h prints" ;;
    esac
}
