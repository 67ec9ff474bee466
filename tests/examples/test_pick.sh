#!/bin/bash
# Tests examples/pick as its user sees it: meshes in, a picture and figures out, exit statuses.
#
#   tests/examples/test_pick.sh [PROGRAM]      default: build/pick
#
# Expected numbers come from the perspective of a cube that is seen from its front, worked out
# below, and from --brute-force, which casts the same rays without the tree. A cube with a hole
# shows that these checks can fail.
. "$(dirname "$0")/examples.sh" pick "${1:-}"

pick() { run "$@"; }
seen() {
    echo "exit status $status; $(grep -v '^row' "$work/err.txt" |
        head -c 300) $(tail -n 5 "$work/out.txt" | head -c 600)"
}

# ---- a cube from -1 to 1, in all kinds of files -------------------------------------------------

#         8-------7
#        /|      /|    z
#       5-------6 |    | y     The front, y = -1, is 1 2 6 5: triangles 4 and 5, counted from 0.
#       | 4-----|-3    |/
#       1-------2      +--x
corners='-1 -1 -1  1 -1 -1  1 1 -1  -1 1 -1  -1 -1 1  1 -1 1  1 1 1  -1 1 1'
quads() { printf '%s\n' '1 4 3 2' '5 6 7 8' '1 2 6 5' '2 3 7 6' '3 4 8 7' '4 1 5 8'; }

# Two triangles for each quad: "a b c" per line.
triangles() { quads | awk '{ print $1, $2, $3; print $1, $3, $4 }'; }
vertex_lines() {
    echo "$corners" | awk '{ for (k = 1; k < NF; k += 3) print "v", $k, $(k + 1), $(k + 2) }'
}
# from faces on stdin
obj() { vertex_lines; sed 's/^/f /'; }
places() {
    awk -v c="$corners" '{ split(c, x); for (k = 1; k <= 3; k++) print x[3 * $k - 2], x[3 * $k - 1], x[3 * $k] }'
}

ascii_stl() {
    echo 'solid cube'
    places | awk 'NR % 3 == 1 { print "facet normal 0 0 0"; print "outer loop" } { print "vertex",
        $0 }
                  NR % 3 == 0 { print "endloop"; print "endfacet" }'
    echo 'endsolid cube'
}

# 80 bytes of header, the number of triangles, and for each 12 floats (1 is 00 00 80 3f, -1 ends in
# bf) and two bytes.
binary_stl() {  # binary_stl HEADER
    printf '%-80s' "$1"
    places | awk 'BEGIN { float[1] = "\\000\\000\\200\\077"; float[-1] = "\\000\\000\\200\\277";
        nul = "\\000\\000\\000\\000" }
                  NR % 3 == 1 { all = all nul nul nul }
                  { all = all float[$1] float[$2] float[$3] }
                  NR % 3 == 0 { all = all "\\000\\000" }
                  END { printf "\\%03o\\000\\000\\000%s", NR / 3, all }' >"$work/escapes"
    # shellcheck disable=SC2059
    printf "$(cat "$work/escapes")"
}

make_cubes() {
    triangles | obj >"$work/cube.obj"
    triangles | ascii_stl >"$work/ascii.stl"
    triangles | binary_stl 'a binary file' >"$work/binary.stl"
    triangles | binary_stl 'solid, and yet a binary file' >"$work/solid.stl"
    quads | obj >"$work/quads.obj"
    triangles | sed 5d | obj >"$work/hole.obj"
    triangles | tac | obj >"$work/backwards.obj"
    report $(($(wc -c <"$work/binary.stl") != 84 + 50 * 12)) \
        "a binary STL file has 84 + 50 * 12 bytes"
}

# ---- the cube from its front --------------------------------------------------------------------

# The camera sees 35 degrees from top to bottom, and stands where a ball around the cube, of radius
# sqrt(3), fits with a fiftieth to spare. front: distance to the face; seen: half of what is seen
# there; count: pixels whose middle is on the face, in a row of 101.
front=$(awk 'BEGIN { v = 17.5 * 3.14159265358979 / 180; printf "%.9f", 1.02 * sqrt(3) / sin(v) - 1 }')
half=$(awk -v front="$front" \
    'BEGIN { v = 17.5 * 3.14159265358979 / 180; printf "%.9f", front * sin(v) / cos(v) }')
count=$(awk -v half="$half" \
    'BEGIN { for (k = 0; k < 101; k++) { x = ((2 * k + 1) / 101 - 1) * half; n += x * x < 1 } print n }')
look='--turn 0 --tilt 0 --width 101 --height 101 --samples 1 --out small.png'

