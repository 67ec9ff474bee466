#!/usr/bin/env python3
"""torch_checks.py - nearfield.torch on CPU tensors (and on CUDA tensors where there are any).
SPDX-License-Identifier: MIT OR Unlicense

    python3 tests/python/torch_checks.py [NAME...]

nearfield and torch are those that Python finds. A line per check; the last line is "N passed, M
failed". The oracle is torch over all pairs and all images, in double precision.
"""
import concurrent.futures
import itertools
import sys
import traceback

try:
    import torch
except ImportError:
    print("skipped  torch is not installed")
    sys.exit(77)

import nearfield
import nearfield.torch as graph
from nearfield import _neighbors

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()


def generator(seed):
    return torch.Generator().manual_seed(seed)


def random_system(seed, n=12, dtype=torch.float64, device="cpu"):
    g = generator(seed)
    cell = torch.diag(1 + 2 * torch.rand(3, generator=g, dtype=dtype))
    cell = cell + 0.3 * torch.randn(3, 3, generator=g, dtype=dtype)
    x = (2 * torch.rand(n, 3, generator=g, dtype=dtype) - 0.5) @ cell
    pbc = torch.rand(3, generator=g) < 0.7
    return x.to(device), cell.to(device), pbc.to(device)


def all_images(x, cell, pbc, cutoff, reach=9):
    """{(i, j, S): d} over all pairs and all images up to `reach` periods away."""
    found = {}
    ranges = [range(-reach, reach + 1) if p else (0,) for p in pbc.tolist()]
    x, cell = x.detach().cpu().double(), cell.detach().cpu().double()
    for shift in itertools.product(*ranges):
        moved = torch.tensor(shift, dtype=torch.float64) @ cell
        d = (x[None] - x[:, None] + moved).norm(dim=2)
        for i, j in torch.nonzero(d < cutoff).tolist():
            if i != j or shift != (0, 0, 0):
                found[(i, j) + shift] = d[i, j].item()
    return found


