#!/bin/sh
# Measures what the sources' figures show, and how time and memory grow, into plain files: one CSV
# file for each group, and all of them in figures.csv. Their first line names the machine, the
# driver and the date. draw.sh draws from them, here or elsewhere.
#
#   measure.sh [--only GROUP,GROUP] [--out DIR] [--gpu DIR] [--cpu DIR] [--small] [--quick]
#
# `make cuda` puts this file beside the CUDA programs (--gpu, the default is where this file lies)
# and the serial ones into cpu/ (--cpu). Without CUDA programs only group cpu is measured. --small:
# does it work at all? (On the emulator, too.) --quick: fewer sizes.
#
#   insert    000, Figure 3: insertion; section 1: a box for each       walks     001: the order in
#             which cells are visited
#   order     000, section 1: the order of the cells in memory
#   keys      003: sums by key, images, reductions, filters; traversal of a tree in steps, sort and
#             sweep
#   dam       000, Figures 2 and 3: whole steps of particles that fall  nbody     002, Figures 16 to
#             18
#   lists     004, tables 6.2 to 6.7, 6.10, 6.12, 6.13, section 6.3.6   drum      004, tables 6.8
#             and 6.10, figure 6.9
#   tablets   004, tables 6.4 and 6.7: search and forces of tablets in five forms
#   turn      004, sections 6.3.3 to 6.3.6: the drum after one turn, 1M spheres (3 minutes) and 10M
#             as copies of a slice (3 minutes); 1M that have fallen into a box, 10M and 100M in
#             copies of that (1 minute); search and forces of 1M and 10M tablets in a drum and a
#             box (4 minutes); when named
#   slices    004, tables 6.4, 6.5, 6.9 and 6.11, figure 6.10, section 6.3.6 with tablets: 1M that
#             have settled in a box, 10M in copies of that; 1M and 10M in a drum that has turned, as
#             copies of a slice (6 minutes); when named
#   scaling   time and bytes from 1000 to 10 million particles          largest   100 million, and
#             as many as fit (most of a minute)
#   cpu       the serial subset; beside a GPU it runs while the GPU is busy with the others, on five
#             cores where there are 12
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
gpu=$here cpu=$here/cpu out=figures only='' size=''
groups='insert dam order walks nbody keys lists drum tablets scaling largest' named='turn slices'

has() {
    wanted=$1; shift; for word in "$@"; do [ "$word" != "$wanted" ] || return 0; done; return 1
}
program() { [ -f "$1" ] && [ -x "$1" ]; }

while [ $# -gt 0 ]; do
    case $1 in
    --only|--out|--gpu|--cpu)
        if [ $# -lt 2 ]; then echo "$1 needs a value"; exit 2; fi
        case $1 in --only) only=$(echo "$2" |
            tr , ' ') ;; --out) out=$2 ;; --gpu) gpu=$2 ;; --cpu) cpu=$2 ;; esac
        shift ;;
    --small|--quick) size=$1 ;;
    *) sed -n '2,30s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done

# shellcheck disable=SC2086
for group in $only; do
    if ! has "$group" $groups $named cpu; then
        echo "there is no group '$group'; there are: $groups $named cpu"; exit 2
    fi
done
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
if program "$gpu/bench_ugrid"; then [ "$only" ] || only="$groups cpu"; else only=cpu; fi
log=$out/figures.log
export LD_LIBRARY_PATH="$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    # what was carried along, for the serial programs
: >"$log"

# ---- the first line: what was measured on ----

cpu_name() { sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1; }
gpu_name() {
    name=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    if [ "$name" ]; then echo "$name" | sed 's/, /, driver /'; else echo "none, the emulator"; fi
}
machine() {
    if [ "$1" = cpu ]; then name="CPU $(cpu_name), one core"; else name="GPU $(gpu_name)"; fi
    echo "# $name; $(date -u +%Y-%m-%d); $1"
}

# ---- running programs: their lines go into the file of the group ----

# add FILE PROGRAM WORDS...: measures into FILE; lines of headings once.
add() {
    file=$1; shift
    echo "== $*" >>"$log"
    rm -f "$file.part"
    # shellcheck disable=SC2086
    if ! "$@" $size --csv "$file.part" >>"$log" 2>&1 </dev/null; then echo "$*" >>"$out/failed"; fi
    take "$file"
}

