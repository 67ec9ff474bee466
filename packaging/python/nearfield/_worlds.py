"""World: objects that come, move, sleep and go (more/lbvh_world.h).

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import (Array, address_of, cut, flat_corners, host_array, integer,
                      refuse_bad_queries, refuse_not_finite, tight)
from ._binding import OPTIONS, Error, python_names, raise_for, result_text
from ._object import Object, changing, searching

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import WorldFields

_FILTER = np.dtype([("category", np.uint64), ("mask", np.uint64), ("group", np.int32)], align=True)
_STATES = OPTIONS["lbvh_world.state"].split()
_SHAPES = ["rays", "boxes", "spheres"]


class World(Object):
    """The broad phase of a game or a simulation: boxes that move, with pairs that last (part
    ``more/lbvh_world.h`` of ``lbvh.h``). On the CPU.

    Objects are named by ids, uint64; none is ever used again, and 0 is none. Searches and pairs
    are those of the last `update`.

    Parameters
    ----------
    dim : int
        2 or 3.
    dtype : dtype_like
        float64 or float32.
    n_threads : int
        Threads that `update` may use, 1 .. 256 (default: 1). The results are the same.
    margin, margin_part : float, optional
        Stored boxes are larger by so much, and by such a part of their edge: objects that move
        within them cost next to nothing.

    Notes
    -----
    Searches have the keywords category, mask and group (0: all): they find what an object with
    this filter would meet, that is one whose mask shares a bit with their category and the other
    way round; within a group always where it is positive, and never where it is negative.

    Examples
    --------
    >>> import nearfield
    >>> world = nearfield.World(2)
    >>> wall, ball = world.insert([[0, 0, 9, 1], [2, 3, 3, 4]])
    >>> len(world.update().pairs())
    0
    >>> world.move([ball], [[2, 0.5, 3, 1.5]])
    >>> world.update().begun.tolist() == [[wall, ball]] or world.begun.tolist() == [[ball, wall]]
    True
    """

    _header = "lbvh_world"

    def __init__(self, dim: int = 3, *, dtype: Any = np.float64, n_threads: int | None = None,
                 **fields: Unpack[WorldFields]) -> None:
        super().__init__(None, n_threads=n_threads, **fields)
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError("dtype: expected float32 or float64, not %s" % dtype)
        self._settle(np.dtype(dtype), False)
        self._dim = integer("dim", dim)
        self._call("begin", ctypes.byref(self._new_desc(self._dim)))

    @property
    def n(self) -> int:
        """Objects that there are."""
        return int(self._state.objects)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("nearfield.World is neither pickled nor copied: insert its boxes into "
                        "another one")

    @changing
    def insert(self, boxes: Any, state: str = "moving", *, category: Any = 0, mask: Any = 0,
               group: Any = 0) -> Array:
        """New objects.

        Parameters
        ----------
        boxes : array_like, (m, 2 * dim) or (m, 2, dim)
            Lower and upper corners.
        state : {"moving", "sleeping", "fixed"}
            Two that are fixed make no pair; two at rest keep theirs, which `pairs` leaves out.
        category, mask, group : int or array_like of int, (m,)
            The filter of each.

        Returns
        -------
        ndarray of uint64, (m,)
            Their ids.
        """
        at = self._boxes(boxes)
        ids, keep = np.zeros(len(at), np.uint64), self._filter(category, mask, group)
        self._raise(self._lib.nearfield_world_insert(
            ctypes.byref(self._struct), address_of(at), len(at), *self._filters(keep, len(at)),
            _word("state", state, _STATES), address_of(ids)))
        return ids

    @changing
    def move(self, ids: Any, boxes: Any, displacements: Any = None) -> None:
        """New boxes of objects.

        Parameters
        ----------
        ids : array_like of uint64, (m,)
        boxes : array_like, (m, 2 * dim) or (m, 2, dim)
        displacements : array_like, (m, dim), optional
            How far each will probably move on: its stored box is longer by that.
        """
        names, at, bad = self._ids(ids), self._boxes(boxes), ctypes.c_int32(-1)
        on = None if displacements is None else self._tight(displacements, self._dim)
        if len(at) != len(names) or (on is not None and len(on) != len(names)):
            raise ValueError("move: expected a box and a displacement for each id")
        self._raise(self._lib.nearfield_world_move(
            ctypes.byref(self._struct), address_of(names), address_of(at), address_of(on),
            len(names), ctypes.byref(bad)), bad)

    @changing
    def remove(self, ids: Any) -> None:
        """Remove objects. Their pairs end with the next update."""
        names, bad = self._ids(ids), ctypes.c_int32(-1)
        self._raise(self._lib.nearfield_world_remove(
            ctypes.byref(self._struct), address_of(names), len(names), ctypes.byref(bad)), bad)

    @changing
    def set_state(self, ids: Any, state: str) -> None:
        """Another state of objects, from the next update on."""
        self._set(ids, _word("state", state, _STATES), None)

    @changing
    def set_filter(self, ids: Any, category: Any = 0, mask: Any = 0, group: Any = 0) -> None:
        """Another filter of objects, from the next update on."""
        self._set(ids, -1, self._filter(category, mask, group))

    def _set(self, ids: Any, state: int, keep: Any) -> None:
        names, bad = self._ids(ids), ctypes.c_int32(-1)
        filters = (None, 0) if keep is None else self._filters(keep, len(names))
        self._raise(self._lib.nearfield_world_set(
            ctypes.byref(self._struct), address_of(names), len(names), state, *filters,
            ctypes.byref(bad)), bad)

    @changing
    def update(self) -> World:
        """Takes in what has changed: the trees, then the pairs. Returns this world."""
        self._call("update")
        return self

    @searching
    def pairs(self) -> Array:
        """The ids of pairs that touch, of which one moves at least: ndarray of uint64, (m, 2)."""
        room, needed = int(self._state.active), ctypes.c_int64()
        pairs = np.empty((room, 2), np.uint64)
        self._raise(self._lib.nearfield_world_pairs(
            ctypes.byref(self._struct), address_of(pairs), room, ctypes.byref(needed)))
        return pairs[:needed.value].copy()

    @property
    @searching
    def begun(self) -> Array:
        """The pairs that the last update began, of stored boxes: ndarray of uint64, (m, 2)."""
        return self._events(0, self._state.begun_count)

    @property
    @searching
    def ended(self) -> Array:
        """The pairs that the last update ended (before the next insertion)."""
        return self._events(1, self._state.ended_count)

    def _events(self, ended: int, count: int) -> Array:
        pairs = np.empty((count, 2), np.uint64)
        self._lib.nearfield_world_events(ctypes.byref(self._struct), ended, address_of(pairs))
        return pairs

    @searching
    def overlaps(self, boxes: Any, *, category: int = 0, mask: int = 0,
                 group: int = 0) -> tuple[Array, Array]:
        """(offsets (m + 1,), ids): the objects whose boxes touch each box."""
        at, keep = self._boxes(boxes), self._one_filter(category, mask, group)
        refuse_bad_queries(at, "boxes")
        offsets, needed = np.empty(len(at) + 1, np.int64), ctypes.c_int64()
        room = self._guesses.get("overlaps", 16 * len(at))
        while True:
            ids = np.empty(room, np.uint64)
            result = self._lib.nearfield_world_overlaps(
                ctypes.byref(self._struct), address_of(at), len(at), address_of(keep),
                address_of(offsets), address_of(ids), room, ctypes.byref(needed))
            if needed.value <= room:
                self._raise(result)
                self._guesses["overlaps"] = needed.value + needed.value // 16
                return offsets, cut(ids, needed.value)
            room = needed.value

    @searching
    def rays(self, origins: Any, directions: Any, t_max: float = np.inf, *, category: int = 0,
             mask: int = 0, group: int = 0) -> tuple[Array, Array]:
        """(ids (m,), t (m,)): the object whose box each ray meets first, 0 where none, and where,
        in lengths of the direction; none: infinity."""
        if not t_max >= 0:
            raise ValueError("t_max must not be negative or NaN, but is %s" % t_max)
        return self._cast("rays", origins, directions, t_max, (category, mask, group))

    @searching
    def cast(self, shapes: Any, vectors: Any, kind: str = "boxes", *, category: int = 0,
             mask: int = 0, group: int = 0) -> tuple[Array, Array]:
        """What shapes meet first while they are swept along vectors.

        Parameters
        ----------
        shapes : array_like
            boxes: (m, 2 * dim) or (m, 2, dim); spheres: (m, dim + 1), centre and radius.
        vectors : array_like, (m, dim)
            The whole way.
        kind : {"boxes", "spheres"}

        Returns
        -------
        ids : ndarray of uint64, (m,)
            0: none.
        t : ndarray, (m,)
            The part of the way after which the shape touches the object's box; none: infinity.
        """
        return self._cast(kind, shapes, vectors, 1.0, (category, mask, group))

    def _cast(self, kind: str, shapes: Any, vectors: Any, t_max: float,
              keep: tuple[Any, ...]) -> tuple[Array, Array]:
        which = _word("kind", kind, _SHAPES)
        at = (self._boxes(shapes) if kind == "boxes"
              else self._tight(shapes, self._dim + (kind == "spheres")))
        along, of = self._tight(vectors, self._dim), self._one_filter(*keep)
        if len(at) != len(along):
            raise ValueError("%d shapes, but %d vectors" % (len(at), len(along)))
        refuse_not_finite("shapes", at)
        refuse_not_finite("vectors", along)
        ids, t = np.empty(len(at), np.uint64), np.empty(len(at), self._lib.dtype)
        self._lib.nearfield_world_cast(
            ctypes.byref(self._struct), which, address_of(at), at.shape[1], address_of(along),
            len(at), t_max, address_of(of), address_of(ids), address_of(t))
        return ids, t

    @searching
    def nearest(self, points: Any, k: int = 1, reach: float = np.inf, *, category: int = 0,
                mask: int = 0, group: int = 0) -> tuple[Array, Array]:
        """(ids (m, k), distances2 (m, k)): the k objects nearest to each point, nearest first, 0
        and infinity where there are fewer within reach; the squares of distances to their boxes."""
        if integer("k", k) < 1:
            raise ValueError("k: expected 1 or more, not %d" % k)
        at, keep = self._tight(points, self._dim), self._one_filter(category, mask, group)
        refuse_not_finite("points", at)
        ids = np.empty((len(at), k), np.uint64)
        distances2 = np.empty((len(at), k), self._lib.dtype)
        self._raise(self._lib.nearfield_world_nearest(
            ctypes.byref(self._struct), address_of(at), len(at), k, reach, address_of(keep),
            address_of(ids), address_of(distances2)))
        return ids, distances2

    # -- what callers give

    def _tight(self, values: Any, width: int) -> Array:
        array, _, _ = self._rows(values, width)
        return tight(array)

    def _boxes(self, boxes: Any) -> Array:
        if np.ndim(boxes) == 3:
            boxes = flat_corners(np.asarray(boxes), 2)
        return self._tight(boxes, 2 * self._dim)

    @staticmethod
    def _ids(ids: Any) -> Array:
        return tight(host_array("ids", ids, np.uint64)).reshape(-1)

    @staticmethod
    def _filter(category: Any, mask: Any, group: Any) -> Array:
        shape = np.broadcast_shapes(np.shape(category), np.shape(mask), np.shape(group))
        keep = np.zeros(shape or 1, _FILTER)
        for name, value in (("category", category), ("mask", mask), ("group", group)):
            keep[name] = host_array(name, value, _FILTER[name])
        return keep

    def _one_filter(self, category: Any, mask: Any, group: Any) -> Array:
        """The filter of a search."""
        keep = self._filter(category, mask, group)
        if keep.shape != (1,):
            raise ValueError("filter: expected one for all, not %s" % (keep.shape,))
        return keep

    @staticmethod
    def _filters(keep: Array, count: int) -> tuple[Any, int]:
        """(address, whether there is one for each)."""
        if keep.shape not in ((1,), (count,)):
            raise ValueError("filters: expected one for all, or for each of %d objects, not %s" % (
                count, keep.shape))
        return address_of(keep), int(len(keep) > 1)

    def _raise(self, result: int, bad: Any = None) -> None:
        if bad is not None and bad.value >= 0:
            raise Error("lbvh.h: %s [row %d]" % (
                python_names(result_text(self._lib, "lbvh", result)), bad.value))
        raise_for(self._lib, "lbvh", result, self._state)


def _word(name: str, word: str, words: list[str]) -> int:
    if word not in words:
        raise ValueError("%s=%r: expected one of %s" % (name, word, " ".join(words)))
    return words.index(word)


__all__ = ["World"]
