#!/bin/bash
# Makes a release of what is committed: writes the version into every place that names it
# (versions.sh), makes of CHANGELOG.md's [Unreleased] an entry of today, commits that, and sets the
# annotated tag vX.Y.Z. Where CHANGELOG.md has an entry X.Y.Z already, and every place names it,
# only the tag is set. Nothing is pushed.
#
#   packaging/release.sh X.Y.Z
#   packaging/release.sh --dry-run X.Y.Z      in a copy, which is shown and thrown away
#   packaging/release.sh --files X.Y.Z [OUT]  what goes with the tag vX.Y.Z, into build/release:
#       nearfield-X.Y.Z.tar.gz  the sources         nearfield-X.Y.Z-single.tar.gz  make single
#       python/                 sdist and a wheel   notes.md    the entry of CHANGELOG.md
#       vcpkg/nearfield         the port that takes the tag     SHA256SUMS         of all
#       nearfield-X.Y.Z.spdx    what it is made of (SBOM): files, sums, licenses
#
# To be written before: CHANGELOG.md under [Unreleased], and in each header under >>changes a line
# that begins with X.Y.Z.
#
# Environment: PYTHON (default python3; none: no sdist, no wheel), REUSE (default reuse, of PyPI;
# none: no SBOM), REPOSITORY (OWNER/nearfield on GitHub, for the port).
# SPDX-License-Identifier: MIT OR Unlicense
set -u
headers="ugrid.h lbvh.h nlist.h nbody.h"

say() { echo "release.sh: $*" >&2; exit 1; }

# Runs this script in a clone.
dry_run() {
    clone=$(mktemp -d) && trap 'rm -rf "$clone"' EXIT || exit 1
    export GIT_AUTHOR_NAME=nobody GIT_AUTHOR_EMAIL=nobody GIT_COMMITTER_NAME=nobody \
        GIT_COMMITTER_EMAIL=nobody
    git clone -q . "$clone/nearfield" && cd "$clone/nearfield" || exit 1
    before=$(git rev-parse HEAD) shown=-U0
    packaging/release.sh "$1" >"$clone/log" || exit
    [ "$(git rev-parse HEAD)" != "$before" ] || shown=-s       # a tag alone
    git --no-pager show --format='%D%n%n%s' $shown &&
        echo "Dry run: nothing was changed here."
}

# Whatever speaks against it, before anything is touched.
check() {
    local current header
    [[ $version =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)$ ]] ||
        say "'$version' is no version X.Y.Z"
    [ -z "$(git status --porcelain)" ] || say "there is what is not committed: git status"
    git rev-parse -q --verify "refs/tags/v$version" >/dev/null && say "there is a tag v$version"
    # (under >>changes the next version stands already)
    current=$(packaging/versions.sh | grep -v '>>changes$' | cut -d' ' -f1 | sort -u)
    [ "$(echo "$current" | wc -l)" = 1 ] || say "the places do not agree: packaging/versions.sh"
    [ "$(printf '%s\n' "$current" "$version" | sort -V | tail -n 1)" = "$version" ] ||
        say "$version is older than $current"
    if grep -q "^## \[$version\]" CHANGELOG.md; then
        [ "$current" = "$version" ] || say "CHANGELOG.md has an entry [$version]"
        written=yes
        return
    fi
    sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep -q '^- ' ||
        say "CHANGELOG.md: nothing under [Unreleased]"
    for header in $headers; do
        sed -n '/^   >>changes/,/\*\//p' $header | grep -q "^   $version[, ]" ||
            say "$header: no line '$version ...' under >>changes"
    done
}

write_versions() {
    local header part file number=0 today; today=$(date -u +%F)
    # what parts and kernels compare: 10000 X + 100 Y + Z
    number=$(echo "$version" | awk -F. '{ print 10000 * $1 + 100 * $2 + $3 }')
    for file in $headers more/*.h more/*.hpp cuda/*.cu; do
        [ -f "$file" ] || continue
        sed -i "1s/ - v[0-9.]* - / - v$version - /
            s/^\(#[elif]* 10000 \* [A-Z]*_VERSION_MAJOR + .* != \)[0-9]*/\1$number/
            s/^\(#error \"[a-z_./]* \)[0-9.]*\( and [a-z]*.h are of different\)/\1$version\2/" "$file"
    done
    for header in $headers; do
        sed -i "/^   >>changes/,/\*\//s/^   $version,* *\([0-9-]\{10\}\)*/   $version, $today/" \
            $header
        number=0
        for part in MAJOR MINOR PATCH; do
            number=$((number + 1))
            sed -i "s/^\(#define [A-Z]*_VERSION_$part\) [0-9]*/\1 $(echo "$version" |
                cut -d. -f$number)/" $header
        done
    done
    sed -i "s/^\(project(nearfield VERSION\) [0-9.]*/\1 $version/" CMakeLists.txt
    sed -i "s/^version: .*/version: $version/; /^date-released:/d" CITATION.cff
    sed -i "/^version:/a date-released: $today" CITATION.cff
    sed -i "s/^\( *\"version\": \)\"[0-9.]*\"/\1\"$version\"/" clib.json \
        packaging/vcpkg/nearfield/vcpkg.json
    sed -i "s/^\( *version = \)\"[0-9.]*\"/\1\"$version\"/" packaging/conan/conanfile.py
    sed -i "s/^## \[Unreleased\]/&\n\n## [$version] - $today/" CHANGELOG.md
}

