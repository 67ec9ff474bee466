"""nearfield.py - ugrid.h, lbvh.h, nlist.h and nbody.h from Python: one file, ctypes and NumPy, nothing else.
SPDX-License-Identifier: MIT OR Unlicense

    make shared                                     builds build/libnearfield.so (nearfield.c says the command)
    cp examples/python/nearfield.py build/libnearfield.so YOUR_PROJECT/

    import numpy, nearfield
    points = numpy.random.rand(100000, 3)
    grid = nearfield.Grid(points, cell=0.03)
    offsets, ids = grid.neighbors(0.03)             # the neighbours of particle i: ids[offsets[i]:offsets[i + 1]]

    Grid     neighbours within a radius, in a box that may be periodic (ugrid.h)
    Tree     boxes, points, spheres, triangles: overlaps, nearest, rays (lbvh.h)
    List     contacts that last: history, events, a skin (nlist.h)
    NBody    forces of all on all, in the plane (nbody.h)
    neighbor_list("ijSd", atoms, cutoff)            as ase.neighborlist.neighbor_list

Keywords    are the fields of the C structs: the comments in the headers say what each does. Enums are words: method="sort".
Precision   follows the first array that an object gets: float32 stays float32, everything else is computed in float64.
Memory      Arrays of that type with any distance between their rows (x[:, :3]) are read where they are. Results are new arrays, but for
            those said to be views: these keep their memory alive, and show the state as of the last build.
Errors      nearfield.Error, with the header's own text. NaN is refused, with the index of the first (GPU: see check).
            ValueError: arrays of another shape, and searches that could not find anything.
Threads     Calls release Python's lock. Different objects may be used at once, also one object by many who only search.
GPU         Arrays with __cuda_array_interface__ (CuPy, torch) are computed with where they are, by build/cuda/libnearfield_cuda.so
            (make shared-cuda). Results are DeviceArrays: cupy.asarray(a), torch.as_tensor(a, device="cuda"), a.numpy(). Work is queued on
            `stream` (an int, or a stream of CuPy or torch; default: the legacy default stream), and only what returns a size
            waits: count_pairs, pairs, neighbors, query, overlaps, moved, check and numpy(). Bad numbers are told by check().
"""
import ctypes
import functools
import os
import re
import weakref

import numpy as np

__all__ = ["Grid", "Tree", "List", "NBody", "neighbor_list", "DeviceArray", "Error", "EVENT", "load"]


# A contact that began, persists or ended: List.events.
EVENT = np.dtype([("i", np.int32), ("j", np.int32), ("entry", np.int64)])


class Error(RuntimeError):
    """What a call of the headers refused, and why."""


# ---- Grid: ugrid.h ----------------------------------------------------------------------------------------------------------------


class _Object:
    """An object of a header: its struct, its desc and their memory, on the host or on a GPU."""

    _header = ""        # "ugrid"

    def __init__(self, stream=None, **fields):
        if "box" in fields:
            fields["min"], fields["max"] = fields.pop("box")
        self._fields, self._stream_object, self._stream = fields, stream, _stream_handle(stream)
        self._lib, self._kept, self._guesses, self._others = None, {}, {}, set()

    @property
    def n(self):
        """Particles (elements, bodies) of the last build."""
        return self._state.n if self._lib else 0

    @property
    def desc(self):
        """The desc of the last build, with its defaults filled in: grid.desc.cell."""
        return self._state.desc

    @property
    def nbytes(self):
        return self._memory.nbytes() if self._lib else 0

    def validate(self):
        """Raises an Error if the structure is damaged. For tests; not on a GPU (to_host first)."""
        self._on_host("validate")
        self._call("validate")

    def check(self):
        """GPU: waits, and raises an Error for bad numbers that the last build met. (The CPU's builds do it themselves.)"""
        if self._lib and self._device:
            self._call("check", *self._check_arguments)

    _check_arguments = ()

    def to_host(self):
        """GPU: a copy of this object on the CPU."""
        host = type(self).__new__(type(self))
        vars(host).update(vars(self), _stream=0, _stream_object=None, _kept={}, _guesses={}, _others=set(), _grid=None)
        host._settle(self._lib.dtype, False, self._host_memory)
        host.desc.allocator.alloc, host.desc.allocator.free = self._host_memory.hooks()
        _raise(self._lib, self._header, getattr(self._lib, self._header + "_cuda_download")(
            ctypes.byref(host._struct), ctypes.byref(self._struct), self._stream), self._state)
        return host

    # -- below: for the classes of this file

    def _settle(self, dtype, device, host_memory=None):
        """The first array decides on precision and place."""
        lib = self._lib = _library(dtype, device)
        self._device = device
        self._struct = getattr(lib, self._header + "_cuda" * device)()
        self._state = self._struct.device if device else self._struct
        self._host_memory = host_memory or _HostMemory()    # GPU: for copies on the host
        self._memory = _DeviceMemory(lib, self._stream_object) if device else self._host_memory
        free = getattr(lib, self._header + "_cuda" * device + "_free")
        weakref.finalize(self, _release, free, self._struct, self._memory)

    def _rows(self, values, width):
        """(array, its rows, bytes from one to the next) of rows of `width` numbers, with as few copies as possible."""
        device = hasattr(values, "__cuda_array_interface__")
        if self._lib is None:
            self._settle(_dtype_of(values), device)
        if device != self._device:
            raise ValueError("this object lives on the %s, that array does not" % ("GPU" if self._device else "CPU"))
        if device:
            return _device_rows(self, values, width)
        array = np.asarray(values, self._lib.dtype)
        if array.shape == (0,):
            array = array.reshape(0, width)
        if array.ndim != 2 or array.shape[1] != width:
            raise ValueError("expected an array of shape (n, %d), not %s" % (width, array.shape))
        size = array.itemsize
        if not (array.flags.aligned and array.strides[1] == size and array.strides[0] >= size * width and array.strides[0] % size == 0):
            array = np.ascontiguousarray(array)
        return array, _count(len(array)), array.strides[0] if len(array) > 1 else 0

    def _vector(self, values, count, dtype, name, width=1):
        """`width` numbers for each of `count` elements, tightly packed."""
        if self._device:
            array = _device_rows(self, values, None if width == 1 else width, dtype)[0]
        else:
            array = np.ascontiguousarray(values, dtype)
        if array.shape[0] != count or np.prod(array.shape[1:]) != width:
            shape = (count, width) if width > 1 else (count,)
            raise ValueError("%s: expected %d numbers, of shape %s, not %s"
                             % (name, count * width, shape, array.shape))
        return array

    def _new_desc(self, dim):
        """The desc struct that the keywords ask for."""
        desc = getattr(self._lib, self._header + "_desc")()
        if dim:
            desc.dim = dim
        for name, value in self._fields.items():
            if not hasattr(desc, name):
                raise TypeError("%s has no field %r: see the desc in %s.h" % (type(self).__name__, name, self._header))
            if value is not None and name not in _ARRAYS:
                _set_field(desc, self._header, name, value)
        desc.allocator.alloc, desc.allocator.free = self._host_memory.hooks()
        if self._device:
            desc.cuda_allocator.alloc, desc.cuda_allocator.free = self._memory.hooks()
        return desc

    def _set_array(self, desc, name, count, width=1):
        """A field that points to `width` numbers for each of `count` elements; borrowed, so it is kept."""
        if self._fields.get(name) is not None:
            dtype = _ARRAYS[name] or self._lib.dtype
            self._kept[name] = self._vector(self._fields[name], count, dtype, name, width)
            setattr(desc, name, _address(self._kept[name]))

    def _function(self, name):
        return getattr(self._lib, self._header + ("_cuda_" if self._device else "_") + name)

    def _try(self, name, *arguments):
        result = self._function(name)(ctypes.byref(self._struct), *(arguments + ((self._stream,) if self._device else ())))
        while self._others:     # arrays of other streams may be given back there when this call is done, and not before
            _order(self._lib, self._stream, self._others.pop())
        return result

    def _call(self, name, *arguments):
        """ugrid_NAME(this object, ...), ugrid_cuda_NAME with the stream behind; a refusal becomes an Error."""
        if self._lib is None:
            raise Error("%s: nothing was built yet" % type(self).__name__)
        _raise(self._lib, self._header, self._try(name, *arguments), self._state)

    def _empty(self, shape, dtype):
        """A new array, where this object lives."""
        if self._lib is None:
            raise Error("%s: nothing was built yet" % type(self).__name__)
        if self._device:
            return DeviceArray(_DeviceBlock(self._lib, self._stream_object, _bytes(shape, dtype)), 0, shape, dtype)
        return np.empty(shape, dtype)

    def _list(self, name, rows, *arguments):
        """(offsets, ids) of a search: the list that it fills (CSR). Searches again where the room was guessed too small."""
        offsets = self._empty(rows + 1, np.int64)
        capacity = self._guesses.get(name, 0) + 16 * rows
        while True:
            ids, needed = self._empty(capacity, np.int32), ctypes.c_int64(0)
            told = () if self._device else (ctypes.byref(needed),)
            result = self._try(name, *(arguments + (_address(offsets), _address(ids), capacity) + told))
            if needed.value <= capacity:    # else it did not fit, and that is all
                _raise(self._lib, self._header, result, self._state)
            total = int(offsets[-1]) if self._device else needed.value
            if total <= capacity:
                self.check()
                self._guesses[name] = total + total // 16
                return offsets, _cut(ids, total)
            capacity = total

    def _look(self, address, shape, dtype):
        """A view of the object's own memory."""
        return self._memory.view(address, shape, np.dtype(dtype)) if address else self._empty(shape, dtype)[:0]

    def _on_host(self, what):
        if self._lib and self._device:
            raise Error("%s works on the CPU only: to_host() first" % what)


