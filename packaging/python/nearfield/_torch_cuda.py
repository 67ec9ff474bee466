"""Pairs on the GPU, for nearfield.torch: on the current stream, in memory of torch's allocator.

SPDX-License-Identifier: MIT OR Unlicense

Searches are kept from one call to the next, with their memory: at most 8 of at most 32 MiB each, of
which every one belongs to a device, a stream and a precision. A call takes one that nobody uses, so
that threads do not meet. The memory is of the caching allocator and used on one stream only, which
is the allocator's own rule; `release` gives it back.
"""
from __future__ import annotations

import ctypes
import threading
from typing import Any, Iterator, NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor

from ._arrays import DeviceMemory, address_of, size_of
from ._binding import Error, library, python_names, result_text
from ._boxes_cuda import DeviceBoxes
from ._objects import Tree

_KEPT, _KEPT_BYTES, _GUESSES = 8, 32 << 20, 64


class Pairs(NamedTuple):
    i: Tensor                   # (m,) int64
    j: Tensor
    shift: Optional[Tensor]     # (m, 3) int32; None: all are 0
    edges: Optional[Tensor]     # i and j are its rows


# ---- memory --------------------------------------------------------------------------------------


class _Memory(DeviceMemory):
    """Blocks are tensors, and so are views."""

    def __init__(self, lib: Any, device: torch.device) -> None:
        super().__init__(lib, None)
        self._device = device
        self.bound: Optional[int] = None        # bytes of a block

    def _new(self, size: int) -> _Block:
        if self.bound is not None and size > self.bound:
            raise MemoryError("a block is larger than it may be")
        try:
            return _Block(size, self._device)
        except RuntimeError as error:       # torch.OutOfMemoryError is one
            raise MemoryError(str(error)) from None

    @staticmethod
    def _part(block: Any, offset: int, shape: Any, dtype: Any) -> Any:
        kind = {np.dtype(np.int64): torch.int64, np.dtype(np.int32): torch.int32}[dtype]
        return block.tensor[offset:offset + size_of(shape, dtype)].view(kind)


class _Block:
    def __init__(self, size: int, device: torch.device) -> None:
        self.tensor = torch.empty(max(size, 1), dtype=torch.uint8, device=device)
        self.address, self.size = self.tensor.data_ptr(), max(size, 1)


class _Given:
    """A tensor, as the classes of this package read arrays."""

    def __init__(self, tensor: Tensor, typestr: str) -> None:
        self.tensor = tensor
        self.__cuda_array_interface__ = {
            "shape": tuple(tensor.shape), "typestr": typestr, "strides": None, "version": 3,
            "data": (tensor.data_ptr(), False)}


class _Search(DeviceBoxes):
    """On one stream of one device."""

    def __init__(self, device: torch.device, stream: Any) -> None:
        super().__init__(stream)
        self._place = device

    def _device_memory(self) -> DeviceMemory:
        return _Memory(self._lib, self._place)

    def _look(self, address: int | None, shape: Any, dtype: Any, writeable: bool = True) -> Any:
        if address:
            return self._memory.view(address, shape, np.dtype(dtype), writeable)
        kind = torch.int64 if dtype == np.int64 else torch.int32
        return torch.zeros(shape, dtype=kind, device=self._place)


# ---- searches that are kept ----------------------------------------------------------------------


_lock = threading.Lock()
_kept: list[tuple[Any, _Search]] = []       # the last one was used last
_per_point: dict[Any, float] = {}           # pairs of the last search like this one


def _take(key: Any, device: torch.device, stream: Any) -> _Search:
    with _lock:
        for at in range(len(_kept) - 1, -1, -1):
            if _kept[at][0] == key:
                return _kept.pop(at)[1]
    return _Search(device, stream)


def _give(key: Any, search: _Search) -> None:
    if search.nbytes > _KEPT_BYTES:
        return
    with _lock:
        _kept.append((key, search))
        oldest = _kept.pop(0) if len(_kept) > _KEPT else None
    del oldest      # outside of the lock: it calls the library


def release() -> None:
    """Free the memory on GPUs that `nearfield.torch` keeps between calls: at most 256 MiB.

    It goes back to torch's caching allocator; ``torch.cuda.empty_cache()`` gives it to the system.
    """
    with _lock:
        dropped = _kept[:]
        _kept.clear()
        _per_point.clear()
    del dropped