from_the_front() {
    local file first=""
    for file in cube.obj ascii.stl binary.stl solid.stl quads.obj; do
        # shellcheck disable=SC2086
        pick $file $look
        report $status "$file can be read" "$(seen)"
        grep -q ": 12 triangles, 8 vertices" "$work/out.txt"
        report $? "$file: corners are joined" "$(seen)"
        [ "$(figure hits)" = $((count * count)) ]
        report $? "$file: rays that hit the front" "expected $count squared; $(seen)"
        [ "$(figure rays)" = $((101 * 101)) ]; report $? "$file: a ray for each pixel" "$(seen)"
        expect_near "$file: the nearest point is in the middle of the front" "$(figure closest)" \
            "$front" 1e-6
        [ $file = quads.obj ] && continue
        first=${first:-$(figure checksum)}
        [ "$(figure checksum)" = "$first" ]; report $? "$file: the same triangles are hit" "$(seen)"
    done
    # shellcheck disable=SC2086
    pick cube.obj $look --up y
    [ "$(figure hits)" = $((count * count)) ] && [ "$(figure checksum)" != "$first" ]
    report $? "--up y shows another side" "$(seen)"
    # shellcheck disable=SC2086
    pick cube.obj $look --zoom 0.5
    near "$(figure hits)" $((count * count / 4)) 0.1
    report $? "--zoom 0.5: a quarter of the hits" "$(seen)"
}