def check_pairs():
    for device in DEVICES:
        for seed in range(25):
            x, cell, pbc = random_system(seed, device=device)
            want = all_images(x, cell, pbc, 1.1)
            i, j, S, d, D = graph.neighbor_list(x, cell, pbc, 1.1)
            found = {(a, b) + tuple(s): e for a, b, s, e in
                     zip(i.tolist(), j.tolist(), S.tolist(), d.tolist())}
            assert found.keys() == want.keys() and len(i) == len(want), (seed, len(i), len(want))
            assert all(abs(found[k] - want[k]) < 1e-12 for k in want)
            assert torch.allclose(D.norm(dim=1), d, rtol=0, atol=1e-13)
            assert (i.diff() >= 0).all()
            for own, half in ((True, False), (False, True)):
                count = len(graph.neighbor_list(x, cell, pbc, 1.1, half=half,
                                                self_interaction=own)[0])
                assert count == (len(want) // 2 if half else len(want) + 12), (own, half, count)


def check_gradients():
    x, cell, pbc = random_system(3, 6)
    x.requires_grad_(True)
    cell.requires_grad_(True)

    def outputs(x, cell):
        _, _, _, d, D = graph.neighbor_list(x, cell, pbc, 1.0, sorted=True)
        return d, D

    def energy(x, cell):
        d = graph.neighbor_list(x, cell, pbc, 1.0, sorted=True)[3]
        return ((1 - d) ** 4).sum()

    assert len(outputs(x, cell)[0]) > 5
    assert torch.autograd.gradcheck(outputs, (x, cell))
    assert torch.autograd.gradgradcheck(outputs, (x, cell))
    assert torch.autograd.gradcheck(energy, (x, cell))
    assert torch.autograd.gradgradcheck(energy, (x, cell))
    d = graph.neighbor_list(x, cell, pbc, 1.0, self_interaction=True)[3]
    d.sum().backward()
    assert torch.isfinite(x.grad).all()


def check_batch():
    for device in DEVICES:
        systems = [random_system(seed, n, device=device)
                   for seed, n in ((1, 5), (2, 0), (3, 9), (4, 1))]
        x = torch.cat([s[0] for s in systems])
        cell, pbc = torch.stack([s[1] for s in systems]), torch.stack([s[2] for s in systems])
        batch = torch.repeat_interleave(torch.arange(4), torch.tensor([5, 0, 9, 1])).to(device)
        i, j, S, d, D = graph.neighbor_list(x, cell, pbc, 1.2, batch, sorted=True)
        first, parts = 0, []
        for one in systems:
            a = graph.neighbor_list(*one, 1.2, sorted=True)
            parts.append((a[0] + first, a[1] + first) + a[2:])
            first += len(one[0])
        for ours, theirs in zip((i, j, S), zip(*parts)):
            assert torch.equal(ours, torch.cat(theirs))
        for ours, theirs in zip((d, D), list(zip(*parts))[3:]):
            assert torch.allclose(ours, torch.cat(theirs), rtol=0, atol=1e-12)
        for bad in (batch.flip(0), batch[:-1], batch - 1, batch + 1):
            try:
                graph.neighbor_list(x, cell, pbc, 1.2, bad)
            except ValueError as error:
                assert "batch" in str(error)
            else:
                raise AssertionError("not refused: %s" % bad)


def check_fixed():
    """FixedNeighborList beside neighbor_list: pairs, padding, gradients, what does not fit."""
    for device, dtype, half in itertools.product(DEVICES, (torch.float32, torch.float64),
                                                 (False, True)):
        systems = [random_system(seed, n, dtype, device) for seed, n in ((1, 5), (3, 9))]
        cell, pbc = torch.stack([s[1] for s in systems]), torch.stack([s[2] for s in systems])
        batch = torch.repeat_interleave(torch.arange(2), torch.tensor([5, 9])).to(device)
        search = graph.FixedNeighborList(14, 800, 1.2, cell, pbc, batch, half=half, sorted=True,
                                         dtype=dtype, device=device)
        for turn in range(3):
            x = torch.cat([s[0] for s in systems]).mul(1 + 0.1 * turn).requires_grad_(True)
            scaled = cell * (1 + 0.05 * turn)
            want = graph.neighbor_list(x, scaled, pbc, 1.2, batch, half=half, sorted=True)
            *found, count = search(x, scaled)
            search.check()
            assert 0 < int(count) == len(want[0]) < 800
            assert all(torch.equal(a[:count], b) for a, b in zip(found, want))
            i, j, S, d, D = (a[count:] for a in found)
            assert not i.any() and not j.any() and not S.any() and not D.any()
            assert bool((d == 1.2).all())
            ours, theirs = (torch.autograd.grad(((d - 1.2) ** 3).sum(), x)[0]
                            for d in (found[3], want[3]))
            assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)
        small = graph.FixedNeighborList(14, 3, 1.2, cell, pbc, batch, half=half, dtype=dtype,
                                        device=device)
        assert int(small(x)[5]) > 3
        try:
            small.check()
        except nearfield.Error as error:
            assert "capacity" in str(error)
        else:
            raise AssertionError("pairs are missing, and nothing says so")


def check_captured():
    """FixedNeighborList in a CUDA graph, replayed with other positions and another cell."""
    if "cuda" not in DEVICES:
        return
    for dtype in (torch.float32, torch.float64):
        x, cell, pbc = random_system(5, 300, dtype, "cuda")
        cell, x = 4 * cell, 4 * x
        search = graph.FixedNeighborList(300, 60000, 1.5, cell, pbc, sorted=True, dtype=dtype,
                                         device="cuda")
        on = torch.cuda.Stream()
        on.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(on):
            search(x, cell)
        torch.cuda.current_stream().wait_stream(on)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            *found, count = search(x, cell)
        for turn in range(5):
            x.mul_(1.02)
            cell.mul_(1.01)
            captured.replay()
            want = graph.neighbor_list(x, cell, pbc, 1.5, sorted=True)
            assert 0 < int(count) == len(want[0])
            assert all(torch.equal(a[:count], b) for a, b in zip(found, want))


def pairs_within(x, r):
    d = torch.cdist(x.double(), x.double(), compute_mode="donot_use_mm_for_euclid_dist")
    return d, (d < r) & ~torch.eye(len(x), dtype=torch.bool)


def edges(index):
    return set(zip(*index.tolist()))


