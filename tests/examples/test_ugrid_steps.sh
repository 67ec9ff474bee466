#!/bin/bash
# Tests examples/ugrid_steps as its user sees it: tables, pictures, exit statuses.
#
#   tests/examples/test_ugrid_steps.sh [PROGRAM]    default: build/ugrid_steps
#
# What the tables say is made a second time in awk, from the printed points and box alone: cells,
# counts, starts, ranks, places, the lists after each point, the cells of each walk and their order,
# candidates and hits. The ten default points also by numbers from the sources. Tables with a
# mistake in them show that the comparison can fail.
. "$(dirname "$0")/examples.sh" ugrid_steps "${1:-}"

steps() { run "$@"; }
seen() {
    echo "exit status $status; $(head -c 300 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}

# ---- all of it, a second time -------------------------------------------------------------------

# Reads the output and prints what is wrong with it and fails, or prints nothing. -v wanted: points.
cat >"$work/check.awk" <<'AWK'
function wrong(what) { print what; bad = 1; exit 1 }
function same(found, wanted, what) { if (found != wanted)
    wrong(what ": found \"" found "\", expected \"" wanted "\"") }
function floor(v,    k) { k = int(v); return k > v ? k - 1 : k }

# The cell of a coordinate along an axis; all that are outside belong to the cells of the border.
function column(v, a,    k) {
    k = floor((v - low[a]) * many[a] / (high[a] - low[a]))
    return k < 0 ? 0 : k >= many[a] ? many[a] - 1 : k
}
function cell_of(i) {
    return (column(p[i, 2], 2) * many[1] + column(p[i, 1], 1)) * many[0] + column(p[i, 0], 0)
}
function distance(i, j) {
    return sqrt((p[i, 0] - p[j, 0]) ^ 2 + (p[i, 1] - p[j, 1]) ^ 2 + (p[i, 2] - p[j, 2]) ^ 2)
}

# Counting, prefix sum, scatter: points are taken cell by cell, and within a cell by id.
function check_build(    c, i, place) {
    for (c = 0; c < cells; c++) {
        same(start[c], place + 0, "start of cell " c)
        for (i = 0; i < n; i++) {
            if (cell_of(i) != c) continue
            same(cell_said[i], c, "cell of point " i)
            same(cell_added[i], c, "cell of point " i ", where it is scattered")
            same(start_added[i], start[c], "start of point " i)
            same(rank[i], place - start[c], "rank of point " i)
            same(end_before[i], place + 1, "end before point " i)
            same(place_of[i], place + 0, "place of point " i)
            same(id_at[place + 0], i, "id at place " place + 0)
            same(record[place + 0], p[i, 0] " " p[i, 1] " " p[i, 2], "record at place " place + 0)
            place++
        }
        same(count[c], place - start[c], "count of cell " c)
        same(end_of[c], place + 0, "end of cell " c)
    }
    same(all, n, "the last end")
    same(first_scattered, n - 1, "the point that is scattered first")
    same(rows, cells, "lines of cells")
}

function check_lists(    c, i, head, next_of, text) {
    for (i = 0; i < n; i++) {
        c = cell_of(i)
        next_of = c in head ? head[c] : -1
        same(written[i], c " " i " " next_of " " c " " i, "list, point " i)
        head[c] = i
        chain_of[c] = " " i chain_of[c]
    }
    for (c = 0; c < cells; c++) same(chain[c], chain_of[c], "list of cell " c)
}

# The cells that the cube touches along an axis: first[a] .. last[a]. It is a little wider, against
# rounding.
function sweep(a) {
    first[a] = column(p[query, a] - radius * 1.00001, a)
    last[a] = column(p[query, a] + radius * 1.00001, a)
}

# The number of a cell in the order of a walk: what comes first has the lower number. Labels of
# MODULAR are coordinates modulo the largest number of cells along the axis.
function key(x, y, z, name,    m) {
    if (name ~ /CELLS|STRIPS/) return (z * 100 + y) * 100 + (name == "CELLS" ? x : 0)
    m = labels
    return ((z % m) * 100 + y % m) * 100 + (name == "MODULAR" ? x % m : 0)
}

# The turns of one walk, from the cells that it should visit.
function check_walk(name,    x, y, z, k, c, i, turns, begin, end, text, from, to, hits, all) {
    labels = 2 * rings + 1
    for (z = first[2]; z <= last[2]; z++) for (y = first[1]; y <= last[1]; y++)
        for (x = first[0]; x <= last[0]; x++) {
            k = key(x, y, z, name)
            c = (z * many[1] + y) * many[0] + x
            if (!(k in from) || c < from[k]) from[k] = c
            if (!(k in to) || c > to[k]) to[k] = c
        }
    for (k = 0; k < 1000000; k++) {
        if (!(k in from)) continue
        begin = start[from[k]]
        end = end_of[to[k]]
        text = from[k] ".." to[k] " " (begin < end ? begin ".." end - 1 : "empty")
        for (i = begin; i < end; i++) {
            c = id_at[i]
            if (c == query) { text = text " " c " (itself)"; continue }
            text = text " " c sprintf(" (%.3f", distance(c, query))
            if (distance(c, query) <= radius) { text = text ", hit"; hits++ }
            text = text ")"
        }
        all += end - begin
        same(turn[name, turns + 0], turns + 0 " " text, name ", turn " turns + 0)
        turns++
    }
    same(sum[name], turns + 0 " " all + 0 " " hits + 0, "the sums of " name)
    if (name == "STRIPS" && many[2] == 1) same(turns, last[1] - first[1] + 1, "strips")
    # no hit is left out: all points are looked at
    for (i = 0; i < n; i++) if (i != query && distance(i, query) <= radius) hits--
    same(hits + 0, 0, "hits of " name " against all points")
}

/^1\. Cells/      { for (k = 1; $k != "from"; k++);
                    for (a = 0; a < 3; a++) { low[a] = $(k + 1 + a); high[a] = $(k + 5 + a) }
                    for (k = 1; $k != "has"; k++);
                    for (a = 0; a < 3; a++) many[a] = $(k + 1 + 2 * a)
                    high[2] += many[2] == 1 && high[2] == low[2] }
/^[1-6]\. /       { part = $1 + 0; if (part == 3) part = 2; next }
/Records in/      { part = "records"; next }
/^ *list of cell/ { sub(":", "", $4); c = $4; $1 = $2 = $3 = $4 = ""; sub(/^ +/, " ")
                    chain[c] = $0 == " " ? "" : $0; next }
part == 1 && NF == 5 && $1 ~ /^[0-9]/ { p[n + 0, 0] = $2; p[n + 0, 1] = $3; p[n + 0, 2] = $4;
    same($1, n + 0, "id"); cell_said[n + 0] = $5; n++ }
part == 2 && $1 ~ /^[0-9]+$/ { count[$1] = $2; end_of[$1] = $3; start[$1] = $4; rows++ }
part == 2 && $1 == "all"     { all = $2 }
part == 4 && $1 ~ /^[0-9]/   { if (!(scattered++)) first_scattered = $1
                               cell_added[$1] = $2; end_before[$1] = $3; place_of[$1] = $7
                               start_added[$1] = $8; rank[$1] = $10 }
part == "records" && $1 ~ /^[0-9]/ { id_at[$1] = $2; record[$1] = $3 " " $4 " " $5 }
part == 5 && $1 == "id"      { line = $0; gsub(/[^-0-9]+/, " ", line); split(line, w, " ")
                               written[w[1]] = w[2] " " w[3] " " w[4] " " w[5] " " w[6] }
part == 6 && /^   [A-Z]+$/   { name = $1 }
part == 6 && name && $1 ~ /^[0-9]+$/ { line = $0; gsub(/ +/, " ", line); sub(/^ /, "", line)
                               sub(/ $/, "", line); turn[name, $1] = line }
part == 6 && /turns, /       { sub(":", "", $1); sum[$1] = $2 " " $4 " " $6 }
/^figures:/                  { for (k = 2; k < NF; k += 2) figure[$k] = $(k + 1) }
/ugrid_query finds/          { by_library = $3 + 0 }

END {
    if (bad) exit 1
    same(n, wanted, "points")
    cells = many[0] * many[1] * many[2]
    query = figure["query"]
    check_build()
    check_lists()
    for (a = 0; a < 3; a++) sweep(a)
    check_walk("CELLS"); check_walk("STRIPS"); check_walk("MODULAR"); check_walk("HYBRID")
    same(figure["hits"] + 1, by_library, "hits of ugrid_query")
    same(figure["n"] " " figure["cells"], n " " cells, "the last line")
}
AWK

# check N RADIUS [RINGS]: of the last run
check() {
    awk -v wanted="$1" -v radius="$2" -v rings="${3:-1}" -f "$work/check.awk" "$work/out.txt"
}
agrees() {      # agrees N RADIUS RINGS ARGUMENTS...
    local n=$1 radius=$2 rings=$3 fault
    shift 3
    steps "$@" --out pictures
    fault=$(check "$n" "$radius" "$rings")
    report $? "$*: the tables are those of a grid" "$fault; $(head -c 200 "$work/err.txt")"
}

tables() {
    local seed n
    for seed in 1 2; do
        for n in 1 9 64; do
            agrees $n 1 1 -n $n --seed $seed
            agrees $n 1 1 --dim 3 -n $n --seed $seed
        done
    done
    agrees 40 1 1 --dim 3
    agrees 20 1.5 2 -n 20 --radius 1.5
    agrees 20 1.5 2 -n 20 --radius 1.5 --query 7
    agrees 20 0.5 1 -n 20 --radius 0.5 --cell 0.5
    agrees 20 2 1 -n 20 --cell 2
    agrees 20 4 1 -n 20 --cell 4
    agrees 30 9 9 -n 30 --radius 9
    [ "$(figure hits)" = 29 ]; report $? "a large radius finds all" "$(seen)"
    agrees 30 0.25 1 --dim 3 -n 30 --radius 0.25
    printf '# eight\n0 0\n0.5 0.25\n 3 3 \n\n2.5 2.5\n2.5 2.5\n1 2\n8 4\n0.25 3.5\n' \
        >"$work/eight.txt"
    agrees 8 1 1 --points eight.txt --cell 1 --query 3
    printf '0 0 0\n3 1 2\n1.5 0.25 1.5\n' >"$work/three.txt"
    agrees 3 1 1 --points three.txt --dim 3 --cell 1
    printf '0.5 0.5\n0.5 0.5\n0.5 0.5\n' >"$work/same.txt"
    steps --points same.txt --query 1
    [ "$(figure hits)" = 2 ]; report $? "equal points are neighbours" "$(seen)"
}

# Source 001 prints the starts of its 16 cells, and the cells of its agents in order.
chisholm() {
    steps --out pictures
    awk '/^3\. /,/^4\. / { if ($1 ~ /^[0-9]+$/ && NF == 4) print $4 }' "$work/out.txt" |
        paste -sd ' ' >"$work/starts.txt"
    [ "$(cat "$work/starts.txt")" = '0 0 0 1 1 2 3 5 7 7 7 8 8 9 10 10' ]
    report $? "starts of the figure in source 001" "$(cat "$work/starts.txt")"
    awk '/^4\. /,/Records/ { if ($1 ~ /^[0-9]+$/ && NF == 10) print $7, $2 }' "$work/out.txt" |
        sort -n | cut -d ' ' -f 2 | paste -sd ' ' >"$work/agents.txt"
    [ "$(cat "$work/agents.txt")" = '2 4 5 6 6 7 7 10 12 13' ]
    report $? "cells of the agents in source 001" "$(cat "$work/agents.txt")"
    grep -q 'STRIPS: 3 turns' "$work/out.txt" && grep -q 'CELLS: 9 turns' "$work/out.txt"
    report $? "9 cells are 3 strips" "$(seen)"
    steps --dim 3 --out pictures
    grep -q 'STRIPS: 9 turns' "$work/out.txt" && grep -q 'MODULAR: 27 turns' "$work/out.txt"
    report $? "27 cells are 9 strips" "$(seen)"
}

# Source 000, Figure 1: elements 4 0 3 go into cell 5, then 2 1 into cell 3. Here ids are in the
# order in which they go: 0 1 2, then 3 4. (Two more make the box.)
barbieri() {
    printf '5.5 0\n5.25 0\n5.75 0\n3.5 0\n3.25 0\n0 0\n7 0\n' >"$work/figure1.txt"
    steps --points figure1.txt --cell 1 --out pictures
    [ "$(grep -c 'next\[' "$work/out.txt")" = 7 ] &&
        grep -q 'id  2 into cell  5: next\[2\] = 1, head\[5\] = 2' "$work/out.txt" &&
        grep -q 'id  4 into cell  3: next\[4\] = 3, head\[3\] = 4' "$work/out.txt" &&
        grep -qx '   list of cell  5: 2 1 0' "$work/out.txt" &&
        grep -qx '   list of cell  3: 4 3' "$work/out.txt"
    report $? "the lists of Figure 1 in source 000" "$(seen)"
}

# One mistake in the tables, and the check must say so.
the_check_can_fail() {
    local edit
    steps --out pictures
    check 10 1 >/dev/null; report $? "the default tables" "$(check 10 1)"
    cp "$work/out.txt" "$work/right.txt"
    while read -r edit; do
        sed -E "$edit" "$work/right.txt" >"$work/out.txt"
        ! cmp -s "$work/right.txt" "$work/out.txt"
        report $? "the edit $edit changes something"
        check 10 1 >/dev/null; report $((! $?)) "seen by the check: $edit"
    done <<'EDITS'
s/^( +0 +2.25 +1.25 +0 +)6/\15/
s/^( +6 +)2( +5 +3)$/\13\2/
s/^( +7 +2 +)7( +5)$/\16\2/
s/(all +)10/\19/
s/(8 +6 +5 - 1 = +4 +3 \+ +)1/\10/
s/(8 +6 +5 - 1 = +)4/\15/
s/^( +4 +)8( +2.75 +1.75)/\10\2/
s/^( +4 +8 +)2.75( +1.75)/\12.70\2/
s/next\[8\] = 0/next[8] = -1/
s/head\[7\] = 9/head[7] = 3/
s/(list of cell  6: )8 0/\10 8/
s/0.791, hit/0.792, hit/
s/1.061\)/1.061, hit)/
s/0.976, hit/0.976/
/ 3 +9\.\.9 +empty/d
s/^( +0 +)13\.\.15/\114..15/
s/^( +1 +)13\.\.13/\114..14/
s/STRIPS: 3/STRIPS: 4/
s/7 candidates, 2/8 candidates, 2/
s/finds 3,/finds 4,/
s/cells 16 query/cells 17 query/
EDITS
}

