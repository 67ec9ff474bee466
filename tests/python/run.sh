#!/bin/bash
# Tests packaging/python: the shared library, the package over it, and the scripts; and opens the
# examples' VTK files with VTK.
#
#   tests/python/run.sh               everything that this machine has
#   tests/python/run.sh --self-check  are planted bugs found?
#
# Makes a virtual environment in build/python-venv, with numpy, scipy, ase and vtk from PyPI; what
# cannot be had is skipped. The GPU's half runs on the CPU, by the emulator (tests/emu), where there
# is clang++ or g++. Says "ok", "FAILED" or "skipped" per check, and "N passed, M failed[, K
# skipped]" at the end.
set -u
export LC_ALL=C
cd "$(dirname "$0")/../.." && mkdir -p build/python || exit 1
out=build/python venv=build/python-venv
python=$venv/bin/python emu=$out/emu/libnearfield_cuda.so
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
unset NEARFIELD_LIBRARY NEARFIELD_MODULE

report() {      # report STATUS NAME [WHAT WAS SEEN]
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "ok       python: $2"; return; fi
    failed=$((failed + 1)); echo "FAILED   python: $2: ${3:-}"
}
skip() { skipped=$((skipped + 1)); echo "skipped  python: $1"; }
finish() {
    echo "$passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
    [ $failed -eq 0 ]; exit
}

# counted COMMAND...: shows what it says, and adds up its last line; a program that ends without one
# has failed.
counted() {
    local p f k
    timeout "${LIMIT:-3600}" "$@" >"$work/said.txt" 2>&1 </dev/null
    sed '$d' "$work/said.txt"
    read -r p f k < <(tail -n 1 "$work/said.txt" |
        sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p')
    if [ "${f:-}" ]; then
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + ${k:-0}))
    else
        failed=$((failed + 1))
        echo "FAILED   ${*: -2}: it ended early: $(tail -n 3 "$work/said.txt")"
    fi
}

# ---- what is there -------------------------------------------------------------------------------

has() { "$python" -c "import $1" 2>/dev/null; }
get() { timeout "$1" "$venv/bin/pip" install --quiet --disable-pip-version-check "${@:2}"; }

# One by one: what is missing must not keep the others away.
environment() {
    command -v python3 >/dev/null || { skip "everything: no python3"; finish; }
    [ -x $python ] || python3 -m venv $venv >"$work/venv.txt" 2>&1 ||
        { rm -rf $venv; skip "everything: python3 has no venv (python3-venv)"; finish; }
    local package
    for package in numpy scipy ase vtk; do
        # Half of it may be there, and look as if it were whole.
        has $package || get 1800 $package >"$work/pip.txt" 2>&1 ||
            rm -rf $venv/lib/python*/site-packages/$package{,.libs,-*}
    done
    has numpy && return
    skip "everything: no numpy, and pip cannot get it ($(tail -n 1 "$work/pip.txt"))"; finish
}

