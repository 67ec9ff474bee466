"""For tests/python/run.sh: the package nearfield against scipy, ASE, and NumPy over all pairs.

    python_checks.py [NAME...]      all checks, or these; NEARFIELD_LIBRARY is the library,
                                    NEARFIELD_MODULE the folder of the package

Prints "ok" or "FAILED" and a name per check, and "N passed, M failed" at the end. In float64 pairs
must be the very same: none of scipy's distances is within a rounding of the radius but those of the
lattice, which are exact in both. In float32 pairs may differ that are within a float's rounding of
the radius.
"""
import contextlib
import copy
import ctypes
import gc
import importlib.util
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ.get("NEARFIELD_MODULE",
                                  os.path.join(here, "..", "..", "build", "python")))
import nearfield as nf  # noqa: E402
from nearfield import _arrays, _binding, _dlpack, _memory, _neighbors  # noqa: E402

TYPES = np.float32, np.float64


def rng(seed=1):
    return np.random.default_rng(seed)


def inputs(dim):
    """name, points in 0 .. 1, radius"""
    r = rng(dim)
    yield "uniform", r.random((1500, dim)), 0.11
    yield "clustered", np.clip(0.5 + 0.1 * r.standard_normal((900, dim)) ** 3, 0, 0.999), 0.03
    side = np.arange(8) / 8
    lattice = np.stack(np.meshgrid(*[side] * dim), -1).reshape(-1, dim)
    yield "lattice", lattice, 0.125
    yield "lattice, diagonals", lattice, 0.1875
    yield "coincident", np.full((60, dim), 0.25), 0.1
    yield "two places", np.repeat([[0.25] * dim, [0.375] * dim], 20, 0), 0.125 * dim ** 0.5 + 1e-6
    border = r.integers(0, 17, (400, dim)) / 17
    border[::2] = np.nextafter(border[::2], 2)
    yield "on the borders of cells", np.minimum(border, np.nextafter(1, 0)), 1 / 17 + 1e-5
    yield "one", r.random((1, dim)), 0.5
    yield "none", np.zeros((0, dim)), 0.5
    yield "radius beyond the box", r.random((70, dim)), 3.0


def row_pairs(offsets, ids):
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), np.asarray(ids, int)


def as_set(i, j):
    return set(zip(np.asarray(i).tolist(), np.asarray(j).tolist()))


def same_pairs(what, ours, theirs, distance, radius, dtype):
    """Equal sets; in float32 but for pairs within rounding of the radius."""
    different = ours ^ theirs
    if dtype == np.float32:
        different = {p for p in different if abs(distance(*p) - radius) > 3e-7 * (1 + radius)}
    assert not different, "%s: %d pairs, not %d; for example %s" % (
        what, len(ours), len(theirs), sorted(different)[:3])


def refused(kind, text, function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except kind as error:
        assert text in str(error), "%r does not say %r" % (str(error), text)
        return error
    raise AssertionError("not refused: %s %s %s" % (function, arguments, keywords))


@contextlib.contextmanager
def bounded(seconds=60, gigabytes=2):
    """What is inside fails where it needs more time or memory: the machine stays up."""
    def late(*_):
        raise AssertionError("not done after %d seconds" % seconds)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    handler = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (used + gigabytes * 2**30, limits[1]))
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, limits)


# ---- Grid ----------------------------------------------------------------------------------------


def check_grid_against_scipy():
    from scipy.spatial import cKDTree
    for dim in (2, 3):
        for name, points, radius in inputs(dim):
            for dtype in TYPES:
                p = points.astype(dtype)
                radius = float(dtype(radius))
                tree, grid = cKDTree(p.astype(float)), nf.Grid(p, cell=radius)
                what = "%s, %dD, %s" % (name, dim, np.dtype(dtype))
                gap = lambda i, j: np.linalg.norm(p[i].astype(float) - p[j])
                want = as_set(*tree.query_pairs(radius, output_type="ndarray").T)
                pairs = grid.pairs(radius)
                same_pairs(what, as_set(*pairs.T), want, gap, radius, dtype)
                assert len(pairs) == len(as_set(*pairs.T)), what + ": a pair twice"
                assert len(pairs) == grid.count_pairs(radius), what + ": count_pairs"
                i, j = row_pairs(*grid.neighbors(radius))
                same_pairs(what, as_set(i, j), want | {(b, a) for a, b in want}, gap, radius, dtype)
                counts = np.bincount(i, minlength=len(p))
                assert (counts == grid.count_neighbors(radius)).all(), what + ": counts"
                beside = rng(7).random((200, dim)).astype(dtype) * dtype(1.4) - dtype(0.2)
                at = np.concatenate([p[:50], beside])
                gap = lambda q, j: np.linalg.norm(at[q].astype(float) - p[j])
                found = tree.query_ball_point(at.astype(float), radius) if len(p) else []
                want = {(q, j) for q, row in enumerate(found) for j in row}
                ours = as_set(*row_pairs(*grid.query(at, radius)))
                same_pairs(what + ", points", ours, want, gap, radius, dtype)
                grid.validate()


def check_periodic_grid_against_scipy():
    from scipy.spatial import cKDTree
    for dim in (2, 3):
        for flags in ([1] * dim, [1] + [0] * (dim - 1), [0] * (dim - 1) + [1]):
            for name, points, radius in inputs(dim):
                radius = min(radius, 0.45)
                for dtype in TYPES:
                    p = points.astype(dtype)
                    p = np.minimum(p, np.nextafter(dtype(1), dtype(0)))
                    r = float(dtype(radius))
                    tree = cKDTree(p.astype(float), boxsize=np.array(flags, float))
                    what = "%s, %dD, %s, periodic %s" % (name, dim, np.dtype(dtype), flags)

                    def gap(i, j):
                        d = np.abs(p[i].astype(float) - p[j])
                        return np.linalg.norm(np.where(flags, np.minimum(d, 1 - d), d))

                    want = as_set(*tree.query_pairs(r, output_type="ndarray").T)
                    periods = rng(3).integers(-2, 3, p.shape).astype(dtype)
                    outside = p + np.array(flags, dtype) * periods  # may round: only where exact
                    exact = name.startswith(("lattice", "coincident")) or len(p) == 0
                    for q in (p, outside) if exact else (p,):
                        grid = nf.Grid(q, cell=r, box=(0, 1), periodic=flags)
                        same_pairs(what, as_set(*grid.pairs(r).T), want, gap, r, dtype)
                        assert grid.count_pairs(r) == len(grid.pairs(r))


def check_grid_options():
    p = rng().random((500, 3))
    want = as_set(*nf.Grid(p, cell=0.1).pairs(0.1).T)
    for fields in (dict(method="sort"), dict(method="fixed", slots=64), dict(method="list"),
                   dict(method="list_packed"), dict(placement="tight", size=0.1),
                   dict(walk="modular"), dict(cell_order="morton"), dict(split=3),
                   dict(no_records=1), dict(unbounded=1), dict(min=[0, 0, 0], max=1)):
        grid = nf.Grid(p, cell=0.1, **fields)
        assert as_set(*grid.pairs(0.1).T) == want, fields
    assert (np.sort(grid.order) == np.arange(500)).all()
    assert grid.desc.cell == 0.1 and grid.nbytes > 0 and grid.n == 500
    desc = nf.Grid(p, 0.1, method="sort").desc      # a copy, of an object that is gone
    assert (desc.cell, desc.method, desc.dim) == (0.1, "sort", 3) and "cell=0.1" in repr(desc)
    refused(AttributeError, "", setattr, desc, "cell", 0.2)
    refused(nf.Error, "nothing was built yet", lambda: nf.Grid().desc)
    grid.build(p[:7])
    assert grid.n == 7 and len(grid.order) == 7


def check_grid_crowds():
    """Without a cell: it is that of the crowd, and not of a box that a few far ones span."""
    for dim in (2, 3):
        for dtype in TYPES:
            p = rng(dim).random((2000, dim)).astype(dtype)
            radius = 0.05 if dim == 2 else 0.1
            for count, away in ((0, 1), (1, 1e6), (20, -1e4)):
                far = p.copy()
                far[:count] += away * (1 + np.arange(count)[:, None]).astype(dtype)
                grid = nf.Grid(far)
                assert grid.desc.unbounded == (count > 0) and grid.desc.cell < 0.2
                assert as_set(*grid.pairs(radius).T) == brute_pairs(far, radius)
                assert nf.Grid(far, cell=1.0, max_cells=2**31 - 2000, unbounded=False,
                               box=(0, 1)).desc.unbounded == 0
    plane = np.c_[rng().random((2000, 2)), np.zeros(2000)]
    assert nf.Grid(plane).desc.unbounded == 0 and nf.Grid(np.zeros((2000, 3))).n == 2000


def check_threads():
    """n_threads: every result is that of one thread, bit for bit; other numbers are refused."""
    p = rng(8).random((30000, 3))
    moved = p + 0.003 * rng(9).random(p.shape)
    boxes = np.concatenate([p, p + 0.02], axis=1)
    kinds = rng(10).integers(1, 4, len(p))

    def results(n):
        grid = nf.Grid(p, 0.03, n_threads=n)
        yield from grid.neighbors(0.03)
        yield from grid.query(moved, 0.02)
        yield grid.order
        yield grid.count_neighbors(0.03)
        for tree in (nf.Tree(boxes, n_threads=n), nf.Tree(boxes, n_threads=n).refit(boxes + 0.01)):
            yield tree.pairs()
            yield from tree.query(moved, 0.01)
        tree = nf.Tree(p, "points", n_threads=n)
        yield from tree.nearest(moved, 5)
        yield from tree.nearest(moved[:150], 5)
        contacts = nf.List(p, 0.02, half=True, history="f8", n_threads=n)
        contacts.history[:] = np.arange(len(contacts.history))
        contacts.build(moved)
        yield contacts.history
        yield contacts.pairs()
        yield from nf.NBody(n_threads=n).fields(p[:, :2])
        for dtype in np.float32, np.float64:
            atoms = (20 * p - 3).astype(dtype), np.diag([14.0, 15, 16]), (True, True, False), kinds
            yield from nf.neighbor_list("ijSdD", atoms, 0.8, n_threads=n)
            yield from nf.neighbor_list("ijSd", atoms, 0.8, True, half=True, sorted=True,
                                        n_threads=n)
            yield from nf.neighbor_list("jS", atoms, {(1, 2): 0.8, (3, 3): 0.5}, n_threads=n)
        finder = nf.NeighborList(cutoff=0.8, full_list=True, n_threads=n)
        yield from finder.compute(*atoms[:3], "Pd")

    one = list(results(1))
    assert len(one) > 10 and all(len(array) > 100 for array in one)
    for n in (2, 7):
        for number, (a, b) in enumerate(zip(one, results(n))):
            assert np.array_equal(a, b), (n, number)
    atoms = p[:9], np.eye(3), True
    for bad in (0, -1, 257):
        refused(ValueError, "n_threads", nf.Grid, p, 0.03, n_threads=bad)
        refused(ValueError, "n_threads", nf.neighbor_list, "i", atoms, 0.3, n_threads=bad)


def run_tasks(lib, work, tasks, threads):
    """nearfield_run with a function of Python."""
    task = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32)(lambda _, k: work(k))
    lib.nearfield_run(ctypes.cast(task, ctypes.c_void_p), None, tasks, threads)


def check_thread_pool():
    """One pool that lives: not a thread more than a call wants, whoever calls, forks or fails."""
    import concurrent.futures
    lib, calls = nf.Grid(rng(8).random((9, 3)), n_threads=2)._lib, []

    def note(k):
        calls.append((k, threading.get_native_id()))
        time.sleep(0.001)

    lib.nearfield_end_threads()     # of earlier checks
    for _ in range(4):
        run_tasks(lib, note, 40, 3)
    assert sorted(k for k, _ in calls) == sorted(4 * list(range(40)))
    assert len({thread for _, thread in calls}) <= 3, "new threads with each call"

    def nested(count):
        inner = []
        run_tasks(lib, lambda k: run_tasks(lib, lambda j: inner.append((k, j)), 5, 3), count, 4)
        assert sorted(inner) == [(k, j) for k in range(count) for j in range(5)]
        return 1

    with concurrent.futures.ThreadPoolExecutor(6) as callers:
        assert sum(callers.map(nested, range(2, 26))) == 24
    done = []

    def fails(k):
        done.append(k)
        raise ValueError(k)

    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        run_tasks(lib, fails, 9, 3)
    finally:
        sys.unraisablehook = hook
    assert sorted(done) == list(range(9))
    if hasattr(os, "fork"):
        forks(lib)
    # The interpreter ends while the threads sleep, and while they work.
    for end in ("pass", "threading.Thread(target=busy, daemon=True).start(); time.sleep(0.2)"):
        program = ("import threading, time, numpy as np, nearfield as nf\n"
                   "p = np.random.default_rng(1).random((100000, 3))\n"
                   "def busy():\n    while True: nf.Grid(p, 0.03, n_threads=4)\n"
                   "nf.Grid(p, 0.03, n_threads=4)\n" + end)
        subprocess.run([sys.executable, "-c", program], check=True, timeout=120,
                       env={**os.environ, "PYTHONPATH": sys.path[0]})


def forks(lib):
    """A child has a pool of its own: after a call, amid the calls of other threads, and of its
    own."""
    def child(lines):
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            found, threads = [], set()

            def note(k):
                found.append(k)
                threads.add(threading.get_native_id())
                time.sleep(0.005)

            run_tasks(lib, note, 30, 3)
            os._exit(0 if sorted(found) == list(range(30)) and len(threads) > 1 else 1)
        lines.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    codes, ends = [], threading.Event()

    def busy():
        while not ends.is_set():
            run_tasks(lib, lambda k: time.sleep(0.0002), 20, 3)

    others = [threading.Thread(target=busy) for _ in range(3)]
    for thread in others:
        thread.start()
    for _ in range(8):
        child(codes)
    run_tasks(lib, lambda k: child(codes) if k % 4 == 0 else None, 12, 3)
    ends.set()
    for thread in others:
        thread.join()
    assert codes == 11 * [0], codes


# ---- Tree ----------------------------------------------------------------------------------------


def check_nearest_against_scipy():
    from scipy.spatial import cKDTree
    for dim in (2, 3):
        for name, points, radius in inputs(dim):
            for dtype in TYPES:
                p = points.astype(dtype)
                tree = nf.Tree(p, "points")
                at = np.concatenate([p[:100], rng(5).random((100, dim)).astype(dtype)])
                for k, reach in ((1, np.inf), (7, np.inf), (7, float(dtype(radius * 0.7)))):
                    ids, d2 = tree.nearest(at, k, reach)
                    if len(p) == 0:
                        assert (ids == -1).all() and np.isinf(d2).all()
                        continue
                    want, _ = cKDTree(p.astype(float)).query(
                        at.astype(float), np.arange(1, k + 1), distance_upper_bound=reach)
                    bound = 1e-6 if dtype == np.float32 else 1e-13
                    known = min(reach, 1e9)         # for those that are not there
                    gap = np.abs(np.minimum(np.sqrt(d2), known) - np.minimum(want, known))
                    assert (gap <= bound).all(), (name, k)
                    found = ids >= 0
                    q, _ = np.nonzero(found)
                    gap = np.linalg.norm(at[q].astype(float) - p[ids[found]], axis=1)
                    assert (np.abs(gap - np.sqrt(d2[found])) <= bound).all(), name + ": ids"
                    for row in ids:
                        assert len(set(row[row >= 0])) == (row >= 0).sum(), name + ": an id twice"


def check_nearest_in_any_order():
    """Many points are searched in an order of cells: the rows are those of few at a time."""
    for dim in (2, 3):
        for name, points, radius in inputs(dim):
            tree = nf.Tree(points, "points")
            at = np.concatenate([rng(6).permutation(points)[:300], 2 * rng(7).random((300, dim))])
            ids, d2 = tree.nearest(at, 5, 2 * radius)
            for first in range(0, len(at), 50):
                few = tree.nearest(at[first:first + 50], 5, 2 * radius)
                assert np.array_equal(ids[first:first + 50], few[0]), name
                assert np.array_equal(d2[first:first + 50], few[1]), name


