#!/bin/bash
# Tests examples/mpi/mpi_slabs.c and .cu on 1, 2, 3 and 4 ranks of this machine.
#
#   tests/examples/test_mpi_slabs.sh [PROGRAM]      default: build/mpi_slabs, or, where that is not
#                                          there, one built here with mpicc. With
#                                          build/emu/cuda_mpi_slabs.asan (any path with "cuda" in
#                                          it) it is the GPU's program.
#                                          TEST_SMALL: less work, for the emulator.
#   tests/examples/test_mpi_slabs.sh --self-check   plants mistakes in copies of the source: each
#                                                   must be found
#
# Says "FAILED" for each check that fails and "N passed, M failed[, K skipped]" at the end. What
# must hold: any number of ranks gives the same contacts and the same particles, bit for bit (the
# files that they write are compared), as one rank does that looks at all pairs; contacts are
# counted, and steps are made, a second time in awk; the sum of all velocities stays; the digest of
# one run is written down here.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." || exit 1
. tests/common/units.sh
work=$units
root=$PWD
small=${TEST_SMALL:+yes}
mode=test; [ "${1:-}" = --self-check ] && { mode=self-check; shift; }
program=${1:-}
mpicc=${MPICC:-mpicc}

report() {      # report STATUS NAME [WHAT WAS SEEN]
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)); echo "FAILED   mpi_slabs: $2: ${3:-}"
    fi
}
skip() { skipped=$((skipped + 1)); echo "skipped  $1"; }
finish() {
    echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
    [ $failed -eq 0 ]
    exit
}

command -v mpirun >/dev/null && { [ "$program" ] || command -v "$mpicc" >/dev/null; } ||
    { skip "MPI: no mpicc and mpirun (Debian: libopenmpi-dev openmpi-bin)"; finish; }

# More ranks than cores, also as root, as in a container; and without asking the kernel to copy
# between processes, which containers forbid.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_btl=self,vader
# In folders of this test alone: two mpirun of one user at once share theirs, and the one that ends
# first may remove what the other uses.
mkdir "$work/s" "$work/v"
export OMPI_MCA_orte_tmpdir_base=$work/s OMPI_MCA_btl_vader_backing_directory=$work/v
over=; mpirun --version 2>/dev/null | grep -q 'Open MPI' && over=--oversubscribe
export EMU_QUIET=1 ASAN_OPTIONS="detect_leaks=0 ${ASAN_OPTIONS:-}" \
    # MPI keeps what it has until the process ends

# build OUTPUT SOURCE FLAGS...
build() {
    local out=$1 source=$2; shift 2
    "$mpicc" -std=c99 -Wall -Wextra -Werror "$@" "$source" -o "$out" -lm
}

# run RANKS ARGUMENTS...: sets status; stdout and stderr go to files.
run() {
    local ranks=$1; shift
    # shellcheck disable=SC2086
    (cd "$work" && timeout 1200 mpirun $over -n "$ranks" "$program" --every 0 "$@") \
        >"$work/out.txt" 2>"$work/err.txt" </dev/null
    status=$?
}
seen() {
    echo "exit status $status; $(head -c 300 "$work/out.txt") $(head -c 600 "$work/err.txt")"
}
value() { awk -v name="$1" '$1 == name { print $2 }' "$work/out.txt"; }
is() { [ "$2" = "$3" ]; report $? "$1" "found $2, expected $3; $(seen)"; }

# ---- any number of ranks -------------------------------------------------------------------------