def check_radius_graph():
    for dim in (1, 2, 3):
        x = torch.rand(200, dim, generator=generator(dim), dtype=torch.float64)
        d, near = pairs_within(x, 0.2)
        want = edges(torch.nonzero(near).T)
        assert edges(graph.radius_graph(x, 0.2, max_num_neighbors=None)) == want
        index = graph.radius_graph(x, 0.2, loop=True, max_num_neighbors=None)
        assert edges(index) == want | {(k, k) for k in range(200)} and (index[1].diff() >= 0).all()
        index = graph.radius_graph(x, 0.2, max_num_neighbors=3, flow="target_to_source")
        counts = torch.bincount(index[0], minlength=200)
        assert torch.equal(counts, near.sum(1).clamp_max(3))
        for row in range(200):
            kept = index[1][index[0] == row]
            worst = d[row][near[row]].sort().values[:3]
            assert torch.allclose(d[row][kept].sort().values, worst)
    batch = torch.arange(200) // 50
    index = graph.radius_graph(x, 0.4, batch, max_num_neighbors=None)
    d, near = pairs_within(x, 0.4)
    assert edges(index) == edges(torch.nonzero(near & (batch[:, None] == batch[None])).T)
    x, cell, pbc = random_system(8, 30)
    index = graph.radius_graph(x, 1.0, max_num_neighbors=None, cell=cell, pbc=pbc)
    assert index.shape[1] == len(all_images(x, cell, pbc, 1.0))


def check_radius():
    g = generator(5)
    x, y = torch.rand(120, 3, generator=g), torch.rand(70, 3, generator=g)
    of_x, of_y = torch.arange(120) // 40, torch.arange(70) // 25
    d = torch.cdist(y.double(), x.double(), compute_mode="donot_use_mm_for_euclid_dist")
    index = graph.radius(x, y, 0.3, max_num_neighbors=None)
    assert edges(index) == edges(torch.nonzero(d < 0.3).T) and (index[0].diff() >= 0).all()
    index = graph.radius(x, y, 0.3, of_x, of_y, max_num_neighbors=None)
    assert edges(index) == edges(torch.nonzero((d < 0.3) & (of_y[:, None] == of_x[None])).T)
    index = graph.radius(x, y, 0.3, max_num_neighbors=2)
    assert torch.equal(torch.bincount(index[0], minlength=70), (d < 0.3).sum(1).clamp_max(2))