def check_boxes_and_spheres():
    for dim in (2, 3):
        r = rng(dim)
        low = r.random((400, dim))
        boxes = np.concatenate([low, low + 0.15 * r.random((400, dim)) ** 3], 1)
        tree = nf.Tree(boxes)
        a, b = boxes[:, None], boxes[None]
        meet = ((a[..., :dim] <= b[..., dim:]) & (b[..., :dim] <= a[..., dim:])).all(-1)
        want = as_set(*np.nonzero(np.triu(meet, 1)))
        pairs = np.sort(tree.pairs(), axis=1)
        assert as_set(*pairs.T) == want and len(pairs) == len(want) == tree.count_pairs()
        own = as_set(*np.nonzero(meet & ~np.eye(400, dtype=bool)))
        assert as_set(*row_pairs(*tree.overlaps())) == own
        assert as_set(*row_pairs(*tree.overlaps(boxes[:50]))) == as_set(*np.nonzero(meet[:50]))
        moved = boxes + np.tile(0.02 * r.random((400, dim)), 2)
        assert (as_set(*row_pairs(*tree.refit(moved).overlaps())) ==
                as_set(*row_pairs(*nf.Tree(moved).overlaps())))
        spheres = np.concatenate([low, 0.05 * r.random((400, 1))], 1)
        at = r.random((90, dim))
        inside = np.linalg.norm(at[:, None] - low[None], axis=2) <= 0.2
        found = nf.Tree(low, "points").query(at, 0.2)
        assert as_set(*row_pairs(*found)) == as_set(*np.nonzero(inside))
        # from each centre to the box around each sphere
        d = np.maximum(np.abs(low[:, None] - low[None]) - spheres[None, :, -1:], 0)
        reach = np.linalg.norm(d, axis=2) <= spheres[:, -1:]
        found = nf.Tree(spheres, "spheres").overlaps(spheres, "spheres")
        assert as_set(*row_pairs(*found)) == as_set(*np.nonzero(reach))
        masks = r.integers(0, 4, 400).astype(np.uint32)
        some = meet & ((masks[:, None] & masks[None]) != 0)
        pairs = np.sort(nf.Tree(boxes, masks=masks).pairs(), axis=1)
        assert as_set(*pairs.T) == as_set(*np.nonzero(np.triu(some, 1)))
        tree.validate()
    assert nf.Tree(np.zeros((0, 6))).count_pairs() == 0


def check_rays():
    r = rng(4)
    corners = r.random((200, 1, 3)) + 0.2 * r.standard_normal((200, 3, 3))
    origins, directions = r.random((300, 3)) * 2 - 0.5, r.standard_normal((300, 3))
    a, e1, e2 = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    # Moeller and Trumbore, all against all
    h = np.cross(directions[:, None], e2[None])
    f = 1 / np.einsum("rtk,tk->rt", h, e1)
    s = origins[:, None] - a[None]
    u = f * np.einsum("rtk,rtk->rt", s, h)
    q = np.cross(s, e1[None])
    v = f * np.einsum("rk,rtk->rt", directions, q)
    t = f * np.einsum("tk,rtk->rt", e2, q)
    t = np.where((u >= 0) & (v >= 0) & (u + v <= 1) & (t >= 0), t, np.inf)
    want = np.where(np.isinf(t.min(1)), -1, t.argmin(1))
    assert 50 < (want >= 0).sum() < 300
    vertices, indices = corners.reshape(-1, 3), np.arange(600).reshape(200, 3)
    for tree in (nf.Tree(corners, "triangles"), nf.Tree(vertices, "triangles", indices=indices),
                 nf.Tree(np.ascontiguousarray(vertices[::-1]), "triangles", indices=599 - indices)):
        ids, at = tree.rays(origins, directions)
        assert (ids == want).all() and np.allclose(at[ids >= 0], t.min(1)[ids >= 0], rtol=1e-10)
        ids, at = tree.rays(origins, directions, 0.3)
        assert (ids == np.where(t.min(1) <= 0.3, want, -1)).all() and (at[ids < 0] == 0.3).all()
    refused(nf.Error, "names a vertex", nf.Tree, vertices, "triangles", indices=indices + 1)


# ---- List ----------------------------------------------------------------------------------------


def brute_pairs(p, reach, periodic=None, box=1.0):
    """i < j with distance <= reach (a number, or a matrix)"""
    d = p[:, None].astype(float) - p[None]
    if periodic is not None:
        d -= np.where(periodic, box * np.round(d / box), 0)
    return as_set(*np.nonzero(np.triu(np.linalg.norm(d, axis=2) <= reach, 1)))


def check_list_rows():
    for dim in (2, 3):
        for half in (0, 1):
            p = rng(dim).random((600, dim))
            radii = 0.04 * rng(9).random(600)
            reach = 0.02 + radii[:, None] + radii[None]
            grid, tree = nf.Grid(p, cell=0.1), nf.Tree(np.c_[p, radii + 0.01], "spheres")
            for source in (None, grid, tree):
                contacts = nf.List(p, 0.02, source, radii=radii, half=half)
                pairs = contacts.pairs()
                want = brute_pairs(p, reach)
                assert as_set(*np.sort(pairs, axis=1).T) == want
                assert len(pairs) == (2 - half) * len(want)
                i, j = row_pairs(*contacts.rows())
                assert (np.c_[i, j] == pairs).all()
                contacts.validate()
            masks = rng(2).integers(0, 4, 600)
            excluded = np.array(sorted(want)[::2])
            contacts = nf.List(p, 0.02, radii=radii, half=half, masks=masks,
                               exclude=excluded[:, ::-1])
            kept = {(i, j) for i, j in want - as_set(*excluded.T) if masks[i] & masks[j]}
            assert as_set(*np.sort(contacts.pairs(), axis=1).T) == kept
            flags = [1] + [0] * (dim - 1)
            contacts = nf.List(p, 0.1, half=1, box=(0, 1), periodic=flags)
            pairs, shift = contacts.pairs(), contacts.shifts(p)
            assert as_set(*np.sort(pairs, axis=1).T) == brute_pairs(p, 0.1, flags)
            d = p[pairs[:, 1]] + shift - p[pairs[:, 0]]
            assert (np.linalg.norm(d, axis=1) <= 0.1 + 1e-12).all() and shift.any()


def check_list_without_some():
    """Particles without a position: the list of those that have one."""
    p = rng(4).random((1000, 3)).astype(np.float32)
    given = p.copy()
    given[7, 1], given[20:30] = np.nan, np.inf
    there = np.isfinite(given).all(axis=1)
    contacts = nf.List(given, 0.1, half=True, skip_invalid=True)
    want = nf.List(p, 0.1, half=True, masks=there.astype(np.uint32))
    assert as_set(*contacts.pairs().T) == as_set(*want.pairs().T) and len(want.pairs()) > 0
    refused(nf.Error, "skip_invalid", nf.List, given, 0.1)


def check_history():
    """Every contact counts its own age; a dictionary does the same. Steps, and now and then
    sorting, deletion and insertion."""
    r, n, radius = rng(8), 300, 0.09
    p = r.random((n, 3))
    contacts, ages = nf.List(radius=radius, half=1, history="2f8", events=1), {}
    for step in range(25):
        if step % 4 == 3:
            keep = r.random(n) < 0.9
            names = np.full(n, -1)
            names[keep] = r.permutation(keep.sum())
            new_n = int(keep.sum()) + (7 if step % 8 == 7 else 0)
            moved = r.random((new_n, 3))
            moved[names[keep]] = p[keep]
            contacts.remap(names, new_n)
            ages = {(names[i], names[j]): a for (i, j), a in ages.items() if keep[i] and keep[j]}
            p, n = moved, new_n
        p = p + 0.01 * r.standard_normal(p.shape)
        contacts.build(p)
        pairs = [tuple(pair) for pair in contacts.pairs().tolist()]
        known = {tuple(sorted(pair)) for pair in ages}
        want = brute_pairs(p, radius)
        assert {tuple(sorted(pair)) for pair in pairs} == want and len(pairs) == len(want)
        for kind, expected in (("begun", want - known), ("persisted", want & known),
                               ("ended", known - want)):
            events = contacts.events(kind)
            assert as_set(events["i"], events["j"]) == expected, "%s in step %d" % (kind, step)
            if kind != "ended":
                named = list(zip(events["i"].tolist(), events["j"].tolist()))
                assert [tuple(sorted(pairs[e])) for e in events["entry"]] == named
        history = contacts.history
        assert history.shape == (len(pairs), 2)
        for pair, row in zip(pairs, history):
            age = ages.get(pair, 0)
            assert row[0] == age and row[1] == 2 * row[0], "step %d: %s has %s, not %s" % (
                step, pair, row, age)
        history[:, 0] += 1
        history[:, 1] += 2
        ages = {pair: ages.get(pair, 0) + 1 for pair in pairs}
    assert max(ages.values()) > 5
    again = nf.List(radius=radius, half=1, history="2f8", events=1).load(contacts.save())
    assert (again.pairs() == contacts.pairs()).all() and (again.history == contacts.history).all()
    refused(nf.Error, "undamaged", again.load, contacts.save()[:-1])


def check_skin():
    r = rng(3)
    p = r.random((300, 2)).astype(np.float32)
    contacts = nf.List(p, 0.05, skin=0.02, half=1, box=(0, 1), periodic=True)
    reach = np.float32(0.05) + np.float32(0.02)
    assert as_set(*contacts.pairs().T) == brute_pairs(p, reach, [1, 1])
    assert not contacts.moved(p) and not contacts.moved(p + np.float32(0.0069))
    assert contacts.moved(p + np.float32(0.0071))
    assert contacts.moved(p[:-1])


def check_moved_box():
    """Where the box changes along an axis that repeats, images move, although nobody does."""
    p = np.array([[0.1, 5, 5], [8.8, 5, 5.0]])
    contacts = nf.List(p, 1.0, skin=0.2, half=True, box=(0, 10), periodic=[True, False, False])
    assert len(contacts.pairs()) == 0 and not contacts.moved(p)
    assert not contacts.moved(p, box=(0, 10)) and not contacts.moved(p, box=(0, [10, 7, 7]))
    for box in ((0, 9), (0, [9, 10, 10]), (1, 10), ([0.5, 0, 0], 10)):
        assert contacts.moved(p, box=box), box
    contacts.build(p, min=0, max=9)
    assert len(contacts.pairs()) == 1 and not contacts.moved(p) and contacts.moved(p, (0, 10))


def check_boxes_given_twice():
    """What could be two lengths is refused in the plane; one box, by one name; builds take it."""
    p = rng().random((30, 2)) * 10
    for make in (nf.Grid, nf.List):
        refused(ValueError, "two lengths, or two corners?", make, p, 0.5, box=(10.0, 20.0),
                periodic=True)
        refused(ValueError, "give one of both", make, p, 0.5, box=(0, 1), max=2)
        refused(ValueError, "give one of both", make, p, 0.5, box=(0, 1), min=0)
        for box in ((0, [10, 20]), ([1, 1], 20), (-1.0, 10.0)):
            assert make(p, 0.5, box=box, periodic=True).n == 30
        assert make(np.c_[p, p[:, 0]], 0.5, box=(10, 20), periodic=True).n == 30
    contacts = nf.List(p, 0.5, box=(0, 10), periodic=True, half=True)
    assert contacts.build(p, box=(0, 11)).desc.max[:2] == (11, 11)
    assert as_set(*contacts.pairs().T) == brute_pairs(p, 0.5, [1, 1], 11)
    refused(TypeError, "List has no field 'boxx': see help", contacts.build, p, boxx=(0, 11))
    refused(ValueError, "two lengths", contacts.build, p, box=(10, 20))
    refused(ValueError, "dim=3, but points have 2 columns", nf.Grid, p, dim=3)
    for pointer in ("half", "allocator"):
        refused(TypeError, "no field %r" % pointer, nf.Grid, p, **{pointer: 8})


def check_list_searches():
    """What a list without a source searches by, where cells would be wide or mostly empty: the
    pairs are those of all with all, and the history goes from one search to the other."""
    r, n = rng(3), 700
    p = r.random((n, 3)) * n ** (1 / 3)
    radii = np.full(n, 0.4)
    radii[:2] = 5, 0
    reach = radii[:, None] + radii[None]
    far, chain = p.copy(), np.repeat(np.arange(n)[:, None] * 1e3, 3, 1) + r.random((n, 3)) / 9
    far[-1] = 1e6
    chain[1::2] = chain[::2] + 0.3
    flags = [True, False, False]
    for points, named, which, want in (
            (p, dict(radius=0.7), "grid", brute_pairs(p, 0.7)),
            (p, dict(radii=np.full(n, 0.35)), "grid", brute_pairs(p, 0.7)),
            (p, dict(radii=radii), "", brute_pairs(p, reach)),
            (p, dict(radii=radii, box=(0, 20), periodic=flags), "",
             brute_pairs(p, reach, flags, 20)),
            (far, dict(radii=radii), "", brute_pairs(far, reach)),
            (far, dict(radii=np.full(n, 0.35), box=(0, 30), periodic=flags), "tree",
             brute_pairs(far, 0.7, flags, 30)),
            (far, dict(radius=0.7), "tree", brute_pairs(far, 0.7)),
            (far, dict(radii=np.full(n, 0.35)), "tree", brute_pairs(far, 0.7)),
            (chain, dict(radius=0.7), "", brute_pairs(chain, 0.7)),
            (far, dict(radius=0.7, box=(0, 30), periodic=flags), "tree",
             brute_pairs(far, 0.7, flags, 30))):
        contacts = nf.List(points, half=True, history="i4", **named)
        assert contacts.search.startswith(which + ": " * (which != "")), (which, contacts.search)
        assert as_set(*contacts.pairs().T) == want and len(contacts.pairs()) == len(want) > 20
        contacts.history[:] = 3
        if "periodic" not in named:
            contacts.build(points, nf.Grid(points, cell=1.0, unbounded=True))
            assert contacts.search == "of the caller" and (contacts.history == 3).all()
    half_gone = p.copy()
    half_gone[::2] = np.nan
    contacts = nf.List(half_gone, radii=radii, half=True, skip_invalid=True)
    want = {pair for pair in brute_pairs(p, reach) if pair[0] % 2 and pair[1] % 2}
    assert as_set(*contacts.pairs().T) == want and len(want) > 20


def again(thing):
    """Copies of a thing in three ways; each has memory of its own."""
    for duplicate in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        yield duplicate(thing)