# ---- pairs ---------------------------------------------------------------------------------------


def index_pairs(x: Tensor, boxes: Optional[Tensor], starts: Optional[Tensor], systems: int,
                cutoff: float, *, half: bool = False, own: int = 0, ordered: bool = True,
                nearest: int = 0, most: int = -1,
                flow: Optional[bool] = None) -> Optional[Pairs]:
    """All pairs. Waits once, for their number.

    boxes: bytes of nlist_box on the GPU, or None without periodic axes. starts: int32 on the GPU,
    or None for one system. own: each point is in its row, 1 = in the order, 2 = in front. nearest:
    rows are their so many nearest entries (0: all). flow: the edges are asked for, i in row 0
    (False) or 1 (True) of them. None is returned where a row has more than `most` entries
    (< 0: any); memory is taken for rows of that length only.
    """
    x = x.detach().contiguous()
    few = boxes is None and nearest == 0 and x.shape[0] <= _lib(x).nearfield_cuda_few()
    with torch.cuda.device(x.device):
        if few:
            return _among_few(x, starts, systems, cutoff, half, own, most, flow)
        most = most - 1 if own and most > 0 else most
        found = _in_cells(x, boxes, starts, systems, cutoff, half, ordered, nearest, most,
                          None if own else flow)
    return _with_own(found, x, own, ordered, flow) if own and found else found


def refuse_capture() -> None:
    if torch.cuda.is_current_stream_capturing():
        raise Error("a CUDA graph cannot hold a search that waits for the number of pairs: use "
                    "FixedNeighborList")


def _lib(x: Tensor) -> Any:
    if x.dtype not in (torch.float32, torch.float64):
        raise ValueError("positions: expected float32 or float64, not %s" % x.dtype)
    return library(_REAL[x.dtype], True)


_REAL = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}


def _room(x: Tensor, m: int, flow: Optional[bool]) -> Pairs:
    """For m pairs, which are still to be written."""
    if flow is None:
        return Pairs(torch.empty(m, dtype=torch.int64, device=x.device),
                     torch.empty(m, dtype=torch.int64, device=x.device), None, None)
    edges = torch.empty((2, m), dtype=torch.int64, device=x.device)
    return Pairs(edges[int(flow)], edges[int(not flow)], None, edges)


def _raise(lib: Any, result: int, bad: int = -1) -> None:
    if result:
        where = " [row = %d]" % bad if bad >= 0 else ""
        raise Error("nlist.h: " + python_names(result_text(lib, "nlist", result)) + where)


def _among_few(x: Tensor, starts: Optional[Tensor], systems: int, cutoff: float, half: bool,
               own: int, most: int, flow: Optional[bool]) -> Optional[Pairs]:
    lib, n = _lib(x), x.shape[0]
    stream = torch.cuda.current_stream(x.device).cuda_stream
    begin = torch.empty(n + 3, dtype=torch.int64, device=x.device)
    told = (ctypes.c_int64 * 3)(0, 0, -1)
    question = (x.data_ptr(), 0, n, starts.data_ptr() if starts is not None else None, systems,
                cutoff, int(half), own, begin.data_ptr())
    result = lib.nearfield_cuda_few_count(*question, ctypes.addressof(told), stream)
    _raise(lib, result, told[2])
    if 0 <= most < told[1]:
        return None
    found = _room(x, told[0], flow)
    if told[0]:
        _raise(lib, lib.nearfield_cuda_few_write(*question, found.i.data_ptr(),
                                                 found.j.data_ptr(), stream))
    return found