sources=(ugrid.h lbvh.h nlist.h nbody.h more/*.h cuda/*.cu packaging/python/library/*)
newer() { local s; for s in "${sources[@]}"; do [ "$s" -nt "$1" ] && return 0; done; return 1; }

# library FOLDER OUT [FLAGS]: of the headers and packaging/python/library in that folder
library() {
    ${CC:-cc} -std=c99 -ffp-contract=off -Wall -Wextra -Wpedantic -Werror -shared -fPIC \
        "${3:--O3}" -I"$1" "$1"/packaging/python/library/nearfield{,64}.c -o "$2" -lm -pthread
}

# package FOLDER: its Python package, as PYTHONPATH finds it there
package() {
    mkdir -p "$1/nearfield" && cp packaging/python/nearfield/*.py* "$1/nearfield/" &&
        python3 packaging/python/declare.py . "$1/nearfield/_declared.py"
}

# The CUDA libraries, for the emulator: its .so has the place of the GPU's.
emulated() {
    local cxx flags device emu_flags name last=$out/emu/libnearfield64_cuda.so
    cxx=$(command -v clang++-14 || command -v clang++ || command -v g++) || return 2
    flags="-std=c++17 -fPIC -Itests/emu/include -Itests/emu -I."
    device="$flags -x c++ -D__CUDACC__ -include cuda_runtime.h -O0 -ffp-contract=off"
    case $cxx in *g++) [[ $cxx == *clang* ]] || emu_flags=-fno-tree-loop-distribute-patterns ;; esac
    [ -f $last ] && ! newer $last && ! [ tests/emu/emu.cc -nt $last ] && return 0
    mkdir -p $out/emu
    # shellcheck disable=SC2086
    {
        $cxx $flags -O1 -fno-builtin ${emu_flags:-} -c tests/emu/emu.cc -o $out/emu/emu.o &
        $cxx $device -c packaging/python/library/nearfield.cu -o $out/emu/nearfield.o
        wait $! || return 1
        $cxx $device -c packaging/python/library/nearfield64.cu -o $out/emu/nearfield64.o
        for name in nearfield nearfield64; do
            $cxx -shared $out/emu/emu.o $out/emu/$name.o -o $out/emu/new.so &&
                mv $out/emu/new.so $out/emu/lib${name}_cuda.so || return 1
        done
    } >"$work/emu.txt" 2>&1
}

# ---- the parts -----------------------------------------------------------------------------------

# Does Python call what C declares?
declarations() {
    local double cuda library kind program
    for cuda in 0 1; do for double in 0 1; do
        library=$NEARFIELD_LIBRARY kind=float program=$work/declared-$double-$cuda
        [ $double = 0 ] || kind=double
        if [ $cuda = 1 ]; then
            [ -f $emu ] || continue
            library=$emu kind="$kind, CUDA"
        fi
        NEARFIELD_LIBRARY=$library compares $double $cuda 2>"$work/err.txt" &&
            [ "$(tail -n 1 "$program.txt")" -gt 400 ]
        report $? "structs, enums and prototypes as in C ($kind)" \
            "$(head -n 5 "$program.txt" "$work/err.txt" 2>/dev/null)"
    done; done
}

# compares DOUBLE CUDA: writes $program.c, makes the program and runs it; 2: it cannot be written.
compares() {
    EMU_QUIET=1 "$python" tests/python/python_struct.py "$1" "$2" >"$program.c" || return 2
    ${CC:-cc} -std=c99 -Wall -Wextra -Werror -I. -Ipackaging/python/library "$program.c" \
        -o "$program" && "$program" >"$program.txt"
}

# The liquid keeps its energy, the list its pairs; the timing runs, and finds that both have the
# same number.
scripts() {
    "$python" examples/python/lj.py 300 5 >"$work/lj.txt" 2>&1
    awk '/momentum/ {
            off = $(NF - 2) + 0
            good = $0 ~ /^500 atoms, 300 steps/ && off > 0 && off < 2e-3 && $NF + 0 < 1e-10
        }
        END { exit !good }' "$work/lj.txt"
    report $? "lj.py conserves energy and momentum" "$(tail -n 2 "$work/lj.txt")"
    if has scipy; then
        "$python" examples/python/bench.py 3000 >"$work/bench.txt" 2>&1 &&
            [ "$(grep -c '[0-9]$' "$work/bench.txt")" -ge 4 ]
        report $? "bench.py" "$(tail -n 2 "$work/bench.txt")"
    else skip "bench.py: no scipy"; fi
}

# The programs of docs/start-python.md, and that the second means what it says.
readme() {
    awk -v to="$work/readme" '/^```python$/ { n++; on = 1; next }
        /^```$/ { on = 0 }
        on { print > (to n ".py") }' docs/start-python.md
    cat >>"$work/readme2.py" <<'END'
assert len(offsets) == 100001 and len(ids) == offsets[-1] == len(i)
assert (d < 0.03).all() and (S != 0).any()
assert ids8.shape == (100000, 8) and (ids8[:, 0] == np.arange(100000)).all()
assert (d2[:, 0] == 0).all() and contacts.history.shape[0] > 0
assert acc.shape == (100000, 2) and np.isfinite(acc).all() and np.isfinite(potential).all()
END
    local program module
    for program in "$work"/readme[1-9].py; do
        module=$(sed -n 's/^\(import\|from\) \([a-z]*\).*/\2/p;T;q' "$program")
        has "$module" || { skip "docs/start-python.md: no $module"; continue; }
        "$python" "$program" >"$work/readme.txt" 2>&1
        report $? "docs/start-python.md: ${program##*/}, $module" "$(tail -n 3 "$work/readme.txt")"
    done
}