def check_pickle_and_copy():
    """A copy answers as its original, and lives on without it."""
    p, triangles = rng().random((50, 3)), rng(2).random((40, 9))
    ray = [[0.5, 0.5, -9]], [[0, 0, 1]]
    contacts = nf.List(p, 0.3, half=True, history="f8", skin=0.1, exclude=[[0, 1]])
    assert copy.copy(contacts)._grid is None, "a grid is not shared"
    mesh = nf.Tree(triangles, "triangles")
    want = mesh.closest(p)
    for one in again(mesh):
        np.testing.assert_array_equal(one.closest(p)[1], want[1])
    contacts.history[:] = np.arange(len(contacts.history))
    bodies = nf.NBody()
    bodies.fields(p[:, :2])
    answers = {
        nf.Grid(p, cell=0.1): lambda grid: grid.neighbors(0.3) + grid.query(p, 0.2),
        nf.Grid(p, cell=0.3, masks=np.arange(50) % 4 + 1): lambda grid: grid.neighbors(0.3),
        nf.Grid(p, cell=0.3, method="fixed"): lambda grid: grid.neighbors(0.3),
        nf.Tree(p, "points", radius=0.1): lambda tree: tree.overlaps() + tree.nearest(p, 3) + (
            tree.refit(p + 0.01).pairs(),),
        nf.Tree(triangles.reshape(-1, 3, 3), "triangles", n_threads=2): lambda tree:
            tree.rays(*ray) + tree.closest(p) + tree.refit(triangles + 1).closest(p),
        nf.Tree(p, "triangles", indices=np.arange(48).reshape(-1, 3)): lambda tree:
            tree.rays(*ray) + tree.closest(p) + tree.refit(p + 1).closest(p),
        contacts: lambda a: a.rows() + (a.history, a.moved(p + 0.04), a.moved(p + 0.06),
                                        a.build(p + 0.04).history, a.pairs()),
        bodies: lambda sim: sim.fields_at(p[:, 1:]) + (sim.estimate().mean_share,)}
    for thing, answer in answers.items():
        copies = list(again(thing)) + [next(again(next(again(thing))))]
        want = answer(thing)
        wanted = [np.array(part) for part in want]
        assert len(repr(thing)) < 200 and repr(copies[0]).startswith("<nearfield.")
        del want
        if isinstance(thing, nf.Grid):
            copies += again(thing)      # of what has answered, too
            copies[0]._fields["cell"] = 0.5
            assert thing._fields["cell"] != 0.5, "keywords of its own"
        vars(thing).clear()         # frees its memory
        for one in copies:
            for found, expected in zip(answer(one), wanted):
                np.testing.assert_array_equal(found, expected)
            if not isinstance(one, nf.Grid):        # that needs the caller's positions
                one.validate()
    for empty in (nf.Grid(cell=0.1), nf.Tree(kind="points"), nf.List(radius=0.1), nf.NBody(),
                  nf.Grid(np.zeros((0, 3)), cell=0.1)):
        assert "nothing was built" in repr(empty) or empty.n == 0
        for one in again(empty):
            q = p[:, :2] if isinstance(one, nf.NBody) else p
            assert one.build(q).n == 50 and one._fields == empty._fields
    finder = nf.NeighborList(cutoff=0.3, full_list=True)
    for one in again(finder):
        assert len(one.compute(p, [1, 1, 1], True, "i")[0]) > 50


def check_save():
    """Bytes make the same grid, tree and list; damaged ones are refused."""
    for real in TYPES:
        p = rng().random((300, 3)).astype(real)
        for thing, made in ((nf.Grid(p, cell=0.1), nf.Grid(cell=0.1)),
                            (nf.Tree(p, "points"), nf.Tree(kind="points")),
                            (nf.List(p, 0.1), nf.List(radius=0.1))):
            data = thing.save()
            one = made.load(data, dtype=real)
            assert one.n == 300 and one.save() == data
            if not isinstance(thing, nf.List):
                for a, b in zip(one.query(p, 0.2), thing.query(p, 0.2)):
                    np.testing.assert_array_equal(a, b)
            refused(nf.Error, "bytes", made.load, data[:-5] + b"spoil", dtype=real)
            refused(nf.Error, "bytes", made.load, b"", dtype=real)
        other = nf.Grid(cell=0.1)
        refused(nf.Error, "bytes", other.load, nf.Grid(p, cell=0.1).save(),
                dtype=TYPES[real == np.float32])
    refused(nf.Error, "triangles", nf.Tree(kind="triangles").load(nf.Tree(
        rng().random((9, 9)), "triangles").save()).closest, [[0, 0, 0]])


def check_grid_filters():
    """Which pairs a grid lists, by all pairs."""
    p, n = rng(3).random((200, 2)), 200
    radii, masks = rng(4).random(n) * 0.05, rng(5).integers(0, 8, n).astype(np.uint32)
    sets, exclude = rng(6).integers(0, 3, n), rng(7).integers(0, n, (400, 2))
    sees = np.zeros(32, np.uint32)
    sees[:3] = 1 | 2, 4, 0
    d = np.linalg.norm(p[:, None] - p, axis=2)
    apart = ~np.eye(n, dtype=bool)
    named = np.zeros((n, n), bool)
    named[exclude[:, 0], exclude[:, 1]] = named[exclude[:, 1], exclude[:, 0]] = True
    wanted = {"radii": d < 0.1 + radii[:, None] + radii,
              "masks": (d < 0.1) & (masks[:, None] & masks > 0),
              "exclude": (d < 0.1) & ~named,
              "sets": (d < 0.1) & ((sees[sets][:, None] >> sets & 1) > 0)}
    for name, value in (("radii", radii), ("masks", masks), ("exclude", exclude), ("sets", sets)):
        keywords = {name: value, **({"sees": sees} if name == "sets" else {})}
        grid, want = nf.Grid(p, cell=0.1, **keywords), wanted[name] & apart
        assert as_set(*row_pairs(*grid.neighbors(0.1))) == as_set(*np.nonzero(want)), name
        assert grid.count_neighbors(0.1).tolist() == want.sum(1).tolist()
        either = np.triu(want | want.T)
        assert grid.count_pairs(0.1) == either.sum()
        assert as_set(*grid.pairs(0.1).T) == as_set(*np.nonzero(either)), name
    refused(ValueError, "masks: expected 200", nf.Grid, p, masks=masks[:9])
    refused(ValueError, "0 .. 31", nf.Grid, p, sets=np.full(n, 32), sees=sees)
    for one in (dict(sets=sets), dict(sees=sees)):
        refused(ValueError, "sets and sees go together", nf.Grid, **one)
    refused(ValueError, "sees: expected 32", nf.Grid, sets=sets, sees=sees[:3])
    refused(ValueError, "masks: -1 is no uint32", nf.Grid, masks=[-1])
    for bad, why in ((np.nan, "nan"), (np.inf, "infinite"), (-1, "negative")):
        refused(ValueError, "radii: row 3 is " + why, nf.Grid, radii=[1, 1, 1, bad])
    refused(ValueError, "exclude names", nf.Grid, p, exclude=[[0, n]])


def check_refused_filters():
    """A grid whose filter does not fit the new points is empty: it does not list all pairs."""
    p = rng().random((50, 2))
    for filters in (dict(radii=np.full(10, 0.1)), dict(masks=np.ones(10, np.uint32)),
                    dict(exclude=[[9, 60]]), dict(sets=np.zeros(10), sees=np.zeros(32))):
        grid = nf.Grid(cell=0.1, **filters)
        refused(ValueError, "", grid.build, p)
        assert grid.n == 0
        refused(nf.Error, "NOT_BUILT", grid.count_pairs, 0.1)


def check_refused_masks_of_triangles():
    """A build that is refused for its masks leaves the tree as it was, with its indices."""
    p, indices, masks = rng().random((30, 3)), [[k, k + 1, k + 2] for k in range(28)], np.ones(28)
    tree = nf.Tree(p, "triangles", indices=indices, masks=masks)
    built = tree._state.desc.indices
    indices.append([0, 9, 19])
    refused(ValueError, "masks", tree.build, p)
    assert tree.n == 28 and built == tree._state.desc.indices == _arrays.address_of(
        tree._kept["indices"])
    assert tree.refit(p).n == 28


def check_rows_of_some():
    """With rows there are so many rows, and their lists are those of all particles."""
    p = rng().random((300, 2))
    offsets, ids = nf.Grid(p, 0.1).neighbors(0.1)
    for rows in (5, 299, 300):
        grid = nf.Grid(p, 0.1, rows=rows)
        start, found = grid.neighbors(0.1)
        assert (start == offsets[:rows + 1]).all()
        assert as_set(*row_pairs(start, found)) == as_set(*row_pairs(start, ids[:start[-1]]))
        assert (grid.count_neighbors(0.1) == np.diff(start)).all()
        contacts = nf.List(p, 0.1, rows=rows)
        for some in (contacts, pickle.loads(pickle.dumps(contacts))):
            start, found = some.rows()
            assert (start == offsets[:rows + 1]).all()
            assert as_set(*row_pairs(start, found)) == as_set(*row_pairs(start, ids[:start[-1]]))
            assert len(some.pairs()) == len(found)
    none = nf.Grid(p, 0.1, rows=-1)
    assert none.neighbors(0.1)[0].tolist() == [0] and len(none.count_neighbors(0.1)) == 0


def check_alignment():
    """Arrays at odd addresses are copied: what C reads is aligned."""
    seen = []

    def address(array):
        seen.append(address_of(array))
        return seen[-1]

    def odd(values):
        values = np.asarray(values)
        room = np.zeros(values.nbytes + 1, np.uint8)
        array = room[1:].view(values.dtype).reshape(values.shape)
        array[...] = values
        assert not array.flags.aligned and array.flags.c_contiguous
        return array

    modules = [sys.modules["nearfield." + name] for name in (
        "_arrays", "_object", "_objects", "_worlds", "_neighbors")]
    address_of = _arrays.address_of
    places = [module for module in modules if hasattr(module, "address_of")]
    for dtype in TYPES:
        p, masks = rng().random((50, 2)).astype(dtype), np.arange(50, dtype=np.uint32)
        q = np.column_stack([p, p[:, 0]])
        boxes, cell = np.hstack([p, p + dtype(0.1)]), np.eye(3)
        answers = []
        for moved in (lambda a: a, odd):
            del seen[:]
            for module in places:
                module.address_of = address
            try:
                grid = nf.Grid(moved(p), 0.1, masks=moved(masks), radii=moved(p[:, 0] / 10))
                tree, sim = nf.Tree(moved(boxes)), nf.NBody()
                world = nf.World(2, dtype=dtype)
                ids = world.insert(moved(boxes))
                world.move(moved(ids), moved(boxes))
                answers.append(
                    grid.neighbors(0.1) + grid.query(moved(p), 0.1) +
                    tree.overlaps(moved(boxes)) + tree.nearest(moved(p), 2) +
                    sim.fields(moved(p), moved(p[:, 0] + 1)) + sim.fields_at(moved(p)) +
                    world.update().overlaps(moved(boxes)) +
                    nf.neighbor_list("ij", (moved(q), cell, True), moved(p[:, 0] / 10)) +
                    nf.neighbor_list("ij", (moved(q), cell, True, moved(masks.astype(np.int32))),
                                     {(1, 2): 0.5}))
            finally:
                for module in places:
                    module.address_of = address_of
            assert len(seen) > 20 and not any((at or 0) % 4 for at in seen)
        for found, right in zip(*answers):
            np.testing.assert_array_equal(found, right)


def check_no_queries():
    """Lists of no queries have one offset."""
    for dtype in TYPES:
        p = rng().random((20, 2)).astype(dtype)
        for n in (0, 20):
            tree, grid = nf.Tree(p[:n], "points"), nf.Grid(p[:n], 0.1)
            for offsets, ids in (tree.overlaps(np.zeros((0, 4))), tree.query(p[:0], 0.1),
                                 tree.overlaps(np.zeros((0, 3)), "spheres"),
                                 grid.query(p[:0], 0.1)):
                assert offsets.tolist() == [0] and offsets.dtype == np.int64 and len(ids) == 0


def check_closest_points():
    """Against the nearest of many points on each triangle; hits against rays."""
    for real in TYPES:
        t = rng(8).random((30, 3, 3)).astype(real)
        q = (rng(9).random((60, 3)) * 1.5).astype(real)
        u, v = np.meshgrid(np.arange(101) / 100, np.arange(101) / 100)
        u, v = u[u + v <= 1.0001], v[u + v <= 1.0001]
        on = (t[:, :1] + u[None, :, None] * (t[:, 1:2] - t[:, :1])
              + v[None, :, None] * (t[:, 2:] - t[:, :1]))
        far = np.linalg.norm(on[None] - q[:, None, None], axis=3).min(2)
        tree = nf.Tree(t, "triangles")
        ids, point, distance = tree.closest(q)
        assert ids.dtype == np.int32 and point.dtype == distance.dtype == real
        assert (distance <= far.min(1) + 1e-5).all() and (distance > far.min(1) - 0.02).all()
        assert np.allclose(np.linalg.norm(point - q, axis=1), distance, atol=1e-6)
        assert (far[np.arange(60), ids] < far.min(1) + 0.02).all()
        ids, point, distance = tree.closest(q, 0.05)
        assert ((ids < 0) == np.isinf(distance)).all() and 0 < (ids < 0).sum() < 60
        at, along = q - 2, rng(10).standard_normal((60, 3)).astype(real) * 0.1 + 1
        for t_max in (np.inf, 2.0, 0.0):
            first, _ = tree.rays(at, along, t_max)
            assert (tree.hits(at, along, t_max) == (first >= 0)).all()
        assert tree.hits(at, along).any() and not tree.hits(at, along).all()
    refused(nf.Error, "closest needs a tree of triangles", nf.Tree(q, "points").closest, q)
    refused(ValueError, "row 1", tree.closest, [[0, 0, 0], [0, np.nan, 0]])


def boxes_touch(a, b):
    """(len(a), len(b)) of bool, of boxes (m, 2 * dim)."""
    dim = a.shape[1] // 2
    return ((a[:, None, :dim] <= b[None, :, dim:]) & (b[None, :, :dim] <= a[:, None, dim:])).all(2)


def check_world():
    """Pairs, events, searches and filters, by all boxes."""
    for dim, real in ((2, np.float64), (3, np.float32)):
        r = rng(31)
        def boxes(m):
            low = r.random((m, dim)) * 10
            return np.hstack([low, low + 0.2 + r.random((m, dim))]).astype(real)
        world, at = nf.World(dim, dtype=real, margin=0.05, n_threads=2), boxes(200)
        ids = world.insert(at[:150])
        ids = np.append(ids, world.insert(at[150:].reshape(-1, 2, dim), "fixed"))
        assert world.n == 200 and len(set(ids.tolist())) == 200 and ids.dtype == np.uint64
        before = set()
        for step in range(4):
            world.update().validate()
            touch = boxes_touch(at, at)
            touch[150:, 150:] = False
            want = {frozenset(pair) for pair in ids[np.argwhere(np.triu(touch, 1))].tolist()}
            pairs = world.pairs()
            assert {frozenset(pair) for pair in pairs.tolist()} == want and len(pairs) == len(want)
            begun, ended = ({frozenset(p) for p in one.tolist()}
                            for one in (world.begun, world.ended))
            before = before - ended | begun
            assert before >= want and not begun & ended and (step > 0 or begun)
            on = (r.standard_normal((150, dim)) * 0.2).astype(real)
            at[:150] += np.hstack([on, on])
            world.move(ids[:150], at[:150], on if step % 2 else None)
        world.update()
        some = boxes(30)
        offsets, found = world.overlaps(some)
        want = boxes_touch(some, at)
        assert np.diff(offsets).tolist() == want.sum(1).tolist()
        assert as_set(*row_pairs(offsets, found)) == {
            (q, int(ids[k])) for q, k in np.argwhere(want)}
        points = (r.random((30, dim)) * 12).astype(real)
        gap = np.maximum(np.maximum(at[None, :, :dim] - points[:, None],
                                    points[:, None] - at[None, :, dim:]), 0)
        d2 = np.sort((gap.astype(float) ** 2).sum(2), 1)
        near, distances2 = world.nearest(points, 5)
        assert np.allclose(distances2, d2[:, :5], atol=1e-5) and (near > 0).all()
        near, distances2 = world.nearest(points, 5, 0.3)
        assert ((near == 0) == np.isinf(distances2)).all()
        assert (np.isfinite(distances2).sum(1) == np.minimum((d2 <= 0.09).sum(1), 5)).all()
        vectors = (r.standard_normal((30, dim)) * 9).astype(real)
        for shapes, kind, t_max in ((points, "rays", 0.8), (boxes(30), "boxes", 1)):
            low, high = (shapes, shapes) if kind == "rays" else np.split(shapes, 2, 1)
            hit, t = (world.rays(shapes, vectors, t_max) if kind == "rays"
                      else world.cast(shapes, vectors, kind))
            with np.errstate(all="ignore"):
                one = (at[None, :, :dim].astype(float) - high[:, None]) / vectors[:, None]
                two = (at[None, :, dim:].astype(float) - low[:, None]) / vectors[:, None]
            enter = np.maximum(np.minimum(one, two).max(2), 0)
            enter[enter > np.maximum(one, two).min(2)] = np.inf
            first = enter.min(1)
            first[first > t_max] = np.inf
            assert np.allclose(t, first, atol=1e-5) and 3 < (hit > 0).sum()
            assert ((hit == 0) == np.isinf(first)).all()
        ball = np.hstack([points, np.full((30, 1), 0.4, real)])
        hit, t = world.cast(ball, vectors, "spheres")
        for q in range(30):
            way = points[q] + np.linspace(0, 1, 2001)[:, None] * vectors[q]
            gap = np.maximum(np.maximum(at[None, :, :dim] - way[:, None],
                                        way[:, None] - at[None, :, dim:]), 0)
            reached = np.flatnonzero((np.linalg.norm(gap, axis=2) <= 0.4).any(1))
            assert (hit[q] > 0) >= (len(reached) > 0)
            if len(reached):
                assert reached[0] / 2000 - 0.001 < t[q] < reached[0] / 2000 + 0.001
        world.remove(ids[:3])
        assert world.update().n == 197 and not np.isin(ids[:3], world.pairs()).any()
        refused(nf.Error, "row 1", world.move, ids[[5, 0]], at[[5, 0]])
        refused(nf.Error, "no object has this id", world.remove, [12345])
        inverted = at[4:6].copy()
        inverted[1, 0] = inverted[1, dim] + 1
        refused(nf.Error, "row 1", world.move, ids[4:6], inverted)
        refused(nf.Error, "min above max", world.insert, inverted)
        assert world.n == 197, "all or none"
        for wrong in ([], [1, 2], [[1]]):       # of a search there is one
            refused(ValueError, "filter: expected one", world.overlaps, at, category=wrong)
            refused(ValueError, "filter: expected one", world.nearest, at[:, :world._dim],
                    group=wrong)
            refused(ValueError, "filter: expected one", world.cast, at, at[:, :world._dim],
                    mask=wrong)
        refused(ValueError, "state='flying'", world.insert, at, "flying")
        refused(TypeError, "neither pickled nor copied", copy.copy, world)
        assert "lbvh_world" not in repr(world) and "n=197" in repr(world)
    walls = nf.World(2)
    same = [[0.0, 0, 1, 1]] * 3
    a, b, c = walls.insert(same, category=[1, 2, 4], mask=[2, 1 | 4, 4])
    assert {frozenset(pair) for pair in walls.update().pairs().tolist()} == {frozenset((a, b))}
    assert walls.overlaps([[0, 0, 1, 1]], mask=4)[1].tolist() == [c]
    walls.set_filter([c], 4, 6)
    walls.set_state([a], "sleeping")
    assert len(walls.update().pairs()) == 2
    walls.set_state([b, c], "sleeping")
    assert len(walls.update().pairs()) == 0


