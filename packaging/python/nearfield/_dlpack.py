"""Arrays on the GPU, lent to other packages by DLPack (https://dmlc.github.io/dlpack).

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

CPU, CUDA = 1, 2                            # DLDeviceType
_CODES = {"i": 0, "u": 1, "f": 2}           # DLDataTypeCode
_NAMES = b"dltensor", b"dltensor_versioned"
for _name in _NAMES:                        # a capsule has its address, also when Python ends
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_name))
_COPIED = 2                                 # DLPACK_FLAG_BITMASK_IS_COPIED


@functools.lru_cache(maxsize=None)
def _python() -> Any:
    """A nearfield_python (library/dlpack.h): addresses of Python's own functions."""
    api = ctypes.pythonapi
    functions = (api.Py_IsInitialized, api.PyGILState_Ensure, api.PyGILState_Release,
                 api.Py_DecRef, api.PyCapsule_IsValid, api.PyCapsule_GetPointer)
    return (ctypes.c_void_p * len(functions))(
        *(ctypes.cast(function, ctypes.c_void_p) for function in functions))


@functools.lru_cache(maxsize=None)
def _capsule_new() -> Any:
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(("PyCapsule_New", ctypes.pythonapi))


def lend(lib: Any, owner: Any, address: int, shape: tuple[int, ...], dtype: np.dtype[Any],
         device: tuple[int, int], versioned: bool, copied: bool) -> Any:
    """A capsule of a packed array; `owner` lives until the borrower is done."""
    if dtype.kind not in _CODES or not dtype.isnative:
        raise BufferError("DLPack has no elements of %s" % dtype)
    lengths = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    tensor = lib.nearfield_lend(
        ctypes.addressof(_python()), id(owner), address, ctypes.addressof(lengths), len(shape),
        _CODES[dtype.kind], 8 * dtype.itemsize, *device, int(versioned), _COPIED * copied)
    if not tensor:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(owner))
        raise BufferError("no memory, or an array of more than 8 axes")
    return _capsule_new()(tensor, _NAMES[versioned],
                          ctypes.cast(lib.nearfield_untaken, ctypes.c_void_p))


def is_versioned(max_version: Any) -> bool:
    """Whether the borrower understands version 1."""
    return max_version is not None and tuple(max_version) >= (1, 0)