# The sun stands in the direction (-0.55, -0.35, 0.9). The front faces it, and nothing is in its
# way; of the floor, z = -1, those points are in the shadow from which the way to the sun leads
# through the cube: is within -1 .. 1 along x, y and z at once.
shadow_of_the_cube() {
    local wanted turn
    wanted=$(awk -v front="$front" -v half="$half" '
        function enter(at, slope,    t) { t = (-1 - at) / slope;
            if (slope < 0) t = (1 - at) / slope; if (t > from) from = t }
        function leave(at, slope,    t) { t = (1 - at) / slope;
            if (slope < 0) t = (-1 - at) / slope; if (t < to) to = t }
        BEGIN {
            for (i = 0; i < 101; i++)
                for (j = 0; j < 101; j++) {
                    x = ((2 * i + 1) / 101 - 1) * half / front;
                    z = (1 - (2 * j + 1) / 101) * half / front
                    if (z >= 0 || (x * x < 1 / front ^ 2 && z * z < 1 / front ^ 2)) continue
                    # where the floor is met; the camera is at y = -front - 1
                    px = -x / z; py = -1 / z - front - 1
                    from = 0; to = 1e9
                    enter(px, -0.55); enter(py, -0.35); leave(px, -0.55); leave(py, -0.35);
                    leave(-1, 0.9)
                    shadows += from < to
                }
            print shadows + 0
        }')
    # shellcheck disable=SC2086
    pick cube.obj $look
    [ "$wanted" -gt 100 ] && [ "$(figure shadows)" = "$wanted" ]
    report $? "the shadow on the floor, and none on the front" "expected $wanted; $(seen)"
    # From below the floor is not seen, and a cube throws no shadow on itself: rounding must not,
    # either.
    for turn in 20 30 40; do
        pick cube.obj --turn $turn --tilt -20 --width 200 --height 200 --out small.png
        [ "$(figure shadows)" = 0 ] &&
            [ "$(awk '/^shadow/ { print $2 }' "$work/out.txt")" -gt 10000 ]
        report $? "no shadow of a cube on itself, turned by $turn" "$(seen)"
    done
}

# expect_pick X Y TRIANGLE FEATURE: and the point is where the perspective says.
expect_pick() {
    local x z
    x=$(awk -v p="$1" -v half="$half" 'BEGIN { print ((2 * p + 1) / 101 - 1) * half }')
    z=$(awk -v p="$2" -v half="$half" 'BEGIN { print (1 - (2 * p + 1) / 101) * half }')
    # shellcheck disable=SC2086
    pick cube.obj $look --pick "$1" "$2"
    grep -q "^pick  *pixel $1 $2: triangle $3 at distance" "$work/out.txt"
    report $? "pixel $1 $2: triangle $3" "$(seen)"
    grep -q "feature: $4 of" "$work/out.txt"; report $? "pixel $1 $2: $4" "$(seen)"
    awk -v x="$x" -v z="$z" \
        '$1 == "point" { exit !(($2 - x) ^ 2 + ($3 + 1) ^ 2 + ($4 - z) ^ 2 < 1e-9) }' \
        "$work/out.txt"
    report $? "pixel $1 $2: the point is $x -1 $z" "$(seen)"
}

picking() {
    # 1 2 6 lies right of and below the diagonal, 1 6 5 on the other side
    expect_pick 70 60 4 'face'
    expect_pick 30 40 5 'face'
    expect_pick 50 50 4 'edge ca'       # on the diagonal: both are hit, and the first counts
    expect_pick 82 60 4 'edge bc'
    expect_pick 60 82 4 'edge ab'
    expect_pick 18 40 5 'edge ca'
    expect_pick 40 18 5 'edge bc'
    expect_pick 82 82 4 'vertex b'
    expect_pick 18 18 5 'vertex c'
    # shellcheck disable=SC2086
    pick cube.obj $look --pick 2 50
    grep -q 'pixel 2 50: nothing there' "$work/out.txt"
    report $? "beside the cube there is nothing" "$(seen)"
    pick cube.obj --pick 480 330 --out a.png
    visited=$(sed -n 's/^visited  *//p' "$work/out.txt" | tr -cd '0-9 ')
    read -r boxes all tests triangles <<<"$visited"
    [ "$all $triangles" = '23 12' ] && [ "$boxes" -ge 3 ] && [ "$boxes" -le 23 ] &&
        [ "$tests" -ge 1 ] && [ "$tests" -le 12 ]
    report $? "what the ray visits" "$visited"
    pick cube.obj --out b.png
    ! cmp -s "$work/a.png" "$work/b.png"; report $? "the picture shows what was picked"
}

# ---- the tree against all triangles -------------------------------------------------------------

against_brute_force() {     # against_brute_force ARGUMENTS...
    local with
    pick "$@" --out small.png
    with=$(tail -n 1 "$work/out.txt")
    [ "$(figure hits)" -gt 100 ] && [ "$(figure shadows)" -gt 0 ]
    report $? "$*: there is something to compare" "$(seen)"
    pick "$@" --out brute.png --brute-force
    [ "$with" = "$(tail -n 1 "$work/out.txt")" ]
    report $? "$*: tree and brute force" "$with, and $(tail -n 1 "$work/out.txt")"
    cmp -s "$work/small.png" "$work/brute.png"; report $? "$*: the same picture"
}

same_as_brute_force() {
    local turn tilt
    for turn in 0 30 45 90 -117; do
        for tilt in 0 20 -35 89; do
            [ $tilt -lt 0 ] && continue
            against_brute_force cube.obj --turn $turn --tilt $tilt --width 97 --height 64
        done
    done
    # The rays of the middle column meet an edge, so two triangles at once, and rounding decides
    # which one the walk finds first.
    against_brute_force backwards.obj --turn 45 --tilt 0 --width 101 --height 101 --samples 1
    against_brute_force --triangles 1500 --width 90 --height 60
    against_brute_force --triangles 800 --width 60 --height 80 --turn 200 --tilt 60 --samples 1
    against_brute_force --triangles 800 --zoom 3 --width 60 --height 60
}

# What the checks above compare must change when a triangle is missing.
checks_can_fail() {
    local whole
    # shellcheck disable=SC2086
    {
        pick cube.obj $look; whole=$(figure checksum)
        pick hole.obj $look --pick 70 60
        grep -q ': 11 triangles' "$work/out.txt"; report $? "a cube with a hole" "$(seen)"
        [ "$(figure checksum)" != "$whole" ]; report $? "a hole changes the checksum" "$(seen)"
        ! grep -q 'triangle 4 at distance 4\.9' "$work/out.txt"
        report $? "a hole changes what is picked" "$(seen)"
        pick cube.obj $look --turn 1
        ! near "$(figure closest)" "$front" 1e-6 && [ "$(figure hits)" != $((count * count)) ]
        report $? "a degree changes the figures" "$(seen)"
    }
}

# ---- files that are no meshes -------------------------------------------------------------------

refused() {     # refused NAME FILE: exit status 1, no figures, and one line that names the file
    pick "$2" --width 20 --height 20
    [ $status -eq 1 ] && [ ! -s "$work/out.txt" ] && [ "$(wc -l <"$work/err.txt")" -eq 1 ] &&
        grep -q "^pick: .*$2" "$work/err.txt"
    report $? "refused: $1" "$(seen)"
}

bad_files() {
    refused 'no such file' missing.stl
    mkdir -p "$work/folder.stl"; refused 'a folder' folder.stl
    : >"$work/empty.stl"; refused 'an empty STL file' empty.stl
    : >"$work/empty.obj"; refused 'an empty OBJ file' empty.obj
    echo 'these are only words' >"$work/words.stl"; refused 'words in an STL file' words.stl
    echo 'these are only words' >"$work/words.obj"; refused 'words in an OBJ file' words.obj
    head -c 300 "$work/binary.stl" >"$work/cut.stl"
    refused 'a binary STL file that was cut' cut.stl
    printf 'solid nothing\nendsolid nothing\n' >"$work/nothing.stl"
    refused 'an STL file without triangles' nothing.stl
    vertex_lines >"$work/points.obj"; refused 'an OBJ file without faces' points.obj
    { vertex_lines; echo 'l 1 2'; } >"$work/lines.obj"
    refused 'an OBJ file with lines only' lines.obj
    { vertex_lines; echo 'f 1 2 99'; } >"$work/index.obj"
    refused 'an OBJ file with a vertex that is not there' index.obj
    { vertex_lines; echo 'v nan 0 0'; echo 'f 1 2 3'; echo 'f 1 2 9'; } >"$work/nan.obj"
    refused 'a NaN' nan.obj
    { vertex_lines; echo 'v inf 0 0'; echo 'f 1 9 3'; } >"$work/inf.obj"
    refused 'an infinite number' inf.obj
    printf 'v 0 0 0\nf 1 1 1\n' >"$work/dot.obj"
    pick dot.obj --width 20 --height 20 --out small.png
    [ $status -le 1 ]; report $? "a triangle that is a point ends in an orderly way" "$(seen)"
}

# ---- command line -------------------------------------------------------------------------------

command_line() {
    local line
    pick --help
    report $status "--help" "$(seen)"
    grep -q -- '--samples N' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        pick $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-6 "$work/err.txt")" = 'pick: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
-n 5
cube.obj cube.obj
--width
--width 0
--width 1.5
--width 9000
--width 20x
--height -1
--samples 9
--turn north
--turn nan
--tilt 90
--zoom 0
--up
--up x
--pick
--pick 3
--pick 3 y
--pick -1 3
--pick 960 3
--pick 3 720
--triangles 5
--out
LINES
    pick --triangles 200 --width 9 --height 9 --out /dev/null/here/a.png
    [ $status -eq 1 ] && grep -q /dev/null "$work/err.txt"
    report $? "refused: a folder that cannot be made" "$(seen)"
    pick --triangles 200 --width 9 --height 9 --out folder.stl
    [ $status -eq 1 ] && grep -q 'folder\.stl' "$work/err.txt"
    report $? "refused: a picture that is a folder" "$(seen)"
    [ -e /dev/full ] || return
    pick --triangles 200 --width 200 --height 200 --out /dev/full
    report $((status != 1)) "refused: the disk is full" "$(seen)"
}