# ---- NBody ---------------------------------------------------------------------------------------


def direct(pos, mass, at=None, law=2, soft=0.0):
    at = pos if at is None else at
    d = pos[None].astype(float) - at[:, None]
    r2 = (d ** 2).sum(-1) + soft ** 2
    none = (d == 0).all(-1)
    r2[none] = 1
    weight = np.where(none, 0, mass / r2 ** (1.5 if law == 2 else 1))
    potential = np.where(none, 0, -mass / np.sqrt(r2) if law == 2 else mass * np.log(r2) / 2)
    terms = np.abs(weight * np.sqrt((d ** 2).sum(-1))).sum(1)
    return (weight[..., None] * d).sum(1), potential.sum(1), terms


def check_nbody():
    r = rng(6)
    for dtype in TYPES:
        for law in ("inverse_square", "inverse"):
            for cloud in (r.random((1500, 2)), r.standard_normal((1500, 2)) ** 3):
                pos, mass = cloud.astype(dtype), (0.5 + r.random(1500)).astype(dtype)
                power = 2 if law == "inverse_square" else 1
                acc, potential, terms = direct(pos, mass, law=power, soft=0.01)
                last = 1
                for order, bound in ((4, 1e-2), (8, 1e-4)):
                    fields = dict(method="force_nodes", law=law, order=order, softening=0.01)
                    sim = nf.NBody(**fields)
                    ours, pot = sim.fields(pos, mass)
                    error = np.linalg.norm(ours - acc, axis=1) / terms
                    assert ours.dtype == dtype
                    assert error.max() < bound and error.mean() < min(last, bound / 10), (
                        law, order, error.max())
                    assert np.allclose(pot, potential, rtol=50 * bound,
                                       atol=5 * bound * np.abs(potential).mean())
                    told = sim.estimate(samples=1500)
                    assert told.samples == 1500
                    assert abs(told.share - error.max()) < 0.05 * error.max() + 1e-6
                    assert (ours == nf.NBody(**fields).accelerations(pos, mass)).all()
                    last = error.mean()
                    at = r.random((50, 2)).astype(dtype)
                    there, pot = sim.fields_at(at)
                    want = direct(pos, mass, at, power, 0.01)
                    assert (np.linalg.norm(there - want[0], axis=1) < bound * want[2]).all()
                    sim.validate()
    for n in (0, 1, 2):
        acc, potential = nf.NBody().fields(np.arange(2.0 * n).reshape(n, 2))
        assert acc.shape == (n, 2) and potential.shape == (n,)
    assert np.allclose(acc, [[8 ** -1.0 / 2 ** 0.5] * 2, [-(8 ** -1.0) / 2 ** 0.5] * 2])


def check_nbody_forgets():
    """Accelerations are those of the bodies of now, and a copy is of the tree, not of the caller's
    arrays."""
    r = rng(8)
    p, q = r.random((10, 2)), r.random((3000, 2))
    sim = nf.NBody()
    sim.fields(p)
    sim.build(q)
    refused(nf.Error, "needs accelerations", sim.estimate)
    sim.accelerations(q)
    refused(ValueError, "32 bits", sim.estimate, 2**40)     # it was cut off to 0
    refused(ValueError, "one of leapfrog euler", sim.step, p, p, 0.1, integrator="rk4")
    sim.step(p, np.zeros_like(p), 0.1, steps=0)
    assert sim.estimate(3000).mean_share < 1e-3
    sim.step(p, np.zeros_like(p), 0.1)
    assert sim.n == 10 and sim.estimate(10).mean_share < 1e-12
    sim.fields(q)
    want = sim.fields_at(p)
    q += 5 * r.random((3000, 2))
    for one in again(sim):
        np.testing.assert_array_equal(one.fields_at(p)[0], want[0])
        assert one.estimate(3000).mean_share < 1e-3
    q[7] = np.nan
    refused(nf.Error, "row = 7", sim.fields, q)
    for one in again(sim):
        assert one.n == 0
        refused(nf.Error, "", one.fields_at, p)


def check_nbody_steps():
    # on a circle: 4 pi for a turn
    pos, vel = np.array([[-1.0, 0], [1, 0]]), np.array([[0, -0.5], [0, 0.5]])
    nf.NBody().step(pos, vel, 4 * np.pi / 2000, steps=2000)
    assert np.allclose(pos, [[-1, 0], [1, 0]], atol=1e-4)
    assert np.allclose(vel, [[0, -0.5], [0, 0.5]], atol=1e-4)
    r = rng(2)
    pos, vel, mass = r.standard_normal((200, 2)), r.standard_normal((200, 2)), r.random(200)
    want_pos, want_vel = pos.copy(), vel.copy()
    for _ in range(3):
        want_vel += 0.005 * direct(want_pos, mass, soft=0.1)[0]
        want_pos += 0.01 * want_vel
        want_vel += 0.005 * direct(want_pos, mass, soft=0.1)[0]
    nf.NBody(method="direct", softening=0.1).step(pos, vel, 0.01, mass, steps=3)
    assert np.allclose(pos, want_pos, atol=1e-12) and np.allclose(vel, want_vel, atol=1e-12)
    sim = nf.NBody()
    for bad in (pos[::2], np.asfortranarray(pos), pos.astype(np.float32), pos.tolist()):
        refused(ValueError, "in place", sim.step, pos, bad, 0.01)
        refused(ValueError, "in place", sim.step, bad, pos, 0.01)
    fixed = pos.copy()
    fixed.flags.writeable = False
    refused(ValueError, "writeable", sim.step, fixed, vel, 0.01)


# ---- neighbor_list -------------------------------------------------------------------------------


def same_lists(ours, theirs):
    def table(columns):
        rows = np.column_stack([np.asarray(c, float) for c in columns])
        return rows[np.lexsort(rows[:, 4::-1].T)]       # by i, j and S
    a, b = table(ours), table(theirs)
    return a.shape == b.shape and np.abs(a - b).max(initial=0) < 1e-12


def check_neighbor_list_against_ase():
    from ase import Atoms
    from ase.build import bulk
    from ase.neighborlist import neighbor_list
    r, pairs = rng(12), 0
    for trial in range(150):
        n = int(r.integers(1, 25))
        cell = np.diag(0.7 + 4 * r.random(3))
        if trial % 3 == 2:
            cell = cell + 0.3 * r.standard_normal((3, 3))
        pos = (r.random((n, 3)) * 3 - 1) @ cell     # outside of the cell, too
        if trial % 5 == 0:
            pos = np.round(pos * 4) / 4             # some on top of each other, some on the border
        atoms = Atoms("H%d" % n, positions=pos, cell=cell, pbc=r.random(3) < 0.6)
        cutoff = float(r.choice([0.5, 1.0, 2.5, 4.0]))
        if trial % 7 == 0:
            cutoff = r.random(n) * 1.5
        own = bool(trial % 11 == 0)
        theirs = neighbor_list("ijSdD", atoms, cutoff, self_interaction=own)
        ours = nf.neighbor_list("ijSdD", atoms, cutoff, self_interaction=own)
        assert same_lists(ours, theirs), "trial %d: %d pairs, not %d" % (
            trial, len(ours[0]), len(theirs[0]))
        assert (np.diff(ours[0]) >= 0).all()
        system = atoms.positions, atoms.cell[:], atoms.pbc
        assert same_lists(nf.neighbor_list("ijSdD", system, cutoff, own), theirs)
        pairs += len(theirs[0])
    assert pairs > 50000
    for atoms in (bulk("Cu", cubic=True), bulk("Cu") * (3, 3, 3),
                  bulk("NaCl", "rocksalt", a=5.64), bulk("Ti")):
        rim = atoms.get_distance(0, min(1, len(atoms) - 1), mic=True) or 2.0
        for cutoff in (3.0, 6.5, rim * (1 - 1e-9), rim * (1 + 1e-9)):   # (at the rim: roundings)
            assert same_lists(nf.neighbor_list("ijSdD", atoms, cutoff),
                              neighbor_list("ijSdD", atoms, cutoff))
    cubes = Atoms("H8", positions=np.indices((2, 2, 2)).reshape(3, 8).T, cell=[2, 2, 2], pbc=True)
    for cutoff in (1, 2, 3.0):      # exact: what is at the cutoff is not nearer
        assert same_lists(nf.neighbor_list("ijSdD", cubes, cutoff),
                          neighbor_list("ijSdD", cubes, cutoff))
    mixed = bulk("NaCl", "rocksalt", a=5.64) * (3, 2, 1)
    for law in ({("Na", "Cl"): 3.1}, {(11, 11): 4.1, ("Cl", "Na"): 3.0},
                {("Na", "Na"): 6.0, ("Cl", "Cl"): 2.0, ("Na", "Cl"): 5.0}):
        assert same_lists(nf.neighbor_list("ijSdD", mixed, law),
                          neighbor_list("ijSdD", mixed, law))
    far = Atoms("H2", positions=[[0, 0, 0], [1e7, 1e7, 1e7]])
    assert len(nf.neighbor_list("i", far, 1.0)) == 0


def check_neighbor_list_itself():
    two = np.array([[0, 0, 0], [0.9, 0, 0]]), [1, 1, 1], [True, False, False]
    i, j, d = nf.neighbor_list("ijd", two, 0.3)
    assert as_set(i, j) == {(0, 1), (1, 0)} and np.allclose(d, 0.1)
    assert nf.neighbor_list("i", (np.zeros((0, 3)), [1, 1, 1], True), 1.0).shape == (0,)
    assert nf.neighbor_list("S", (np.zeros((1, 3)), [1, 1, 1], True), 1.01).shape == (6, 3)
    assert nf.neighbor_list("i", ([], [1, 1, 1], True), 1.0).shape == (0,)
    assert nf.neighbor_list("i", (np.zeros((0, 3)), [1, 1, 1], True), []).shape == (0,)
    one = np.zeros((1, 3)), np.eye(3), True
    refused(ValueError, "quantities", nf.neighbor_list, "ix", one, 1.0)
    lost = np.array([[np.nan, 0, 0]]), np.eye(3), True
    refused(ValueError, "finite", nf.neighbor_list, "i", lost, 1.0)
    flat = np.zeros((1, 3)), np.zeros((3, 3)), True
    refused(ValueError, "independent", nf.neighbor_list, "i", flat, 1.0)
    refused(ValueError, "each of the 1 atoms", nf.neighbor_list, "i", one, [1.0, 2.0])
    refused(ValueError, "a dict needs the kinds", nf.neighbor_list, "i", one, {("H", "H"): 1.0})


def check_neighbor_list_shapes():
    """Numbers are never taken as other atoms than they were."""
    six = np.arange(18.0).reshape(6, 3)
    for bad in (six[:, :2], six.reshape(9, 2), six.ravel(), six[0], six.reshape(2, 3, 3), six.T,
                np.zeros((0, 2)), np.zeros((4, 0)), 1.0):
        text = "shape (n, 3), not %s" % (np.shape(bad),)
        refused(ValueError, text, nf.neighbor_list, "i", (bad, [9, 9, 9], False), 1.0)
    for bad in (np.eye(3).ravel(), np.eye(2), np.ones(6), np.ones((1, 3)), 5.0):
        text = "(3, 3), not %s" % (np.shape(bad),)
        refused(ValueError, text, nf.neighbor_list, "i", (six, bad, True), 0.5)
    for bad in (np.ones((6, 1)), np.ones((2, 3)), np.ones(5)):
        text = "each of the 6 atoms, not an array of shape %s" % (bad.shape,)
        refused(ValueError, text, nf.neighbor_list, "i", (six, [9, 9, 9], True), bad)


def check_neighbor_list_arguments():
    two = np.array([[0, 0, 0], [0.1, 0, 0]]), [1, 1, 1], True
    refused(TypeError, "a tuple (positions, cell, pbc)", nf.neighbor_list, "ij", two[0], 0.2)
    refused(TypeError, "a tuple (positions, cell, pbc)", nf.neighbor_list, "ij",
            [[0, 0, 0], [1, 0, 0], [2, 0, 0]], 0.2)
    assert as_set(*nf.neighbor_list("ij", list(two), 0.2)) == {(0, 1), (1, 0)}
    for bad in ("ix", None, ["i", "j"]):
        refused(ValueError, "quantities: expected a string of", nf.neighbor_list, bad, two, 0.2)
    for bad in ("TTF", [True, False], [[1, 1, 1]]):
        refused(ValueError, "pbc: expected True or False, or three", nf.neighbor_list, "ij",
                (two[0], two[1], bad), 0.2)
    for bad in (None, "wide", {0.2}):
        refused(TypeError, "cutoff: expected a number", nf.neighbor_list, "ij", two, bad)
    refused(ValueError, "take a smaller one", nf.neighbor_list, "ij", two, 1e3)
    for bad in (two[0].astype(complex), two[0].astype(str)):
        refused(ValueError, "positions: expected real numbers", nf.neighbor_list, "ij",
                (bad, two[1], True), 0.2)
    refused(ValueError, "without a cell: (0, 0, 0)", nf.neighbor_list, "ij", (two[0], None, False),
            0.2)
    alone = nf.neighbor_list("ij", (two[0], (0, 0, 0), False), 0.2)
    assert as_set(*alone) == {(0, 1), (1, 0)}
    refused(TypeError, "n_threads: expected an integer", nf.neighbor_list, "ij", two, 0.2,
            n_threads="many")