# The calculator, and nearfield.torch and nearfield.jax where this Python has them (PyPI's are large:
# they are not fetched).
frames() {
    local package
    for package in ase torch jax; do
        if has $package; then counted "$python" tests/python/${package}_checks.py
        else skip "nearfield.$package: no $package"; fi
    done
}

# nlist_search_box against ASE, matscipy and vesin on random systems; those that PyPI gives within a
# minute. ASE alone is among what the environment has.
boxes() {
    local package systems=110 limit=300
    [ ! "${FULL:-}" ] || systems=2000 limit=1800
    for package in matscipy vesin; do
        has $package || get 60 --only-binary :all: $package >"$work/pip.txt" 2>&1 ||
            skip "boxes against $package: pip cannot get it ($(tail -n 1 "$work/pip.txt"))"
    done
    timeout $limit "$python" tests/python/boxes_peers.py "$systems" >"$work/boxes.txt" 2>&1
    case $? in
    77) skip "boxes: $(tail -n 1 "$work/boxes.txt")" ;;
    124) report 1 "boxes against other codes" "it took more than $limit s" ;;
    0) report 0 "boxes against other codes: $(grep -o '^[A-Za-z]* *[0-9]* systems' \
        "$work/boxes.txt" | tr -s ' \n' ' ')" ;;
    *) report 1 "boxes against other codes" "$(tail -n 5 "$work/boxes.txt")" ;;
    esac
}

vtk_files() {
    has vtk || { skip "VTK files: no vtk"; return; }
    local program
    for program in dam_break drum lbvh_steps; do
        [ -x build/linked/$program ] || { skip "VTK files: make build/linked/$program"; return; }
    done
    mkdir "$work/vtk"
    counted "$python" tests/python/python_vtk.py build/linked/{dam_break,drum,lbvh_steps} \
        "$work/vtk"
}

gpu() {
    local lazy
    emulated
    case $? in
    2) skip "the GPU's half: no C++ compiler"; return ;;
    1) report 1 "the CUDA libraries compile for the emulator" "$(head -n 5 "$work/emu.txt")"
       return ;;
    esac
    export EMU_LEAKS=0 EMU_QUIET=1
    counted "$python" tests/python/boxes_emulated.py $emu
    if has torch; then counted "$python" tests/python/torch_emulated.py $emu
    else skip "nearfield.torch on the emulator: no torch"; fi
    for lazy in ${FULL:+0} 1; do     # 1: streams run only when they are waited for
        EMU_LAZY=$lazy counted "$python" examples/python/gpu_check.py --emulator $emu
    done
}

# ---- can it fail? --------------------------------------------------------------------------------

