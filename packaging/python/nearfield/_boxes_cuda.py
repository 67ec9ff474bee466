"""Lists in boxes on the GPU, for nearfield.torch.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ._arrays import address_of
from ._object import Object


class DeviceBoxes(Object):
    """nlist_cuda_build_boxes on a stream."""

    _header = "nlist"

    def search(self, x: Any, d_boxes: Any, d_starts: Any, systems: int, cutoff: float, half: bool,
               sorted: bool, nearest: int) -> tuple[Any, Any, Any]:
        """Where the rows begin (n + 1,), partners (m,) and shifts (3 m,), in this object's memory.
        Waits for the stream. x, d_boxes and d_starts lie on the GPU; d_boxes are the bytes of
        nlist_box."""
        pos, n, stride = self._rows(x, 3)
        real = self._lib.dtype.type
        self._fields = {"half": int(half), "sorted": int(sorted), "nearest": int(nearest),
                        "shifts": 1, "grow": 1,
                        "radius": float(np.nextafter(real(cutoff), real(0)))}
        desc = self._new_desc(3)
        self._call("build_boxes", ctypes.byref(desc), _pointer(d_boxes), _pointer(d_starts),
                   systems, address_of(pos), stride, n)
        self.check()
        rows, total = self._state.rows[self._state.current], self._state.total
        return (self._look(rows.start, n + 1, np.int64), self._look(rows.partner, total, np.int32),
                self._look(rows.shift, 3 * total, np.int32))


def _pointer(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0])
