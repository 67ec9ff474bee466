"""module.py - writes nearfield.f90: the headers for Fortran, by iso_c_binding.
SPDX-License-Identifier: MIT OR Unlicense

    python3 module.py ROOT OUT [SIZES]      ROOT: the folder of the headers; OUT: the file to write;
                                            SIZES: a Fortran program and a C one, SIZES.f90 and
                                            SIZES.c, which print the sizes of all types, and all
                                            constants, to compare

The functions are those of the Python package (../python/declare.py), read in the headers and their
parts in the same way; the types are those that they need, and the constants all enumerators. Two
modules: nearfield_f64, for doubles, and nearfield_f32. Something that is not found is an error.

    C                           Fortran
    ugrid_desc *, ugrid *       type(ugrid_desc), type(ugrid): all members 0 unless they are set
    const real *pos             real(nearfield_real), intent(in), optional :: pos(*)
    int64_t *needed             integer(c_int64_t), intent(inout), optional :: needed
    NULL                        the argument is left out
    members that point          type(c_ptr): c_f_pointer makes arrays of them
    LBVH_REFIT, NBODY_FUNCTION  LBVH_REFIT_VALUE, NBODY_FUNCTION_VALUE: a function has the name
"""
import os
import re
import sys

ROOT_OF_PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python")
sys.path.insert(0, ROOT_OF_PYTHON)
import declare  # noqa: E402

NUMBERS = {"int": "integer(c_int)", "int32_t": "integer(c_int32_t)",
           "uint32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)",
           "uint64_t": "integer(c_int64_t)", "uint8_t": "integer(c_int8_t)",
           "char": "integer(c_int8_t)", "size_t": "integer(c_size_t)",
           "double": "real(c_double)", "real": "real(nearfield_real)"}
MORE = "nlist_build_box nlist_reserve ugrid_reserve ugrid_query".split()
ONE_NUMBER = "needed", "moved", "bad_id", "found_one"     # pointers to one number, not to an array


def functions():
    ours = [name for name in declare.FUNCTIONS if not name.startswith("nearfield_")]
    return ours + [name for name in MORE if name not in ours]


def without_cuda(text):
    """Without what stands between #if ..._CUDA and its #endif."""
    kept, depth, left_out = [], 0, 0
    for line in text.split("\n"):
        depth += line.startswith("#if")
        if line.startswith("#if") and re.search(r"[A-Z]_CUDA\b", line) and not left_out:
            left_out = depth
        if not left_out:
            kept.append(line)
        if line.startswith("#endif"):
            left_out = 0 if left_out == depth else left_out
            depth -= 1
    return "\n".join(kept)