def check_knn_graph():
    for dim in (1, 2, 3):
        x = torch.randn(300, dim, generator=generator(dim), dtype=torch.float64) ** 3
        d, _ = pairs_within(x, 1)
        d.fill_diagonal_(torch.inf)
        index = graph.knn_graph(x, 5)
        assert index.shape == (2, 1500) and torch.equal(index[1], torch.arange(1500) // 5)
        assert torch.equal(index[0].reshape(300, 5), d.argsort(1)[:, :5])
        assert graph.knn_graph(x, 5, loop=True).shape == (2, 1500)
    assert graph.knn_graph(torch.rand(3, 3), 8).shape == (2, 6)
    assert graph.knn_graph(torch.rand(0, 3), 8).shape == (2, 0)
    batch = torch.tensor([0] * 4 + [1] * 296)
    index = graph.knn_graph(x, 6, batch)
    assert index.shape[1] == 4 * 3 + 296 * 6 and (batch[index[0]] == batch[index[1]]).all()
    cell = torch.eye(3, dtype=torch.float64)
    one = graph.knn_graph(torch.zeros(1, 3, dtype=torch.float64), 6, cell=cell, pbc=True)
    assert one.tolist() == [[0] * 6, [0] * 6]


def searched(call, *arguments, **named):
    """What a call returns, and the search that found it (on the CPU)."""
    saved = {kind: pool[:] for kind, pool in _neighbors._pools.items()}
    for pool in _neighbors._pools.values():
        pool.clear()
    try:
        result = call(*arguments, **named)
        (search,) = [search for pool in _neighbors._pools.values() for search in pool]
        return result, search.asks
    finally:
        for kind, pool in saved.items():
            _neighbors._pools[kind][:] = pool


def check_costs():
    """Tested pairs, and memory, are of the order of the edges."""
    x = torch.rand(20000, 3, generator=generator(1))
    y = torch.rand(10, 3, generator=generator(2))
    for one, other in ((x, y), (y, x)):
        index, asks = searched(graph.radius, one, other, 0.1, max_num_neighbors=None)
        assert index.shape[1] > 300 and asks.tests < 10 * index.shape[1], asks.tests
        assert asks.held < 64 * len(x) + (4 << 20), asks.held
    x = torch.rand(2000, 3, generator=generator(3), dtype=torch.float64)
    even = searched(graph.knn_graph, x, 8)[1].tests
    x[-1] = torch.tensor([1000.0, 0, 0])
    x[:500] = x[:500] * 1e-3
    index, asks = searched(graph.knn_graph, x, 8)
    assert asks.tests < 2 * even + 10000 and even < 100 * len(x), (asks.tests, even)
    d = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(torch.inf)
    assert torch.equal(index[0].reshape(-1, 8), d.sort(dim=1, stable=True).indices[:, :8])
    for far in (True, False):
        index, asks = searched(graph.radius_graph, x[:1500], 1e4 if far else 1.5)
        assert index.shape[1] == 32 * 1500 and asks.held < 16 << 10 << 8, asks.held
    at_one, k = torch.zeros(3000, 3), 8
    at_one[1::3] = 1.0
    for cell in (None, torch.eye(3) * 10):
        index, asks = searched(graph.knn_graph, at_one, k, cell=cell)
        assert asks.tests < 3000 * 27 * 4 * k, asks.tests
        assert index[0][index[1] == 2].tolist() == [0, 3, 5, 6, 8, 9, 11, 12]
        assert index[0][index[1] == 2998].tolist() == [1, 4, 7, 10, 13, 16, 19, 22]
    index, asks = searched(graph.knn_graph, x[:600], 500)
    assert torch.equal(index[0].reshape(600, 500), d[:600, :600].sort(dim=1, stable=True).indices
                       [:, :500])


def check_nearest_images():
    """The k nearest in cells that repeat, against all images."""
    for seed in range(12):
        x, cell, pbc = random_system(seed, 7)
        k = 1 + 3 * (seed % 4)
        found = graph.knn_graph(x, k, cell=cell, pbc=pbc)
        if not pbc.any():
            assert found.shape[1] == 7 * min(k, 6)
            continue
        reach = 6 if k < 8 else 9
        all_of = {}
        for (i, j, *_), d in all_images(x, cell, pbc, 1e9, reach).items():
            all_of.setdefault(i, []).append((d, j))
        for i, row in all_of.items():
            row.sort()
            mine = found[0][found[1] == i].tolist()
            assert mine == [j for _, j in row[:k]], (seed, i)
    flat = torch.eye(3, dtype=torch.float64)
    x = torch.rand(400, 3, dtype=torch.float64, generator=generator(1))
    x[0, 2] = 1e6       # far along an axis that does not repeat: images around it are not counted
    index, asks = searched(graph.knn_graph, x, 5, cell=flat, pbc=[True, True, False])
    assert index.shape[1] == 2000 and asks.tests < 400 * 1500, asks.tests


def check_cells_of_lengths():
    """One length is a cube, three are a box; other shapes are refused, and none is expanded."""
    x = torch.rand(30, 3, dtype=torch.float64, generator=generator(0))
    sides, pbc = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), (True, False, False)
    want = graph.neighbor_list(x, torch.diag(sides), pbc, 0.6, sorted=True)
    found = graph.neighbor_list(x, sides, pbc, 0.6, sorted=True)
    assert all(map(torch.equal, found, want)) and len(want[0]) > 100
    edge = torch.tensor(1.0, dtype=torch.float64)
    want = graph.neighbor_list(x, torch.eye(3, dtype=torch.float64), True, 0.6, sorted=True)
    found = graph.neighbor_list(x, edge, True, 0.6, sorted=True)
    assert all(map(torch.equal, found, want))
    search = graph.FixedNeighborList(30, 9000, 0.6, sides, pbc, dtype=torch.float64)
    assert int(search(x, edge.expand(3))[5]) == int(search(x, edge)[5])
    for bad in (sides[None], sides[:2], torch.eye(2), torch.zeros(1, 1, 3, 3)):
        for call in (lambda: graph.neighbor_list(x, bad, pbc, 0.6),
                     lambda: graph.radius_graph(x, 0.6, cell=bad, pbc=pbc),
                     lambda: graph.FixedNeighborList(30, 9, 0.6, bad, pbc),
                     lambda: search(x, bad)):
            try:
                call()
            except ValueError as error:
                assert str(tuple(bad.shape)) in str(error)
            else:
                raise AssertionError("a cell of shape %s is not refused" % (bad.shape,))


def check_arrays_of_numpy():
    """NumPy's arrays, and lists, as the tensors that they are."""
    x, cell, pbc = random_system(5)
    batch = torch.zeros(len(x), dtype=torch.int64)
    given = x.numpy(), cell.numpy(), batch.numpy()
    for a, b in zip(graph.neighbor_list(given[0], given[1], pbc.numpy(), 1.1, given[2]),
                    graph.neighbor_list(x, cell, pbc, 1.1, batch)):
        assert isinstance(a, torch.Tensor) and torch.equal(a, b)
    assert torch.equal(graph.radius_graph(given[0], 1.0, given[2]), graph.radius_graph(x, 1.0))
    assert torch.equal(graph.knn_graph(given[0], 3, pbc=True, cell=given[1]),
                       graph.knn_graph(x, 3, pbc=True, cell=cell))
    assert torch.equal(graph.radius(given[0], given[0][:5], 1.0), graph.radius(x, x[:5], 1.0))
    search = graph.FixedNeighborList(len(x), 900, 1.1, given[1], True, dtype=torch.float64)
    for a, b in zip(search(given[0]), search(x)):
        assert torch.equal(a, b)
    assert graph.neighbor_list([[0.0, 0, 0], [1, 0, 0]], cutoff=1.5)[3].tolist() == [1, 1]


