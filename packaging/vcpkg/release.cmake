# The port of a release, for vcpkg's registry: release.sh --files writes it, from this head and the
# end of nearfield/portfile.cmake.
vcpkg_from_github(
    OUT_SOURCE_PATH SOURCE_PATH
    REPO @REPOSITORY@
    REF "v${VERSION}"
    SHA512 @SHA512@
    HEAD_REF main
)
set(VCPKG_BUILD_TYPE release) # header-only library
