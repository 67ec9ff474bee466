#!/bin/bash
# Can another project use nearfield? Each way is tried in a temporary folder: a program for
# each header is built there, run, and what it prints is looked at. The last line is "N passed, M
# failed, K skipped".
#
#   tests/quality/consumers/run.sh
#   tests/quality/consumers/run.sh --installed    only find_package and pkg-config, for a nearfield
#                                         that is installed already: where they look by themselves,
#                                         and where CMAKE_PREFIX_PATH and PKG_CONFIG_PATH
#                                         (environment) say
set -u
case ${1:-} in '' | --installed) only=${1:-} ;; *) echo "run.sh: what is '$1'?"; exit 2 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
. "$root/tests/common/units.sh"
prefix=$units/prefix
headers=
for header in ugrid lbvh nlist nbody; do
    [ ! -f "$root/$header.h" ] || headers="$headers $header"
done

have() { command -v "$1" >/dev/null 2>&1; }
skip() { echo "$*"; exit 77; }
runs_right() { "$@" | tee /dev/stderr | grep -qx 'the answer is right'; }
all_run_right() { local h; for h in $headers; do runs_right "$1/outside_$h" || return 1; done; }
upper() { echo "$1" | tr a-z A-Z; }

# try NAME FUNCTION ARGS...: in a project of its own (the folder $project).
try() {
    local name=$1 log=$units/log.$BASHPID status; shift
    project=$units/project.$BASHPID
    make_project
    ( cd "$project" && "$@" ) >"$log" 2>&1
    status=$?
    case $status in
    0)  passed=$((passed + 1)); echo "ok       $name" ;;
    77) skipped=$((skipped + 1)); echo "skipped  $name: $(tail -n 1 "$log")" ;;
    *)  failed=$((failed + 1)); echo "FAILED   $name"; tail -n 40 "$log" | sed 's/^/    | /' ;;
    esac
    rm -rf "$project"
}

# What a header needs in the file of its implementation: nlist.h is fed by the others.
with_feeders() { case $1 in nlist) echo ugrid lbvh nlist ;; *) echo "$1" ;; esac; }

# with_parts HEADER: the macros of its parts; none where only the header was copied ($alone).
alone=
with_parts() {
    local part
    [ ! "$alone" ] || return 0
    for part in "$root/more/$1"_*.h; do
        [ ! -f "$part" ] || basename "$part" .h | tr a-z A-Z |
            sed 's/^\([A-Z]*\)_/#define \1_WITH_/'
    done
}

# main.c asks use(), which is only_<header>.c or all.c; the users are those of tests/quality/vendor,
# and use all parts.
make_project() {
    cp -r "$here/project" "$project" && cd "$project" || exit 1
    make_sources
}
make_sources() {
    local h each
    rm -f with_*.h ./*.cu
    for h in $headers; do
        { echo "#define USE use_$h"; cat "$root/tests/quality/vendor/use_$h.c"; } >"use_$h.c"
        answers "$h" >"only_$h.c"
        for each in $(with_feeders "$h"); do
            { echo "#define WITH_$(upper "$each")"; with_parts "$each"; } >>"with_$h.h"
            with_parts "$each"
            printf '%s\n' "#define $(upper "$each")_IMPLEMENTATION" "#include \"$each.h\""
        done >"implementation_$h.c"
        sed -i "1i #include \"with_$h.h\"" "use_$h.c"
    done
    # shellcheck disable=SC2086
    answers $headers >all.c
    for h in $headers; do
        with_parts "$h" | tee -a declarations.cu >>implementation.cu
        printf '%s\n' "#define $(upper "$h")_CUDA" "#include \"$h.h\"" >>declarations.cu
        printf '%s\n' "#define $(upper "$h")_IMPLEMENTATION" "#define $(upper "$h")_CUDA" \
            "#include \"$h.h\"" >>implementation.cu
    done
    echo 'static_assert(__cplusplus >= 201703L, "the target asks for C++17");' >>declarations.cu
}

# answers HEADER...: a use() that asks those.
answers() {
    printf 'int use_%s(void);\n' "$@"
    printf 'int use(void);\nint use(void) { return 1'
    printf ' && use_%s()' "$@"
    echo '; }'
}

# by_hand FLAGS...: without CMake.
by_hand() {
    # shellcheck disable=SC2086
    "${CC:-cc}" -std=c99 -Wall -Wextra -Werror main.c "use_$h.c" "only_$h.c" "implementation_$h.c" \
        -o "outside_$h" "$@"
}

copied() {
    local h=$1 each
    for each in $(with_feeders "$h"); do cp "$root/$each.h" .; done
    [ "$alone" ] || cp -r "$root/more" .
    by_hand -lm && runs_right "./outside_$h"
}
copied_alone() { alone=yes; make_sources; copied "$1"; }

# configured WAY FLAGS...
configured() {
    local way=$1; shift
    have cmake || skip "no cmake"
    cmake -S . -B out -DHEADERS="$(echo $headers | tr ' ' ';')" -DWAY="$way" -DNEARFIELD="$root" \
        -DVERSION="$(version ugrid)" \
        -DCMAKE_INSTALL_PREFIX="$project/installed" "$@"
}

built() { configured "$@" && cmake --build out && all_run_right out; }

# The targets of add_subdirectory, found another way: one program shows that they are there.
fetched() {
    configured fetch && cmake --build out --target outside_ugrid && runs_right out/outside_ugrid
}

# Installing the outside project must not install nearfield with it.
subdirectory() {
    built subdirectory && cmake --install out || return
    [ -x installed/bin/outside_ugrid ] &&
        [ "$(find installed -type f | wc -l)" = "$(echo $headers | wc -w)" ]
}

# Once; an installed tree may be moved.
install_nearfield() {
    have cmake && cmake -S "$root" -B "$units/out" -DCMAKE_INSTALL_PREFIX="$units/first" &&
        cmake --install "$units/out" &&
    mv "$units/first" "$prefix"
}

is_installed() {
    have cmake || skip "no cmake"
    [ "$only" ] || [ -d "$prefix" ] || { cat "$units/install.log"; false; }
}
found() { is_installed && built installed; }

# One version everywhere: the header's macros say what CMake and pkg-config say.
pkg_config() {
    local h
    have pkg-config || skip "no pkg-config"
    is_installed || return
    for h in $headers; do
        # shellcheck disable=SC2046
        by_hand $(pkg-config --cflags --libs nearfield) && runs_right "./outside_$h" &&
        [ "$(pkg-config --modversion nearfield)" = "$(version "$h")" ] || return 1
    done
}

version() {
    sed -n "s/^#define $(upper "$1")_VERSION_[A-Z]* \([0-9]*\).*/\1/p" "$root/$1.h" | paste -sd .
}

