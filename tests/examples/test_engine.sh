#!/bin/bash
# Tests examples/engine: lbvh.h as the spatial index of Chipmunk2D finds the pairs of Chipmunk's own
# indices in every step.
#
#   tests/examples/test_engine.sh          CC (cc); skipped where chipmunk is missing (Debian:
#                                          libchipmunk-dev)
#
# A planted mistake, an adapter that does not move what leaves its stored box, must be found.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
compiler=${CC:-cc}
passed=0 failed=0

if ! echo '#include <chipmunk/chipmunk_private.h>' | $compiler -E - >/dev/null 2>&1; then
    echo "skipped  Chipmunk2D is not installed (libchipmunk-dev)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

check() {                       # check NAME COMMAND...
    name=$1; shift
    if "$@" >"$work/log" 2>&1; then passed=$((passed + 1)); echo "ok       $name"
    else failed=$((failed + 1)); echo "FAILED   $name"; sed 's/^/    | /' "$work/log" | tail -n 20
    fi
}

# build FOLDER PROGRAM: strict about our warnings; Chipmunk's headers are the system's
build() {
    $compiler -std=c99 -O2 -Wall -Wextra -Werror -I. "$1/chipmunk_scenes.c" -o "$2" -lchipmunk -lm
}
same() { "$work/$1" --steps 3 --warm "$3" --scene "$2"; }
differ() { ! same "$@"; }

check "it compiles without a warning" build examples/engine "$work/scenes"
for scene in 0 1 3 4 6; do
    check "scene $scene: the pairs of BBTree in every step" same scenes $scene 20
done
check "scene 5: statics replaced" same scenes 5 2
mkdir "$work/planted"
cp examples/engine/* "$work/planted"
sed -i 's/(void)lbvh_world_move(/(void)lbvh_world_stay(/; s/entry->id, box, way);/entry->id, box);/' "$work/planted/chipmunk_lbvh.h"
check "the planted adapter compiles" $compiler -std=c99 -O2 -I. "$work/planted/chipmunk_scenes.c" \
    -o "$work/bad" -lchipmunk -lm
check "and is found" differ bad 1 20
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
