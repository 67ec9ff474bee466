"""declare.py - writes nearfield/_declared.py: what Python calls, as the headers declare it.
SPDX-License-Identifier: MIT OR Unlicense

    python3 declare.py ROOT OUT        ROOT: the folder of the headers; OUT: the file to write

Structs are those that library/nearfield.c names with NEARFIELD_SIZE; functions those listed below.
Both are read in the headers and their parts, without their comments, `real` standing for
ugrid_real and so on; so are numbers that size arrays, and the version. Something that is not found
is an error: the module is built from the headers that it is shipped with, or not at all. What is
written are tables, so that nothing of C is parsed when the package is imported:

    STRUCTS     name: ((field, type, (length, ...)), ...)   lengths of arrays; of some two, (float,
                double)
    FUNCTIONS   name: (type of the result, (type, ...))

Types are the words of _binding.py: pointer, text, enum, those of C that it knows, and structs.
"""
import os
import re
import sys

HEADERS = "ugrid", "lbvh", "nlist", "nbody"
HERE = os.path.dirname(os.path.abspath(__file__))

FUNCTIONS = """
ugrid_version ugrid_result_text ugrid_build ugrid_free ugrid_validate ugrid_count_pairs
ugrid_count_neighbors ugrid_neighbors ugrid_neighbors_at ugrid_save ugrid_load
lbvh_result_text lbvh_build lbvh_refit lbvh_free lbvh_validate lbvh_count_pairs lbvh_pairs
lbvh_overlaps lbvh_nearest_rows lbvh_save lbvh_load nearfield_rays
lbvh_wide_build lbvh_wide_free lbvh_closest_points lbvh_any_hits
lbvh_world_begin lbvh_world_free lbvh_world_update lbvh_world_validate
nearfield_world_insert nearfield_world_move nearfield_world_remove nearfield_world_set
nearfield_world_pairs nearfield_world_events nearfield_world_overlaps nearfield_world_cast
nearfield_world_nearest
nlist_result_text nlist_build_ugrid nlist_build_lbvh nlist_free nlist_moved nlist_moved_in
nlist_choose nlist_remap nlist_pairs
nlist_save nlist_load nlist_validate
nbody_result_text nbody_build nbody_fields nbody_fields_at nbody_estimate nbody_step nbody_validate
nbody_save nbody_load
nbody_free
nearfield_search_new nearfield_search_free nearfield_search_run nearfield_search_copy
nearfield_search_rows nearfield_search_end nearfield_again nearfield_run nearfield_end_threads
nearfield_pairs nearfield_alloc nearfield_free nearfield_drop nearfield_hold nearfield_lend
""".split()

CUDA_FUNCTIONS = """
nearfield_cuda_alloc nearfield_cuda_free nearfield_cuda_fetch nearfield_cuda_order
nearfield_cuda_device
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


SCALARS = ("int", "int32_t", "int64_t", "uint32_t", "uint64_t", "uint8_t", "real", "size_t",
           "double", "void")
ENDINGS = "allocator", "parallel", "function", "block"


def kind(text, known):
    """The type of a declaration, "const lbvh_node *node": a word of _binding.py."""
    words = [word for word in re.findall(r"\w+|\*", text) if word not in ("const", "struct")]
    if "*" in words or "[" in text:
        return "pointer"
    if words[0] in SCALARS or words[0] in known:
        return words[0]
    if words[0] == "unsigned" and words[1] == "char":
        return "uint8_t"
    ending = words[0].rsplit("_", 1)[-1]
    return ending if ending in ENDINGS else "enum"


def fields(body, numbers, known):
    """(name, type, lengths) of each field of C declarations, "int32_t n; real min[3], max[3];"."""
    for declared in filter(str.strip, body.split(";")):
        first, *others = declared.split(",")
        base = re.match(r"\s*(?:const |struct |unsigned )*\w+", first).group(0)
        for text in [first[len(base):]] + others:
            lengths = tuple(int(size) if size.isdigit() else numbers[size]
                            for size in re.findall(r"\[(\w+)\]", text))
            name = re.search(r"\w+", text).group(0)
            yield name, kind(base + " " + text.split("[")[0], known), lengths


def struct_table(text, structs, numbers, known):
    """A member that is a struct needs its declaration before it."""
    table = {}
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", "".join(structs)):
        table[name] = tuple(fields(body, numbers, known))
        for field, word, _ in table[name]:
            member = re.search(r"(?:^|;) *(\w+) %s\b" % field, body)
            if word == "enum" and member and \
                    re.search(r"typedef struct (?:\w+ )?%s \{" % member.group(1), text):
                sys.exit("declare.py: nearfield.c has to name %s before %s" % (
                    member.group(1), name))
        known.add(name)
    return table


def function_table(prototypes, known):
    table = {}
    for prototype in prototypes:
        result, name, arguments = re.match(r"(.*?[ *])(\w+)\((.*)\);", prototype).groups()
        table[name] = ("text" if "char" in result else kind(result, known),
                       tuple(kind(argument, known) for argument in arguments.split(",")
                             if argument.strip() != "void"))
    return table


def version(root):
    header = read(root, "ugrid.h")
    parts = [re.search(r"#define UGRID_VERSION_%s +(\d+)" % part, header)
             for part in ("MAJOR", "MINOR", "PATCH")]
    return tuple(int(part.group(1)) for part in parts if part)


def source(root):
    """(text of the headers and of the library, the structs of the CPU, those of CUDA)."""
    library = os.path.join(HERE, "library")
    own = "".join(read(library, name) for name in sorted(os.listdir(library)) if "64" not in name)
    text = plain("".join(header(root, name) for name in HEADERS) + own)
    serial, cuda = read(library, "nearfield.c").split("#ifdef UGRID_CUDA", 1)
    return (text,) + tuple([struct(text, name) for name in
                            re.findall(r"NEARFIELD_SIZE\((\w+)\)", part) if name != "type"]
                           for part in (serial, cuda))


def prototypes(root, cuda):
    """The functions as C declares them."""
    text = source(root)[0]
    return [function(text, name) for name in FUNCTIONS + CUDA_FUNCTIONS * cuda]


def table(name, entries):
    lines = ["    %r: %r,\n" % entry for entry in entries.items()]
    return "%s = {\n%s}\n" % (name, "".join(lines))


def declare(root):
    text, structs, cuda_structs = source(root)
    numbers, known = constants(text, "".join(structs + cuda_structs)), set()
    of_version = version(root)
    return "".join([
        '"""Written by declare.py from the headers of this version. Not to be edited."""\n',
        'VERSION = "%d.%d.%d"\n' % of_version,
        "VERSION_NUMBER = %d\n" % (10000 * of_version[0] + 100 * of_version[1] + of_version[2]),
        "CONSTANTS = %r\n" % numbers,
        table("STRUCTS", struct_table(text, structs, numbers, known)),
        table("CUDA_STRUCTS", struct_table(text, cuda_structs, numbers, known)),
        table("FUNCTIONS", function_table(
            [function(text, name) for name in FUNCTIONS], known)),
        table("CUDA_FUNCTIONS", function_table(
            [function(text, name) for name in CUDA_FUNCTIONS], known))])


if __name__ == "__main__":
    declared = declare(sys.argv[1])
    os.makedirs(os.path.dirname(os.path.abspath(sys.argv[2])), exist_ok=True)
    with open(sys.argv[2], "w", encoding="utf-8", newline="\n") as out:
        out.write(declared)
