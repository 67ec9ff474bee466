"""bench.py - nearfield and scipy's cKDTree (and ASE's neighbor_list) at the same work, each on one
thread.
SPDX-License-Identifier: MIT OR Unlicense

    python3 examples/python/bench.py [N]   default: 100000 points, evenly spread, 30 neighbours each

Building is part of each time: CPU time, so that other programs do not count; the median of five
runs. Both must find the same number of pairs, else it says so and ends.
"""
import datetime
import os
import platform
import statistics
import sys
import time

import numpy as np

import nearfield as nf


def median(work, runs=5):
    times, result = [], None
    for _ in range(runs):
        begin = time.process_time()
        result = work()
        times.append(time.process_time() - begin)
    return statistics.median(times), result


def compare(what, theirs, ours):
    """One line: theirs, ours in float64 and in float32."""
    (t0, found0), (t1, found1), (t2, found2) = map(
        median, (theirs, ours(np.float64), ours(np.float32)))
    if found0 != found1 or abs(found2 - found0) > 1e-5 * found0 + 2:
        sys.exit("%s: %d, but %d (float32: %d)" % (what, found0, found1, found2))
    print("%-44s %9.1f %9.1f %9.1f %8.1f" % (what, 1e3 * t0, 1e3 * t1, 1e3 * t2, t0 / t1))


def cpu():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines
                        if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main(n=100000):
    from scipy.spatial import cKDTree
    import scipy
    exact = np.random.default_rng(1).random((n, 3))
    points = {t: exact.astype(t) for t in (np.float64, np.float32)}
    p = points[np.float64]
    r = (30 / (n * 4 / 3 * np.pi)) ** (1 / 3)
    print("%d points in 3D, 30 neighbours each; %s; %s; scipy %s, NumPy %s, Python %s" % (
        n, cpu(), datetime.date.today(), scipy.__version__, np.__version__,
        platform.python_version()))
    print("%-44s %9s %9s %9s %8s" % (
        "ms of CPU time, building included", "scipy", "float64", "float32", "ratio"))
    compare("all pairs within r, as an array",
            lambda: len(cKDTree(p).query_pairs(r, output_type="ndarray")),
            lambda t: lambda: len(nf.Grid(points[t], cell=r).pairs(r)))

    def count():
        tree = cKDTree(p)
        return (tree.count_neighbors(tree, r) - n) // 2

    compare("the number of pairs within r", count,
            lambda t: lambda: nf.Grid(points[t], cell=r).count_pairs(r))
    box = dict(box=(0, 1), periodic=True)
    compare("all pairs in a periodic box, as an array",
            lambda: len(cKDTree(p, boxsize=1).query_pairs(r, output_type="ndarray")),
            lambda t: lambda: len(nf.Grid(points[t], cell=r, **box).pairs(r)))
    compare("8 nearest of each point", lambda: cKDTree(p).query(p, 8, workers=1)[1].size,
            lambda t: lambda: nf.Tree(points[t], "points").nearest(points[t], 8)[0].size)
    try:
        from ase import Atoms
        from ase.neighborlist import neighbor_list
    except ImportError:
        return
    few = min(n, 20000)
    edge = (few / 0.05) ** (1 / 3)          # 0.05 atoms per cubic Angstrom
    atoms = Atoms("Ar%d" % few, positions=p[:few] * edge, cell=[edge] * 3, pbc=True)
    times = [median(lambda: len(find("ijSd", atoms, 5.0)[0]), 3)
             for find in (neighbor_list, nf.neighbor_list)]
    if times[0][1] != times[1][1]:
        sys.exit("neighbor_list: %d, but %d" % (times[0][1], times[1][1]))
    (t0, _), (t1, _) = times
    print('%-44s %9.1f %9.1f %9s %8.1f' % (
        'ASE: neighbor_list("ijSd"), %d atoms, 5 A' % few, 1e3 * t0, 1e3 * t1, "", t0 / t1))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(*map(int, sys.argv[1:]))
