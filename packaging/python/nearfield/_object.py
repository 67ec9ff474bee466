"""What Grid, Tree, List and NBody share: a struct of the headers, its desc and their memory.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import ctypes
import functools
import weakref
from typing import Any, Callable, TypeVar

import numpy as np

from ._arrays import (Array, DeviceArray, DeviceBlock, DeviceMemory, HostMemory, address_of,
                      box_corners, count_of, cut, device_rows, dtype_of, host_array, is_on_gpu,
                      order_streams, refuse_two_lengths, set_field, set_parallel, size_of,
                      stream_handle, threads_of, tight)
from ._binding import ARRAYS, Error, desc_copy, desc_fields, library, raise_for


# ---- one object, several threads -----------------------------------------------------------------

_Method = TypeVar("_Method", bound=Callable[..., Any])


def searching(method: _Method) -> _Method:
    """A method that reads what was built: any number of threads at once, but none while another
    one builds. Each side first says that it is there, and then looks for the other (appending to a
    list is atomic): so at least one of the two sees both, and raises."""
    name = method.__name__.lstrip("_")

    @functools.wraps(method)
    def guarded(self: Any, *arguments: Any, **keywords: Any) -> Any:
        readers = self._readers
        readers.append(None)
        try:
            if self._writers or self._lib is None:
                self._built()
                raise RuntimeError("%s: %s while another thread builds it" % (
                    type(self).__name__, name))
            return method(self, *arguments, **keywords)
        finally:
            readers.pop()

    return guarded  # type: ignore[return-value]


def changing(method: _Method) -> _Method:
    """A method that builds, or changes what was built: one thread alone."""
    name = method.__name__

    @functools.wraps(method)
    def guarded(self: Any, *arguments: Any, **keywords: Any) -> Any:
        self._writers.append(None)
        try:
            if self._readers or len(self._writers) > 1:
                raise RuntimeError("%s: %s while another thread uses it" % (
                    type(self).__name__, name))
            return method(self, *arguments, **keywords)
        finally:
            self._writers.pop()

    return guarded  # type: ignore[return-value]


# ---- objects -------------------------------------------------------------------------------------


class Object:
    """An object of a header, on the host or on a GPU."""

    _header = ""        # "ugrid"
    _own_fields: tuple[str, ...] = ()       # keywords besides those of the desc
    _copied: tuple[str, ...] = ()   # arrays that a copy needs, too

    @property
    def _file(self) -> str:
        return self._header.split("_")[0]
    _check_arguments: tuple[Any, ...] = ()

    def __init__(self, stream: Any = None, **fields: Any) -> None:
        n_threads = fields.pop("n_threads", None)
        self._threads = 1 if n_threads is None else threads_of(n_threads)
        self._fields: dict[str, Any] = {}
        self._two_numbers: Any = None       # a box that could be two lengths, too
        self._set_keywords(fields)
        self._stream_object, self._stream = stream, stream_handle(stream) if stream else 0
        self._lib: Any = None
        self._device = False
        self._struct: Any = None
        self._state: Any = None
        self._kept: dict[str, Any] = {}
        self._guesses: dict[str, int] = {}
        self._others: set[int] = set()
        self._readers: list[None] = []      # calls that search now, and that build now
        self._writers: list[None] = []

    def __repr__(self) -> str:
        """What it holds, and its keywords."""
        said = ["nothing was built yet"]
        if self._lib:
            said = ["n=%d" % self.n, "dim=%d" % getattr(self._state.desc, "dim", 2),
                    str(self._lib.dtype), "GPU" if self._device else "CPU"]
        said += ["%s=%r" % item for item in self._fields.items() if np.ndim(item[1]) == 0]
        return "<nearfield.%s: %s>" % (type(self).__name__, ", ".join(said))

    def _set_keywords(self, fields: dict[str, Any]) -> None:
        """Takes keywords, new ones in place of old ones; box is min and max."""
        box = fields.pop("box", None)
        if box is not None:
            if fields.get("min") is not None or fields.get("max") is not None:
                raise ValueError("box is min and max: give one of both")
            fields["min"], fields["max"] = box_corners(box)
        known = desc_fields(self._header, self._own_fields)
        if not fields.keys() <= known:
            kind = type(self).__name__
            raise TypeError("%s has no field %r: see help(nearfield.%s), and the desc in %s.h" % (
                kind, min(fields.keys() - known), kind, self._file))
        if "min" in fields or "max" in fields:
            self._two_numbers = box
        for name, value in fields.items():
            if value is not None:
                self._fields[name] = value
            else:
                self._fields.pop(name, None)

    @property
    def n(self) -> int:
        """Particles (elements, bodies) of the last build."""
        return int(self._state.n) if self._lib else 0

    @property
    def desc(self) -> Any:
        """A copy of the desc of the last build, with its defaults filled in: ``grid.desc.cell``.
        Read only; the fields that hold numbers, and enums as words."""
        self._built()
        return desc_copy(self._state.desc, self._header)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the object holds."""
        return self._memory.nbytes() if self._lib else 0

    @searching
    def validate(self) -> None:
        """Raise an Error if the structure is damaged. For tests; not on a GPU (to_host first)."""
        self._on_host("validate")
        self._call("validate")

    def check(self) -> None:
        """GPU: wait, and raise an Error for bad numbers that the last build met. (The CPU's builds
        do it themselves.)"""
        if self._lib and self._device:
            self._call("check", *self._check_arguments)

    @searching
    def to_host(self) -> Any:
        """GPU: a copy of this object on the CPU."""
        host = type(self).__new__(type(self))
        vars(host).update(vars(self), _stream=0, _stream_object=None, _kept={}, _guesses={},
                          _others=set(), _readers=[], _writers=[], _grid=None, _tree=None)
        host._settle(self._lib.dtype, False, self._host_memory)
        host._state.desc.allocator = self._host_memory.allocator
        download = getattr(self._lib, self._header + "_cuda_download")
        raise_for(self._lib, self._file, download(
            ctypes.byref(host._struct), ctypes.byref(self._struct), self._stream), self._state)
        return host

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles have memory of their own."""
        return self._copy_of() if self._lib else self._facts()

    @searching
    def _copy_of(self) -> Any:
        return self._facts()

    def _facts(self) -> Any:
        self._on_host("copy, deepcopy and pickle")
        facts = {name: None if isinstance(value, Object) else value
                 for name, value in vars(self).items() if name not in _OF_THE_LIBRARY}
        facts["_fields"], facts["_guesses"] = dict(self._fields), {}
        facts["_kept"] = {name: kept for name, kept in self._kept.items() if name in self._copied}
        return _restore, (type(self), facts, self._lib.dtype if self._lib else None,
                          self._content() if self._lib else None)

    def _content(self) -> Any:
        """From which _take makes the same object."""
        raise NotImplementedError

    def _take(self, content: Any) -> None:
        raise NotImplementedError

    # -- below: for the classes of this package

    def _settle(self, dtype: Any, device: bool, host_memory: HostMemory | None = None) -> None:
        """The first array decides on precision and place."""
        lib = self._lib = library(dtype, device)
        self._device = device
        self._prefix = self._header + ("_cuda_" if device else "_")
        self._struct = getattr(lib, self._header + "_cuda" * device)()
        self._state = self._struct.device if device else self._struct
        self._host_memory = host_memory or HostMemory(lib)  # GPU: for copies on the host
        self._memory: Any = self._device_memory() if device else self._host_memory
        free = getattr(lib, self._header + "_cuda" * device + "_free")
        if device:      # at exit, too, while there is CUDA
            weakref.finalize(self, _release, free, self._struct, self._memory)
        else:
            self._owner = _Owner(free, self._struct, self._memory)

    def _device_memory(self) -> DeviceMemory:
        return DeviceMemory(self._lib, self._stream_object)

    def _rows(self, values: Any, width: int) -> tuple[Any, int, int]:
        """(array, its rows, bytes from one to the next) of rows of `width` numbers, with as few
        copies as possible."""
        device = is_on_gpu(values)
        if not self._lib:
            self._settle(dtype_of(values), device)
        if device != self._device:
            raise ValueError("this object lives on the %s, that array does not" % (
                "GPU" if self._device else "CPU"))
        if device:
            borrowed: tuple[Any, int, int] = device_rows(self, values, width)
            return borrowed
        array = host_array("array", values, self._lib.dtype)
        if array.shape == (0,):
            array = array.reshape(0, width)
        if array.ndim != 2 or array.shape[1] != width:
            raise ValueError("expected an array of shape (n, %d), not %s" % (width, array.shape))
        size, (apart, step) = array.itemsize, array.strides
        if not (array.flags.aligned and step == size and apart >= size * width
                and apart % size == 0):
            array = tight(array)
        return array, count_of(len(array)), array.strides[0] if len(array) > 1 else 0

    def _vector(self, values: Any, count: int, dtype: Any, name: str, width: int = 1) -> Any:
        """`width` numbers for each of `count` elements, tightly packed."""
        array: Any
        if self._device:
            array = device_rows(self, values, None if width == 1 else width, dtype)[0]
        else:
            array = tight(host_array(name, values, dtype))
        if array.shape[:1] != (count,) or np.prod(array.shape[1:]) != width:
            shape = (count, width) if width > 1 else (count,)
            raise ValueError("%s: expected %d numbers, of shape %s, not %s"
                             % (name, count * width, shape, array.shape))
        return array

    def _new_desc(self, dim: int) -> Any:
        """The desc struct that the keywords ask for."""
        desc = getattr(self._lib, self._header + "_desc")()
        if dim:
            desc.dim = dim
            if self._fields.get("dim", dim) != dim:
                raise ValueError("dim=%r, but points have %d columns" % (self._fields["dim"], dim))
            if dim == 2 and self._two_numbers is not None:
                refuse_two_lengths(self._two_numbers)
        for name, value in self._fields.items():
            if name in ARRAYS or name in self._own_fields:
                continue
            if type(value) is float and type(getattr(desc, name)) is float:
                setattr(desc, name, value)
            else:
                set_field(desc, self._header, name, value)
        desc.allocator = self._host_memory.allocator
        if self._device:
            desc.cuda_allocator = self._memory.allocator
        elif self._threads > 1:
            set_parallel(self._lib, desc.parallel, self._threads)
        return desc

    def _set_array(self, desc: Any, name: str, count: int, width: int = 1) -> None:
        """A field that points to `width` numbers for each of `count` elements; borrowed, so it is
        kept."""
        if self._fields.get(name) is not None:
            dtype = ARRAYS[name] or self._lib.dtype
            self._kept[name] = self._vector(self._fields[name], count, dtype, name, width)
            setattr(desc, name, address_of(self._kept[name]))

    def _try(self, name: str, *arguments: Any) -> int:
        queue = (self._stream,) if self._device else ()
        function = getattr(self._lib, self._prefix + name)
        try:
            result: int = function(ctypes.byref(self._struct), *arguments, *queue)
        except ctypes.ArgumentError as error:
            raise TypeError("%s: expected a number (%s)" % (name, error)) from None
        # arrays of other streams may be given back there when this call is done, and not before
        while self._others:
            order_streams(self._lib, self._stream, self._others.pop())
        return result

    def _call(self, name: str, *arguments: Any) -> None:
        """ugrid_NAME(this object, ...), ugrid_cuda_NAME with the stream behind; a refusal becomes
        an Error."""
        if self._lib is None:
            self._built()
        result = self._try(name, *arguments)
        if result:
            raise_for(self._lib, self._file, result, self._state)

    def _built(self) -> None:
        if self._lib is None:
            raise Error("%s: nothing was built yet" % type(self).__name__)

    def _empty(self, shape: Any, dtype: Any) -> Any:
        """A new array, where this object lives."""
        self._built()
        if self._device:
            block = DeviceBlock(self._lib, self._stream_object, size_of(shape, dtype))
            return DeviceArray(block, 0, shape, dtype)
        return np.empty(shape, dtype)

    def _list(self, name: str, rows: int, *arguments: Any) -> tuple[Any, Any]:
        """(offsets, ids) of a search: the list that it fills (CSR). Searches again where the room
        was guessed too small."""
        offsets = self._empty(rows + 1, np.int64)
        capacity = self._guesses.get(name, 0) + 16 * rows
        while True:
            ids, needed = self._empty(capacity, np.int32), ctypes.c_int64(0)
            told = () if self._device else (ctypes.byref(needed),)
            places = (address_of(offsets), address_of(ids), capacity)
            result = self._try(name, *(arguments + places + told))
            if needed.value <= capacity:    # else it did not fit, and that is all
                raise_for(self._lib, self._file, result, self._state)
            total = int(offsets[-1]) if self._device else needed.value
            if total <= capacity:
                self.check()
                self._guesses[name] = total + total // 16
                return offsets, cut(ids, total)
            capacity = total

    @searching
    def _search_for(self, call: Callable[[], None]) -> None:
        """A call of another object's that reads this one."""
        call()

    def _look(self, address: int | None, shape: Any, dtype: Any, writeable: bool = False) -> Any:
        """A view of the object's own memory, on the CPU read only: the library believes it."""
        if not address:
            return self._empty(shape, dtype)[:0]
        return self._memory.view(address, shape, np.dtype(dtype), writeable)

    def _bytes(self) -> bytes:
        """What HEADER_save writes."""
        needed = ctypes.c_int64()
        self._try("save", None, 0, ctypes.byref(needed))
        data = np.empty(needed.value, np.uint8)
        self._call("save", address_of(data), len(data), ctypes.byref(needed))
        return data.tobytes()

    def _on_host(self, what: str) -> None:
        if self._lib and self._device:
            raise Error("%s works on the CPU only: to_host() first" % what)


