#!/bin/bash
# Tests examples/nlist_steps as its user sees it: tables, pictures, exit statuses.
#
#   tests/examples/test_nlist_steps.sh [PROGRAM]    default: build/nlist_steps
#
# What the tables say is made a second time in awk, from the points at step 0 and 1 alone: all
# positions, all pairs in reach, what began, persists and ended, for how long, and at which entry a
# contact was in the list before. The default points also by the figure of nlist.h. Tables with a
# mistake in them show that the comparison can fail.
. "$(dirname "$0")/examples.sh" nlist_steps "${1:-}"

steps() { run "$@"; }
seen() {
    echo "exit status $status; $(head -c 300 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}

# ---- all of it, a second time -------------------------------------------------------------------

# Reads the output and prints what is wrong with it and fails, or prints nothing. -v wanted: points;
# -v steps: the last step; -v width: slots of a row; -v radius.
cat >"$work/check.awk" <<'AWK'
function wrong(what) { print what; bad = 1; exit 1 }
function same(found, wanted, what) { if (found != wanted)
    wrong(what ": found \"" found "\", expected \"" wanted "\"") }

# Where point i of the first steps is at step k; after sorting, point new_id[i].
function x_of(i, k, a) { return p[0, i, a] + k * (p[1, i, a] - p[0, i, a]) }
function name_of(i, j) { return i < j ? i "-" j : j "-" i }

# Pairs in reach at step k: pair["i-j"] = 1, with i < j the ids before sorting; in many.
function find_pairs(k,    i, j, x, y) {
    split("", pair); many = 0
    for (i = 0; i < n; i++) for (j = i + 1; j < n; j++) {
        x = x_of(i, k, 0) - x_of(j, k, 0); y = x_of(i, k, 1) - x_of(j, k, 1)
        if (x * x + y * y <= radius * radius) { pair[i "-" j] = 1; many++ }
    }
}

# A text "i-j i-j ...": all pairs, each once.
function same_pairs(text, what,    w, k, count, seen_once) {
    count = split(text, w, " ")
    for (k = 1; k <= count; k++) {
        if (!(w[k] in pair)) wrong(what ": " w[k] " is not in reach")
        if (seen_once[w[k]]++) wrong(what ": " w[k] " twice")
    }
    same(count, many, what)
}

# The pairs of a chain of entries, row by row, and that each entry is in the chain of its row.
function chains(name,    own, partner, link, head, entries, i, e, text) {
    entries = split(array[name, "own"], own, " ")
    same(split(array[name, "partner"], partner, " "), entries, name " partners")
    same(split(array[name, "link"], link, " "), entries, name " links")
    same(split(array[name, "head"], head, " "), n, name " heads")
    for (i = 0; i < n; i++)
        for (e = head[i + 1]; e >= 0; e = link[e + 1]) {
            same(own[e + 1], i, name ", entry " e)
            text = text " " i "-" partner[e + 1]
            if (++row_count[i] > n) wrong(name ": a chain without an end")
        }
    return text
}
function slots(name,    i, k, w, count, text) {
    for (i = 0; i < n; i++) {
        count = split(array[name, "row " i], w, " ")
        if (name == "HYBRID") same(count, width, "slots of HYBRID")
        else if (count < 8) wrong("slots of STATIC: " count)
        for (k = 1; k <= count; k++) {
            if (w[k] >= 0) { text = text " " i "-" w[k]; row_count[i]++ }
            if (k > 1 && w[k] >= 0 && w[k - 1] < 0) wrong(name ": a gap in row " i)
        }
    }
    return text
}
function rows(    i, k, start, partner, text) {
    same(split(array["COMPACT", "start"], start, " "), n + 1, "starts")
    split(array["COMPACT", "partner"], partner, " ")
    for (i = 0; i < n; i++)
        for (k = start[i + 1]; k < start[i + 2]; k++) text = text " " i "-" partner[k + 1]
    return text
}

function check_layouts(    i, text, w, k) {
    find_pairs(0)
    same_pairs(chains("DYNAMIC"), "DYNAMIC")
    same_pairs(slots("STATIC"), "STATIC")
    same_pairs(rows(), "COMPACT")
    split("", row_count)
    text = slots("HYBRID")
    split("", in_slots)
    for (i = 0; i < n; i++) in_slots[i] = row_count[i] + 0
    text = text chains("HYBRID")
    for (i = 0; i < n; i++) if (row_count[i] > in_slots[i])
        same(in_slots[i], width, "slots of row " i ", which has entries in the rest")
    same_pairs(text, "HYBRID")
}

# The contacts of each point, and the calls.
function check_sums(name,    i, k, text) {
    same_pairs(calls[name], "calls of " name)
    for (i = 0; i < n; i++) {
        k = 0
        for (j = 0; j < n; j++) k += name_of(i, j) in pair && i != j
        text = text (i ? " " : "") k
    }
    same(sums[name], text, "sums of " name)
}

# Lists that a contact was in before this one.
function age(key) { return key in was_age ? was_age[key] : 0 }

# An event list "i-j (k) ..." against pairs that are new (kind 1), old and new (2), old (3).
function check_event(k, name, kind,    w, count, e, key, all, pairs) {
    all = 0
    for (key in pair) all += kind == 1 ? !(key in was_age) : kind == 2 ? key in was_age : 0
    for (key in was_age) all += kind == 3 && !(key in pair)
    count = split(event[k, name], w, " ")
    if (event[k, name] == "none") count = 0
    same(count, 2 * all, "events " name " of step " k)
    for (e = 1; e < count; e += 2) {
        split(w[e], pairs, "-")
        if (pairs[1] >= pairs[2] + 0) wrong("event " w[e])
        key = name_of(old_id[k > steps, pairs[1]], old_id[k > steps, pairs[2]])
        if (kind == 3 ? key in pair || !(key in was_age) : !(key in pair)) wrong(name " " w[e])
        if (seen_event[k, key]++) wrong("two events of " w[e] " at step " k)
        same(w[e + 1], "(" age(key) + (kind != 3) ")",
            "steps of " name " " w[e] " at step " k)
    }
}

# Step k: positions, entries, events. After sorting, rows are those of the old lower id.
function check_step(k,    i, a, e, w, key, count, slot_of, rest_of, where, row, sorted) {
    sorted = k > steps
    for (i = 0; i < n; i++) for (a = 0; a < 2; a++)
        same(p[k, sorted ? new_id[i] : i, a] + 0, x_of(i, sorted ? steps : k, a),
            "point " i " at step " k)
    find_pairs(sorted ? steps : k)
    same(lines[k] + 0, many, "entries of step " k)
    for (e = 0; e < lines[k]; e++) {
        split(line[k, e], w, " ")
        row = old_id[sorted, w[1]]; i = old_id[sorted, w[2]]
        if (row >= i + 0) wrong("row " w[1] " of step " k " has the partner " w[2])
        key = row "-" i
        if (!(key in pair)) wrong("step " k ": " key " is not in reach")
        if (key in entry_now) wrong("step " k ": " key " twice")
        where = w[4] " " w[5]
        if (w[4] == "slot") {
            same(w[5], slot_of[w[1]] + 0, "slot of " key); slot_of[w[1]]++
            same(w[3], w[1] * width + w[5], "entry of " key)
            if (w[5] >= width) wrong("slot " w[5] " of " width)
        } else {
            same(w[3], n * width + w[5], "entry of " key " in the rest")
            same(slot_of[w[1]], width, "slots of row " w[1] " before its rest")
            if (rest_of[w[5]]++) wrong("rest " w[5] " twice")
        }
        same(w[6], age(key) + 1, "steps of " key " at step " k)
        same(w[7], key in was_entry ? was_entry[key] : "new", "entry before of " key " at step " k)
        entry_now[key] = w[3]
    }
    check_event(k, "began", 1); check_event(k, "persist", 2); check_event(k, "ended", 3)
    for (key in was_age) if (!(key in pair)) gone[key] = 1
    for (key in gone) { delete was_age[key]; delete was_entry[key] }
    split("", gone)
    for (key in entry_now) { was_age[key]++; was_entry[key] = entry_now[key] }
    split("", entry_now)
}

/^[1-4]\. /                  { part = $1 + 0; next }
part == 1 && /^   [A-Z]+ \(/ { layout = $1; next }
part == 1 && NF              { name = $1; if (name == "row") { name = "row " $2; sub(/row +/, "") }
                               sub(/^ *[a-z0-9]+ */, ""); array[layout, name] = $0; next }
part == 2 && $2 == "calls:"  { name = $1; $1 = $2 = ""; sub(/^ +/, ""); calls[name] = $0; next }
part == 2 && $2 == "sums:"   { name = $1; $1 = $2 = ""; sub(/^ +/, ""); sums[name] = $0; next }
/^   Step /                  { k = $2; n = 0; next }
part == 4 && NF == 2 && $1 ~ /^[0-9]+$/ { new_id[$1] = $2; old_id[1, $2] = $1; next }
part >= 3 && NF == 3 && $1 ~ /^[0-9]+$/ { same($1, n, "id"); p[k, n, 0] = $2; p[k, n, 1] = $3; n++ }
part >= 3 && NF == 7 && $4 ~ /^(slot|rest)$/ { line[k, lines[k]++ + 0] = $0; next }
/^   (began|persist|ended):/ { name = $1; sub(":", "", name); $1 = ""; sub(/^ +/, "")
                               event[k, name] = $0 }
/^figures:/                  { for (f = 2; f < NF; f += 2) figure[$f] = $(f + 1) }

END {
    if (bad) exit 1
    same(n, wanted, "points")
    same(k, steps + 1, "the last step")
    for (i = 0; i < n; i++) {
        old_id[0, i] = i
        if (!((1, i) in old_id)) wrong("no point gets the id " i)
    }
    check_layouts()
    check_sums("PER_PARTICLE"); check_sums("PER_CONTACT"); check_sums("REDUCE")
    for (k = 0; k <= steps + 1; k++) check_step(k)
    same(figure["n"] " " figure["steps"] " " figure["contacts"], n " " steps " " many,
        "the last line")
}
AWK

# check N STEPS WIDTH [RADIUS]: of the last run
check() {
    awk -v wanted="$1" -v steps="$2" -v width="$3" -v radius="${4:-1}" -f "$work/check.awk" \
        "$work/out.txt"
}
agrees() {      # agrees N STEPS WIDTH RADIUS ARGUMENTS...
    local n=$1 k=$2 width=$3 radius=$4 fault
    shift 4
    steps "$@" --out pictures
    fault=$(check "$n" "$k" "$width" "$radius")
    report $? "$*: the tables are those of a list" "$fault; $(head -c 200 "$work/err.txt")"
}

tables() {
    local seed
    agrees 7 4 2 1
    agrees 1 4 2 1 -n 1
    for seed in 1 2 3; do
        agrees 12 4 2 1 -n 12 --seed $seed
        agrees 32 3 1 1 -n 32 --seed $seed --steps 3 --width 1
    done
    agrees 20 8 3 2 -n 20 --radius 2 --steps 8 --width 3
    agrees 20 0 4 1 -n 20 --steps 0 --width 4
    yes '0.5 0.25 0 0' | head -n 12 >"$work/same.txt"
    agrees 12 2 2 1 --points same.txt --steps 2
    printf '# two that pass each other\n0 0 0.25 0\n3 0.25 -0.25 0\n 9 9 0 0\n' >"$work/pass.txt"
    agrees 3 9 2 1 --points pass.txt --steps 9
    [ "$(grep -c ' 0-1 (' "$work/out.txt")" = 4 ]
    report $? "two that pass: began, persist twice, ended" "$(grep ' 0-1 (' "$work/out.txt")"
    grep -q 'ended: 0-1 (3)' "$work/out.txt"; report $? "two that pass: 3 lists" "$(seen)"
}

# At step 0 the list is that of the figure in nlist.h, and 3-6 comes from the rest into a slot.
the_figure() {
    local line
    steps --out pictures
    while read -r line; do
        grep -qx " *$line" "$work/out.txt"; report $? "the figure: $line" "$(seen)"
    done <<'LINES'
own       0  0  1  3  3  3
partner   1  3  2  4  5  6
link      1 -1 -1  4  5 -1
head      0  2 -1  3 -1 -1 -1
start     0  2  3  3  6  6  6  6
row 3     4  5  6 -1 -1 -1 -1 -1
row 3     4  5
own       3
head     -1 -1 -1  0 -1 -1 -1
  3        6     14  rest 0       2  14
  3        6      7  slot 1       3  14
ended: 0-1 (2) 0-3 (2) 3-4 (2)
LINES
}

# One mistake in the tables, and the check must say so.
the_check_can_fail() {
    local edit
    steps --out pictures
    check 7 4 2 >/dev/null; report $? "the default tables" "$(check 7 4 2)"
    cp "$work/out.txt" "$work/right.txt"
    while read -r edit; do
        sed -E "$edit" "$work/right.txt" >"$work/out.txt"
        ! cmp -s "$work/right.txt" "$work/out.txt"
        report $? "the edit $edit changes something"
        check 7 4 2 >/dev/null; report $((! $?)) "seen by the check: $edit"
    done <<'EDITS'
s/(own +)0  0  1/\10  1  1/
s/(link +)1 -1/\1-1 -1/
s/(head +)0  2 -1/\10  2  2/
s/(row 3 +4  5  )6 -1/\1-1 6/
s/(start +0  2  3  )3/\12/
s/(row 1 +)2 -1$/\1-1 -1/
s/calls: 0-1 0-3/calls: 0-1 0-1/
s/(REDUCE +sums:  2 2 1 )4/\13/
s/3.75       1.75/3.75       1.5/
s/(3        6     14  rest 0       2  )14/\113/
s/(3        6      7  slot 1       3  )14/\1new/
s/(3        6      7  slot )1/\10/
s/(5        6     10  slot 0  +)2  10/\13  10/
/0        6      0  slot 0       1  new/d
s/began: 5-6 \(1\)/began: none/
s/began: 5-6 \(1\)/began: 5-6 (2)/
s/persist: 1-2 \(3\)/persist: 0-2 (3)/
s/ended: 0-1 \(2\)/ended: 0-1 (3)/
s/ended: 3-5 \(4\)/ended: 3-6 (4)/
s/^( +3 +)4$/\15/
s/(3        6      6  slot 0       4  )0/\16/
s/contacts 4/contacts 5/
EDITS
}

# ---- pictures -----------------------------------------------------------------------------------

pictures() {
    make_png_reader || return
    steps --out a/b
    report $status "a folder in a folder is made" "$(seen)"
    is_picture a/b/layouts.png 1400 +600 15
    is_picture a/b/life.png 1400 +900 40
    steps -n 32 --steps 20 --out many
    is_picture many/life.png 1400 +6000 40
    steps -n 9 --out one; steps -n 9 --out two; steps -n 9 --seed 2 --out three
    cmp -s "$work/one/life.png" "$work/two/life.png"
    report $? "the same run, the same picture"
    ! cmp -s "$work/one/life.png" "$work/three/life.png"
    report $? "another seed, another picture"
    mkdir -p "$work/build" && : >"$work/build/nlist_steps" # the program, where make puts it
    steps
    [ $status -eq 0 ] && [ -s "$work/build/steps/life.png" ]
    report $? "pictures go to build/steps by default" "$(seen)"
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
            [ "$(cut -c1-13 "$work/err.txt")" = 'nlist_steps: ' ]
        report $? "refused: $line" "$(seen)"
    done <<'LINES'
--no-such-option
file.txt
-n
-n 0
-n 33
-n 2.5
--seed -1
--steps -1
--steps 21
--width 0
--width 17
--radius 0
--radius nan
-n 3 --points pass.txt
--out
LINES
    printf '1 2 0 0\n3 4 x 0\n' >"$work/bad.txt"
    yes '1 2 0 0' | head -n 33 >"$work/many.txt"
    for line in bad.txt many.txt none.txt; do
        steps --points $line
        [ $status -eq 1 ] && [ ! -s "$work/out.txt" ] && grep -q "$line" "$work/err.txt"
        report $? "refused: --points $line" "$(seen)"
    done
    steps --out /dev/null/here
    [ $status -eq 1 ] && grep -q /dev/null "$work/err.txt"
    report $? "refused: a folder that cannot be made" "$(seen)"
    mkdir -p "$work/taken/life.png"
    steps --out taken
    [ $status -eq 1 ] && grep -q life.png "$work/err.txt"
    report $? "refused: a file that cannot be written" "$(seen)"
}

the_figure; tables; the_check_can_fail; pictures; command_line
sum_up
