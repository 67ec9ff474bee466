# sources.sh - the figures and tables, in order; read by draw.sh, which has the functions.
# shellcheck shell=bash disable=SC2154,SC2016

particles='particles'

# ---- 000: Barbieri, Cardellini, Filippone ----

gtx660='Barbieri, Cardellini, Filippone: Fast Uniform Grid Construction on GPGPUs Using Atomic Operations'
heading '000: uniform grids as linked lists (GTX 660)'

dam_curves() {
    curve 'FIXED ("Fixed Grid")' "$1" "$2 && method == \"fixed\"" n rate
    curve 'COUNT (not in the source)' "$1" "$2 && method == \"count\"" n rate
    curve 'SORT by cells ("Sorting")' "$1" "$2 && method == \"cells\"" n rate
    curve 'SORT by strips (not in the source)' "$1" "$2 && method == \"sort\"" n rate
    curve 'LIST ("Linked List Loose")' "$1" "$2 && method == \"list\"" n rate
    curve 'LIST tight ("Linked List Tight")' "$1" "$2 && method == \"tight\"" n rate
    curve 'LIST_PACKED ("Loose Packed")' "$1" "$2 && method == \"packed\"" n rate
}

dam_figure() {
    begin "$1" "$2" "$particles" 'million particle updates/s, whole steps' n
    source_is "$gtx660, Figure 2: million particle updates per second against the number of" \
              "particles, the average of 2000 steps in 64 x 64 x 64 cells; NVIDIA GeForce GTX" \
              "660. No numbers in the text; it says that LIST_PACKED, LIST and FIXED were fastest" \
              "at 64K particles, tight lists at 8K, SORT at 512K, that LIST_PACKED was ahead of" \
              "the others up to 512K and up to 7 times SORT, and SORT ahead beyond."
    note 'Ours is examples/dam_break: the same forces and start; in SORT positions, velocities' \
         'and ids are kept in the order of the cells. 2 million particles: 500 steps.'
    dam_curves ours "$3"
    draw
}
dam_figure 000-2 'Whole steps of falling particles (000, Figure 2)' \
    'program == "dam_break_cuda" && group == "dam"'
dam_figure 000-2-cpu 'Whole steps of falling particles, one CPU core (000, Figure 2)' \
    'program == "dam_break" && group == "dam"'

slowest_figure() {
    begin "$1" "$2" "$particles" 'million particles inserted/s' n
    source_is "$gtx660, Figure 3: particles inserted per second against their number, in the" \
              "slowest of 2000 steps; NVIDIA GeForce GTX 660. The text gives two numbers, shown" \
              "as crosses: about 2000 M/s at 1M by the best method, and 105 M/s at 16K by the" \
              "slowest but SORT. SORT was up to 17 times slower than the best."
    note 'Ours is examples/dam_break: the slowest of every 50th of 2000 steps (2 million particles:' \
         '500), built again from its positions. COUNT and SORT also copy the positions.'
    dam_curves ours "$3"
    if [ "$curves" -gt 0 ]; then points 'source (GTX 660)' '1000000 2000' '16384 105'; fi
    draw
}
slowest_figure 000-3-slowest 'Insertion in the slowest step of falling particles (000, Figure 3)' \
    'program == "dam_break_cuda" && group == "slowest"'

insert_figure() {
    begin "$1" "$2" "$particles" 'million particles inserted/s' n
    source_is "$gtx660, Figure 3: particles inserted per second against their number, in the" \
              "slowest of 2000 steps; NVIDIA GeForce GTX 660. The text gives two numbers, shown" \
              "as crosses: about 2000 M/s at 1M by the best method, and 105 M/s at 16K by the" \
              "slowest but SORT. SORT was up to 17 times slower than the best."
    note 'Ours: 64 x 64 x 64 cells, the left half filled. COUNT and SORT also copy the positions' \
         'into the order of the cells, unless "ids only".'
    local method
    for method in COUNT 'COUNT, ids only' SORT 'SORT, ids only' 'FIXED, slots by column' \
        'FIXED, slots by row' \
        'LIST, loose' 'LIST, tight (8 cells)' LIST_PACKED; do
        curve "$method" "$4" "$3 && group == \"insert\" && method == \"$method\"" n rate
    done
    if [ "$curves" -gt 0 ] && [ "$1" != 000-3-cpu ]; then
        points 'source (GTX 660)' '1000000 2000' '16384 105'
    fi
    draw
}
insert_figure 000-3 'Insertion, particles shuffled (000, Figure 3)' \
    'program == "bench_ugrid_cuda" && workload == "shuffled"' ours
insert_figure 000-3-coherent 'Insertion, particles nearly in order (000, Figure 3)' \
    'program == "bench_ugrid_cuda" && workload == "frame-coherent"' ours
insert_figure 000-3-cpu 'Insertion, one CPU core, shuffled (000, Figure 3)' \
    'program == "bench_ugrid"' ours

begin 000-buckets 'Pairs of key and value into buckets (000, introduction)' pairs \
    'million pairs/s' n
source_is "$gtx660, introduction: about 2 billion pairs/s by its lists, with 1M of them, NVIDIA" \
          "GeForce GTX 660 (the cross); the hash tables of Alcantara et al., which it names, about" \
          "250 million/s, for no size that it gives."
note 'Ours: as many buckets as pairs; no bucket is ever full. Packed: key, value and link side by side.'
for method in 'linked lists' 'linked lists, packed in 16 bytes' 'sorted by bucket, then starts'; do
    curve "$method" ours "group == \"buckets\" && method == \"$method\"" n rate
done
if [ "$curves" -gt 0 ]; then points 'source, lists (GTX 660)' '1000000 2000'; fi
draw

# order_figure NAME TITLE WORKLOAD: ms by curve (down) and by how the particles lie (across).
order_table() {
    select_rows "$all" 'method "\t" ms' | awk -F '\t' "$number_text"'
        { at = index($1, ","); curve = substr($1, 1, at - 1)
          if (!(curve in seen)) { seen[curve]; curves[++count] = curve }
          ms[curve, substr($1, at + 2)] = $2 }
        END {
            split("data sorted;data as given;linked lists, data as given", how, ";")
            print "| cells along | data sorted, ms | of rows | data as given, ms | of rows |",
                "linked lists, data as given, ms | of rows |"
            print "|---|---:|---:|---:|---:|---:|---:|"
            for (k = 1; k <= count; k++) {
                line = "| " curves[k] " "
                for (h = 1; h <= 3; h++) {
                    own = ms[curves[k], how[h]]
                    line = line "| " (own ? text(own) : "–") " | " \
                        (own ? sprintf("%.2f", own / ms["rows", how[h]]) : "–") " "
                }
                print line "|"
            }
        }'
}
order_page() {
    begin "$1" "$2" '' '' ''
    source_is "$gtx660, section 1: a space-filling curve (Morton, Peano, Hilbert) uses caches better" \
              "where the data of the elements is sorted, and is quite non influential where it is" \
              "not. No figure."
    all="group == \"order\" && workload == \"$3\""
    note 'Ours: bench_order, a thread for each particle counts the neighbours in the cells around it,' \
         'in grids of 729^2 and 81^3 cells as wide as the radius. All orders read the number of a' \
         'cell from a table. Data as given: in random order; threads are in the order of the data.' \
         'Strips: three cells along x are one range, which only rows allow.'
    rm -f "$results/$1.png" "$results/$1.md"
    if any "$all"; then page order_table; else echo "- $2" >>"$missing"; fi
}
order_page 000-order-2d 'The order of the cells, 2D, 1M (000, section 1)' 2D-1M
order_page 000-order-2d-10m 'The order of the cells, 2D, 10M (000, section 1)' 2D-10M
order_page 000-order-3d 'The order of the cells, 3D, 1M (000, section 1)' 3D-1M
order_page 000-order-3d-10m 'The order of the cells, 3D, 10M (000, section 1)' 3D-10M