class Grid(_Object):
    """Particles of about one size, or one search radius.

        grid = Grid(points, cell=0.1, box=(0, 1), periodic=True)
        offsets, ids = grid.neighbors(0.1)

    points: (n, 2) or (n, 3). cell: as a rule the largest radius you search with. box: (lower, upper) corner, each a number or one for
    each axis; else the points' own. Distances are to the nearest image on periodic axes; `<=`: a particle at the radius is within.
    """

    _header = "ugrid"

    def __init__(self, points=None, cell=None, **fields):
        super().__init__(cell=cell, **fields)
        if points is not None:
            self.build(points)

    def build(self, points):
        """Puts other points into the cells; memory is used again."""
        pos, n, stride = self._rows(points, _width(points, (2, 3)))
        desc = self._new_desc(dim=_width(points, (2, 3)))
        if self._device:
            _raise(self._lib, "ugrid", self._lib.ugrid_cuda_fit(ctypes.byref(desc), _address(pos), stride, n, self._stream), self._state)
        self._kept["pos"] = pos         # some methods read it again
        self._call("build", ctypes.byref(desc), _address(pos), stride, n)
        return self

    def to_host(self):
        """GPU: a copy of this grid on the CPU, with the positions as they are now."""
        host = super().to_host()
        n, stride = self.n, self._state.stride or self.desc.dim * self._lib.dtype.itemsize
        pos = host._kept["pos"] = np.zeros((n, stride // self._lib.dtype.itemsize), self._lib.dtype)
        size = max(n - 1, 0) * stride + (n > 0) * self.desc.dim * self._lib.dtype.itemsize
        _fetch(self._lib, pos.ctypes.data_as(ctypes.c_void_p), self._state.pos, size, self._stream)
        host._state.pos, host._state.stride = _address(pos), stride
        return host

    def neighbors(self, radius, half=False):
        """(offsets, ids): particle i has the neighbours ids[offsets[i]:offsets[i + 1]]. half: each pair in one of its two rows."""
        return self._list("neighbors", self.n, radius, int(half))

    def count_neighbors(self, radius, half=False):
        """How many neighbours each particle has."""
        counts = self._empty(self.n, np.int32)
        self._call("count_neighbors", radius, int(half), _address(counts))
        return counts

    def count_pairs(self, radius):
        """How many pairs there are, each counted once."""
        pairs = self._empty(1, np.int64)
        self._call("count_pairs", radius, _address(pairs))
        return int(pairs[0])

    def pairs(self, radius):
        """The pairs themselves, (m, 2), each once and with the lower id first; in no order."""
        self._on_host("pairs")
        return _pairs(*self.neighbors(radius, half=True))

    def query(self, points, radius):
        """(offsets, ids) of the particles within radius of any points: as neighbors, for points that are not in the grid."""
        if self._lib is None:
            raise Error("Grid: nothing was built yet")
        at, m, stride = self._rows(points, self.desc.dim)
        _refuse_not_finite("points", at)
        return self._list("neighbors_at", m, _address(at), stride, m, radius)

    @property
    def order(self):
        """View: the particles in the grid's own order, in which near ones are near in memory (SORT, COUNT)."""
        return self._look(self._state.order, self.n, np.int32)


# ---- Tree: lbvh.h -----------------------------------------------------------------------------------------------------------------


class Tree(_Object):
    """Elements of any sizes: kind="boxes" (n, 2 * dim) or (n, 2, dim): lower, upper corner; "points" (n, dim); "spheres" (n, dim + 1): centre,
    radius; "triangles" (n, 3 * dim) or (n, 3, dim), or with indices=(n, 3) the vertices (v, dim).

        tree = Tree(boxes);                     pairs = tree.pairs()
        tree = Tree(points, "points");          ids, distances2 = tree.nearest(places, k=8)
        tree = Tree(corners, "triangles");      ids, t = tree.rays(origins, directions)
    """

    _header = "lbvh"

    def __init__(self, elements=None, kind="boxes", **fields):
        super().__init__(kind=kind, **fields)
        if elements is not None:
            self.build(elements)

    def _elements(self, elements):
        """(array, rows, stride, dim) of elements, as their kind has them."""
        kind, indexed = self._fields["kind"], self._fields.get("indices") is not None
        if kind not in _OPTIONS["lbvh.kind"].split():
            raise ValueError("kind must be one of %s" % _OPTIONS["lbvh.kind"])
        if np.ndim(elements) == 3 and not hasattr(elements, "__cuda_array_interface__"):
            elements = _flat_corners(np.asarray(elements), 0 if indexed else {"boxes": 2, "triangles": 3}.get(kind, 0))
        widths = {"boxes": (4, 6), "points": (2, 3), "spheres": (3, 4), "triangles": (2, 3) if indexed else (6, 9)}[kind]
        width = _width(elements, widths)
        return self._rows(elements, width) + (2 + widths.index(width),)

    def build(self, elements):
        """Builds the tree over other elements; memory is used again."""
        data, n, stride, dim = self._elements(elements)
        desc = self._new_desc(dim)
        if self._fields.get("indices") is not None:
            desc.vertices, n = n, len(self._fields["indices"])
            self._set_array(desc, "indices", n, 3)
        self._set_array(desc, "masks", n)
        self._kept["data"] = data, stride
        self._call("build", ctypes.byref(desc), _address(data), stride, n)
        return self

    def refit(self, elements):
        """The same elements after a small motion: the hierarchy stays, the boxes follow. Faster than a build."""
        data, n, stride, dim = self._elements(elements)
        if (self.desc.vertices if self.desc.indices else self.n) != n or self.desc.dim != dim:
            raise ValueError("refit needs as many elements as the build had")
        self._call("refit", _address(data), stride)
        self._kept["data"] = data, stride
        return self

    def count_pairs(self):
        """How many pairs of boxes overlap, each counted once."""
        pairs = self._empty(1, np.int64)
        self._call("count_pairs", _address(pairs))
        return int(pairs[0])

    def pairs(self):
        """The pairs of elements whose boxes overlap, (m, 2)."""
        m = self.count_pairs()
        self.check()
        pairs, needed = self._empty((m, 2), np.int32), self._empty(1, np.int64)
        self._call("pairs", _address(pairs), m, _address(needed))
        return pairs

    def overlaps(self, queries=None, kind="boxes", radius=0, half=False):
        """(offsets, ids): for each query the elements whose boxes it overlaps. Queries are boxes, "spheres", or "points" that reach
        `radius` far; None: the tree's own elements against the others (half: each pair in one of its two rows)."""
        if self._lib is None:
            raise Error("Tree: nothing was built yet")
        ask, rows = self._lib.lbvh_queries(), self.n
        _set_field(ask, "lbvh", "kind", kind)
        ask.radius, ask.flags = radius, int(half)
        if queries is not None:
            data, rows, stride = self._rows(queries, {"boxes": 2, "points": 1, "spheres": 1}[kind] * self.desc.dim + (kind == "spheres"))
            _refuse_bad_queries(data, kind)
            ask.data, ask.stride, ask.n = _address(data), stride, rows
            if rows == 0:
                return self._empty(0, np.int64), self._empty(0, np.int32)
        return self._list("overlaps", rows, ctypes.byref(ask))

    def query(self, points, radius):
        """(offsets, ids): the elements whose boxes are within radius of each point."""
        return self.overlaps(points, "points", radius)

    def nearest(self, points, k=1, reach=np.inf):
        """(ids, distances2), both (m, k): the k elements nearest to each point and the squares of their distances (to their boxes), nearest
        first; -1 and infinity where there are fewer than k within reach."""
        if self._lib is None:
            raise Error("Tree: nothing was built yet")
        at, m, stride = self._rows(points, self.desc.dim)
        _refuse_not_finite("points", at)
        ids, distances2 = self._empty((m, k), np.int32), self._empty((m, k), self._lib.dtype)
        found = self._empty(m, np.int32)
        if self._device:
            self._call("nearest", _address(at), stride, m, k, reach, 0, _address(ids), _address(distances2), _address(found))
        else:
            _raise(self._lib, "lbvh", self._lib.nearfield_nearest(ctypes.byref(self._struct), _address(at), stride, m, k, reach,
                   _address(ids), _address(distances2), _address(found)), self._state)
        return ids, distances2

    def rays(self, origins, directions, t_max=np.inf):
        """(ids, t): the first triangle that each ray meets, from either side, and where, in lengths of its direction; none: -1, t_max."""
        self._on_host("rays")
        if not self._lib or self._fields["kind"] != "triangles" or self.desc.dim != 3:
            raise Error("rays needs a tree of triangles in 3D")
        from_, m, _ = self._rows(np.ascontiguousarray(origins, self._lib.dtype), 3)
        along, m2, _ = self._rows(np.ascontiguousarray(directions, self._lib.dtype), 3)
        if m != m2:
            raise ValueError("%d origins, but %d directions" % (m, m2))
        _refuse_not_finite("origins", from_)
        _refuse_not_finite("directions", along)
        if not t_max >= 0:
            raise ValueError("t_max must not be negative or NaN, but is %s" % t_max)
        ids, t, (data, stride) = np.empty(m, np.int32), np.empty(m, self._lib.dtype), self._kept["data"]
        stride = stride or data.shape[1] * data.itemsize
        _raise(self._lib, "lbvh", self._lib.nearfield_rays(ctypes.byref(self._struct), _address(data), stride, _address(from_),
               _address(along), m, t_max, _address(ids), _address(t)), self._state)
        return ids, t


# ---- List: nlist.h ----------------------------------------------------------------------------------------------------------------


class List(_Object):
    """Contacts that last: each keeps bytes of its own from one build to the next, for as long as the two are near.

        contacts = List(points, radius=0.1, half=True, history="4f4", events=True)
        i, j = contacts.pairs().T
        contacts.history[:, 0] += 1             # one row for each pair
        contacts.build(points_after_a_step)     # history goes along

    radius: how near (with radii=(n,): plus both radii). skin: lists reach that much further, so that one serves many steps, until moved().
    history: a dtype for each entry. exclude: (m, 2) pairs that are not listed. box, periodic: as for Grid.
    The layout is NLIST_COMPACT: entries of a particle one after the other.
    """

    _header = "nlist"

    def __init__(self, points=None, radius=0, source=None, history=None, exclude=None, **fields):
        super().__init__(radius=radius, **fields)
        self._grid = None
        self._record = np.dtype(history) if history is not None else None
        self._excluded = None if exclude is None else _index_pairs(exclude)
        if self._record is not None:
            self._fields["history"] = self._record.itemsize
        if points is not None:
            self.build(points, source)

    def build(self, points, source=None, **changes):
        """Builds the list again and brings the history along. source: the Grid or Tree that finds the neighbours, built from these points
        (default: a Grid of its own). changes: fields that are new from now on, such as radii=..."""
        self._fields.update(changes)
        dim = _width(points, (2, 3))
        pos, n, stride = self._rows(points, dim)
        desc = self._new_desc(dim)
        for name in ("radii", "masks"):
            self._set_array(desc, name, n)
        self._exclude(desc, n)
        source = source or self._own_grid(points, desc)
        if (source._device, source._lib) != (self._device, self._lib):
            raise ValueError("the source must have the same precision, and live in the same place")
        self._kept["pos"] = pos
        self._call("build_" + source._header, ctypes.byref(desc), ctypes.byref(source._struct), _address(pos), stride, n)
        return self

    def _own_grid(self, points, desc):
        radii = self._kept.get("radii")
        if radii is not None and self._device:
            raise ValueError("radii on the GPU need a source: a Grid, or a Tree of spheres")
        largest = float(radii.max()) if radii is not None and len(radii) else 0.0
        fields = {name: self._fields[name] for name in ("min", "max", "periodic") if name in self._fields}
        reach = desc.radius + desc.skin + 2 * largest
        fields["cell"] = reach if 0 < reach < np.inf else None      # the list says what is wrong
        if self._grid is None:
            self._grid = Grid(stream=self._stream_object)
        self._grid._fields = fields
        return self._grid.build(points)

    def _exclude(self, desc, n):
        """Pairs become rows: each is named in the row of its first id."""
        if self._excluded is None:
            return
        self._on_host("exclude")
        pairs = self._excluded[np.argsort(self._excluded[:, 0], kind="stable")]
        if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
            raise ValueError("exclude names a particle that is not in 0 .. %d" % (n - 1))
        start = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=n))]).astype(np.int64)
        self._kept["exclude"] = start, np.ascontiguousarray(pairs[:, 1])
        desc.exclude_start, desc.exclude = (_address(a) for a in self._kept["exclude"])

    @property
    def _generation(self):
        self.check()    # on a GPU: fetches total, current and the counts of events
        return self._state.rows[self._state.current]

    def rows(self):
        """Views (offsets, ids): the entries of particle i are ids[offsets[i]:offsets[i + 1]]."""
        rows = self._generation
        return self._look(rows.start, self.n + 1, np.int64), self._look(rows.partner, self._state.total, np.int32)

    @property
    def history(self):
        """View: the bytes of each entry, as the dtype of `history`, yours to write. All 0 when a contact begins."""
        if self._record is None:
            raise Error("this list was made without history=dtype")
        return self._look(self._generation.history, self._state.total, self._record)

    def pairs(self):
        """(m, 2): particle and partner of each entry, in the order of `history`."""
        self._on_host("pairs")
        pairs, needed = np.empty((self._state.total, 2), np.int32), ctypes.c_int64()
        self._call("pairs", _address(pairs), len(pairs), ctypes.byref(needed), None, 0, None)
        return pairs

    def shifts(self, points):
        """(m, dim): how many periods to add to each partner's position for the image that is listed."""
        self._on_host("shifts")
        pos, n, stride = self._rows(points, self.desc.dim)
        if n != self.n:
            raise ValueError("the list has %d particles, not %d" % (self.n, n))
        _refuse_not_finite("points", pos)
        pairs, shifts = np.empty((self._state.total, 2), np.int32), np.zeros((self._state.total, 3), np.int32)
        self._call("pairs", _address(pairs), len(pairs), ctypes.byref(ctypes.c_int64()), _address(pos), stride, _address(shifts))
        return shifts[:, :self.desc.dim]

    def events(self, kind):
        """View: the contacts that have "begun", "persisted" or "ended" with the last build (events=True): i, j and the entry, for "ended"
        that of the list before."""
        which = ("begun", "persisted", "ended").index(kind)
        self.check()
        return self._look(self._state.event[which], self._state.event_count[which], EVENT)

    def moved(self, points):
        """Has anyone moved by more than half the skin since the build? Then it is time to build again."""
        pos, n, stride = self._rows(points, self.desc.dim)
        if n != self.n:
            return True
        if not self._device:
            moved = ctypes.c_int32()
            self._call("moved", _address(pos), stride, ctypes.byref(moved))
            return bool(moved.value)
        self._call("moved", _address(pos), stride)
        facts = self._lib.nlist_cuda_facts()
        _fetch(self._lib, facts, self._struct.d_facts, ctypes.sizeof(facts), self._stream)
        return facts.moved > 0

    def remap(self, new_id, n=None):
        """The particles were sorted, inserted or deleted: new_id[i] is what particle i is now called, -1: it is gone. n: how many there are
        now (default: as many as before). Contacts and their history go along."""
        names = self._vector(new_id, self.n, np.int32, "new_id")
        self._call("remap", _address(names), self.n if n is None else _count(n))
        return self

    def save(self):
        """Bytes from which load() makes the same list: for checkpoints."""
        self._on_host("save")
        needed = ctypes.c_int64()
        self._try("save", None, 0, ctypes.byref(needed))
        data = np.empty(needed.value, np.uint8)
        self._call("save", _address(data), len(data), ctypes.byref(needed))
        return data.tobytes()

    def load(self, data, dim=3, dtype=np.float64):
        """The way back, into a list that was made with the same fields. dim, dtype: those of the list, where this one was not built yet."""
        if self._lib is None:
            self._settle(np.dtype(dtype), False)
        desc = self._new_desc(self.desc.dim or dim)
        self._call("load", ctypes.byref(desc), data, len(data))
        return self


