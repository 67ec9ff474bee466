#!/bin/bash
# Kernels keep their arrays in registers: an index that the compiler does not know moves an array to
# local memory, which makes a grid build up to 2.3 times as slow. PTX names what is there. (N-body
# kernels run over orders known at run time and keep their coefficients in local memory.)
#
#   NVCC=nvcc tests/cuda/registers.sh
#
# The last line is "N passed, M failed". SPDX-License-Identifier: MIT OR Unlicense
set -u
cd "$(dirname "$0")/../.." || exit 1
work=build/registers
mkdir -p "$work"
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
nlist_i_frames_kernel
nlist_i_reference_kernel
nlist_i_write_events_kernel'

in_local_memory() {     # in_local_memory FILE: names of kernels, one a line
    awk '/\.entry/ { name = $0 } /(ld|st)\.local/ { print name }' "$1" |
        grep -oE '(ugrid|lbvh|nlist)_i_[a-z_]+_kernel' | sort -u
}

for header in ugrid lbvh nlist; do
    ptx=$work/$header.ptx
    if ! "$NVCC" -std=c++17 -ptx -x cu -I. ${STB_CFLAGS:-} -D"${header^^}_CUDA" \
        -D"${header^^}_IMPLEMENTATION" -o "$ptx" $header.h >"$work/$header.log" 2>&1; then
        failed=$((failed + 1)); echo "FAILED   $header.h: PTX"; tail -n 5 "$work/$header.log"
        continue
    fi
    found=$(in_local_memory "$ptx" | grep -vxF "$allowed")
    if [ ! "$found" ] && grep -q '\.entry' "$ptx"; then
        passed=$((passed + 1)); echo "ok       $header.h: kernels keep their arrays in registers"
    else
        failed=$((failed + 1)); echo "FAILED   $header.h: kernels with arrays in local memory"
        echo "$found" | sed 's/^/    | /'
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
