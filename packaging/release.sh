#!/bin/bash
# Makes a release of what is committed: writes the version into every place that names it
# (versions.sh), makes of CHANGELOG.md's [Unreleased] an entry of today, commits that, and sets the
# annotated tag vX.Y.Z. Where CHANGELOG.md has an entry X.Y.Z already, and every place names it,
# only the tag is set. Nothing is pushed.
#
#   packaging/release.sh X.Y.Z
#   packaging/release.sh --dry-run X.Y.Z      in a copy, which is shown and thrown away
#
# To be written before: CHANGELOG.md under [Unreleased], and in each header under >>changes a line
# that begins with X.Y.Z. The single files (make single) go with a release: publish build/single.
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
    packaging/release.sh "$1" >"$clone/log" && git --no-pager show --format='%D%n%n%s' -U0 &&
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

# A new entry on top; the first of all is there from the beginning, UNRELEASED.
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

cd "$(dirname "$0")/.." || exit 1
case ${1:-} in
--dry-run) dry_run "${2:-}"; exit ;;
-* | '') sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
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
