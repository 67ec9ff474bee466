#!/bin/bash
# Are the packages whole? Each is made from a copy of the tree as packaging/README.md says, away
# from the machine's own files; what it brings is compared with the tree, and programs are built
# with it.
#
#   tests/quality/packages/run.sh                 with CI=true and as root the Debian package is
#                                                 also installed for real, and removed again
#   tests/quality/packages/run.sh --self-check    are wrong versions, missing headers and missing
#                                                 licences noticed?
#
#   versions   every place that names the version names the same one
#   release    packaging/release.sh, in a repository of its own
#   clib       the files that clib.json names, copied into one folder as clib does
#   vcpkg      the port, by stand-ins for vcpkg's functions; by vcpkg itself where that is
#              ($VCPKG_ROOT/vcpkg, or in PATH)
#   conan      conan create ($CONAN, build/conan/bin/conan, or in PATH)
#   debian     dpkg-buildpackage, lintian, dpkg, an example
#
# SPDX-License-Identifier: MIT OR Unlicense
set -u
cd "$(dirname "$0")/../../.." && here=$PWD || exit 1
. tests/common/units.sh
self=
case ${1:-} in '') ;; --self-check) self=yes ;; *) echo "test_packages.sh: what is '$1'?";
    exit 2 ;; esac
headers="ugrid lbvh nlist nbody"
tree=$units/tree        # the copy, or one with a fault
export LC_ALL=C

have() { command -v "$1" >/dev/null 2>&1; }
skip() { echo "$*"; exit 77; }
wrong() { echo "wrong: $*"; return 1; }

# in_folder FOLDER LOG COMMAND...: its status; what it says goes into LOG
in_folder() {
    local folder=$1 log=$2; shift 2; mkdir -p "$folder"; (cd "$folder" && "$@") >"$log" 2>&1
}

# try NAME FOLDER COMMAND...
try() {
    local name=$1 folder=$2 log=$units/log.$BASHPID; shift 2
    in_folder "$folder" "$log" "$@"
    case $? in
    0)  passed=$((passed + 1)); echo "ok       $name" ;;
    77) skipped=$((skipped + 1)); echo "skipped  $name: $(tail -n 1 "$log")" ;;
    *)
        failed=$((failed + 1)); echo "FAILED   $name"; tail -n 30 "$log" | cut -c1-200 |
            sed 's/^/    | /' ;;
    esac
}

# What git knows, as it lies here; without git (a tarball) everything but what was built.
copy_tree() {
    mkdir "$tree"
    if git rev-parse -q --git-dir >/dev/null 2>&1; then
        git ls-files -z
    else
        find . -path ./build -prune -o -type f -print0
    fi |
        tar c --null --ignore-failed-read -T - | tar x -C "$tree"
}

version() { sed -n 's/^project(nearfield VERSION \([0-9.]*\).*/\1/p' "$tree/CMakeLists.txt"; }

# brings FOLDER LICENCE: the tree's headers, their parts and kernels, and a licence
brings() {
    local header
    for header in $headers; do cmp "$tree/$header.h" "$1/$header.h" || return 1; done
    diff -r "$tree/more" "$1/more" && diff -r "$tree/cuda" "$1/cuda" || return 1
    grep -q 'Permission is hereby granted' "$2" && grep -q 'free and unencumbered' "$2" ||
        wrong "no licence in $2"
}

# outsiders CMAKE-PREFIX PKG-CONFIG-PATH: a program for each header, by find_package and by
# pkg-config
outsiders() {
    CMAKE_PREFIX_PATH=$1 PKG_CONFIG_PATH=$2 JOBS=1 "$here/tests/quality/consumers/run.sh" \
        --installed | tee outsiders.log
    grep -qx '[12] passed, 0 failed, [01] skipped' outsiders.log
}

# ---- versions and releases -----------------------------------------------------------------------

versions_agree() {
    "$tree/packaging/versions.sh" "$tree" | tee versions
    [ "$(wc -l <versions)" -ge 50 ] || wrong "fewer places than there were" || return
    ! grep -v "^$(version) " versions
}