take() {
    [ -f "$1.part" ] || return 0
    if grep -q '^program,' "$1"; then sed 1d "$1.part" >>"$1"; else cat "$1.part" >>"$1"; fi
    rm -f "$1.part"
}

heading() {
    echo 'program,group,workload,method,n,ms,M_per_s,floor_ms,bar_ms,peer_ms,value,unit,base_ms,bar_ratio'
}

# dam FILE PROGRAM NAME SIZE METHOD...: whole steps of examples/dam_break, on average over 2000 (of
# 2 million particles 500), and on a GPU the insertion in the slowest of every 50th of them. Method
# cells: SORT, searched cell by cell.
dam() {
    file=$1 binary=$2 name=$3 n=$4; shift 4
    steps=2000
    [ "$n" -lt 1000000 ] || steps=500
    [ "$size" != --small ] || steps=20
    case $name in *_cuda) slowest=--insertion ;; *) slowest='' ;; esac
    grep -q '^program,' "$file" || heading >>"$file"
    for method; do
        how=$method
        [ "$method" != cells ] || how='sort --walk cells'
        echo "== $binary -n $n --method $how" >>"$log"
        # shellcheck disable=SC2086
        "$binary" -n "$n" --steps $steps --method $how $slowest 2>>"$log" </dev/null |
            tee -a "$log" |
            awk -v program="$name" -v method="$method" -v n="$n" '
                function row(group, rate) {
                    printf "%s,%s,dam-break,\"%s\",%d,%.6g,%.6g,0,0,0,,,0,0\n", program, group,
                        method, n, n / rate * 1e-3, rate
                }
                /^ *particles moved/ { row("dam", $3); rows++ }
                /^ *slowest step/ { row("slowest", $(NF - 3)) }
                END { exit !rows }' >>"$file" ||
            echo "$binary -n $n --method $how" >>"$out/failed"
    done
}

# ---- the groups ----

measure_insert() { add "$1" "$gpu/bench_ugrid" --only insert,boxes --runs 5; }

# Tight lists take half a minute with 524,288 particles. FIXED and they are left out of 2 million.
measure_dam() {
    sizes='2048 8192 32768 131072'
    [ ! "$size" ] || sizes=2048
    [ "$size" ] || sizes="$sizes 524288"
    for n in $sizes; do
        dam "$1" "$gpu/dam_break" dam_break_cuda "$n" fixed count sort cells list packed tight
    done
    [ "$size" ] || dam "$1" "$gpu/dam_break" dam_break_cuda 2000000 count sort cells list packed
}

measure_order() { add "$1" "$gpu/bench_order" --runs 3; }
measure_walks() {
    add "$1" "$gpu/bench_ugrid" --only sweep,beyond,periods,messages --runs 3
}
measure_nbody() { add "$1" "$gpu/bench_nbody" --only methods,direction,length --runs 5; }
measure_keys() {
    add "$1" "$gpu/bench_keys" --runs 5
    add "$1" "$gpu/bench_keys" --only buckets --runs 5
    add "$1" "$gpu/bench_traverse" --runs 5
}
measure_lists() {
    add "$1" "$gpu/bench_nlist" --only width,tablets,nocontact,history,sorting,tree,walls --runs 3
}

measure_drum() {
    case $size in
    --small) how='-n 500 --length 0.1 --steps 20' ;;
    --quick) how='-n 1000000 --length 1.6 --fill 0.1 --rpm 8 --steps 200' ;;
    *) how='-n 10000000 --length 1.6 --fill 0.1 --rpm 8 --steps 200' ;;
    esac
    how="$how --spacing 0.998 --history 0 --shuffle --out $out"
    echo "== drum $how" >>"$log"
    # shellcheck disable=SC2086
    "$gpu/drum" $how --curves "$1.part" >>"$log" 2>&1 </dev/null || echo "drum" >>"$out/failed"
    rm -f "$out/drum.stl"
    take "$1"
}