# ---- pictures -----------------------------------------------------------------------------------

pictures() {
    make_png_reader || return
    steps --out a/b
    report $status "a folder in a folder is made" "$(seen)"
    is_picture a/b/1_build.png 1400 +600 40
    is_picture a/b/2_lists.png 1400 +300 10
    is_picture a/b/3_walks.png 1400 +500 40
    steps --dim 3 --out solid
    is_picture solid/1_build.png 1400 +600 40
    is_picture solid/2_lists.png 2586 +600 10
    is_picture solid/3_walks.png 1400 +500 40
    steps -n 12 --out one; steps -n 12 --out two; steps -n 12 --seed 2 --out three
    cmp -s "$work/one/3_walks.png" "$work/two/3_walks.png"
    report $? "the same run, the same picture"
    ! cmp -s "$work/one/3_walks.png" "$work/three/3_walks.png"
    report $? "another seed, another picture"
    steps -n 12 --query 3 --out four; steps -n 12 --query 4 --out five
    ! cmp -s "$work/four/3_walks.png" "$work/five/3_walks.png" &&
        cmp -s "$work/four/1_build.png" "$work/five/1_build.png"
    report $? "another search, another picture of walks, the same of the build"
    mkdir -p "$work/build" && : >"$work/build/ugrid_steps" # the program, where make puts it
    steps
    [ $status -eq 0 ] && [ -s "$work/build/steps/3_walks.png" ]
    report $? "pictures go to build/steps by default" "$(seen)"
}

