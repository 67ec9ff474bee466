#!/bin/bash
# Tests examples/drum as its user sees it: files in, files out, figures, exit statuses.
#
#   tests/examples/test_drum.sh [PROGRAM]          default: build/drum; with build/cuda/drum (any
#                                         path with "cuda" in it) the GPU's program is tested.
#                                         TEST_SMALL: less work, for the emulator.
#
# Says "FAILED" for each check that fails and "N passed, M failed" at the end. Where a number is
# expected it comes from a formula beside the check, or from awk, which reads the VTK files and
# compares all spheres with all, and with the outline of the drum.
. "$(dirname "$0")/examples.sh" drum "${1:-}"

drum() { run "$@"; }
seen() {
    echo "exit status $status; $(head -c 500 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}
# is_same NAME FILE: did the last run print what is in that file?
is_same() {
    cmp -s "$work/out.txt" "$work/$2"; report $? "$1" "$(diff "$work/out.txt" "$work/$2")"
}

# ---- what the VTK files say ----------------------------------------------------------------------

# table FILE: id x y z vx vy vz wx wy wz radius of each sphere, by place
table() {
    awk '$1 == "POINTS" { n = $2; for (i = 0; i < n; i++) { getline; p[i] = $0 } }
         $1 == "VECTORS" { what = $2; for (i = 0; i < n; i++) { getline; v[what, i] = $0 } }
         $1 == "SCALARS" { what = $2; getline; for (i = 0; i < n; i++) { getline;
             v[what, i] = $0 } }
         END { for (i = 0; i < n; i++) print v["id", i], p[i], v["velocity", i], v["spin", i],
             v["radius", i] }' "$1"
}

# links FILE: two places, overlap, force and spring of each contact
links() {
    awk '$1 == "LINES" { n = $2; for (i = 0; i < n; i++) { getline; e[i] = $2 " " $3 } }
         $1 == "SCALARS" { what = $2; getline; for (i = 0; i < n; i++) { getline;
             v[what, i] = $0 } }
         END { for (i = 0; i < n; i++) print e[i], v["overlap", i], v["force", i],
             v["spring", i] }' "$1"
}

# all_pairs TABLE: contacts, average and deepest overlap; energies without mass; centre; ids that
# are there once
all_pairs() {
    awk '{ n++; for (a = 1; a <= 11; a++) x[n, a] = $a
           v2 += $5 ^ 2 + $6 ^ 2 + $7 ^ 2; w2 += $8 ^ 2 + $9 ^ 2 + $10 ^ 2;
           for (a = 2; a <= 4; a++) c[a] += $a; ids += !id[$1]++ }
         END {
             for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) {
                 d = x[i, 11] + x[j, 11] - sqrt((x[i, 2] - x[j, 2]) ^ 2 + (x[i, 3] - x[j, 3]) \
                     ^ 2 + (x[i, 4] - x[j, 4]) ^ 2)
                 if (d <= 0) continue
                 contacts++; sum += d; if (d > deepest) deepest = d
             }
             printf "contacts %d\noverlap %.12g\ndeepest %.12g\n", contacts,
                 contacts ? sum / contacts : 0, deepest
             printf "v2 %.12g\nw2 %.12g\n", v2, w2
             printf "centre_x %.12g\ncentre_y %.12g\ncentre_z %.12g\nids %d\nspheres %d\n",
                 c[2] / n, c[3] / n, c[4] / n, ids, n
         }' "$1"
}

# outline TABLE ANGLE LENGTH: how many spheres are inside of the drum as its comment draws it, how
# many of them touch it, how many do that or not by a hair, and the deepest overlap with it. A drum
# is the same all along its axis: from inside, its wall is as far away as the outline.
outline() {
    awk -v angle="$2" -v half="$3" '
        BEGIN {
            for (k = 0; k <= 96; k++) {
                r = k % 16 == 7 || k % 16 == 8 ? 0.175 : 0.2; t = 2 * 3.14159265358979 * k / 96
                px[k] = r * cos(t); pz[k] = r * sin(t)
            }
            half /= 2
        }
        {
            x = cos(angle) * $2 - sin(angle) * $4; z = sin(angle) * $2 + cos(angle) * $4
            best = half - ($3 < 0 ? -$3 : $3); odd = 0
            for (k = 0; k < 96; k++) {
                ex = px[k + 1] - px[k]; ez = pz[k + 1] - pz[k]
                t = ((x - px[k]) * ex + (z - pz[k]) * ez) / (ex * ex + ez * ez);
                t = t < 0 ? 0 : t > 1 ? 1 : t
                d = sqrt((px[k] + t * ex - x) ^ 2 + (pz[k] + t * ez - z) ^ 2);
                if (d < best) best = d
                if ((pz[k] > z) != (pz[k + 1] > z) && x < px[k] + (z - pz[k]) / ez * ex) odd = !odd
            }
            if (!(odd && best > 0)) next
            inside++; gap = $11 - best
            if (gap > 0) touching++
            if (gap < 2e-7 && gap > -2e-7) doubtful++
            if (gap > deepest) deepest = gap
        }
        END { print inside + 0, touching + 0, doubtful + 0, deepest + 0 }' "$1"
}