def _in_cells(x: Tensor, boxes: Optional[Tensor], starts: Optional[Tensor], systems: int,
              cutoff: float, half: bool, ordered: bool, nearest: int, most: int,
              flow: Optional[bool]) -> Optional[Pairs]:
    lib, n, device = _lib(x), x.shape[0], x.device
    stream = torch.cuda.current_stream(device)
    open_box = boxes is None
    if boxes is None:
        boxes = torch.zeros(systems * ctypes.sizeof(lib.nlist_box), dtype=torch.uint8,
                            device=device)
    if starts is None:
        starts = torch.full((2,), n, dtype=torch.int32, device=device)
        starts[:1].zero_()
    key = id(lib), device, stream.cuda_stream, x.dtype
    search = _take(key, device, stream)
    bound = (16 * most + 256) * n + (1 << 20) if most >= 0 else None
    try:
        rows, partner, shift = _searched(search, key, n, (
            _Given(x, lib.dtype.str), _Given(boxes, "|u1"), _Given(starts, "<i4"), systems, cutoff,
            half, ordered, nearest, not open_box), bound)
    except (Error, MemoryError) as error:
        if bound is None or "OUT_OF_MEMORY" not in str(error):
            raise
        return None
    m = len(partner)
    if 0 <= most and m and int(rows.diff().max()) > most:
        _give(key, search)
        return None
    found = _room(x, m, flow)
    if m:
        _raise(lib, lib.nearfield_cuda_entries(rows.data_ptr(), partner.data_ptr(), n,
                                               found.i.data_ptr(), found.j.data_ptr(),
                                               stream.cuda_stream))
    if not open_box:
        found = found._replace(shift=shift.reshape(-1, 3).clone())
    _give(key, search)
    return found


def _searched(search: _Search, key: Any, n: int, question: Any, bound: Optional[int]) -> Any:
    """Begins with room for as many pairs as points had in the last search like this one. A guess
    that does not fit into memory is dropped: the search then counts before it takes memory. bound:
    no block may have more bytes."""
    like = key, question[4:]
    room = int(1.06 * n * _per_point.pop(like, 0))

    ask: Any = search.search
    if search._lib is None:
        search._settle(np.dtype(question[0].__cuda_array_interface__["typestr"]), True)
    search._memory.bound = bound
    try:
        found = ask(*question, room=room)
    except (Error, MemoryError):
        if room == 0:
            raise
        found = ask(*question)
    if len(_per_point) >= _GUESSES:
        _per_point.clear()
    _per_point[like] = len(found[1]) / max(n, 1)
    return found


def _with_own(found: Pairs, x: Tensor, own: int, ordered: bool, flow: Optional[bool]) -> Pairs:
    """With each point in its row."""
    i, j, shift = found[:3]
    each = torch.arange(x.shape[0], device=x.device)
    i, j = (torch.cat([each, a]) for a in (i, j))
    keys = [i]
    if shift is not None:
        shift = torch.cat([shift.new_zeros((len(each), 3)), shift])
    if own == 1 and ordered:
        keys = ([] if shift is None else [shift[:, 2], shift[:, 1], shift[:, 0]]) + [j, i]
    order = torch.arange(len(i), device=x.device)
    for key in keys:        # by the last one at last: sorts are stable
        order = order[torch.argsort(key[order], stable=True)]
    out = _room(x, len(i), flow)
    out.i.copy_(i[order])
    out.j.copy_(j[order])
    return out._replace(shift=None if shift is None else shift[order])


# ---- queries, and the nearest --------------------------------------------------------------------


def near_queries(x: Tensor, y: Tensor, of_x: Tensor, of_y: Tensor, r: float,
                 most: int) -> tuple[Tensor, Tensor]:
    """For each point of y those of x in its system that are nearer than r: index in y, in x; most >
    0: at most so many, those of the lowest ids. of_x, of_y: where the systems begin, on the CPU.
    Systems of few points are tried each with each, larger ones by a tree over x."""
    lib = _lib(x)
    x, y = x.detach().contiguous(), y.detach().contiguous()
    _refuse_not_finite("x", x)
    _refuse_not_finite("y", y)
    found = [_nothing(x)]
    with torch.cuda.device(x.device):
        for a, b, large in _runs(of_x, lib.nearfield_cuda_few()):
            from_x, from_y = int(of_x[a]), int(of_y[a])
            part_x, part_y = x[from_x:int(of_x[b])], y[from_y:int(of_y[b])]
            if len(part_x) == 0 or len(part_y) == 0:
                continue
            ask = _in_tree if large else _each_with_each
            row, col = ask(part_x, part_y, of_x[a:b + 1] - from_x, of_y[a:b + 1] - from_y, r, most)
            found.append((row + from_y, col + from_x))
    return torch.cat([row for row, _ in found]), torch.cat([col for _, col in found])