# What is written already gets its tag, and no commit.
tags() {
    have git || skip "no git"
    cp -r "$tree" repository && cd repository && commit_all || return
    packaging/release.sh "$(version)" && [ "$(git rev-list --count HEAD)" = 1 ] &&
        [ "$(git tag)" = "v$(version)" ] || wrong "the tag alone"
}

# Of another author.
commit_all() {
    export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=tester GIT_AUTHOR_EMAIL=t@x.invalid \
        GIT_COMMITTER_NAME=tester GIT_COMMITTER_EMAIL=t@x.invalid
    git init -q && git add -A && git commit -q -m 'all'
}

# A repository that is ready to release $1: every header has its line.
make_repository() {
    local header
    cp -r "$tree" repository && cd repository || return
    for header in $headers; do sed -i "/^   >>changes/{n;a\\   $1  what the test changed
}" "$header.h"; done
    sed -i '0,/^## \[Unreleased\]/s//&\n\n- What the test changed./' CHANGELOG.md
    commit_all
}

refused() { ! packaging/release.sh "$@" || wrong "not refused: $*"; }
untouched() {
    [ -z "$(git status --porcelain)" ] && [ "$(git rev-list --count HEAD)" = 1 ] &&
        [ -z "$(git tag)" ] || wrong "not as it was"
}

releases() {
    local today day; day=$(date -u +%F)
    have git || skip "no git"
    make_repository 7.8.9 || return
    refused && refused 7.8 && refused v7.8.9 && refused 07.8.9 && refused 0.0.9 && refused 7.8.10 ||
        return
    echo >>README.md && refused 7.8.9 && git checkout -q README.md && untouched || return
    mkdir ../dry && TMPDIR=$PWD/../dry packaging/release.sh --dry-run 7.8.9 >../shown 2>&1 &&
        untouched && [ -z "$(ls ../dry)" ] &&
        grep -q 'tag: v7.8.9' ../shown && ! grep 'line [0-9]' ../shown ||
        wrong "the dry run: $(cat ../shown)" || return
    packaging/release.sh 7.8.9 && refused 7.8.9 || return
    today=$(sed -n 's/^## \[7.8.9\] - //p' CHANGELOG.md)
    [ "$today" = "$day" ] || [ "$today" = "$(date -u +%F)" ] || wrong "the date: $today" ||
        return # (it may be midnight)
    [ "$(packaging/versions.sh | grep -c '^7\.8\.9 ')" = "$("$tree/packaging/versions.sh" "$tree" |
        wc -l)" ] || wrong "versions: $(packaging/versions.sh)" || return
    [ "$(git cat-file -t v7.8.9)" = tag ] &&
        [ "$(git rev-parse 'v7.8.9^{commit}')" = "$(git rev-parse HEAD)" ] || wrong "the tag" ||
        return
    [ -z "$(git status --porcelain)" ] || wrong "something is not committed" || return
    grep -qx "## \[7.8.9\] - $today" CHANGELOG.md && grep -qx '## \[Unreleased\]' CHANGELOG.md ||
        wrong "CHANGELOG.md" || return
    grep -qx "date-released: $today" CITATION.cff || wrong "CITATION.cff" || return
    ! grep -q UNRELEASED packaging/debian/changelog || wrong "debian/changelog" || return
    { ! have dpkg-parsechangelog ||
        [ "$(dpkg-parsechangelog -l packaging/debian/changelog -S Version)" = 7.8.9 ]; } || return
    echo '#include "nbody.h"
_Static_assert(NBODY_VERSION_MAJOR == 7 && NBODY_VERSION_MINOR == 8 &&
    NBODY_VERSION_PATCH == 9, "version");' >v.c
    ${CC:-cc} -std=c11 -fsyntax-only v.c
}

# ---- clib ----------------------------------------------------------------------------------------

# Prints the files of clib.json, whose required fields are there.
clib_files() {
    python3 -c '
import json, sys
manifest = json.load(open(sys.argv[1]))
for field in "name", "version", "description", "license":
    assert isinstance(manifest[field], str) and manifest[field], field
assert isinstance(manifest["keywords"], list)
print("\n".join(manifest["src"]))' "$1"
}