# turned FILE N COPIES STEPS: a slice of the drum after one turn, saved; then the drum of so many
# slices, from there in random order, and sorted. Such a slice has a drum of its own on the disk.
turned() {
    how='--fill 0.1 --rpm 8 --softness 0.5 --history 0' length=1.6
    if [ "$size" ]; then how='--fill 0.1 --rpm 600 --history 0' length=0.2; fi
    one=$(echo "$2 $3 $length" | awk '{ print "-n", $1 / $2, "--length", $3 / $2 }')
    one="$one $how --out $out/one"
    # shellcheck disable=SC2086
    dt=$("$gpu/drum" $one --steps 0 --check 2>>"$log" </dev/null | awk '$1 == "dt" { print $2 }')
    turn=$(echo "$dt" | awk '{ print int(7.5 / $1) }')
    [ ! "$size" ] || turn=100
    echo "== drum $one --steps $turn --save; $how --load --copies $3 --curves" >>"$log"
    # shellcheck disable=SC2086
    if "$gpu/drum" $one --steps "$turn" --save "$out/turn.drum" >>"$log" 2>&1 </dev/null &&
        "$gpu/drum" -n "$2" --length $length $how --out "$out" --load "$out/turn.drum" \
            --copies "$3" --shuffle --steps "$4" --curves "$1.part" >>"$log" 2>&1 </dev/null
    then take "$1"; else echo "drum, one turn" >>"$out/failed"; fi
    echo "$2 $turn $dt" | awk '{
        printf "drum,turn,turned,\"turned\",%d,0,0,0,0,0,%.3g,turns,0,0\n", $1,
            $2 * $3 / 7.5 }' >>"$1"
    rm -rf "$out/drum.stl" "$out/turn.drum" "$out/one"
}

measure_turn() {
    if [ "$size" ]; then
        turned "$1" 1000 2 20
    else
        turned "$1" 1000000 1 2000
        turned "$1" 10000000 80 200
    fi
    add "$1" "$gpu/bench_nlist" --only settled --runs 3
    [ "$size" ] || for heaps in 10000000 100000000; do
        add "$1" "$gpu/bench_nlist" --only settled --n $heaps --runs 2
    done
    grep -q '^program,' "$1" || heading >>"$1"
    if [ "$size" ]; then forms "$1" drum drum 500; forms "$1" box box 500; return; fi
    forms "$1" drum drum 1000000 --packed --rpm 8 --seconds 0.01
    forms "$1" box box 10000000 --packed --seconds 0.01
    forms "$1" apart box 10000000 --seconds 1e-4
    forms "$1" drum drum 10000000 --packed --rpm 8 --seconds 0.002
    forms "$1" shuffled drum 10000000 --packed --rpm 8 --seconds 0.002 --shuffle
}

measure_tablets() {
    heading >>"$1"
    if [ "$size" ]; then forms "$1" box box 500; else forms "$1" box box 1000000; fi
}

# sliced FILE N COPIES OPTIONS: a part of so many copies moves for the time that OPTIONS say, and is
# saved; then what --tables shows of all.
sliced() {
    file=$1 n=$2 copies=$3; shift 3
    one=$((n / copies)) whole="-n $n --copies $copies --load $out/part.tab --shuffle"
    rest=$(echo "$*" | sed 's/--seconds [^ ]*//')
    case "$*" in *drum*) slice="--slice $copies" rest="$rest --mesh $mesh" ;; *) slice='' ;; esac
    echo "== tablets $* $slice -n $one --save; $rest $whole --tables" >>"$log"
    # shellcheck disable=SC2086
    if "$gpu/tablets" $* $slice -n $one --save "$out/part.tab" --out "$out/tablets.png" \
            >>"$log" 2>&1 </dev/null &&
        "$gpu/tablets" $rest $whole --tables "$file.part" $steps >>"$log" 2>&1 </dev/null
    then take "$file"; else echo "tablets, $n in $copies parts" >>"$out/failed"; fi
    rm -f "$out/part.tab" "$out/tablets.png"
}

# Tablets of such a thickness, in the box and in the drum, have nearly as many neighbours as the
# source's. Slices turn between planes, which is less work; what is measured lies in a drum of
# triangles.
measure_slices() {
    flat='--band 0.001 --cap 0.0005 --rounding 0.0003' steps='' mesh=16
    how='--band 0.0015 --cap 0.0008 --steps 20'
    box="--scene box $flat --steps 20 --seconds 0.3"
    drum="--scene drum $how --packed --fill 0.1 --rpm 8 --softness 0.3 --seconds 7.5"
    if [ "$size" ]; then
        steps='--tables-steps 20' mesh=2
        sliced "$1" 200 2 --scene box $how --seconds 0.01
        sliced "$1" 200 2 --scene drum $how --packed --seconds 0.002
        return
    fi
    sliced "$1" 1000000 1 $box
    sliced "$1" 10000000 10 $box
    sliced "$1" 1000000 16 $drum
    sliced "$1" 10000000 80 $drum
}