# apart TABLE TABLE: the largest distance, along an axis, of a sphere in one from the same sphere in
# the other
apart() {
    awk 'NR == FNR { for (a = 2; a <= 4; a++) p[$1, a] = $a; n++; next }
         { m++; for (a = 2; a <= 4; a++) { d = p[$1, a] - $a; if (d < 0) d = -d;
             if (!(d <= most)) most = d } }
         END { print n == m ? most + 0 : "other spheres" }' "$1" "$2"
}

# ---- a run against awk ---------------------------------------------------------------------------

# figures NAME FOLDER LENGTH: the figures of the last run against those of its files
figures() {
    local inside touching doubtful deep mass radius
    table "$work/$2/spheres_0000.vtk" >"$work/table.txt"
    all_pairs "$work/table.txt" >"$work/pairs.txt"
    is "$1" contacts "$(value contacts "$work/pairs.txt")"
    is "$1" spheres "$(value ids "$work/pairs.txt")"
    expect_near "$1: average overlap" "$(value overlap)" "$(value overlap "$work/pairs.txt")" 1e-6
    expect_near "$1: deepest overlap" "$(value deepest)" "$(value deepest "$work/pairs.txt")" 1e-6
    mass=$(value mass) radius=$(value radius)
    expect_near "$1: kinetic energy" "$(value kinetic_energy)" \
        "$(awk -v m="$mass" -v v="$(value v2 "$work/pairs.txt")" 'BEGIN { print m * v / 2 }')" 1e-5
    expect_near "$1: turning energy" "$(value turning_energy)" \
        "$(awk -v m="$mass" -v r="$radius" -v w="$(value w2 "$work/pairs.txt")" \
        'BEGIN { print 0.4 * m * r * r * w / 2 }')" 1e-5
    for a in x y z; do
        expect "$1: centre $a" "$(value centre_$a)" "$(value centre_$a "$work/pairs.txt")" 1e-7
    done
    read -r inside touching doubtful deep < <(outline "$work/table.txt" "$(value angle)" "$3")
    is "$1" inside "$inside"
    is "$1" inside "$(value spheres)"
    is "$1" whole 1
    expect "$1: at the wall" "$(value wall_contacts)" "$touching" "$doubtful"
    within "$deep" 0 "$(times "$radius" 0.3)"
    report $? "$1: no sphere is half through the wall" "$deep of radius $radius"
}

# The network of contacts has the pairs that touch, and no others; entries that do not touch keep
# nothing.
network() {
    links "$work/$2/contacts_0000.vtk" >"$work/links.txt"
    awk 'NR == FNR { for (a = 2; a <= 4; a++) x[FNR - 1, a] = $a; r = $11; next }
         {
             d = 2 * r - sqrt((x[$1, 2] - x[$2, 2]) ^ 2 + (x[$1, 3] - x[$2, 3]) ^ 2 + \
                 (x[$1, 4] - x[$2, 4]) ^ 2)
             if (d <= 0 || d - $3 > 1e-8 || $3 - d > 1e-8 ||
                 seen[$1 < $2 ? $1 " " $2 : $2 " " $1]++) bad++
         }
         END { exit bad > 0 }' "$work/table.txt" "$work/links.txt"
    report $? "$1: contacts in the file are pairs that touch, each once"
    [ "$(wc -l <"$work/links.txt")" -eq "$(value contacts)" ]
    report $? "$1: all contacts are in the file" "$(wc -l <"$work/links.txt"); $(seen)"
}

# A run in which spheres roll and slide. (Few spheres are large ones, and a drum full of those is
# hard to fill; soft ones take fewer steps.)
run_n=300 run_steps=1500 kind=(--rpm 60 --stl a.stl)
[ "$small" ] && run_n=60 run_steps=350 kind=(--rpm 60 --stl a.stl --fill 0.15 --softness 0.2)

