#!/bin/bash
# Does the machinery of the figures work? tests/bench/figures/test_figures.sh [--self-check]
#
# Measures the serial subset with --small (a few seconds), adds made-up lines for the groups that
# need a GPU, and draws all of it:
# every line is complete, every figure has its page, its numbers and, with gnuplot, its picture.
# What pages quote (results/quoted.txt) is compared with what was measured; FULL=1: and the kept
# pages with what draw.sh makes of the kept data (results/csv/figures.csv).
# --self-check: damages data and results in several ways, each of which must be noticed.
set -u
cd "$(dirname "$0")/../../.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
figures=tests/bench/figures

good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED   $1"; }

# ---- what must be there ----

# check_data FOLDER: says what is wrong with the lines that were measured.
check_data() {
    head -n 1 "$1/figures.csv" | grep -q '^# CPU .*; 20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]; cpu$' ||
        echo "the first line does not name machine and date"
    awk -F '"' '
        /^#/ { next }
        /^program,/ { if (split($0, name, ",") != 14) print "heading: " $0; next }
        { fields = split($1, a, ",") + split($3, b, ",") - 1
          if (NF != 3 || fields != 14) { print "not 14 fields: " $0; next }
          if (!(b[3] > 0) && !(b[8] != "" && b[9] != "")) print "no value: " $0
          if ($0 ~ /nan|inf[,"]/) print "not a number: " $0 }' "$1/figures.csv"
    local want
    while read -r want count; do
        [ "$(grep -c "^$want," "$1/figures.csv")" -ge "$count" ] ||
            echo "fewer than $count lines of $want"
    done <<'WANTED'
bench_ugrid,insert 9
bench_ugrid,walks 84
bench_ugrid,scaling 4
bench_lbvh,scaling 4
bench_nlist,history 14
bench_nlist,scaling 2
bench_nbody,methods 13
bench_nbody,direction 15
bench_nbody,length 15
bench_nbody,scaling 2
WANTED
}

# check_results FOLDER PAGE...: each with numbers, and a picture where one belongs to it.
check_results() {
    local folder=$1 page; shift
    for page; do
        if [ ! -f "$folder/$page.md" ]; then echo "no page $page"; continue; fi
        grep -q '^|.*[0-9]' "$folder/$page.md" || echo "no numbers in $page"
        grep -q '^Source: ..' "$folder/$page.md" || echo "no source in $page"
        grep -q "($page.md)" "$folder/README.md" || echo "$page is not in README.md"
        case " $tables " in *" $page "*) continue ;; esac
        [ "$have_gnuplot" ] || continue
        [ "$(head -c 4 "$folder/$page.png" 2>/dev/null | tail -c 3)" = PNG ] ||
            { echo "no picture of $page"; continue; }
        [ "$(wc -c <"$folder/$page.png")" -le 65536 ] ||
            echo "the picture of $page is larger than 64 KB"
    done
}

# check_quoted ROOT: figures of pages that differ from what was measured.
check_quoted() { awk -v root="$1" -v least=80 -f $figures/quoted.awk tests/bench/results/quoted.txt; }

# check_kept RESULTS: pages that differ from what draw.sh makes of the data beside them.
check_kept() {
    local page name
    PICTURES=no $figures/draw.sh "$1/csv" "$work/kept" >"$work/said" || cat "$work/said"
    for page in "$work"/kept/0*.md; do
        name=$(basename "$page")
        if [ "$name" = 004-tablets.md ] || [ ! -f "$1/$name" ]; then continue; fi
        sed '/^!\[/,+1d' "$1/$name" | cmp -s - "$page" || echo "$name is not what its data give"
    done
}

# ---- made-up lines of the groups that need a GPU: each curve of a figure, each cell of a table
# ----

made_up() {
    echo '# GPU made up, driver 0; 2026-01-01; all'
    echo 'program,group,workload,method,n,ms,M_per_s,floor_ms,bar_ms,peer_ms,value,unit,base_ms,bar_ratio'
    awk 'function row(program, group, workload, method, n, value, unit) {
             k += 0.01
             printf "%s,%s,%s,\"%s\",%d,%.6g,%.6g,0,0,", program, group, workload, method, n,
                 unit ? 0 : n * 1e-6 + k, n
             printf "%.6g,%s,%s,0,0\n", 2, value, unit
         }
         function keys(order, method, n) {
             k += 0.01
             printf "bench_keys_cuda,histogram,%s%d,\"%s\",10000000,%.6g,%.6g,0,0,0,%d,keys,0,0\n",
                 order, n, method, k, 10000 / k, n
         }
         function list(words, separator) { split("", how); return split(words, how, separator) }
         BEGIN {
             list("fixed count sort cells list packed tight", " ")
             for (m in how) for (n = 2048; n <= 131072; n *= 8) {
                 row("dam_break_cuda", "dam", "dam-break", how[m], n)
                 row("dam_break_cuda", "slowest", "dam-break", how[m], n)
             }
             list("COUNT;COUNT, ids only;SORT;SORT, ids only;FIXED, slots by column;FIXED, slots by row;LIST, loose;" \
                  "LIST, tight (8 cells);LIST_PACKED", ";")
             for (m in how) for (n = 2000; n <= 2e6; n *= 10) {
                 row("bench_ugrid_cuda", "insert", "shuffled", how[m], n)
                 row("bench_ugrid_cuda", "insert", "frame-coherent", how[m], n)
             }
             list("CELLS STRIPS MODULAR HYBRID", " ")
             split("2D-even- 2D-random- 3D-even- 3D-random-", kind, " ")
             split("10 46 300", near, " ")
             for (m in how) for (d in kind) for (r in near) for (n = 10000; n <= 1e6; n *= 10)
                 row("bench_ugrid_cuda", "sweep", kind[d] near[r], how[m] ", ugrid_next_range", n)
             list("DIRECT;VP;FN8;C4;C8;plain sum of floats, in order", ";")
             for (m in how) for (n = 1000; n <= 1e6; n *= 10) {
                 row("bench_nbody_cuda", "methods", "square", how[m], n)
                 row("bench_nbody_cuda", "direction", "to exact", how[m], n, 0.01, "degrees")
                 row("bench_nbody_cuda", "direction", "to plain", how[m], n, 0.02, "degrees")
                 row("bench_nbody_cuda", "length", "to exact", how[m], n, 0.01, "of the length")
                 row("bench_nbody_cuda", "length", "to plain", how[m], n, 0.02, "of the length")
             }
             list("search;slots, PER_CONTACT;slots, PER_PARTICLE;slots, REDUCE;rest, REDUCE (whole - slots);" \
                  "steps/s, PER_CONTACT;steps/s, PER_PARTICLE;steps/s, REDUCE", ";")
             split("width,packed-1M width,packed-10M width,packed-100M tablets,packed-1M tablets,packed-10M slots,box-1M slots,box-10M", kind, " ")
             for (d in kind) {
                 split(kind[d], at, ",")
                 for (m in how) for (w = 0; w <= 32; w = w ? 2 * w : 1)
                     row("bench_nlist_cuda", at[1], at[2], how[m] ", width " w, 1000000)
             }
             list("CELLS STRIPS MODULAR HYBRID LIST_PACKED", " ")
             for (m in how) for (n = 46; n <= 1000; n += 254) for (t = 16; t <= 128; t *= 2)
                 for (d = 0; d < 2; d++)
                     row("bench_ugrid_cuda", "messages", "3D-" n,
                         how[m] ", some walk, " t " bytes" (d ? ", read-only path" : ""), 300000)
             list("linked lists;linked lists, packed in 16 bytes;sorted by bucket, then starts", ";")
             for (m in how) for (n = 16384; n <= 1e7; n *= 8)
                 row("bench_keys_cuda", "buckets", "pairs", how[m], n)
             list("nocontact history sorting tree walls", " ")
             for (m in how) row("bench_nlist_cuda", how[m], "packed-10M", "some: whole step",
                 10000000)
             list("plain atomics;runs in a warp;match in a warp;shared memory", ";")
             for (m in how) for (n = 16; n <= 1e6; n *= 8) {
                 keys("sorted-", how[m], n)
                 keys("random-", how[m], n)
                 keys("skewed-", how[m], n)
             }
             list("rows, data sorted;rows as strips, data sorted;Peano, data as given", ";")
             split("2D-1M 2D-10M 3D-1M 3D-10M", kind, " ")
             for (m in how)
                 for (d in kind) row("bench_order_cuda", "order", kind[d], how[m], 1000000)
             list("CELLS STRIPS MODULAR HYBRID", " ")
             for (m in how) for (n = 20000; n <= 1e5; n += 20000) {
                 row("bench_ugrid_cuda", "periods", "3D-random-46", how[m] ", ugrid_next_range", n)
                 row("bench_ugrid_cuda", "beyond", "2D-even-1000", how[m] ", ugrid_next_range", n)
             }
             list("plain atomics, one by one;plain atomics;atomic per warp;atomic per block", ";")
             for (m in how) {
                 row("bench_keys_cuda", "image", "even", how[m], 10000000)
                 row("bench_keys_cuda", "filter", "keep-1", how[m], 10000000)
                 row("bench_keys_cuda", "filter", "keep-50", how[m], 10000000)
                 row("bench_keys_cuda", "reduce", "sum-10M", how[m], 10000000)
                 row("bench_traverse_cuda", "traverse", "boxes-1M", how[m], 1000000)
                 row("bench_traverse_cuda", "traverse", "boxes-1M", how[m] ": nodes", 1000000, 40,
                     "nodes an element")
             }
             list("one-kernel slots+rest pairs rows pairs+normal", " ")
             for (m in how) for (n = 1000000; n <= 1e7; n *= 10)
                 for (t = 1; t <= 4; t++) {
                     split("box drum apart shuffled", scene, " ")
                     row("tablets", "forms", scene[t], how[m] ": both", n)
                     row("tablets", "forms", scene[t], how[m] ": entries", n, 6, "a tablet")
                 }
             list("never sorted;sorted every step;sorted every 10 steps;sorted every 100 steps;sorted once", ";")
             for (m in how) {
                 row("drum", "drum", "stages", how[m] ": whole step", 10000000)
                 row("drum", "turn", "stages", how[m] ": whole step", 1000000)
                 row("drum", "turn", "stages", how[m] ": whole step", 10000000)
                 for (n = 1000000; n <= 1e7; n *= 10) {
                     row("tablets", "orders", "stages", how[m] ": whole step", n)
                     for (t = 1; t <= 5; t++)
                         printf "tablets,orders,time,\"%s: step\",%d,%.6g,0,0,0,0,%.6g,s,0,0\n",
                             how[m], n, 5 + t, t / 1000
                 }
                 for (t = 1; t <= 5;
                     t++) printf "drum,drum,time,\"%s: step\",%d,%.6g,0,0,0,0,%.6g,s\n", how[m], t,
                         5 + t, t / 1000
             }
             row("tablets", "history", "stages", "without history: whole step", 1000000)
             row("tablets", "history", "stages", "with history: whole step", 1000000)
             row("drum", "drum", "memory", "all: GPU memory in use", 10000000, 2000, "MiB")
             row("bench_nlist_cuda", "tree", "settled-1M", "grid: search", 1000000)
             row("bench_nlist_cuda", "settled", "settled-100M", "search, width 8", 100000000)
             row("bench_nlist_cuda", "tree", "packed-10M", "grid: memory, all", 10000000, 2000,
                 "MiB")
             list("ugrid: build;ugrid: count neighbours;lbvh: build;lbvh: count neighbours;" \
                  "nlist: half HYBRID list, 8 slots;nbody: forces, order 4", ";")
             for (m in how) for (n = 1000; n <= 1e8; n *= 10)
                 printf "bench_x_cuda,%s,uniform,\"%s\",%d,%.6g,1,0,0,0,40,B\n",
                     n < 5e7 ? "scaling" : "largest", how[m], n, n / 1e6
             list("ugrid: arrays;ugrid: work space;lbvh: arrays;lbvh: work space", ";")
             for (m in how) row("bench_x_cuda", "scaling", "bytes", how[m], 10000000, 40, "B")
         }'
}

tables='000-order-2d 000-order-2d-10m 000-order-3d 000-order-3d-10m'
tables="$tables 003-image 003-reduce 003-traversal 004-3 004-forms 004-forms-10m 004-forms-drum"
tables="$tables 004-forms-drum-10m"
tables="$tables 004-forms-apart 004-forms-shuffled 004-6.8-turn 004-6.8-turn-10m 004-6.6"
tables="$tables 004-6.9-tablets-1m 004-6.9-tablets-10m 004-6.3.6-tablets"
tables="$tables 004-6.3.6 004-6.3.6-cpu 004-6.3.6-walls 004-6.10-sorting"
tables="$tables 004-6.12 004-settled 004-settled-large 004-6.8 004-tablets largest"
serial='000-3-cpu 001-3d-cpu 002-16 002-17 002-18 004-6.3.6-cpu 004-tablets'
serial="$serial scaling-cpu scaling-bytes"
all="000-2 000-3 000-3-slowest 000-3-coherent 000-3-cpu 000-buckets 001-messages 001-messages-bytes
     001-2d-even 001-2d-random 001-3d-even 001-3d-random 001-2d-agents 001-3d-agents
     001-2d-even-best 001-2d-random-best 001-3d-even-best 001-3d-random-best 001-3d-cpu
     003-keys-sorted 003-keys-random 003-keys-skewed 003-filter
     002-16 002-17 002-18 004-6.2 004-6.3 004-6.3-10m 004-6.4 004-6.5 004-6.9
     004-6.4-tablets 004-6.5-tablets 004-6.10-1m 004-6.10-10m $tables
     scaling-gpu scaling-cpu scaling-bytes"
have_gnuplot=$(command -v gnuplot)

# ---- running it ----

# expect NAME COMMAND...: it must say nothing.
expect() {
    local name=$1 said; shift
    said=$("$@")
    if [ ! "$said" ]; then good; else bad "$name"; echo "$said" | sed 's/^/    | /'; fi
}

measure() {
    if $figures/measure.sh --small --gpu none --cpu build/bench/test --out "$work/data" >"$work/said" \
        2>&1; then
        good; return
    fi
    bad 'measure.sh'; sed 's/^/    | /' "$work/said" | head -n 20
    tail -n 20 "$work/data/figures.log" | sed 's/^/    | /'
}

draw() { # DATA RESULTS
    if $figures/draw.sh "$1" "$2" >"$work/said" 2>&1; then good; return; fi
    bad "draw.sh $1"; sed 's/^/    | /' "$work/said"
}

run_all() {
    measure
    expect 'the lines of the serial subset' check_data "$work/data"
    draw "$work/data" "$work/serial"
    # shellcheck disable=SC2086
    expect 'figures of the serial subset' check_results "$work/serial" $serial
    mkdir -p "$work/both" && { cat "$work/data/figures.csv"; made_up; } >"$work/both/figures.csv"
    draw "$work/both" "$work/results"
    # shellcheck disable=SC2086
    expect 'all figures' check_results "$work/results" $all
    expect 'what pages quote' check_quoted .
    [ ! "${FULL:-}" ] || expect 'the pages of the kept data' check_kept tests/bench/results
    if [ ! "$have_gnuplot" ]; then
        skipped=1; echo 'skipped  the pictures of the figures: no gnuplot'
    fi
}

# ---- can it fail? ----

# notice NAME COMMAND...: it must say something.
notice() {
    local name=$1; shift
    if [ "$("$@")" ]; then good; else bad "self-check: $name was not noticed"; fi
}

# damaged NAME SED: lines that a sed command has damaged.
damaged() {
    mkdir -p "$work/damaged" && sed "$2" "$work/good/figures.csv" >"$work/damaged/figures.csv"
    notice "$1" check_data "$work/damaged"
}

# Copies of the pages and their figures, of which one is wrong.
misquote() { # NAME FILE SED
    rm -rf "$work/root"
    mkdir -p "$work/root/docs" "$work/root/tests/bench/results"
    cp docs/then-and-now.md "$work/root/docs/"
    cp -r tests/bench/results "$work/root/tests/bench/"
    sed -i "$3" "$work/root/$2"
    notice "$1" "${4:-check_quoted}" "$work/root${5:-}"
}

# Lines as the serial programs write them, the least that check_data asks for.
good_lines() {
    echo '# CPU made up, one core; 2026-01-01; cpu'
    echo 'program,group,workload,method,n,ms,M_per_s,floor_ms,bar_ms,peer_ms,value,unit,base_ms,bar_ratio'
    local what
    for what in ugrid,insert ugrid,walks ugrid,scaling lbvh,scaling nlist,history nlist,scaling \
        nbody,methods nbody,direction \
        nbody,length nbody,scaling; do
        yes "bench_$what,some,\"a, b\",1000,1.5,1,0,0,0,,,0,0" | head -n 90
    done
}

self_check() {
    mkdir -p "$work/good" && good_lines >"$work/good/figures.csv"
    expect 'self-check: good lines' check_data "$work/good"
    damaged 'a first line without date' '1s/2026.*//'
    damaged 'a group that is missing' '/^bench_lbvh/d'
    damaged 'a lost field' '30s/,0,0,0,,,0,0$/,0,0,,,0,0/'
    damaged 'a time of 0' '40s/1000,1.5/1000,0/'
    damaged 'a time that is no number' '50s/1000,1.5/1000,nan/'
    damaged 'another heading' '2s/,unit//'
    made_up >"$work/good/figures.csv"
    $figures/draw.sh "$work/good" "$work/pages" >/dev/null 2>&1
    expect 'self-check: a good page' check_results "$work/pages" 000-2
    notice 'a page that is missing' check_results "$work/pages" 000-2-cpu
    sed -i '/^|/d' "$work/pages/000-3.md"
    notice 'a page without numbers' check_results "$work/pages" 000-3
    if [ "$have_gnuplot" ]; then
        : >"$work/pages/002-16.png"
        notice 'an empty picture' check_results "$work/pages" 002-16
    fi
    misquote 'a figure that a page has wrong' docs/then-and-now.md 's/\[252\]/[262]/'
    misquote 'a figure that was measured anew' tests/bench/results/004-6.8.md 's/| 252 /| 262 /'
    misquote 'a page mended by hand alone' tests/bench/results/000-buckets.md \
        's/^Ours: as/Ours: so/' check_kept /tests/bench/results
    mkdir -p "$work/none"
    if $figures/draw.sh "$work/none" "$work/pages" >/dev/null 2>&1; then
        bad 'self-check: no data was not noticed'
    else
        good
    fi
}

if [ "${1:-}" = --self-check ]; then self_check; else run_all; fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