# vtk DIM OPTIONS: the numbers of points per cell, counted again from the table of the output, which
# has the points; the box of the file is that of its head.
vtk() {
    local dim=$1; shift
    steps --vtk --out vtk --dim "$dim" "$@"
    awk -v dim="$dim" '
        FNR == 1 { file++ }
        file == 1 && $1 == "DIMENSIONS" { for (a = 1; a <= 3; a++) n[a] = $(a + 1) - 1 }
        file == 1 && $1 == "ORIGIN" { for (a = 1; a <= 3; a++) low[a] = $(a + 1) }
        file == 1 && $1 == "SPACING" { for (a = 1; a <= 3; a++) edge[a] = $(a + 1) }
        file == 1 && $1 == "CELL_DATA" { cells = $2 }
        file == 1 && $1 == "SCALARS" { what = $2; getline
            for (c = 0; c < cells; c++) { getline; value[what, c] = $1 } }
        file == 2 && $1 == "id" { reads = 1; next }
        file == 2 && reads && NF == 5 { points++; cell = 0
            for (a = dim; a >= 1; a--) cell = cell * n[a] + int(($(a + 1) - low[a]) / edge[a])
            count[cell]++ }
        file == 2 && NF == 0 && points { reads = 0 }
        END {
            if (cells != n[1] * n[2] * (dim == 3 ? n[3] : 1) || (dim == 2 && n[3] != 0)) exit 1
            for (c = 0; c < cells; c++) {
                if (value["points", c] != count[c] + 0 || value["start", c] != sum + 0) exit 1
                sum += count[c]
            }
            exit !(points > 5 && sum == points)
        }' "$work/vtk/occupancy_0000.vtk" "$work/out.txt"
    report $? "--vtk: points of each cell: $dim $*" "$(seen)"
}

