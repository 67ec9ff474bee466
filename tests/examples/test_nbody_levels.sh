#!/bin/bash
# Tests examples/nbody_levels as its user sees it: counts, what acts on the body, pictures, exit
# statuses.
#
#   tests/examples/test_nbody_levels.sh [PROGRAM]    default: build/nbody_levels
#
# The program writes what acts on one body: cells, and the points that stand for them. Below, in
# awk, that is made a second time from the positions of the bodies alone: which cells those are, the
# virtual particles of each, the force. Files with a mistake in them show that the comparison can
# fail.
. "$(dirname "$0")/examples.sh" nbody_levels "${1:-}"

levels() { run "$@"; }
seen() {
    echo "exit status $status; $(head -c 300 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}
# figure TREE NAME: from the lines "figures of the ... tree"
figure() {
    awk -v tree="$1" -v name="$2" '
        /^figures of/ && index($0, tree) { for (k = 6; k < NF;
            k += 2) if ($k == name) print $(k + 1) }' "$work/out.txt"
}

# ---- what acts, a second time --------------------------------------------------------------------

# Reads one of the text files and the output. -v picture: the one whose lines belong to the file; -v
# kind: "centres" (8 x 8 sub-cells) or "fixed" (4 x 4 Chebyshev points); -v bar: how far the force
# may be off, as a share of the sum of all terms.
# Prints what is wrong, and fails.
cat >"$work/check.awk" <<'AWK'
function wrong(what) { print what; bad = 1; exit 1 }
function same(found, wanted, what) { if (found != wanted)
    wrong(what ": found \"" found "\", expected \"" wanted "\"") }
function near(a, b, t) { return a - b <= t && b - a <= t }
function column(v, low, level,    k) {
    k = int((v - low) / size * 2 ^ level)
    return k >= 2 ^ level ? 2 ^ level - 1 : k
}
# Do two cells of levels l <= m touch, or overlap, on one axis?
function touch(x, l, y, m,    f) { f = 2 ^ (m - l); return y >= x * f - 1 && y <= (x + 1) * f }
function both(k, x, y, m) { return touch(cell_x[k], own[k], x, m) && touch(cell_y[k], own[k], y,
    m) }

# Does the cell act at this level, and is there a reason for it?
function check_place(k,    a, x, y, px, py) {
    a = acts[k]
    x = column(bx[look], low_x, a); y = column(by[look], low_y, a); px = int(x / 2); py = int(y / 2)
    if (how[k] ~ /^near/) {
        if (a != leaf) wrong("cell " k " is near at level " a)
        if (own[k] <= leaf && !both(k, x, y, a)) wrong("cell " k " is near and does not touch")
        if (own[k] > leaf && how[k] == "near sources" && touch(x, a, cell_x[k], own[k]) &&
            touch(y, a, cell_y[k], own[k]))
            wrong("cell " k " touches, and its sources act")
        return
    }
    if (own[k] > a) wrong("cell " k " is far, and smaller")
    if (both(k, x, y, a)) wrong("cell " k " is far, and touches")
    if (own[k] < a) { if (!both(k, px, py, a - 1))
        wrong("cell " k ", a larger one, acts too late") }
    else if (!touch(px, a - 1, int(cell_x[k] / 2), a - 1) || !touch(py, a - 1, int(cell_y[k] / 2),
        a - 1))
        wrong("cell " k " acts at level " a ", and the parents do not touch")
}

function find_cells(    i, l, c, key, found) {
    for (i = 0; i < n; i++) {
        found = 0
        for (l in used) {
            key = l " " column(bx[i], low_x, l) " " column(by[i], low_y, l)
            if (key in at) { c = at[key]; member[c, held[c]++] = i; found++ }
        }
        if (found != 1) wrong("body " i " acts " found " times")
    }
}

# Bodies act themselves: as many points, and the same sums of what tells them apart.
function check_bodies(k,    j, i, p, s, q) {
    same(points[k], held[k] + 0, "points of cell " k)
    for (j = 0; j < held[k]; j++) { i = member[k, j]; s += bx[i] + 3 * by[i] * by[i] }
    for (p = first[k]; p < first[k] + points[k]; p++) { q += qx[p] + 3 * qy[p] * qy[p];
        same(qm[p], 1, "mass of a body") }
    if (!near(s, q, 1e-5 * held[k])) wrong("cell " k ": other bodies")
}

# 8 x 8 sub-cells: mass and centre of mass of each.
function check_centres(k,    j, i, p, side, ox, oy, b, m, mx, my, many) {
    side = size / 2 ^ own[k]; ox = low_x + cell_x[k] * side; oy = low_y + cell_y[k] * side
    for (j = 0; j < held[k]; j++) {
        i = member[k, j]
        b = int((bx[i] - ox) / side * 8) + 8 * int((by[i] - oy) / side * 8)
        if (!(b in m)) many++
        m[b]++; mx[b] += bx[i]; my[b] += by[i]
    }
    same(points[k], many, "virtual particles of cell " k)
    for (p = first[k]; p < first[k] + points[k]; p++) {
        b = int((qx[p] - ox) / side * 8) + 8 * int((qy[p] - oy) / side * 8)
        same(qm[p], m[b], "mass of sub-cell " b " of cell " k)
        if (!near(qx[p], mx[b] / m[b], 1e-5 * side) || !near(qy[p], my[b] / m[b], 1e-5 * side))
            wrong("centre of sub-cell " b " of cell " k)
    }
}

# 4 x 4 Chebyshev points: where they are, and the bodies' weights.
function node(i) { return (1 - cos(3.14159265358979 * (i + 0.5) / 4)) / 2 }
function weight(i, u,    j, w) { w = 1; for (j = 0; j < 4; j++) if (j != i)
    w *= (u - node(j)) / (node(i) - node(j)); return w }
function check_fixed(k,    side, ox, oy, a, b, j, i, p, m) {
    side = size / 2 ^ own[k]; ox = low_x + cell_x[k] * side; oy = low_y + cell_y[k] * side
    same(points[k], 16, "virtual particles of cell " k)
    for (b = 0; b < 4; b++) for (a = 0; a < 4; a++) {
        p = first[k] + a + 4 * b
        if (!near(qx[p], ox + side * node(a), 1e-5 * side) || !near(qy[p], oy + side * node(b),
            1e-5 * side))
            wrong("place of a point of cell " k)
        m = 0
        for (j = 0; j < held[k]; j++) {
            i = member[k, j]
            m += weight(a, (bx[i] - ox) / side) * weight(b, (by[i] - oy) / side)
        }
        if (!near(qm[p], m, 1e-4 * held[k]))
            wrong("mass " qm[p] " of a point of cell " k ", expected " m)
    }
}

function pull(dx, dy, m,    d) {
    d = sqrt(dx * dx + dy * dy)
    if (d == 0) return
    fx += m * dx / d ^ 3; fy += m * dy / d ^ 3; terms += (m < 0 ? -m : m) / d ^ 2
}

# The force of all bodies, of all points, and those that were printed.
function check_force(    i, p, x, y, all) {
    fx = fy = terms = 0
    for (i = 0; i < n; i++) pull(bx[i] - bx[look], by[i] - by[look], 1)
    x = fx; y = fy; all = terms
    if (!near(direct_x, x, 1e-6 * all) || !near(direct_y, y, 1e-6 * all))
        wrong("direct sum " direct_x " " direct_y ", expected " x " " y)
    fx = fy = 0
    for (p = 0; p < count; p++) pull(qx[p] - bx[look], qy[p] - by[look], qm[p])
    if (kind == "centres" && (!near(drawn_x, fx, 1e-6 * all) || !near(drawn_y, fy, 1e-6 * all)))
        wrong("force of the points " drawn_x " " drawn_y ", expected " fx " " fy)
    if (!near(fx, x, bar * all) || !near(fy, y, bar * all))
        wrong("the points pull with " fx " " fy ", the bodies with " x " " y)
    if (!near(drawn_x, x, bar * all) || !near(drawn_y, y, bar * all))
        wrong("printed " drawn_x " " drawn_y ", the bodies pull with " x " " y)
}

# The printed lines: cells, bodies, points and mass of each level and kind.
function check_lines(    k, key, l) {
    for (k = 0; k < cells; k++) {
        key = (how[k] ~ /^near/ ? "near" : "level " acts[k]) \
            " " (how[k] ~ /sources$/ ? "virtual" : "bodies")
        sum_cells[key]++; sum_bodies[key] += held[k]; sum_points[key] += points[k]
    }
    for (key in sum_cells) same(line[key], sum_cells[key] " " sum_bodies[key] " " sum_points[key],
        key)
    for (key in line) if (!(key in sum_cells) && line[key] != "0 0 0")
        wrong("a line too many: " key)
    same(line_all, cells " " n " " count, "the line of all")
}

BEGIN { n = cells = count = 0 }
FNR == NR && $1 == "square" { low_x = $2; low_y = $3; size = $4; next }
FNR == NR && $1 == "look"   { look = $2; leaf = $4; next }
FNR == NR && $1 == "body"   { bx[n] = $2; by[n] = $3; n++; next }
FNR == NR && $1 == "cell"   {
    k = cells++
    acts[k] = $2; own[k] = $3; cell_x[k] = $4; cell_y[k] = $5; how[k] = $6 " " $7; first[k] = count;
        points[k] = 0
    at[$3 " " $4 " " $5] = k; used[$3] = 1
    next
}
FNR == NR && $1 == "point"  { qx[count] = $2; qy[count] = $3; qm[count] = $4; count++;
    points[cells - 1]++; next }
/^[0-9]_/                   { shown = $1 == picture ":" }
!shown                      { next }
/ act through /             {
    key = $1 == "level" ? "level " $2 : $1
    for (k = 1; $k != "cells"; k++);
    what = $(k - 1) " " $(k + 2) " " $(k + 6)
    if (key == "all") line_all = what
    else line[key " " ($(k + 7) == "virtual" ? "virtual" : "bodies")] = what
}
/from what is drawn:/       { drawn_x = $(NF - 1); drawn_y = $NF }
/one by one, in double:/    { for (k = 1; $k != "double:"; k++); direct_x = $(k + 1);
    direct_y = $(k + 2) }

END {
    if (bad) exit 1
    if (n == 0 || cells == 0 || line_all == "") wrong("nothing to check")
    find_cells()
    for (k = 0; k < cells; k++) {
        check_place(k)
        if (how[k] ~ /bodies$/) check_bodies(k)
        else if (kind == "centres") check_centres(k)
        else check_fixed(k)
    }
    check_lines()
    check_force()
}
AWK

# check FOLDER FILE PICTURE centres|fixed BAR
check() {
    awk -v picture="$3" -v kind="$4" -v bar="$5" -f "$work/check.awk" "$work/$1/$2.txt" \
        "$work/out.txt"
}

run_agrees() {  # run_agrees ARGUMENTS...
    local what
    levels --out run "$@"
    report $status "levels $*" "$(seen)"
    what=$(check run source 4_on_a_body centres 4e-4)
    report $? "levels $*: virtual particles on a body" "$what"
    what=$(check run adaptive 8_adaptive_on_nodes fixed 4e-3)
    report $? "levels $*: the adaptive tree" "$what"
}

who_acts() {
    run_agrees
    cp -r "$work/run" "$work/first"; cp "$work/out.txt" "$work/first.txt"
    run_agrees -n 1200 --seed 7 --levels 6 --body 3
    run_agrees -n 60 --levels 2 --seed 2
    run_agrees -n 1
    [ "$(figure adaptive levels) $(figure source points) $(figure source error)" = "1 1 0.000e+00" ]
    report $? "one body feels nothing" "$(seen)"
    levels --out run -n 500 --levels 3
    [ "$(figure source points)" = 500 ]; report $? "3 levels: no virtual particles" "$(seen)"
    awk -v e="$(figure source error)" 'BEGIN { exit !(e < 1e-14) }';
        report $? "3 levels: the direct sum" "$(figure source error)"
    awk -v e="$(figure source node_error)" 'BEGIN { exit !(e > 1e-7 && e < 5e-3) }'
    report $? "3 levels: nodes" "$(figure source node_error)"
}

# ---- mistakes -----------------------------------------------------------------------------------

# noticed NAME FILE PICTURE KIND BAR SED: the first run's file, changed, has to be found wrong.
noticed() {
    local what
    mkdir -p "$work/bad"
    sed "$6" "$work/first/$2.txt" >"$work/bad/$2.txt"
    cp "$work/first.txt" "$work/out.txt"
    if cmp -s "$work/bad/$2.txt" "$work/first/$2.txt"; then
        report 1 "mistake: $1" "nothing was changed"; return
    fi
    what=$(check bad "$2" "$3" "$4" "$5"); [ $? -ne 0 ] && [ "$what" ]
    report $? "mistake not noticed: $1"
}

the_check_can_fail() {
    local virtual=$(grep -n -m 1 '^cell.*far sources' "$work/first/source.txt" | cut -d: -f1)
    local fixed=$(grep -n -m 1 '^cell.*far sources' "$work/first/adaptive.txt" | cut -d: -f1)
    local cell="$(sed -n "${fixed}p" "$work/first/adaptive.txt")"
    noticed 'a virtual particle less' source 4_on_a_body centres 4e-4 "$((virtual + 1))d"
    noticed 'another mass' source 4_on_a_body centres 4e-4 "$((virtual + 1))s/ [0-9.]*\$/ 9/"
    noticed 'another place' source 4_on_a_body centres 4e-4 \
        "$((virtual + 1)),$((virtual + 2))s/^point 0.0/point 0.1/"
    noticed 'near bodies called far' source 4_on_a_body centres 4e-4 's/near bodies/far bodies/'
    noticed 'a cell acts a level too early' source 4_on_a_body centres 4e-4 's/^cell 4 4/cell 3 4/'
    noticed 'another body' source 4_on_a_body centres 4e-4 's/^look [0-9]*/look 5/'
    noticed 'weights of another rule' adaptive 8_adaptive_on_nodes fixed 4e-3 \
        "$((fixed + 6))s/ [-0-9.e]*\$/ 1/"
    noticed 'a cell twice' adaptive 8_adaptive_on_nodes fixed 4e-3 "${fixed}i $cell"
    noticed 'the output of another tree' adaptive 4_on_a_body fixed 4e-3 's/^look/look /'
}

# ---- pictures -----------------------------------------------------------------------------------

# height PANELS: of a picture, 3 in a row
height() { echo $((46 + ($1 + 2) / 3 * 502)); }
pictures() {
    make_png_reader || return
    cp "$work/first.txt" "$work/out.txt"
    is_picture first/1_grids.png 1400 "$(height 6)" 40
    is_picture first/2_distance.png 1400 "$(height 3)" 40
    is_picture first/3_virtual_particles.png 1400 "$(height 6)" 40
    is_picture first/4_on_a_body.png 1400 "$(height 6)" 40
    is_picture first/5_force_nodes.png 1400 "$(height 6)" 40
    is_picture first/6_on_nodes.png 1400 "$(height 6)" 40
    is_picture first/7_adaptive.png 1400 "$(height 6)" 40
    is_picture first/8_adaptive_on_nodes.png 1400 "$(height $(($(figure adaptive levels) + 1)))" 40
    mkdir -p "$work/build" && : >"$work/build/nbody_levels" # the program, where make puts it
    levels
    [ $status -eq 0 ] && cmp -s "$work/build/levels/4_on_a_body.png" "$work/first/4_on_a_body.png"
    report $? "pictures go to build/levels by default, and are the same again" "$(seen)"
    levels --seed 2 --out a/b
    [ $status -eq 0 ] && ! cmp -s "$work/a/b/4_on_a_body.png" "$work/first/4_on_a_body.png"
    report $? "another seed, another picture" "$(seen)"
}

# cells FILE TEXT: the bodies of TEXT counted again in each square of FILE, and what acts, against
# the lines "cell" of TEXT. (Halves: level 0 .. of the square.)
cells() {
    awk '
        # Bodies in square c, whose sides are a little off.
        function count(c, off,    k, found) {
            for (k = 0; k < bodies; k++)
                found += bx[k] > x[4 * c] - off && bx[k] < x[4 * c + 2] + off &&
                    by[k] > y[4 * c] - off && by[k] < y[4 * c + 2] + off
            return found + 0
        }
        FNR == 1 { file++ }
        file == 1 && $1 == "POINTS" { n = $2 / 4; for (k = 0; k < 4 * n; k++) { getline
            x[k] = $1; y[k] = $2 } }
        file == 1 && $1 == "POLYGONS" { if ($2 != n || $3 != 5 * n) bad++ }
        file == 1 && $1 == "SCALARS" { what = $2; getline; k = 0
            while (k < n) { getline; for (f = 1; f <= NF; f++) value[what, k++] = $f } }
        file == 2 && $1 == "square" { low_x = $2; low_y = $3; size = $4 }
        file == 2 && $1 == "body" { bx[bodies + 0] = $2; by[bodies++] = $3 }
        file == 2 && $1 == "cell" { acting++; square[$3, $4, $5] = $6 " " $7 }
        END {
            for (c = 0; c < n; c++) {
                level = value["level", c]; side = size / 2 ^ level
                if ((x[4 * c + 2] - x[4 * c]) / side < 0.9999 ||
                    (y[4 * c + 2] - y[4 * c]) / side > 1.0001) bad++
                least = count(c, -1e-6); most = count(c, 1e-6)
                if (value["bodies", c] < least || value["bodies", c] > most) bad++
                off += most - least
                column = int((x[4 * c] - low_x) / side + 0.5)
                row = int((y[4 * c] - low_y) / side + 0.5)
                word = square[level, column, row]
                code = word == "" ? 0 : 1 + (word ~ /bodies/) + 2 * (word ~ /near/)
                if (code != value["acts", c]) bad++
                acts += code > 0
            }
            exit !(n > 10 && bodies > 100 && !bad && off <= 20 && acts == acting && acts > 3)
        }' "$work/vtk/$1" "$work/vtk/$2"
    report $? "--vtk: bodies and actors of $1" "$(seen)"
}

vtk_files() {
    levels -n 300 --levels 4 --vtk --out vtk
    report $status "--vtk" "$(seen)"
    cells cells_0000.vtk source.txt
    cells cells_0001.vtk adaptive.txt
}

# ---- command line -------------------------------------------------------------------------------

command_line() {
    local line
    levels --help
    report $status "--help" "$(seen)"
    grep -q -- '--body I' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        levels $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-14 "$work/err.txt")" = 'nbody_levels: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
file.txt
-n
-n 0
-n -3
-n 2.5
-n 8x
-n 1e9
-n nan
--seed
--seed -1
--levels
--levels 0
--levels 10
--body -1
--body 3000
-n 10 --body 10
--out
LINES
    levels --out /dev/null/here
    [ $status -eq 1 ] && grep -q /dev/null "$work/err.txt"
    report $? "refused: a folder that cannot be made" "$(seen)"
    mkdir -p "$work/taken/1_grids.png"
    levels --out taken
    [ $status -eq 1 ] && grep -q 1_grids.png "$work/err.txt"
    report $? "refused: a file that cannot be written" "$(seen)"
}

who_acts; the_check_can_fail; pictures; vtk_files; command_line
sum_up