def check_neighbor_list_cutoffs():
    two = np.array([[0, 0, 0], [0.1, 0, 0]]), [1, 1, 1], True
    for bad in (-1, -1e-300, np.nan, np.inf, -np.inf):
        refused(ValueError, "cutoff must be finite and not negative", nf.neighbor_list, "ij", two,
                bad)
    refused(ValueError, "longer than all distances", nf.neighbor_list, "ij", two, np.inf)
    for zero in (0, 0.0, np.float32(0), [0, 0], np.zeros(2), {(1, 1): 0.0}, {1: 0.0}):
        for own in (False, True):       # nothing is nearer than 0: as ASE has it
            assert len(nf.neighbor_list("i", two + ([1, 1],), zero, own)) == 0, zero
        refused(ValueError, "row 1", nf.neighbor_list, "i",
                ([[0, 0, 0], [np.nan, 0, 0]],) + two[1:] + ([1, 1],), zero)
    for dtype, far, text in ((np.float32, 1e20, "too large"), (np.float32, 1e-50, "too small"),
                             (np.float64, 1e-160, "too small"), (np.float64, 1e200, "too large")):
        refused(ValueError, text, nf.neighbor_list, "i", (two[0].astype(dtype), [1, 1, 1], False),
                far)
        refused(ValueError, "does not fit into", nf.neighbor_list, "i",
                (two[0].astype(np.float32), [1, 1, 1], False), [1e20, 1e20])
    for bad in (-1e-9, np.nan, np.inf, -np.inf):
        refused(ValueError, "cutoff: row 1 is not a radius", nf.neighbor_list, "ij", two,
                [0.3, bad])
    none = np.zeros((0, 3)), [1, 1, 1], True
    refused(ValueError, "not negative", nf.neighbor_list, "i", none, -1.0)
    again = nf.neighbor_list("iji", two, [0.2, 0])
    assert all(np.array_equal(a, nf.neighbor_list(q, two, [0.2, 0])) for a, q in zip(again, "iji"))
    assert as_set(*nf.neighbor_list("ij", two, [0.2, 0])) == {(0, 1), (1, 0)}, \
        "no radius of its own, but near"


def check_neighbor_list_far_atoms():
    """An atom that flew away is found or refused by its index; it costs neither time nor memory."""
    r = rng(5)
    inside = r.random((500, 3)) * 10
    want = as_set(*nf.neighbor_list("ij", (inside[:499], [10, 10, 10], False), 1.0))
    with bounded():
        for far in (np.inf, -np.inf, np.nan):
            for pbc in (False, True, [0, 1, 0]):
                for axis in range(3):
                    p = inside.copy()
                    p[321, axis] = far
                    for cutoff in (1.0, np.full(500, 0.5)):
                        refused(ValueError, "positions: row 321 is ", nf.neighbor_list, "ij",
                                (p, [10, 10, 10], pbc), cutoff)
        for far in (1e10, 1e16, -1e16, 1e100):
            p = inside.copy()
            p[321, 1] = far
            refused(ValueError, "2^28 periods", nf.neighbor_list, "ij", (p, [10, 10, 10], True),
                    1.0)
        for far in (1e4, 1e9, 1e12):
            p = inside.copy()
            p[499, 1] = far
            assert as_set(*nf.neighbor_list("ij", (p, [10, 10, 10], False), 1.0)) == want
        for far in (1e4, 1e9):
            p = inside.copy()
            p[499, 1] = far
            near = p.copy()
            near[499, 1] -= 10 * np.round(far / 10)
            periodic = [as_set(*nf.neighbor_list("ij", (q, [10, 10, 10], True), 1.0))
                        for q in (p, near)]
            assert periodic[0] == periodic[1] > want, "an atom %g away" % far


def check_neighbor_list_needs():
    """What needs more memory than there is is refused before it is asked for."""
    here = np.zeros((1, 3))
    with bounded():
        for cell, cutoff in ((5, 1e5), (5, 1e16), (1e-5, 1.0)):
            refused((ValueError, MemoryError), "", nf.neighbor_list, "i",
                    (here, [cell] * 3, True), cutoff)
        refused((ValueError, MemoryError), "", nf.neighbor_list, "i",
                (here, [1, 1e-12, 1], [0, 1, 0]), 1.0)
        huge = np.eye(3) * 1e200, [1, 1, 1], False
        refused(ValueError, "square", nf.neighbor_list, "i", huge, 1e200)
        search = _neighbors._Search(np.float64)
        search.room = 1000000
        saved, _neighbors._pools[np.float64] = _neighbors._pools[np.float64], [search]
        try:
            many, some = ((rng().random((n, 3)), [1, 1, 1], False) for n in (2000, 200))
            refused(MemoryError, "do not fit", nf.neighbor_list, "i", many, 0.9)
            assert len(nf.neighbor_list("i", some, 0.1)) > 0
        finally:
            _neighbors._pools[np.float64] = saved
        assert _memory._machine_bytes() > 2**28
        # (1000 are at the cutoff or beyond)
        assert len(nf.neighbor_list("i", (here, [1e-3, 1, 1], [1, 0, 0]), 1.0)) == 1998


def check_neighbor_list_forms():
    """Dicts, half lists, sorted rows, float32, the atom itself, and the names of the peers."""
    r = rng(3)
    for trial in range(40):
        n = int(r.integers(1, 30))
        cell = np.diag(0.7 + 3 * r.random(3)) + 0.2 * r.standard_normal((3, 3))
        x, pbc, kinds = (r.random((n, 3)) * 2 - 0.5) @ cell, r.random(3) < 0.6, r.integers(1, 4, n)
        i, j, S, d, D = nf.neighbor_list("ijSdD", (x, cell, pbc), 1.4)
        assert np.abs(D - (x[j] - x[i] + S @ cell)).max(initial=0) < 1e-12
        assert (d < 1.4).all() and (np.diff(i) >= 0).all()
        rows = np.c_[i, j, S]
        full = set(map(tuple, rows.tolist()))
        assert len(full) == len(i)
        ordered = np.column_stack(nf.neighbor_list("ijS", (x, cell, pbc), 1.4, sorted=True))
        assert (ordered == rows[np.lexsort(rows.T[::-1])]).all()
        own = np.column_stack(nf.neighbor_list("ijS", (x, cell, pbc), 1.4, True, sorted=True))
        assert set(map(tuple, own.tolist())) == full | {(k, k, 0, 0, 0) for k in range(n)}
        assert (own == own[np.lexsort(own.T[::-1])]).all()
        loose = np.column_stack(nf.neighbor_list("ijS", (x, cell, pbc), 1.4, True))
        assert set(map(tuple, loose.tolist())) == set(map(tuple, own.tolist()))
        assert len(loose) == len(own)
        once = np.column_stack(nf.neighbor_list("ijS", (x, cell, pbc), 1.4, half=True))
        back = np.c_[once[:, 1], once[:, 0], -once[:, 2:]]
        assert 2 * len(once) == len(full) and set(map(tuple, np.r_[once, back].tolist())) == full
        law = {(1, 2): 0.9, ("Li", "H"): 1.4, (2, 2): 0.5}
        reach = np.zeros((4, 4))
        reach[1, 2] = reach[2, 1] = 0.9
        reach[1, 3] = reach[3, 1] = 1.4
        reach[2, 2] = 0.5
        a, b = kinds[i], kinds[j]
        want = {tuple(row) for row in rows[d < reach[a, b]].tolist()}
        found = np.column_stack(nf.neighbor_list("ijS", (x, cell, pbc, kinds), law))
        assert set(map(tuple, found.tolist())) == want and len(found) == len(want)
        radii = np.array([0, 0.3, 0.45, 0.7])
        want = {tuple(row) for row in rows[d < radii[a] + radii[b]].tolist()}
        for cutoff in ({"H": 0.3, 2: 0.45, "Li": 0.7}, radii[kinds]):
            found = np.column_stack(nf.neighbor_list("ijS", (x, cell, pbc, kinds), cutoff))
            assert set(map(tuple, found.tolist())) == want and len(found) == len(want)
        single = nf.neighbor_list("dD", (x.astype(np.float32), cell, pbc), 1.4)
        assert single[0].dtype == single[1].dtype == np.float32
        assert abs(len(single[0]) - len(d)) <= 2
        same = (nf.primitive_neighbor_list("ijSd", pbc, cell, x, 1.4),
                nf.neighbour_list("ijSd", cutoff=1.4, positions=x, cell=cell, pbc=pbc))
        finder = nf.NeighborList(cutoff=1.4, full_list=True, sorted=True)
        same += (tuple(finder.compute(x, cell, pbc, "ijSd")),)
        assert all(same_lists(form, (i, j, S, d)) for form in same)
        pairs = nf.NeighborList(cutoff=1.4, full_list=False).compute(x, cell, pbc, "PdP")
        assert pairs[0].shape == (len(once), 2) and (pairs[0] == pairs[2]).all()
    system = x, cell, pbc, kinds
    assert [a.shape for a in nf.neighbor_list("SiS", system, 1.4)] == [S.shape, i.shape, S.shape]
    refused(ValueError, "is no element", nf.neighbor_list, "i", system, {("Qq", 1): 1.0})
    refused(ValueError, "not both", nf.neighbor_list, "i", system, {("H", 1): 1.0, "H": 1.0})
    refused(ValueError, "numbers: expected one for each", nf.neighbor_list, "i",
            (x, cell, pbc, kinds[:-1]), {"H": 1.0})
    refused(ValueError, "must be finite", nf.neighbor_list, "i", system, {"H": np.nan})


def all_images(points, at, cell, pbc, cutoff):
    """(row, id, shift, vector) of all images of points around each of `at`, by trying those of a
    few cells on every side; sorted."""
    reach = [range(-4, 5) if periodic else range(1) for periodic in pbc]
    shifts = np.array(np.meshgrid(*reach, indexing="ij")).reshape(len(pbc), -1).T
    vectors = points[None, :, None] - at[:, None, None] + (shifts @ cell)[None, None]
    row, point, image = np.nonzero(np.linalg.norm(vectors, axis=3) < cutoff)
    return row, point, shifts[image], vectors[row, point, image]


def check_queries():
    """neighbors, query and nearest, in two and three numbers, against all images of all points."""
    r = rng(21)
    for dim, pbc in ((3, (1, 1, 1)), (3, (1, 0, 1)), (2, (1, 1)), (2, (0, 1)), (3, (0, 0, 0))):
        cell = np.eye(dim) + 0.4 * r.random((dim, dim))
        x, at = r.random((40, dim)) @ cell * 1.5 - 0.2, r.random((25, dim)) @ cell
        for real in TYPES:
            x, at, box = x.astype(real), at.astype(real), None if not any(pbc) else cell
            for own in False, True:
                centre = x if own else at
                row, point, shift, vector = all_images(x.astype(float), centre.astype(float), cell,
                                                       pbc, 0.41)
                keep = ~((row == point) & (shift == 0).all(1)) if own else row >= 0
                row, point, shift, vector = row[keep], point[keep], shift[keep], vector[keep]
                found = (nf.neighbors(x, 0.41, cell=box, pbc=pbc, sorted=True) if own else
                         nf.query(x, at, 0.41, cell=box, pbc=pbc, sorted=True))
                order = np.lexsort(tuple(shift.T[::-1]) + (point, row))
                assert (found.pairs() == np.stack([row, point], 1)[order]).all(), (dim, pbc, own)
                assert (found.shifts == shift[order]).all() and len(found) == len(row) > 20
                assert np.allclose(found.vectors, vector[order], atol=1e-6)
                lengths = np.linalg.norm(vector[order], axis=1)
                assert np.allclose(found.distances, lengths, atol=1e-6)
                assert found.distances.dtype == found.vectors.dtype == real
                offsets, ids = found.csr()
                assert len(offsets) == len(centre) + 1 and ids is found.ids
                for k, reach in ((7, np.inf), (3, 0.41)):
                    near = nf.nearest(x, k, None if own else at, reach=reach, cell=box, pbc=pbc)
                    ids, distances = near.padded()
                    assert distances.shape == (len(centre), k)
                    wide = all_images(x.astype(float), centre.astype(float), cell, pbc, 1.4)
                    want = np.linalg.norm(wide[3], axis=1)
                    want = [np.sort(want[(wide[0] == q) & ~(own & (wide[1] == q)
                                                            & (wide[2] == 0).all(1))])[:k]
                            for q in range(len(centre))]
                    for q, row_wanted in enumerate(want):
                        row_wanted = row_wanted[row_wanted < reach]
                        if reach < 1 or row_wanted[-1] < 1.2:
                            there = len(row_wanted)
                            assert np.allclose(distances[q, :there], row_wanted, atol=1e-6)
                            assert (ids[q, there:] == -1).all()
                assert (np.diff(near.distances)[np.diff(near.rows) == 0] >= 0).all()
    found = nf.neighbors(x, 0.41)
    assert len(nf.neighbors(x, 0.41, half=True)) * 2 == len(found)
    assert repr(found) == "<nearfield.Neighbors: 40 rows, %d entries, n=40>" % len(found)
    assert nf.nearest(x[:3], 5).padded()[0].shape == (3, 5)
    assert [row.tolist() for row in found] == [found[q].tolist() for q in range(40)]
    assert (found[-1] == found.ids[found.offsets[-2]:]).all() and (found[3] == found.ids[
        found.rows == 3]).all()
    refused(IndexError, "row 40", found.__getitem__, 40)
    atoms = types.SimpleNamespace(positions=x, cell=np.eye(3), pbc=[1, 0, 1], numbers=[1] * 40)
    for a, b in ((nf.neighbors(atoms, 0.4), nf.neighbors(x, 0.4, cell=np.eye(3), pbc=[1, 0, 1])),
                 (nf.query(atoms, atoms, 0.4), nf.query(x, x, 0.4, cell=np.eye(3), pbc=[1, 0, 1])),
                 (nf.nearest(atoms, 3), nf.nearest(x, 3, cell=np.eye(3), pbc=[1, 0, 1])),
                 (nf.neighbors(atoms, {(1, 1): 0.4}, pbc=False), nf.neighbors(x, 0.4))):
        assert len(b) > 9 and (a.ids == b.ids).all() and (a.shifts == b.shifts).all()
    ids, distances = found.padded(2)
    assert ids.shape == (40, 2) and found.padded()[0].shape[1] == np.diff(found.offsets).max()
    none = nf.query(x, np.zeros((0, 3)), 1.0)
    assert len(none) == 0 and none.offsets.tolist() == [0] and none.padded()[0].shape == (0, 0)
    assert len(nf.query(np.zeros((0, 3)), x, 1.0)) == len(nf.query(x, x, 0)) == 0
    assert nf.query(x, x, 0).offsets.tolist() == [0] * 41
    refused(ValueError, "shape (m, 3)", nf.query, x, x[:, :2], 0.1)
    refused(ValueError, "row 1", nf.query, x, [[0, 0, 0], [0, np.nan, 0]], 0.1)
    refused(ValueError, "cell: periodic", nf.neighbors, x, 0.1, pbc=True)
    refused(ValueError, "expected 3 lengths", nf.neighbors, x, 0.1, cell=[1, 1])
    refused(ValueError, "1 or more", nf.nearest, x, 0)
    refused(TypeError, "k: expected an integer", nf.nearest, x, True)


def check_queries_against_scipy():
    from scipy.spatial import cKDTree
    x, at = rng(22).random((800, 3)), rng(23).random((300, 3))
    tree = cKDTree(x, boxsize=1.0)
    distances, ids = tree.query(at, 8)
    near = nf.nearest(x, 8, at, cell=[1, 1, 1])
    assert (near.padded(8)[0] == ids).all() and np.allclose(near.padded(8)[1], distances)
    both = nf.neighbors(x, 0.12, cell=[1, 1, 1])
    ours = both.sparse()
    theirs = tree.sparse_distance_matrix(tree, 0.12, output_type="coo_matrix").tocsr()
    assert ours.shape == (800, 800) and abs(ours - theirs).max() < 1e-12
    assert both.sparse(np.ones(len(both))).sum() == len(both)
    tree = cKDTree(x)       # the table of docs/start-python.md
    distances, ids = tree.query(at, 1)
    i, d = nf.nearest(x, 1, at).padded()
    assert i.shape == (300, 1) and (i[:, 0] == ids).all() and np.allclose(d[:, 0], distances)
    distances, ids = tree.query(at, 4, distance_upper_bound=0.07)
    i, d = nf.nearest(x, 4, at, reach=0.07).padded()
    assert (np.where(i < 0, 800, i) == ids).all() and np.allclose(d, distances) and (i < 0).any()
    near = nf.query(x, at, 0.1)
    assert all(sorted(near[q]) == sorted(row)
               for q, row in enumerate(tree.query_ball_point(at, 0.1)))
    assert (np.diff(near.offsets) == tree.query_ball_point(at, 0.1, return_length=True)).all()
    pairs = as_set(*tree.query_pairs(0.1, output_type="ndarray").T)
    assert pairs == as_set(*nf.Grid(x, 0.1).pairs(0.1).T)
    assert pairs == as_set(*np.sort(nf.neighbors(x, 0.1, half=True).pairs(), axis=1).T)
    assert (nf.nearest(x, 3).padded()[0] == tree.query(x, 4)[1][:, 1:]).all()
    assert (nf.nearest(x, 1, x).padded()[0][:, 0] == np.arange(800)).all()
    assert np.allclose(nf.Tree(x, "points").nearest(at, 8)[1], tree.query(at, 8)[0] ** 2)