# ---- NBody: nbody.h ---------------------------------------------------------------------------------------------------------------


class NBody(_Object):
    """Bodies in the plane, of which each acts on all others: G m / d^2, or with law="inverse" G m / d (vortices, lines of charge).

        sim = NBody(order=6, softening=0.01)
        acc, potential = sim.fields(pos, mass)
        sim.estimate().mean_share               # the error, measured against the direct sum for a sample of bodies
    """

    _header = "nbody"

    def _bodies(self, pos, mass):
        pos, n, stride = self._rows(pos, 2)
        mass = None if mass is None else self._vector(mass, n, self._lib.dtype, "mass")
        self._kept["pos"], self._kept["mass"] = pos, mass
        return pos, n, stride, mass

    def build(self, pos, mass=None):
        """The tree alone, for fields_at. mass: None is 1 each."""
        pos, n, stride, mass = self._bodies(pos, mass)
        self._call("build", ctypes.byref(self._new_desc(0)), _address(pos), stride, _address(mass), n)
        return self

    def fields(self, pos, mass=None):
        """(acc (n, 2), potential (n,)) at the bodies."""
        pos, n, stride, mass = self._bodies(pos, mass)
        acc, potential = self._empty((n, 2), self._lib.dtype), self._empty(n, self._lib.dtype)
        self._call("fields", ctypes.byref(self._new_desc(0)), _address(pos), stride, _address(mass), n, _address(acc), _address(potential))
        self._kept["acc"] = acc
        return acc, potential

    def accelerations(self, pos, mass=None):
        """acc (n, 2): half the work of fields."""
        pos, n, stride, mass = self._bodies(pos, mass)
        acc = self._empty((n, 2), self._lib.dtype)
        self._call("fields", ctypes.byref(self._new_desc(0)), _address(pos), stride, _address(mass), n, _address(acc), None)
        self._kept["acc"] = acc
        return acc

    def fields_at(self, points):
        """(acc, potential) at any points, of the bodies of the last build."""
        if self._lib is None:
            raise Error("NBody: nothing was built yet")
        at, m, stride = self._rows(points, 2)
        _refuse_not_finite("points", at)
        acc, potential = self._empty((m, 2), self._lib.dtype), self._empty(m, self._lib.dtype)
        told = () if self._device else (None,)
        self._call("fields_at", _address(at), stride, m, _address(acc), _address(potential), *told)
        return acc, potential

    def estimate(self, samples=64, seed=1):
        """How far the last accelerations are from the direct sum, for a sample of bodies: an object with the fields of nbody_error
        (mean_share: on average, as a share of the sum of all terms)."""
        if "acc" not in self._kept:
            raise Error("estimate needs accelerations: call fields or accelerations first")
        error = self._lib.nbody_error()
        if not self._device:
            self._call("estimate", _address(self._kept["acc"]), samples, seed, ctypes.byref(error))
            return error
        out = self._empty(ctypes.sizeof(error), np.uint8)
        self._call("estimate", _address(self._kept["acc"]), samples, seed, _address(out))
        return type(error).from_buffer_copy(out.numpy().tobytes())

    def step(self, pos, vel, dt, mass=None, steps=1, integrator="leapfrog"):
        """Moves pos and vel by `steps` time steps, in place: arrays (n, 2), tightly packed, of the precision of this object."""
        place, n, stride, mass = self._bodies(pos, mass)
        speed, m, vel_stride = self._rows(vel, 2)
        for given, used, apart in ((pos, place, stride), (vel, speed, vel_stride)):
            if isinstance(given, (list, tuple)) or _address(given) != _address(used) or apart not in (0, 2 * self._lib.dtype.itemsize):
                raise ValueError("step works in place: pos and vel must be tightly packed arrays (n, 2) of %s" % self._lib.dtype)
            if not self._device and not given.flags.writeable:
                raise ValueError("step works in place: pos and vel must be writeable")
        if n != m:
            raise ValueError("%d positions, but %d velocities" % (n, m))
        acc = self._kept["acc"] = self._empty((n, 2), self._lib.dtype)
        bodies = self._lib.nbody_bodies(_address(place), _address(speed), _address(acc), _address(mass), n, 0)
        which = _OPTIONS["nbody.integrator"].split().index(integrator)
        others = set(self._others)
        for _ in range(steps):
            self._others |= others
            self._call("step", ctypes.byref(self._new_desc(0)), ctypes.byref(bodies), dt, which)

    _check_arguments = (None,)