# ---- 001: Chisholm, Richmond, Maddock ----

titan='Chisholm, Richmond, Maddock: Optimising Scattered Memory Access of Uniform Spatial Partitioning (poster)'
titan_says='NVIDIA Titan X (Pascal). No numbers in the text but factors over the usual 27 cells ("Default", ours: CELLS): in 2D'
titan_says="$titan_says Modular up to 2.5 (300k agents, 46 neighbours), more than 2 with small neighbourhoods; in 3D Hybrid 4"
titan_says="$titan_says to 1.25 as the neighbourhood grows, over 5 at best (40k agents, 47 neighbours), and fastest everywhere."
heading '001: the order in which cells are visited (Titan X Pascal)'

walk_curves() { # FILTER X
    local walk
    for walk in CELLS STRIPS MODULAR HYBRID; do
        curve "$walk" ours "$1 && method == \"$walk, ugrid_next_range\"" "$2" ms
    done
}
# walk_figure NAME TITLE DIM KIND (even, random) WHAT (neighbors, agents)
walk_figure() {
    local kind=$3-$4-
    if [ "$5" = agents ]; then
        begin "$1" "$2" agents 'ms for all agents' n
        source_is "$titan, a cross-section of the sweep: time against the number of agents at 46" \
                  "neighbours; $titan_says"
        walk_curves "(group == \"sweep\" || group == \"periods\") && workload == \"${kind}46\"" n
    else
        begin "$1" "$2" 'neighbours within the radius' 'ms for all of 100,000 agents' \
            'set logscale xy; set xtics (10, 20, 46, 100, 200, 300, 600, 1000)'
        source_is "$titan, results in ${3:0:1} dimensions: time against the size of the" \
                  "neighbourhood, agents spread evenly (left) or anywhere (right), 100k agents;" \
                  "$titan_says"
        walk_curves "(group == \"sweep\" || group == \"beyond\") && n == 100000 &&
                     index(workload, \"$kind\") == 1" \
            "substr(workload, ${#kind} + 1)"
    fi
    note 'Ours: a kernel that counts neighbours with ugrid_next_range; grid sorted, cells as wide' \
         'as the radius. HYBRID has no meaning of its own in 2D (strips along x, labels along y).'
    draw
}
walk_figure 001-2d-even   '2D, agents on a lattice: neighbourhood size (001)' 2D even neighbors
walk_figure 001-2d-random '2D, agents anywhere: neighbourhood size (001)' 2D random neighbors
walk_figure 001-3d-even   '3D, agents on a lattice: neighbourhood size (001)' 3D even neighbors
walk_figure 001-3d-random '3D, agents anywhere: neighbourhood size (001)' 3D random neighbors
walk_figure 001-2d-agents '2D, agents anywhere, 46 neighbours: number of agents (001)' 2D random \
    agents
walk_figure 001-3d-agents '3D, agents anywhere, 46 neighbours: number of agents (001)' 3D random \
    agents

# best_of KIND: lines "agents neighbours walk factor", the fastest at each point and how many times
# faster than CELLS.
best_of() {
    select_rows "group == \"sweep\" && index(workload, \"$1\") == 1" \
        "n \"\\t\" substr(workload, ${#1} + 1) \"\\t\" method \"\\t\" ms" |
        awk -F '\t' '{ sub(/,.*/, "", $3); at = $1 "\t" $2
                       if ($3 == "CELLS") cells[at] = $4
                       if (!(at in best) || $4 < best[at]) { best[at] = $4; who[at] = $3 } }
                     END { for (at in best) printf "%s\t%s\t%.2f\n", at, who[at],
                         cells[at] / best[at] }' | sort -g -k 1,1 -k 2,2
}
best_table() {
    awk -F '\t' '{ agents[$1]; neighbors[$2]; cell[$1, $2] = $3 " " $4 }
        function ordered(list, sorted,    k, m, count, t) {
            count = 0
            for (k in list) sorted[++count] = k + 0
            for (k = 1; k <= count; k++)
                for (m = k + 1; m <= count; m++)
                    if (sorted[m] < sorted[k]) { t = sorted[k]; sorted[k] = sorted[m];
                                                 sorted[m] = t }
            return count }
        END { a = ordered(agents, x); b = ordered(neighbors, y)
              line = "| agents, neighbours "; rule = "|---:"
              for (k = 1; k <= b; k++) { line = line "| " y[k] " "; rule = rule "|---" }
              print line "|"; print rule "|"
              for (m = 1; m <= a; m++) {
                  line = "| " x[m] " "
                  for (k = 1; k <= b; k++) line = line "| " cell[x[m], y[k]] " "
                  print line "|" } }' "$work/best"
}
# best_figure NAME TITLE KIND
best_figure() {
    local walk color=0
    begin "$1" "$2" agents 'neighbours within the radius' 'set logscale xy
set xtics ("10k" 1e4, "40k" 4e4, "100k" 1e5, "300k" 3e5, "1M" 1e6)
set ytics (10, 20, 46, 100, 200, 300)
set xrange [8e3:1.3e6]
set yrange [8:400]'
    source_is "$titan, the scatter plots: the fastest technique by number of agents and size of" \
              "the neighbourhood; $titan_says"
    note 'At each point the fastest of the four, and how many times faster than CELLS. HYBRID was' \
         'not in the 2D comparison of the source.'
    best_of "$3" >"$work/best"
    rm -f "$results/$1.png" "$results/$1.md"
    if [ ! -s "$work/best" ]; then echo "- $2" >>"$missing"; return; fi
    all="group == \"sweep\""
    { picture_head
      echo "set pointsize 2.2"
      printf 'plot '
      for walk in CELLS STRIPS MODULAR HYBRID; do
          awk -F '\t' -v walk="$walk" '$3 == walk' "$work/best" >"$work/best.$walk"
          color=$((color + 1))
          [ -s "$work/best.$walk" ] || continue
          printf "'%s' using 1:2 with points linetype $color pointtype 7 title '%s', \\\\\n    " \
              "$work/best.$walk" "$walk"
      done
      printf "'%s' using 1:2:4 with labels offset 0,1.1 font 'DejaVu Sans,8' notitle\n" \
          "$work/best"; } >"$work/plot.gnuplot"
    plot
    page best_table
}
best_figure 001-2d-even-best   '2D, agents on a lattice: the fastest walk (001)' 2D-even-
best_figure 001-2d-random-best '2D, agents anywhere: the fastest walk (001)' 2D-random-
best_figure 001-3d-even-best   '3D, agents on a lattice: the fastest walk (001)' 3D-even-
best_figure 001-3d-random-best '3D, agents anywhere: the fastest walk (001)' 3D-random-

begin 001-3d-cpu '3D, agents anywhere, one CPU core: neighbourhood size (001)' \
    'neighbours within the radius' 'ms for all agents' \
    'set logscale xy; set xtics (10, 20, 46, 100, 200, 300)'
