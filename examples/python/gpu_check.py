"""gpu_check.py - checks the package nearfield on a GPU with the arrays of CuPy and torch, against
NumPy over all pairs.
SPDX-License-Identifier: MIT OR Unlicense

    python3 examples/python/gpu_check.py [LIBRARY]         default: build/cuda/libnearfield_cuda.so

Needs NumPy, and CuPy or torch, or both. A line for each check; the last line is
"N passed, M failed[, K skipped]".
(--emulator: without a GPU, LIBRARY being built for the CPU by tests/python/run.sh.)
"""
import contextlib
import ctypes
import gc
import os
import sys
import traceback

import numpy as np

sys.path.insert(0, os.environ.get("NEARFIELD_MODULE", os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "python")))
import nearfield as nf  # noqa: E402
from nearfield import _arrays, _binding  # noqa: E402


class Lent:
    """What a borrower sees: an array that is asked for its capsule in one way."""

    def __init__(self, array, given):
        self.array, self.given = array, given

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **_):
        return self.array.__dlpack__(stream=stream, **self.given)


# ---- whose arrays --------------------------------------------------------------------------------
#
# Each has to(numpy array), back(anything on the GPU), write(array, values) on the current stream,
# on(stream) and busy().


class CuPy:
    name = "cupy"

    def __init__(self, dtype):
        import cupy
        self.cupy = cupy
        self.big = cupy.ones(1 << 27, cupy.float32)
        self.stream = cupy.cuda.Stream(non_blocking=True)

    def to(self, array):
        return self.cupy.asarray(array)

    def back(self, array):
        # looks at the same memory, and then copies
        return self.cupy.asnumpy(self.cupy.asarray(array))

    def borrow(self, array, stream, given):
        with self.on(stream):
            return self.cupy.from_dlpack(Lent(array, given))

    def pointer(self, array):
        return array.data.ptr

    def write(self, array, values):
        self.cupy.asarray(array)[...] = values

    def on(self, stream):
        return stream if stream is not None else self.cupy.cuda.Stream.null

    def busy(self):
        for _ in range(60):
            self.big *= 1


class Torch:
    name = "torch"

    def __init__(self, dtype):
        import torch
        self.torch = torch
        if not torch.cuda.is_available():
            raise ImportError("torch sees no GPU")
        self.big = torch.ones(1 << 27, device="cuda")
        self.stream = torch.cuda.Stream()

    def to(self, array):
        return self.torch.from_numpy(np.ascontiguousarray(array)).cuda()

    def back(self, array):
        return self.torch.as_tensor(array, device="cuda").cpu().numpy()

    def borrow(self, array, stream, given):
        with self.on(stream):
            return self.torch.from_dlpack(Lent(array, given))

    def pointer(self, array):
        return array.data_ptr()

    def write(self, array, values):
        self.torch.as_tensor(array, device="cuda")[...] = values

    def on(self, stream):
        return self.torch.cuda.stream(stream or self.torch.cuda.default_stream())

    def busy(self):
        for _ in range(60):
            self.big.mul_(1)


class Emulator:
    """The kernels on the CPU: "device" memory is the host's, and with EMU_LAZY=1 streams run only
    when somebody waits for them."""

    name = "emulator"

    def __init__(self, dtype):
        self.lib = _binding.library(np.dtype(dtype), True)
        self.dll = ctypes.CDLL(_binding.find(np.dtype(dtype), True))
        self.copy = self.dll["_Z15cudaMemcpyAsyncPvPKvm14cudaMemcpyKindP11CUstream_st"]
        self.copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                              ctypes.c_void_p]
        self.stream, self.now, handle = None, 0, ctypes.c_void_p()
        self.dll["_Z25cudaStreamCreateWithFlagsPP11CUstream_stj"](ctypes.byref(handle), 1)
        self.stream = handle.value

    def to(self, array):
        array = np.ascontiguousarray(array)
        block = _arrays.DeviceBlock(self.lib, 0, array.nbytes)
        out = nf.DeviceArray(block, 0, array.shape, array.dtype)
        ctypes.memmove(out.address, array.ctypes.data, array.nbytes)
        return Fake(self, out)

    def back(self, array):
        if isinstance(array, Borrowed):
            return array.numpy()
        return array.numpy() if isinstance(array, nf.DeviceArray) else array.array.numpy()

    def borrow(self, array, stream, given):
        return Borrowed(array.__dlpack__(stream=stream, **given))

    def pointer(self, array):
        return array.data

    def write(self, array, values):
        """Device to device: that may be late."""
        if not isinstance(values, Fake):
            values = self.to(np.full(array.shape, values, array.dtype))
        values = values.array
        to = (array.array if isinstance(array, Fake) else array).address
        self.kept = values
        size = _arrays.size_of(values.shape, values.dtype)
        assert self.copy(to, values.address, size, 3, self.now) == 0

    def on(self, stream):
        self.next = stream or 0
        return self

    def __enter__(self):
        self.now = self.next

    def __exit__(self, *_):
        self.now = 0

    def busy(self):
        pass


