"""The shared library: where it is, its structs and functions, what its results mean.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import ctypes
import functools
import os
import re
from typing import Any, Iterator

import numpy as np

from . import _declared


class Error(RuntimeError):
    """What a call of the headers refused, and why, in the header's own words."""


class _Allocator(ctypes.Structure):
    _fields_ = [("alloc", ctypes.c_void_p), ("free", ctypes.c_void_p), ("user", ctypes.c_void_p)]


class _Parallel(ctypes.Structure):
    _fields_ = [("run", ctypes.c_void_p), ("user", ctypes.c_void_p), ("tasks", ctypes.c_int32)]


class _Function(ctypes.Structure):
    _fields_ = [("force", ctypes.c_void_p), ("potential", ctypes.c_void_p),
                ("user", ctypes.c_void_p)]


class _Block(ctypes.Structure):
    _fields_ = [("memory", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
CUDA_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)
CUDA_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
                             ctypes.c_void_p)

_TYPES: dict[str, Any] = {
    "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "uint8_t": ctypes.c_uint8,
    "double": ctypes.c_double, "size_t": ctypes.c_size_t, "char": ctypes.c_ubyte}

# Enums, in their order; fields that point to arrays, and of what (None: the real type).
OPTIONS = {
    "ugrid.method": "auto count sort fixed list list_packed", "ugrid.placement": "loose tight",
    "ugrid.walk": "auto cells strips modular hybrid", "ugrid.cell_order": "rows morton",
    "ugrid.slot_layout": "by_column by_row",
    "lbvh.kind": "boxes points spheres triangles", "lbvh.builder": "merge split ploc",
    "nbody.method": "auto direct virtual_particles force_nodes",
    "nbody.law": "inverse_square inverse", "nbody.sources": "auto mass_centres chebyshev",
    "nbody.stage": "fast one_thread many_threads shared_memory",
    "nbody.integrator": "leapfrog euler"}
ARRAYS: dict[str, Any] = {"radii": None, "masks": np.uint32, "indices": np.int32}

_path: str | None = None


def load(path: str | os.PathLike[str]) -> None:
    """Take this library from now on.

    Parameters
    ----------
    path : str or PathLike
        A ``libnearfield.so``, or a ``libnearfield_cuda.so`` with its ``libnearfield64_cuda.so``
        beside it. Without this call the library beside this package is taken, or that named by
        the environment variable ``NEARFIELD_LIBRARY``.
    """
    global _path
    _path = os.fspath(path)
    library.cache_clear()


def _names(device: bool) -> list[str]:
    end = ".dll" if os.name == "nt" else ".so"
    cuda = "libnearfield_cuda" + end
    return [cuda] if device else ["libnearfield" + end, cuda]


def find(dtype: Any, device: bool) -> str:
    """The file to load. For doubles CUDA has a library of its own, libnearfield64_cuda.so."""
    here = os.path.dirname(os.path.abspath(__file__))
    given = _path or os.environ.get("NEARFIELD_LIBRARY")
    for place in [given] if given else [os.path.join(here, name) for name in _names(device)]:
        if dtype == np.float64:
            folder, name = os.path.split(place)
            place = os.path.join(folder, name.replace("nearfield_", "nearfield64_"))
        if os.path.exists(place):
            return place
    raise Error("no %s beside the package: %s" % (
        _names(device)[0],
        "install with -C cmake.define.NEARFIELD_CUDA=ON, or make shared-cuda and nearfield.load()"
        if device else "pip install ., or make shared, or nearfield.load(path)"))


@functools.lru_cache(maxsize=None)
def declared_desc(header: str) -> Any:
    """The desc struct of a header, in doubles: known without a library."""
    known: Any = type("Declared", (), {})()
    _make_structs(known, dict(_TYPES, real=ctypes.c_double), _declared.STRUCTS)
    return getattr(known, header + "_desc")