def freud_queries(points, at):
    """Query points and arguments, as freud's query takes them."""
    for more in ({"r_max": 2.5}, {"r_max": 2.5, "r_min": 1.0}, {"num_neighbors": 6},
                 {"mode": "ball", "r_max": 1.5, "r_guess": 1.0},
                 {"mode": "nearest", "num_neighbors": 4, "r_max": 2.0},
                 {"num_neighbors": 3, "r_min": 1.5}):
        yield at, more
        yield points, dict(more, exclude_ii=True)


def check_freud_forms():
    """AABBQuery by all images."""
    from nearfield.freud import AABBQuery, LinkCell
    cell = np.array([[8, 0, 0], [2.7, 9, 0], [2, 1, 10]])
    x, at = (rng(41).random((80, 3)) @ cell).astype("f4"), (rng(42).random((30, 3)) @ cell)
    search = AABBQuery(cell.T, x)
    for centre, asked in freud_queries(x, at.astype("f4")):
        row, point, shift, vector = all_images(x.astype(float), centre.astype(float), cell,
                                               (1, 1, 1), 5.0)
        d = np.linalg.norm(vector, axis=1)
        keep = (d < asked.get("r_max", 9)) & (d >= asked.get("r_min", 0))
        if asked.get("exclude_ii"):
            keep &= row != point
        order = np.lexsort((d, row))
        order = order[keep[order]]
        place = np.arange(len(order)) - np.searchsorted(row[order], row[order])
        want = order[place < asked.get("num_neighbors", 999)]
        found = LinkCell(cell.T, x, 2.5).query(centre, asked).toNeighborList()
        assert as_set(*found[:].T) == as_set(row[want], point[want]) and len(found) == len(want)
        assert np.allclose(np.sort(found.distances), np.sort(d[want]), atol=1e-5)
        bonds = list(search.query(centre, asked))
        assert {bond[:2] for bond in bonds} == as_set(*found[:].T)
        assert found.neighbor_counts.sum() == len(found)
    near = AABBQuery((6, 6, 6), [[2.95, 0, 0], [1, 1, 1]])
    assert len(near.query([[-2.95, 0, 0], [1, 1.1, 1]], dict(
        r_max=0.5, exclude_ii=True)).toNeighborList()) == 0
    few = AABBQuery((6, 6, 6), 6 * rng(44).random((60, 3)) - 3)
    for r_min in (0.5, 1.5):
        found = few.query(few.points, dict(num_neighbors=3, r_min=r_min, exclude_ii=True))
        bonds = found.toNeighborList()
        assert len(bonds) == 180 and (bonds.distances >= r_min).all()
        want = few.query(few.points, dict(r_max=3.0, r_min=r_min, exclude_ii=True))
        want = want.toNeighborList(True)
        third = want.distances[want.segments + 2]
        assert np.allclose(bonds.distances.reshape(60, 3).max(1), third, atol=1e-6)
    one = AABBQuery((6, 6, 6), [[0, 0, 0]])
    assert len(one.query(one.points, dict(
        num_neighbors=3, exclude_ii=True)).toNeighborList()) == 0
    assert len(one.query(one.points, dict(num_neighbors=6, r_min=1)).toNeighborList()) == 6
    refused(ValueError, "unknown rmax", search.query, at, {"rmax": 1})
    refused(ValueError, "is missing", search.query, at, {})
    assert len(AABBQuery.from_system((cell.T, x)).points) == 80


def check_against_freud():
    import freud
    from nearfield import freud as ours
    r = rng(43)
    for box in (freud.box.Box(8, 9, 10, 0.3, 0.2, 0.1), freud.box.Box(8, 9, is2D=True)):
        x, at = (box.wrap((r.random((m, 3)) - 0.5) * 12) for m in (80, 30))
        for centre, asked in freud_queries(x, at):
            a, b = (kind.AABBQuery(box, x).query(centre, asked).toNeighborList()
                    for kind in (ours, freud.locality))
            for name in ("segments", "neighbor_counts", "weights", "point_indices"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
            assert (a[:] == b[:]).all() and np.allclose(a.distances, b.distances, atol=1e-5)
            assert np.allclose(a.vectors, b.vectors, atol=1e-5)


def check_neighbor_list_skin():
    """Lists that serve many steps have the pairs of a search in each."""
    for real in TYPES:
        r = rng(24)
        x = (4 * r.random((120, 3))).astype(real)
        cell, pbc = np.array([[4, 0, 0], [1, 4, 0], [0, 0.5, 4.0]]), [True, False, True]
        for full in True, False:
            with_skin = nf.NeighborList(1.0, full, sorted=True, skin=0.3)
            without = nf.NeighborList(1.0, full, sorted=True)
            moving = x.copy()
            for step in range(12):
                for a, b in zip(with_skin.compute(moving, cell, pbc, "ijSdDP"),
                                without.compute(moving, cell, pbc, "ijSdDP")):
                    assert a.dtype == b.dtype
                    np.testing.assert_array_equal(a, b)
                moving += (0.03 * r.standard_normal(x.shape)).astype(real)
            assert 2 <= with_skin.searches < 12 == without.searches
            before = with_skin.searches
            for again in ((x[:50], cell, pbc), (x[:50], cell * 1.01, pbc),
                          (x[:50], cell * 1.01, True), (x[:50].astype(TYPES[real == np.float32]),
                                                        cell * 1.01, True)):
                a, b = (finder.compute(*again, "d") for finder in (with_skin, without))
                np.testing.assert_array_equal(a[0], b[0])
            assert with_skin.searches == before + 4
            bad = x[:50].copy()
            bad[7] = np.nan
            refused(ValueError, "row 7", with_skin.compute, bad, cell, True)
    for algorithm in ("auto", "cell_list", "brute_force", "trees"):
        finder, plain = (nf.NeighborList(1.0, True, True, one, n_threads=0)
                         for one in (algorithm, "auto"))
        np.testing.assert_array_equal(*(one.compute(x, cell, pbc, "P")[0]
                                        for one in (finder, plain)))
        assert finder.search == ("trees" if algorithm == "trees" else "cells")
        assert algorithm in repr(finder)
    refused(ValueError, "algorithm: expected one of", nf.NeighborList, 1.0, True, algorithm="fast")
    refused(ValueError, "skin must be", nf.NeighborList, 1.0, True, skin=-1)
    assert nf.neighbor_list("i", [x, cell, pbc], 1.0).shape == nf.ase_neighbor_list(
        "i", (x, cell, pbc), 1.0).shape


def check_neighbor_list_arrays():
    """Read-only, strided, sparse, empty; a foreign byte order is refused by name."""
    wide = rng().random((300, 5))
    x = np.ascontiguousarray(wide[:, 1:4])
    want = nf.neighbor_list("ijSdD", (x, np.eye(3), True), 0.2)
    fixed = x.copy()
    fixed.flags.writeable = False
    for p in (fixed, wide[:, 1:4], np.asfortranarray(x), x[::-1][::-1], x.tolist(),
              np.repeat(x, 2, 0)[::2], x.astype(np.longdouble)):
        found = nf.neighbor_list("ijSdD", (p, np.eye(3), True), 0.2)
        assert same_lists(found, want)
    none = nf.neighbor_list("ijSdD", (np.zeros((0, 3)), np.eye(3), True), 0.2)
    assert [a.shape for a in none] == [(0,), (0,), (0, 3), (0,), (0, 3)]
    foreign = "the array has the byte order"
    refused(ValueError, "positions: " + foreign, nf.neighbor_list, "i",
            (x.astype(">f8"), np.eye(3), True), 0.2)
    refused(ValueError, "cutoff: " + foreign, nf.neighbor_list, "i",
            (x, np.eye(3), True), np.ones(300, ">f4"))
    refused(ValueError, "byte order", nf.Grid, x.astype(">f8"))
    refused(ValueError, "radii: " + foreign, nf.List, x, 0.1, radii=np.ones(300, ">f8"))


def check_whole_numbers():
    """Integers are taken as they are, or refused: none wraps, no fraction is cut off."""
    p, big = rng(5).random((6, 3)), 2**32
    x = p, np.eye(3), False
    box = dict(half=True, history="f8")
    for bad in (big + 1, -big, 1.5, np.nan, np.inf):
        of = np.array([0, bad])
        for call in (lambda: nf.List(p, 0.6, exclude=of[None]),
                     lambda: nf.List(p, 0.6, masks=np.r_[of, 0, 0, 0, 0]),
                     lambda: nf.neighbor_list("i", x + (np.r_[of, 1, 1, 1, 1],), {(1, 1): 0.6}),
                     lambda: nf.List(p, 0.6, **box).remap(np.r_[of, 1, 2, 3, 4]),
                     lambda: nf.Tree(p, "triangles", indices=np.r_[of, 1][None])):
            refused(ValueError, "is no ", call)
    refused(ValueError, "is no uint32", nf.List, p, 0.6, masks=np.array([-1, 1, 1, 1, 1, 1]))
    refused((ValueError, OverflowError), "", nf.neighbor_list, "i", x + (np.ones(6, int),),
            {(1.5, 1): 0.6})
    refused(ValueError, "does not fit", nf.Grid, p, 0.1, slots=big + 1)
    refused(ValueError, "does not fit", nf.Tree(p, "points").nearest, p, big + 1)
    whole = nf.List(p, 0.6, half=True, exclude=np.array([[0.0, 1.0]])).pairs()
    assert (0, 1) not in as_set(*whole.T) and len(whole) > 0
    assert nf.List(p, 0.6, masks=np.full(6, 2**32 - 1)).n == 6


def check_flags():
    """Texts are no booleans, what is masked is no number, and nothing repeats that was not said
    to."""
    p = np.array([[0, 0, 0], [0.5, 0, 0]])
    for bad in (["F"] * 3, "FFF", [2, 0, 0], [0.5, 0, 0], [None] * 3, [True, True]):
        refused(ValueError, "pbc", nf.neighbor_list, "i", (p, np.eye(3), bad), 0.6)
    for flags in (True, [1, 0, 0], np.array([1.0, 0, 0]), [np.True_, False, False]):
        assert len(nf.neighbor_list("i", (p, np.diag([1.0, 9, 9]), flags), 0.6)) == 4
    assert len(nf.neighbour_list("i", positions=p, cell=np.diag([1.0, 9, 9]), cutoff=0.6)) == 2
    masked = np.ma.array(p, mask=[[0, 0, 0], [0, 1, 0]])
    for call in (lambda: nf.neighbor_list("i", (masked, np.eye(3), True), 0.6),
                 lambda: nf.Grid(masked, 0.1), lambda: nf.List(masked, 0.1),
                 lambda: nf.NBody().fields(masked[:, :2])):
        refused(ValueError, "row 1 is masked", call)
    for array in (np.ma.array([1.0, 1], mask=[0, 1]), np.ma.array([1, 1], mask=[0, 1])):
        refused(ValueError, "row 1 is masked", nf.List, p, 0.1, radii=array)
        refused(ValueError, "row 1 is masked", nf.List, p, 0.1, masks=array)
    cell = np.ma.array(np.eye(3), mask=np.eye(3))
    refused(ValueError, "row 0 is masked", nf.neighbor_list, "i", (p, cell, True), 0.6)
    assert len(nf.neighbor_list("i", (np.ma.array(p), np.eye(3), True), 0.6)) == 4


@contextlib.contextmanager
def way(number):
    """Searches go by cells (1) or trees (2)."""
    plain = _neighbors.plain

    def chosen(asks):
        plain(asks)
        asks.way = number
    _neighbors.plain = chosen
    try:
        yield
    finally:
        _neighbors.plain = plain


def check_cells_and_trees():
    """Both searches give the same bits."""
    r, pairs = rng(17), 0
    for trial in range(80):
        n = int(r.integers(1, 40))
        cell = np.diag(0.7 + 4 * r.random(3))
        if trial % 3 == 2:
            cell = cell + 0.5 * r.standard_normal((3, 3))
        p = (r.random((n, 3)) * 3 - 1) @ cell
        if trial % 5 == 0:
            p = np.round(p * 4) / 4
        atoms = p.astype(TYPES[trial % 2]), cell, r.random(3) < 0.6, r.integers(1, 4, n)
        cutoff = (float(r.choice([0.5, 1, 2.5])), r.random(n) * 1.2, {1: 0.3, 2: 0.9},
                  {(1, 1): 0.5, (1, 2): 1.5, (3, 3): 0.8})[trial % 4]
        found = []
        for number in (1, 2):
            with way(number):
                found.append(nf.neighbor_list("ijSdD", atoms, cutoff, trial % 7 == 0,
                                              half=trial % 4 > 1, sorted=True))
        assert all(np.array_equal(a, b) for a, b in zip(*found)), trial
        pairs += len(found[0][0])
    assert pairs > 10000


def check_neighbor_list_costs():
    """Which search is chosen, and that it tests no more than some times the pairs that it finds:
    one large cutoff, one atom far away, two crowds, a chain along a diagonal."""
    r, n = rng(2), 3000
    side = n ** (1 / 3)
    p = r.random((n, 3)) * side
    kinds, sizes = np.ones(n, int), np.full(n, 0.5)
    kinds[0], sizes[0] = 2, 8.0
    far, crowds = p.copy(), p.copy()
    far[7] = 1e5
    crowds[::2] += 1e6
    chain = np.repeat(np.arange(n)[:, None] * 0.5, 3, 1)
    laws = {(1, 1): 1.0, (1, 2): 8.5}
    no = np.zeros(3, bool)
    open_box, cell = (np.eye(3), no), (np.eye(3) * side, ~no)
    for points, box, cutoff, by in (
            (p, open_box, 1.0, "cells"), (p, cell, 1.0, "cells"),
            (p, open_box, np.full(n, 0.5), "cells"), (p, cell, {(1, 1): 1.0}, "cells"),
            (p, open_box, sizes, "trees"), (p, cell, sizes, "trees"), (p, cell, laws, "trees"),
            (far, open_box, 1.0, "trees"), (crowds, open_box, 1.0, "trees"),
            (chain, open_box, 1.0, "trees"), (far, (np.eye(3) * side, [1, 0, 0]), 1.0, "trees")):
        pool = _neighbors._pools[np.float64]
        found = nf.neighbor_list("ij", (points,) + box + (kinds,), cutoff)
        asks = pool[-1].asks
        assert _neighbors._WAYS[asks.by] == by, (by, asks.by)
        assert asks.tests < 12 * (len(found[0]) + n), (asks.tests, len(found[0]))
        with way(1):
            want = nf.neighbor_list("ij", (points,) + box + (kinds,), cutoff)
        assert as_set(*found) == as_set(*want) and len(found[0]) == len(want[0]) > 900
    finder = nf.NeighborList(cutoff=1.0, full_list=True)
    for points, by in ((p, "cells"), (far, "trees")):
        finder.compute(points, [1, 1, 1], False)
        assert finder.search == by


def check_memory_limit():
    """The limit of a search is the smallest of the machine, its control groups and ulimit."""
    here = tempfile.mkdtemp()
    with open(os.path.join(here, "own"), "w") as file:
        file.write("12:cpu,cpuacct:/x\n4:memory:/pod/one\n0::/pod/two\n")
    own = os.path.join(here, "own")
    assert _memory._group_bytes(here, own) == _memory._NONE
    for folder, name, value in (("pod", "memory.max", "max"), ("pod/two", "memory.max", "5000000"),
                                ("memory/pod/one", "memory.limit_in_bytes", "4000000"),
                                ("memory/pod", "memory.limit_in_bytes", "3000000"),
                                ("", "memory.max", "2000000")):
        os.makedirs(os.path.join(here, folder), exist_ok=True)
        before = _memory._group_bytes(here, own)
        with open(os.path.join(here, folder, name), "w") as file:
            file.write(value + "\n")
        says = _memory._NONE if value == "max" else int(value)
        assert _memory._group_bytes(here, own) == min(before, says)
    assert _memory._group_bytes(here, own) == 2000000
    with bounded(gigabytes=1):
        assert 0 < _memory.memory_limit() < 1.2 * 2**30
        many = rng().random((40000, 3))
        refused(MemoryError, "do not fit", nf.neighbor_list, "i", (many, [1, 1, 1], False), 2.0)
    search = _neighbors._Search(np.float64)
    assert search.asks.limit == 0, "asked when a search runs"


def fork_target(x, queue):
    queue.put(len(nf.neighbor_list("i", (x, np.eye(3), True), 0.1)))


def check_neighbor_list_processes():
    """Threads at once, with the lock released; processes by fork and by spawn."""
    import concurrent.futures
    import multiprocessing
    system = rng().random((20000, 3)), np.eye(3), True
    want = len(nf.neighbor_list("i", system, 0.1))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: len(nf.neighbor_list("i", system, 0.1)), range(12))
        assert set(found) == {want}
    done, turns = threading.Event(), 0
    thread = threading.Thread(target=lambda: (nf.neighbor_list("i", system, 0.15), done.set()))
    thread.start()
    # With the lock held it would turn only before and after the call.
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 10, turns
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        worker = context.Process(target=fork_target, args=(system[0], queue))
        worker.start()
        assert queue.get(timeout=300) == want, method
        worker.join()