# ---- neighbor_list: the interface of ASE --------------------------------------------------------------------------------------------


def neighbor_list(quantities, atoms, cutoff, self_interaction=False):
    """ase.neighborlist.neighbor_list, found through a grid: the same pairs, and the same numbers to the last bit.

        i, j, S, d = neighbor_list("ijSd", atoms, 5.0)
        i, j, D = neighbor_list("ijD", (positions, cell, pbc), 5.0)

    quantities  i, j: the two atoms, sorted by i; d, D: distance and vector from i to j; S: periods added to j, so that
                D = positions[j] - positions[i] + S @ cell
    atoms       an ASE Atoms object, or (positions (n, 3), cell, pbc); cell: 3 lengths, or 3 vectors, of any shape; pbc: one or three flags
    cutoff      pairs nearer than that (<) are listed, with as many images of an atom as there are, also beyond half of the box; or a radius
                for each atom: pairs nearer than the sum of both
    All in double precision: the grid proposes pairs a little beyond the cutoff, and the distance of the positions as given decides.
    """
    if set(quantities) - set("ijdDS"):
        raise ValueError("quantities may be i, j, d, D and S, not %r" % quantities)
    positions, cell, pbc = atoms if isinstance(atoms, tuple) else (atoms.positions, atoms.cell, atoms.pbc)
    positions, cell = _atom_rows(positions), _cell_vectors(cell)
    periodic = np.flatnonzero(np.broadcast_to(pbc, 3))
    reach, radii = _cutoffs(cutoff, len(positions))

    i, j, S = _near_images(positions, cell, periodic, reach)
    D = positions[j] - positions[i] + S.dot(cell)
    d = np.sqrt(np.sum(D * D, axis=1))
    near = d < (reach if radii is None else radii[i] + radii[j])
    if not self_interaction:
        near &= (i != j) | S.any(axis=1)
    found = {"i": i, "j": j, "d": d, "D": D, "S": S}
    result = tuple(found[q][near] for q in quantities)
    return result if len(result) > 1 else result[0]


def _atom_rows(positions):
    positions = np.asarray(positions, float)
    if positions.shape == (0,):
        positions = positions.reshape(0, 3)
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise ValueError("positions: expected an array of shape (n, 3), not %s" % (positions.shape,))
    _refuse("positions", ~np.isfinite(positions).all(axis=1), "is not finite")
    return positions


def _cell_vectors(cell):
    cell = np.asarray(cell, float)
    if cell.shape not in ((3,), (3, 3)):
        raise ValueError("cell: expected 3 lengths, or 3 vectors of shape (3, 3), not %s" % (cell.shape,))
    if not np.isfinite(cell).all():
        raise ValueError("the cell is not finite")
    return np.diag(cell) if cell.shape == (3,) else cell


def _cutoffs(cutoff, n):
    """The reach of all, and the radius of each atom, or None."""
    if isinstance(cutoff, dict):
        raise TypeError("cutoff must be a number or a radius for each atom; take the largest, and select pairs from the result")
    if np.ndim(cutoff) == 0:
        reach, radii = float(cutoff), None
    else:
        radii = np.asarray(cutoff, float)
        if radii.shape != (n,):
            raise ValueError("cutoff: expected one number, or one for each of the %d atoms, not an array of shape %s" % (n, radii.shape))
        _refuse("cutoff", ~((radii >= 0) & (radii < np.inf)), "is not a radius: it must be finite, and not negative")
        reach = 2 * float(radii.max(initial=0))
    if not 0 < reach < np.inf and (radii is None or n > 0):
        raise ValueError("cutoff must be positive and finite: nothing is nearer than %s" % reach)
    return reach, radii


@np.errstate(over="ignore", invalid="ignore")      # what overflows is refused
def _near_images(positions, cell, periodic, reach):
    """i, j, S of all that may be within reach: atoms are moved into the cell, images that can reach into it are added, and a grid without
    periodic axes does the rest."""
    n = len(positions)
    if n == 0:
        return np.zeros(0, int), np.zeros(0, int), np.zeros((0, 3), int)
    vectors = cell[periodic]
    if len(periodic) and np.linalg.matrix_rank(vectors) < len(periodic):
        raise ValueError("the cell vectors of periodic axes must be independent and not 0")
    # Its columns give the fraction of a cell vector; 1 / their lengths are the heights of the cell.
    inverse = np.linalg.pinv(vectors) if len(periodic) else np.zeros((3, 0))
    wrapped = np.floor(positions @ inverse)
    inside = positions - wrapped @ vectors
    reach = reach + _slack(positions, wrapped, vectors, reach)
    images, ids, shifts = _images(inside, vectors, inverse, reach)

    counts, found = _near_points(_image_grid(images, reach), inside, reach)
    i = np.repeat(np.arange(n), counts)
    j = ids[found]
    S = np.zeros((len(i), 3), int)
    S[:, periodic] = shifts[found] + wrapped[i] - wrapped[j]
    return i, j, S