@functools.lru_cache(maxsize=None)
def library(dtype: Any, device: bool) -> Any:
    """One precision's half of the library: structs and functions by their names in the headers."""
    dll = ctypes.CDLL(find(dtype, device))
    double = dtype == np.float64
    lib: Any = type("Library", (), {"dtype": dtype})()
    types = dict(_TYPES, real=ctypes.c_double if double else ctypes.c_float)
    _make_structs(lib, types, _declared.STRUCTS + _declared.CUDA_STRUCTS * device)
    declared = _declared.FUNCTIONS + _declared.CUDA_FUNCTIONS * device
    for result, name, arguments in re.findall(r"([\w ]+[ *])(\w+)\(([^)]*)\);", declared):
        real = real_name(name, double)
        try:
            function = dll[real]
        except AttributeError:
            raise Error("%s has no %s: it was built without %s" % (
                dll._name, real, "doubles" if double else "floats")) from None
        pointer = ctypes.c_char_p if "char" in result else ctypes.c_void_p
        function.restype = (None if result.strip() == "void"
                            else _parameter(result, types, pointer))
        function.argtypes = [_parameter(a, types, ctypes.c_void_p) for a in arguments.split(",")
                             if a.strip() != "void"]
        setattr(lib, name, function)
    _check_layout(dll, real_name("nearfield_sizes", double), lib, types)
    return lib


def real_name(name: str, double: bool) -> str:
    return name.replace("_", "_f64_", 1) if double else name


def _make_structs(lib: Any, types: dict[str, Any], text: str) -> None:
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", text, re.S):
        fields = {"_fields_": list(_declare(body, types))}
        types[name] = type(name, (ctypes.Structure,), fields)
        setattr(lib, name, types[name])


def _declare(body: str, types: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(name, type) of each field of C declarations, such as "int32_t n; real min[3], max[3];"."""
    for line in re.sub(r"\b(const|struct|unsigned)\b", "", body).split(";"):
        words = line.split(None, 1)
        for declared in words[1].split(",") if words else ():
            name, ctype = declared.strip(), types.get(words[0], _named(words[0]))
            if name.startswith("*"):
                name, ctype = name[1:], ctypes.c_void_p
            for size in reversed(re.findall(r"\[(\w+)\]", name)):
                of_both = _declared.CONSTANTS.get(size)
                double = types["real"] is ctypes.c_double
                ctype = ctype * (of_both[double] if of_both else int(size))
            yield name.split("[")[0], ctype


def _parameter(text: str, types: dict[str, Any], pointer: Any) -> Any:
    word = text.replace("const", "").split()[0]
    return pointer if "*" in text or "[" in text else types.get(word, _named(word))


def _named(word: str) -> Any:
    """Types that follow from their name: ugrid_block, ugrid_allocator, ugrid_parallel,
    nbody_function; all others are enums."""
    if word.endswith("_allocator"):
        return _Allocator
    if word.endswith("_parallel"):
        return _Parallel
    if word.endswith("_function"):
        return _Function
    return _Block if word.endswith("_block") else ctypes.c_int


def _check_layout(dll: ctypes.CDLL, name: str, lib: Any, types: dict[str, Any]) -> None:
    """A library of other headers has other structs: better no call than a wrong one."""
    if lib.ugrid_version() != _declared.VERSION_NUMBER:
        raise Error("%s is of version %d, this package of %d (10000 * major + 100 * minor + patch)"
                    % (dll._name, lib.ugrid_version(), _declared.VERSION_NUMBER))
    names = re.findall(r"struct (\w+) \{", _declared.STRUCTS)
    ours = [ctypes.sizeof(types[struct]) for struct in names]
    theirs = list((ctypes.c_int32 * len(ours)).in_dll(dll, name))
    if ours != theirs:
        raise Error("%s was built from other headers: its structs have %s bytes, not %s"
                    % (dll._name, theirs, ours))


def result_text(lib: Any, header: str, result: int) -> str:
    text: bytes = getattr(lib, header + "_result_text")(result)
    return text.decode()


def raise_for(lib: Any, header: str, result: int, state: Any) -> None:
    """Nothing, if all is well; else an Error with the header's text and the fields it names."""
    if result == 0:
        return
    text = result_text(lib, header, result)
    named = re.findall(r"(?:grid|tree|list|sim)\.(\w+)", text)
    values = ["%s = %s" % (name, getattr(state, name)) for name in named if hasattr(state, name)]
    raise Error("%s.h: %s%s" % (header, text, " [%s]" % ", ".join(values) if values else ""))