clib() {
    local file
    have python3 || skip "no python3"
    clib_files "$tree/clib.json" >files && mkdir -p deps/nearfield || return
    while read -r file; do cp "$tree/$file" "deps/nearfield/${file##*/}" || return; done <files
    cp "$tree/packaging/conan/test_package/example.c" . &&
        grep -q 'Permission is hereby granted' deps/nearfield/LICENSE &&
    ${CC:-cc} -std=c99 -Wall -Wextra -Werror -Ideps/nearfield example.c -o example -lm && ./example
}

# ---- vcpkg ---------------------------------------------------------------------------------------

# What the port calls of vcpkg's functions. What it may not call is not there, and an error.
stand_ins() {
    cat <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}: ${status}")
  endif()
endfunction()
# The archive of the tag: ARCHIVE, made here.
function(vcpkg_from_github)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_SOURCE_PATH;REPO;REF;SHA512;HEAD_REF" "")
  file(SHA512 ${ARCHIVE} hash)
  if(NOT hash STREQUAL arg_SHA512 OR NOT arg_REF STREQUAL "v${VERSION}")
    message(FATAL_ERROR "${arg_REPO} ${arg_REF}: another archive than ${ARCHIVE}")
  endif()
  file(ARCHIVE_EXTRACT INPUT ${ARCHIVE} DESTINATION ${CURRENT_BUILDTREES_DIR}/src)
  file(GLOB path ${CURRENT_BUILDTREES_DIR}/src/*)
  set(${arg_OUT_SOURCE_PATH} ${path} PARENT_SCOPE)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${CURRENT_BUILDTREES_DIR}
      -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} ${arg_OPTIONS})
endfunction()
function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --install ${CURRENT_BUILDTREES_DIR})
endfunction()
# Moves the package to share/PORT, one folder higher than share/cmake/PORT: so one step less from
# its files to the prefix.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "CONFIG_PATH" "")
  file(RENAME ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH} ${CURRENT_PACKAGES_DIR}/share/${PORT})
  file(READ ${CURRENT_PACKAGES_DIR}/share/${PORT}/${PORT}Targets.cmake text)
  set(step "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
  string(REPLACE "${step}${step}${step}" "${step}${step}" text "${text}")
  file(WRITE ${CURRENT_PACKAGES_DIR}/share/${PORT}/${PORT}Targets.cmake "${text}")
endfunction()
function(vcpkg_fixup_pkgconfig)
  if(NOT EXISTS ${CURRENT_PACKAGES_DIR}/lib/pkgconfig/${PORT}.pc)
    message(FATAL_ERROR "no pkg-config file where vcpkg wants it")
  endif()
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  file(INSTALL ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT} RENAME copyright)
endfunction()
include(${CURRENT_PORT_DIR}/portfile.cmake)
CMAKE
}

manifest_is_right() {
    have python3 || return 0
    python3 -c '
import json, re, sys
manifest = json.load(open(sys.argv[1]))
assert manifest["name"] == "nearfield" and re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", manifest["name"])
assert manifest["description"] and manifest["license"] == "MIT OR Unlicense"
assert {(d["name"], d["host"]) for d in manifest["dependencies"]} == {("vcpkg-cmake", True),
    ("vcpkg-cmake-config", True)}' "$1"
}

vcpkg_brings() {
    [ -f "$1/share/nearfield/nearfieldConfig.cmake" ] &&
        grep -q nearfield::ugrid "$1/share/nearfield/usage" || wrong "not where vcpkg wants it" ||
        return
    brings "$1/include/nearfield" "$1/share/nearfield/copyright"
}

vcpkg_stand_ins() {
    local port=$tree/packaging/vcpkg/nearfield
    have cmake || skip "no cmake"
    manifest_is_right "$port/vcpkg.json" || return
    stand_ins >ports.cmake
    cmake -DPORT=nearfield -DCURRENT_PORT_DIR="$port" -DCURRENT_PACKAGES_DIR="$PWD/out" \
        -DCURRENT_BUILDTREES_DIR="$PWD/build" -P ports.cmake &&
    vcpkg_brings out && outsiders "$PWD/out" "$PWD/out/lib/pkgconfig"
}

# To the last step: a tag is pushed to a repository, what goes with it is made from a clone of that,
# and the port of the release packages the archive. (The wheel: tests/python/wheel.sh.)
release_files() {
    local reuse
    have git && have cmake || skip "no git or no cmake"
    reuse=$(command -v reuse)
    cp -r "$tree" repository && cd repository && commit_all || return
    packaging/release.sh "$(version)" && git init -q --bare ../origin.git &&
        git push -q --follow-tags ../origin.git HEAD:main &&
        git clone -q -b main ../origin.git ../again && cd ../again &&
        PYTHON='' REUSE=$reuse packaging/release.sh --files "$(version)" ../files || return
    refused --files 7.8.9 || return
    cd ../files && { [ -z "$reuse" ] || grep -q '^FileName: ./ugrid.h' ./*.spdx; } ||
        wrong "no SBOM" || return
    cd ../files && sha256sum -c --quiet SHA256SUMS && grep -q '^- ' notes.md &&
        ! grep '^## ' notes.md || wrong "sums or notes" || return
    tar xzf "nearfield-$(version)-single.tar.gz" &&
        printf '#define LBVH_WITH_WORLD\n#define LBVH_IMPLEMENTATION\n#include "lbvh.h"\n' >one.c &&
        ${CC:-cc} -std=c99 -fsyntax-only -I"nearfield-$(version)-single" one.c &&
        [ -f "nearfield-$(version)-single/more/nearfield.hpp" ] || wrong "single files" || return
    stand_ins >ports.cmake
    cmake -DPORT=nearfield -DCURRENT_PORT_DIR="$PWD/vcpkg/nearfield" -DVERSION="$(version)" \
        -DARCHIVE="$PWD/nearfield-$(version).tar.gz" -DCURRENT_PACKAGES_DIR="$PWD/out" \
        -DCURRENT_BUILDTREES_DIR="$PWD/build" -P ports.cmake && vcpkg_brings out
}

vcpkg_itself() {
    local vcpkg=${VCPKG_ROOT:+$VCPKG_ROOT/vcpkg} prefix
    [ -x "$vcpkg" ] || vcpkg=$(command -v vcpkg) || skip "no vcpkg"
    VCPKG_DISABLE_METRICS=1 "$vcpkg" install nearfield --classic \
        --overlay-ports="$tree/packaging/vcpkg" --no-binarycaching \
        --x-install-root="$PWD/installed" --x-packages-root="$PWD/packages" \
        --x-buildtrees-root="$PWD/buildtrees" 2>&1 | tee log
    ! grep -i 'warning:\|error:' log || return
    prefix=$(dirname "$(dirname "$(ls -d installed/*/include/nearfield)")")
    vcpkg_brings "$prefix" && outsiders "$PWD/$prefix" "$PWD/$prefix/lib/pkgconfig"
}