# again PARTICLES PERIODIC FILE...: from each file: contacts, counted over all pairs; how many, and
# how many are outside; the last file's sum of velocities along x
again() {
    awk -v periodic="$1" '
        NR == 1 { L = $3 + 0; H = $4 + 0; W = $5 + 0; D = $9 + 0; n = 0; next }
        { if ($1 != n) wrong++
          x[n] = $2; y[n] = $3; z[n] = $4; sum = (n ? sum : 0) + $5; n++
          if ($2 < 0 || $2 >= L || $3 < 0 || $3 >= H || $4 < 0 || $4 >= W) wrong++ }
        END {
            for (i = 0; i < n; i++) for (j = 0; j < i; j++) {
                dx = x[i] - x[j]; dx = dx < 0 ? -dx : dx; if (periodic && dx > L / 2) dx = L - dx
                if (dx <= D && dx * dx + (y[i] - y[j]) ^ 2 + (z[i] - z[j]) ^ 2 <= D * D) contacts++
            }
            printf "again %d %d %d %.0f\n", n, contacts, wrong, sum
        }' "$2"
}

# case NAME ARGUMENTS...: on 1, 2, 3 and 4 ranks, the last with all pairs. (Contacts of the last
# step are those of the places that are written: pushes come after them, moves before.)
same_on_all() {
    local name=$1 ranks first contacts periodic=0 n; shift
    case " $* " in *" --periodic "*) periodic=1 ;; esac
    for ranks in 1 2 3 4; do
        # shellcheck disable=SC2046
        run $ranks "$@" --write end.$ranks $([ $ranks -eq 4 ] && echo --check)
        report $status "$name, $ranks ranks" "$(seen)"
        if [ $ranks -eq 1 ]; then
            first=$(grep -v '^#' "$work/out.txt") contacts=$(value contacts) n=$(value particles)
        else
            is "$name, $ranks ranks: figures" "$(grep -v '^#\|all_pairs' "$work/out.txt")" "$first"
            cmp -s "$work/end.1" "$work/end.$ranks"
            report $? "$name, $ranks ranks: particles" "$(seen)"
        fi
    done
    is "$name: all pairs" "$(value all_pairs_agree)" 1
    is "$name: counted again" "$(again $periodic "$work/end.4" | cut -d ' ' -f 2-4)" \
        "$n $contacts 0"
}

all_ranks() {
    local n=600 steps=30
    [ "$small" ] && n=200 steps=6
    same_on_all "walls" --particles $n --steps $steps --speed 0.1
    same_on_all "periodic" --particles $n --steps $steps --speed 0.1 --periodic
    same_on_all "thin slabs" --particles $n --box 3 8 9 --steps $steps --periodic
    same_on_all "all in one corner" --particles $n --box 60 8 8 --fill 0.05 --steps $steps
    [ "$small" ] && return
    same_on_all "one particle" --particles 1 --steps $steps --periodic --speed 1
    same_on_all "fast ones" --particles $n --box 9 7 5 --steps $steps --speed 40 --no-forces
    same_on_all "fast ones that push" --particles $n --box 9 7 5 --steps $steps --speed 20 \
        --periodic
    same_on_all "new borders" --particles $n --box 60 8 8 --fill 0.05 --steps $steps --balance 3 \
        --speed 0.2
    same_on_all "crowded" --particles $n --box 4 4 4 --steps $steps --periodic
}

# More ranks than fit side by side into two diameters: ghosts go to neighbours of neighbours.
thinner() {
    local first
    run 1 --particles 150 --box 3 5 5 --steps 10 --periodic; first=$(value digest)
    run 7 --particles 150 --box 3 5 5 --steps 10 --periodic --check
    is "7 ranks, 3 diameters: digest" "$(value digest)" "$first"
    is "7 ranks, 3 diameters: all pairs" "$(value all_pairs_agree)" 1
}

nobody() {
    local ranks
    for ranks in 1 3; do
        run $ranks --particles 0 --steps 3 --check --write empty
        [ $status -eq 0 ] && [ "$(value contacts)" = 0 ] && [ "$(wc -l <"$work/empty")" -eq 1 ]
        report $? "no particles, $ranks ranks" "$(seen)"
    done
}

# ---- physics, figures ----------------------------------------------------------------------------

