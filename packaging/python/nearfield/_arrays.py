"""Arrays in, arrays out: rows without a copy, refusals that name the row, memory on the GPU.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import ctypes
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _dlpack
from ._binding import CUDA_ALLOC, CUDA_FREE, WORDS, Allocator, Error

Array = npt.NDArray[Any]


# ---- arrays on the GPU ---------------------------------------------------------------------------


class DeviceArray:
    """An array on the GPU, as methods return it for objects that live there.

    ``cupy.asarray(a)``, ``torch.from_dlpack(a)`` and ``jax.dlpack.from_dlpack(a)`` look at the same
    memory, ``a.numpy()`` and ``numpy.from_dlpack(a, device="cpu")`` copy it to the host. All of
    them wait for the stream that fills it; ``torch.as_tensor(a, device="cuda")`` does not: be on
    that stream, or call ``check()`` of the object before.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    address : int
        Of the first element, in the memory of the device.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __init__(self, block: Any, offset: int, shape: Any, dtype: Any) -> None:
        self.shape = shape if isinstance(shape, tuple) else (int(shape),)
        self.dtype = np.dtype(dtype)
        self._block, self._offset = block, offset

    def __len__(self) -> int:
        return int(self.shape[0])

    @property
    def address(self) -> int:
        return int(self._block.address + self._offset)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        base, inner = self.dtype.subdtype or (self.dtype, ())
        return {"shape": self.shape + inner, "typestr": base.str, "descr": base.descr,
                "data": (self.address, False), "strides": None, "version": 3,
                "stream": self._block.stream or 1}

    def __getitem__(self, key: int | slice) -> Any:
        """a[k]: copied to the host; a[k:l]: a view."""
        row = size_of(self.shape[1:], self.dtype)
        if isinstance(key, slice):
            first, last, step = key.indices(len(self))
            if step != 1:
                raise IndexError("steps other than 1: by cupy.asarray(a)")
            return DeviceArray(self._block, self._offset + first * row,
                               (max(last - first, 0),) + self.shape[1:], self.dtype)
        if not -len(self) <= key < len(self):
            raise IndexError(key)
        return self[key % len(self):key % len(self) + 1].numpy()[0]

    def numpy(self) -> Array:
        """A copy on the host; waits for the stream."""
        out = np.empty(self.shape, self.dtype)
        fetch(self._block.lib, out.ctypes.data_as(ctypes.c_void_p), self.address, out.nbytes,
              self._block.stream)
        return out

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self.numpy().astype(dtype or self.dtype.base, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.CUDA, self._block.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Any = None) -> Any:
        """A capsule, as the array API standard has it. `stream`, the borrower's, waits for the one
        that fills the array (-1: it does not). To the CPU's memory the array is copied."""
        device = self.__dlpack_device__()
        wanted = device if dl_device is None else tuple(int(word) for word in dl_device)
        if wanted not in (device, (_dlpack.CPU, 0)):
            raise BufferError("the array is on device %s, not %s" % (device, wanted))
        if wanted != device and copy is False:
            raise BufferError("the array is on a GPU: the CPU's memory gets a copy")
        base, inner = self.dtype.subdtype or (self.dtype, ())
        owner: Any = self._block
        address, shape = self.address, self.shape + inner
        if wanted != device:
            owner = self.numpy()
            address = owner.ctypes.data
        elif copy:
            owner = DeviceBlock(owner.lib, owner._stream_object, size_of(self.shape, self.dtype))
            fetch(owner.lib, ctypes.c_void_p(owner.address), address, owner.size, owner.stream)
            address = owner.address
        if wanted == device and stream != -1 and stream_handle(stream) != self._block.stream:
            order_streams(self._block.lib, self._block.stream, stream_handle(stream))
        return _dlpack.lend(self._block.lib, owner, address, shape, base, wanted,
                            _dlpack.is_versioned(max_version), owner is not self._block)