# ---- Conan ---------------------------------------------------------------------------------------

conan_package() {
    local conan=${CONAN:-$here/build/conan/bin/conan} package
    have "$conan" || conan=conan
    have "$conan" || skip "no conan (pip install conan)"
    have cmake || skip "no cmake"
    export CONAN_HOME=$PWD/home
    cp -r "$tree" tree && "$conan" profile detect &&
        "$conan" create tree/packaging/conan --no-remote 2>&1 | tee log || return
    grep -qx 'the answers are right' log || wrong "the test package did not run" || return
    package=$(find home -type d -path '*/p/include/nearfield')
    brings "$package" "$package/../../licenses/LICENSE" || return
    "$conan" install --no-remote --requires="nearfield/$(version)" -g CMakeDeps -g PkgConfigDeps \
        -of deps &&
    CMAKE_BUILD_TYPE=Release outsiders "$PWD/deps" "$PWD/deps"
}

# ---- Debian --------------------------------------------------------------------------------------

deb_builds() {
    have dpkg-buildpackage || skip "no dpkg-dev"
    have dh || skip "no debhelper"
    have cmake || skip "no cmake"
    rm -rf nearfield && cp -r "$tree" nearfield &&
        cp -r "$tree/packaging/debian" nearfield/debian &&
    (cd nearfield && dpkg-buildpackage -us -uc -b) &&
    dpkg-deb -x libnearfield-dev_*_all.deb files || return
    [ "$(dpkg-deb -f libnearfield-dev_*_all.deb Version)" = "$(version)" ] || wrong "version" ||
        return
    brings files/usr/include/nearfield files/usr/share/doc/libnearfield-dev/copyright
}