against_awk() {
    drum -n $run_n "${kind[@]}" --steps 0 --vtk --ascii --check --out start
    report $status "the start" "$(seen)"
    figures "the start" start 0.08
    is "the start" contacts 0
    is "the start" wall_contacts 0
    drum -n $run_n "${kind[@]}" --steps $run_steps --vtk --ascii --check --out run
    report $status "a run" "$(seen)"
    figures "a run" run 0.08
    network "a run" run
    awk -v c="$(value contacts)" -v w="$(value wall_contacts)" -v n="$run_n" \
        'BEGIN { exit !(c > n / 10 && w > n / 30) }'
    report $? "a run: there are contacts to look at" "$(seen)"
    [ "$(value entries)" -eq "$(value contacts)" ]
    report $? "a run: the list has the contacts, each once" "$(seen)"
    # friction of the wall: spheres on it move with it and turn in its sense, not as if they rolled
    # over a wall that stands still
    awk '0.2 - sqrt($2 ^ 2 + $4 ^ 2) < 1.3 * $11 { n++; spin += $9 } END { exit !(n > 3 && spin > 0) }' "$work/table.txt"
    report $? "a run: the wall turns the spheres on it"
    [ "$small" ] && run_steps=150
    drum -n $run_n "${kind[@]}" --steps $run_steps --vtk --ascii --check --out skin --skin 0.3 \
        --stl long.stl --length 0.4
    figures "with a skin, in a longer drum" skin 0.16
    network "with a skin" skin
    [ "$(value entries)" -gt "$(value contacts)" ]
    report $? "with a skin: the list reaches further" "$(seen)"
}

# Until anything touches, all fall together: after k steps v = g dt k.
free_fall() {
    drum -n 50 --fill 0.2 --steps 20 --check
    is "free fall" wall_contacts 0
    expect_near "free fall: energy" "$(value kinetic_energy)" \
        "$(awk -v m="$(value mass)" -v dt="$(value dt)" \
        'BEGIN { v = 9.81 * dt * 20; print 50 * m * v * v / 2 }')" 1e-5
}

# ---- the mesh ------------------------------------------------------------------------------------

# A cube of edge 0.2 around the origin, as text; two triangles a side.
cube() {
    awk 'BEGIN {
        split("0 2 3 1  4 5 7 6  0 1 5 4  2 6 7 3  0 4 6 2  1 3 7 5", v, " ")
        print "solid cube"
        for (f = 0; f < 6; f++) for (t = 0; t < 2; t++) {
            print "facet normal 0 0 0\nouter loop"
            for (c = 0; c < 3; c++) {
                k = v[4 * f + (c == 0 ? 0 : c + t) + 1]
                print "vertex", (k % 2 ? 0.1 : -0.1), (int(k / 2) % 2 ? 0.1 : -0.1),
                    (k >= 4 ? 0.1 : -0.1)
            }
            print "endloop\nendfacet"
        }
        print "endsolid cube"
    }'
}

drum_file() {
    drum -n 20 --steps 0 --check --stl a.stl
    report $status "an STL file is written where there is none" "$(seen)"
    # two triangles a segment in each of 4 rows (0.08 m / 0.02 m) and 2 x 7 rings, and one in the
    # innermost rings
    is "the drum" triangles $((96 * (2 * 4 + 2 * (2 * 7 + 1))))
    is "the drum" open_edges 0
    is "the drum" vertices $((96 * (4 + 1) + 2 * (96 * 7 + 1)))
    # area of the outline: 96 sectors, half r0 r1 sin(angle) each, 6 between lifter points, 12
    # between one and the wall
    expect_near "the drum: volume" "$(value volume)" "$(awk 'BEGIN {
        s = sin(2 * 3.14159265358979 / 96) / 2;
        print 0.08 * s * (6 * 0.175 * 0.175 + 12 * 0.175 * 0.2 + 78 * 0.2 * 0.2) }')" 1e-5
    [ "$(wc -c <"$work/a.stl")" -eq $((84 + 50 * $(value triangles))) ]
    report $? "84 + 50 n bytes" "$(wc -c <"$work/a.stl")"
    cp "$work/out.txt" "$work/binary.txt"
    drum -n 20 --steps 0 --check --stl b.stl --ascii
    head -c 10 "$work/b.stl" | grep -q '^solid'; report $? "--ascii writes text" "$(seen)"
    is_same "text and binary give the same drum" binary.txt
    { printf 'solid facet vertex 1 2 3'; tail -c +25 "$work/a.stl"; } >"$work/solid.stl"
    drum -n 20 --steps 0 --check --stl solid.stl
    is_same "binary, though it begins with solid" binary.txt
    drum -n 20 --steps 0 --check --stl a.stl --length 5
    is_same "a file that is there is read, not written" binary.txt
}