def _slack(positions, wrapped, vectors, reach):
    """How far roundings may move an atom. Where that is more than the reach, nobody can say who is near; and the images within both
    would be far more than those within the cutoff."""
    rounding = 1e-13 * (np.abs(positions) + np.abs(wrapped) @ np.abs(vectors)).max(axis=1)
    rounding[(np.abs(wrapped) >= 2**53).any(axis=1)] = np.inf       # S would not be exact
    worst = int(rounding.argmax())
    if not rounding[worst] <= reach:
        raise ValueError("positions: row %d is %s, too far away to tell in double precision who is nearer than the cutoff, %g"
                         % (worst, positions[worst].tolist(), reach))
    return rounding[worst] + 1e-13 * (np.abs(vectors).max(initial=0) + reach)


def _images(inside, vectors, inverse, reach):
    """The atoms and their images that can reach into the cell: places, whose they are, and the periods added."""
    margins = reach * np.linalg.norm(inverse, axis=0) + 1e-9
    _refuse_too_many(len(inside) * np.prod(1 + 2 * margins), "images of atoms are within the cutoff of the cell")
    images, ids, shifts = inside, np.arange(len(inside)), np.zeros((len(inside), len(margins)))
    for axis, margin in enumerate(margins):
        fraction = images @ inverse[:, axis]
        first = np.ceil(-margin - fraction)
        count = (np.floor(1 + margin - fraction) - first).astype(int) + 1
        which = np.repeat(np.arange(len(images)), count)
        periods = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        images, ids, shifts = images[which] + periods[:, None] * vectors[axis], ids[which], shifts[which]
        shifts[:, axis] = periods
    return images, ids, shifts


def _near_points(grid, points, reach):
    """How many are near each point, and who: in parts, so that too many are noticed early."""
    counts, ids, total = [], [], 0
    step = len(points) // 64 + 1
    for first in range(0, len(points), step):
        offsets, found = grid.query(points[first:first + step], reach)
        total += len(found)
        _refuse_too_many(total, "pairs are within the cutoff")
        counts.append(np.diff(offsets))
        ids.append(found)
    return np.concatenate(counts), np.concatenate(ids)


def _refuse_too_many(count, what):
    """About 200 bytes are needed for each."""
    if not 200.0 * count <= _machine_bytes():
        raise ValueError("cutoff: %.3g or more %s, too many for the memory of this machine" % (count, what))


def _machine_bytes():
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):       # not known here: what a Grid can number
        return 200.0 * (2**31 - 1024)


def _image_grid(points, reach):
    """Cells as wide as the radius; hashed where a box of them would have far more cells than points, as around an atom that flew away."""
    cells = np.prod(np.ptp(points, axis=0) / reach + 1)
    return Grid(points, cell=reach, unbounded=int(not cells <= 8.0 * len(points) + 1000))


# ---- arrays on the GPU --------------------------------------------------------------------------------------------------------------


class DeviceArray:
    """An array on the GPU. cupy.asarray(a) and torch.as_tensor(a, device="cuda") look at the same memory, a.numpy() copies it to the host.
    CuPy waits for the stream that fills it; torch does not: there be on that stream, or call check() before."""

    def __init__(self, block, offset, shape, dtype):
        self.shape, self.dtype = (shape if isinstance(shape, tuple) else (int(shape),)), np.dtype(dtype)
        self._block, self._offset = block, offset

    def __len__(self):
        return self.shape[0]

    @property
    def address(self):
        return self._block.address + self._offset

    @property
    def __cuda_array_interface__(self):
        base, inner = self.dtype.subdtype or (self.dtype, ())
        return {"shape": self.shape + inner, "typestr": base.str, "descr": base.descr, "data": (self.address, False), "strides": None,
                "version": 3, "stream": self._block.stream or 1}

    def __getitem__(self, key):
        """a[k]: copied to the host; a[k:l]: a view."""
        row = _bytes(self.shape[1:], self.dtype)
        if isinstance(key, slice):
            first, last, step = key.indices(len(self))
            if step != 1:
                raise IndexError("steps other than 1: by cupy.asarray(a)")
            return DeviceArray(self._block, self._offset + first * row, (max(last - first, 0),) + self.shape[1:], self.dtype)
        if not -len(self) <= key < len(self):
            raise IndexError(key)
        return self[key % len(self):key % len(self) + 1].numpy()[0]

    def numpy(self):
        """A copy on the host; waits for the stream."""
        out = np.empty(self.shape, self.dtype)
        _fetch(self._block.lib, out.ctypes.data_as(ctypes.c_void_p), self.address, out.nbytes, self._block.stream)
        return out

    def __array__(self, dtype=None, copy=None):
        return self.numpy().astype(dtype or self.dtype.base, copy=False)


class _DeviceBlock:
    """Memory on the GPU that belongs to a stream. Given back, in the stream's order, when nobody looks at it any more."""

    def __init__(self, lib, stream, size):
        self.lib, self._stream_object, self.stream, self.size = lib, stream, _stream_handle(stream), size
        self.address = lib.nearfield_cuda_alloc(max(size, 1), self.stream)
        if not self.address:
            raise Error("the GPU has no %d bytes left, or there is none" % size)

    def __del__(self):
        if getattr(self, "address", None):
            self.lib.nearfield_cuda_free(self.address, self.stream)


def _stream_handle(stream):
    """cudaStream_t as an int, of CuPy's or torch's streams too. 1 is another name of 0, the legacy default stream."""
    for name in ("ptr", "cuda_stream"):
        stream = getattr(stream, name, stream)
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    handle = int(stream or 0)
    return 0 if handle == 1 else handle


def _device_rows(user, values, width, dtype=None):
    """As _Object._rows, for anything with __cuda_array_interface__; width None: one dimension. What it was made on comes first."""
    if not hasattr(values, "__cuda_array_interface__"):
        raise ValueError("this object lives on the GPU, that array does not")
    about, dtype = values.__cuda_array_interface__, np.dtype(dtype or user._lib.dtype)
    shape, size = tuple(about["shape"]), dtype.itemsize
    if np.dtype(about["typestr"]) != dtype:
        raise ValueError("expected an array of %s, not %s" % (dtype, about["typestr"]))
    if shape == (0,) and width is not None:
        shape = (0, width)
    strides = about.get("strides") or (size,) if width is None else about.get("strides") or (size * width, size)
    if len(shape) != (1 if width is None else 2) or (width and shape[1] != width):
        raise ValueError("expected an array of shape %s, not %s" % ("(n,)" if width is None else "(n, %d)" % width, shape))
    packed = strides[-1] == size and strides[0] >= size * (width or 1) and strides[0] % size == 0
    if shape[0] > 1 and not packed:
        raise ValueError("rows must ascend in memory, and their numbers be tightly packed")
    stream = _stream_handle(about.get("stream") or user._stream)
    if stream != user._stream:
        _order(user._lib, stream, user._stream)
        user._others.add(stream)
    return _Borrowed(values, about["data"][0] or 0, shape), _count(shape[0]), strides[0] if shape[0] > 1 else 0


class _Borrowed:
    """Somebody's array on the GPU, kept alive."""

    def __init__(self, owner, address, shape):
        self.owner, self.address, self.shape = owner, address, shape

    def __len__(self):
        return self.shape[0]


def _order(lib, first, then):
    """What is called on one stream from now on comes after what was called on another."""
    error = lib.nearfield_cuda_order(first, then)
    if error:
        raise Error("CUDA error %d while one stream waits for another" % error)


def _fetch(lib, to, address, size, stream):
    error = lib.nearfield_cuda_fetch(to if isinstance(to, ctypes.c_void_p) else ctypes.byref(to), address, size, stream)
    if error:
        raise Error("CUDA error %d while copying to the host" % error)


# ---- memory: the headers' allocator hooks. Blocks are Python's, so that a view keeps its block alive --------------------------------


class _Memory:
    def __init__(self):
        self._blocks = {}       # by address

    def nbytes(self):
        return sum(self._size(block) for block in self._blocks.values())

    def _store(self, make, size):
        try:
            address, block = make(size)
        except (MemoryError, Error):
            return None
        self._blocks[address] = block
        return address

    def _drop(self, address):
        self._blocks.pop(address, None)

    def view(self, address, shape, dtype):
        """The array of this shape that begins at that address of one of the blocks."""
        for start, block in self._blocks.items():
            if start <= address and address + _bytes(shape, dtype) <= start + self._size(block):
                return self._part(block, address - start, shape, dtype)
        raise Error("no block of memory holds that array")


