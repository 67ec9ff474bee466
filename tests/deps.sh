#!/bin/sh
# Looks for what is needed, and installs what is missing (apt-get, as root or through sudo without a
# password). Silent when all is there.
#
#   tests/deps.sh demo    what all examples need
#   tests/deps.sh pick    what examples/pick needs besides
#   tests/deps.sh figures what draws the benchmarks' figures
#   tests/deps.sh test    what the tests need; with CI=true also what they can use
#   tests/deps.sh all     all of it
#
# Missing and not installable: for what is needed one sentence and exit status 1; what is optional
# (further compilers, SDL2, gnuplot) is left out, and its tests say "skipped".
# DEPS_DONE=1: it has been called just now, and is not to look again.
set -u
[ ! "${DEPS_DONE:-}" ] || exit 0
log=build/deps.log
all=

have() { command -v "$1" >/dev/null 2>&1; }
module() { pkg-config --exists "$1" 2>/dev/null; }

needed() {
    echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1 || echo gcc libc6-dev
    have pkg-config || echo pkg-config
    [ "${STB_CFLAGS:-}" ] || module stb || echo libstb-dev
    [ "$1" = demo ] || [ "$1" = figures ] || [ "${ASSIMP_LIBS:-}" ] || module assimp ||
        echo libassimp-dev
    [ "$1" != figures ] || have gnuplot || echo gnuplot-nox
    [ "$1" != test ] || [ "${CMOCKA_LIBS:-}" ] || module cmocka || echo libcmocka-dev
}

optional() {
    have g++ || echo g++
    have clang && have clang++ || echo clang
    have tcc || echo tcc
    have x86_64-w64-mingw32-gcc || echo gcc-mingw-w64-x86-64
    have cmake || echo cmake
    module sdl2 || echo libsdl2-dev             # examples/galaxy and boids: a window,
    [ -f /usr/include/chipmunk/chipmunk.h ] || echo libchipmunk-dev # examples/engine
    have Xvfb || echo xvfb                      # a screen for their tests, and
    have xdotool || echo xdotool                # keys and mouse
    have gnuplot || echo gnuplot-nox            # the benchmarks' figures
    { have mpicc && have mpirun; } || echo libopenmpi-dev openmpi-bin # examples/mpi
    have dpkg-buildpackage || echo dpkg-dev     # the Debian package,
    have dh || echo debhelper
    have lintian || echo lintian
    have fakeroot || echo fakeroot
    python3 -c 'import ensurepip' 2>/dev/null || echo python3 python3-venv # and Conan's
    have gfortran || echo gfortran              # packaging/fortran
    have valgrind || echo valgrind libc6-dbg    # valgrind needs the C library's symbols
    links_32_bit || echo "gcc-$(gcc -dumpversion)-multilib g++-$(gcc -dumpversion)-multilib" \
        # gcc-multilib itself would exclude the cross compilers
    foreign
    web
}

# What tests/quality/portability builds for and runs on: big, so `make test` does not install it.
foreign() {
    [ "$(uname -m)" = x86_64 ] && [ "$all" ] || return 0
    have qemu-s390x-static || echo qemu-user-static
    have s390x-linux-gnu-gcc || echo gcc-s390x-linux-gnu libc6-dev-s390x-cross
    have aarch64-linux-gnu-gcc || echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    have arm-linux-gnueabihf-gcc || echo gcc-arm-linux-gnueabihf libc6-dev-armhf-cross
    have wine || echo wine wine64
}

# WebAssembly, for tests/quality/portability and tests/examples/test_web.sh, and a browser for the
# latter: big, too.
web() {
    [ "$all" ] || return 0
    have emcc || echo emscripten
    have node || echo nodejs
    have chromium || echo chromium
}

links_32_bit() {
    [ "$(uname -m)" = x86_64 ] || return 0      # elsewhere there is no -m32
    echo 'int main(void) { return 0; }' | gcc -m32 -x c - -o build/hello 2>/dev/null &&
    { ! have g++ || echo '#include <vector>
int main() { return 0; }' | g++ -m32 -x c++ - -o build/hello 2>/dev/null; }
}

# clang's sanitizers are a package of their own, named after clang's version.
clang_runtime() {
    have clang || return 0
    echo 'int main(void) { return 0; }' |
        clang -fsanitize=address -x c - -o build/hello 2>/dev/null ||
        echo "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
}

# Conan is on PyPI: into build/, and nowhere else.
fetch_conan() {
    have conan || [ -x build/conan/bin/conan ] ||
        { python3 -m venv build/conan && build/conan/bin/pip install -q conan; } >>$log 2>&1 ||
        echo "left out: conan (pip install conan)"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_install() { have apt-get && as_root true 2>/dev/null </dev/null; }

install() {
    echo "installing $* (what apt-get says is in $log)"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 \
        install -y --no-install-recommends "$@" >>$log 2>&1 </dev/null
}

update_once() {
    [ "${updated:-}" ] || as_root apt-get -o DPkg::Lock::Timeout=120 update >>$log 2>&1 </dev/null
    updated=yes
}

install_needed() {
    missing=$(needed "$1" | tr '\n' ' ')
    [ "$missing" ] || return 0
    # shellcheck disable=SC2086
    if can_install; then update_once; install $missing; fi
    [ "$(needed "$1")" ] || return 0
    echo "Please install $(needed "$1" |
        tr '\n' ' ')(names of Debian's packages: apt-get install them as root), then try again." >&2
    exit 1
}

# All at once, else one by one: a package that this Debian does not have must not keep the others
# away.
install_optional() {
    # shellcheck disable=SC2046
    {
        missing=$(optional | tr '\n' ' ')
        [ "$missing" ] && can_install && { update_once
            install $missing || for package in $missing; do install "$package"; done; }
        runtime=$(clang_runtime)
        [ "$runtime" ] && can_install && { update_once; install "$runtime"; }
    }
    fetch_conan
    still=$(optional; clang_runtime)
    [ -z "$still" ] || echo "left out, so their tests are skipped: $(echo "$still" | tr '\n' ' ')"
}

cd "$(dirname "$0")/.." && mkdir -p build || exit 1
case ${1:-} in
demo) install_needed demo ;;
pick) install_needed pick ;;
figures) install_needed figures ;;
test) install_needed test; if [ "${CI:-}" = true ]; then install_optional; fi ;;
all)  all=yes; install_needed test; install_optional ;;
*)    sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
exit 0