# Every vertex turns by the same angle round the y axis: at rpm > 0 the lowest goes to -x.
turning() {
    drum -n 20 --steps 0 --vtk --ascii --check --stl a.stl --out still
    drum -n 20 --steps 8 --rpm 300 --vtk --ascii --check --stl a.stl --out turned
    awk -v t="$(value angle)" '
         FNR == 1 { file++ }
         $1 == "POINTS" { n = $2; for (i = 0; i < n; i++) { getline; x[file, i] = $1;
             y[file, i] = $2; z[file, i] = $3 } }
         END {
             for (i = 0; i < n; i++) {
                 dx = cos(t) * x[1, i] + sin(t) * z[1, i] - x[2, i];
                 dz = cos(t) * z[1, i] - sin(t) * x[1, i] - z[2, i]
                 if (dx ^ 2 + dz ^ 2 > 1e-13 || y[1, i] != y[2, i]) bad++
             }
             exit !(n > 1000 && bad == 0 && t > 0.003)
         }' "$work/still/drum_0000.vtk" "$work/turned/drum_0000.vtk"
    report $? "the drum turns by the angle that is told" "$(seen)"
    expect_near "angle" "$(value angle)" \
        "$(awk -v dt="$(value dt)" 'BEGIN { print 300 * 2 * 3.14159265358979 / 60 * dt * 8 }')" 1e-6
}

meshes() {
    cube >"$work/cube.stl"
    drum -n 40 --fill 0.2 --steps 0 --check --stl cube.stl
    is "a cube" triangles 12; is "a cube" vertices 8; is "a cube" open_edges 0
    is "a cube" inside 40
    expect_near "a cube: volume" "$(value volume)" 0.008 1e-6
    cp "$work/out.txt" "$work/cube.txt"
    { cat "$work/cube.stl";
        printf 'outer loop\nvertex 0.1 0.1 0.1\nvertex 0.1 0.1 0.1\nvertex -0.1 0.1 0.1\n'
        } >"$work/flat.stl"
    drum -n 40 --fill 0.2 --steps 0 --check --stl flat.stl
    is_same "a triangle that is a line is dropped" cube.txt
    # seen from inside: the second and the third corner of each triangle change places
    awk '$1 == "vertex" { k++; if (k % 3 == 2) { keep = $0; next } print; if (k % 3 == 0) print keep; next } { print }' \
        "$work/cube.stl" >"$work/inner.stl"
    drum -n 40 --fill 0.2 --steps 0 --check --stl inner.stl
    is_same "a mesh that is inside out" cube.txt
    # a cube in a cube, seen from its own inside: a hollow where no sphere may be
    sed 's/0\.1/0.05/g' "$work/inner.stl" | cat "$work/cube.stl" - >"$work/hollow.stl"
    drum -n 250 --fill 0.35 --steps 0 --vtk --ascii --check --stl hollow.stl --out hollow
    is "a hollow" triangles 24; is "a hollow" inside 250
    expect_near "a hollow: volume" "$(value volume)" 0.007 1e-6
    table "$work/hollow/spheres_0000.vtk" | awk '
        { for (a = 2; a <= 4; a++) { d = $a < 0 ? -$a : $a; if (a == 2 || d > m) m = d }
          if (m < 0.05) bad++; if ($4 > -0.05) near++ }
        END { exit !(bad == 0 && near > 5) }'
    report $? "a hollow: spheres around it, none in it" "$(seen)"
    head -n 78 "$work/cube.stl" >"$work/open.stl"
    drum -n 5 --fill 0.1 --steps 0 --check --stl open.stl
    [ "$(value open_edges)" = 3 ] && grep -q '3 open edges' "$work/err.txt"
    report $? "a hole is told" "$(seen)"
}

# One sphere on the floor of a cube that stands still. It lies over the line where two triangles
# meet, and must feel one floor: the weight presses it in by m g / k.
rest() {
    local steps=6000
    [ "$small" ] && steps=1500
    cube >"$work/cube.stl"
    drum -n 1 --fill 0.3 --rpm 0 --softness 0.03 --dt 4e-4 --steps $steps --check --stl cube.stl \
        --vtk --ascii --out rest
    report $status "one sphere" "$(seen)"
    is "one sphere" wall_contacts 1
    expect "one sphere: the floor carries it" "$(value carried)" 1 2e-3
    expect "one sphere: height" "$(value centre_z)" \
        "$(awk -v r="$(value radius)" -v m="$(value mass)" -v k="$(value k_n)" 'BEGIN {
        print -0.1 + r - m * 9.81 / k }')" 2e-7
}

