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
from typing import Any, NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor

from ._arrays import DeviceMemory, size_of
from ._binding import Error, library, result_text
from ._boxes_cuda import DeviceBoxes

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

    def _new(self, size: int) -> tuple[int, Any]:
        try:
            block = _Block(size, self._device)
        except RuntimeError as error:       # torch.OutOfMemoryError is one
            raise MemoryError(str(error)) from None
        return block.address, block

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

    def _look(self, address: int | None, shape: Any, dtype: Any) -> Any:
        if address:
            return self._memory.view(address, shape, np.dtype(dtype))
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
    (< 0: any).
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
        where = " [bad_id = %d]" % bad if bad >= 0 else ""
        raise Error("nlist.h: " + result_text(lib, "nlist", result) + where)


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
    rows, partner, shift = _searched(search, key, n, (
        _Given(x, lib.dtype.str), _Given(boxes, "|u1"), _Given(starts, "<i4"), systems, cutoff,
        half, ordered, nearest, not open_box))
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


def _searched(search: _Search, key: Any, n: int, question: Any) -> Any:
    """Begins with room for as many pairs as points had in the last search like this one. A guess
    that does not fit into memory is dropped: the search then counts before it takes memory."""
    ask: Any = search.search
    like = key, question[4:]
    room = int(1.06 * n * _per_point.pop(like, 0))
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