def check_dlpack():
    """The classes take tensors on the CPU where they are, in their precision."""
    for dtype in torch.float32, torch.float64:
        x = torch.rand(50, 3, generator=generator(8), dtype=dtype)
        grid = nearfield.Grid(x, cell=0.3)
        assert str(grid._lib.dtype) == str(dtype)[6:] and not grid._kept["pos"].flags.owndata
        assert grid._kept["pos"].ctypes.data == x.data_ptr()
        d = nearfield.neighbor_list("d", (x, torch.eye(3), True), 0.3)
        assert str(d.dtype) == str(dtype)[6:]
        near = nearfield.nearest(x, 3, x[:9], cell=torch.eye(3))
        assert str(near.distances.dtype) == str(dtype)[6:] and len(near) == 27
        assert torch.from_dlpack(near.distances).dtype == dtype
        ids, _ = nearfield.Tree(x, "points").nearest(x, 1)
        assert (torch.from_dlpack(ids)[:, 0] == torch.arange(50)).all()


def check_transforms():
    """torch.func differentiates as torch.autograd does."""
    x = torch.rand(8, 3, dtype=torch.float64, generator=generator(4))
    cell = torch.eye(3, dtype=torch.float64)

    def energy(x, cell):
        d = graph.neighbor_list(x, cell, True, 0.7, half=True)[3]
        return ((1 - d / 0.7) ** 3).sum()

    leaves = x.clone().requires_grad_(), cell.clone().requires_grad_()
    want = torch.autograd.grad(energy(*leaves), leaves)
    found = torch.func.grad(energy, (0, 1))(x, cell)
    assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(found, want))
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        assert torch.allclose(transform(energy)(x, cell), want[0], rtol=0, atol=1e-12)
    second = torch.autograd.functional.hessian(lambda x: energy(x, cell), x)
    assert torch.allclose(torch.func.hessian(energy)(x, cell), second, rtol=0, atol=1e-11)


def check_any_batch_id():
    """Names of examples may be any numbers: none is counted up to."""
    x = torch.rand(40, 3, generator=generator(5))
    small = torch.arange(4).repeat_interleave(10)
    large = small * 10**12 + 7
    assert torch.equal(graph.radius_graph(x, 0.5, small), graph.radius_graph(x, 0.5, large))
    assert torch.equal(graph.knn_graph(x, 3, small), graph.knn_graph(x, 3, large))
    few = torch.tensor([10**12 + 7] * 5)
    index = graph.radius(x, x[:5], 0.5, large, few, None)
    want = graph.radius(x[10:20], x[:5], 0.5, None, None, None)
    assert torch.equal(index[1], want[1] + 10) and index.shape[1] > 3