deb_exists() { ls libnearfield-dev_*_all.deb 2>/dev/null || skip "no package"; }
deb_lints() {
    deb_exists; have lintian || skip "no lintian"
    lintian --allow-root --fail-on error nearfield_*.changes
}

# One of the installed examples, as a user would build it.
example_runs() {
    pkg-config --exists stb || { echo "no libstb-dev: no example"; return 0; }
    # shellcheck disable=SC2046
    ${CC:-cc} -std=c99 "$1/usr/share/doc/libnearfield-dev/examples/rebound/rebound.c" -o rebound \
        $(pkg-config --cflags --libs nearfield stb) -lm &&
    ./rebound --help
}

# A dpkg with a root folder of its own, which needs neither root's rights nor this machine's
# database.
own_dpkg() {
    local as_root=
    [ "$(id -u)" = 0 ] || as_root=fakeroot
    mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates root/var/lib/dpkg/triggers &&
        touch root/var/lib/dpkg/status
    $as_root dpkg --root="$PWD/root" --log=/dev/null --force-not-root "$@"
}

deb_installs() {
    deb_exists
    [ "$(id -u)" = 0 ] || have fakeroot || skip "no fakeroot"
    own_dpkg -i libnearfield-dev_*_all.deb &&
        outsiders "$PWD/root/usr" "$PWD/root/usr/share/pkgconfig" || return
    PKG_CONFIG_PATH=$PWD/root/usr/share/pkgconfig example_runs "$PWD/root" || return
    own_dpkg --purge libnearfield-dev && [ -z "$(find root/usr ! -type d 2>/dev/null)" ] ||
        wrong "purge left files"
}

# Where compilers, CMake and pkg-config look by themselves. Whatever happens, it is removed.
deb_installs_for_real() {
    deb_exists
    [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] || skip "only as root and with CI=true"
    [ ! -e /usr/include/nearfield ] || skip "it is installed already"
    trap 'dpkg --purge libnearfield-dev' EXIT
    trap 'exit 1' HUP INT TERM
    dpkg -i libnearfield-dev_*_all.deb && outsiders '' '' && example_runs '' &&
        dpkg --purge libnearfield-dev && trap - EXIT &&
    [ ! -e /usr/include/nearfield ] && [ ! -e /usr/share/doc/libnearfield-dev ] ||
    wrong "purge left files"
}

debian() {
    try "debian: the package builds" "$units/debian" deb_builds
    try "debian: lintian" "$units/debian" deb_lints
    try "debian: installed in a root of its own, used, and removed" "$units/debian" deb_installs
    try "debian: installed on this machine, used, and removed" "$units/debian" deb_installs_for_real
}

# ---- faults --------------------------------------------------------------------------------------

# noticed NAME FUNCTION FILE SED: a tree with FILE changed so; FUNCTION has to fail.
noticed() {
    local name="noticed: $1" function=$2 file=$3 script=$4 work=$units/fault.$BASHPID \
        log=$units/log.$BASHPID
    cp -r "$tree" "$work.tree" && tree=$work.tree
    cp "$tree/$file" "$work.before" && sed -i "$script" "$tree/$file"
    if cmp -s "$work.before" "$tree/$file"; then
        failed=$((failed + 1)); echo "FAILED   $name: there is nothing to plant"; return
    fi
    in_folder "$work" "$log" "$function"
    case $? in
    0)  failed=$((failed + 1)); echo "FAILED   $name" ;;
    77) skipped=$((skipped + 1)); echo "skipped  $name: $(tail -n 1 "$log")" ;;
    *)  passed=$((passed + 1)); echo "ok       $name" ;;
    esac
    rm -rf "$work" "$work.tree"
}

wrong_version() { noticed "another version in $1" versions_agree "$1" "$2"; }