# ---- pictures -----------------------------------------------------------------------------------

pictures() {
    make_png_reader || return
    pick --triangles 20000 --width 320 --height 200 --out a/b/knot.png
    report $status "the knot" "$(seen)"
    is_picture a/b/knot.png 320 200 1000
    grep -q 'built in [0-9.]* ms, .* depth [0-9]* .* SAH cost' "$work/out.txt"
    report $? "figures of the tree" "$(seen)"
    [ "$(grep -c 'Mrays/s' "$work/out.txt")" -eq 2 ]; report $? "figures of the rays" "$(seen)"
    near "$(figure triangles)" 20000 0.02
    report $? "about as many triangles as asked for" "$(seen)"
    [ "$(wc -l <"$work/err.txt")" -le 4 ] && grep -q 'row 200 of 200' "$work/err.txt" &&
        ! grep -q "$(printf '\r')" "$work/err.txt"
    report $? "no terminal: a few lines, no moving bar" "$(seen)"
    cp "$work/out.txt" "$work/first.txt"
    mkdir -p "$work/build" && : >"$work/build/pick" # the program, where make puts it
    pick --triangles 200 --width 9 --height 9
    [ $status -eq 0 ] && [ -s "$work/build/pick.png" ]
    report $? "the picture goes to build/pick.png by default" "$(seen)"
    pick --triangles 20000 --width 320 --height 200 --out again.png
    cmp -s "$work/a/b/knot.png" "$work/again.png"; report $? "the same run, the same picture"
    [ "$(tail -n 1 "$work/first.txt")" = "$(tail -n 1 "$work/out.txt")" ]
    report $? "the same run, the same figures" "$(seen)"
}

# ---- costs --------------------------------------------------------------------------------------

# Every builder, and both trees of it; the program itself compares their hits.
costs() {
    pick --cost --triangles 3000 --width 160 --height 120 --out cost.png
    report $status "--cost" "$(seen)"
    [ "$(grep -c 'built in [0-9.]* ms, a frame in [0-9.]* ms, [0-9.]* boxes a ray' \
        "$work/out.txt")" -ge 4 ]
    report $? "--cost: two trees of each builder" "$(seen)"
    [ "$(grep '^MERGE' "$work/out.txt" | grep -o '[0-9.]* boxes')" = \
        "$(grep '^SPLIT' "$work/out.txt" | grep -o '[0-9.]* boxes')" ]
    report $? "--cost: MERGE and SPLIT make the same tree, which tests the same boxes" "$(seen)"
    make_png_reader || return
    is_picture cost.png 160 +120 100
}

make_cubes; from_the_front; shadow_of_the_cube; picking; same_as_brute_force; checks_can_fail
bad_files; command_line; pictures; costs
sum_up