vtk_files() {
    vtk 2
    vtk 2 -n 30 --cell 0.5
    vtk 3 -n 50
}

# ---- command line -------------------------------------------------------------------------------

command_line() {
    local line
    steps --help
    report $status "--help" "$(seen)"
    grep -q -- '--points FILE' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        steps $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-13 "$work/err.txt")" = 'ugrid_steps: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
file.txt
-n
-n 0
-n 65
-n 2.5
--seed -1
--dim 4
--dim 1
--cell 0
--cell 0.1
--radius 0
--radius nan
--query -1
--query 10
-n 3 --query 3
-n 3 --points eight.txt
--out
LINES
    printf '1 2\n3 x\n' >"$work/bad.txt"
    yes '1 2' | head -n 65 >"$work/many.txt"
    for line in bad.txt many.txt none.txt; do
        steps --points $line
        [ $status -eq 1 ] && [ ! -s "$work/out.txt" ] && grep -q "$line" "$work/err.txt"
        report $? "refused: --points $line" "$(seen)"
    done
    steps --out /dev/null/here
    [ $status -eq 1 ] && grep -q /dev/null "$work/err.txt"
    report $? "refused: a folder that cannot be made" "$(seen)"
    mkdir -p "$work/taken/3_walks.png"
    steps --out taken
    [ $status -eq 1 ] && grep -q 3_walks.png "$work/err.txt"
    report $? "refused: a file that cannot be written" "$(seen)"
}

chisholm; barbieri; tables; the_check_can_fail; pictures; vtk_files; command_line
sum_up