# With CUDA the implementation is a .cu file. It only has to compile and link: the answer comes from
# the serial part, so no GPU is needed. The oldest architecture will do. HOW: program, or
# declarations, which are compiled and no more. The program's PTX is kept: do its kernels keep their
# arrays in registers?
cuda() {
    local how=$1 way=$2 nvcc oldest h; shift 2
    have cmake || skip "no cmake"
    nvcc=${NVCC:-$(command -v nvcc)}
    [ "$nvcc" ] || skip "no nvcc"
    for h in $headers; do [ -f "$root/cuda/$h.cu" ] || skip "no cuda/$h.cu"; done
    oldest=$("$nvcc" --list-gpu-code | head -n 1)
    configured "$way" -DCUDA="$how" -DCMAKE_CUDA_COMPILER="$nvcc" \
        -DCMAKE_CUDA_ARCHITECTURES="${oldest#sm_}" -DCMAKE_CUDA_FLAGS="--keep" "$@" &&
    cmake --build out && { [ "$how" = declarations ] || { runs_right out/outside_cuda &&
        "$root/tests/cuda/registers.sh" "$(find out -name 'implementation*.ptx')"; }; }
}

# As .github/workflows/ci.yml has it on other systems.
everywhere() {
    have cmake || skip "no cmake"
    cmake -S "$here/everywhere" -B out && cmake --build out && ctest --test-dir out
}

# Every `make TARGET` of the workflows is there.
workflow_targets() {
    local target
    make -C "$root" -pRrq : 2>/dev/null >targets
    for target in $(sed -n 's/^ *- run: make \(.*\)/\1/p' "$root"/.github/workflows/*.yml); do
        case $target in *=*) continue ;; esac
        grep -q "^$target:" targets || { echo "there is no target $target"; return 1; }
    done
}

cuda_found() { is_installed && cuda program installed; }

if [ ! "$only" ]; then
    install_nearfield >"$units/install.log" 2>&1
    export CMAKE_PREFIX_PATH=$prefix PKG_CONFIG_PATH=$prefix/share/pkgconfig
    unit try "installed, find_package, CUDA" cuda_found
    unit try "add_subdirectory, CUDA" cuda declarations subdirectory
    for header in $headers; do
        unit try "$header: copied file" copied_alone "$header"
        unit try "$header: copied with the folder more" copied "$header"
    done
    unit try "add_subdirectory, which installs nothing of ours" subdirectory
    unit try "FetchContent" fetched
    unit try "C99 and C++17, as on other systems" everywhere
    unit try "the targets that .github/workflows name" workflow_targets
fi
unit try "installed, find_package" found
unit try "installed, pkg-config" pkg_config
all_units
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