class DeviceBlock:
    """Memory on the GPU that belongs to a stream. Given back, in the stream's order, when nobody
    looks at it any more."""

    def __init__(self, lib: Any, stream: Any, size: int) -> None:
        self.lib, self._stream_object, self.size = lib, stream, size
        self.stream = stream_handle(stream)
        self.address = lib.nearfield_cuda_alloc(max(size, 1), self.stream)
        if not self.address:
            raise Error("the GPU has no %d bytes left, or there is none" % size)

    @property
    def device(self) -> int:
        return int(self.lib.nearfield_cuda_device(self.address))

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self.lib.nearfield_cuda_free(self.address, self.stream)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("memory on the GPU is neither pickled nor copied: take a.numpy()")


def stream_handle(stream: Any) -> int:
    """cudaStream_t as an int, of CuPy's or torch's streams too. 1 is another name of 0, the legacy
    default stream."""
    for name in ("ptr", "cuda_stream"):
        stream = getattr(stream, name, stream)
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    handle = int(stream or 0)
    return 0 if handle == 1 else handle


def device_rows(user: Any, values: Any, width: int | None, dtype: Any = None) -> Any:
    """As Object._rows, for anything with __cuda_array_interface__; width None: one dimension. What
    it was made on comes first."""
    if not hasattr(values, "__cuda_array_interface__"):
        raise ValueError("this object lives on the GPU, that array does not")
    about, dtype = values.__cuda_array_interface__, np.dtype(dtype or user._lib.dtype)
    shape, size = tuple(about["shape"]), dtype.itemsize
    if np.dtype(about["typestr"]) != dtype:
        raise ValueError("expected an array of %s, not %s" % (dtype, about["typestr"]))
    if shape == (0,) and width is not None:
        shape = (0, width)
    packed = (size,) if width is None else (size * width, size)
    strides = about.get("strides") or packed
    if len(shape) != len(packed) or (width and shape[1] != width):
        raise ValueError("expected an array of shape %s, not %s" % (
            "(n,)" if width is None else "(n, %d)" % width, shape))
    ascending = (strides[-1] == size and strides[0] >= size * (width or 1)
                 and strides[0] % size == 0)
    if shape[0] > 1 and not ascending:
        raise ValueError("rows must ascend in memory, and their numbers be tightly packed")
    stream = stream_handle(about.get("stream") or user._stream)
    if stream != user._stream:
        order_streams(user._lib, stream, user._stream)
        user._others.add(stream)
    borrowed = Borrowed(values, about["data"][0] or 0, shape)
    return borrowed, count_of(shape[0]), strides[0] if shape[0] > 1 else 0


class Borrowed:
    """Somebody's array on the GPU, kept alive."""

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...]) -> None:
        self.owner, self.address, self.shape = owner, address, shape

    def __len__(self) -> int:
        return self.shape[0]


def order_streams(lib: Any, first: int, then: int) -> None:
    """What is called on one stream from now on comes after what was called on another."""
    error = lib.nearfield_cuda_order(first, then)
    if error:
        raise Error("CUDA error %d while one stream waits for another" % error)


def fetch(lib: Any, to: Any, address: Any, size: int, stream: int) -> None:
    to = to if isinstance(to, ctypes.c_void_p) else ctypes.byref(to)
    error = lib.nearfield_cuda_fetch(to, address, size, stream)
    if error:
        raise Error("CUDA error %d while copying to the host" % error)


# ---- memory: what the headers' allocator hooks give ----------------------------------------------


class HostMemory:
    """Blocks of the library (memory.h). A view keeps its block alive."""

    def __init__(self, lib: Any) -> None:
        self._lib, self._struct = lib, lib.nearfield_memory()
        self.allocator = Allocator(*lib.memory_hooks, ctypes.addressof(self._struct))

    def nbytes(self) -> int:
        return int(self._struct.bytes)

    def view(self, address: int, shape: Any, dtype: Any, writeable: bool) -> Array:
        """The array of this shape that begins at that address."""
        rows = shape if isinstance(shape, tuple) else (shape,)
        held = _Held(self._lib, self._struct, address, size_of(shape, dtype), writeable)
        array: Array = np.asarray(held).view(dtype.base).reshape(rows + dtype.shape)
        return array