class Borrowed:
    """An array of int32 by its capsule, read as dlpack.h of DLPack has it."""

    class Tensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_size_t), ("device", ctypes.c_int32 * 2),
                    ("axes", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                    ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                    ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]

    def __init__(self, capsule):
        api = ctypes.pythonapi
        api.PyCapsule_GetName.restype, api.PyCapsule_GetPointer.restype = (
            ctypes.c_char_p, ctypes.c_size_t)
        name = api.PyCapsule_GetName(ctypes.py_object(capsule))
        self.at = api.PyCapsule_GetPointer(ctypes.py_object(capsule), name)
        self.new = name == b"dltensor_versioned"
        self.used = b"used_" + name
        api.PyCapsule_SetName(ctypes.py_object(capsule), self.used)
        if self.new:
            assert ctypes.c_uint32.from_address(self.at).value == 1
        self.tensor = self.Tensor.from_address(self.at + 32 * self.new)
        self.data, self.shape = self.tensor.data, tuple(
            self.tensor.shape[a] for a in range(self.tensor.axes))
        told = self.tensor
        assert (told.code, told.bits, told.lanes, told.offset, told.strides[0]) == (0, 32, 1, 0, 1)

    def numpy(self):
        return np.frombuffer(ctypes.string_at(self.data, 4 * self.shape[0]), np.int32)

    def __del__(self):
        at = self.at + (16 if self.new else ctypes.sizeof(self.Tensor) + 8)
        ctypes.CFUNCTYPE(None, ctypes.c_size_t)(ctypes.c_size_t.from_address(at).value)(self.at)


class Fake:
    """What CuPy's arrays are to nearfield.py: an interface that names the stream which is current
    when it is asked for."""

    def __init__(self, emulator, array):
        self.emulator, self.array = emulator, array

    @property
    def __cuda_array_interface__(self):
        return dict(self.array.__cuda_array_interface__, stream=self.emulator.now or 1)


# ---- against NumPy -------------------------------------------------------------------------------


def as_set(i, j):
    return set(zip(np.asarray(i).tolist(), np.asarray(j).tolist()))


def rows(xp, lists):
    offsets, ids = (xp.back(a) for a in lists)
    return as_set(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), ids)


def near(p, q, radius, periodic=0):
    """The distances of all pairs, and who is within radius; nobody is within a rounding of it, or
    the check would be unfair."""
    d = p[:, None].astype(float) - q[None]
    d -= periodic * np.round(d)
    d = np.linalg.norm(d, axis=2)
    assert np.abs(d - radius).min() > 1e-7 * radius, "choose another radius"
    return d, d <= radius


def points(n, dim, dtype, radius, seed=1):
    """Points of which no two have that distance, to a float's rounding."""
    r = np.random.default_rng(seed)
    while True:
        p = r.random((n, dim)).astype(dtype)
        try:
            near(p, p, radius)
            near(p, p, radius, 1)
            return p
        except AssertionError:
            pass