# forms FILE WORKLOAD SCENE N OPTIONS: the lines "form: NAME search forces both entries [the
# source's three] difference".
forms() {
    file=$1 workload=$2 scene=$3 n=$4; shift 4
    how="--scene $scene -n $n --forms $* --out $out/tablets.png"
    echo "== tablets $how" >>"$log"
    # shellcheck disable=SC2086
    "$gpu/tablets" $how 2>&1 </dev/null | tee -a "$log" | awk -v n="$n" -v scene="$workload" '
        function row(part, ms, theirs) {
            printf "tablets,forms,%s,\"%s: %s\",%d,%.6g,%.6g,0,0,%.6g,,,0,0\n", scene, $2, part,
                n, ms, n / ms * 1e-3, theirs
        }
        $1 == "form:" {
            source = NF == 10
            row("search", $3, source ? $7 : 0); row("forces", $4, source ? $8 : 0)
            row("both", $5, source ? $9 : 0)
            printf "tablets,forms,%s,\"%s: entries\",%d,0,0,0,0,0,%.6g,a tablet,0,0\n", scene,
                $2, n, $6
            rows++
        }
        END { exit rows != 5 }' >>"$file" || echo "tablets" >>"$out/failed"
    rm -f "$out/tablets.png"
}

measure_scaling() {
    for b in ugrid lbvh nlist nbody; do add "$1" "$gpu/bench_$b" --only scaling --runs 5; done
}

measure_largest() {
    [ "$size" ] || add "$1" "$gpu/bench_nlist" --only width --n 100000000 --runs 2
    for b in ugrid lbvh nlist nbody; do add "$1" "$gpu/bench_$b" --only largest --runs 2; done
}

cpu_walks() { add "$1" "$cpu/bench_ugrid" --only insert,walks --runs 3; }
cpu_grids() {
    for b in ugrid lbvh; do add "$1" "$cpu/bench_$b" --only scaling --runs 3; done
    [ "$size" = --small ] || dam "$1" "$cpu/dam_break" dam_break 2048 fixed count sort list packed \
        tight
    [ "$size" ] || dam "$1" "$cpu/dam_break" dam_break 8192 fixed count sort list packed
}
cpu_lists() { add "$1" "$cpu/bench_nlist" --only history,scaling --runs 3; }
cpu_methods() { add "$1" "$cpu/bench_nbody" --only methods --runs 3; }
cpu_bodies() { add "$1" "$cpu/bench_nbody" --only direction,length,scaling --runs 3; }
cpu_parts='walks grids lists methods bodies'

# A core for each part beside a GPU, where there are many; else one after the other.
measure_cpu() {
    together=''
    if [ "$only" != cpu ] && [ "$(getconf _NPROCESSORS_ONLN)" -ge 12 ]; then together=yes; fi
    for part in $cpu_parts; do
        : >"$1.$part"
        if [ "$together" ]; then cpu_"$part" "$1.$part" & else cpu_"$part" "$1.$part"; fi
    done
    wait
    heading >>"$1"
    for part in $cpu_parts; do
        sed 1d "$1.$part" >>"$1"
        rm -f "$1.$part"
    done
}

measure() {
    csv=$out/$1.csv start=$(date +%s)
    machine "$1" >"$csv"
    "measure_$1" "$csv"
    echo "$1: $(($(date +%s) - start)) s, $(grep -vc '^#\|^program,' "$csv") values"
}

rm -f "$out/failed"
begin=$(date +%s)
# shellcheck disable=SC2086
if has cpu $only; then if [ "$only" = cpu ]; then measure cpu; else measure cpu & fi; fi
for group in $groups $named; do
    # shellcheck disable=SC2086
    if has "$group" $only; then measure "$group"; fi
done
wait
for group in $groups $named cpu; do
    if [ -f "$out/$group.csv" ]; then cat "$out/$group.csv"; fi
done >"$out/figures.csv"
echo "all: $(($(date +%s) - begin)) s; $out/figures.csv, what the programs said: $log"
if [ -f "$out/failed" ]; then echo "FAILED (see the log):"; sed 's/^/  /' "$out/failed"; exit 1; fi
