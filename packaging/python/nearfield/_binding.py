"""The shared library: where it is, its structs and functions, what its results mean.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import collections
import ctypes
import functools
import importlib.util
import os
import re
from typing import Any

import numpy as np

from . import _declared


class Error(RuntimeError):
    """What a call of the headers refused, and why, in the header's own words."""


class Allocator(ctypes.Structure):
    _fields_ = [("alloc", ctypes.c_void_p), ("free", ctypes.c_void_p), ("user", ctypes.c_void_p)]


class _Parallel(ctypes.Structure):
    _fields_ = [("run", ctypes.c_void_p), ("user", ctypes.c_void_p), ("tasks", ctypes.c_int32)]


class _Function(ctypes.Structure):
    _fields_ = [("force", ctypes.c_void_p), ("potential", ctypes.c_void_p),
                ("user", ctypes.c_void_p)]


class _Block(ctypes.Structure):
    _fields_ = [("memory", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


CUDA_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)
CUDA_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
                             ctypes.c_void_p)

# The words of _declared.py; `real` and structs come with a library.
_TYPES: dict[str, Any] = {
    "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64, "uint8_t": ctypes.c_uint8,
    "double": ctypes.c_double, "size_t": ctypes.c_size_t, "void": None, "enum": ctypes.c_int,
    "pointer": ctypes.c_void_p, "text": ctypes.c_char_p, "allocator": Allocator,
    "parallel": _Parallel, "function": _Function, "block": _Block}

# Enums, in their order; fields that point to arrays, and of what (None: the real type).
OPTIONS = {
    "ugrid.method": "auto count sort fixed list list_packed", "ugrid.placement": "loose tight",
    "ugrid.walk": "auto cells strips modular hybrid", "ugrid.cell_order": "rows morton",
    "ugrid.slot_layout": "by_column by_row",
    "lbvh.kind": "boxes points spheres triangles", "lbvh.builder": "merge split ploc",
    "lbvh_world.state": "moving sleeping fixed",
    "nbody.method": "auto direct virtual_particles force_nodes",
    "nbody.law": "inverse_square inverse", "nbody.sources": "auto mass_centres chebyshev",
    "nbody.stage": "fast one_thread many_threads shared_memory",
    "nbody.integrator": "leapfrog euler"}
WORDS = {tuple(name.split(".")): {word: value for value, word in enumerate(words.split())}
         for name, words in OPTIONS.items()}
ARRAYS: dict[str, Any] = {"radii": None, "masks": np.uint32, "indices": np.int32,
                          "sets": np.uint8}

_path: str | None = None


def load_library(path: str | os.PathLike[str]) -> None:
    """Take this library from now on. It is opened at once; where it cannot be used, that is an
    Error, and the one before stays. (What was saved is read by ``Grid.load`` and its like.)

    Parameters
    ----------
    path : str or PathLike
        A ``libnearfield.so``, or a ``libnearfield_cuda.so`` with its ``libnearfield64_cuda.so``
        beside it. Without this call the library beside this package is taken, or that named by
        the environment variable ``NEARFIELD_LIBRARY``.
    """
    global _path
    place = os.path.abspath(os.fspath(path))
    _open(place, np.dtype(np.float32), False)
    _path = place
    library.cache_clear()


def _names(device: bool) -> list[str]:
    end = ".dll" if os.name == "nt" else ".so"
    cuda = "libnearfield_cuda" + end
    return [cuda] if device else ["libnearfield" + end, cuda]


def _places(device: bool) -> list[str]:
    """Beside this package, and for the GPU's half in the package of the wheel nearfield-cuda."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, name) for name in _names(device)]
    spec = importlib.util.find_spec("nearfield_cuda") if device else None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        places += [os.path.join(folder, name) for name in _names(device)]
    return places


def find(dtype: Any, device: bool) -> str:
    """The file to load. For doubles CUDA has a library of its own, libnearfield64_cuda.so."""
    given = _path or os.environ.get("NEARFIELD_LIBRARY")
    for place in [given] if given else _places(device):
        if dtype == np.float64:
            folder, name = os.path.split(place)
            place = os.path.join(folder, name.replace("nearfield_", "nearfield64_"))
        if os.path.exists(place):
            return place
    raise Error("no %s beside the package: %s" % (
        _names(device)[0],
        "install the wheel nearfield-cuda (make wheel-cuda), or make shared-cuda and "
        "nearfield.load_library(path)"
        if device else "pip install ., or make shared, or nearfield.load_library(path)"))


@functools.lru_cache(maxsize=None)
def declared_desc(header: str) -> Any:
    """The desc struct of a header, in doubles: known without a library."""
    return _structs(True, _declared.STRUCTS)[header + "_desc"]


@functools.lru_cache(maxsize=None)
def desc_fields(header: str, more: tuple[str, ...] = ()) -> frozenset[str]:
    """Their names, but for those that say where memory is, which are none of Python's."""
    return frozenset(name for name, kind in declared_desc(header)._fields_
                     if name in ARRAYS or not (kind in (ctypes.c_void_p, Allocator) or
                                               name.endswith("_stride"))).union(more)


