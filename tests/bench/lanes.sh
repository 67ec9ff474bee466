#!/bin/sh
# How near to -march=native do plain flags come, with the lanes that are chosen at run time, and
# without them? tests/bench/lanes.sh [COMPILER [WORK]]     (cc; about five minutes; x86-64)
#
# WORK: only rows whose names contain it, as "tree".
# Ratios of CPU time to -O3 -march=native. Exit status 1 if bits differ.
set -eu
cd "$(dirname "$0")/../.."
cc=${1:-cc} out=build/bench/lanes ways=
mkdir -p "$out"

# way NAME FLAGS...
way() {
    name=$1; shift
    "$cc" -std=c99 "$@" -DWAY="$name" -I. -c tests/bench/lanes.c -o "$out/$name.o"
    ways="$ways X($name)"
    objects="${objects:-} $out/$name.o"
}
plain='-DUGRID_PLAIN_LANES -DNBODY_PLAIN_LANES -DLBVH_PLAIN_LANES'
# shellcheck disable=SC2086
way o2_plain -O2 $plain
way o2 -O2
# shellcheck disable=SC2086
way o3_plain -O3 $plain
way o3 -O3
way native -O3 -march=native -ffp-contract=off
# shellcheck disable=SC2086
"$cc" -std=c99 -O2 "-DWAYS=$ways" -I. tests/bench/lanes.c $objects -o "$out/lanes" -lm
shift $(($# > 0))
"$out/lanes" "$@"