# A new entry on top; one that is UNRELEASED gives way to it.
write_debian_changelog() {
    local file=packaging/debian/changelog maintainer
    maintainer=$(sed -n 's/^Maintainer: //p' packaging/debian/control)
    head -n 1 $file | grep -q UNRELEASED && sed -i '1,/^ -- /d' $file
    { printf 'nearfield (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
        "$version" "$maintainer" "$(LC_ALL=C date -u -R)"
      [ ! -s $file ] || printf '\n'
      sed '/./,$!d' $file
    } >$file.new && mv $file.new $file
}

# The entry of CHANGELOG.md, without its title.
notes() {
    awk -v title="## [$1]" 'index($0, title) == 1 { here = 1; next }
        here && /^## \[/ { exit }
        here && (seen || NF) { seen = 1; print }' "$2"
}

# From here on nothing that is not in the tag is read.
write_files() {
    local version=$1 tag=v$1 out=${2:-build/release} name=nearfield-$1 tree sum
    git rev-parse -q --verify "refs/tags/$tag" >/dev/null || say "there is no tag $tag"
    rm -rf "$out"; mkdir -p "$out/tree" && out=$(cd "$out" && pwd) || exit 1
    git archive --format=tar --prefix="$name/" "$tag" | tar x -C "$out/tree" || say "git archive"
    tree=$out/tree/$name
    [ "$("$tree/packaging/versions.sh" "$tree" | cut -d' ' -f1 | sort -u)" = "$version" ] ||
        say "not every place of $tag says $version: packaging/versions.sh"
    # compressed as GitHub does it
    git archive --format=tar --prefix="$name/" "$tag" | gzip -cn >"$out/$name.tar.gz"
    "$tree/packaging/single.sh" "$out/tree/single/$name-single" "$tree" || say "single files"
    cp "$tree/LICENSE" "$out/tree/single/$name-single/"
    tar c --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct \
        "$tag")" -C "$out/tree/single" "$name-single" | gzip -9n >"$out/$name-single.tar.gz"
    notes "$version" "$tree/CHANGELOG.md" >"$out/notes.md"
    [ -s "$out/notes.md" ] || say "CHANGELOG.md has no entry [$version]"
    write_port "$tree" "$out/vcpkg/nearfield" "$out/$name.tar.gz"
    write_python "$tree" "$out/python" || say "sdist or wheel: $out/python/log"
    write_sbom "$tree" "$out/$name.spdx" || say "no SBOM: pip install reuse, or REUSE=''"
    rm -rf "$out/tree" "$out/python/log"
    ( cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort |
        xargs -d '\n' sha256sum >SHA256SUMS ) || say "sha256sum"
    cat "$out/SHA256SUMS"
}

write_sbom() {
    local reuse=${REUSE-reuse}
    [ -z "$reuse" ] || "$reuse" --root "$1" spdx --add-license-concluded --creator-organization \
        'nearfield authors' -o "$2"
}

# The port of packaging/vcpkg, with the archive of the tag in place of the checkout.
write_port() {
    local hash
    hash=$(sha512sum "$3" | cut -d' ' -f1)
    mkdir -p "$2" && cp "$1"/packaging/vcpkg/nearfield/{vcpkg.json,usage} "$2" &&
        sed "s|@REPOSITORY@|${REPOSITORY:-OWNER/nearfield}|; s|@SHA512@|$hash|" \
            "$1/packaging/vcpkg/release.cmake" >"$2/portfile.cmake" &&
        sed '1,/^# ---- from here on/d' "$1/packaging/vcpkg/nearfield/portfile.cmake" \
            >>"$2/portfile.cmake" || say "the port"
}

write_python() {
    local python=${PYTHON-python3}
    [ "$python" ] || return 0
    mkdir -p "$2" && "$python" -m venv "$2/venv" >"$2/log" 2>&1 &&
        "$2/venv/bin/pip" install -q build >>"$2/log" 2>&1 &&
        "$2/venv/bin/python" -m build --outdir "$2" "$1" >>"$2/log" 2>&1 && rm -rf "$2/venv"
}

cd "$(dirname "$0")/.." || exit 1
case ${1:-} in
--files) [ "${2:-}" ] || exit 2; write_files "$2" "${3:-}"; exit ;;
--dry-run) dry_run "${2:-}"; exit ;;
-* | '') sed -n '2,19s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
version=$1
written=
check
if [ "$written" ]; then
    git tag -a -m "nearfield $version" "v$version" || say "git tag failed"
    echo "tagged v$version; to publish it: git push --follow-tags"
    exit
fi
write_versions && write_debian_changelog &&
[ "$(packaging/versions.sh | cut -d' ' -f1 | sort -u)" = "$version" ] ||
say "not all places could be changed: packaging/versions.sh, git diff"
git commit -q -a -m "nearfield $version" && git tag -a -m "nearfield $version" "v$version" ||
    say "git commit or git tag failed"
echo "tagged v$version; to publish it: git push --follow-tags"