refused() {     # refused NAME FILE
    drum -n 5 --steps 0 --check --stl "$2"
    [ $status -eq 1 ] && grep -q "^drum: $2: ..." "$work/err.txt" && [ ! -s "$work/out.txt" ]
    report $? "refused: $1" "$(seen)"
}

bad_files() {
    head -c 1000 "$work/a.stl" >"$work/short.stl"; refused 'a binary file that ends early' short.stl
    { cat "$work/a.stl"; echo; } >"$work/long.stl"
    refused 'a binary file with one byte too much' long.stl
    : >"$work/empty.stl"; refused 'an empty file' empty.stl
    sed '/^vertex/{x;s/^/./;/^.\{5\}$/{x;d};x}' "$work/cube.stl" >"$work/two.stl"
    refused 'a corner is missing' two.stl
    sed '0,/vertex.*/s//vertex 1 2 three/' "$work/cube.stl" >"$work/word.stl"
    refused 'a word for a number' word.stl
    sed '0,/vertex.*/s//vertex 1 2 nan/' "$work/cube.stl" >"$work/nan.stl"; refused 'nan' nan.stl
    sed '0,/vertex.*/s//vertex 1 2 1e30/' "$work/cube.stl" >"$work/far.stl"
    refused 'too large' far.stl
    refused 'a folder' .
    drum -n 5 --steps 0 --stl no/where.stl
    report $((status != 1)) "refused: cannot write there" "$(seen)"
    drum -n 5 --steps 0 --out /dev/null/here
    report $((status != 1)) "refused: cannot make that folder" "$(seen)"
    drum -n 3 --steps 0 --fill 0.7 --length 0.05
    report $((status != 1)) "refused: spheres too large to find room" "$(seen)"
}

# ---- the same run in other ways ------------------------------------------------------------------

# The spheres of `same/` are where the first run has them, within a ten thousandth of a radius.
# Rounding does no more in so few steps; a history that is lost once moves spheres by a hundred
# times that.
same_n=300 same_steps=250 place=("${kind[@]}")
[ "$small" ] && same_n=60 same_steps=200 place=(--rpm 60 --fill 0.15 --softness 0.4 --stl cube.stl)
same_run() {
    drum -n $same_n "${place[@]}" --steps $same_steps --shuffle --vtk --ascii --check --out same \
        "$@"
    table "$work/same/spheres_0000.vtk" >"$work/same.txt"
}

same() {        # same OPTIONS...
    same_run "$@"
    report $status "$*" "$(seen)"
    expect "$*: the same spheres" "$(apart "$work/first.txt" "$work/same.txt")" 0 \
        "$(times "$(value radius)" 1e-4)"
    is "$*" inside $same_n
    is "$*" contacts "$(value contacts "$work/first_out.txt")"
    [ "$(sort -n "$work/same.txt" | awk '{ print $1 }' | uniq | wc -l)" -eq $same_n ];
        report $? "$*: every sphere is there"
}

other_ways() {
    same_run --sort-every 0
    cp "$work/same.txt" "$work/first.txt"; cp "$work/out.txt" "$work/first_out.txt"
    awk '$1 != NR - 1 { exit 1 }' "$work/first.txt";
        report $? "never sorted: spheres keep their places"
    same --sort-every 1
    awk '$1 != NR - 1 { moved++ } END { exit !(moved > NR / 2) }' "$work/same.txt";
        report $? "sorted: spheres have moved"
    same --sort-every 7 --skin 0.2
    same --layout dynamic
    same --half 0 --sort-every 10
    cp "$work/same.txt" "$work/table.txt"
    network "--half 0" same
    [ "$small" ] || {
        same --sort-every 7
        same --layout static
        same --layout compact --sort-every 9
        same --layout static --half 0 --width 16 --mode particle
        same --width 1
    }
    same --width 0 --mode contact
    same --mode reduce --width 4
    same --deterministic 1
    same_run --history 0
    [ "$(links "$work/same/contacts_0000.vtk" | awk '{ print NF }' | sort -u)" = 3 ]
    report $? "--history 0: no springs in the file"
    ! within "$(apart "$work/first.txt" "$work/same.txt")" 0 "$(times "$(value radius)" 1e-2)"
    report $? "--history 0 is another run" "$(apart "$work/first.txt" "$work/same.txt")"
}