class _HostMemory(_Memory):
    def hooks(self):
        if not hasattr(self, "_hooks"):
            self._hooks = (_ALLOC(lambda size, user: self._store(self._new, size)), _FREE(lambda address, size, user: self._drop(address)))
        return tuple(ctypes.cast(hook, ctypes.c_void_p) for hook in self._hooks)

    @staticmethod
    def _new(size):
        raw = np.empty(size + 64, np.uint8)
        raw = raw[-raw.ctypes.data % 64:][:size]
        return raw.ctypes.data, raw

    @staticmethod
    def _size(block):
        return block.size

    @staticmethod
    def _part(block, offset, shape, dtype):
        return block[offset:][:_bytes(shape, dtype)].view(dtype.base).reshape(
            (shape if isinstance(shape, tuple) else (shape,)) + dtype.shape)


class _DeviceMemory(_Memory):
    def __init__(self, lib, stream):
        super().__init__()
        self._lib, self._stream = lib, stream

    def hooks(self):
        if not hasattr(self, "_hooks"):
            self._hooks = (_CUDA_ALLOC(lambda size, stream, user: self._store(self._new, size)),
                           _CUDA_FREE(lambda address, size, stream, user: self._drop(address)))
        return tuple(ctypes.cast(hook, ctypes.c_void_p) for hook in self._hooks)

    def _new(self, size):
        block = _DeviceBlock(self._lib, self._stream, size)
        return block.address, block

    @staticmethod
    def _size(block):
        return block.size

    @staticmethod
    def _part(block, offset, shape, dtype):
        return DeviceArray(block, offset, shape, dtype)


def _release(free, struct, memory):
    """Called when the object is gone, or at exit. `memory` has the hooks that free() calls."""
    free(ctypes.byref(struct))


# ---- small helpers ------------------------------------------------------------------------------------------------------------------


def _address(array):
    """What a pointer argument gets."""
    if array is None:
        return None
    if isinstance(array, (DeviceArray, _Borrowed)):
        return array.address
    return array.__cuda_array_interface__["data"][0] if hasattr(array, "__cuda_array_interface__") else array.ctypes.data


def _bytes(shape, dtype):
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize


def _count(n):
    if n >= 2**31 - 1024:
        raise ValueError("more than 2^31 - 1024 elements")
    return n


def _cut(array, count):
    """The first `count` entries, without holding on to far more memory than that."""
    part = array[:count]
    return part.copy() if isinstance(part, np.ndarray) and 2 * count < len(array) else part


def _dtype_of(values):
    """float32 stays, everything else is double."""
    if hasattr(values, "__cuda_array_interface__"):
        dtype = np.dtype(values.__cuda_array_interface__["typestr"])
        if dtype not in (np.float32, np.float64):
            raise ValueError("arrays on the GPU must be float32 or float64, not %s" % dtype)
        return dtype
    return np.dtype(np.float32 if getattr(values, "dtype", None) == np.float32 else np.float64)


def _width(values, allowed):
    """Numbers per row."""
    shape = values.__cuda_array_interface__["shape"] if hasattr(values, "__cuda_array_interface__") else np.shape(values)
    if len(shape) == 2 and shape[1] in allowed:
        return shape[1]
    if len(shape) == 1 and shape[0] == 0:
        return allowed[-1]
    raise ValueError("expected an array of shape %s, not %s" % (" or ".join("(n, %d)" % w for w in allowed), tuple(shape)))


def _flat_corners(values, corners):
    """(n, corners, dim) as (n, corners * dim); 0: such elements have no corners."""
    n, given, dim = values.shape
    if not corners:
        raise ValueError("expected an array of two dimensions, not of shape %s" % (values.shape,))
    if given != corners or dim not in (2, 3):
        raise ValueError("expected an array of shape (n, %d, 2) or (n, %d, 3), not %s" % (corners, corners, values.shape))
    return values.reshape(n, corners * dim)


def _refuse(name, bad, why):
    """A ValueError that names the first bad row."""
    if bad.any():
        raise ValueError("%s: row %d %s" % (name, np.flatnonzero(bad)[0], why))


def _refuse_not_finite(name, values):
    """On a GPU the headers' own rule holds: nothing is near such a point."""
    if isinstance(values, np.ndarray):
        _refuse(name, ~np.isfinite(values).all(axis=1), "is NaN or infinite")


def _refuse_bad_queries(values, kind):
    """Boxes may be infinite, and spheres as large."""
    if not isinstance(values, np.ndarray):
        return
    if kind == "points":
        _refuse_not_finite("points", values)
        return
    _refuse("queries", np.isnan(values).any(axis=1), "is NaN")
    if kind == "spheres":
        _refuse("queries", values[:, -1] < 0, "has a negative radius")


def _index_pairs(values):
    pairs = np.asarray(values, np.int32)
    if pairs.shape != (0,) and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise ValueError("exclude: expected an array of shape (m, 2), not %s" % (pairs.shape,))
    return pairs.reshape(-1, 2)


def _pairs(offsets, ids):
    first = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    return np.stack([np.minimum(first, ids), np.maximum(first, ids)], axis=1)


def _set_field(struct, header, name, value):
    """A field of a desc: a number, a word of an enum, or as many numbers as it holds."""
    words = _OPTIONS.get(header + "." + name)
    if isinstance(value, str):
        if not words or value not in words.split():
            raise ValueError("%s=%r: expected one of %s" % (name, value, words))
        value = words.split().index(value)
    field = getattr(struct, name)
    if not isinstance(field, ctypes.Array):
        setattr(struct, name, value)
        return
    room = min(len(field), struct.dim) if hasattr(struct, "dim") else len(field)
    if np.ndim(value) and len(value) != room:
        raise ValueError("%s: expected one number, or %d" % (name, room))
    for k, number in enumerate(np.broadcast_to(value, room)):
        field[k] = number.item()


def _raise(lib, header, result, state):
    """Nothing, if all is well; else an Error with the header's text, and the values of the fields that the text names."""
    if result == 0:
        return
    text = getattr(lib, header + "_result_text")(result).decode()
    named = re.findall(r"(?:grid|tree|list|sim)\.(\w+)", text)
    values = ["%s = %s" % (name, getattr(state, name)) for name in named if hasattr(state, name)]
    raise Error("%s: %s%s" % (header + ".h", text, " [%s]" % ", ".join(values) if values else ""))


# ---- the library --------------------------------------------------------------------------------------------------------------------

_path = None


def load(path):
    """Takes this library from now on, instead of looking beside nearfield.py, in build/ and in $NEARFIELD_LIBRARY."""
    global _path
    _path = os.fspath(path)
    _library.cache_clear()


def _find(dtype, device):
    """For doubles CUDA has a library of its own, libnearfield64_cuda.so."""
    here = os.path.dirname(os.path.abspath(__file__))
    build = os.path.join(here, "..", "..", "build")
    names = ["libnearfield_cuda.so"] if device else ["libnearfield.so", "libnearfield_cuda.so"]
    given = _path or os.environ.get("NEARFIELD_LIBRARY")
    folders = here, build, os.path.join(build, "cuda")
    for place in [given] if given else [os.path.join(folder, name) for name in names for folder in folders]:
        if dtype == np.float64:
            folder, name = os.path.split(place)
            place = os.path.join(folder, name.replace("nearfield_", "nearfield64_"))
        if os.path.exists(place):
            return place
    raise Error("no %s: make %s, or nearfield.load(path)" % (names[0], "shared-cuda" if device else "shared"))


@functools.lru_cache(maxsize=None)
def _library(dtype, device):
    """One precision's half of the library, with its structs and functions by the names that they have in the headers."""
    dll = ctypes.CDLL(_find(dtype, device))
    double = dtype == np.float64
    lib = type("Library", (), {"dtype": dtype})()
    types = dict(_TYPES, real=ctypes.c_double if double else ctypes.c_float)
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", _STRUCTS + _CUDA_STRUCTS * device, re.S):
        types[name] = type(name, (ctypes.Structure,), {"_fields_": list(_declare(body, types))})
        setattr(lib, name, types[name])
    real = lambda name: name.replace("_", "_f64_", 1) if double else name
    for result, name, arguments in re.findall(r"([\w ]+[ *])(\w+)\(([^)]*)\);", _FUNCTIONS + _CUDA_FUNCTIONS * device):
        try:
            function = dll[real(name)]
        except AttributeError:
            raise Error("%s has no %s: it was built without %s" % (dll._name, real(name), "doubles" if double else "floats")) from None
        pointer = ctypes.c_char_p if "char" in result else ctypes.c_void_p
        function.restype = None if result.strip() == "void" else _parameter(result, types, pointer)
        function.argtypes = [_parameter(a, types, ctypes.c_void_p) for a in arguments.split(",") if a.strip() != "void"]
        setattr(lib, name, function)
    _check_layout(dll, real("nearfield_sizes"), lib, types)
    return lib