class _Held:
    """Bytes of a block, which lives as long as this."""

    def __init__(self, lib: Any, memory: Any, address: int, size: int, writeable: bool) -> None:
        self._drop = lib.nearfield_drop
        self._block = lib.nearfield_hold(ctypes.byref(memory), address, size)
        if not self._block:
            raise Error("no block of memory holds that array")
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "version": 3,
                                    "data": (address, not writeable)}

    def __del__(self) -> None:
        if self._block:
            self._drop(self._block)


class DeviceMemory:
    """Blocks by address."""

    def __init__(self, lib: Any, stream: Any) -> None:
        self._lib, self._stream = lib, stream
        self._blocks: dict[int, Any] = {}
        self._hooks = CUDA_ALLOC(self._alloc), CUDA_FREE(self._free)
        self.allocator = Allocator(*(ctypes.cast(hook, ctypes.c_void_p) for hook in self._hooks))

    def _new(self, size: int) -> Any:
        return DeviceBlock(self._lib, self._stream, size)

    def _alloc(self, size: int, stream: Any, user: Any) -> int | None:
        try:
            block = self._new(size)
        except (MemoryError, Error):
            return None
        self._blocks[block.address] = block
        return int(block.address)

    def _free(self, address: int, size: int, stream: Any, user: Any) -> None:
        self._blocks.pop(address, None)

    def nbytes(self) -> int:
        return sum(int(block.size) for block in self._blocks.values())

    def view(self, address: int, shape: Any, dtype: Any, writeable: bool) -> Any:
        """The array of this shape that begins at that address of one of the blocks. (CUDA's arrays
        are not read only: torch would warn of each.)"""
        for start, block in list(self._blocks.items()):
            if start <= address and address + size_of(shape, dtype) <= start + block.size:
                return self._part(block, address - start, shape, dtype)
        raise Error("no block of memory holds that array")

    @staticmethod
    def _part(block: Any, offset: int, shape: Any, dtype: Any) -> Any:
        return DeviceArray(block, offset, shape, dtype)


# ---- small helpers -------------------------------------------------------------------------------


def address_of(array: Any) -> int | None:
    """What a pointer argument gets."""
    if array is None:
        return None
    if type(array) is np.ndarray:
        host: int = array.__array_interface__["data"][0]
        return host
    if isinstance(array, (DeviceArray, Borrowed)):
        return int(array.address)
    if hasattr(array, "__cuda_array_interface__"):
        return int(array.__cuda_array_interface__["data"][0])
    return int(array.ctypes.data)


def size_of(shape: Any, dtype: Any) -> int:
    """Bytes of an array."""
    return int(np.prod(shape, dtype=np.int64)) * int(np.dtype(dtype).itemsize)


def threads_of(n: int | None) -> int:
    """A number of threads; None: 1."""
    if n is None:
        return 1
    if not 1 <= integer("n_threads", n) <= 256:
        raise ValueError("n_threads must be 1 .. 256, not %r" % (n,))
    return int(n)


def number(name: str, value: Any) -> float:
    """A float; texts and arrays are none."""
    if type(value) is float:
        return value
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError("%s: expected a number, not %r" % (name, value)) from None


