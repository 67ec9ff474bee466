"""declare.py - writes nearfield/_declared.py: what Python calls, as the headers declare it.
SPDX-License-Identifier: MIT OR Unlicense

    python3 declare.py ROOT OUT        ROOT: the folder of the headers; OUT: the file to write

Structs are those that library/nearfield.c names with NEARFIELD_SIZE; functions those listed below.
Both are copied from the headers and their parts without their comments, `real` standing for
ugrid_real and so on; numbers that size arrays, and the version, are read there as well. Something
that is not found is an error: the module is built from the headers that it is shipped with, or not
at all.
"""
import os
import re
import sys

HEADERS = "ugrid", "lbvh", "nlist", "nbody"
HERE = os.path.dirname(os.path.abspath(__file__))

FUNCTIONS = """
ugrid_version ugrid_result_text ugrid_build ugrid_free ugrid_validate ugrid_count_pairs
ugrid_count_neighbors ugrid_neighbors ugrid_neighbors_at
lbvh_result_text lbvh_build lbvh_refit lbvh_free lbvh_validate lbvh_count_pairs lbvh_pairs
lbvh_overlaps lbvh_nearest_rows nearfield_rays
nlist_result_text nlist_build_ugrid nlist_build_lbvh nlist_free nlist_moved nlist_moved_in
nlist_choose nlist_remap nlist_pairs
nlist_save nlist_load nlist_validate
nbody_result_text nbody_build nbody_fields nbody_fields_at nbody_estimate nbody_step nbody_validate
nbody_free
nearfield_search_new nearfield_search_free nearfield_search_run nearfield_search_copy
nearfield_search_rows nearfield_search_end nearfield_run
""".split()

CUDA_FUNCTIONS = """
nearfield_cuda_alloc nearfield_cuda_free nearfield_cuda_fetch nearfield_cuda_order
nearfield_cuda_few nearfield_cuda_few_count nearfield_cuda_few_write nearfield_cuda_entries
nearfield_cuda_queries nearfield_cuda_nearest
ugrid_cuda_fit ugrid_cuda_build ugrid_cuda_check ugrid_cuda_free ugrid_cuda_download
ugrid_cuda_count_pairs ugrid_cuda_count_neighbors ugrid_cuda_neighbors ugrid_cuda_neighbors_at
lbvh_cuda_build lbvh_cuda_refit lbvh_cuda_check lbvh_cuda_free lbvh_cuda_download
lbvh_cuda_count_pairs lbvh_cuda_pairs lbvh_cuda_overlaps lbvh_cuda_nearest
nlist_cuda_build_ugrid nlist_cuda_build_lbvh nlist_cuda_build_box nlist_cuda_build_boxes
nlist_cuda_check nlist_cuda_free nlist_cuda_moved nlist_cuda_remap nlist_cuda_download
nbody_cuda_build nbody_cuda_fields nbody_cuda_fields_at nbody_cuda_estimate nbody_cuda_step
nbody_cuda_check nbody_cuda_download nbody_cuda_free
""".split()


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def header(root, name):
    """A header and all its parts."""
    parts = sorted(file for file in os.listdir(os.path.join(root, "more"))
                   if file.startswith(name + "_") and file.endswith(".h"))
    return read(root, name + ".h") + "".join(read(root, "more", part) for part in parts)