class Headers:
    def __init__(self, root):
        self.whole = "".join(declare.header(root, name) for name in declare.HEADERS)
        self.text = declare.plain(self.whole)
        self.enums = set(re.findall(r"typedef enum (\w+) \{", self.text))
        self.callbacks = set(re.findall(r"typedef \w+ (\w+)\(", self.text))
        self.types = {}         # name: [(Fortran type, member, C lengths)], in order of need
        self.version = declare.version(root)
        self.numbers = declare.constants(self.text, self.arrays())

    def arrays(self):
        """All structs in one text: for the numbers that size their arrays."""
        bodies = re.findall(r"typedef struct (?:\w+ )*?\w+ \{([^{}]*)\} (\w+);", self.text)
        return "".join(body for body, name in bodies if "_i_" not in name and
                       not re.search(r"\[\w*_I_\w*\]", body))

    def words(self, declaration):
        """("type", pointers) of C declarations without their names: const and struct do not count.
        """
        text = re.sub(r"\b(const|struct|unsigned|enum)\b", " ", declaration)
        return text.replace("*", " ").split()[0], text.count("*")

    def of(self, word):
        """A number or a type, by value."""
        if word in NUMBERS:
            return NUMBERS[word]
        if word in self.enums:
            return "integer(c_int)"
        self.need(word)
        return "type(%s)" % word

    def need(self, name):
        if name in self.types:
            return
        body = re.search(r"\{(.*)\}", declare.struct(self.text, name)).group(1)
        members = []
        for part in filter(str.strip, body.split(";")):
            callback = re.search(r"\(\*(\w+)\)", part)
            if callback:
                members.append(("type(c_funptr)", callback.group(1), []))
                continue
            base = re.match(r"\s*(?:(?:const|struct|unsigned) )*\w+", part).group(0)
            for one in part[len(base):].split(","):
                word, pointers = self.words(base + " " + one.split("[")[0])
                kind = "type(c_ptr)" if pointers else self.of(word)
                if pointers and word in self.callbacks:
                    kind = "type(c_funptr)"
                members.append((kind, re.search(r"\w+", one).group(0),
                                re.findall(r"\[(\w+)\]", one)))
        self.types[name] = members

    def arguments(self, prototype):
        """[(declaration, name)] of a function."""
        result = []
        for part in re.search(r"\((.*)\);", prototype).group(1).split(","):
            if part.strip() == "void":
                continue
            name = re.findall(r"\w+", part.split("[")[0])[-1]
            word, pointers = self.words(re.sub(r"\b%s\b[^,]*$" % name, "", part))
            pointers += "[" in part
            intent = "intent(in)" if "const" in part else "intent(inout)"
            if not pointers:
                kind, shape = self.of(word) + ", value", ""
            elif word in self.callbacks:
                kind, shape = "type(c_funptr), value", ""
            elif word == "void":
                kind, shape = "type(c_ptr), value", ""
            elif word in NUMBERS or word in self.enums:
                scalar = name in ONE_NUMBER or (name == "pairs" and word == "int64_t")
                kind = "%s, %s, optional" % (self.of(word), intent)
                shape = "" if scalar else "(*)"
            elif word == "nlist_box" or name == "queries":
                kind, shape = "%s, %s" % (self.of(word), intent), ""
            else:
                kind = "%s, %s%s" % (self.of(word), intent,
                                     ", optional" if "const" in part and "desc" in word else "")
                shape = ""
            result.append((kind + " :: " + name + shape, name))
        return result

    def constants(self):
        """(name, number) of all enumerators whose numbers stand in the header."""
        known = {}
        for codes in re.findall(r"#define \w+_RESULTS\(X\)((?:.*\\\n)*.*\n)", self.whole):
            for number, code in enumerate(re.findall(r"\bX\((\w+),", codes)):
                known[code] = number
        text = declare.plain(without_cuda(self.whole))
        for body in re.findall(r"\benum (?:\w+ )?\{([^{}]*)\}", text):
            following = 0
            for entry in filter(str.strip, body.split(",")):
                name, _, value = (part.strip() for part in entry.partition("="))
                if value:
                    words = re.sub(r"\b[A-Z]\w*", lambda m: str(known.get(m[0], "?")), value)
                    counts = re.fullmatch(r"(0x)?[0-9A-F\s<|+*()-]+", words)
                    following = int(eval(words)) if counts else None    # a header of ours
                if following is None:
                    break
                if re.fullmatch(r"(UGRID|LBVH|NLIST|NBODY)_(?!I_)\w+", name):
                    known[name] = following
                following += 1
        return known


def wrapped(text, indent):
    """Lines of at most 100 columns."""
    lines, rest = [], " " * indent + text
    while len(rest) > 98:
        at = rest.rfind(" ", indent + 8, 96)
        lines.append(rest[:at] + " &")
        rest = " " * (indent + 4) + rest[at + 1:]
    return "\n".join(lines + [rest]) + "\n"


def write_type(headers, name, double):
    text = "  type, bind(c) :: %s\n" % name
    for kind, member, lengths in headers.types[name]:
        lengths = [size if size.isdigit() else str(headers.numbers[size][double])
                   for size in lengths]
        shape = "(%s)" % ", ".join(reversed(lengths)) if lengths else ""
        zero = {"type(c_ptr)": " = c_null_ptr", "type(c_funptr)": " = c_null_funptr"}.get(
            kind, "" if kind.startswith("type") else " = 0")
        text += "    %s :: %s%s%s\n" % (kind, member, shape, zero)
    return text + "  end type\n\n"


def write_function(headers, name, prototype, symbol):
    arguments = headers.arguments(prototype)
    word, pointers = headers.words(re.match(r"(.*?)\b%s\(" % name, prototype).group(1))
    what = "subroutine" if word == "void" and not pointers else "function"
    first = "%s %s(%s) bind(c, name=\"%s\")" % (
        what, name, ", ".join(name for _, name in arguments), symbol)
    if what == "function":
        first += " result(nearfield_result)"
    text = wrapped(first, 4) + "      import\n"
    for declaration, _ in arguments:
        text += wrapped(declaration, 6)
    if what == "function":
        text += "      %s :: nearfield_result\n" % ("type(c_ptr)" if pointers
                                                    else headers.of(word))
    return text + "    end %s\n\n" % what