class Saved(Object):
    """What can be saved as bytes."""

    _told: tuple[str, ...] = ()     # fields of the desc that `load` compares

    @searching
    def save(self) -> bytes:
        """Bytes from which `load` makes the same object, for checkpoints: for the same version,
        precision and byte order. They are checked by `load`. Of a tree they hold the boxes, not
        the elements: a loaded one is of boxes, without rays and closest points (a pickle has
        them)."""
        self._on_host("save")
        return self._bytes()

    @changing
    def load(self, data: bytes, dim: int = 3, dtype: Any = np.float64) -> Any:
        """The way back, into an object that was made with the same keywords: others of which the
        bytes tell (periodic axes with their box, the filters of a grid, half and history of a
        list) are an Error. dim, dtype: those of the one saved, where this one was not built yet.
        Returns this object."""
        self._load(data, dim, dtype)
        return self

    def _load(self, data: bytes, dim: int, dtype: Any) -> None:
        self._on_host("load")
        new = self._lib is None
        if new:
            self._settle(np.dtype(dtype), False)
        asked = self._new_desc(self._state.desc.dim or dim)
        try:
            self._call("load", ctypes.byref(asked), data, len(data))
            self._refuse_other(asked)
        except Error:
            real = self._lib.dtype
            if new:
                self._lib = None
            other = np.dtype(np.float32 if real == np.float64 else np.float64)
            if self._would_load(data, dim, other):
                raise Error("these bytes are of %s, not %s: %s" % (other, real, (
                    "load(data, dtype=%r)" % other.name if new else
                    "load them into an object of that precision"))) from None
            raise

    def _refuse_other(self, asked: Any) -> None:
        """What is loaded, beside what the keywords ask for."""
        dim = self._state.desc.dim
        there, ours = (_told_by(desc, self._told, dim) for desc in (self._state.desc, asked))
        differ = ["%s=%r" % item for item in there.items() if ours[item[0]] != item[1]]
        if differ:
            getattr(self._lib, self._header + "_free")(ctypes.byref(self._struct))
            raise Error("what was saved has other keywords than this object: %s" % (
                ", ".join(differ)))

    def _would_load(self, data: bytes, dim: int, dtype: Any) -> bool:
        other = type(self)()
        other._fields = dict(self._fields)
        other._settle(dtype, False)
        desc = other._new_desc(dim)
        return other._try("load", ctypes.byref(desc), data, len(data)) == 0

    def _content(self) -> Any:
        return Saved.save(self) if self._state.n else None, self._state.desc.dim

    def _take(self, content: Any) -> None:
        if content[0] is not None:
            data, dim = content
            Saved._load(self, data, dim, self._lib.dtype)


