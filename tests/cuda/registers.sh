#!/bin/bash
# Kernels keep their arrays in registers: an index that the compiler does not know moves an array to
# local memory, which makes a grid build up to 2.3 times as slow. PTX names what is there. (N-body
# kernels run over orders known at run time and keep their coefficients in local memory.)
#
#   tests/cuda/registers.sh FILE.ptx     of all headers and parts (tests/quality/consumers keeps it)
#
# The last line is "N passed, M failed". SPDX-License-Identifier: MIT OR Unlicense
set -u
passed=0 failed=0

# Kernels that may use local memory: a few threads each, a stack, or the children of a wide node.
allowed='ugrid_i_extent_kernel
lbvh_i_closest_points_kernel
lbvh_i_draft_kernel
lbvh_i_draft_rest_kernel
lbvh_i_element_boxes_kernel
lbvh_i_nearest_kernel
lbvh_i_nearest_rows_kernel
lbvh_i_rays_kernel
lbvh_i_wide_nearest_kernel
lbvh_i_wide_nearest_rows_kernel
lbvh_i_wide_overlaps_kernel
nlist_i_cut_kernel
nlist_i_extras_kernel
nlist_i_frames_kernel
nlist_i_overhang_kernel
nlist_i_reference_kernel
nlist_i_write_events_kernel'

# in_local_memory FILE: names of kernels, one a line. (Lists from a tree or a box of any shape keep
# what they walk there.)
in_local_memory() {
    awk '/\.entry/ { name = $0 } /(ld|st)\.local/ { print name }' "$1" |
        grep -v 'nlist_i_lbvh_source\|nlist_i_box_source' |
        grep -oE '(ugrid|lbvh|nlist)_i_[a-z_]+_kernel' | sort -u
}

for header in ugrid lbvh nlist; do
    found=$(in_local_memory "$1" | grep "^$header" | grep -vxF "$allowed")
    if [ ! "$found" ] && grep -q "\.entry.*${header}_i_" "$1"; then
        passed=$((passed + 1)); echo "ok       $header.h: kernels keep their arrays in registers"
    else
        failed=$((failed + 1)); echo "FAILED   $header.h: kernels with arrays in local memory"
        echo "$found" | sed 's/^/    | /'
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
