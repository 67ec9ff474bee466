#!/usr/bin/env python3
"""torch_checks.py - nearfield.torch on CPU tensors (and on CUDA tensors where there are any).
SPDX-License-Identifier: MIT OR Unlicense

    python3 tests/python/torch_checks.py [NAME...]

nearfield and torch are those that Python finds. A line per check; the last line is "N passed, M
failed". The oracle is torch over all pairs and all images, in double precision.
"""
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
    systems = [random_system(seed, n) for seed, n in ((1, 5), (2, 0), (3, 9), (4, 1))]
    x = torch.cat([s[0] for s in systems])
    cell, pbc = torch.stack([s[1] for s in systems]), torch.stack([s[2] for s in systems])
    batch = torch.repeat_interleave(torch.arange(4), torch.tensor([5, 0, 9, 1]))
    i, j, S, d, D = graph.neighbor_list(x, cell, pbc, 1.2, batch, sorted=True)
    first, parts = 0, []
    for one in systems:
        a = graph.neighbor_list(*one, 1.2, sorted=True)
        parts.append((a[0] + first, a[1] + first) + a[2:])
        first += len(one[0])
    for ours, theirs in zip((i, j, S, d, D), zip(*parts)):
        assert torch.equal(ours, torch.cat(theirs))
    for bad in (batch.flip(0), batch[:-1], batch - 1, batch + 1):
        try:
            graph.neighbor_list(x, cell, pbc, 1.2, bad)
        except ValueError as error:
            assert "batch" in str(error)
        else:
            raise AssertionError("not refused: %s" % bad)


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


def check_operator():
    """torch's own tests of a registered operator: schema, fake and autograd registrations."""
    x, cell, pbc = random_system(2)
    starts = torch.tensor([0, 12], dtype=torch.int32)
    torch.library.opcheck(torch.ops.nearfield.pairs.default,
                          (x, cell[None], pbc[None], starts, 1.0, False, False, 0, True))


def check_compile():
    """No graph break between the inputs and the forces."""
    def energy(x, cell, pbc):
        d = graph.neighbor_list(x, cell, pbc, 1.0)[3]
        return ((1 - d) ** 2).sum()

    x, cell, pbc = random_system(4)
    compiled = torch.compile(energy, fullgraph=True, backend="aot_eager")
    forces = []
    for function in (energy, compiled):
        leaf = x.clone().requires_grad_(True)
        function(leaf, cell, pbc).backward()
        forces.append(leaf.grad)
    assert torch.allclose(*forces, rtol=0, atol=1e-12)


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
