#!/usr/bin/env python3
"""bench_python.py - nearfield from Python beside vesin, scipy and torch_cluster, as a table.
SPDX-License-Identifier: MIT OR Unlicense

    python3 tests/python/bench_python.py [MOST]        default: systems of up to 100000 atoms

For radius_graph on a GPU a second line says where the time of ours goes.

nearfield is the one that Python finds (pip install ., or PYTHONPATH=build/python). Each line: the
CPU time of this thread, ours and the peer's in turn, the median of each, and the median of the
ratios ours / peer with the bar it should be at or below. On a GPU: the time until it has finished,
with tensors that lie there. Both must find the same number of pairs, else the script says so and
ends with 1. What is not installed is left out.
"""
import statistics
import sys
import time

import numpy as np

import nearfield

failed = 0


def taken(work, clock):
    begin = clock()
    found = work()
    return clock() - begin, found


def compare(what, ours, theirs, bar, runs, clock=time.thread_time):
    """One line; ours() and theirs() return how many pairs they found."""
    global failed
    times = []
    for run in range(runs + 1):
        (a, found), (b, expected) = taken(ours, clock), taken(theirs, clock)
        if found != expected:
            failed = 1
            print("FAILED   %s: %d pairs, the peer has %d" % (what, found, expected))
            return
        if run:         # the first of both takes memory
            times.append((a, b))
    mine, other = (1e6 * statistics.median(t) for t in zip(*times))
    ratio = statistics.median(a / b for a, b in times)
    print("%-46s %12.1f %12.1f %8.2f %6.2f  %s" % (
        what, mine, other, ratio, bar, "" if ratio <= bar else "above the bar"), flush=True)


def system(n, neighbours, seed=1):
    edge = (n * 4 / 3 * np.pi / neighbours) ** (1 / 3)
    return np.random.default_rng(seed).random((n, 3)) * edge, np.eye(3) * edge


