#!/bin/bash
# Tests examples/dam_break as its user sees it: files in, files out, figures, exit statuses.
#
#   tests/examples/test_dam_break.sh [PROGRAM]     default: build/dam_break; with
#                                         build/cuda/dam_break (any path with "cuda" in it) the
#                                         GPU's program is tested. TEST_SMALL: less work, for the
#                                         emulator.
#
# Says "ok"/"FAILED" for each check and "N passed, M failed" at the end. Where a number is expected
# it comes from a formula beside the check, not from an earlier run.
. "$(dirname "$0")/examples.sh" dam_break "${1:-}"

dam() { run "$@"; }
seen() {
    echo "exit status $status; $(head -c 300 "$work/out.txt") $(head -c 300 "$work/err.txt")"
}
# near A B RELATIVE: do two numbers agree?
near() {
    awk -v a="$1" -v b="$2" -v t="$3" \
        'BEGIN { d = a - b; if (d < 0) d = -d; m = b < 0 ? -b : b; exit !(a != "" && b != "" && d <= t * (m > 1e-30 ? m : 1)) }'
}

# ---- text files ---------------------------------------------------------------------------------

round_trip() {
    dam -n 1000 --steps 0 --write a.txt --check
    report $status "write the start state" "$(seen)"
    dam --read a.txt --steps 0 --write b.txt --check
    cmp -s "$work/a.txt" "$work/b.txt"
    report $? "a state that is read and written is the same, bit for bit" \
        "$(diff "$work/a.txt" "$work/b.txt" | head -n 3)"
    report $(($(grep -vc '^#' "$work/b.txt") != 1000)) "1000 lines" "$(grep -vc '^#' "$work/b.txt")"
    dam -n 1000 --steps 0 --seed 2 --write c.txt --check
    ! cmp -s "$work/a.txt" "$work/c.txt"
    report $? "another seed, another start"
    awk '!/^#/ && ($1 < 0.5 || $1 > 32 || $2 < 0.5 || $2 > 63.5 || $3 < 0.5 || $3 > 63.5) { bad = 1 } END { exit bad }' "$work/a.txt"
    report $? "the start lies in the left half"
}

reading() {
    printf '# a comment\n\n 1 2 3\n\t4.5e0\t+5 6.25 # behind\r\n   # only space\n63.5 0 64' \
        >"$work/good.txt"
    dam --read good.txt --steps 0 --write d.txt --check
    printf '1 2 3\n4.5 5 6.25\n63.5 0 64\n' >"$work/expected.txt"
    grep -v '^#' "$work/d.txt" | cmp -s - "$work/expected.txt"
    report $? "comments, blank lines, tabs, CRLF, no newline at the end" "$(seen)"
}

# refused NAME LINE CONTENTS(printf): exit status 1, and the message begins with file:line
refused() {
    printf '%b' "$3" >"$work/bad.txt"
    dam --read bad.txt --steps 0 --check
    [ $status -eq 1 ] && grep -q "^dam_break: bad.txt:$2: ..." "$work/err.txt" &&
        [ ! -s "$work/out.txt" ]
    report $? "refused: $1" "$(seen)"
}

bad_files() {
    refused 'two numbers'           2 '1 2 3\n4 5\n'
    refused 'four numbers'          1 '1 2 3 4\n'
    refused 'a word'                3 '# c\n1 2 3\n1 two 3\n'
    refused 'letters behind'        1 '1 2 3x\n'
    refused 'letters inside'        1 '1 2x3 4\n'
    refused 'commas'                1 '1,2,3\n'
    refused 'nan'                   4 '1 1 1\n\n\n1 nan 3\n'
    refused 'inf'                   1 'inf 2 3\n'
    refused 'too large for a float' 1 '1 2 1e99\n'
    refused 'beyond the box'        2 '1 2 3\n1 64.001 3\n'
    refused 'before the box'        2 '1 2 3\n-0.001 1 3\n'
    refused 'a zero byte'           1 '1 2 3\0 4\n'
    refused 'a very long line'      2 "1 2 3\n1 2 $(printf '%02000d' 0)\n"
    printf '# nothing\n\n' >"$work/empty.txt"
    dam --read empty.txt; report $((status != 1)) "refused: a file without points" "$(seen)"
    dam --read missing.txt; report $((status != 1)) "refused: no such file" "$(seen)"
    dam --read .; report $((status != 1)) "refused: a folder" "$(seen)"
    dam -n 10 --steps 0 --write no/where.txt
    report $((status != 1)) "refused: cannot write there" "$(seen)"
    dam -n 10 --steps 0 --frames 1 --out /dev/null/here
    report $((status != 1)) "refused: cannot make that folder" "$(seen)"
    [ -e /dev/full ] || return
    dam -n 1000 --steps 0 --write /dev/full
    report $((status != 1)) "refused: the disk is full" "$(seen)"
}