# Over a longer time rounding decides which sphere falls where, and only the statistics agree: five
# runs that sort in other steps were apart by 0.7 degrees, 0.7 mm, 30 and 7 contacts, and 6 % of the
# energy.
statistics() {
    [ "$small" ] && return
    local name tolerance
    drum -n 400 --steps 3000 --shuffle --sort-every 0 --check; cp "$work/out.txt" "$work/never.txt"
    drum -n 400 --steps 3000 --shuffle --sort-every 1 --check
    while read -r name tolerance; do
        expect "sorted and not: $name" "$(value "$name")" "$(value "$name" "$work/never.txt")" \
            "$tolerance"
    done <<LINES
slope 2
centre_z 0.002
contacts 80
wall_contacts 30
kinetic_energy $(times "$(value kinetic_energy "$work/never.txt")" 0.15)
inside 0
LINES
}

# Spheres in a drum that stands still come to rest: no motion, the weight is carried, springs of
# sticking contacts are within Coulomb's limit, and the forces kept are those of the overlaps (but
# for the odd sphere that still rolls to and fro).
at_rest() {
    [ "$small" ] && return
    drum -n 150 --rpm 0 --softness 0.2 --steps 9000 --vtk --ascii --check --stl a.stl --out calm
    awk -v e="$(value kinetic_energy)" -v m="$(value mass)" \
        'BEGIN { exit !(e < 150 * m * 9.81 * 1e-4) }'
    report $? "at rest: no motion" "$(seen)"
    expect "at rest: carried" "$(value carried)" 1 0.01
    links "$work/calm/contacts_0000.vtk" |
        awk -v kn="$(value k_n)" -v kt="$(value k_t)" -v w="$(times "$(value mass)" 9.81)" '
        { normal = kn * $3; d = normal - $4; if (d < 0) d = -d;
          if (d > 0.05 * w + 0.05 * normal) wrong++
          if (kt * $5 > 0.5 * $4 + 0.05 * w) slides++; if ($5 > 0) springs++ }
        END { exit !(NR > 100 && wrong < 0.03 * NR && slides < 0.03 * NR && springs > NR / 2) }'
    report $? "at rest: forces and springs" "$(seen)"
}

bits() {
    drum -n $same_n "${place[@]}" --steps $same_steps --deterministic 1 --sort-every 11 --check
    cp "$work/out.txt" "$work/one.txt"
    drum -n $same_n "${place[@]}" --steps $same_steps --deterministic 1 --sort-every 11 --check
    is_same "--deterministic: the same figures in every digit" one.txt
}

# A run that is cut in two has the same bits in the end: figures, spheres, contacts with springs.
cut_in_two() {
    local options half=$((same_steps / 2 + 3)) begun
    while read -r options; do
        # shellcheck disable=SC2206
        begun=("${place[@]}" --deterministic 1 --sort-every 11 --check $options)
        drum -n $same_n "${begun[@]}" --vtk --steps $same_steps --out whole
        grep -v '^reference' "$work/out.txt" >"$work/whole.txt"
        drum -n $same_n "${begun[@]}" --steps $half --save half.drum
        drum -n $same_n "${begun[@]}" --vtk --steps $same_steps --out cut --load half.drum
        report $status "--load: $options" "$(seen)"
        grep -v '^reference' "$work/out.txt" | cmp -s - "$work/whole.txt" &&
            cmp -s "$work/whole/spheres_0000.vtk" "$work/cut/spheres_0000.vtk" &&
            cmp -s "$work/whole/contacts_0000.vtk" "$work/cut/contacts_0000.vtk"
        report $? "cut in two, with the same bits: $options" "$(seen)"
    done <<'LINES'
--layout compact
--skin 0.2 --layout dynamic
LINES
}