# ---- what is refused, layouts, memory ------------------------------------------------------------


def check_refusals():
    bad = np.zeros((5, 3))
    bad[3, 1] = np.nan
    refused(nf.Error, "row = 3", nf.Grid, bad, cell=0.1)
    refused(nf.Error, "row = 3", nf.Tree, bad, "points")
    refused(nf.Error, "row = 3", nf.List, bad, 0.1, box=(0, 1), periodic=True)
    refused(nf.Error, "row = 3", nf.NBody().fields, bad[:, :2])
    bad[3, 1] = np.inf
    refused(nf.Error, "row = 3", nf.Grid, bad, cell=0.1)
    good = rng().random((9, 3))
    for shape in ((9,), (9, 4), (9, 1), (3, 3, 3)):
        refused(ValueError, "shape", nf.Grid, np.zeros(shape))
        refused(ValueError, "shape", nf.NBody().fields, np.zeros(shape))
    refused(ValueError, "for kind='boxes'", nf.Tree, good)
    refused(ValueError, "kind", nf.Tree, good, "cubes")
    refused(ValueError, "expected one of auto", nf.Grid, good, method="fast")
    refused(TypeError, "no field 'cells'", nf.Grid, good, cells=0.1)
    refused(ValueError, "one number, or 3", nf.Grid, good, box=([0, 0], [1, 1]))
    refused(nf.Error, "periodic axis", nf.Grid, good, periodic=True)
    refused(nf.Error, "needed_cells", nf.Grid, good, cell=1e-6)
    refused(nf.Error, "cell", nf.Grid, good, cell=-1.0)
    grid = nf.Grid(good, cell=0.1)
    for radius in (0, -1, np.nan, np.inf):
        for search in (grid.neighbors, grid.count_pairs, grid.count_neighbors):
            refused(nf.Error, "radius", search, radius)
        refused(nf.Error, "radius", grid.query, good, radius)
    refused(ValueError, "(n, 3)", grid.query, good[:, :2], 0.1)
    refused(TypeError, "expected a number", grid.neighbors, "wide")
    refused(ValueError, "expected a number", nf.Grid, good, cell="wide")
    refused(ValueError, "expected (lower, upper)", nf.Grid, good, box=3)
    refused(ValueError, "real numbers", nf.Grid, good.astype(complex))
    for threads in (True, False, 2.5, "2"):
        refused(TypeError, "n_threads: expected an integer", nf.Grid, good, n_threads=threads)
        refused(TypeError, "n_threads: expected an integer", nf.NeighborList, cutoff=1.0,
                full_list=True, n_threads=threads)
    inverted = refused(nf.Error, "lower corner of box", nf.Grid, good, box=(1, 0))
    for c_name in ("desc.", "list.", " grid.", "ugrid_build"):
        assert c_name not in str(inverted)
    refused(nf.Error, "RADIUS: radius, a world's margin", nf.World, margin=-1)
    tree = nf.Tree(good, "points")
    refused(TypeError, "k: expected an integer", tree.nearest, good, k=True)
    refused(ValueError, "k: expected 1 or more", tree.nearest, good, k=-1)
    refused(TypeError, "k: expected an integer", tree.nearest, good, k=2.5)
    # what nothing was built from yet refuses its keywords, too
    refused(TypeError, "no field 'ordr'", nf.NBody, ordr=6)
    refused(TypeError, "order=6.5", nf.NBody, order=6.5)
    refused(ValueError, "one of inverse_square", nf.NBody, law="newton")
    for empty in (nf.Grid, nf.Tree, nf.List):
        refused(TypeError, "no field 'cells'", empty, cells=0.1)
    arguments = {"neighbors": (1,), "query": (good, 1), "nearest": (good,), "fields_at": (good,)}
    for empty in (nf.Grid(), nf.Tree(), nf.List(), nf.NBody()):
        for name in ("neighbors", "query", "nearest", "overlaps", "pairs", "estimate", "fields_at",
                     "validate", "count_pairs"):
            if hasattr(empty, name):
                radius = name in ("pairs", "count_pairs") and isinstance(empty, nf.Grid)
                refused((nf.Error, AttributeError), "", getattr(empty, name),
                        *((1,) if radius else arguments.get(name, ())))
    refused(ValueError, "precision", nf.List, good, 0.1, nf.Grid(good.astype(np.float32), cell=0.1))
    refused(ValueError, "radii: expected 9", nf.List, good, 0.1, radii=np.ones(8))
    refused(ValueError, "exclude names", nf.List, good, 0.1, exclude=[[0, 9]])
    refused(nf.Error, "half of a period", nf.List, good, 0.6, box=(0, 1), periodic=True)
    tracked = nf.List(good, 0.1, history="f4")
    refused(nf.Error, "row = 1", tracked.remap, [0, 0, 2, 3, 4, 5, 6, 7, 8])
    refused(ValueError, "new_id: expected 9", tracked.remap, [0, 1])
    refused(ValueError, "mass: expected 9", nf.NBody().fields, good[:, :2], np.ones(8))
    sim = nf.NBody(sources="mass_centres", method="virtual_particles")
    refused(nf.Error, "negative mass", sim.fields, good[:, :2], -np.ones(9))
    refused(nf.Error, "nothing was built", nf.NBody().estimate)
    refused(nf.Error, "nothing was built", nf.Tree().validate)
    refused(ValueError, "as many elements", nf.Tree(good, "points").refit, good[:5])
    refused(nf.Error, "history", lambda: nf.List(good, 0.1).history)
    for radius in (0, -1, np.nan, np.inf):
        refused(nf.Error, "radius must be positive", nf.List, good, radius)
    for radius in (-1, np.nan, np.inf):
        refused(nf.Error, "nlist.h", nf.List, good, 0.1, radii=[0.1] * 8 + [radius])
        refused(nf.Error, "nlist.h", nf.List, good, 0.1, skin=radius)
    assert grid.count_pairs(0.5) == len(brute_pairs(good, 0.5)), "usable after a refusal"


def check_keywords():
    """_keywords.pyi names the fields of the structs, as type checkers know them."""
    import re
    stub = os.path.join(os.path.dirname(nf.__file__), "_keywords.pyi")
    with open(stub) as file:
        classes = re.findall(r"class (\w+)Fields\(.*?\):\n((?:    .*\n)+)", file.read())
    assert len(classes) == 5
    never = {"dim", "allocator", "cuda_allocator", "parallel", "function", "allow", "vertices",
             "user", "pair_bytes", "exclude_start", "history", "half_extent_stride"}
    for name, body in classes:
        kind = getattr(nf, name)
        told = set(re.findall(r"^    (\w+):", body, re.M))
        there = _binding.desc_fields(kind._header)
        named = kind.__init__.__code__.co_varnames
        assert told <= there, told - there
        assert there - told - never <= set(named) | {"min", "max"}, there - told - set(named)
        assert not told & set(named)


def check_refused_queries():
    """Searches that could find nothing are not answered with an empty list."""
    good = rng().random((9, 3))
    grid, tree, sim = nf.Grid(good, cell=0.1), nf.Tree(good, "points"), nf.NBody()
    triangles = nf.Tree(rng().random((4, 3, 3)), "triangles")
    contacts = nf.List(good, 0.9, box=(0, 2), periodic=1)
    sim.build(good[:, :2])
    for number in (np.nan, np.inf, -np.inf):
        bad = good.copy()
        bad[4, 1] = bad[6, 0] = number
        for function, arguments in ((grid.query, (bad, 0.1)), (tree.query, (bad, 0.1)),
                                    (tree.nearest, (bad,)), (triangles.rays, (bad, good)),
                                    (triangles.rays, (good, bad)), (sim.fields_at, (bad[:, :2],)),
                                    (contacts.shifts, (bad,))):
            refused(ValueError, "row 4 is NaN or infinite", function, *arguments)
    for radius in (-1, np.nan):
        spheres = np.c_[good, np.full(9, 0.1)]
        spheres[5, 3] = radius
        refused(ValueError, "queries: row 5 ", tree.overlaps, spheres, "spheres")
        refused(nf.Error, "radius", tree.query, good, radius)
        refused(nf.Error, "reach", tree.nearest, good, 1, radius)
        refused(ValueError, "t_max", triangles.rays, good, good, radius)
    boxes = np.c_[good, good + 1]
    boxes[3, 2] = -np.inf
    assert len(tree.overlaps(boxes)[1]) > 9
    boxes[3, 2] = np.nan
    refused(ValueError, "queries: row 3 is NaN", tree.overlaps, boxes)


def check_refused_shapes():
    """As many numbers, but not in the shape that says whose they are."""
    good = rng().random((6, 3))
    for shape in ((2, 3), (3, 2), (1, 6), (6, 2), (5,), ()):
        refused(ValueError, "radii: expected 6", nf.List, good, 0.1, radii=np.ones(shape))
        refused(ValueError, "masks: expected 6", nf.List, good, 0.1,
                masks=np.ones(shape, np.uint32))
        refused(ValueError, "mass: expected 6", nf.NBody().fields, good[:, :2], np.ones(shape))
        refused(ValueError, "new_id: expected 6", nf.List(good, 0.1).remap, np.zeros(shape, int))
    assert nf.List(good, 0.1, radii=np.ones((6, 1))).n == 6
    for pairs in ([[0, 1, 2], [3, 4, 5]], [0, 1, 2, 3], np.zeros((2, 5), int), 1,
                  np.zeros((0, 3), int)):
        refused(ValueError, "exclude: expected an array of shape (m, 2), not", nf.List, good, 0.1,
                exclude=pairs)
    assert nf.List(good, 0.1, exclude=[]).n == 6
    for kind, shape in (("triangles", (6, 2, 3)), ("triangles", (6, 9, 1)), ("boxes", (6, 3, 2)),
                        ("boxes", (6, 6, 1)), ("points", (6, 1, 3)), ("spheres", (6, 2, 2)),
                        ("spheres", (6, 1, 3))):
        refused(ValueError, "shape", nf.Tree, np.ones(shape), kind)
    refused(ValueError, "shape", nf.Tree, np.ones((3, 1, 3)), "triangles", indices=[[0, 1, 2]])
    for kind in ("points", "boxes", "spheres"):     # its rows are counted, not those of indices
        refused(ValueError, "indices: those of triangles", nf.Tree, good, kind,
                indices=np.zeros((9, 3), int))
    for shape in ((9, 1), (1, 9), (3, 2)):
        refused(ValueError, "indices", nf.Tree, good, "triangles", indices=np.zeros(shape, int))
    stacked, flat = np.stack([good, good + 1], 1), np.c_[good, good + 1]
    assert nf.Tree(stacked).count_pairs() == nf.Tree(flat).count_pairs()
    for empty in (np.zeros((0, 2)), np.zeros((5, 0)), np.zeros((0, 3, 1))):
        for function in (nf.Grid(good).query, nf.Tree(good, "points").query):
            refused(ValueError, "shape (n, 3), not %s" % (empty.shape,), function, empty, 0.1)
    assert len(nf.Grid(good).query([], 0.1)[0]) == 1


def check_layouts():
    """Any array that NumPy can hold gives the same answer, and the usual ones are not copied."""
    wide = rng().random((400, 5))
    want = nf.Grid(np.ascontiguousarray(wide[:, 1:4]), cell=0.1).neighbors(0.1)[1]
    raw = np.zeros(400 * 24 + 1, np.uint8)
    unaligned = raw[1:].view(np.float64).reshape(400, 3)
    unaligned[:] = wide[:, 1:4]
    image = np.ascontiguousarray(wide[:, 1:4]).tobytes()
    for name, p in (("part of wider rows", wide[:, 1:4]),
                    ("by columns", np.asfortranarray(wide[:, 1:4])),
                    ("backwards", wide[::-1, 1:4][::-1]), ("a list", wide[:, 1:4].tolist()),
                    ("not aligned", unaligned),
                    ("read only", np.frombuffer(image).reshape(400, 3))):
        assert (nf.Grid(p, cell=0.1).neighbors(0.1)[1] == want).all(), name
    backwards = nf.Grid(wide[::-1, 1:4], cell=0.1).count_neighbors(0.1)
    assert (backwards[::-1] == nf.Grid(wide[:, 1:4], cell=0.1).count_neighbors(0.1)).all()
    assert nf.Grid(np.broadcast_to(wide[0, :3], (9, 3)), cell=0.1).count_pairs(0.1) == 36
    assert nf.Grid(np.arange(6).reshape(2, 3), cell=1.0).count_pairs(6) == 1
    grid = nf.Grid(wide[:, 1:4])
    for rows in (wide[:, 1:4], wide[::2, 1:4]):
        assert np.shares_memory(grid._rows(rows, 3)[0], wide)
    for given, taken in ((np.float32, np.float32), (np.float16, np.float64)):
        assert nf.Grid(wide[:, :3].astype(given), cell=0.1)._lib.dtype == taken


def check_views_outlive_their_object():
    p = rng().random((500, 3))
    contacts = nf.List(p, 0.2, half=1, history="f8")
    history, (offsets, ids) = contacts.history, contacts.rows()
    history[:] = np.arange(len(history))
    copies = history.copy(), offsets.copy(), ids.copy()
    contacts.build(rng(2).random((5000, 3)))                            # other memory
    contacts.build(rng(3).random((9000, 3)))
    order = nf.Grid(p, cell=0.1).order                                  # gone at once
    del contacts
    gc.collect()
    junk = [np.full(4000, 7.0) for _ in range(500)]
    assert (history == copies[0]).all()
    assert (offsets == copies[1]).all() and (ids == copies[2]).all()
    assert (np.sort(order) == np.arange(500)).all() and len(junk) == 500


def check_memory_is_freed():
    p = rng().random((200000, 3))

    def work():
        kept = (nf.Grid(p, cell=0.05), nf.Tree(p, "points"),
                nf.List(p, 0.02, half=1, history="4f8"), nf.NBody())
        kept[3].accelerations(p[:, :2])
        return [x._memory for x in kept], sum(x.nbytes for x in kept)

    memories, size = work()
    gc.collect()
    assert size > 5e7 and all(m.nbytes() == 0 for m in memories), [m.nbytes() for m in memories]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(4):
        work()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < size, "%d KB more" % grown


