# An overlay port: it packages the checkout in which it lies. The port that fetches a tag is made
# from this one, with the release.
#
#   vcpkg install nearfield --overlay-ports=nearfield/packaging/vcpkg

set(VCPKG_BUILD_TYPE release) # header-only library

get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
# ---- from here on as in the port of a release (packaging/release.sh --files)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/nearfield)

# vcpkg wants a pkg-config file that names a library, though it is only libm, beside the libraries.
file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/lib")
file(RENAME "${CURRENT_PACKAGES_DIR}/share/pkgconfig" "${CURRENT_PACKAGES_DIR}/lib/pkgconfig")
vcpkg_fixup_pkgconfig()

file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