plant() {       # plant FILE SED-SCRIPT: in the copy; one that changes nothing is a failure
    cp "$work/src/$1" "$work/before"
    sed -i "$2" "$work/src/$1"
    ! cmp -s "$work/before" "$work/src/$1"; report $? "planted in $1: $2"
}
found() {       # found CHECK...: by each of them; a crash will do
    local check status
    for check; do
        NEARFIELD_LIBRARY=$work/planted.so NEARFIELD_MODULE=$planted timeout 1800 \
            "$python" tests/python/python_checks.py "$check" >"$work/said.txt" 2>&1
        status=$?
        [ $status -eq 139 ] || { [ $status -ne 0 ] && grep -q "^FAILED" "$work/said.txt"; }
        report $? "planted bug found by: $check" "$(tail -n 3 "$work/said.txt")"
    done
}
# finds CHECK SED-SCRIPT: one bug in the package
finds() { fresh; plant "${3:-$objects}" "$2"; found "$1"; }
differs() {     # differs NAME: what Python declares, from what C does
    local program=$work/d
    NEARFIELD_MODULE=$planted compares 0 0 2>/dev/null
    [ $? -eq 1 ]; report $? "planted bug found by: $1"
}
planted=$work/src/packaging/python
fresh() {
    rm -rf "$work/src"; mkdir -p "$work/src/packaging"
    cp -r ./*.h more "$work/src/"; cp -r packaging/python "$work/src/packaging/"
    cp $out/package/nearfield/_declared.py "$planted/nearfield/"
}

self_check() {
    local py=packaging/python/nearfield check
    local objects=$py/_objects.py list=$py/_neighbors.py object=$py/_object.py
    local arrays=$py/_arrays.py declared=$py/_declared.py
    fresh
    plant ugrid.h 's/d2\[k\] <= limit;/d2[k] < limit;/'
    plant lbvh.h 's/job->distances2\[e\] = lbvh_i_infinity();/job->distances2[e] = 0;/'
    plant lbvh.h 's/(int32_t)(uint32_t)key\[q - begin\] : q/q - (q % 64 == 7) : q/'
    plant packaging/python/library/search.h 's/search->table\[b \* search->kinds + a\] = .*/;/'
    plant packaging/python/library/search.h 's/return sizeof x == .*/return 1 ? x/'
    plant packaging/python/library/trees.h 's/image\[a\] - wrap\[a\] + own/image[a] + wrap[a] + own/'
    plant packaging/python/library/nearfield.c 's/if (at < 0 || at > ray.t_max/if (at < 0/'
    plant packaging/python/library/jax.h 's/search->count > to->capacity) return/0) return/'
    plant packaging/python/library/dlpack.h 's/python->let_go(lent->owner);/;/'
    library "$work/src" "$work/planted.so" -O1; report $? "the library with planted bugs compiles"
    found xla_call dlpack_out
    has scipy && found grid_against_scipy nearest_against_scipy
    found rays neighbor_list_forms nearest_in_any_order cells_and_trees
    has ase && found neighbor_list_against_ase
    cp $out/libnearfield.so "$work/planted.so"
    finds neighbor_list_shapes \
        's/array = host_array("positions", positions, real)/&.reshape(-1, 3)/' $list
    finds neighbor_list_cutoffs 's/if not 0 <= value < np.inf/if value < -9/' $list
    finds neighbor_list_needs 's/if text.startswith("NLIST_OUT_OF_MEMORY"):/if False:/' $list
    finds neighbor_list_forms 's/\(asks.sorted, asks.self = half,\) sorted,/\1 False,/' $list
    finds neighbor_list_arrays \
        's/if isinstance(kind, np.dtype) and not kind.isnative:/if False:/' $arrays
    finds neighbor_list_arrays 's/apart if len(array) > 1 else 0/0/' $list
    finds neighbor_list_processes \
        's/return \(_pools\[dtype\]\).pop()/\1.append(\1[0]) or \1[0]/' $list
    finds whole_numbers 's/array != np.floor(array)/False/' $arrays
    finds flags 's/if array.dtype.kind not in "biuf" or .*/if False:/' $arrays
    finds cuda_wheel 's/if device else None$/if not device else None/' $py/_binding.py
    finds memory_limit 's/limit - _used(column)/1 << 62/' $py/_memory.py
    finds moved_box 's/now is None/True/'
    finds grid_crowds 's/desc.unbounded = 1/return/'
    finds pickle_and_copy 's/ if name not in _OF_THE_LIBRARY}/}/' $object
    finds queries 's/asks.queries = address_of(at)$/asks.queries = address_of(at[::-1].copy())/' \
        $list
    finds neighbor_list_skin 's/return bool(longest <= .*/return bool(longest < 0.5)/' $list
    finds grid_filters 's/self._set_array(keep, "masks", self.n)/pass/'
    finds closest_points 's/ask.t_ends = address_of(ends)/pass/'
    finds refused_shapes \
        's/if array.shape\[:1\] != (count,) or .* != width:/if array.size != count * width:/' \
        $object
    finds refused_queries 's/~np.isfinite(\(values).all(axis=1), "is NaN or\)/np.isnan(\1/' $arrays
    finds layouts 's/array.strides\[0\] if len(array) > 1 else 0$/0/' $object
    finds history 's|_EVENTS.index(kind)|0|'
    finds one_builds_alone 's/if self._readers or len(self._writers) > 1/if False/' $object
    finds views_are_read_only 's/not writeable)/False)/' $arrays
    finds nbody_steps 's/address_of(speed), address_of(acc)/address_of(acc), address_of(speed)/'
    finds memory_is_freed 's/self._free(byref(self._struct))/pass/' $object
    finds views_outlive_their_object 's/self.__array_interface__ = {/self._drop(self._block); &/' \
        $arrays
    fresh
    plant $declared "s/unbounded\(', 'int32_t', ()), ('\)buckets/buckets\1unbounded/"
    differs structs
    fresh
    plant $declared "s/\('ugrid_neighbors': ('enum', ('pointer', \)'real', 'int',/\1'int', 'real',/"
    differs prototypes
    if emulated; then
        fresh
        plant $arrays 's/^        order_streams(user._lib, stream, user._stream)/        pass/'
        (NEARFIELD_MODULE=$planted EMU_LAZY=1 EMU_LEAKS=0 EMU_QUIET=1 timeout 1800 "$python" \
            examples/python/gpu_check.py --emulator $emu; true) >"$work/said.txt" 2>&1
        grep -q '^FAILED.*: streams' "$work/said.txt"
        report $? "planted bug found by: gpu_check.py" "$(tail -n 1 "$work/said.txt")"
    fi
    if has vtk && [ -x build/linked/dam_break ]; then
        mkdir "$work/vtk"
        # shellcheck disable=SC2016
        printf '#!/bin/sh\n%s "$@" && for f in %s/frame_*.vtk; do printf "\\1" | dd of="$f" bs=1 seek=150 conv=notrunc 2>/dev/null; done\n' \
            "$PWD/build/linked/dam_break" "$work/vtk" >"$work/dam"
        chmod +x "$work/dam"
        ! "$python" tests/python/python_vtk.py "$work/dam" build/linked/{drum,lbvh_steps} \
            "$work/vtk" >"$work/said.txt" 2>&1 &&
            grep -q '^FAILED.*in every bit' "$work/said.txt"
        report $? "planted bug found by: VTK files" "$(tail -n 2 "$work/said.txt")"
    fi
}

environment
if [ ! -f $out/libnearfield.so ] || newer $out/libnearfield.so; then
    library . $out/new.so >"$work/cc.txt" 2>&1 && mv $out/new.so $out/libnearfield.so
    report $? "the library compiles without a warning" "$(head -n 5 "$work/cc.txt")"
fi
package $out/package >"$work/package.txt" 2>&1
report $? "the package is declared from the headers" "$(tail -n 1 "$work/package.txt")"
export NEARFIELD_LIBRARY=$out/libnearfield.so
export NEARFIELD_MODULE=$PWD/$out/package PYTHONPATH=$PWD/$out/package
if [ "${1:-}" = --self-check ]; then self_check; finish; fi
emulated
declarations
counted "$python" tests/python/python_checks.py
scripts
readme
frames
boxes
vtk_files
gpu
finish