def constant(headers, name):
    """Fortran does not tell capitals from small letters: LBVH_REFIT is lbvh_refit."""
    used = {other.lower() for other in list(headers.types) + functions()}
    return name + "_VALUE" if name.lower() in used else name


HEAD = """\
! nearfield.f90 - nearfield %d.%d.%d for Fortran. Written by packaging/fortran/module.py from the
! headers; not to be edited. What a function does, its results and its cost: its comment in C.
! SPDX-License-Identifier: MIT OR Unlicense
!
! Numbers of particles and places begin at 0, as in C. Positions: real :: x(dim, n), stride
! 0_c_size_t. A call with `intent(inout)` objects needs `target` only for c_loc.

"""
TEXT = """
contains

  ! What a result means: nearfield_text(ugrid_result_text(result)).
  function nearfield_text(from) result(text)
    type(c_ptr), intent(in) :: from
    character(:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer :: length
    text = ""
    if (.not. c_associated(from)) return
    call c_f_pointer(from, bytes, [4096])
    length = 1
    do while (bytes(length) /= c_null_char)
      text = text // bytes(length)
      length = length + 1
    end do
  end function
end module
"""


def write_module(headers, double, prototypes):
    module = "nearfield_f64" if double else "nearfield_f32"
    symbols = dict(re.findall(r"#define (\w+) +(\w+_f64_\w+)", headers.whole)) if double else {}
    text = "module %s\n  use, intrinsic :: iso_c_binding\n  implicit none\n\n" % module
    text += "  integer, parameter :: nearfield_real = %s\n\n" % (
        "c_double" if double else "c_float")
    for name, number in headers.constants().items():
        text += "  integer(c_int), parameter :: %s = %d\n" % (constant(headers, name), number)
    text += "\n" + "".join(write_type(headers, name, double) for name in headers.types)
    text += "  interface\n" + "".join(
        write_function(headers, name, prototype, symbols.get(name, name))
        for name, prototype in prototypes.items())
    return text + "  end interface\n" + TEXT


def write_sizes(headers, path):
    """Both print a line for each type and constant, its name and its bytes or its number."""
    constants = sorted(headers.constants().items())
    library = declare.read(ROOT_OF_PYTHON, "library", "nearfield.c")
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write("".join(re.findall(r"#define \w+_WITH_\w+\n", library)) +
                   "".join('#include "%s.h"\n' % name for name in declare.HEADERS) +
                   "#include <stdio.h>\nint main(void)\n{\n")
        for name in headers.types:
            file.write('    printf("%%s %%d\\n", "%s", (int)sizeof(%s));\n' % (name, name))
        for name, _ in constants:
            file.write('    printf("%%s %%d\\n", "%s", (int)%s);\n' % (name, name))
        file.write("    return 0;\n}\n")
    with open(path + ".f90", "w", encoding="utf-8") as file:
        for kind in "f32", "f64":
            file.write("subroutine sizes_%s\n  use nearfield_%s\n" % (kind, kind))
            for name in headers.types:
                file.write("  type(%s) :: of_%s\n" % (name, name))
            for name in headers.types:
                file.write("  print '(a, 1x, i0)', \"%s\", c_sizeof(of_%s)\n" % (name, name))
            for name, _ in constants:
                file.write("  print '(a, 1x, i0)', \"%s\", %s\n" % (
                    name, constant(headers, name)))
            file.write("end subroutine\n")
        file.write("program sizes\n  call sizes_f32\n  call sizes_f64\nend program\n")


def main(root, out, sizes=None):
    headers = Headers(root)
    prototypes = {name: declare.function(headers.text, name) for name in functions()}
    for name, prototype in prototypes.items():
        headers.arguments(prototype)        # which types are needed
    with open(out, "w", encoding="utf-8") as file:
        file.write(HEAD % headers.version +
                   "\n".join(write_module(headers, double, prototypes) for double in (1, 0)))
    if sizes:
        write_sizes(headers, sizes)


if __name__ == "__main__":
    main(*sys.argv[1:])
