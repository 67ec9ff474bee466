"""For tests/python/run.sh: writes a C program that compares what nearfield.py declares with the
headers.

    python_struct.py DOUBLE CUDA     (0 or 1 each) prints the program

The program redeclares each function, so that a wrong one does not compile, and prints each
difference of sizes, offsets and enums; last, how many it compared.
"""
import ctypes
import os
import re
import sys

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.environ.get("NEARFIELD_MODULE", os.path.join(ROOT, "build", "python")))
import nearfield  # noqa: E402
from nearfield import _binding, _declared  # noqa: E402


def program(double, cuda):
    lib = _binding.library(np.dtype(np.float64 if double else np.float32), bool(cuda))
    lines = ["#include <stdio.h>"]
    parts = sorted(name[:-2] for name in os.listdir(os.path.join(ROOT, "more")))
    for header in ("ugrid", "lbvh", "nlist", "nbody"):
        if double:
            lines.append("#define %s_REAL double" % header.upper())
        if cuda:
            lines.append("#define %s_CUDA" % header.upper())
        lines += ["#define " + part.upper().replace("_", "_WITH_", 1)
                  for part in parts if part.startswith(header + "_")]
        lines.append('#include "%s.h"' % header)
    lines.append('#include "search.h"')
    lines.append("typedef %s real;" % ("double" if double else "float"))
    declared = _declared.FUNCTIONS + _declared.CUDA_FUNCTIONS * cuda
    # C: a redeclaration must agree with the header's
    lines += [line for line in declared.split("\n") if line]
    lines += ["static int bad, compared;",
              "#define IS(what, ours, theirs) do { compared++; "
              "if ((long)(ours) != (long)(theirs)) { bad = 1; "
              "printf(\"%s: %ld, not %ld\\n\", what, (long)(ours), (long)(theirs)); } } while (0)",
              "int main(void)", "{"]
    text = _declared.STRUCTS + _declared.CUDA_STRUCTS * cuda
    for name in re.findall(r"struct (\w+) \{", text):
        struct = getattr(lib, name)
        lines.append('IS("sizeof %s", %d, sizeof(%s));' % (name, ctypes.sizeof(struct), name))
        for field, ctype in struct._fields_:
            lines.append('IS("%s.%s", %d, offsetof(%s, %s));' % (
                name, field, getattr(struct, field).offset, name, field))
            lines.append('IS("sizeof %s.%s", %d, sizeof(((%s *)0)->%s));' % (
                name, field, ctypes.sizeof(ctype), name, field))
    for name, of_both in _declared.CONSTANTS.items():
        if cuda or "CUDA" not in name:
            lines.append('IS("%s", %d, %s);' % (name, of_both[double], name))
    for key, words in _binding.OPTIONS.items():
        header, enum = key.upper().split(".")
        for value, word in enumerate(words.split()):
            c_name = {"WALK_AUTO": "UGRID_WALK_AUTO", "SOURCES_AUTO": "NBODY_SOURCES_AUTO"}.get(
                "%s_%s" % (enum, word.upper()))
            c_name = c_name or "%s_%s%s" % (
                header, "SLOTS_" if enum == "SLOT_LAYOUT" else "", word.upper())
            lines.append('IS("%s", %d, %s);' % (c_name, value, c_name))
    lines.append('IS("version", %d, 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR + '
                 'UGRID_VERSION_PATCH);' % _declared.VERSION_NUMBER)
    lines += ['IS("flag", 1, UGRID_HALF);', 'IS("flag", 1, LBVH_HALF);',
              'IS("layout", 0, NLIST_COMPACT);', 'IS("event", 0, NLIST_BEGUN);',
              'IS("event", 1, NLIST_PERSISTED);', 'IS("event", 2, NLIST_ENDED);',
              'IS("sizeof nlist_event", %d, sizeof(nlist_event));' % nearfield.EVENT.itemsize]
    lines += ['    printf("%d\\n", compared);', "    return bad;", "}", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(program(int(sys.argv[1]), int(sys.argv[2])))