def lists(most):
    try:
        import vesin
    except ImportError:
        print("skipped  vesin is not installed")
        return
    pairs = vesin.NeighborList(cutoff=1.0, full_list=True, n_threads=1)
    for n, bar in ((100, 0.8), (1000, 0.6), (10000, 0.5), (100000, 0.5), (1000000, 0.5)):
        for neighbours in (30, 80):
            if n > most:
                continue
            x, cell = system(n, neighbours)
            compare('neighbor_list("ijSd"), vesin: %d, %d' % (n, neighbours),
                    lambda: len(nearfield.neighbor_list("ijSd", (x, cell, True), 1.0)[0]),
                    lambda: len(pairs.compute(x, cell, True, "ijSd")[0]),
                    bar, max(3, min(301, 300000 // n)))


def nearest():
    try:
        from scipy.spatial import cKDTree
    except ImportError:
        print("skipped  scipy is not installed")
        return
    x = np.random.default_rng(1).random((100000, 3))
    wrapped = cKDTree(x, boxsize=1.0)
    compare("8 nearest of 100000 uniform points, cKDTree",
            lambda: nearfield.Tree(x, "points").nearest(x, 8)[0].size,
            lambda: cKDTree(x).query(x, 8, workers=1)[1].size, 0.5, 5)
    compare("8 nearest in a periodic cube, with the search, cKDTree",
            lambda: len(nearfield.nearest(x, 8, x, cell=[1, 1, 1])),
            lambda: wrapped.query(x, 8, workers=1)[1].size, 1.0, 3)
    compare("neighbors within 0.03 of 100000 others, cKDTree",
            lambda: len(nearfield.query(x, x[::-1], 0.03, cell=[1, 1, 1])),
            lambda: wrapped.query_ball_point(x[::-1], 0.03, return_length=True).sum(), 1.0, 3)


def small():
    """What a call costs beside the work: 100 points, 100 calls a time."""
    try:
        from scipy.spatial import cKDTree
    except ImportError:
        return
    x = np.random.default_rng(1).random((100, 3))
    grid, tree, theirs = nearfield.Grid(x, cell=0.2), nearfield.Tree(x, "points"), cKDTree(x)

    def calls(work):
        return lambda: [work() for _ in range(100)] and 100
    for what, mine, other in (
            ("Grid(), cKDTree()", lambda: nearfield.Grid(x), lambda: cKDTree(x)),
            ("Tree(), cKDTree()", lambda: nearfield.Tree(x, "points"), lambda: cKDTree(x)),
            ("Grid.pairs, query_pairs", lambda: grid.pairs(0.2),
             lambda: theirs.query_pairs(0.2, output_type="ndarray")),
            ("8 nearest", lambda: tree.nearest(x, 8), lambda: theirs.query(x, 8))):
        compare("100 points, 100 calls: " + what, calls(mine), calls(other), 1.0, 31)


def graphs(most):
    try:
        import torch
        import torch_cluster
        import nearfield.torch as graph
    except ImportError as error:
        print("skipped  %s is not installed" % error.name)
        return
    torch.set_num_threads(1)

    def finished():
        torch.cuda.synchronize()
        return time.perf_counter()

    places = [("CPU", "cpu", time.thread_time)]
    if torch.cuda.is_available():
        places.append(("GPU", "cuda", finished))
    for name, device, clock in places:
        for n in (1000, 10000, 100000, 1000000):
            if n > most or (device == "cpu" and n > 100000):
                continue
            x = torch.from_numpy(system(n, 30)[0].astype(np.float32)).to(device)
            compare("radius_graph, torch_cluster on the %s: %d" % (name, n),
                    lambda: graph.radius_graph(x, 1.0, max_num_neighbors=200).shape[1],
                    lambda: torch_cluster.radius_graph(x, 1.0, max_num_neighbors=200).shape[1],
                    0.5, 21 if device == "cuda" else 5, clock)
            if device == "cuda":
                parts(graph, x, finished)


def parts(graph, x, clock):
    """Where the time of a call goes: from the kernels alone to all layers of Python. Each is the
    least of 50 runs, in us."""
    import torch
    from nearfield import _torch_cuda
    most, lib, n = 200, _torch_cuda._lib(x), x.shape[0]
    layers = []
    if n <= lib.nearfield_cuda_few():
        begin, told = torch.empty(n + 3, dtype=torch.int64, device="cuda"), np.zeros(3, np.int64)
        ask = x.data_ptr(), 0, n, None, 1, 1.0, 0, 0, begin.data_ptr()
        stream = torch.cuda.current_stream().cuda_stream
        lib.nearfield_cuda_few_count(*ask, told.ctypes.data, stream)
        out = torch.empty((2, int(told[0])), dtype=torch.int64, device="cuda")
        layers += [("count, wait", lambda: lib.nearfield_cuda_few_count(
            *ask, told.ctypes.data, stream)), ("write", lambda: lib.nearfield_cuda_few_write(
                *ask, out[0].data_ptr(), out[1].data_ptr(), stream))]
    else:
        boxes = torch.zeros(128, dtype=torch.uint8, device="cuda")
        starts = torch.tensor([0, n], dtype=torch.int32, device="cuda")
        search = _torch_cuda._Search(x.device, torch.cuda.current_stream())
        give = [_torch_cuda._Given(a, kind) for a, kind in
                ((x, "<f4"), (boxes, "|u1"), (starts, "<i4"))]
        layers.append(("search, its memory kept", lambda: search.search(
            *give, 1, 1.0, False, True, 0, False)))
    operator = torch.ops.nearfield.radius_graph.default
    layers += [("pairs", lambda: _torch_cuda.index_pairs(x, None, None, 1, 1.0, most=most,
                                                         flow=True)),
               ("operator", lambda: operator(x, None, None, None, 1.0, most, False, True)),
               ("radius_graph", lambda: graph.radius_graph(x, 1.0, max_num_neighbors=most))]
    times = [min(taken(work, clock)[0] for _ in range(50)) * 1e6 for _, work in layers]
    print("    of it: " + ", ".join("%s %.0f" % (name, time) for (name, _), time in
                                    zip(layers, times)), flush=True)


def main(most=100000):
    print("%-46s %12s %12s %8s %6s" % ("us of CPU time on one thread", "nearfield", "peer", "ratio",
                                       "bar"))
    lists(most)
    nearest()
    small()
    graphs(most)
    return failed


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