planted_faults() {
    unit noticed "the package lacks nbody.h (Debian)" deb_builds CMakeLists.txt \
        's/^foreach(header ugrid lbvh nlist nbody)/foreach(header ugrid lbvh nlist)/'
    unit noticed "the package lacks kernels (Conan)" conan_package packaging/conan/conanfile.py \
        's/, f"cuda\/{header}.cu"//'
    unit noticed "the package lacks parts (Conan)" conan_package packaging/conan/conanfile.py \
        's/, f"more\/{header}_\*.h"//'
    unit noticed "the package lacks parts (vcpkg)" vcpkg_stand_ins CMakeLists.txt \
        '/nearfield_parts} DEST/d'
    unit wrong_version ugrid.h 's/^\(#define UGRID_VERSION_PATCH\) .*/\1 77/'
    unit wrong_version nbody.h '1s/v[0-9.]*/v7.7.7/'
    unit wrong_version lbvh.h '/^   >>changes/,/\*\//s/^   [0-9.]*, [0-9-]*/   0.2.0, 2026-01-01/'
    unit wrong_version cuda/ugrid.cu '1s/v[0-9.]*/v7.7.7/'
    unit wrong_version more/lbvh_world.h 's/^\(#if 10000 .*\) != .*/\1 != 70707/'
    unit wrong_version more/nlist_boxes.h \
        's/^\(#error "more.nlist_boxes.h\) [0-9.]* and/\1 7.7.7 and/'
    unit wrong_version CMakeLists.txt \
        's/^project(nearfield VERSION [0-9.]*/project(nearfield VERSION 7.7.7/'
    unit wrong_version CITATION.cff 's/^version: .*/version: 7.7.7/'
    unit wrong_version clib.json 's/"version": .*/"version": "7.7.7",/'
    unit wrong_version packaging/vcpkg/nearfield/vcpkg.json 's/"version": .*//'
    unit wrong_version packaging/conan/conanfile.py 's/ version = .*/ version = "7.7.7"/'
    unit wrong_version packaging/debian/changelog '1s/(.*)/(7.7.7)/'
    unit wrong_version CHANGELOG.md 's/^## \[Unreleased\]/&\n\n## [7.7.7] - 2026-01-01/'
    unit noticed "a release forgets a place" releases packaging/release.sh '/CMakeLists.txt$/d'
    unit noticed "a release forgets the changelog" releases packaging/release.sh '/ CHANGELOG.md$/d'
    unit noticed "a release does not look whether all is committed" releases packaging/release.sh \
        '/git status --porcelain/d'
    unit noticed "a file that clib would copy is missing" clib clib.json 's/"nlist.h", //'
    unit noticed "clib.json is no JSON" clib clib.json 's/"license"/license/'
    unit noticed "the package lacks nlist.h (vcpkg)" vcpkg_stand_ins CMakeLists.txt \
        's/^foreach(header ugrid lbvh nlist nbody)/foreach(header ugrid lbvh nbody)/'
    unit noticed "the package lacks its licence (vcpkg)" vcpkg_stand_ins \
        packaging/vcpkg/nearfield/portfile.cmake '/copyright/d'
    unit noticed "the CMake package is not where vcpkg wants it" vcpkg_stand_ins \
        packaging/vcpkg/nearfield/portfile.cmake '/config_fixup/d'
    unit noticed "the pkg-config file is not where vcpkg wants it" vcpkg_stand_ins \
        packaging/vcpkg/nearfield/portfile.cmake '/RENAME/d'
}

copy_tree
if [ "$self" ]; then
    planted_faults
else
    unit debian
    unit try "conan: created, installed, used" "$units/conan" conan_package
    unit try "vcpkg: the port, by stand-ins for vcpkg's functions" "$units/vcpkg" vcpkg_stand_ins
    unit try "vcpkg: by vcpkg itself" "$units/vcpkg_itself" vcpkg_itself
    unit try "versions: one everywhere" "$units/versions" versions_agree
    unit try "release.sh: all places, changelogs, commit and tag" "$units/release" releases
    unit try "release.sh: the tag of what is written already" "$units/tags" tags
    unit try "release.sh --files: all that goes with a tag; its port" "$units/files" release_files
    unit try "clib: the files of clib.json are enough" "$units/clib" clib
fi
all_units
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