def _told_by(desc: Any, names: tuple[str, ...], dim: int) -> dict[str, Any]:
    """These fields; periodic axes with the ends of the box there."""
    told = {name: getattr(desc, name) for name in names}
    if "periodic" in told:
        told["periodic"] = [bool(repeats) for repeats in desc.periodic[:dim]]
        told["box"] = [(desc.min[a], desc.max[a]) for a in range(dim) if desc.periodic[a]]
    return told


# What a copy has of its own.
_OF_THE_LIBRARY = ("_lib", "_struct", "_state", "_memory", "_host_memory", "_owner", "_others",
                   "_stream_object", "_readers", "_writers")


def _restore(kind: Any, facts: dict[str, Any], dtype: Any, content: Any) -> Any:
    """The way back from Object.__reduce_ex__."""
    made = kind.__new__(kind)
    vars(made).update(facts, _stream_object=None, _lib=None, _struct=None, _state=None,
                      _others=set(), _readers=[], _writers=[])
    if dtype is not None:
        made._settle(dtype, False)
        made._take(content)
    return made


class _Owner:
    """Frees the struct when the object is gone: the memory has what free() calls."""

    __slots__ = ("_free", "_struct", "_memory")

    def __init__(self, free: Any, struct: Any, memory: Any) -> None:
        self._free, self._struct, self._memory = free, struct, memory

    def __del__(self, byref: Any = ctypes.byref) -> None:
        self._free(byref(self._struct))


def _release(free: Any, struct: Any, memory: Any) -> None:
    """Called when the object is gone, or at exit. `memory` has the hooks that free() calls."""
    free(ctypes.byref(struct))