def integer(name: str, value: Any) -> int:
    """An int that fits into 32 bits; True is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError("%s: expected an integer, not %r" % (name, value))
    number = operator.index(value)
    if not -2**31 <= number < 2**31:
        raise ValueError("%s: %d does not fit into 32 bits" % (name, number))
    return number


def set_parallel(lib: Any, parallel: Any, threads: int) -> None:
    """desc.parallel of a header: tasks on so many threads; 1: serial."""
    parallel.run = ctypes.cast(lib.nearfield_run, ctypes.c_void_p) if threads > 1 else None
    # some pieces for each thread, since they are not of equal cost
    parallel.user, parallel.tasks = threads, 4 * threads


def count_of(n: int) -> int:
    if n >= 2**31 - 1024:
        raise ValueError("more than 2^31 - 1024 elements")
    return n


def cut(array: Any, count: int) -> Any:
    """The first `count` entries, without holding on to far more memory than that."""
    part = array[:count]
    return part.copy() if isinstance(part, np.ndarray) and 2 * count < len(array) else part


def is_on_gpu(values: Any) -> bool:
    return type(values) is not np.ndarray and hasattr(values, "__cuda_array_interface__")


def of_numpy(values: Any) -> Any:
    """Arrays of torch, JAX and others in the memory of the CPU, without a copy, by DLPack."""
    if (type(values) is np.ndarray or not hasattr(values, "__dlpack__") or is_on_gpu(values)
            or isinstance(values, np.ndarray)):
        return values
    try:
        return np.from_dlpack(values)
    except (AttributeError, BufferError, TypeError):    # it may be had as an array all the same
        return values


_FLOAT, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def dtype_of(values: Any) -> np.dtype[Any]:
    """float32 stays, everything else is double."""
    if type(values) is np.ndarray:
        return _FLOAT if values.dtype == _FLOAT else _DOUBLE
    values = of_numpy(values)
    if is_on_gpu(values):
        dtype: np.dtype[Any] = np.dtype(values.__cuda_array_interface__["typestr"])
        if dtype not in (np.float32, np.float64):
            raise ValueError("arrays on the GPU must be float32 or float64, not %s" % dtype)
        return dtype
    return _FLOAT if getattr(values, "dtype", None) == _FLOAT else _DOUBLE


def host_array(name: str, values: Any, dtype: Any) -> Array:
    """An array of that type in the byte order of this machine; other orders are refused."""
    if type(values) is np.ndarray and values.dtype == dtype and values.dtype.isnative:
        return values
    values = of_numpy(values)
    kind = getattr(values, "dtype", None)
    if isinstance(kind, np.dtype) and not kind.isnative:
        raise ValueError("%s: the array has the byte order of another machine (dtype %r); convert "
                         "it by %s.astype(%r)" % (
                             name, kind.str, name, kind.newbyteorder("=").name))
    if isinstance(kind, np.dtype) and kind.kind in "cSUmM":
        raise ValueError("%s: expected real numbers, not an array of dtype %s" % (name, kind))
    refuse_masked(name, values)
    if np.dtype(dtype).kind in "iu":
        return _whole_numbers(name, values, np.dtype(dtype))
    return np.asarray(values, dtype)


def tight(array: Array) -> Array:
    """That array, or a copy: its numbers side by side, and aligned. (ascontiguousarray leaves
    those of np.frombuffer(bytes, offset=1) where they are.)"""
    array = np.ascontiguousarray(array)
    return array if array.flags.aligned else array.copy()


def refuse_masked(name: str, values: Any) -> None:
    """What is masked has no value."""
    if isinstance(values, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(values)
        refuse(name, masked.reshape(len(masked), -1).any(1) if masked.ndim else masked, "is masked")


def _whole_numbers(name: str, values: Any, dtype: np.dtype[Any]) -> Array:
    """Integers as they are: none wraps, and no fraction is cut off."""
    array = np.asarray(values)
    if array.dtype == dtype or array.size == 0:
        return array.astype(dtype, copy=False)
    if array.dtype.kind not in "biuf":
        return np.asarray(values, dtype)
    bounds = np.iinfo(dtype)
    bad = ~((array >= bounds.min) & (array <= bounds.max))
    if array.dtype.kind == "f":
        bad |= array != np.floor(array)
    if bad.any():
        raise ValueError("%s: %s is no %s" % (name, array[bad].flat[0], dtype))
    return array.astype(dtype)


def flags_of(name: str, values: Any) -> Array:
    """Booleans, or 0 and 1; texts are refused, of which bool() would make True."""
    refuse_masked(name, values)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or not ((array == 0) | (array == 1)).all():
        raise ValueError("%s: expected True or False, not %r" % (name, values))
    return array.astype(bool)


def width_of(values: Any, allowed: tuple[int, ...], kind: str = "") -> int:
    """Numbers per row; kind: what the rows are."""
    shape = (values.shape if type(values) is np.ndarray else np.shape(values)
             if not is_on_gpu(values) else values.__cuda_array_interface__["shape"])
    if len(shape) == 2 and shape[1] in allowed:
        return int(shape[1])
    if len(shape) == 1 and shape[0] == 0:
        return allowed[-1]
    raise ValueError("expected an array of shape %s%s, not %s" % (
        " or ".join("(n, %d)" % w for w in allowed), kind and " for kind=%r" % kind, tuple(shape)))


def box_corners(box: Any) -> tuple[Any, Any]:
    """(lower, upper) of a box, each a number or one per axis."""
    try:
        lower, upper = box
    except (TypeError, ValueError):
        lower = upper = ""
    if isinstance(lower, str) or isinstance(upper, str):
        raise ValueError("box: expected (lower, upper), each a number or one per axis, not %r"
                         % (box,))
    return lower, upper


def refuse_two_lengths(box: Any) -> None:
    """In the plane two positive numbers may be meant as two lengths."""
    lower, upper = box_corners(box)
    if np.ndim(lower) == 0 and np.ndim(upper) == 0 and lower > 0:
        raise ValueError("box=%r: two lengths, or two corners? Lengths: box=(0, [%s, %s]); "
                         "corners: box=([%s, %s], [%s, %s])" % (
                             (box,) + (lower, upper) + 2 * (lower,) + 2 * (upper,)))


def flat_corners(values: Array, corners: int) -> Array:
    """(n, corners, dim) as (n, corners * dim); 0: such elements have no corners."""
    n, given, dim = values.shape
    if not corners:
        raise ValueError("expected an array of two dimensions, not of shape %s" % (values.shape,))
    if given != corners or dim not in (2, 3):
        raise ValueError("expected an array of shape (n, %d, 2) or (n, %d, 3), not %s" % (
            corners, corners, values.shape))
    return values.reshape(n, corners * dim)


def refuse(name: str, bad: Any, why: str) -> None:
    """A ValueError that names the first bad row."""
    if bad.any():
        raise ValueError("%s: row %d %s" % (name, np.flatnonzero(bad)[0], why))


def refuse_not_finite(name: str, values: Any) -> None:
    """On a GPU the headers' own rule holds: nothing is near such a point."""
    if isinstance(values, np.ndarray):
        refuse(name, ~np.isfinite(values).all(axis=1), "is NaN or infinite")