# Velocities averaged over cells and two moments, against sums in awk over the spheres of both.
averages() {
    drum -n $run_n "${kind[@]}" --steps $same_steps --mean-every $((same_steps / 2)) --frames 3 \
        --mean-cell 3 --vtk --ascii --check --out mean
    report $status "--mean-every" "$(seen)"
    for k in 1 2; do table "$work/mean/spheres_000$k.vtk"; done >"$work/both.txt"
    awk '
        FNR == 1 { file++ }
        file == 1 && $1 == "DIMENSIONS" { for (a = 0; a < 3; a++) n[a] = $(a + 2) - 1 }
        file == 1 && $1 == "ORIGIN" { for (a = 0; a < 3; a++) low[a] = $(a + 2) }
        file == 1 && $1 == "SPACING" { for (a = 0; a < 3; a++) edge[a] = $(a + 2) }
        file == 1 && $1 == "CELL_DATA" { cells = $2 }
        file == 1 && $1 == "VECTORS" { for (c = 0; c < cells; c++) { getline
            for (a = 0; a < 3; a++) v[c, a] = $(a + 1) } }
        file == 1 && $1 == "SCALARS" { getline; for (c = 0; c < cells; c++) { getline; m[c] = $1 } }
        file == 2 { cell = 0
            for (a = 2; a >= 0; a--) cell = cell * n[a] + int(($(a + 2) - low[a]) / edge[a])
            count[cell]++; for (a = 0; a < 3; a++) sum[cell, a] += $(a + 5) }
        END {
            for (c = 0; c < cells; c++) {
                full += count[c] > 2
                if (m[c] != count[c] / 2) bad++
                for (a = 0; a < 3; a++) {
                    d = v[c, a] - (count[c] ? sum[c, a] / count[c] : 0)
                    if (d > 1e-5 || d < -1e-5) bad++
                }
            }
            exit !(cells == n[0] * n[1] * n[2] && full > 5 && !bad)
        }' "$work/mean/velocity_0000.vtk" "$work/both.txt"
    report $? "--mean-every: averages in cells" "$(seen)"
}

cut_refused() {     # cut_refused WHAT FILE OPTIONS...
    local what=$1 file=$2; shift 2
    drum -n $same_n "${place[@]}" --steps $same_steps --check --load "$file" "$@"
    [ $status -eq 1 ] && [ ! -s "$work/out.txt" ] && grep -q "$what" "$work/err.txt"
    report $? "--load refuses: $what" "$(seen)"
}

saved_files() {
    local size line
    drum -n $same_n "${place[@]}" --steps 20 --save small.drum --check
    drum -n $same_n "${place[@]}" --steps 30 --load small.drum --shuffle
    [ $status -eq 2 ]; report $? "--load --shuffle: only without history" "$(seen)"
    cut_refused 'radians per second' small.drum --rpm 59
    cut_refused 'time step' small.drum --dt 1e-4
    cut_refused 'history' small.drum --history 0
    cut_refused 'more than --steps' small.drum --steps 19
    drum -n 5 --fill 0.1 --length 0.1 --steps 0 --stl other.stl
    cut_refused 'of another' small.drum --stl other.stl
    cut_refused 'no file of --save' cube.stl
    cut_refused 'No such file' nowhere.drum
    size=$(wc -c <"$work/small.drum")
    for line in 100 $((size / 2)) $((size - 9)); do
        { head -c "$line" "$work/small.drum"; printf '\251'; tail -c +$((line + 2)) \
            "$work/small.drum"; } >"$work/damaged.drum"
        cut_refused 'damaged\|another' damaged.drum
        head -c "$line" "$work/small.drum" >"$work/short.drum"
        cut_refused 'damaged\|too short' short.drum
    done
    drum -n 5 --fill 0.1 --steps 0 --save no/where.drum
    report $((status != 1)) "--save: no such folder" "$(seen)"
}

# A drum of three copies of a saved slice: the one in the middle is its mirror image.
slices() {
    [ "$small" ] && return
    local slice=(--history 0 --fill 0.3 --rpm 60 --steps 2500 --vtk --ascii --check)
    drum -n 100 "${slice[@]}" --length 0.1 --out slice --save slice.drum
    is "a slice" spheres 100
    table "$work/slice/spheres_0000.vtk" >"$work/one.txt"
    drum -n 300 "${slice[@]}" --length 0.3 --out slices --load slice.drum --copies 3
    report $status "--copies" "$(seen)"
    is "three slices" inside 300; is "three slices" whole 1
    table "$work/slices/spheres_0000.vtk" >"$work/three.txt"
    # 0.1 diameters of 0.4 m are 0.04 m
    awk 'NR == FNR { for (a = 2; a <= 11; a++) x[$1, a] = $a; next }
         { i = $1 % 100; k = int($1 / 100); s = k == 1 ? -1 : 1; n++
           for (a = 2; a <= 11; a++) {
               want = x[i, a] * (a == 3 || a == 6 || a == 8 || a == 10 ? s : 1)
               d = $a - want - (a == 3 ? 0.04 * (k - 1) : 0); moved += a == 6 && $a * $a > 0
               if (d > 1e-6 || d < -1e-6) bad++ } }
         END { exit !(n == 300 && moved > 150 && !bad) }' "$work/one.txt" "$work/three.txt"
    report $? "three slices: places and motion, the second mirrored"
    drum -n 300 "${slice[@]}" --length 0.3 --load slice.drum --copies 3 --rpm 59 --out slices
    report $((status != 1)) "--copies: another set-up" "$(seen)"
}