# Pushes are opposite, wherever a border lies between two: without walls along x the sum of
# velocities stays what it was, to the last bit.
momentum() {
    local before after n=800
    [ "$small" ] && n=200
    run 3 --particles $n --periodic --steps 1 --write before
    before=$(again 1 "$work/before" | cut -d ' ' -f 5)
    run 3 --particles $n --periodic --steps 20 --write after
    after=$(again 1 "$work/after" | cut -d ' ' -f 5)
    is "momentum" "$after" "$before"
    [ "$before" -ne 0 ] && ! cmp -s "$work/before" "$work/after"
    report $? "momentum: they move" "$before"
    cut -d ' ' -f 5 "$work/before" | cmp -s - <(cut -d ' ' -f 5 "$work/after"); [ $? -ne 0 ]
    report $? "momentum: they push"
}

# step_again PERIODIC BEFORE AFTER: makes the step between two files in awk. How many particles are
# not where and how they should be.
# (Doubles hold whole numbers up to 2^53; int divides towards zero.)
step_again() {
    awk -v periodic="$1" '
        FNR == 1 { for (a = 0; a < 3; a++) box[a] = $(a + 3) + 0; D = $9 + 0; next }
        FNR == NR { for (a = 0; a < 3; a++) { x[FNR, a] = $(a + 2); v[FNR, a] = $(a + 5) } n = FNR;
                    next }
        { for (a = 0; a < 3; a++) { there[FNR, a] = $(a + 2); then[FNR, a] = $(a + 5) } }
        END {
            for (i = 2; i <= n; i++) for (a = 0; a < 3; a++) {
                x[i, a] += int(v[i, a] / 256)
                period = a == 0 && periodic ? box[a] : 2 * box[a]
                while (x[i, a] < 0) x[i, a] += period
                while (x[i, a] >= period) x[i, a] -= period
                if (x[i, a] >= box[a]) { x[i, a] = period - 1 - x[i, a]; v[i, a] = -v[i, a] }
            }
            for (i = 2; i <= n; i++) for (j = 2; j <= n; j++) {
                for (a = 0; a < 3; a++) d[a] = x[j, a] - x[i, a]
                if (periodic && d[0] > box[0] / 2) d[0] -= box[0]
                if (periodic && d[0] < -box[0] / 2) d[0] += box[0]
                square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
                if (i == j || square > D * D) continue
                rate = 0
                for (a = 0; a < 3; a++) rate += d[a] * (v[j, a] - v[i, a])
                for (a = 0; a < 3;
                    a++) push[i, a] += int(int(rate / D) * d[a] / (32 * D)) - \
                        int((D * D - square) * d[a] / (D * D / 2))
            }
            for (i = 2; i <= n; i++) for (a = 0; a < 3; a++) if (there[i, a] != x[i, a] ||
                then[i, a] != v[i, a] + push[i, a]) { wrong++; break }
            print n - 1, wrong + 0
        }' "$2" "$3"
}

steps_in_awk() {
    local speed periodic way n=300
    [ "$small" ] && n=150
    for speed in 0.3 30; do for periodic in 0 1; do
        way=; [ $periodic = 1 ] && way=--periodic
        # shellcheck disable=SC2086
        { run 3 --particles $n --steps 5 --speed $speed $way --write before
          run 2 --particles $n --steps 6 --speed $speed $way --write after; }
        is "a step in awk: --speed $speed $way" \
            "$(step_again $periodic "$work/before" "$work/after")" "$n 0"
    done; done
}

# The same on all machines, on CPUs and GPUs.
written_down() {
    run 2 --particles 300 --box 3 6 6 --steps 40 --periodic
    is "digest" "$(value digest)" 9a34af44e344a67b
    is "contacts" "$(value contacts) $(value contacts_of_all_steps)" "1447 56106"
    run 2 --particles 300 --box 3 6 6 --steps 40 --periodic --seed 2
    [ $status -eq 0 ] && [ "$(value digest)" != 9a34af44e344a67b ]; report $? "--seed" "$(seen)"
}