def refuse_bad_queries(values: Any, kind: str) -> None:
    """Boxes may be infinite, and spheres as large."""
    if not isinstance(values, np.ndarray):
        return
    if kind == "points":
        refuse_not_finite("points", values)
        return
    refuse("queries", np.isnan(values).any(axis=1), "is NaN")
    if kind == "spheres":
        refuse("queries", values[:, -1] < 0, "has a negative radius")


def index_pairs(values: Any) -> Array:
    pairs = host_array("exclude", values, np.int32)
    if pairs.shape != (0,) and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise ValueError("exclude: expected an array of shape (m, 2), not %s" % (pairs.shape,))
    return pairs.reshape(-1, 2)


def pairs_of(offsets: Array, ids: Array) -> Array:
    first = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    return np.stack([np.minimum(first, ids), np.maximum(first, ids)], axis=1)


def set_field(struct: Any, header: str, name: str, value: Any) -> None:
    """A field of a desc: a number, a word of an enum, or as many numbers as it holds."""
    if isinstance(value, str):
        words = WORDS.get((header, name))
        if not words or value not in words:
            raise ValueError("%s=%r: expected %s" % (
                name, value, "one of " + " ".join(words) if words else "a number"))
        setattr(struct, name, words[value])
        return
    field = getattr(struct, name)
    if not isinstance(field, ctypes.Array):
        try:
            setattr(struct, name, value)
        except TypeError as error:
            raise TypeError("%s=%r: %s" % (name, value, error)) from None
        if isinstance(getattr(struct, name), int) and getattr(struct, name) != value:
            raise ValueError("%s=%r does not fit into this field" % (name, value))
        return
    room = min(len(field), struct.dim) if hasattr(struct, "dim") else len(field)
    plain = [value] * room if isinstance(value, (int, float)) else value
    if type(plain) in (list, tuple) and len(plain) == room:
        try:
            field[:room] = plain
            return
        except TypeError:       # numbers of NumPy, and what is none
            pass
    if np.ndim(value) and len(value) != room:
        raise ValueError("%s: expected one number, or %d" % (name, room))
    field[:room] = np.broadcast_to(value, room).tolist()