def _declare(body, types):
    """(name, type) of each field of C declarations, such as "int32_t n; real min[3], max[3]; int32_t *ids"."""
    for line in re.sub(r"\b(const|struct|unsigned)\b", "", body).split(";"):
        words = line.split(None, 1)
        for declared in words[1].split(",") if words else ():
            name, ctype = declared.strip(), types.get(words[0], _named(words[0]))
            if name.startswith("*"):
                name, ctype = name[1:], ctypes.c_void_p
            for size in reversed(re.findall(r"\[(\w+)\]", name)):
                ctype = ctype * (int(size) if size.isdigit() else _CONSTANTS[size])
            yield name.split("[")[0], ctype


def _parameter(text, types, pointer):
    text = text.replace("const", "").strip()
    return pointer if "*" in text else types.get(text.split()[0], _named(text.split()[0]))


def _named(word):
    """Types that follow from their name: ugrid_real, ugrid_block, ugrid_allocator; all others are enums."""
    return _Allocator if word.endswith("_allocator") else _Block if word.endswith("_block") else ctypes.c_int


def _check_layout(dll, name, lib, types):
    """A library of another version has other structs: better no call than a wrong one."""
    if lib.ugrid_version() != _VERSION:
        raise Error("that library is of version %d, this file of %d (10000 * major + 100 * minor + patch)" % (
            lib.ugrid_version(), _VERSION))
    ours = [ctypes.sizeof(types[struct]) for struct in re.findall(r"struct (\w+) \{", _STRUCTS)]
    theirs = list((ctypes.c_int32 * len(ours)).in_dll(dll, name))
    if ours != theirs:
        raise Error("that library was built from other headers: its structs have %s bytes, not %s" % (theirs, ours))


class _Allocator(ctypes.Structure):
    _fields_ = [("alloc", ctypes.c_void_p), ("free", ctypes.c_void_p), ("user", ctypes.c_void_p)]


class _Block(ctypes.Structure):
    _fields_ = [("memory", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


_VERSION = 100
_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_CUDA_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)
_CUDA_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)

_TYPES = {name: getattr(ctypes, "c_" + name.replace("_t", "")) for name in
          "int int32_t int64_t uint32_t uint64_t uint8_t size_t double".split() if name != "size_t"}
_TYPES.update(size_t=ctypes.c_size_t, char=ctypes.c_ubyte)

_CONSTANTS = {"UGRID_BLOCKS": 8, "LBVH_BLOCKS": 4, "NLIST_BLOCKS": 32, "NBODY_BLOCKS": 8, "NLIST_EVENT_KINDS": 3, "NBODY_MAX_ORDER": 12,
              "UGRID_CUDA_SCRATCH": 7, "LBVH_CUDA_SCRATCH": 8, "NLIST_CUDA_SCRATCH": 12, "NBODY_CUDA_SCRATCH": 8}

# Enums, in their order; fields that point to arrays, and of what (None: the real type).
_OPTIONS = {
    "ugrid.method": "auto count sort fixed list list_packed", "ugrid.placement": "loose tight",
    "ugrid.walk": "auto cells strips modular hybrid", "ugrid.cell_order": "rows morton", "ugrid.slot_layout": "by_column by_row",
    "lbvh.kind": "boxes points spheres triangles", "lbvh.builder": "merge split",
    "nbody.method": "auto direct virtual_particles force_nodes", "nbody.law": "inverse_square inverse",
    "nbody.sources": "auto mass_centres chebyshev", "nbody.stage": "fast one_thread many_threads shared_memory",
    "nbody.integrator": "leapfrog euler"}
_ARRAYS = {"radii": None, "masks": np.uint32, "indices": np.int32}

# From the headers, without their comments; `real` stands for ugrid_real and so on. tests/python/run.sh compares all of it with them.
_STRUCTS = """
struct ugrid_desc {
    int32_t dim; real min[3], max[3]; real cell; int32_t split; int32_t periodic[3]; int32_t unbounded; int32_t buckets;
    ugrid_method method; ugrid_placement placement; real size; ugrid_walk walk; ugrid_cell_order cell_order; int32_t slots;
    ugrid_slot_layout slot_layout; int32_t no_records; int32_t coherent; int32_t inverse; int32_t deterministic; int64_t max_cells;
    ugrid_allocator allocator; ugrid_cuda_allocator cuda_allocator;
};
struct ugrid_axis {
    real min, max; real length; real half; real per_cell; real last; real margin; int32_t cells; int32_t periodic; int32_t span;
};
struct ugrid {
    ugrid_desc desc; const char *reason; int32_t n; int32_t cell_count; int32_t entries; int32_t spans; ugrid_axis axis[3];
    real tight_half; int32_t third; int32_t built; int32_t *start; int32_t *order; int32_t *inverse; ugrid_record *record; int32_t *count; int32_t *slot;
    int32_t *head; int32_t *next; const real *pos; size_t stride; int32_t bad_id; int32_t needed_slots; int64_t needed_cells;
    int32_t cuda_error; ugrid_block block[UGRID_BLOCKS];
};
struct lbvh_desc {
    int32_t dim; lbvh_kind kind; real radius; const int32_t *indices; int32_t vertices; real min[3], max[3]; int32_t bits;
    lbvh_builder builder; const uint32_t *masks; int32_t keep_codes; int32_t skip_invalid; lbvh_allocator allocator;
    lbvh_cuda_allocator cuda_allocator;
};
struct lbvh_lattice { real origin[3]; real scale; real last; };
struct lbvh {
    lbvh_desc desc; int32_t n; int32_t first_leaf; int32_t built; lbvh_lattice lattice; lbvh_node *node; uint8_t *prefix; uint32_t *mask;
    uint64_t *code; int32_t bad_id; int32_t cuda_error; lbvh_block block[LBVH_BLOCKS];
};
struct lbvh_queries {
    lbvh_kind kind; const real *data; size_t stride; int32_t n; real radius; uint32_t filter; const uint32_t *filters; int flags;
};
struct nlist_desc {
    int32_t dim; real radius; const real *radii; real skin; nlist_layout layout; int32_t width; int32_t half; int32_t history;
    int32_t events; const uint32_t *masks; const int64_t *exclude_start; const int32_t *exclude; int32_t periodic[3];
    real min[3], max[3]; int32_t deterministic; int64_t capacity; int32_t grow; int32_t if_moved; nlist_allocator allocator;
    nlist_cuda_allocator cuda_allocator;
};
struct nlist_axis { real min, max; real length; real half; int32_t periodic; };
struct nlist_rows {
    int32_t n; int32_t width; int64_t entries; int64_t capacity; int32_t touched_count; int32_t *count; int32_t *slot; int64_t *start;
    int32_t *partner; int32_t *own; int32_t *link; int32_t *head; int32_t *touched; int64_t *uid; real *reference;
    unsigned char *history;
};
struct nlist {
    nlist_desc desc; nlist_axis axis[3]; int32_t n; int32_t keys; int32_t remembers; int32_t built; int32_t triangles; int32_t exact;
    int32_t current; const int32_t *d_current;
    nlist_rows rows[2]; nlist_event *event[NLIST_EVENT_KINDS]; int64_t event_count[NLIST_EVENT_KINDS]; int64_t total;
    int64_t next_uid; int32_t bad_id; int32_t needed_width; int64_t needed_entries; int32_t cuda_error;
    nlist_block block[NLIST_BLOCKS];
};
struct nbody_desc {
    nbody_method method; nbody_law law; int32_t levels; int32_t leaf; int32_t order; nbody_sources sources; int32_t subcells;
    real gravity; real softening; real min[2], size; size_t mass_stride; size_t acc_stride; nbody_stage stage; int32_t max_cells;
    nbody_allocator allocator; nbody_cuda_allocator cuda_allocator;
};
struct nbody_rule {
    int32_t side; int32_t linear; int32_t stencil; real t[NBODY_MAX_ORDER]; real scale[NBODY_MAX_ORDER];
    real to_child[2][NBODY_MAX_ORDER][NBODY_MAX_ORDER];
};
struct nbody {
    int32_t n; nbody_desc desc; nbody_frame *frame; int32_t *id; real *x, *y, *m; nbody_cell *cell; nbody_rule rule;
    int32_t per_cell; int32_t *made; real *vx, *vy; real *vm; real *vxx, *vxy, *vyy; int32_t nodes; real *fx, *fy, *fp; real *table;
    size_t table_step; int32_t series; real *moment, *local; int32_t bad_id; int32_t cuda_error; int32_t table_kind; nbody_block block[NBODY_BLOCKS];
};
struct nbody_error {
    int32_t samples; double mean; double worst; double mean_share, share; double direction; double length; double bias;
};
struct nbody_bodies { real *pos, *vel, *acc; const real *mass; int32_t n; int32_t fresh; };
"""

