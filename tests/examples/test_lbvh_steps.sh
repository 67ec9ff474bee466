#!/bin/bash
# Tests examples/lbvh_steps as its user sees it: tables, pictures, exit statuses.
#
#   tests/examples/test_lbvh_steps.sh [PROGRAM]    default: build/lbvh_steps
#
# What the tables say is compared with a second tree, made below in awk from the printed codes and
# leaf boxes alone (those of levels.vtk, which have all digits); the eight default points also with
# numbers worked out by hand. Tables with a mistake in them show that the comparison can fail.
. "$(dirname "$0")/examples.sh" lbvh_steps "${1:-}"

steps() { run "$@"; }
seen() {
    echo "exit status $status; $(head -c 300 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}

# ---- the second tree ----------------------------------------------------------------------------

# Reads levels.vtk and the program's output, prints what is wrong with it and fails, or prints
# nothing.
cat >"$work/check.awk" <<'AWK'
function wrong(what) { print what; bad = 1; exit 1 }
function same(found, wanted, what) { if (found != wanted)
    wrong(what ": found \"" found "\", expected \"" wanted "\"") }
function least(a, b) { return a < b ? a : b }
function most(a, b) { return a > b ? a : b }
function outline(at) { return (x1[at] - x0[at]) + (y1[at] - y0[at]) }
function near(a, b, t) { return a - b <= t && b - a <= t }

function common(a, b,    k) {
    for (k = 1; k <= length(a) && substr(a, k, 1) == substr(b, k, 1); k++);
    return k - 1
}

# A place as 30 bits: equal codes, of 30 bits each, are told apart by their places.
function place_bits(k,    bits, b) {
    for (b = 0; b < 30; b++) { bits = k % 2 bits; k = int(k / 2) }
    return bits
}
function share(i, j) { return code[i] == code[j] ? 30 + common(place_bits(i),
    place_bits(j)) : common(code[i], code[j]) }
function bit(k, b) { return b > 30 ? substr(place_bits(k), b - 30, 1) : substr(code[k], b, 1) }

# The node over leaves lo .. hi, which has this number and skip: compares it with what was
# printed. Returns its name.
function tree(lo, hi, number, skip, depth,    bits, s, at, left, right, right_name) {
    if (lo == hi) {
        at = "leaf " lo
        deepest = most(deepest, depth)
        depths += depth
    } else {
        at = "node " number
        bits = share(lo, hi)
        for (s = lo; bit(s + 1, bits + 1) == "0"; s++);
        right_name = s + 1 == hi ? "leaf " hi : "node " s + 1
        left = tree(lo, s, s, right_name, depth + 1)
        right = tree(s + 1, hi, s + 1, skip, depth + 1)
        same(range[at], lo ".." hi, at " range")
        same(split_after[at], s, at " split")
        same(children[at], left " " right, at " children")
        same(prefix[at], bits ? substr(code[lo], 1,
            bits) (bits >= 30 ? " and " bits - 30 " bits of the place" : "") : "(none)", at)
        same(made_of[at], left " " right, at " is made of")
        if (x0[at] != least(x0[left], x0[right]) || y0[at] != least(y0[left], y0[right]))
            wrong(at ": least corner")
        if (x1[at] != most(x1[left], x1[right]) || y1[at] != most(y1[left], y1[right]))
            wrong(at ": most corner")
        child[at] = left
        inner++
    }
    same(skip_to[at], skip, at " skip")
    same(box[at], sprintf("%.2f %.2f %.2f %.2f", x0[at], y0[at], x1[at], y1[at]), at " box")
    outlines += outline(at)
    return at
}

function meets(at) { return x0[at] <= query[3] && x1[at] >= query[1] && y0[at] <= query[4] &&
    y1[at] >= query[2] }

# The walk, as the printed lines should tell it.
function walk(    at, k) {
    at = child["node 0"] == "" ? "leaf 0" : "node 0"
    for (k = 1; at != "the end"; k++) {
        if (!meets(at)) same(turn[k], at " misses: skip to " (at = skip_to[at]), "walk, turn " k)
        else if (at ~ /leaf/)
            same(turn[k], at " overlaps: found " made_of[at] "; skip to " (at = skip_to[at]),
                "walk, turn " k)
        else same(turn[k], at " overlaps: go to its left child, " (at = child[at]), "walk, turn " k)
    }
    same(turns, k - 1, "turns of the walk")
}

function pairs_by_force(    i, j, a, b, pairs) {
    for (i = 0; i < n; i++)
        for (j = i + 1; j < n; j++) {
            a = "leaf " i; b = "leaf " j
            if (x0[a] <= x1[b] && x0[b] <= x1[a] && y0[a] <= y1[b] && y0[b] <= y1[a]) pairs++
        }
    return pairs + 0
}

function found_by_force(    i, found) {
    for (i = 0; i < n; i++) found += meets("leaf " i)
    return found + 0
}

FNR == NR && /^POINTS/       { corners = $2; next }
FNR == NR && /^POLYGONS/     { corners = 0 }
FNR == NR && corners         {
    at = row < wanted - 1 ? "node " (row + 0) : "leaf " (row - wanted + 1)
    x0[at] = $1 + 0; y0[at] = $2 + 0; x1[at] = $7 + 0; y1[at] = $8 + 0
    row++
}
FNR == NR                    { next }
/^[1-5]\. /                  { part = $1 + 0; if (part == 5) part = 4; next }
/As a tree/                  { part = "drawing" }
/^A walk/                    { part = "walk"; split($0, word, /[(),]+ ?/)
                               query[1] = word[2] + 0; query[2] = word[3] + 0;
                                   query[3] = word[5] + 0; query[4] = word[6] + 0 }
/looked at/                  { found_said = $1; part = ""; same($3 + 0, turns, "nodes looked at") }
/SAH cost/                   { sah_said = $3 }
/mean depth/                 { mean_said = $3 }
/^figures:/                  { for (k = 2; k < NF; k += 2) figure[$k] = $(k + 1) }
part == 1 && /^ +[0-9]/      { x_bits[$1] = $6; y_bits[$1] = $7; code_of[$1] = $8 }
part == 2 && /^ +[0-9]+ +[0-9]+ +[01]+$/ { code[$1] = $3; id[$1] = $2; n++; next }
part == 2 && /^ +-* +[0-9]+$/ { between[n] = $NF; marked[n] = NF == 2 ? length($1) : 0 }
part == 2 && /whole code/    { between[n] = 30 + $(NF - 2); marked[n] = length($1) }
part == 3 && /^ +[0-9]+ +[0-9]+\.\.[0-9]+ / {
    at = "node " $1; range[at] = $2; split_after[at] = $3; children[at] = $4 " " $5 " " $6 " " $7
    prefix[at] = $0; sub(/.*(node|leaf) [0-9]+ +/, "", prefix[at])
}
part == 4 && /^ +(leaf|node) / {
    at = $1 " " $2; box[at] = $3 " " $4 " " $5 " " $6
    if ($1 == "leaf") { made_of[at] = $7 " " $8; skip_to[at] = $9 " " $10 }
    else { made_of[at] = $7 " " $8 " " $9 " " $10; skip_to[at] = $11 " " $12 }
    boxes++
}
/ \+ / {
    for (line = $0; match(line, /[0-9]+\.\.[0-9]+ \+ [0-9]+\.\.[0-9]+/);
         line = substr(line, RSTART + RLENGTH)) {
        split(substr(line, RSTART, RLENGTH), end, /\.\.| \+ /)
        same(end[3], end[2] + 1, "joined leaves")
        joined[end[1] ".." end[4]] = end[2]
        joins++
    }
}
part == "walk" && /^ +(leaf|node) / { line = $0; gsub(/ +/, " ", line); sub(/^ /, "", line);
    turn[++turns] = line }

END {
    if (bad) exit 1
    same(n, wanted, "points in the row")
    for (k = 0; k < n; k++) {
        mixed = ""
        for (b = 1; b <= length(x_bits[id[k]]); b++) mixed = mixed substr(x_bits[id[k]], b,
            1) substr(y_bits[id[k]], b, 1)
        same(code_of[id[k]], mixed, "code of id " id[k])
        same(code[k], mixed, "code at place " k)
        same(made_of["leaf " k], "id " id[k], "leaf " k)
        if (ids[id[k]]++) wrong("id " id[k] " twice")
        if (k && code[k - 1] > code[k]) wrong("not sorted at place " k)
        if (k) same(between[k], share(k - 1, k), "common bits before place " k)
        if (k) same(marked[k], common(code[k - 1], code[k]), "bits marked before place " k)
    }
    tree(0, n - 1, 0, "the end", 0)
    same(inner + 0, n - 1, "inner nodes")
    same(joins + 0, n - 1, "joins of LBVH_MERGE")
    for (at in range) same(joined[range[at]], split_after[at], at " is joined")
    same(boxes, 2 * n - 1, "boxes")
    same(figure["nodes"], 2 * n - 1, "nodes")
    same(figure["n"], n, "n")
    walk()
    same(found_said, found_by_force(), "found")
    same(figure["found"], found_said, "found, last line")
    same(figure["pairs"], pairs_by_force(), "pairs")
    same(figure["depth"], deepest, "depth")
    root = n > 1 ? "node 0" : "leaf 0"
    sah = outlines / outline(root)
    if (!near(sah_said, sah, 0.001)) wrong("SAH cost " sah_said ", expected " sah)
    if (!near(mean_said, depths / n, 0.001)) wrong("mean depth " mean_said ", expected " depths / n)
}
AWK

# check N: of the last run
check() { awk -v wanted="$1" -f "$work/check.awk" "$work/pictures/levels.vtk" "$work/out.txt"; }

tables() {
    local n seed fault
    for n in 1 2 3 4 7 8 12 16 24 32; do
        for seed in 1 2 3; do
            steps -n $n --seed $seed --out pictures
            fault=$(check $n)
            report $? "-n $n --seed $seed: the tables are those of a tree" "$fault"
        done
    done
    for n in 2 5 12 32; do
        steps -n $n --round 2 --out pictures
        fault=$(check $n)
        report $? "-n $n --round 2: tables with equal points" "$fault"
    done
    grep -q 'the whole code' "$work/out.txt"; report $? "there are equal codes" "$(seen)"
    steps -n 20 --box 0 0 8 8 --out pictures
    fault=$(check 20)
    report $? "a box around everything" "$fault"
    [ "$(figure found)" = 20 ]; report $? "a box around everything finds all" "$(seen)"
    steps -n 20 --box 20 20 21 21 --out pictures
    fault=$(check 20)
    report $? "a box beside everything" "$fault"
    grep -q 'node 0 *misses: skip to the end' "$work/out.txt"
    report $? "a box beside everything ends at the root" "$(seen)"
}

# Points of a file are the points of the tree, and the box lies within their square.
points_of_a_file() {
    local fault
    printf '%s\n' '100 -30' '  130 -10' '# a comment' '150 40' '101 0' '99.5 20' >"$work/points.txt"
    steps --points points.txt --out pictures
    fault=$(check 5)
    report $? "--points: the tables are those of a tree" "$fault"
    awk '/^   id /, /^$/ { if ($1 ~ /^[0-9]$/) print $2 + 0, $3 + 0 }' "$work/out.txt" |
        cmp -s - <(sed '/#/d; s/^ *//' "$work/points.txt")
    report $? "--points: the table of codes has the points" "$(seen)"
    [ "$(figure found)" = 1 ]; report $? "--points: the box of the default meets one" "$(seen)"
    steps --points points.txt --box 90 -40 160 50 --out pictures
    [ "$(figure found)" = 5 ]; report $? "--points --box: all are found" "$(seen)"
    echo '1 2 3' >"$work/bad.txt"
    steps --points bad.txt
    [ $status -eq 1 ] && grep -q '^lbvh_steps: bad.txt:1: ' "$work/err.txt"
    report $? "refused: three numbers in a line" "$(seen)"
}

# One mistake in the tables, and the check must say so.
the_check_can_fail() {
    local edit
    steps --out pictures
    check 8 >/dev/null; report $? "the default tables" "$(check 8)"
    cp "$work/out.txt" "$work/right.txt"
    while read -r edit; do
        sed -E "$edit" "$work/right.txt" >"$work/out.txt"
        cmp -s "$work/right.txt" "$work/out.txt"
        report $((! $?)) "the edit $edit changes something"
        check 8 >/dev/null; report $((! $?)) "seen by the check: $edit"
    done <<'EDITS'
s/100111$/100101/
s/^       3   7  001010/       3   7  001000/
s/^( +)----    4$/\1-----   5/
s/0\.\.3          1 /0..3          2 /
s/node 3   node 4   \(none\)/node 4   node 3   (none)/
s/6\.10   6\.00    leaf 5/6.10   6.01    leaf 5/
s/(leaf 1 .*)node 2$/\1node 4/
s/node 1   misses: skip to node 2/node 1   misses: skip to node 4/
/leaf 7   misses/d
s/5\.\.5 \+ 6\.\.6/5..5 + 6..7/
s/2\.\.2 \+ 3\.\.3, //
s/SAH cost       4/SAH cost       5/
s/depth 4/depth 5/
s/pairs 2/pairs 3/
s/found 3$/found 4/
EDITS
}

# The eight points: keys of Karras' example, and its nodes, worked out by hand from the keys.
the_example() {
    steps --out pictures
    sed -n '/^2\. Sort/,/^3\. /p' "$work/out.txt" |
        awk 'NF == 3 && $3 ~ /^[01]+$/ { print substr($3, 1, 5) }' >"$work/keys.txt"
    printf '%s\n' 00001 00010 00100 00101 10011 11000 11001 11110 | cmp -s - "$work/keys.txt"
    report $? "the keys of the example" "$(cat "$work/keys.txt")"
    sed -n '/^   node  leaves/,/^$/p' "$work/out.txt" |
        awk '$1 + 0 == $1 { print $1, $2, $3, $8 }' >"$work/nodes.txt"
    printf '%s\n' '0 0..7 3 (none)' '1 0..1 0 000' '2 2..3 2 0010' '3 0..3 1 00' '4 4..7 4 1' \
        '5 5..7 6 11' '6 5..6 5 1100' |
        cmp -s - "$work/nodes.txt"
    report $? "the nodes of the example" "$(cat "$work/nodes.txt")"
    sed -n '/As ranges/,/^4\. /p' "$work/out.txt" |
        grep -qx '    1    ----------|------- 3     4--|---------------'
    report $? "ranges: nodes 3 and 4 beside each other" \
        "$(sed -n '/As ranges/,/^4\. /p' "$work/out.txt")"
    grep -qx '   |   |   |-- leaf 0  000010  (id 5)' "$work/out.txt"
    report $? "leaf 0 hangs on node 1 on node 3 on node 0" "$(seen)"
    grep -q '^all 553 bytes of its arrays are equal' "$work/out.txt"
    report $? "both builders: 15 nodes of 32 bytes, 9 prefixes, 8 codes" "$(seen)"
    steps --out pictures
    [ "$(figure found) $(figure pairs) $(figure depth)" = "3 2 4" ]
    report $? "figures of the example" "$(seen)"
}

# ---- pictures -----------------------------------------------------------------------------------

pictures() {
    make_png_reader || return
    steps --out a/b
    report $status "a folder in a folder is made" "$(seen)"
    is_picture a/b/levels.png 1400 +600 40
    steps -n 2000 --out many
    report $status "2000 points" "$(seen)"
    is_picture many/levels.png 1400 +1400 40
    ! grep -q '^1\. Codes' "$work/out.txt"; report $? "2000 points: no tables" "$(seen)"
    cp "$work/out.txt" "$work/many.txt"
    steps -n 2000 --out many
    cmp -s "$work/out.txt" "$work/many.txt"; report $? "the same run, the same figures" "$(seen)"
    steps -n 2000 --seed 2 --out many2
    [ "$(figure sah)" != "$(awk '/^figures:/ { print $9 }' "$work/many.txt")" ];
        report $? "another seed, another tree" "$(seen)"
    ! cmp -s "$work/many/levels.png" "$work/many2/levels.png"
    report $? "another seed, another picture"
    steps -n 1 --out one
    is_picture one/levels.png 1400 +300 40
    mkdir -p "$work/build" && : >"$work/build/lbvh_steps" # the program, where make puts it
    steps
    [ $status -eq 0 ] && [ -s "$work/build/steps/levels.vtk" ]
    report $? "pictures go to build/steps by default" "$(seen)"
}

# All boxes are there, on as many levels as the tree is deep, two nodes or none below each.
paraview() {
    steps -n 50 --out vtk
    awk -v n=50 -v depth="$(figure depth)" '
        NR == 1 && !/^# vtk DataFile Version 3\.0$/ { exit 1 }
        /^POINTS/ && $2 != 4 * (2 * n - 1) { exit 1 }
        /^POLYGONS/ && ($2 != 2 * n - 1 || $3 != 5 * (2 * n - 1)) { exit 1 }
        levels && NF == 1 { count[$1]++; all++; if ($1 > deepest) deepest = $1 }
        /^LOOKUP_TABLE/ { levels = 1 }
        END { for (l = 1; l <= depth; l++) if (count[l] % 2 || count[l] > 2 * count[l - 1]) exit 1
              exit !(all == 2 * n - 1 && deepest == depth &&
                  count[0] == 1) }' "$work/vtk/levels.vtk"
    report $? "levels.vtk has all boxes by level" \
        "$(head -n 6 "$work/vtk/levels.vtk") depth $(figure depth)"
    awk '/^POINTS/ { points = $2; next }
         /^POLYGONS/ { points = 0; next }
         points { for (k = 1; k < NF; k += 3) { p++; if ($k < 0 - 1 || $k > 9 || $(k + 1) < 0 - 1 ||
             $(k + 1) > 9) exit 1 } }
         END { exit p != 396 }' "$work/vtk/levels.vtk"
    report $? "levels.vtk has 396 corners near the points" "$(sed -n 5,7p "$work/vtk/levels.vtk")"
}

# ---- command line -------------------------------------------------------------------------------

command_line() {
    local line
    steps --help
    report $status "--help" "$(seen)"
    grep -q -- '--seed N' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        steps $line
        [ $status -eq 2 ] && [ ! -s "$work/out.txt" ] &&
            [ "$(cut -c1-12 "$work/err.txt")" = 'lbvh_steps: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
--points points.txt -n 3
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
--seed many
--round
--round 0
--round -1
--box
--box 1 2 3
--box 1 2 0 3
--box 1 3 2 2
--box 1 2 3 nan
--out
LINES
    steps --out /dev/null/here
    [ $status -eq 1 ] && grep -q /dev/null "$work/err.txt"
    report $? "refused: a folder that cannot be made" "$(seen)"
    mkdir -p "$work/taken/levels.png"
    steps --out taken
    [ $status -eq 1 ] && grep -q levels.png "$work/err.txt"
    report $? "refused: a file that cannot be written" "$(seen)"
}

the_example; tables; points_of_a_file; the_check_can_fail; pictures; paraview; command_line
sum_up
