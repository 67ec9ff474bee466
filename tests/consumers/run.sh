#!/bin/bash
# Can somebody else's project use nearfield? Each way is tried in a temporary folder: the program is built
# there, run, and what it prints is looked at. The last line is "N passed, M failed, K skipped".
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT
passed=0 failed=0 skipped=0

have() { command -v "$1" >/dev/null 2>&1; }
skip() { echo "$*"; exit 77; }
runs_right() { "$@" | tee /dev/stderr | grep -qx 'the answer is right'; }

# try NAME FUNCTION ARGS...: in a project of its own (the folder $project).
try() {
    local name=$1 status; shift
    project=$temp/project
    rm -rf "$project"; cp -r "$here/project" "$project"
    cp "$root/tests/vendor/use_$header.c" "$project/use.c"
    printf '%s\n' "#define ${HEADER}_IMPLEMENTATION" "#include \"$header.h\"" >"$project/implementation.c"
    printf '%s\n' "#define ${HEADER}_IMPLEMENTATION" "#define ${HEADER}_CUDA" "#include \"$header.h\"" >"$project/implementation.cu"
    ( cd "$project" && "$@" ) >"$temp/log" 2>&1 </dev/null
    status=$?
    case $status in
    0)  passed=$((passed + 1)); echo "ok       $name" ;;
    77) skipped=$((skipped + 1)); echo "skipped  $name: $(tail -n 1 "$temp/log")" ;;
    *)  failed=$((failed + 1)); echo "FAILED   $name"; tail -n 40 "$temp/log" | sed 's/^/    | /' ;;
    esac
}

copied() {
    cp "$root/$header.h" .
    "${CC:-cc}" -std=c99 -Wall -Wextra -Werror -DUSE=use main.c use.c implementation.c -o outside -lm && runs_right ./outside
}

# cmake_way WAY FLAGS...: configured, built and run.
cmake_way() {
    local way=$1; shift
    have cmake || skip "no cmake"
    cmake -S . -B out -DHEADER="$header" -DWAY="$way" -DNEARFIELD="$root" -DCMAKE_INSTALL_PREFIX="$project/installed" "$@" &&
    cmake --build out && runs_right out/outside
}

# Installing the outside project must not install nearfield with it.
keeps_out() {
    cmake_way subdirectory && cmake --install out || return
    [ -x installed/bin/outside ] && [ "$(find installed -type f | wc -l)" = 1 ]
}

install_nearfield() {
    have cmake || skip "no cmake"
    cmake -S "$root" -B install-out -DCMAKE_INSTALL_PREFIX="$temp/first" && cmake --install install-out &&
    rm -rf "$temp/prefix" && mv "$temp/first" "$temp/prefix"      # an installed tree may be moved
}

found() { install_nearfield && cmake_way installed -DCMAKE_PREFIX_PATH="$temp/prefix" "$@"; }

pkg_config() {
    have pkg-config || skip "no pkg-config"
    install_nearfield || return
    export PKG_CONFIG_PATH=$temp/prefix/share/pkgconfig
    # shellcheck disable=SC2046
    "${CC:-cc}" -std=c99 -DUSE=use $(pkg-config --cflags nearfield) main.c use.c implementation.c -o outside \
        $(pkg-config --libs nearfield) && runs_right ./outside &&
    [ "$(pkg-config --modversion nearfield)" = "$(version)" ]
}

# One version everywhere: the header's macros say what CMake and pkg-config say.
version() {
    sed -n "s/^#define ${HEADER}_VERSION_[A-Z]* \([0-9]*\).*/\1/p" "$root/$header.h" | paste -sd .
}

# With CUDA the implementation is a .cu file. It only has to compile and link: the answer comes from the
# serial part, so no GPU is needed. The oldest architecture will do.
cuda() {
    local nvcc oldest
    have cmake || skip "no cmake"
    nvcc=${NVCC:-$(command -v nvcc)}
    [ "$nvcc" ] || skip "no nvcc"
    [ -f "$root/cuda/$header.cu" ] || skip "no cuda/$header.cu"
    oldest=$("$nvcc" --list-gpu-code | head -n 1)
    "$@" -DCUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES="${oldest#sm_}"
}

for header in ugrid lbvh nlist nbody; do
    [ -f "$root/$header.h" ] || continue
    HEADER=$(echo "$header" | tr a-z A-Z)
    try "$header: copied file" copied
    try "$header: add_subdirectory" cmake_way subdirectory
    try "$header: add_subdirectory installs nothing of ours" keeps_out
    try "$header: FetchContent" cmake_way fetch
    try "$header: installed, find_package" found
    try "$header: installed, pkg-config" pkg_config
    try "$header: add_subdirectory, CUDA" cuda cmake_way subdirectory
    try "$header: installed, find_package, CUDA" cuda found
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