# (`device` is a struct around the one object that it holds.)
_CUDA_STRUCTS = """
struct ugrid_cuda {
    ugrid device; ugrid_cuda_facts *d_facts; struct CUstream_st *stream; ugrid_block block[UGRID_BLOCKS];
    ugrid_block scratch[UGRID_CUDA_SCRATCH];
};
struct lbvh_cuda {
    lbvh device; lbvh_cuda_facts *d_facts; struct CUstream_st *stream; lbvh_block block[LBVH_BLOCKS];
    lbvh_block scratch[LBVH_CUDA_SCRATCH];
};
struct nlist_cuda_facts {
    int32_t current; int32_t filled; int32_t needed_width; int32_t first_bad; int32_t moved; int32_t reach_bits; int32_t sticks_bits;
    int32_t touched[2]; uint64_t entries[2]; uint64_t total; uint64_t events[NLIST_EVENT_KINDS]; int64_t next_uid; double skin;
    int32_t triangles; int32_t overflow; int32_t full;
};
struct nlist_cuda {
    nlist device; nlist_cuda_facts *d_facts; struct CUstream_st *stream; int64_t wanted_entries; int32_t wanted_width;
    int32_t by_radii; int32_t by_index; nlist_block scratch[NLIST_CUDA_SCRATCH];
};
struct nbody_cuda {
    nbody device; struct CUstream_st *stream; nbody_block block[NBODY_BLOCKS]; nbody_block scratch[NBODY_CUDA_SCRATCH];
};
"""

_FUNCTIONS = """
int ugrid_version(void);
const char *ugrid_result_text(ugrid_result);
ugrid_result ugrid_build(ugrid *, const ugrid_desc *, const real *, size_t, int32_t);
void ugrid_free(ugrid *);
ugrid_result ugrid_validate(const ugrid *);
ugrid_result ugrid_count_pairs(const ugrid *, real, int64_t *);
ugrid_result ugrid_count_neighbors(const ugrid *, real, int, int32_t *);
ugrid_result ugrid_neighbors(const ugrid *, real, int, int64_t *, int32_t *, int64_t, int64_t *);
ugrid_result ugrid_neighbors_at(const ugrid *, const real *, size_t, int32_t, real, int64_t *, int32_t *, int64_t, int64_t *);
const char *lbvh_result_text(lbvh_result);
lbvh_result lbvh_build(lbvh *, const lbvh_desc *, const real *, size_t, int32_t);
lbvh_result lbvh_refit(lbvh *, const real *, size_t);
void lbvh_free(lbvh *);
lbvh_result lbvh_validate(const lbvh *);
lbvh_result lbvh_count_pairs(const lbvh *, int64_t *);
lbvh_result lbvh_pairs(const lbvh *, int32_t *, int64_t, int64_t *);
lbvh_result lbvh_overlaps(const lbvh *, const lbvh_queries *, int64_t *, int32_t *, int64_t, int64_t *);
lbvh_result nearfield_nearest(const lbvh *, const real *, size_t, int32_t, int32_t, real, int32_t *, real *, int32_t *);
lbvh_result nearfield_rays(const lbvh *, const real *, size_t, const real *, const real *, int32_t, real, int32_t *, real *);
const char *nlist_result_text(nlist_result);
nlist_result nlist_build_ugrid(nlist *, const nlist_desc *, const ugrid *, const real *, size_t, int32_t);
nlist_result nlist_build_lbvh(nlist *, const nlist_desc *, const lbvh *, const real *, size_t, int32_t);
void nlist_free(nlist *);
nlist_result nlist_moved(const nlist *, const real *, size_t, int32_t *);
nlist_result nlist_remap(nlist *, const int32_t *, int32_t);
nlist_result nlist_pairs(const nlist *, int32_t *, int64_t, int64_t *, const real *, size_t, int32_t *);
nlist_result nlist_save(const nlist *, void *, int64_t, int64_t *);
nlist_result nlist_load(nlist *, const nlist_desc *, const void *, int64_t);
nlist_result nlist_validate(const nlist *);
const char *nbody_result_text(nbody_result);
nbody_result nbody_build(nbody *, const nbody_desc *, const real *, size_t, const real *, int32_t);
nbody_result nbody_fields(nbody *, const nbody_desc *, const real *, size_t, const real *, int32_t, real *, real *);
nbody_result nbody_fields_at(const nbody *, const real *, size_t, int32_t, real *, real *, int32_t *);
nbody_result nbody_estimate(const nbody *, const real *, int32_t, uint32_t, nbody_error *);
nbody_result nbody_step(nbody *, const nbody_desc *, nbody_bodies *, real, nbody_integrator);
nbody_result nbody_validate(const nbody *);
void nbody_free(nbody *);
"""

_CUDA_FUNCTIONS = """
void *nearfield_cuda_alloc(size_t, struct CUstream_st *);
int nearfield_cuda_free(void *, struct CUstream_st *);
int nearfield_cuda_fetch(void *, const void *, size_t, struct CUstream_st *);
int nearfield_cuda_order(struct CUstream_st *, struct CUstream_st *);
ugrid_result ugrid_cuda_fit(ugrid_desc *, const real *, size_t, int32_t, struct CUstream_st *);
ugrid_result ugrid_cuda_build(ugrid_cuda *, const ugrid_desc *, const real *, size_t, int32_t, struct CUstream_st *);
ugrid_result ugrid_cuda_check(ugrid_cuda *, struct CUstream_st *);
void ugrid_cuda_free(ugrid_cuda *);
ugrid_result ugrid_cuda_download(ugrid *, const ugrid_cuda *, struct CUstream_st *);
ugrid_result ugrid_cuda_count_pairs(ugrid_cuda *, real, int64_t *, struct CUstream_st *);
ugrid_result ugrid_cuda_count_neighbors(ugrid_cuda *, real, int, int32_t *, struct CUstream_st *);
ugrid_result ugrid_cuda_neighbors(ugrid_cuda *, real, int, int64_t *, int32_t *, int64_t, struct CUstream_st *);
ugrid_result ugrid_cuda_neighbors_at(ugrid_cuda *, const real *, size_t, int32_t, real, int64_t *, int32_t *, int64_t,
                                     struct CUstream_st *);
lbvh_result lbvh_cuda_build(lbvh_cuda *, const lbvh_desc *, const real *, size_t, int32_t, struct CUstream_st *);
lbvh_result lbvh_cuda_refit(lbvh_cuda *, const real *, size_t, struct CUstream_st *);
lbvh_result lbvh_cuda_check(lbvh_cuda *, struct CUstream_st *);
void lbvh_cuda_free(lbvh_cuda *);
lbvh_result lbvh_cuda_download(lbvh *, const lbvh_cuda *, struct CUstream_st *);
lbvh_result lbvh_cuda_count_pairs(lbvh_cuda *, int64_t *, struct CUstream_st *);
lbvh_result lbvh_cuda_pairs(lbvh_cuda *, int32_t *, int64_t, int64_t *, struct CUstream_st *);
lbvh_result lbvh_cuda_overlaps(lbvh_cuda *, const lbvh_queries *, int64_t *, int32_t *, int64_t, struct CUstream_st *);
lbvh_result lbvh_cuda_nearest(lbvh_cuda *, const real *, size_t, int32_t, int32_t, real, int, int32_t *, real *, int32_t *,
                              struct CUstream_st *);
nlist_result nlist_cuda_build_ugrid(nlist_cuda *, const nlist_desc *, const ugrid_cuda *, const real *, size_t, int32_t,
                                    struct CUstream_st *);
nlist_result nlist_cuda_build_lbvh(nlist_cuda *, const nlist_desc *, const lbvh_cuda *, const real *, size_t, int32_t,
                                   struct CUstream_st *);
nlist_result nlist_cuda_check(nlist_cuda *, struct CUstream_st *);
void nlist_cuda_free(nlist_cuda *);
nlist_result nlist_cuda_moved(nlist_cuda *, const real *, size_t, struct CUstream_st *);
nlist_result nlist_cuda_remap(nlist_cuda *, const int32_t *, int32_t, struct CUstream_st *);
nlist_result nlist_cuda_download(nlist *, const nlist_cuda *, struct CUstream_st *);
nbody_result nbody_cuda_build(nbody_cuda *, const nbody_desc *, const real *, size_t, const real *, int32_t, struct CUstream_st *);
nbody_result nbody_cuda_fields(nbody_cuda *, const nbody_desc *, const real *, size_t, const real *, int32_t, real *, real *,
                               struct CUstream_st *);
nbody_result nbody_cuda_fields_at(nbody_cuda *, const real *, size_t, int32_t, real *, real *, struct CUstream_st *);
nbody_result nbody_cuda_estimate(nbody_cuda *, const real *, int32_t, uint32_t, nbody_error *, struct CUstream_st *);
nbody_result nbody_cuda_step(nbody_cuda *, const nbody_desc *, nbody_bodies *, real, nbody_integrator, struct CUstream_st *);
nbody_result nbody_cuda_check(nbody_cuda *, nbody_frame *, struct CUstream_st *);
nbody_result nbody_cuda_download(nbody *, const nbody_cuda *, struct CUstream_st *);
void nbody_cuda_free(nbody_cuda *);
"""