def check_out_of_memory():
    p = rng().random((1000, 3))
    grid = nf.Grid(p, cell=0.1)
    with bounded(gigabytes=2):
        grid._fields.update(cell=0.001, min=0, max=1, max_cells=2 * 10**9)
        refused(nf.Error, "an allocation failed", grid.build, p)
    grid._fields = {"cell": 0.1}
    assert grid.build(p).count_pairs(0.1) == len(brute_pairs(p, 0.1))


def check_many_callers():
    p = rng().random((30000, 3))
    grid = nf.Grid(p, cell=0.05)
    want, failures = grid.neighbors(0.05)[1], []

    def search():
        for _ in range(3):
            own = nf.Grid(p, cell=0.05)
            if (own.neighbors(0.05)[1] != want).any() or grid.count_pairs(0.05) * 2 != len(want):
                failures.append(1)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def check_load_library():
    """What is no library is refused by name, and the one before goes on."""
    p, saved, place = rng().random((9, 3)), _binding._path, os.getcwd()
    before = nf.Grid(p, 0.1)
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "grid.bin")
        with open(name, "wb") as file:
            file.write(before.save())
        for path in (name, os.path.join(folder, "none.so")):
            refused(nf.Error, path + " is no library", nf.load_library, path)
            assert nf.Grid(p, 0.1)._lib is before._lib and _binding._path == saved
    refused(nf.Error, "has no ugrid_version", nf.load_library,
            sys.modules["_ctypes"].__file__)
    library = os.path.abspath(_binding.find(np.dtype(np.float32), False))
    try:
        os.chdir(os.path.dirname(library))
        nf.load_library(os.path.basename(library))
        os.chdir("/")
        assert _binding._path == library and nf.Grid(p, 0.1).n == 9
    finally:
        os.chdir(place)
        _binding._path = saved
        _binding.library.cache_clear()


def check_load_with_other_keywords():
    """What was saved is not taken by an object whose next build would be another."""
    p = rng().random((60, 3))
    box = dict(box=(0, 1), periodic=[True, False, True])
    ones = np.ones(60)
    for thing, others, same in (
            (nf.Grid(p, 0.2, **box), (nf.Grid(cell=0.2), nf.Grid(cell=0.2, box=(0, 1)),
                                      nf.Grid(cell=0.2, box=(0, 2), periodic=box["periodic"])),
             nf.Grid(cell=0.2, **box)),
            (nf.Grid(p, 0.2), (nf.Grid(cell=0.2, **box), nf.Grid(radii=ones)), nf.Grid()),
            (nf.Grid(p, 0.2, radii=ones), (nf.Grid(), nf.Grid(radii=ones, exclude=[[0, 1]])),
             nf.Grid(radii=ones)),
            (nf.List(p, 0.2, half=True, history="f8", **box),
             (nf.List(radius=0.2, half=True, history="f8"), nf.List(radius=0.2, half=True, **box),
              nf.List(radius=0.2, history="f8", **box)),
             nf.List(radius=0.2, half=True, history="f8", **box))):
        data = thing.save()
        for other in others:
            refused(nf.Error, "what was saved has other keywords", other.load, data)
            assert other.n == 0 and other.build(p).n == 60
        assert same.load(data).n == 60 and same.save() == data
        assert all(one.n == 60 for one in again(thing))
    small = nf.Grid(p.astype(np.float32), 0.2).save()
    fresh = nf.Grid(cell=0.2)
    refused(nf.Error, "these bytes are of float32, not float64: load(data, dtype='float32')",
            fresh.load, small)
    assert fresh.load(small, dtype=np.float32).n == 60
    refused(nf.Error, "these bytes are of float32", nf.Grid(p).load, small)


def check_messages():
    """What is wrong is said by its name in Python, in each method."""
    p = rng().random((20, 3))
    grid, tree, contacts = nf.Grid(p, 0.2), nf.Tree(p, "points"), nf.List(p, 0.2)
    for function, arguments in ((grid.neighbors, ("a",)), (grid.count_pairs, ("a",)),
                                (grid.count_neighbors, ("a",)), (grid.pairs, ("a",)),
                                (grid.query, (p, "a")), (tree.query, (p, "a"))):
        refused(TypeError, "radius: expected a number, not 'a'", function, *arguments)
    refused(TypeError, "reach: expected a number, not [1]", tree.nearest, p, 1, [1])
    refused(ValueError, "expected one of begun persisted ended, not 'started'", contacts.events,
            "started")
    refused(nf.Error, "without events=True", contacts.events, "begun")
    refused(ValueError, "expected one of boxes points spheres", tree.overlaps, p, "triangles")
    refused(TypeError, "source: expected a Grid or a Tree, not 3", nf.List, p, 0.1, source=3)
    refused(TypeError, "history: expected a dtype of numbers", nf.List, p, 0.1, history=object)
    refused(nf.Error, "Grid: nothing was built yet", nf.List, p, 0.1, nf.Grid())
    calls = {nf.Grid: ("save", "order", "desc", "to_host", "validate", ("neighbors", 1)),
             nf.Tree: ("save", "desc", "pairs", ("refit", p), ("closest", p), ("nearest", p),
                       ("rays", p, p), ("hits", p, p)),
             nf.List: ("save", "desc", "pairs", "rows", "history", ("shifts", p), ("moved", p),
                       ("events", "begun"), ("remap", [0])),
             nf.NBody: ("desc", "estimate", ("fields_at", p[:, :2]))}
    for kind, names in calls.items():
        for name in names:
            name, *arguments = name if isinstance(name, tuple) else (name,)

            def call():
                method = getattr(kind(), name)
                return method(*arguments)

            refused(nf.Error, "%s: nothing was built yet" % kind.__name__, call)


def check_views_are_read_only():
    """The library believes what it wrote: only the history is the caller's."""
    p = rng().random((500, 3))
    contacts = nf.List(p, 0.1, half=True, history="f8", events=True)
    offsets, ids = contacts.rows()
    for view in (nf.Grid(p, cell=0.1).order, offsets, ids, contacts.events("begun")):
        assert len(view) > 100 and not view.flags.writeable
        refused(ValueError, "WRITEABLE", setattr, view.flags, "writeable", True)
    contacts.history[:] = 3
    assert (contacts.history == 3).all()


def check_one_builds_alone():
    """While one thread builds, others that use the object are refused; searches go together."""
    p = rng().random((300, 3))
    made = (nf.Grid(p, 0.1), nf.Tree(p, "points"), nf.List(p, 0.1, nf.Grid(p, 0.1)), nf.NBody())
    made[3].build(p[:, :2])
    for thing, build, search in zip(made, (
            lambda: made[0].build(p), lambda: made[1].build(p), lambda: made[2].build(p),
            lambda: made[3].build(p[:, :2])), (
            lambda: made[0].neighbors(0.1), lambda: made[1].nearest(p), lambda: made[2].rows(),
            lambda: made[3].fields_at(p[:, :2]))):
        name = type(thing).__name__
        inside(thing, lambda: (search(), refused(
            RuntimeError, name + ": build while another thread uses it", build)), "_readers")
        inside(thing, lambda: (refused(RuntimeError, "while another thread builds it", search),
                               refused(RuntimeError, "while another thread uses it", build)),
               "_writers")
        search(), build()
        assert not thing._readers and not thing._writers
    inside(made[0], lambda: refused(RuntimeError, "Grid: search_for", made[2].build, p, made[0]),
           "_writers")
    many = rng().random((100000, 3))
    large = nf.Grid(many, 0.05)
    thread = threading.Thread(target=large.neighbors, args=(0.05,))     # half a second
    thread.start()
    while thread.is_alive() and not large._readers:
        pass
    refused(RuntimeError, "Grid: build while another thread uses it", large.build, many)
    thread.join()
    large.build(many[:9])
    refused(ValueError, "shape", made[0].build, p[:, :1])       # a refusal leaves no trace
    made[0].build(p)


def inside(thing, then, which):
    """Calls then() in a thread that another one overtakes, in the middle of a call of thing."""
    calls, errors = getattr(thing, which), []
    calls.append(None)

    def other():
        try:
            then()
        except Exception as error:      # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    calls.pop()
    assert not errors, errors


def check_fields_cost_little():
    """Numbers, and tuples of numbers, go into a desc without NumPy."""
    p, slow = rng().random((100, 3)), []
    whole = _arrays.np.broadcast_to
    _arrays.np.broadcast_to = lambda *arguments: slow.append(arguments) or whole(*arguments)
    try:
        grid = nf.Grid(p, 0.1, box=(0, (1.0, 1, 2)), periodic=(True, False, True))
        assert not slow, slow
        same = nf.Grid(p, 0.1, box=(np.zeros(3), np.array([1, 1, 2])), periodic=np.array([1, 0, 1]))
    finally:
        _arrays.np.broadcast_to = whole
    assert len(slow) == 3 and same.desc == grid.desc
    assert grid.desc.max == (1, 1, 2) and grid.desc.periodic == (1, 0, 1)


# ---- arrays and calls of other packages ----------------------------------------------------------


class Lender:
    """Lends an array of its own by the library, as DeviceArray lends the GPU's."""

    def __init__(self, array, versioned):
        self.array, self.versioned, self.shape = array, versioned, array.shape

    def __len__(self):
        return len(self.array)

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        a = self.array
        return _dlpack.lend(_binding.library(np.dtype(np.float32), False), a, a.ctypes.data,
                            a.shape, a.dtype, (1, 0), self.versioned, False)


def check_dlpack_out():
    """What is lent lives until its borrower is done, or until nobody takes it."""
    versioned = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
    for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8):
        for new in {False, versioned}:
            a = np.arange(24).reshape(2, 3, 4).astype(dtype)
            free = sys.getrefcount(a)
            lender = Lender(a, new)
            b = np.from_dlpack(lender)
            assert b.ctypes.data == a.ctypes.data and b.dtype == dtype and (b == a).all()
            del lender
            assert sys.getrefcount(a) == free + 1
            part = b[1:]
            del b
            assert sys.getrefcount(a) == free + 1
            del part
            assert sys.getrefcount(a) == free
            Lender(a, new).__dlpack__()
            assert sys.getrefcount(a) == free, "a capsule that nobody took"
    refused(BufferError, "no elements", Lender(np.zeros(3, bool), False).__dlpack__)
    assert np.from_dlpack(Lender(np.zeros((0, 3)), versioned)).shape == (0, 3)
    assert np.from_dlpack(Lender(np.array(3.0), versioned)).shape == ()
    # The loan outlives the modules of nearfield.
    program = ("import sys, numpy as np\nfrom nearfield import _binding, _dlpack\n"
               "a, lib = np.zeros(9), _binding.library(np.dtype(float), False)\n"
               "def lend(*_, **__):\n"
               "    return _dlpack.lend(lib, a, a.ctypes.data, (9,), a.dtype, (1, 0), 0, 0)\n"
               "class Lender:\n    __dlpack__, __dlpack_device__ = lend, lambda _: (1, 0)\n"
               "sys.kept = np.from_dlpack(Lender()), lend()")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60,
                   env={**os.environ, "PYTHONPATH": sys.path[0]})


def check_dlpack_in():
    """Arrays that are none of NumPy's are read where they are."""
    for dtype in TYPES:
        x = rng().random((60, 3)).astype(dtype)
        given = Lender(x, False)
        grid = nf.Grid(given, cell=0.2)
        assert grid._kept["pos"].ctypes.data == x.ctypes.data and grid._lib.dtype == dtype
        for a, b in zip(nf.neighbor_list("ijd", (given, np.eye(3), True), 0.3),
                        nf.neighbor_list("ijd", (x, np.eye(3), True), 0.3)):
            assert a.dtype == b.dtype and (a == b).all()
        assert (nf.nearest(given, 3).ids == nf.nearest(x, 3).ids).all()
        ids, _ = nf.Tree(given, "points").nearest(given, 2)
        assert (ids == nf.Tree(x, "points").nearest(x, 2)[0]).all()


def check_cuda_wheel():
    """The GPU's half is found in the package of the wheel nearfield-cuda, and not loaded before."""
    given = os.environ.pop("NEARFIELD_LIBRARY", None)
    real = np.dtype(np.float32), np.dtype(np.float64)
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        try:
            if not importlib.util.find_spec("nearfield_cuda"):
                refused(nf.Error, "nearfield-cuda", _binding.find, real[0], True)
            there = os.path.join(folder, "nearfield_cuda")
            os.mkdir(there)
            for name in ("__init__.py", "libnearfield_cuda.so", "libnearfield64_cuda.so"):
                open(os.path.join(there, name), "w").close()
            importlib.invalidate_caches()
            for dtype, name in zip(real, ("libnearfield_cuda.so", "libnearfield64_cuda.so")):
                assert _binding.find(dtype, True) == os.path.join(there, name)
            refused(nf.Error, "no library", _binding.library, real[0], True)
            assert not any(folder in place for place in _binding._places(False))
        finally:
            sys.path.remove(folder)
            if given:
                os.environ["NEARFIELD_LIBRARY"] = given


def xla_call(*arguments, results, **attributes):
    """The frame by which XLA calls nearfield_jax_pairs: structs of pointers and numbers, of 8
    bytes each but for what is said; and what it points to."""
    kept = []

    def words(*values):
        kept.append((ctypes.c_int64 * len(values))(*values))
        return ctypes.addressof(kept[-1])

    def buffer(a):
        return words(48, 0, 0, a.ctypes.data, a.ndim, words(*a.shape))

    def buffers(arrays):
        return 40, 0, len(arrays), 0, words(*map(buffer, arrays))

    def scalar(value):
        kept.append(value)
        return words(0, value.ctypes.data)

    def text(name):
        kept.append(ctypes.create_string_buffer(name.encode()))
        return words(ctypes.addressof(kept[-1]), len(name))

    kept += arguments
    frame = words(168, 0, 0, 0, 3, *buffers(arguments), *buffers(results), 48, 0, len(attributes),
                  0, words(*map(text, attributes)),
                  words(*(scalar(np.array(v)) for v in attributes.values())))
    return frame, kept


def check_xla_call():
    """The custom call of nearfield.jax, without JAX: two systems, padded; and too little room."""
    for dtype in TYPES:
        call = _binding.library(np.dtype(dtype), False).nearfield_jax_pairs
        call.restype, call.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
        x = rng().random((2, 40, 3)).astype(dtype)
        cell = np.stack([np.eye(3), 2 * np.eye(3)]).astype(dtype)
        pbc = np.array([[1, 1, 1], [1, 0, 1]], np.int32)
        want = [nf.neighbor_list("ijS", (x[s], cell[s], pbc[s]), 0.3, sorted=True) for s in (0, 1)]
        for room in (1000, 30):
            i, j = np.full((2, 2, room), -7, np.int32)
            shift, count = np.full((2, room, 3), -7, np.int32), np.zeros(2, np.int32)
            frame, kept = xla_call(
                x, cell, pbc, results=(i, j, shift, count), cutoff=np.float64(dtype(0.3)),
                limit=1e9, half=np.int32(0), self=np.int32(0), sorted=np.int32(1))
            assert call(frame) is None
            for s in (0, 1):
                m = len(want[s][0])
                assert count[s] == m > 30
                m = m if m <= room else 0
                for found, right in zip((i[s], j[s], shift[s]), want[s]):
                    assert (found[:m] == right[:m]).all()
                assert (i[s, m:] == 40).all() and (j[s, m:] == 40).all() and not shift[s, m:].any()


# ---- main ----------------------------------------------------------------------------------------


def main():
    checks = {name[6:]: f for name, f in globals().items() if name.startswith("check_")}
    failed = 0
    names = sys.argv[1:] or list(checks)
    for name in names:
        try:
            checks[name]()
            print("ok       python: %s" % name.replace("_", " "), flush=True)
        except ModuleNotFoundError as error:
            print("skipped  python: %s: no %s" % (name.replace("_", " "), error.name), flush=True)
        except Exception as error:      # noqa: BLE001
            failed += 1
            print("FAILED   python: %s: %s" % (name.replace("_", " "),
                                               str(error)[:300] or repr(error)), flush=True)
            traceback.print_exc(limit=-3)
    print("%d passed, %d failed" % (len(names) - failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
