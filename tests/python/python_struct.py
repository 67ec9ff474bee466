"""For tests/python/run.sh: writes a C program that compares what nearfield.py declares with the
headers.

    python_struct.py DOUBLE CUDA     (0 or 1 each) prints the program

The program redeclares each function, so that a wrong one does not compile, and prints each
difference of sizes, offsets, enums, and of what Python passes to a function; last, how many it
compared.
"""
import ctypes
import os
import re
import sys

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.environ.get("NEARFIELD_MODULE", os.path.join(ROOT, "build", "python")))
sys.path.insert(1, os.path.join(ROOT, "packaging", "python"))
import declare  # noqa: E402
import nearfield  # noqa: E402
from nearfield import _binding, _declared  # noqa: E402


def passed(lib, prototype):
    """Lines that compare what ctypes passes and gets with a prototype: by size, and whether there
    are fractions."""
    result, name, arguments = re.match(r"(.*?[ *])(\w+)\((.*)\);", prototype).groups()
    function = getattr(lib, name)
    texts = [text for text in arguments.split(",") if text.strip() != "void"]
    yield 'IS("arguments of %s", %d, %d);' % (name, len(function.argtypes), len(texts))
    for text, ctype in zip(texts + [result + "result"], function.argtypes + [function.restype]):
        if text.strip() == "void result":
            yield 'IS("result of %s", %d, 1);' % (name, ctype is None)
        elif "*" in text or "[" in text:
            yield 'IS("pointer of %s", %d, 1);' % (name, ctype in (ctypes.c_void_p,
                                                                   ctypes.c_char_p))
        else:
            kind = text.strip().rsplit(" ", 1)[0]
            yield 'IS("%s of %s", %d, sizeof(%s));' % (kind, name, ctypes.sizeof(ctype), kind)
            yield 'IS("%s of %s", %d, (%s)0.5 != 0);' % (
                kind, name, ctype in (ctypes.c_float, ctypes.c_double), kind)


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
    lines += ['#include "search.h"', '#include "memory.h"', '#include "dlpack.h"']
    lines.append("typedef %s real;" % ("double" if double else "float"))
    prototypes = declare.prototypes(ROOT, cuda)
    lines += prototypes     # C: a redeclaration must agree with the header's
    lines += ["static int bad, compared;",
              "#define IS(what, ours, theirs) do { compared++; "
              "if ((long)(ours) != (long)(theirs)) { bad = 1; "
              "printf(\"%s: %ld, not %ld\\n\", what, (long)(ours), (long)(theirs)); } } while (0)",
              "int main(void)", "{"]
    for prototype in prototypes:
        lines += passed(lib, prototype)
    for name in list(_declared.STRUCTS) + list(_declared.CUDA_STRUCTS) * cuda:
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
        header, enum = key.upper().replace("_WORLD", "").split(".")
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