fullest() { awk '/^# .* the fullest has/ { print $(NF - 1) }' "$work/out.txt"; }

balance() {
    run 3 --particles 600 --box 60 8 8 --fill 0.1 --steps 5
    is "without --balance: the fullest" "$(fullest)" 600
    run 3 --particles 600 --box 60 8 8 --fill 0.1 --steps 5 --balance 1
    [ "$(fullest)" -lt 240 ]; report $? "--balance: the fullest" "$(seen)"
}

lines() {
    run 2 --particles 300 --steps 5 --every 2 --speed 0.3
    [ $status -eq 0 ] && [ \
        "$(awk 'NF == 10 && $1 ~ /^[0-9]+$/ { printf "%s ", $1 }' "$work/out.txt")" = "2 4 " ]
    report $? "--every: lines" "$(seen)"
    run 2 --particles 300 --steps 4 --every 4 --speed 0.3
    is "--every: contacts" \
        "$(awk '$1 == 4 && NF == 10 { print $2 }' "$work/out.txt")" "$(value contacts)"
}

weak() {
    run 3 --particles 300 --steps 3 --weak
    [ $status -eq 0 ] && [ \
        "$(awk '$1 ~ /^[0-9]+$/ && $2 == $1 * 300 && $NF ~ /%$/ && NF == 13 { printf "%s ", $1 }' \
        "$work/out.txt")" = "1 2 3 " ]
    report $? "--weak: a table" "$(seen)"
}

# ---- command line --------------------------------------------------------------------------------

command_line() {
    local line
    (cd "$work" && mpirun $over -n 2 "$program" --help) >"$work/out.txt" 2>"$work/err.txt" \
        </dev/null; status=$?
    [ $status -eq 0 ] && [ "$(grep -c -- '--particles N' "$work/out.txt")" -eq 1 ]
    report $? "--help, once" "$(seen)"
    while read -r line; do
        # shellcheck disable=SC2086
        run 2 $line
        [ $status -eq 2 ] && [ "$(grep -c '^mpi_slabs: ' "$work/err.txt")" -eq 1 ]
        report $? "exit status 2: $line" "$(seen)"
    done <<'LINES'
--no-such-option
--particles
--particles -1
--particles 1.5
--steps 0
--box 2 9 9
--box 9 9
--box 20000 9 9
--density 0
--fill 2
--speed 61
--balance 0
--messages pigeon
--write
--check --particles 50000
--weak --check
--particles 1e12
LINES
    run 2 --particles 20 --steps 2 --write no/where
    [ $status -ne 0 ] && grep -q '^mpi_slabs: no/where: ' "$work/err.txt"
    report $? "cannot write there" "$(seen)"
    run 1 --particles 1e11 --box 16384 16384 16384 --steps 1
    [ $status -ne 0 ] && grep -q '^mpi_slabs: particles of a rank: 100000000000, ' "$work/err.txt"
    report $? "more than an int" "$(seen)"
}

# A run of the C program with the sanitizers; leaks only where no function of MPI is on the way.
sanitized() {
    case $program in *cuda*) return ;; esac
    build "$work/sanitized" examples/mpi/mpi_slabs.c -O1 -g1 -fsanitize=address,undefined \
        -fno-sanitize-recover=all 2>"$work/err.txt" ||
        { skip "sanitizers: $mpicc has none"; return; }
    printf 'leak:%s\n' libmpi libopen libpmix libhwloc libevent mca_ libucs libucp libuct \
        libfabric >"$work/leaks"
    local program=$work/sanitized
    export ASAN_OPTIONS=detect_leaks=1 \
        LSAN_OPTIONS=suppressions=$work/leaks:print_suppressions=0:fast_unwind_on_malloc=0
    run 3 --particles 300 --box 12 6 6 --steps 12 --speed 3 --periodic --balance 5 --check \
        --write sanitized.txt
    export ASAN_OPTIONS=detect_leaks=0
    [ $status -eq 0 ] && ! grep -q 'Sanitizer\|runtime error' "$work/err.txt"
    report $? "sanitizers" "$(seen)"
}