def nearest(x: Tensor, boxes: Optional[Tensor], of_x: Tensor, k: int,
            reach: float = float("inf")) -> tuple[Tensor, Tensor]:
    """The k nearest of each point in its system, nearer than reach: i, j. boxes: bytes of nlist_box
    on the GPU where an axis repeats; then images count, too."""
    lib, systems = _lib(x), len(of_x) - 1
    x = x.detach().contiguous()
    _refuse_not_finite("positions", x)
    if boxes is not None:
        with torch.cuda.device(x.device):
            return _nearest_in_boxes(x, boxes, of_x, systems, k, reach)
    found = [_nothing(x)]
    with torch.cuda.device(x.device):
        for a, b, large in _runs(of_x, lib.nearfield_cuda_few()):
            first = int(of_x[a])
            part = x[first:int(of_x[b])]
            most = min(k, int(of_x[a:b + 1].diff().max()) - 1)
            if most < 1:
                continue
            ask = _nearest_in_tree if large else _nearest_of_each
            i, j = ask(part, of_x[a:b + 1] - first, most, reach)
            found.append((i + first, j + first))
    return torch.cat([i for i, _ in found]), torch.cat([j for _, j in found])


def _nothing(x: Tensor) -> tuple[Tensor, Tensor]:
    none = torch.zeros(0, dtype=torch.int64, device=x.device)
    return none, none


def _runs(starts: Tensor, few: int) -> Iterator[tuple[int, int, bool]]:
    """Systems a .. b - 1: each that has more than `few` points, and those between, together."""
    large = [int(s) for s in (starts.diff() > few).nonzero()]
    a = 0
    for s in large + [len(starts) - 1]:
        if s > a:
            yield a, s, False
        if s < len(starts) - 1:
            yield s, s + 1, True
        a = s + 1


def _refuse_not_finite(name: str, x: Tensor) -> None:
    bad = ~x.isfinite().all(1)
    if bool(bad.any()):
        raise Error("%s: a point is NaN or infinite [row = %d]" % (name, int(bad.nonzero()[0])))


def _placed(values: Tensor, device: torch.device) -> Tensor:
    """A copy on the GPU."""
    out = torch.empty(values.shape, dtype=values.dtype, device=device)
    out.copy_(values)
    return out


def _stream_of(x: Tensor) -> Any:
    return torch.cuda.current_stream(x.device)


def _each_with_each(x: Tensor, y: Tensor, of_x: Tensor, of_y: Tensor, r: float,
                    most: int) -> tuple[Tensor, Tensor]:
    lib, m, stream = _lib(x), len(y), _stream_of(x).cuda_stream
    of_x, of_y = (_placed(starts.to(torch.int32), x.device) for starts in (of_x, of_y))
    begin = torch.empty(m, dtype=torch.int64, device=x.device)
    question = (x.data_ptr(), of_x.data_ptr(), y.data_ptr(), of_y.data_ptr(), m, len(of_x) - 1, r,
                most, begin.data_ptr())
    _raise(lib, lib.nearfield_cuda_queries(*question, None, None, stream))
    ends = begin.cumsum(0)
    begin.copy_(ends - begin)
    found = _room(x, int(ends[-1]), None)
    _raise(lib, lib.nearfield_cuda_queries(*question, found.i.data_ptr(), found.j.data_ptr(),
                                           stream))
    return found.i, found.j


def _tree_over(x: Tensor) -> Tree:
    return Tree(_Given(x, _lib(x).dtype.str), "points", stream=_stream_of(x))


def _below(x: Tensor, r: float) -> float:
    """The largest number below r, in the precision of x."""
    real = _lib(x).dtype.type
    return float(np.nextafter(real(r), real(0)))