class Checks:
    def __init__(self, xp, dtype, stream):
        self.xp, self.dtype, self.stream = xp, dtype, stream

    def grid(self):
        xp, radius = self.xp, 0.13
        for dim in (2, 3):
            for periodic in (0, 1):
                p = points(700, dim, self.dtype, radius)
                _, hit = near(p, p, radius, periodic)
                hit &= ~np.eye(len(p), dtype=bool)
                grid = nf.Grid(xp.to(p), cell=radius, box=(0, 1), periodic=periodic,
                               stream=self.stream)
                assert rows(xp, grid.neighbors(radius)) == as_set(*np.nonzero(hit))
                assert (xp.back(grid.count_neighbors(radius)) == hit.sum(1)).all()
                assert grid.count_pairs(radius) == hit.sum() // 2
                assert len(rows(xp, grid.neighbors(radius, half=True))) == hit.sum() // 2
                at = points(700, dim, self.dtype, radius)[:90]
                want = as_set(*np.nonzero(near(at, p, radius, periodic)[1]))
                assert rows(xp, grid.query(xp.to(at), radius)) == want
                host = grid.to_host()
                host.validate()
                assert as_set(*host.pairs(radius).T) == as_set(*np.nonzero(np.triu(hit)))
                assert sorted(xp.back(grid.order)) == list(range(700))
        fitted = nf.Grid(xp.to(p), cell=radius, stream=self.stream)     # its box is the points' own
        assert fitted.count_pairs(radius) == (near(p, p, radius)[1].sum() - 700) // 2
        wide = np.zeros((700, 5), self.dtype)
        wide[:, :3] = p
        if hasattr(xp.to(wide), "__getitem__"):
            strided = nf.Grid(xp.to(wide)[:, :3], cell=radius, stream=self.stream)
            assert strided.count_pairs(radius) == fitted.count_pairs(radius)
        few = nf.Grid(xp.to(p), cell=radius, stream=self.stream)
        few._guesses["neighbors"] = -16 * 700 + 5                       # room for 5 at first
        assert len(rows(xp, few.neighbors(radius))) == 2 * fitted.count_pairs(radius)

    def tree(self):
        xp, radius = self.xp, 0.13
        p = points(600, 3, self.dtype, radius)
        tree = nf.Tree(xp.to(p), "points", stream=self.stream)
        at = points(600, 3, self.dtype, radius)[:80]
        d, hit = near(at, p, radius)
        assert rows(xp, tree.query(xp.to(at), radius)) == as_set(*np.nonzero(hit))
        ids, d2 = (xp.back(a) for a in tree.nearest(xp.to(at), 5, 0.2))
        want = np.sort(d, 1)[:, :5]
        want, found = want[want <= 0.2], ids >= 0
        assert found.sum() == len(want) and np.allclose(np.sqrt(d2[found]), want, atol=1e-6)
        assert np.allclose(np.take_along_axis(d, ids.clip(0), 1)[found], want, atol=1e-6)
        boxes = np.concatenate([p, p + self.dtype(0.1)], 1)
        a, b = boxes[:, None], boxes[None]
        meet = ((a[..., :3] <= b[..., 3:]) & (b[..., :3] <= a[..., 3:])).all(-1)
        meet &= ~np.eye(600, dtype=bool)
        tree = nf.Tree(xp.to(boxes), stream=self.stream)
        assert tree.count_pairs() == meet.sum() // 2
        pairs = np.sort(xp.back(tree.pairs()), axis=1)
        assert as_set(*pairs.T) == as_set(*np.nonzero(np.triu(meet)))
        assert len(pairs) == meet.sum() // 2
        assert rows(xp, tree.overlaps()) == as_set(*np.nonzero(meet))
        tree.refit(xp.to(boxes[::-1].copy()))
        assert rows(xp, tree.overlaps()) == as_set(*np.nonzero(meet[::-1, ::-1]))
        host = tree.to_host()
        host.validate()
        assert host.count_pairs() == meet.sum() // 2

    def contacts(self):
        xp, radius, n = self.xp, 0.13, 500
        p = points(n, 3, self.dtype, radius)
        pairs = lambda hit: as_set(*np.nonzero(np.triu(hit, 1)))
        contacts = nf.List(xp.to(p), radius, half=1, history="2f4", events=1, grow=1,
                           stream=self.stream)
        first = pairs(near(p, p, radius)[1])
        assert rows(xp, contacts.rows()) == first
        with xp.on(self.stream):
            xp.write(contacts.history, 3)
        q = points(n, 3, self.dtype, radius, 2)
        q[100:] = p[100:]
        contacts.build(xp.to(q))
        second = pairs(near(q, q, radius)[1])
        assert rows(xp, contacts.rows()) == second
        for kind, want in (("begun", second - first), ("persisted", first & second),
                           ("ended", first - second)):
            events = contacts.events(kind).numpy()
            assert as_set(events["i"], events["j"]) == want, kind
        offsets, ids = (xp.back(a) for a in contacts.rows())
        history = xp.back(contacts.history)
        for i, j, row in zip(np.repeat(np.arange(n), np.diff(offsets)), ids, history):
            assert (row == (3 if (i, j) in first else 0)).all()
        names = np.random.default_rng(5).permutation(n).astype(np.int32)
        contacts.remap(xp.to(names))
        renamed = {tuple(sorted((names[i], names[j]))) for i, j in second}
        assert {tuple(sorted(pair)) for pair in rows(xp, contacts.rows())} == renamed
        host = contacts.to_host()
        host.validate()
        assert {tuple(sorted(pair)) for pair in host.pairs().tolist()} == renamed
        assert (host.history == 3).all(1).sum() == len(first & second)
        spheres = np.c_[p, np.full(n, radius)].astype(self.dtype)
        tree = nf.Tree(xp.to(spheres), "spheres", stream=self.stream)
        contacts = nf.List(xp.to(p), radius, tree, half=1, grow=1, stream=self.stream)
        assert rows(xp, contacts.rows()) == first
        skin = nf.List(xp.to(p), radius, skin=0.02, grow=1, stream=self.stream)
        assert not skin.moved(xp.to(p + self.dtype(0.0057)))
        assert skin.moved(xp.to(p + self.dtype(0.0059)))

    def nbody(self):
        xp, n = self.xp, 900
        r = np.random.default_rng(3)
        p = r.standard_normal((n, 2)).astype(self.dtype)
        mass = (0.5 + r.random(n)).astype(self.dtype)
        d = p[None].astype(float) - p[:, None]
        r2 = (d ** 2).sum(-1) + 0.01 ** 2
        w = np.where(np.eye(n, dtype=bool), 0, mass / r2 ** 1.5)
        want, terms = (w[..., None] * d).sum(1), np.abs(w * np.sqrt((d ** 2).sum(-1))).sum(1)
        sim = nf.NBody(method="force_nodes", order=6, softening=0.01, stream=self.stream)
        acc, potential = sim.fields(xp.to(p), xp.to(mass))
        error = np.linalg.norm(xp.back(acc) - want, axis=1) / terms
        assert error.max() < 1e-3 and error.mean() < 1e-4, error.max()
        want = -np.where(np.eye(n, dtype=bool), 0, mass / np.sqrt(r2)).sum(1)
        assert np.allclose(xp.back(potential), want, rtol=1e-3)
        assert abs(sim.estimate(n).share - error.max()) < 0.1 * error.max() + 1e-6
        there, _ = sim.fields_at(xp.to(p[:40] + self.dtype(10)))
        far = p[None].astype(float) - p[:40, None] - 10
        pull = (mass / ((far ** 2).sum(-1) + 1e-4) ** 1.5)[..., None] * far
        assert np.allclose(xp.back(there), pull.sum(1), rtol=1e-4)
        pos, vel = xp.to(p), xp.to(np.zeros_like(p))
        host_pos, host_vel = p.copy(), np.zeros_like(p)
        fields = dict(method="direct", softening=self.dtype(0.1).item())
        nf.NBody(stream=self.stream, **fields).step(pos, vel, 0.01, xp.to(mass), steps=3)
        nf.NBody(**fields).step(host_pos, host_vel, 0.01, mass, steps=3)
        self.wait()
        assert np.allclose(xp.back(pos), host_pos, atol=1e-5)
        assert np.allclose(xp.back(vel), host_vel, atol=1e-3)

    def wait(self):
        """What writes the caller's arrays (step) is not waited for by them."""
        waiting = nf.Grid(self.xp.to(np.zeros((1, 3), self.dtype)), cell=1.0, stream=self.stream)
        waiting.check()

    def streams(self):
        """Positions are written on the stream, after much other work, while the call is made: it
        has to see the new ones."""
        xp, radius = self.xp, 0.13
        old, new = points(600, 3, self.dtype, radius, 7), points(600, 3, self.dtype, radius, 8)
        want = (near(new, new, radius)[1].sum() - 600) // 2
        p, other = xp.to(old), xp.to(new)
        grid = nf.Grid(p, cell=radius, box=(0, 1), stream=self.stream)
        assert grid.count_pairs(radius) == (near(old, old, radius)[1].sum() - 600) // 2 != want
        with xp.on(self.stream):
            xp.busy()
            xp.write(p, other)
            grid.build(p)
        assert grid.count_pairs(radius) == want
        if xp.name == "torch":
            return      # its interface does not name a stream: there it is up to the caller
        p = xp.to(old)
        stream = None if self.stream is not None else xp.stream
        elsewhere = nf.Grid(xp.to(old), cell=radius, box=(0, 1), stream=stream)
        elsewhere.check()
        with xp.on(self.stream):
            xp.busy()
            xp.write(p, other)
            elsewhere.build(p)      # on another stream than the writer's
        assert elsewhere.count_pairs(radius) == want

    def refusals(self):
        xp = self.xp
        bad = points(50, 3, self.dtype, 0.13)
        bad[17, 2] = np.nan
        for make in (lambda: nf.Grid(xp.to(bad), cell=0.1, box=(0, 1), stream=self.stream),
                     lambda: nf.Tree(xp.to(bad), "points", stream=self.stream)):
            refused(nf.Error, "row = 17", lambda: make().check())
        sim = nf.NBody(stream=self.stream)
        sim.accelerations(xp.to(bad[:, :2].copy()))
        sim.check()
        sim.accelerations(xp.to(bad[:, 1:].copy()))
        refused(nf.Error, "row = 17", sim.check)
        good = xp.to(points(50, 3, self.dtype, 0.13))
        grid = nf.Grid(good, cell=0.1, stream=self.stream)
        refused(ValueError, "lives on the GPU", grid.build, np.zeros((5, 3)))
        refused(ValueError, "lives on the CPU", nf.Grid(np.zeros((5, 3)), cell=0.1).build, good)
        refused(ValueError, "shape", grid.query, xp.to(np.zeros((5, 2), self.dtype)), 0.1)
        other = np.float64 if self.dtype == np.float32 else np.float32
        refused(ValueError, "expected an array of", grid.query, xp.to(np.zeros((5, 3), other)), 0.1)
        refused(ValueError, "float32 or float64", nf.Grid, xp.to(np.zeros((5, 3), np.int32)))
        refused(nf.Error, "radius", grid.neighbors, -1.0)
        refused(nf.Error, "CPU only", grid.pairs, 0.1)
        none = xp.to(np.zeros((0, 3), self.dtype))
        empty = nf.Grid(none, cell=0.1, box=(0, 1), stream=self.stream)
        assert empty.count_pairs(0.1) == 0

    def views(self):
        """Results and views outlive what made them."""
        xp = self.xp
        p = points(400, 3, self.dtype, 0.13)
        contacts = nf.List(xp.to(p), 0.13, half=1, history="f4", grow=1, stream=self.stream)
        history = contacts.history
        with xp.on(self.stream):
            xp.write(history, 5)
        more = np.random.default_rng(1).random((5000, 3)).astype(self.dtype)
        for _ in range(2):
            contacts.build(xp.to(more))
        del contacts
        gc.collect()
        assert (xp.back(history) == 5).all() and len(history) > 100
        assert (history[:7].numpy() == 5).all() and history[-1] == 5

    def dlpack(self):
        """Arrays are lent, and outlive what made them; on the host they are copies."""
        xp = self.xp
        p = points(300, 3, self.dtype, 0.13)
        grid = nf.Grid(xp.to(p), cell=0.13, stream=self.stream)
        offsets, ids = grid.neighbors(0.13)
        want = ids.numpy(), ids.shape
        assert ids.__dlpack_device__() == (2, 0)
        refused(BufferError, "gets a copy", lambda: ids.__dlpack__(dl_device=(1, 0), copy=False))
        refused(BufferError, "not (2, 7)", lambda: ids.__dlpack__(dl_device=(2, 7)))
        if hasattr(np, "from_dlpack") and np.lib.NumpyVersion(np.__version__) >= "2.1.0":
            host = np.from_dlpack(ids, device="cpu")
            assert (host == want[0]).all() and host.dtype == np.int32
        for given in ({}, {"max_version": (1, 1)}, {"copy": True, "max_version": (1, 0)}):
            lent = xp.borrow(ids, self.stream, given)
            same = xp.pointer(lent) == ids.address
            assert same != ("copy" in given) and (xp.back(lent) == want[0]).all()
        del grid, ids
        gc.collect()
        nf.Grid(xp.to(points(900, 3, self.dtype, 0.13)), cell=0.13, stream=self.stream)
        assert (xp.back(lent) == want[0]).all() and lent.shape == want[1]
        if xp.name == "emulator":       # the borrower's stream waits for the one that writes
            other = xp.stream if self.stream is None else 0
            late = nf.DeviceArray(_arrays.DeviceBlock(xp.lib, self.stream, 1200), 0, 300, np.int32)
            with xp.on(self.stream):
                xp.write(late, xp.to(np.arange(300, dtype=np.int32)))
            written, copy = xp.kept, xp.to(np.zeros(300, np.int32))
            lent = xp.borrow(late, other, {})
            with xp.on(other):
                xp.write(copy, Fake(xp, late))
            host = np.empty(300, np.int32)
            _arrays.fetch(xp.lib, ctypes.c_void_p(host.ctypes.data), copy.array.address,
                          host.nbytes, other)
            assert (host == np.arange(300)).all() and len(written) == 300