# ---- can all that fail? --------------------------------------------------------------------------

# planted NAME FILE SED: builds copies with the mistake and runs the checks, of which one has to
# fail.
planted() {
    local name=$1 file=$2 change=$3 to=$work/planted
    rm -rf "$to"; mkdir -p "$to/examples/mpi"
    cp ugrid.h "$to/"; cp -r examples/common "$to/examples/"
    cp examples/mpi/mpi_slabs*.[ch] "$to/examples/mpi/"
    sed -i "$change" "$to/examples/mpi/$file"
    cmp -s "examples/mpi/$file" "$to/examples/mpi/$file" &&
        { report 1 "$name" "there was nothing to change"; return; }
    build "$to/program" "$to/examples/mpi/mpi_slabs.c" -O1 -Wno-error ||
        { report 1 "$name" "does not compile"; return; }
    # shellcheck disable=SC2030
    ( program=$to/program passed=0 failed=0
      case $name in momentum*) momentum ;; law*) steps_in_awk ;; *) same_on_all "$name" \
          --particles 300 --box 6 6 6 --steps 8 --periodic --speed 0.3 ;; esac
      [ $failed -gt 0 ] ) >"$work/log" 2>&1
    report $? "planted: $name" "no check failed"
}

self_check() {
    planted "one side's halo is missing" mpi_slabs.h \
        's/low = visit->x + visit->shift - SLABS_DIAMETER;/low = visit->x + visit->shift;/'
    planted "images are missing" mpi_slabs.h \
        's/visit.image = inside ? 2 : map->periodic ? -2 : -1;/visit.image = inside ? 2 : -1;/'
    planted "images keep their x" mpi_slabs.c 's/copy->x\[0\] += visit.shift;//'
    planted "no particle migrates" mpi_slabs.c \
        's/if (owner != run->map.self) run->mail/if (0) run->mail/; s/if (owner != run->map.self) work->out/if (0) work->out/'
    planted "a contact counts where it is seen" mpi_slabs.h 's/me->id < other->id;/1;/'
    planted "ghosts are pushed, too, and stay" mpi_slabs.c \
        's/ugrid_id(&work->grid, place) < run->own/ugrid_id(\&work->grid, place) <= run->own/'
    planted "momentum: a wall in a periodic box" mpi_slabs.h 's/a == 0 \&\& model->periodic/0/'
    planted "law: a mirror that is one off" mpi_slabs.h 's/at = period - 1 - at;/at = period - at;/'
    planted "law: a weaker spring" mpi_slabs.h 's/stiff = 128/stiff = 129/'
    planted "a search as wide as half a diameter" mpi_slabs.c \
        's/near_place(&work->grid, place, SLABS_REACH)/near_place(\&work->grid, place, 0.5f)/'
    planted "momentum: the dashpot pulls only one" mpi_slabs.h \
        's|rate / D \* d\[a\] / (32 \* D)|(rate / D * d[a] / (32 * D) > 0)|'
}

if [ "$mode" = self-check ]; then self_check; finish; fi
if [ ! "$program" ]; then
    program=$root/build/mpi_slabs
    [ -x "$program" ] || { program=$work/mpi_slabs; build "$program" examples/mpi/mpi_slabs.c -O3 ||
        { report 1 "compiling"; finish; }; }
fi
program=$(realpath "$program")
[ -x "$program" ] || { echo "no program $program"; report 1 "the program"; finish; }
all_ranks; thinner; nobody; momentum; steps_in_awk; written_down; balance; lines
if [ ! "$small" ]; then weak; command_line; sanitized; fi
finish