# ---- command line -------------------------------------------------------------------------------

command_line() {
    dam --help
    report $status "--help" "$(seen)"
    grep -q -- '--read  *FILE' "$work/out.txt"
    report $? "--help lists the options" "$(seen)"
    local line
    while read -r line; do
        # shellcheck disable=SC2086
        dam $line
        [ $status -eq 2 ] && [ -s "$work/err.txt" ]
        report $? "exit status 2: $line" "$(seen)"
    done <<'LINES'
--no-such-option
-n
-n 0
-n -5
-n 1.5
-n 1000x
--steps=many
--method best
--walk slow
--dt 0
--dt nan
--half=yes
LINES
    dam -n 10 --steps 1 --method packed --walk strips
    [ $status -eq 1 ] && grep -q 'UGRID_BAD_WALK' "$work/err.txt"
    report $? "a walk that the method does not have is refused" "$(seen)"
    dam -n=10 --steps=1 --check
    report $((status != 2)) "-n=10 is no option, --steps=1 is" "$(seen)"
}

# ---- physics ------------------------------------------------------------------------------------

# One sphere falls freely: after k steps of symplectic Euler z = z0 - g dt^2 k (k + 1) / 2, v = g dt
# k.
free_fall() {
    echo '32 32 60' >"$work/one.txt"
    dam --read one.txt --steps 100 --check
    expect_near "free fall: height" "$(value centre_z)" \
        "$(awk 'BEGIN { print 60 - 0.0096 * 0.25 * 100 * 101 / 2 }')" 1e-5
    expect_near "free fall: speed" "$(value fastest)" \
        "$(awk 'BEGIN { print 0.0096 * 0.5 * 100 }')" 1e-5
    expect_near "free fall: kinetic energy" "$(value kinetic_energy)" \
        "$(awk 'BEGIN { v = 0.0096 * 0.5 * 100; print v * v / 2 }')" 1e-5
}

# Two spheres with overlap 0.25 and nothing but springs: k overlap^2 / 2 = 1/64 becomes kinetic
# energy, and the centre stays.
two_spheres() {
    printf '31.625 20 20\n32.375 20 20\n' >"$work/two.txt"
    dam --read two.txt --steps 0 --check
    expect_near "two spheres: energy of the spring" "$(value spring_energy)" 0.015625 1e-9
    expect_near "two spheres: one contact" "$(value contacts)" 1 0
    dam --read two.txt --steps 40 --gravity 0 --dashpot 0 --shear 0 --dt 0.05 --check
    expect_near "two spheres: apart" "$(value contacts)" 0 0
    expect_near "two spheres: energy is kept" "$(value kinetic_energy)" 0.015625 0.02
    expect_near "two spheres: their centre stays" "$(value centre_x)" 32 1e-6
    dam --read two.txt --steps 40 --gravity 0 --dashpot 0.1 --dt 0.05 --check
    awk -v e="$(value kinetic_energy)" 'BEGIN { exit !(e > 0.0015 && e < 0.0148) }'
    report $? "two spheres: the dashpot takes energy" "$(seen)"
}

# A sphere on the floor stays there; a speed that meets a wall is turned round and halved.
walls() {
    echo '10 10 0.5' >"$work/floor.txt"
    dam --read floor.txt --steps 50 --check
    expect_near "on the floor" "$(value centre_z)" 0.5 1e-6
    echo '10 10 0.9' >"$work/above.txt"
    dam --read above.txt --steps 2000 --check
    expect_near "bounces, then rests on the floor" "$(value centre_z)" 0.5 1e-2
}

total() { awk '/_energy/ { e += $2 } END { printf "%.9e\n", e }' "$work/out.txt"; }

