# nearfield for Conan 2, from the checkout in which this file lies:
#
#   conan create nearfield/packaging/conan
#
# Packages: nearfield::ugrid and so on, as in CMakeLists.txt. nearfield::ugrid_cuda is the same;
# that your .cu files are C++17 is yours to say.
import os

from conan import ConanFile
from conan.tools.files import copy

required_conan_version = ">=2.0"
HEADERS = ["ugrid", "lbvh", "nlist", "nbody"]


class Nearfield(ConanFile):
    name = "nearfield"
    version = "0.2.0"
    description = "Single-file C99 headers for particles, serial and CUDA"
    license = "MIT OR Unlicense"
    topics = ("particles", "neighbour-search", "bvh", "n-body", "cuda", "header-only")
    package_type = "header-library"
    settings = "os"
    no_copy_source = True

    def export_sources(self):
        top = os.path.join(self.recipe_folder, "..", "..")
        for header in HEADERS:
            for files in (f"{header}.h", f"more/{header}_*.h", f"cuda/{header}.cu",
                          f"cuda/{header}_*.cu"):
                copy(self, files, top, os.path.join(self.export_sources_folder, "include"))
        copy(self, "more/nearfield.hpp", top, os.path.join(self.export_sources_folder, "include"))
        copy(self, "LICENSE", top, os.path.join(self.export_sources_folder, "licenses"))

    def package(self):
        copy(self, "*", os.path.join(self.source_folder, "include"),
             os.path.join(self.package_folder, "include", "nearfield"))
        copy(self, "*", os.path.join(self.source_folder, "licenses"),
             os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        for header in HEADERS:
            component = self.cpp_info.components[header]
            component.set_property("cmake_target_name", f"nearfield::{header}")
            component.set_property("cmake_target_aliases", [f"nearfield::{header}_cuda"])
            component.includedirs = ["include/nearfield"]
            component.libdirs = []
            component.bindirs = []
            if self.settings.os != "Windows":
                component.system_libs = ["m"]