def refused(kind, text, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        assert text in str(error), "%r does not say %r" % (str(error), text)
        return
    raise AssertionError("not refused: %s" % function)


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    if arguments:
        nf.load_library(arguments[0])
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}

    def report(status, what):
        counts[status] += 1
        print("%-8s %s" % (status, what), flush=True)

    for backend in (Emulator,) if "--emulator" in sys.argv else (CuPy, Torch):
        for dtype in (np.float32, np.float64):
            try:
                xp = backend(dtype)
            except Exception as error:      # noqa: BLE001
                report("skipped", "%s, %s: %s" % (backend.name, np.dtype(dtype), error))
                continue
            for stream in (None, xp.stream):
                checks = Checks(xp, dtype, stream)
                for name in ("grid", "tree", "contacts", "nbody", "streams", "refusals", "views",
                             "dlpack"):
                    where = "default stream" if stream is None else "a stream of its own"
                    what = "%s, %s, %s: %s" % (xp.name, np.dtype(dtype), where, name)
                    try:
                        # torch's arrays do not name their stream: there the caller has to be on it.
                        with xp.on(stream) if backend is Torch else contextlib.nullcontext():
                            getattr(checks, name)()
                        report("ok", what)
                    except Exception as error:      # noqa: BLE001
                        report("FAILED", "%s: %s" % (what, str(error)[:300] or repr(error)))
                        traceback.print_exc(limit=-3)
            if backend is Emulator:
                xp.kept = None
                gc.collect()
                for stream in (0, xp.stream):
                    xp.dll["_Z21cudaStreamSynchronizeP11CUstream_st"](ctypes.c_void_p(stream))
                live = xp.dll.emu_live_allocations()
                report("FAILED" if live else "ok", "%s, %s: %d blocks of device memory left" % (
                    xp.name, np.dtype(dtype), live))
    skipped = ", %d skipped" % counts["skipped"] if counts["skipped"] else ""
    print("%d passed, %d failed%s" % (counts["ok"], counts["FAILED"], skipped))
    return counts["FAILED"] > 0 or counts["ok"] == 0


if __name__ == "__main__":
    sys.exit(main())