# A heap that falls and meets the floor and the wall. All methods and walks add the same forces in
# different orders:
# after 40 steps rounding has changed the energy by 2e-9 (one contact forgotten in one step: 6e-6),
# and the same order gives the same figures. (Later on the heap is chaotic: after 60 steps under
# twice the gravity it is 1e-5.)
methods_agree() {
    local method walk half heap="-n 1500 --grid 16 --gravity 0.02 --steps 40 --check" before energy
    # shellcheck disable=SC2086
    {
        dam $heap --steps 0; before=$(total)
        dam $heap; energy=$(total); cp "$work/out.txt" "$work/sort.txt"
        awk -v c="$(value contacts)" 'BEGIN { exit !(c > 1500) }';
            report $? "the heap has contacts" "$(seen)"
        awk -v a="$energy" -v b="$before" 'BEGIN { exit !(a > 0 && a < b) }';
            report $? "energy goes down" "$before, then $energy"
        dam $heap; report $(($(cmp "$work/out.txt" "$work/sort.txt" | wc -l))) \
            "the same run, the same figures" "$(seen)"
        for method in fixed count sort list tight packed; do
            for walk in cells strips modular hybrid; do
                case $method-$walk in fixed-[sh]* | list-[sh]* | tight-[sh]* | packed-[sh]*) \
                    continue ;; esac
                for half in "" --half; do
                    [ $cuda$half = yes--half ] && continue
                    dam $heap --method $method --walk $walk $half
                    expect_near "$method $walk $half: energy" "$(total)" "$energy" 1e-7
                    [ "$walk$half" = cells ] && cp "$work/out.txt" "$work/$method.txt"
                done
            done
        done
    }
    [ $cuda = yes ] && return
    cmp -s "$work/fixed.txt" "$work/count.txt"
    report $? "fixed and count meet particles in the same order: equal in every digit"
    cmp -s "$work/list.txt" "$work/packed.txt"; report $? "list and packed, too"
}

slots() {
    dam -n 1500 --grid 16 --steps 20 --method fixed --slots 1 --check
    cp "$work/out.txt" "$work/one.txt"
    if [ $cuda = yes ]; then
        [ $status -eq 1 ] && grep -q -- '--slots' "$work/err.txt"
        report $? "a full cell ends the run" "$(seen)"
        return
    fi
    dam -n 1500 --grid 16 --steps 20 --method fixed --check
    cmp -s "$work/one.txt" "$work/out.txt"
    report $? "a full cell makes the grid larger, and changes nothing" "$(seen)"
}

gpu_against_serial() {
    [ $cuda = yes ] || return
    local method size="-n 20000 --grid 32 --steps 300"
    [ "${TEST_SMALL:-}" ] && size="-n 600 --grid 8 --steps 60"
    for method in fixed count sort list tight packed; do
        # shellcheck disable=SC2086
        dam $size --method $method --check
        report $status "GPU against serial: $method" "$(seen)"
    done
}

# ---- pictures -----------------------------------------------------------------------------------

pictures() {
    make_png_reader || return
    dam --demo -n 800 --steps 30 --frames 3 --out pictures
    report $status "--demo, small" "$(seen)"
    grep -q 'pictures/sheet.png' "$work/out.txt"
    report $? "--demo says where the pictures are" "$(seen)"
    is_picture pictures/sheet.png 1680 +401 200
    for k in 0 1 2; do is_picture pictures/frame_000$k.png 832 +401 200; done
    [ ! -e "$work/pictures/frame_0003.png" ]; report $? "three frames, no more"
    ! cmp -s "$work/pictures/frame_0000.png" "$work/pictures/frame_0002.png"
    report $? "something moves"
    dam -n 800 --steps 0 --sheet --out still; is_picture still/sheet.png 1680 +401 200
}

# The first coordinate in the file, most significant byte first, is that of the state.
paraview() {
    local offset
    echo '2 3 4' >"$work/one.txt"
    dam --read one.txt --steps 0 --vtk --out vtk
    report $status "--vtk" "$(seen)"
    head -n 4 "$work/vtk/frame_0000.vtk" 2>/dev/null | tr -d '\0' | grep -q '^DATASET POLYDATA'
    report $? "vtk: header"
    offset=$(grep -abo 'POINTS 1 float' "$work/vtk/frame_0000.vtk" | cut -d: -f1)
    [ "$(tail -c +$((offset + 16)) "$work/vtk/frame_0000.vtk" | head -c 12 | od -An -tx1 |
        tr -d ' \n')" = 400000004040000040800000 ]
    report $? "vtk: 2 3 4 with the most significant byte first"
}

progress() {
    dam -n 100 --steps 10
    [ "$(wc -l <"$work/err.txt")" -le 10 ] && grep -q 'step 10 of 10' "$work/err.txt" &&
        ! grep -q "$(printf '\r')" "$work/err.txt"
    report $? "no terminal: a few lines, no moving bar" "$(seen)"
    grep -q 'kinetic energy' "$work/out.txt" &&
        grep -q 'build .* forces .* integration' "$work/out.txt"
    report $? "figures at the end" "$(seen)"
    dam -n 100 --steps 10 --check
    [ ! -s "$work/err.txt" ] && awk 'NF != 2 { exit 1 }' "$work/out.txt"
    report $? "--check prints names and values, nothing else" "$(seen)"
}

round_trip; reading; bad_files; command_line; free_fall; two_spheres; walls; methods_agree; slots
gpu_against_serial; pictures; paraview; progress
sum_up
