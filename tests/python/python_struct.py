"""For tests/python/run.sh: writes a C program that compares what nearfield.py declares with the
headers.

    python_struct.py DOUBLE CUDA     (0 or 1 each) prints the program; it redeclares each function,
                                     so that a wrong one does not compile, and prints each
                                     difference of sizes, offsets and enums; last, how many it
                                     compared
    python_struct.py                 compares the text of the structs: a field that a header has
                                     besides may hide in padding
"""
import ctypes
import os
import re
import sys

import numpy as np

sys.path.insert(0,
                os.environ.get("NEARFIELD_MODULE",
                               os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                                            "examples", "python")))
import nearfield  # noqa: E402


def program(double, cuda):
    lib = nearfield._library(np.dtype(np.float64 if double else np.float32), bool(cuda))
    lines = ["#include <stdio.h>"]
    for header in ("ugrid", "lbvh", "nlist", "nbody"):
        if double:
            lines.append("#define %s_REAL double" % header.upper())
        if cuda:
            lines.append("#define %s_CUDA" % header.upper())
        lines.append('#include "%s.h"' % header)
    lines.append("typedef %s real;" % ("double" if double else "float"))
    declared = nearfield._FUNCTIONS + nearfield._CUDA_FUNCTIONS * cuda
    lines += [line for line in declared.split("\n")
              if line]    # C: a redeclaration must agree with the header's
    lines += ["static int bad, compared;",
              "#define IS(what, ours, theirs) do { compared++; if ((long)(ours) != (long)(theirs)) "
              "{ bad = 1; "
              "printf(\"%s: %ld, not %ld\\n\", what, (long)(ours), (long)(theirs)); } } while (0)",
              "int main(void)", "{"]
    text = nearfield._STRUCTS + nearfield._CUDA_STRUCTS * cuda
    for name in re.findall(r"struct (\w+) \{", text):
        struct = getattr(lib, name)
        lines.append('IS("sizeof %s", %d, sizeof(%s));' % (name, ctypes.sizeof(struct), name))
        for field, ctype in struct._fields_:
            lines.append('IS("%s.%s", %d, offsetof(%s, %s));' % (name, field,
                                                                 getattr(struct, field).offset,
                                                                 name, field))
            lines.append('IS("sizeof %s.%s", %d, sizeof(((%s *)0)->%s));' % (name, field,
                                                                             ctypes.sizeof(ctype),
                                                                             name, field))
    for name, value in nearfield._CONSTANTS.items():
        if cuda or "CUDA" not in name:
            lines.append('IS("%s", %d, %s);' % (name, value, name))
    for key, words in nearfield._OPTIONS.items():
        header, enum = key.upper().split(".")
        for value, word in enumerate(words.split()):
            c_name = {"WALK_AUTO": "UGRID_WALK_AUTO",
                      "SOURCES_AUTO": "NBODY_SOURCES_AUTO"}.get("%s_%s" % (enum, word.upper()))
            c_name = c_name or "%s_%s%s" % (header, "SLOTS_" if enum == "SLOT_LAYOUT" else "",
                                            word.upper())
            lines.append('IS("%s", %d, %s);' % (c_name, value, c_name))
    lines.append('IS("version", %d, 10000 * UGRID_VERSION_MAJOR + 100 * UGRID_VERSION_MINOR + '
                 'UGRID_VERSION_PATCH);' % nearfield._VERSION)
    lines += ['IS("flag", 1, UGRID_HALF);', 'IS("flag", 1, LBVH_HALF);',
              'IS("layout", 0, NLIST_COMPACT);',
              'IS("event", 0, NLIST_BEGUN);', 'IS("event", 1, NLIST_PERSISTED);',
              'IS("event", 2, NLIST_ENDED);',
              'IS("sizeof nlist_event", %d, sizeof(nlist_event));' % nearfield.EVENT.itemsize]
    lines += ['    printf("%d\\n", compared);', "    return bad;", "}", ""]
    return "\n".join(lines)


def compare_texts():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    headers = "".join(open(os.path.join(root, name + ".h"), encoding="utf-8").read()
                      for name in ("ugrid", "lbvh", "nlist", "nbody"))
    headers = re.sub(r"/\*.*?\*/", "", headers, flags=re.S)
    plain = lambda text: re.sub(r"_device device\b", " device",
                                " ".join(re.sub(r"\b(ugrid|lbvh|nlist|nbody)_real\b", "real",
                                                text).split()))
    bad = 0
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};",
                                 nearfield._STRUCTS + nearfield._CUDA_STRUCTS, re.S):
        found = re.search(r"typedef struct (?:\w+ )?%s \{(.*?)\} %s;" % (name, name), headers, re.S)
        if not found or plain(found.group(1)) != plain(body):
            bad = 1
            print("%s: the header has\n  %s\nnot\n  %s" % (name, plain(found.group(1)) if found
                                                           else "nothing", plain(body)))
    return bad


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(compare_texts())
    print(program(int(sys.argv[1]), int(sys.argv[2])))