@functools.lru_cache(maxsize=None)
def _copy_type(struct: Any, header: str) -> Any:
    """A named tuple of the fields that hold numbers, and the words of those that are enums."""
    names = [name for name, kind in struct._fields_
             if kind is not ctypes.c_void_p and not issubclass(kind, ctypes.Structure)]
    words = {name: OPTIONS["%s.%s" % (header, name)].split() for name in names
             if "%s.%s" % (header, name) in OPTIONS}
    return collections.namedtuple(header + "_desc", names), words


def desc_copy(desc: Any, header: str) -> Any:
    """What a desc struct holds now, as a named tuple."""
    kind, words = _copy_type(desc.__class__, header)
    values = []
    for name in kind._fields:
        value = getattr(desc, name)
        if name in words and 0 <= value < len(words[name]):
            value = words[name][value]
        values.append(tuple(value) if isinstance(value, ctypes.Array) else value)
    return kind(*values)


@functools.lru_cache(maxsize=None)
def library(dtype: Any, device: bool) -> Any:
    """One precision's half of the library: structs and functions by their names in the headers."""
    return _open(find(dtype, device), dtype, device)


def _open(path: str, dtype: Any, device: bool) -> Any:
    try:
        dll = ctypes.CDLL(path)
    except OSError as error:
        raise Error("%s is no library that can be loaded: %s" % (path, error)) from None
    double = dtype == np.float64
    structs = dict(_declared.STRUCTS, **(_declared.CUDA_STRUCTS if device else {}))
    functions = dict(_declared.FUNCTIONS, **(_declared.CUDA_FUNCTIONS if device else {}))
    types = _structs(double, structs)
    lib: Any = type("Library", (), dict({name: types[name] for name in structs}, dtype=dtype))()
    for name, (result, arguments) in functions.items():
        real = real_name(name, double)
        try:
            function = dll[real]
        except AttributeError:
            raise Error("%s has no %s: it is of another version, or was built without %s" % (
                dll._name, real, "doubles" if double else "floats")) from None
        function.restype = types[result]
        function.argtypes = [types[argument] for argument in arguments]
        setattr(lib, name, function)
    for name in ("nearfield_untaken", "nearfield_jax_pairs"):    # called by others, by address
        setattr(lib, name, dll[real_name(name, double)])
    lib.memory_hooks = tuple(ctypes.cast(hook, ctypes.c_void_p).value
                             for hook in (lib.nearfield_alloc, lib.nearfield_free))
    _check_layout(dll, real_name("nearfield_sizes", double), lib, types)
    return lib


def real_name(name: str, double: bool) -> str:
    return name.replace("_", "_f64_", 1) if double else name


def _structs(double: bool, declared: Any) -> dict[str, Any]:
    """All types by name."""
    types = dict(_TYPES, real=ctypes.c_double if double else ctypes.c_float)
    for struct, members in declared.items():
        fields = []
        for name, word, lengths in members:
            ctype = types[word]
            for length in reversed(lengths):
                ctype = ctype * (length[double] if isinstance(length, tuple) else length)
            fields.append((name, ctype))
        types[struct] = type(struct, (ctypes.Structure,), {"_fields_": fields})
    return types


def _check_layout(dll: ctypes.CDLL, name: str, lib: Any, types: dict[str, Any]) -> None:
    """A library of other headers has other structs: better no call than a wrong one."""
    if lib.ugrid_version() != _declared.VERSION_NUMBER:
        raise Error("%s is of version %d, this package of %d (10000 * major + 100 * minor + patch)"
                    % (dll._name, lib.ugrid_version(), _declared.VERSION_NUMBER))
    ours = [ctypes.sizeof(types[struct]) for struct in _declared.STRUCTS]
    theirs = list((ctypes.c_int32 * len(ours)).in_dll(dll, name))
    if ours != theirs:
        raise Error("%s was built from other headers: its structs have %s bytes, not %s"
                    % (dll._name, theirs, ours))


def result_text(lib: Any, header: str, result: int) -> str:
    text: bytes = getattr(lib, header + "_result_text")(result)
    return text.decode()


def python_names(text: str) -> str:
    """A text of the headers, with what Python calls things: desc.cell is cell."""
    for name, here in _HERE:
        text = name.sub(here, text)
    return text


_HERE = [(re.compile(name), here) for name, here in (
    (r"\bdesc\.min\b", "lower corner of box"), (r"\bdesc\.max\b", "upper corner of box"),
    (r"\b(?:grid|tree|list|sim)\.bad_id\b", "row"),
    (r"\bdesc\.radius, queries\.radius\b", "radius"),
    (r"\b(?:grid|tree|list|sim|desc|queries|how|arrays)\.(?=\w)", ""),
    (r"\b(?:ugrid|lbvh|nlist|nbody)_([a-z])", r"\1"))]


def raise_for(lib: Any, header: str, result: int, state: Any) -> None:
    """Nothing, if all is well; else an Error with the header's text and the fields it names."""
    if result == 0:
        return
    text = result_text(lib, header, result)
    named = re.findall(r"(?:grid|tree|list|sim)\.(\w+)", text)
    values = ["%s = %s" % ("row" if name == "bad_id" else name, getattr(state, name))
              for name in named if hasattr(state, name)]
    raise Error("%s.h: %s%s" % (header, python_names(text),
                                " [%s]" % ", ".join(values) if values else ""))