def check_devices():
    """Edges on the GPU are those on the CPU: of few points, of many, and from several threads, each
    with a stream of its own."""
    if "cuda" not in DEVICES:
        return

    def edges_on(device, n, most, loop):
        x = torch.rand(n, 3, generator=generator(n)).to(device)
        batch = (torch.arange(n) * 3 // n).to(device)
        r = (30 / (4.2 * n)) ** (1 / 3)
        cell = torch.eye(3, device=device)
        return [a.cpu() for a in (
            graph.radius_graph(x, r, None, loop, most), graph.radius_graph(x, r, batch, loop, most),
            graph.radius_graph(x, r, None, loop, most, cell=cell, pbc=True),
            graph.knn_graph(x, 4, batch, loop), graph.radius(x, x[:n // 3], r, None, None, None))]

    cases = [(n, most, loop) for n in (500, 20000) for most in (None, 100, 3)
             for loop in (False, True)]
    want = [edges_on("cpu", *case) for case in cases]

    def compare(_):
        with torch.cuda.stream(torch.cuda.Stream()):
            for case, theirs in zip(cases, want):
                assert all(torch.equal(a, b) for a, b in zip(edges_on("cuda", *case), theirs)), case

    compare(0)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(compare, range(4)))
    torch.cuda.synchronize()
    graph.release()
    torch.cuda.empty_cache()
    had = torch.cuda.memory_allocated()
    for _ in range(10):
        with torch.cuda.stream(torch.cuda.Stream()):
            edges_on("cuda", 20000, 100, False)
    torch.cuda.synchronize()
    assert 0 < torch.cuda.memory_allocated() - had <= 256 << 20
    graph.release()
    assert torch.cuda.memory_allocated() == had


def check_operators():
    """torch's own tests of registered operators: schema, fake and autograd registrations."""
    x, cell, pbc = random_system(2)
    batch = torch.arange(2).repeat_interleave(6)
    box, ops = (cell[None], pbc[None]), torch.ops.nearfield
    for of in (None, batch):
        torch.library.opcheck(ops.pairs.default, (x, *box, of, 1.0, False, False, 0, True))
        torch.library.opcheck(ops.radius_graph.default, (x, *box, of, 1.0, 3, True, False))
        torch.library.opcheck(ops.knn_graph.default, (x, *box, of, 3, False))
        torch.library.opcheck(ops.radius.default, (x, x[:12], of, of, 1.0, -1))
        torch.library.opcheck(ops.radius.default, (x, x[:12], of, of, 1.0, 2))


def check_compile():
    """No graph break between the inputs and the forces, or the edges."""
    def energy(x, cell, pbc, batch):
        d = graph.neighbor_list(x, cell, pbc, 1.0, batch)[3]
        return ((1 - d) ** 2).sum()

    def edges_of(x):
        return (graph.radius_graph(x, 0.9, max_num_neighbors=3), graph.knn_graph(x, 4, loop=True),
                graph.radius(x, x[:5], 0.9), graph.radius_graph(x, 0.9, max_num_neighbors=None))

    x, cell, pbc = random_system(4)
    halves = torch.arange(2).repeat_interleave(6)
    for cells, batch in ((cell, None), (cell, halves), (torch.stack([cell, 1.1 * cell]), halves)):
        torch._dynamo.reset()
        compiled = torch.compile(energy, fullgraph=True, backend="aot_eager")
        forces = []
        for function in (energy, compiled):
            leaf = x.clone().requires_grad_(True)
            function(leaf, cells, pbc, batch).backward()
            forces.append(leaf.grad)
        assert torch.allclose(*forces, rtol=0, atol=1e-12)
    compiled = torch.compile(edges_of, fullgraph=True, backend="aot_eager")
    assert all(map(torch.equal, compiled(x), edges_of(x)))


def check_refusals():
    x, cell, pbc = random_system(1)
    bad = x.clone()
    bad[3, 1] = torch.nan
    for text, work in (
            ("row 3", lambda: graph.neighbor_list(bad, cell, pbc, 1.0)),
            ("cutoff", lambda: graph.neighbor_list(x, cell, pbc, -1.0)),
            ("cell", lambda: graph.neighbor_list(x, None, True, 1.0)),
            ("independent", lambda: graph.neighbor_list(x, 0 * cell, True, 1.0)),
            ("(n, 3)", lambda: graph.neighbor_list(x[:, :2], cell, pbc, 1.0)),
            ("float32 or float64", lambda: graph.neighbor_list(x.half(), cell, pbc, 1.0)),
            ("at least 1", lambda: graph.FixedNeighborList(0, 8, 1.0)),
            ("shape (4, 3)", lambda: graph.FixedNeighborList(4, 8, 1.0)(x.float())),
            ("flow", lambda: graph.radius_graph(x, 1.0, flow="both"))):
        try:
            work()
        except ValueError as error:
            assert text in str(error), (text, str(error))
        else:
            raise AssertionError("not refused: %s" % text)


def main():
    checks = {name[6:]: f for name, f in globals().items() if name.startswith("check_")}
    names, failed = sys.argv[1:] or list(checks), 0
    print("torch %s, devices: %s; nearfield %s" % (torch.__version__, ", ".join(DEVICES),
                                                   nearfield.__version__))
    for name in names:
        try:
            checks[name]()
            print("ok       torch: %s" % name.replace("_", " "), flush=True)
        except Exception as error:      # noqa: BLE001
            failed += 1
            print("FAILED   torch: %s: %s" % (
                name.replace("_", " "), repr(error)[:300]), flush=True)
            traceback.print_exc(limit=-4)
    print("%d passed, %d failed" % (len(names) - failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