gpu_against_serial() {
    [ $cuda = yes ] || return
    local options n=3000 steps=1500
    [ "$small" ] && n=60 steps=180
    while read -r options; do
        # shellcheck disable=SC2086
        drum -n $n "${place[@]}" --steps $steps --check $options
        report $status "GPU against serial: $options" "$(seen)"
        is "GPU against serial: $options" reference_agrees 1
    done <<'LINES'
--sort-every 100
--sort-every 0 --layout dynamic
--sort-every 10 --skin 0.2 --shuffle
--half 0 --layout compact
--deterministic 1
LINES
}

# ---- command line, pictures ----------------------------------------------------------------------

command_line() {
    drum --help
    report $status "--help" "$(seen)"
    grep -q -- '--sort-every  *N' "$work/out.txt"; report $? "--help lists the options" "$(seen)"
    local line
    while read -r line; do
        # shellcheck disable=SC2086
        drum $line
        [ $status -eq 2 ] && [ -s "$work/err.txt" ]
        report $? "exit status 2: $line" "$(seen)"
    done <<'LINES'
--no-such-option
-n
-n 0
-n 1.5
-n 1000x
--steps=many
--history 2
--layout best
--mode slow
--fill 0
--dt nan
--vtk=yes
--copies 2
LINES
    drum -n 10 --steps 10
    [ "$(wc -l <"$work/err.txt")" -le 10 ] && grep -q 'step 10 of 10' "$work/err.txt" &&
        ! grep -q "$(printf '\r')" "$work/err.txt"
    report $? "no terminal: a few lines, no moving bar" "$(seen)"
    local last='^spheres 10, inside 10, contacts [0-9]*, at the wall [0-9]*, kinetic energy [0-9.e-]* J, '
    last+='centre of mass [0-9.]* m from the axis, [-0-9.]* degrees round$'
    tail -n 1 "$work/out.txt" | grep -q "$last"
    report $? "the last line has the figures" "$(seen)"
    grep -q 'collect triangle neighbours .* ms' "$work/out.txt" &&
        grep -q '[0-9.]* steps/s' "$work/out.txt"
    report $? "times of the parts" "$(seen)"
    drum -n 10 --steps 5 --check
    [ ! -s "$work/err.txt" ] && awk 'NF != 2 { exit 1 }' "$work/out.txt"
    report $? "--check prints names and values, nothing else" "$(seen)"
}

# The first coordinate of the binary file, most significant byte first, is that of the text.
pictures() {
    local offset bytes
    make_png_reader || return
    drum -n 100 --steps 10 --frames 2 --vtk --rpm 200 --out pictures
    report $status "--frames --vtk" "$(seen)"
    grep -q 'pictures/frame_0000.png' "$work/out.txt"
    report $? "it says where the pictures are" "$(seen)"
    for k in 0 1; do is_picture pictures/frame_000$k.png 720 794 300; done
    ! cmp -s "$work/pictures/frame_0000.png" "$work/pictures/frame_0001.png"
    report $? "something moves"
    [ ! -e "$work/pictures/frame_0002.png" ] && [ -s "$work/pictures/spheres_0001.vtk" ] &&
        [ -s "$work/pictures/contacts_0001.vtk" ]
    report $? "two frames, each with its files" "$(ls "$work/pictures")"
    drum -n 100 --steps 0 --vtk --ascii --stl a.stl --out text
    offset=$(grep -abo 'POINTS 100 float' "$work/pictures/spheres_0000.vtk" | cut -d: -f1)
    bytes=$(tail -c +$((offset + 18)) "$work/pictures/spheres_0000.vtk" | head -c 4 | od -An -tu1)
    # shellcheck disable=SC2086
    set -- $bytes
    expect_near "binary VTK" "$(awk -v a="$1" -v b="$2" -v c="$3" -v d="$4" 'BEGIN {
        e = (a % 128) * 2 + int(b / 128); f = 1 + ((b % 128) * 65536 + c * 256 + d) / 8388608
        printf "%.9g", (a > 127 ? -1 : 1) * f * 2 ^ (e - 127) }')" \
        "$(awk '/^POINTS/ { getline; print $1 }' "$work/text/spheres_0000.vtk")" 1e-7
    [ "$small" ] && return
    drum --demo -n 100 --steps 20 --out demo; is_picture demo/frame_0011.png 720 794 300
}

drum_file; against_awk; free_fall; turning; meshes; rest; bad_files
other_ways; statistics; at_rest; bits; averages; cut_in_two; saved_files; slices
gpu_against_serial
command_line; pictures
sum_up