def _in_tree(x: Tensor, y: Tensor, of_x: Tensor, of_y: Tensor, r: float,
             most: int) -> tuple[Tensor, Tensor]:
    lib, n, m, tree = _lib(x), len(x), len(y), _tree_over(x)
    given = _Given(y, lib.dtype.str)
    if most == 0:
        offsets, ids = tree.query(given, _below(x, r))
        total = len(ids)
    else:       # room for `most` each; where that is not enough, rows that end early are faster
        ask = lib.lbvh_queries()
        ask.kind, ask.radius, ask.data, ask.n = 1, _below(x, r), y.data_ptr(), m
        offsets, ids = tree._empty(m + 1, np.int64), tree._empty(most * m, np.int32)
        tree._try("overlaps", ctypes.byref(ask), address_of(offsets), address_of(ids), most * m)
        total = int(offsets[-1])
        if total > most * m:
            return _each_with_each(x, y, of_x, of_y, r, most)
    found = _room(x, total, None)
    if total == 0:
        return found.i, found.j
    _raise(lib, lib.nearfield_cuda_entries(address_of(offsets), address_of(ids), m,
                                           found.i.data_ptr(), found.j.data_ptr(),
                                           _stream_of(x).cuda_stream))
    tree.check()
    key = (found.i * n + found.j).sort().values
    row, col = key // n, key % n
    if most > 0:
        counts = torch.bincount(row, minlength=m)
        kept = torch.arange(total, device=x.device) - (counts.cumsum(0) - counts)[row] < most
        row, col = row[kept], col[kept]
    return row, col


def _nearest_of_each(x: Tensor, of_x: Tensor, k: int, reach: float,
                     boxes: Optional[Tensor] = None,
                     rows: Optional[Tensor] = None) -> tuple[Tensor, Tensor]:
    """Each point tried with each of its system."""
    lib, m = _lib(x), len(x) if rows is None else len(rows)
    of_x = _placed(of_x.to(torch.int32), x.device)
    d_rows = None if rows is None else _placed(rows.to(torch.int32), x.device)
    ids = torch.empty((m, k), dtype=torch.int32, device=x.device)
    distances2 = torch.empty((m, k), dtype=x.dtype, device=x.device)
    _raise(lib, lib.nearfield_cuda_nearest(
        x.data_ptr(), None if boxes is None else boxes.data_ptr(), of_x.data_ptr(), len(of_x) - 1,
        None if d_rows is None else d_rows.data_ptr(), m, k, reach, ids.data_ptr(),
        distances2.data_ptr(), _stream_of(x).cuda_stream))
    i, j = _listed(ids)
    return i if rows is None else rows[i], j


def _listed(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Row and id of each entry of a table; -1: there is none."""
    there = ids >= 0
    row = torch.arange(len(ids), device=ids.device)[:, None].expand(ids.shape)[there]
    return row, ids[there].to(torch.int64)


def _nearest_in_tree(x: Tensor, of_x: Tensor, k: int, reach: float) -> tuple[Tensor, Tensor]:
    """One more than k, without the point itself. Where more than k others lie on it, it may not be
    among them: then the last one goes."""
    tree = _tree_over(x)
    far = reach if reach == float("inf") else _below(x, reach)
    found = tree.nearest(_Given(x, _lib(x).dtype.str), k + 1, far)[0]
    tree.check()
    ids = torch.as_tensor(found, device=x.device).clone()
    own = ids == torch.arange(len(x), device=x.device)[:, None]
    own[:, -1] |= ~own.any(1)
    ids[own] = -1
    return _listed(ids)


def _nearest_in_boxes(x: Tensor, boxes: Tensor, of_x: Tensor, systems: int, k: int,
                      reach: float) -> tuple[Tensor, Tensor]:
    """Rows of large systems first look in cells, about as far as evenly spread points would need;
    those that are not complete then, and those of small systems, try all."""
    largest = int(of_x.diff().max())
    if largest <= _lib(x).nearfield_cuda_few() // 4:
        return _nearest_of_each(x, of_x, k, reach, boxes)
    sides = x.amax(0) - x.amin(0)
    sides = sides.clamp_min(float(sides.max()) * 1e-3)
    near = float((sides.prod() * (3 * (k + 4)) / (2 * largest)) ** (1 / 3)) or 1.0
    found = _in_cells(x, boxes, _placed(of_x.to(torch.int32), x.device), systems,
                      min(near, reach), False, False, k, -1, None)
    assert found is not None
    i, j = found.i, found.j
    if near >= reach:
        return i, j
    complete = torch.bincount(i, minlength=len(x)) >= k
    if bool(complete.all()):
        return i, j
    more = _nearest_of_each(x, of_x, k, reach, boxes, (~complete).nonzero().reshape(-1))
    kept = complete[i]
    i, j = torch.cat([i[kept], more[0]]), torch.cat([j[kept], more[1]])
    order = i.argsort(stable=True)
    return i[order], j[order]
