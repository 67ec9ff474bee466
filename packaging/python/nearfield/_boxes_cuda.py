"""Lists in boxes on the GPU, for nearfield.torch.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ._arrays import address_of, stream_handle
from ._object import Object


class DeviceBoxes(Object):
    """nlist_cuda_build_boxes on a stream."""

    _header = "nlist"

    def search(self, x: Any, d_boxes: Any, d_starts: Any, systems: int, cutoff: float, half: bool,
               sorted: bool, nearest: int, shifts: bool = True,
               room: int = 0) -> tuple[Any, Any, Any]:
        """Where the rows begin (n + 1,), partners (m,) and shifts (3 m,; without `shifts` none),
        in this object's memory. Waits for the stream. x, d_boxes and d_starts lie on the GPU;
        d_boxes are the bytes of nlist_box. room: for so many pairs it begins with memory."""
        self._fields = {"nearest": int(nearest), "grow": 1, "capacity": int(room),
                        "shifts": int(shifts)}
        n = self._build(x, d_boxes, d_starts, systems, cutoff, half, sorted)
        return self._views(n, self._state.total)

    def fill(self, x: Any, d_boxes: Any, d_starts: Any, systems: int, cutoff: float, half: bool,
             sorted: bool, capacity: int, stream: Any) -> tuple[Any, Any, Any]:
        """The same with room for `capacity` pairs, and without waiting. The first call takes the
        memory; with the sizes of that call, later ones take none, and the arrays stay where they
        are."""
        self._fields = {"capacity": capacity, "shifts": 1}
        self._stream_object, self._stream = stream, stream_handle(stream)
        n = self._build(x, d_boxes, d_starts, systems, cutoff, half, sorted)
        return self._views(n, capacity)

    def _build(self, x: Any, d_boxes: Any, d_starts: Any, systems: int, cutoff: float, half: bool,
               sorted: bool) -> int:
        pos, n, stride = self._rows(x, 3)
        real = self._lib.dtype.type
        self._fields["half"], self._fields["sorted"] = int(half), int(sorted)
        self._fields["radius"] = float(np.nextafter(real(cutoff), real(0)))
        desc = self._new_desc(3)
        self._call("build_boxes", ctypes.byref(desc), _pointer(d_boxes), _pointer(d_starts),
                   systems, address_of(pos), stride, n)
        return n

    def _views(self, n: int, entries: int) -> tuple[Any, Any, Any]:
        rows = self._state.rows[self._state.current]
        return (self._look(rows.start, n + 1, np.int64),
                self._look(rows.partner, entries, np.int32),
                self._look(rows.shift, 3 * entries * self._fields["shifts"], np.int32))


def _pointer(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0])