def plain(text):
    """C without comments, preprocessor lines and names that differ by header or precision."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#.*(\\\n.*)*$", "", text, flags=re.M)
    text = re.sub(r"\b(ugrid|lbvh|nlist|nbody)_real\b", "real", text)
    return text.replace("cudaStream_t ", "struct CUstream_st *")


def line(text):
    return " ".join(text.split())


def struct(text, name):
    found = re.search(r"typedef struct (?:\w+ )*?%s \{([^{}]*)\} %s;" % (name, name), text)
    if not found:
        sys.exit("declare.py: the headers have no struct %s" % name)
    body = re.sub(r"\w+_device device\b", name.replace("_cuda", "") + " device", found.group(1))
    return "struct %s { %s };" % (name, line(body))


def function(text, name):
    found = re.search(r"(?:[A-Z]+_API) ([^;{}()]*?\b%s\([^;{}]*?\))\s*[;{]" % name, text)
    if not found:
        sys.exit("declare.py: the headers have no function %s" % name)
    return line(found.group(1)) + ";"


def constants(text, structs):
    """The numbers in the brackets of these structs, each for floats and for doubles."""
    numbers = {}
    for name in sorted(set(re.findall(r"\[([A-Z]\w*)\]", structs))):
        found = re.search(r"\b%s = (?:\w+_REAL_KIND == 1 \? (\d+) : )?(\d+)" % name, text)
        if found:
            numbers[name] = int(found.group(1) or found.group(2)), int(found.group(2))
            continue
        for body in re.findall(r"enum \{([^{}]*)\}", text):
            words = [word.strip() for word in body.split(",")]
            if name in words and "=" not in body:
                numbers[name] = words.index(name), words.index(name)
        if name not in numbers:
            sys.exit("declare.py: the headers have no number %s" % name)
    return numbers


def check_members(text, structs):
    """A member that is a struct needs its declaration before it; _binding.py knows four kinds."""
    known = set()
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", "".join(structs)):
        for member in re.findall(r"(?:^|;) *(?:const )?(?:struct )?(\w+) +(?!\*)\w", body):
            if re.search(r"typedef struct (?:\w+ )?%s \{" % member, text) and \
                    not member.endswith(("_allocator", "_block", "_parallel",
                                         "_function")) and member not in known:
                sys.exit("declare.py: nearfield.c has to name %s before %s" % (member, name))
        known.add(name)


def version(root):
    header = read(root, "ugrid.h")
    parts = [re.search(r"#define UGRID_VERSION_%s +(\d+)" % part, header)
             for part in ("MAJOR", "MINOR", "PATCH")]
    return tuple(int(part.group(1)) for part in parts if part)


def text_of(name, lines):
    return '%s = """\n%s\n"""\n' % (name, "\n".join(lines))


def declare(root):
    own = read(HERE, "library", "nearfield.c") + read(HERE, "library", "search.h") + \
        read(HERE, "library", "threads.h")
    cuda_own = read(HERE, "library", "nearfield.cu") + read(HERE, "library", "few.cuh") + \
        read(HERE, "library", "near.cuh")
    headers = plain("".join(header(root, name) for name in HEADERS) + own + cuda_own)
    serial, cuda = read(HERE, "library", "nearfield.c").split("#ifdef UGRID_CUDA", 1)
    structs, cuda_structs = ([struct(headers, name) for name in
                              re.findall(r"NEARFIELD_SIZE\((\w+)\)", part) if name != "type"]
                             for part in (serial, cuda))
    check_members(headers, structs + cuda_structs)
    numbers = version(root)
    return "".join([
        '"""Written by declare.py from the headers of this version. Not to be edited."""\n',
        'VERSION = "%d.%d.%d"\n' % numbers,
        "VERSION_NUMBER = %d\n" % (10000 * numbers[0] + 100 * numbers[1] + numbers[2]),
        "CONSTANTS = %r\n" % constants(headers, "".join(structs + cuda_structs)),
        text_of("STRUCTS", structs), text_of("CUDA_STRUCTS", cuda_structs),
        text_of("FUNCTIONS", [function(headers, name) for name in FUNCTIONS]),
        text_of("CUDA_FUNCTIONS", [function(headers, name) for name in CUDA_FUNCTIONS])])


if __name__ == "__main__":
    declared = declare(sys.argv[1])
    os.makedirs(os.path.dirname(os.path.abspath(sys.argv[2])), exist_ok=True)
    with open(sys.argv[2], "w", encoding="utf-8", newline="\n") as out:
        out.write(declared)