source_is "$titan; the serial code has no such figure"
for walk in 'SORT, CELLS, ugrid_next' 'SORT, STRIPS, ugrid_next' 'SORT, MODULAR, ugrid_next' \
    'SORT, HYBRID, ugrid_next' \
    'LIST, CELLS, ugrid_next' 'SORT, STRIPS, ugrid_next_range'; do
    curve "$walk" ours "program == \"bench_ugrid\" && group == \"walks\" &&
                        index(workload, \"3D-\") == 1 && method == \"$walk\"" \
        'substr(workload, 4)' ms
done
draw

# message_curves X BYTES FILTER: the walks and packed lists; strips also through the read-only path.
message_curves() {
    local walk
    for walk in CELLS STRIPS MODULAR HYBRID LIST_PACKED; do
        curve "$walk" ours "group == \"messages\" && $3 && index(method, \"$walk, \") == 1 &&
                            method ~ /, $2 bytes\$/" "$1" ms
    done
    for walk in STRIPS LIST_PACKED; do
        curve "$walk, read-only" ours "group == \"messages\" && $3 &&
            method ~ /^$walk, .*$2 bytes, read-only/" "$1" ms
        curve "$walk, texture" ours "group == \"messages\" && $3 &&
            method ~ /^$walk, .*$2 bytes, texture/" "$1" ms
    done
}
messages_note='300,000 agents anywhere in 3D. Texture: by a texture object; read-only: by __ldg (000,'
messages_note="$messages_note section 2: packed lists read through textures are up to 45 % faster)."
begin 001-messages '3D, messages of 16 bytes, up to 1000 neighbours (001)' \
    'neighbours within the radius' 'ms for all agents' 'set logscale xy; set xtics (46, 300, 600, 1000)'
source_is "$titan; its plots go beyond 300 neighbours, its messages are a location alone"
note "$messages_note"
message_curves 'substr(workload, 4)' 16 1
draw
begin 001-messages-bytes '3D, 300 neighbours: size of a message (001)' \
    'bytes read of each neighbour' 'ms for all agents' 'set logscale xy; set xtics (16, 32, 64, 128)'
source_is "$titan; the sizes of its messages are not varied"
note "$messages_note"
message_curves 'substr(method, match(method, /[0-9]+ bytes/)) + 0' '[0-9]+' 'workload == "3D-300"'
draw

# ---- 002: Kalms ----

kalms='Kalms: High-performance particle simulation using CUDA'
gtx980='Intel Xeon E5-1650 v3 and NVIDIA GeForce GTX 980'
heading '002: hierarchical forces in 2D (GTX 980)'

even='workload !~ /soft/'
gpu_methods="program == \"bench_nbody_cuda\" && group == \"methods\" && $even"
cpu_methods="program == \"bench_nbody\" && group == \"methods\" && $even"
begin 002-16 'Time of one evaluation of all forces (002, Figure 16)' bodies 'ms' n
source_is "$kalms, Figure 16: time against the number of bodies for CPU (\"optimized\": 1/25 of a" \
          "plain loop), GPU brute force, force nodes and virtual particles; $gtx980. No numbers" \
          "in the text but two ratios at 100,000 bodies: GPU brute force 40 times faster than the" \
          "CPU, the two methods roughly 5 times faster than brute force."
note 'Ours: sort and tree included; trees of one depth, as in the source. C4 is not in the' \
     'source: order 4, Chebyshev sources. Where n is too large the direct sum is scaled from a' \
     'smaller n. "Plain loop / 25" is the source'"'"'s curve "CPU (Optimized)": the loop that one' \
     'writes first, as if it were 25 times as fast.'
curve 'GPU: direct sum' ours "$gpu_methods && method ~ /^DIRECT/" n ms
curve 'GPU: virtual particles' ours "$gpu_methods && method == \"VP\"" n ms
curve 'GPU: force nodes' ours "$gpu_methods && method == \"FN8\"" n ms
curve 'GPU: C4' ours "$gpu_methods && method == \"C4\"" n ms
curve 'CPU: direct sum, one core' cpu:1 "$cpu_methods && method ~ /^DIRECT/" n ms
curve 'CPU: virtual particles' cpu:2 "$cpu_methods && method == \"VP\"" n ms
curve 'CPU: force nodes' cpu:3 "$cpu_methods && method == \"FN8\"" n ms
curve 'CPU: C4' cpu:4 "$cpu_methods && method == \"C4\"" n ms
curve 'CPU: plain loop / 25' cpu:5 "$cpu_methods && method ~ /^plain loop/" n 'ms / 25'
draw

# error_figure NAME TITLE GROUP YLABEL WHAT PROGRAM
error_figure() {
    local of="program == \"$6\" && group == \"$3\"" exact plain
    exact="$of && workload == \"to exact\"" plain="$of && workload == \"to plain\""
    begin "$1" "$2" bodies "$4" n
    source_is "$kalms, $5 against the number of bodies; $gtx980. No numbers in the text; it says" \
              "that directions agree, and that lengths are off by more the more bodies there are," \
              "and takes float precision for the reason. Its reference is a direct sum in floats."
    note 'Solid: the error to a direct sum in double. Dashed: to a plain sum of floats in order,' \
         'as the source does. The curve "plain sum of floats" is the error of that reference' \
         'itself.'
    curve 'virtual particles' ours "$exact && method == \"VP\"" n value
    curve 'force nodes' ours "$exact && method == \"FN8\"" n value
    curve 'plain sum of floats' ours "$exact && method ~ /^plain/" n value
    curve 'our direct sum, floats' ours "$exact && method == \"DIRECT\"" n value
    curve 'C4' ours "$exact && method == \"C4\"" n value
    curve 'C8' ours "$exact && method == \"C8\"" n value
    curve 'virtual particles, to floats' theirs:1 "$plain && method == \"VP\"" n value
    curve 'force nodes, to floats' theirs:2 "$plain && method == \"FN8\"" n value
    draw
}
on=bench_nbody_cuda where=''
any 'program == "bench_nbody_cuda" && group == "direction"' ||
    { on=bench_nbody; where=', one CPU core'; }
error_figure 002-17 "Error of the force's direction$where (002, Figure 17)" direction \
    'mean angle in degrees' \
    'Figure 17: average error in force direction, in degrees,' $on
error_figure 002-18 "Error of the force's length$where (002, Figure 18)" length \
    'mean error, part of the length' \
    'Figure 18: average error in force vector length,' $on

# ---- 003: NVIDIA developer blog ----

blog='NVIDIA developer blog'
blog_says='No times in our copy of the text.'
heading '003: atomics and traversal (Kepler and Maxwell)'

# keys_figure NAME TITLE ORDER (sorted, random)
keys_figure() {
    local method
    begin "$1" "$2" 'keys' 'million elements/s' 'set logscale xy'
    source_is "$blog: Voting and Shuffling to Optimize Atomic Operations; Fast Histograms Using" \
              "Shared Atomics on Maxwell. $blog_says It says that aggregation pays for many keys," \
              "more than fit into shared memory, where neighbouring threads have equal keys, and" \
              "not where the keys are few or without order."
    note 'Ours: integers added by key, 32 bits. Runs: neighbouring lanes with equal keys are added' \
         'up by shuffles first; match: all equal keys of a warp. Shared memory: a histogram for' \
         'each block, up to 8192 keys.'
    for method in 'plain atomics' 'runs in a warp' 'match in a warp' 'shared memory'; do
        curve "$method" ours "group == \"histogram\" && index(workload, \"$3-\") == 1 &&
            method == \"$method\"" value rate
    done
    draw
}
keys_figure 003-keys-sorted 'Sums by key, elements in the order of their keys (003)' sorted
keys_figure 003-keys-random 'Sums by key, elements in any order (003)' random
keys_figure 003-keys-skewed 'Sums by key, any order, half of the elements on 0.4 % of the keys (003)' \
    skewed

begin 003-filter 'Filtering: a counter for all (003)' 'per cent that pass' 'million elements/s' \
    'set xrange [0:105]; set yrange [0:*]'
source_is "$blog: Optimized Filtering with Warp-Aggregated Atomics. $blog_says It says that" \
          "one atomic for a warp needs up to 32 times fewer of them."
note 'Ours: positive integers, packed in any order. nvcc 13.0 aggregates plain atomics to one address' \
     'by itself (VOTE, POPC, one ATOMG for the lanes of a warp, SHFL); "one by one" has an address' \
     'whose equality it cannot see, and an ATOMG of each lane.'
for method in 'plain atomics, one by one' 'plain atomics' 'atomic per warp' 'atomic per block'; do
    curve "$method" ours "group == \"filter\" && method == \"$method\"" 'substr(workload, 6)' rate
done
draw

# blog_table GROUP: methods down; how many times as fast as the first, nodes and lanes at work where
# they were counted.
blog_table() {
    select_rows "group == \"$1\"" 'workload "\t" method "\t" ms "\t" value' |
        awk -F '\t' "$number_text"'
        $2 ~ /: (nodes|lanes)$/ {
            what = $2; sub(/.*: /, "", what); sub(/: [a-z]*$/, "", $2)
            counted[$1, $2, what] = $4; next
        }
        { if (!($1 in base)) base[$1] = $3
          at[++count] = $1; method[count] = $2; ms[count] = $3 }
        END {
            print "| set | method | ms | first / this | nodes an element | % of lanes at work |"
            print "|---|---|---:|---:|---:|---:|"
            for (k = 1; k <= count; k++) {
                nodes = counted[at[k], method[k], "nodes"]
                lanes = counted[at[k], method[k], "lanes"]
                print "| " at[k] " | " method[k] " | " text(ms[k]) " | " text(base[at[k]] / ms[k]) \
                    " | " (nodes ? text(nodes) : "–") " | " (lanes ? text(lanes) : "–") " |"
            }
        }'
}
# blog_page NAME TITLE GROUP SOURCE NOTE
blog_page() {
    begin "$1" "$2" '' '' ''
    source_is "$blog: $4"
    notes=$'\n\n'$5
    all="group == \"$3\""
    rm -f "$results/$1.png" "$results/$1.md"
    if any "$all"; then page blog_table "$3"; else echo "- $2" >>"$missing"; fi
}
blog_page 003-image 'Images: 256 bins for each of three colours (003)' image \
    "Fast Histograms Using Shared Atomics on Maxwell. $blog_says Two kernels: a histogram for each block, in shared memory; their sum. It says that some inputs use some bins much more than others." \
    'Pixels of 4 bytes. Even: every value as often; bell: means of four, so that the middle is frequent; one colour: three bins for all.'
blog_page 003-reduce 'The sum of everything (003)' reduce \
    "Faster Parallel Reductions on Kepler. $blog_says It says that shuffles are ahead of shared memory." \
    'Unsigned integers, read once; each variant ends with atomics to one address. nvcc 13.0 adds the lanes of a warp up before a plain atomic (REDUX); "one by one": an atomic of each lane.'
blog_page 003-traversal 'All pairs that overlap: traversal in steps (003)' traverse \
    "Thinking Parallel, Part II: Tree Traversal on the GPU; Part I: sort and sweep. The one time in our copy is of Part III: about 0.25 ms for the traversal, of a number of objects that it does not give. Part II says that sort and sweep suffers from high execution divergence." \
    'Ours: boxes in a cube, about 14 overlap with each; one tree for all. Two sizes: one in 3600 is ten times as large. Any order: element k has thread k. Simultaneous: pairs of nodes, in rounds. lbvh_cuda_count_pairs is the function of the library: a warp walks together. Sort and sweep: a thread for each box, in the order in which they begin along x, tests those that begin before it ends ("nodes" are these tests).'

# ---- 004: Kureck ----

kureck='Kureck: Design and Implementation of Massively Parallel Algorithms on GPUs for Particle Simulation'
maxwell='NVIDIA GeForce GTX Titan X (Maxwell), CUDA 7.5'
heading '004: contact lists (Titan X Maxwell)'

# width_table GROUP WORKLOAD: widths down; ours and the source's.
width_table() {
    select_rows "group == \"$1\" && workload == \"$2\" && method ~ /, width/" \
        'method "\t" ms "\t" peer' |
        awk -F '\t' "$number_text"'
            function steps(v) { return v > 0 ? text(1000 / v) : "–" }
            function time(v) { return v > 0 ? text(v) : "–" }
            { at = index($1, ", width "); width = substr($1, at + 8); what = substr($1, 1, at - 1)
              ours[what, width] = $2; theirs[what, width] = $3; all[width] }
            function both(what, w) {
                return "| " time(ours[what, w]) " | " time(theirs[what, w]) " " }
            function both_steps(what, w) {
                return "| " steps(ours[what, w]) " | " steps(theirs[what, w]) " " }
            END {
                printf "| slots | search | source | slots, REDUCE | source, per contact | slots, PER_PARTICLE | source, per particle "
                printf "| slots, PER_CONTACT | rest, REDUCE | source | steps/s, REDUCE | source, per contact "
                print "| steps/s, PER_PARTICLE | source, per particle | steps/s, PER_CONTACT |"
                print "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
                for (w = 0; w <= 32; w = w ? 2 * w : 1) {
                    if (!(w in all)) continue
                    line = "| " w " " both("search", w) both("slots, REDUCE",
                        w) both("slots, PER_PARTICLE", w)
                    line = line "| " time(ours["slots, PER_CONTACT", w]) " "
                    line = line both("rest, REDUCE (whole - slots)", w)
                    line = line both_steps("steps/s, REDUCE", w)
                    line = line both_steps("steps/s, PER_PARTICLE", w)
                    print line "| " steps(ours["steps/s, PER_CONTACT", w]) " |"
                }
            }'
    select_rows "group == \"$1\" && workload == \"$2\" && method ~ /^without a list/" \
        '"\nWithout a list: " 1000 / ms " steps/s; the source'"'"'s old code " 1000 / peer "."'
    select_rows "group == \"$1\" && workload == \"$2\" && method == \"neighbours\"" \
        '"\nNeighbours: " value " of each."'
}
# width_figure NAME TITLE GROUP WORKLOAD WHAT NOTE
width_figure() {
    local of="group == \"$3\" && workload == \"$4\"" mode x
    x="$(printf 'substr(method, index(method, ", width ") + 8)')"
    x="($x == 0 ? 0 : int(log($x) / log(2) + 1.5))"
    begin "$1" "$2" 'slots per row' 'steps/s' 'set logscale y
set xtics ("0" 0, "1" 1, "2" 2, "4" 3, "8" 4, "16" 5, "32" 6)
set xrange [-0.3:6.3]'
    source_is "$kureck, $5; $maxwell. Times in ms. \"Rest\" is the dynamic part of the hybrid list." \
              "Its thread per contact adds up the slots of a particle in the warp (sections 5.1 and" \
              "6.3.1), which is our REDUCE; the rest, in no order, by an atomic for each contact."
    if [ "$3" != slots ]; then note "Ours: spheres in a dense lattice that swing about their sites. $6"
    else note "$6"; fi
    for mode in PER_CONTACT PER_PARTICLE REDUCE; do
        curve "ours, $mode" ours "$of && index(method, \"steps/s, $mode\") == 1" "$x" '1000 / ms'
    done
    for mode in PER_PARTICLE REDUCE; do
        curve "source, $([ $mode = REDUCE ] && echo per contact, reduced || echo per particle)" \
            theirs:$((curves - 1)) \
            "$of && peer > 0 && index(method, \"steps/s, $mode\") == 1" "$x" '1000 / peer'
    done
    rm -f "$results/$1.png" "$results/$1.md"
    if [ ! "$all" ]; then echo "- $2" >>"$missing"; return; fi
    { picture_head; plot_lines; } >"$work/plot.gnuplot"
    plot
    page "$([ "$3" = slots ] && echo slots_table || echo width_table)" "$3" "$4"
}
width_figure 004-6.2 'Slots of hybrid lists, 1M spheres (004, table 6.2)' width packed-1M \
    'table 6.2, 1M spheres in a box, 9.31 neighbours' ''
width_figure 004-6.3 'Slots of hybrid lists, 100M spheres (004, table 6.3)' width packed-100M \
    'table 6.3, 100M spheres in a box, 7.56 neighbours' ''
width_figure 004-6.3-10m \
    'Slots of hybrid lists, 10M spheres, beside 100M of the source (004, table 6.3)' width \
    packed-10M \
    'table 6.3, 100M spheres in a box, 7.56 neighbours' \
    'Ten times fewer spheres than in the source.'
no_tablets='The source does not say how large its tablets are and how their contacts are found,'
no_tablets="$no_tablets and not all its entries touch (tablets: 004-forms):"
no_tablets="$no_tablets these are spheres with as many neighbours, so the search can be compared, forces and steps cannot."
width_figure 004-6.4 \
    'Slots of hybrid lists, lists as long as those of 1M tablets (004, table 6.4)' tablets packed-1M \
    'table 6.4, 1M tablets in a box, 11.95 neighbours' "$no_tablets"
width_figure 004-6.5 \
    'Slots of hybrid lists, lists as long as those of 10M tablets (004, table 6.5)' tablets packed-10M \
    'table 6.5, 10M tablets in a box, 11.9 neighbours' "$no_tablets"

no_tablets='Ours: examples/tablets, settled in a box (tablets --tables), of the thickness that has nearly as many'
no_tablets="$no_tablets neighbours. The source does not say how large its tablets are and how their contacts are"
no_tablets="$no_tablets found. Rest: whole less slots. No history; with it, and where each contact"
no_tablets="$no_tablets was: \"pairs+normal\" in the last line, of whole steps."
slots_table() {
    width_table "$@"
    select_rows "group == \"$1\" && workload == \"$2\" && method ~ /^pairs.normal/" \
        '"\nPairs+normal: " 1000 / ms " steps/s."'
}
for million in 1M 10M; do
    if [ $million = 1M ]; then table=6.4 told=11.95 part=''; else table=6.5 told=11.9
        part=' Copies of a heap of 1M side by side, every second one its mirror image.'; fi
    width_figure 004-$table-tablets "Slots of hybrid lists, $million tablets (004, table $table)" slots \
        box-$million "table $table, $million tablets in a box, $told neighbours" "$no_tablets$part"
done

# stage_rows FILTER: rows of a group as a table: ours, the source's, how many times as fast. Whole
# steps also as steps/s.
stage_rows() {
    echo '| | n | ours ms | source ms | times as fast | ours steps/s | source steps/s |'
    echo '|---|---:|---:|---:|---:|---:|---:|'
    select_rows "($1) && unit != \"MiB\"" 'method "\t" n "\t" ms "\t" peer "\t" workload' |
        awk -F '\t' "$number_text"'
        function some(v) { return v > 0 ? text(v) : "–" }
        { whole = $1 ~ /whole step$/
          kind = $5 ~ /^bidisperse/ ? " (1:10)" : ""
          factor = $4 > 0 && $3 > 0 ? text($4 / $3) : "–"
          ours = whole && $3 > 0 ? some(1000 / $3) : ""
          theirs = whole && $4 > 0 ? some(1000 / $4) : ""
          print "| " $1 kind " | " $2 " | " some($3) " | " some($4) " | " factor " | " ours " | " \
              theirs " |" }'
    any "($1) && unit == \"MiB\"" || return 0
    echo
    echo '| | n | ours MiB | source MiB |'
    echo '|---|---:|---:|---:|'
    select_rows "($1) && unit == \"MiB\"" \
        'method "\t" n "\t" value "\t" peer "\t" workload' | awk -F '\t' '
        { print "| " $1 ($5 ~ /^bidisperse/ ? " (1:10)" : "") " | " $2 " | " sprintf("%.0f", $3) \
              " | " ($4 > 0 ? $4 : "–") " |" }'
}
# only_table NAME TITLE FILTER SOURCE NOTE
only_table() {
    begin "$1" "$2" '' '' ''
    source_is "$kureck, $4; $maxwell"
    notes=$'\n\n'${*:5}
    all=$3
    rm -f "$results/$1.png" "$results/$1.md"
    if ! any "$3"; then echo "- $2" >>"$missing"; return; fi
    page stage_rows "$3"
}

steps_note='A step of ours: grid (or tree), list, clearing the sums, forces, motion; no walls.'
reduced="The source's thread per contact adds up in the warp (section 6.3.1): it stands beside REDUCE."
only_table 004-6.6 'No contacts (004, tables 6.6 and 6.7)' 'group == "nocontact"' \
    'tables 6.6 (10M spheres) and 6.7 (10M tablets)' \
    "$steps_note Table 6.7: see 004-tablets."
only_table 004-6.3.6 'What history costs (004, section 6.3.6)' \
    'group == "history" && program == "bench_nlist_cuda"' \
    'section 6.3.6, 1M spheres in a drum, dynamic lists' \
    "$steps_note History: 16 bytes for each contact. The source's steps have a drum, ours no walls." \
    'In place: flag, find, append, drop, sort, as the source does it, beside "search, history"' \
    '(tests/bench/plain_history_gpu.h).'
only_table 004-6.3.6-cpu 'What history costs, one CPU core (004, section 6.3.6)' \
    'group == "history" && program == "bench_nlist"' \
    'section 6.3.6, 1M spheres in a drum; the source has no serial figures' \
    'Grid and half list after a small motion, about 8 neighbours. In place: flag, find, append,' \
    'drop, sort, as the source does it, with a counting sort (tests/bench/plain_history.h).'
only_table 004-6.3.6-walls 'Spheres against triangles (004, table 6.8 and section 6.3.6)' \
    'group == "walls" && program == "bench_nlist_cuda"' \
    'table 6.8 (10M spheres) and section 6.3.6 (1M): the triangles of a drum' \
    'Ours: a box whose sides are 49,152 triangles. By the grid: the source before it had a tree, each' \
    'triangle in all cells that its box overlaps, and no list (tests/bench/plain_mesh_grid.h).'
no_list='"No list": search and forces in one kernel, as the source did before it had lists ("old", figure 6.11); its whole steps,'
no_list="$no_list 0.96 sorted and 0.76 steps/s not, are mostly spent in sorting triangles into the grid."
only_table 004-6.10-sorting \
    'Sorted and unsorted particle data, in a box (004, tables 6.8 and 6.10, figures 6.9 and 6.11)' \
    'group == "sorting"' 'tables 6.8 (sorted) and 6.10 (not), 10M spheres in a drum' \
    "$steps_note $no_list"
only_table 004-6.12 'Grid and tree (004, tables 6.12 and 6.13)' \
    'group == "tree" && workload !~ /^settled/' \
    'table 6.12 (10M spheres of one size) and table 6.13 (1M spheres and 276 ten times as large)' \
    "$steps_note"
only_table 004-settled 'Settled spheres, by grid and tree (004, cases 1 and 5)' \
    'workload ~ /^settled/ && n < 10000000' \
    'tables 6.2 and 6.12 (of the latter no times here: 10M) and 6.13; its spheres had settled' \
    "$steps_note $reduced" 'Ours: 1M that fell into a box by the DEM of bench_nlist --only settled and lie' \
    'still; width k: k slots a row, neighbours as in table 6.2 by a wider reach.'
only_table 004-settled-large 'Settled spheres, 10M and 100M (004, cases 1 and 5)' \
    'workload ~ /^settled/ && n >= 10000000' \
    'tables 6.12 (10M, grid and tree) and 6.3 (100M, slots); its spheres had settled' \
    "$steps_note $reduced" 'Ours: copies of a heap of 1M (004-settled), side by side, every second one mirrored' \
    'so that what lies at a wall lies against its image; neighbours as in table 6.3 by a wider' \
    'reach. A fall of 100M would take five times the steps, each a hundred times as long.'

# drum_table: the parts of a step down, how often data is sorted across. [PROGRAM KIND SORTED
# UNSORTED]: what lies in the drum, and the source's tables.
drum_table() { # GROUP NUMBERS
    local from=${3:-drum} kind=${4:-sphere}
    select_rows "program == \"$from\" && group == \"$1\" && workload == \"stages\" && $2" \
        'method "\t" ms "\t" peer' |
        awk -F '\t' -v kind="$kind" -v sorted="${5:-6.8}" -v not="${6:-6.10}" "$number_text"'
        function show(ms, what) { return ms > 0 ? text(what == "steps/s" ? 1000 / ms : ms) : "–" }
        function time(how, what) { return show(ms[how ": " what], what) }
        function source(how, what) { return show(peer[how ": " what], what) }
        { sub(/whole step$/, "steps/s", $1); ms[$1] = $2; peer[$1] = $3 }
        END {
            printf "| ms | sorted every step | source, %s | every 10 steps | every 100 steps ", sorted
            print "| sorted once | never, random order | source, " not " |"
            print "|---|---:|---:|---:|---:|---:|---:|---:|"
            parts = "integrate,sort,prepare triangles,grid,collect triangle neighbours,collect " kind " neighbours,"
            parts = parts "forces triangles,forces " kind "s,steps/s,search and forces in one kernel"
            count = split(parts, part, ",")
            for (k = 1; k <= count; k++) {
                line = "| " part[k] " | " time("sorted every step",
                    part[k]) " | " source("sorted every step", part[k])
                line = line " | " time("sorted every 10 steps",
                    part[k]) " | " time("sorted every 100 steps", part[k])
                line = line " | " time("sorted once", part[k])
                print line " | " time("never sorted", part[k]) " | " source("never sorted",
                    part[k]) " |"
            }
        }'
    select_rows "program == \"$from\" && group == \"$1\" && workload == \"memory\" && $2" \
        '"\n" n " '"$kind"'s. " substr(method, index(method, ":") + 2) ": " value " " unit "."'
    select_rows "program == \"$from\" && group == \"$1\" && workload == \"turned\" && $2" \
        '"\n" n " '"$kind"'s. Before the first step: " value " turns."'
}
begin 004-6.8 'Spheres in a rotating drum (004, tables 6.8 and 6.10)' '' '' ''
source_is "$kureck, tables 6.8 (data sorted) and 6.10 (not): 10M spheres, 4.3 neighbours each," \
          "after one turn; $maxwell. The code before (\"old\"), search and forces in one: 135 ms" \
          "sorted, 400 not, and 760 ms for triangles in the grid: 0.96 and 0.76 steps/s. GPU" \
          "memory 2011 MiB, old 2071."
all='program == "drum" && group == "drum" && workload == "stages"'
note 'Ours is examples/drum, no history; the spheres begin in a lattice and have not settled. A' \
     'sort is not in every step: its time is that of one sort.'
rm -f "$results/004-6.8.md"
if any "$all"; then page drum_table drum 1; else echo "- $title" >>"$missing"; fi

begin 004-6.8-turn 'Spheres in a rotating drum after one turn, 1M (004, section 6.3.6)' '' '' ''
source_is "$kureck, section 6.3.6: 1M spheres in a drum after one turn, dynamic lists without" \
          "history: spheres 1.55 ms to collect and 2.21 for forces, triangles 1.94 and 0.40, 83" \
          "steps/s; $maxwell. 4.3 neighbours each in its section 6.3.3, with 10M."
all='program == "drum" && group == "turn" && workload == "stages" && n < 10000000'
note 'Ours is examples/drum after one turn (a softness of 0.5, so that it is 215,000 steps), saved' \
     'and read again in random order for "never", no history. The columns of the source are of 10M' \
     'spheres, and stay empty.'
rm -f "$results/004-6.8-turn.md"
if any "$all"; then page drum_table turn 'n < 10000000'; else echo "- $title" >>"$missing"; fi

begin 004-6.8-turn-10m 'Spheres in a drum that has turned, 10M (004, tables 6.8 and 6.10)' '' '' ''
source_is "$kureck, tables 6.8 (data sorted) and 6.10 (not): 10M spheres, 4.3 neighbours each," \
          "after one turn; $maxwell. Search and forces in one kernel: \"old\". GPU memory 2011 MiB," \
          "old 2071."
all='program == "drum" && group == "turn" && workload == "stages" && n >= 10000000'
note 'Ours is examples/drum, no history: a slice of an eightieth of the drum that has turned (a' \
     'softness of 0.5; how far: below), 80 of them side by side, every second one a mirror image' \
     '(--copies 80). The first steps after that are those of "never", in random order.'
note 'Neighbours: entries of the list are pairs, each once, whose spheres touch at this moment. A' \
     'sphere has twice as many neighbours. The source gives "the average entries in the collision' \
     'list" as neighbours per particle; its lists have each pair once (chapter 4), and it counts' \
     'memory for 4 entries per tablet, with 7.85 neighbours: so its 4.3 neighbours are 2.15 pairs.'
rm -f "$results/004-6.8-turn-10m.md"
if any "$all"; then page drum_table turn 'n >= 10000000'; else echo "- $title" >>"$missing"; fi

# What a header holds with 10M particles: rows "bytes" of the group "scaling". The grid of the
# benchmark has 0.14 cells a particle: 30 in a sphere as wide as two cells.
memory_table() {
    select_rows "$all" 'method "\t" value' | awk -F '\t' '
        { bytes[$1] = sprintf("%.1f", $2) }
        END {
            print "| | source | bytes | ours | bytes | ours, work space |"
            print "|---|---|---:|---|---:|---:|"
            printf "| grid, per particle (table 3.1) | hashes, indices 8; %s | %.1f ",
                "cells 4 each", 8 + 4 * 0.14
            print "| ids 4, records 16; cells 4 each | " bytes["ugrid: arrays"] " | " \
                bytes["ugrid: work space"] " |"
            print "| tree, per leaf (table 3.2) | codes, indices, parents 12;", \
                "per inner node box, links, index 52 | 64 | nodes 32, for leaves too;", \
                "lengths of prefixes 1 | " bytes["lbvh: arrays"] " | " \
                bytes["lbvh: work space"] " |"
            print "| particle (table 3.3) | id, species 8; place, velocity, force, quaternion,", \
                "spin, torque 96 | 104 | examples/drum: id 4; place, velocity, spin 48;", \
                "force and torque 24 | 76 | 52 |"
        }'
}
begin 004-3 'Bytes per particle (004, tables 3.1 to 3.3)' '' '' ''
source_is "$kureck, tables 3.1 to 3.3; no work space in them"
all='group == "scaling" && workload == "bytes" && program ~ /_cuda$/ && n == 10000000'
note 'Ours: the memory blocks of each header after a build and a search, as the benchmark counts' \
     'them. The hashes and codes of the source are needed only while its grid and tree are built;' \
     'ours are work space. A record has the place and id of a particle, in the order of the cells,' \
     'so that a search reads them one after another; without them (no_records) 4 bytes and the' \
     'cells are left. The tree of the source reads the boxes of the leaves from elsewhere. A' \
     'particle of ours is a sphere, of one kind, so it has neither species nor quaternion; its' \
     'work space is a copy for sorting.'
rm -f "$results/004-3.md"
if any "$all"; then page memory_table; else echo "- $title" >>"$missing"; fi

# forms_table FILTER [TIMES]: the forms down, times and the source's across: "form search forces
# step;...", else as the rows have them.
forms_table() {
    select_rows "$1" 'method "\t" ms "\t" peer "\t" value' |
        awk -F '\t' -v told="${2:-}" "$number_text"'
        function some(v) { return v > 0 ? text(v) : "–" }
        { split($1, part, ": "); form = part[1]; column = part[2] }
        !(form in seen) { seen[form] = 1; forms[++count] = form }
        { ours[form, column] = column == "entries" ? $4 : $2; theirs[form, column] = $3 }
        END {
            if (told) split("", theirs)
            forms_told = split(told, lines, ";")
            for (k = 1; k <= forms_told; k++) {
                split(lines[k], word, " ")
                theirs[word[1], "search"] = word[2]; theirs[word[1], "forces"] = word[3]
                theirs[word[1], "both"] = word[4]
            }
            printf "| ms | entries per tablet | search | source | forces | source | both "
            print "| source, step | one kernel / this | source, steps |"
            print "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
            for (k = 1; k <= count; k++) {
                form = forms[k]
                printf "| %s | %s ", form, some(ours[form, "entries"])
                split("search,forces,both", columns, ",")
                for (c = 1; c <= 3; c++)
                    printf "| %s | %s ", text(ours[form, columns[c]]),
                        some(theirs[form, columns[c]])
                printf "| %s ", text(ours[forms[1], "both"] / ours[form, "both"])
                print "| " (theirs[form, "both"] ? text(theirs[forms[1], "both"] / theirs[form,
                    "both"]) : "–") " |"
            }
        }'
}
# forms_page NAME TITLE FILTER SOURCE NOTE [TIMES]
forms_page() {
    begin "$1" "$2" '' '' ''
    source_is "$kureck, $4; $maxwell"
    all=$3
    note "$5"
    rm -f "$results/$1.md"
    if any "$all"; then page forms_table "$all" "${6:-}"; else echo "- $title" >>"$missing"; fi
}
forms_note='The source measured search and forces of its lists, and steps per second of all. So the last
column compares steps, with all else that is in a step, and the one before it search and forces
alone. One kernel: search and forces in one, each contact computed twice. Slots+rest: a hybrid list
of 4 slots, forces without history. Pairs: a dynamic list. Rows: both rows of each contact, which is
not in the source. Pairs+normal: as pairs, and each contact keeps where its common normal was, from
which the next search begins; in these times nothing has moved since. The text does not give the
size of its tablets and how two of them are tested for contact.'
forms_note=$(echo "$forms_note" | tr '\n' ' ')
forms_page 004-forms 'Tablets: lists against search and forces in one kernel (004, table 6.4)' \
    'group == "forms" && workload == "box" && n < 10000000' \
    'table 6.4 and section 6.3.7: 1M tablets in a box, 11.95 neighbours' \
    "${forms_note}Ours: \`tablets --scene box\`, 10 layers at rest, 6.5 neighbours each."
forms_page 004-forms-10m 'Tablets: lists against one kernel, 10M (004, table 6.5)' \
    'group == "forms" && workload == "box" && n >= 10000000' \
    'table 6.5 and section 6.3.7: 10M tablets in a box, 11.9 neighbours' \
    "${forms_note}Ours: \`tablets --scene box -n 10000000 --packed --seconds 0.01\`, 10 layers."
forms_page 004-forms-apart 'Tablets without contacts: lists against one kernel, 10M (004, table 6.7)' \
    'group == "forms" && workload == "apart"' \
    'table 6.7: 10M tablets in a grid without any collisions' \
    "${forms_note}Ours: \`tablets --scene box -n 10000000 --seconds 1e-4\`, the lattice at the start." \
    'one-kernel 0 334 357;pairs 18.85 8.35 46.3'
drum_note='The steps of the source also search and push against triangles, in its old code the
longest part; ours has eight planes. Not after a turn: the bed is full from the start, and moves for
the time given.'
drum_note=$(echo "$drum_note" | tr '\n' ' ')
forms_page 004-forms-drum 'Tablets in a drum: lists against one kernel, 1M (004, table 6.9)' \
    'group == "forms" && workload == "drum" && n < 10000000' \
    'table 6.9: 10M tablets in a drum, 7.85 neighbours: old 1051 ms, new 24 + 63' \
    "$forms_note${drum_note}\`tablets --scene drum -n 1000000 --packed --rpm 8 --seconds 0.01\`"
forms_page 004-forms-drum-10m 'Tablets in a drum: lists against one kernel, 10M (004, table 6.9)' \
    'group == "forms" && workload == "drum" && n >= 10000000' \
    'table 6.9: 10M tablets in a drum, 7.85 neighbours, data sorted' \
    "$forms_note${drum_note}\`tablets --scene drum -n 10000000 --packed --rpm 8 --seconds 0.002\`" \
    'one-kernel 0 1051 2083;pairs 24 63 126.6'
forms_page 004-forms-shuffled 'Tablets in a drum, not sorted, 10M (004, table 6.11)' \
    'group == "forms" && workload == "shuffled"' \
    'table 6.11: 10M tablets in a drum, data not sorted' \
    "$forms_note${drum_note}As 004-forms-drum-10m, in random order (\`--shuffle\`)." \
    'one-kernel 0 1130 2222;pairs 248 428 714'

orders_note='Ours: examples/tablets in a drum of triangles, without history, from a saved state: a part of the drum
along its axis has turned, between planes, and copies of it lie side by side, every second one its
mirror image
(tablets --slice, --save, --load, --copies, --tables). "Never" begins in random order. Triangles are
prepared once, in the tree: tablets are looked at from the drum. Search and forces in one kernel: of
tablets and tablets.'
orders_note=$(echo "$orders_note" | tr '\n' ' ')
orders_source="in a drum coater after one turn, 7.85 neighbours each; $maxwell. The code before: 1051 ms"
orders_source="$orders_source for search and forces (not sorted 1130), triangles 470 and 511 (516) ms, 0.48 (0.45) steps/s"
for million in 1 10; do
    begin 004-6.9-tablets-${million}m "Tablets in a drum, ${million}M (004, tables 6.9 and 6.11)" '' '' ''
    source_is "$kureck, tables 6.9 (data sorted) and 6.11 (not): 10M tablets $orders_source"
    all="program == \"tablets\" && group == \"orders\" && workload == \"stages\" &&
         n == ${million}000000"
    note "$orders_note"
    rm -f "$results/004-6.9-tablets-${million}m.md"
    if any "$all"; then
        page drum_table orders "n == ${million}000000" tablets tablet 6.9 6.11
    else echo "- $title" >>"$missing"; fi

    begin 004-6.10-${million}m "Speed over time in the drum, ${million}M tablets (004, figure 6.10)" \
        'seconds in the drum' 'steps/s' 'set yrange [0:*]'
    source_is "$kureck, figure 6.10: steps/s over the time in the drum from t = 7.5 s on, 10M" \
        "tablets, data sorted or not, and sorted now and then; $maxwell. Numbers in the text: 7.9" \
        "steps/s sorted at every step (table 6.9), 1.4 never sorted (6.11); sorting every 0.0001" \
        "to 0.001 s seems a good choice."
    note 'Ours: as 004-6.9-tablets; each curve goes on where the one before has ended.'
    for how in 'never sorted' 'sorted every step' 'sorted every 10 steps' 'sorted every 100 steps' \
        'sorted once'; do
        curve "$how" ours "program == \"tablets\" && group == \"orders\" && workload == \"time\" &&
            n == ${million}000000 && method == \"$how: step\"" 'sprintf("%.6f", value)' '1000 / ms'
    done
    draw
done

# history_table: the parts of a step down; without history, with it, and what that costs.
history_table() {
    select_rows "program == \"tablets\" && group == \"history\"" 'n "\t" method "\t" ms' |
        awk -F '\t' "$number_text"'
        { at = index($2, ": "); how = substr($2, 1, at - 1); what = substr($2, at + 2)
          ms[$1, how, what] = $3
          if (!(($1, what) in seen)) { seen[$1, what]; n[++count] = $1; part[count] = what } }
        END {
            print "| tablets | ms | without history | with history | times |"
            print "|---:|---|---:|---:|---:|"
            for (k = 1; k <= count; k++) {
                a = ms[n[k], "without history", part[k]]; b = ms[n[k], "with history", part[k]]
                times = a > 0 ? text(b / a) : "–"
                print "| " n[k] " | " part[k] " | " text(a) " | " text(b) " | " times " |"
            }
        }'
}
begin 004-6.3.6-tablets 'Tablets in a drum: what history costs (004, section 6.3.6)' '' '' ''
source_is "$kureck, section 6.3.6, of 1M spheres: pairs 1.55 to 3.42 ms to collect, 2.21 to 2.32" \
    "for forces; triangles 1.94 to 6.10 and 0.40 to 0.46; 83 to 36 steps/s, 2.3 times; $maxwell"
all='program == "tablets" && group == "history"'
note 'Ours: tablets, as 004-6.9-tablets, sorted every 100 steps, a list of pairs in each step. With' \
     'history a contact keeps its spring and where the common normal was, so that its force is' \
     'found sooner. Contacts with triangles are listed and followed in both.'
rm -f "$results/004-6.3.6-tablets.md"
if any "$all"; then page history_table; else echo "- $title" >>"$missing"; fi

tablets_table() {
    cat <<'TABLE'
| source's table | code | triangles: prepare | collect | forces | tablets: collect | forces | steps/s |
|---|---|---:|---:|---:|---:|---:|---:|
| 6.7, 10M tablets, no contacts | old | – | – | – | in forces | 334 | 2.8 |
| | new | – | – | – | 18.85 | 8.35 | 21.6 |
| 6.9, 10M tablets in a drum, data sorted | old | 470 | in forces | 511 | in forces | 1051 | 0.48 |
| | new | 2 | 10.8 | 4.3 | 24 | 63 | 7.9 |
| 6.11, the same, not sorted | old | 470 | in forces | 516 | in forces | 1130 | 0.45 |
| | new | 2 | 14 | 5.1 | 248 | 428 | 1.4 |

Memory, table 6.9: old 1737 MiB, new 1773 MiB; 7.85 neighbours each.
TABLE
}
begin 004-tablets 'Tablets: the source alone (004, tables 6.7, 6.9, 6.11, figure 6.10)' '' '' ''
source_is "$kureck, times in ms; $maxwell"
note 'Ours: 004-forms-apart (6.7), 004-forms-drum-10m (6.9), 004-forms-shuffled (6.11), and a box:' \
     '004-forms. Steps of the drum: docs/then-and-now.md. Lists as long as theirs: 004-6.4 and' \
     '004-6.5. Figure 6.10 has no numbers in the text. In a drum of triangles that has turned: 004-6.9-tablets.'
page tablets_table

begin 004-6.9 'Speed over time in the drum, by how often data is sorted (004, figure 6.9)' \
    'seconds in the drum' 'steps/s' \
    'set yrange [0:*]'
source_is "$kureck, figure 6.9: steps/s over the time in the drum from t = 7.5 s on, 10M spheres," \
          "data sorted or not, and sorted now and then; $maxwell. Numbers in the text: 13.4" \
          "steps/s sorted at every step (table 6.8), 2.8 never sorted (6.10), about 20 % more" \
          "than 13.4 when sorted every 0.0001 to 0.001 s. Figures 6.10 (tablets) and 6.11 (the" \
          "code before) have no numbers in the text and are not repeated; see 004-6.10-sorting" \
          "for steps without a list."
note 'Ours: "never sorted" begins in random order; the others are sorted before their first step.' \
     'Each curve goes on where the one before has ended.'
for how in 'never sorted' 'sorted every step' 'sorted every 10 steps' 'sorted every 100 steps' \
    'sorted once'; do
    curve "$how" ours \
        "program == \"drum\" && group == \"drum\" && workload == \"time\" &&
         method == \"$how: step\"" \
        'sprintf("%.6f", value)' '1000 / ms'
done
draw

# ---- scaling ----

heading 'Time and memory against the number of particles'

operations() { # STYLE PREFIX PROGRAM-SUFFIX WHAT
    local of="program ~ /$3\$/ && (group == \"scaling\" || group == \"largest\") &&
              workload == \"uniform\""
    curve "$2ugrid: build" "$1" "$of && method == \"ugrid: build\"" n "$4"
    curve "$2ugrid: count 29 neighbours" "$1" "$of && method == \"ugrid: count neighbours\"" n "$4"
    curve "$2lbvh: build" "$1" "$of && method == \"lbvh: build\"" n "$4"
    curve "$2lbvh: count 29 neighbours" "$1" "$of && method == \"lbvh: count neighbours\"" n "$4"
    curve "$2nlist: half HYBRID list" "$1" "$of && method ~ /^nlist: half HYBRID/" n "$4"
    curve "$2nbody: forces, order 4" "$1" "$of && method ~ /^nbody/" n "$4"
}
no_source='no source has this figure.'
begin scaling-gpu 'Time against the number of particles, GPU' "$particles" ms n
source_is "$no_source"
note 'Evenly spread particles in random order; the largest n is as much as the memory of this GPU' \
     'holds, see the table of the largest runs.'
operations ours '' '_cuda' ms
draw
begin scaling-cpu 'Time against the number of particles, one CPU core' "$particles" ms n
source_is "$no_source"
operations ours '' 'bench_[a-z]*' ms
draw

bytes_curves() { # STYLE PREFIX PROGRAM-SUFFIX
    local of="program ~ /$3\$/ && (group == \"scaling\" || group == \"largest\") &&
              workload == \"uniform\" && unit == \"B\""
    local header color=0
    for header in ugrid lbvh nlist nbody; do
        curve "$2$header" "$1:$((color += 1))" "$of && method ~ /^$header:/" n value
    done
}
begin scaling-bytes 'Bytes per particle that a header holds' "$particles" 'bytes per particle' n
source_is "$no_source"
note 'Counted by the memory blocks of each header after its build and search: cells, work space,' \
     'and for nlist the list alone. What the caller holds (positions, results) comes to that.'
bytes_curves ours 'GPU: ' '_cuda'
bytes_curves cpu 'CPU: ' 'bench_[a-z]*'
draw

largest_table() {
    echo '| work | n | ms | M/s | bytes per particle, the header'"'"'s | with input and results, as the GPU counts | ends at |'
    echo '|---|---:|---:|---:|---:|---:|---|'
    select_rows 'group == "largest"' 'workload "\t" method "\t" n "\t" ms "\t" rate "\t" value' |
        awk -F '\t' "$number_text"'
        $1 == "memory" { taken[$2, $3] = $6; next }
        $1 == "limit" { ends[$2, $3] = $6 ? "the 32-bit ids" : "memory"; next }
        { work[++count] = $2; n[count] = $3; ms[count] = $4; rate[count] = $5; held[count] = $6 }
        END { for (k = 1; k <= count; k++) {
                  own = held[k] > 0 ? text(held[k]) : ""
                  all = (work[k], n[k]) in taken ? text(taken[work[k], n[k]]) : ""
                  line = "| " work[k] " | " n[k] " | " text(ms[k]) " | " text(rate[k])
                  print line " | " own " | " all " | " ends[work[k], n[k]] " |" } }'
}
begin largest 'The largest runs that fit this GPU' '' '' ''
all='group == "largest"'
source_is "$no_source"
notes=$'\n\n''Found from the free memory and the bytes per particle measured at 10 million; 7 % are left free.'
rm -f "$results/largest.md"
if any "$all"; then
    page largest_table
else
    echo '- The largest runs that fit this GPU' >>"$missing"
fi
