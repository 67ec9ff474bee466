#!/usr/bin/env python3
"""boxes_emulated.py - the search behind nearfield.torch on CUDA tensors, by the emulator.
SPDX-License-Identifier: MIT OR Unlicense

    python3 tests/python/boxes_emulated.py LIBRARY      that of tests/python/run.sh

Two systems in one call, in float and double, beside neighbor_list on the CPU. Without torch: what
torch adds to it is not run here. The last line is "N passed, M failed".
"""
import os
import sys

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "examples", "python"))
import gpu_check  # noqa: E402
import nearfield as nf  # noqa: E402
from nearfield._boxes_cuda import DeviceBoxes  # noqa: E402

FLAGS = [1, 1, 1], [1, 0, 1]


def on_cpu(x, starts, half, nearest):
    """i, j, S of both systems."""
    parts = []
    for first, last, flags in zip(starts, starts[1:], FLAGS):
        part = x[first:last], 3 * np.eye(3), flags
        i, j, S = nf.neighbor_list("ijS", part, 1.0, half=half, sorted=True)
        parts.append((i + first, j + first, S))
    return [np.concatenate(columns) for columns in zip(*parts)]


def check(dtype, half, nearest):
    emulator = gpu_check.Emulator(dtype)
    x = (3 * np.random.default_rng(1).random((60, 3))).astype(dtype)
    boxes = np.zeros(2, np.dtype([("cell", dtype, (3, 3)), ("periodic", np.int32, 3)],
                                 align=True))
    boxes["cell"], boxes["periodic"] = 3 * np.eye(3), FLAGS
    starts = np.array([0, 25, 60], np.int32)
    found = DeviceBoxes().search(
        emulator.to(x), emulator.to(boxes.view(np.uint8).reshape(-1)), emulator.to(starts), 2, 1.0,
        half, True, nearest)
    rows, j, S = (array.numpy() for array in found)
    if nearest:
        counts = np.diff(on_rows(x, starts))
        return (np.diff(rows) == np.minimum(counts, nearest)).all() and counts.max() > nearest
    i = np.repeat(np.arange(60), np.diff(rows))
    want = on_cpu(x, starts, half, nearest)
    return len(i) > 50 and all(np.array_equal(a, b)
                               for a, b in zip((i, j, S.reshape(-1, 3)), want))


def check_fill(dtype):
    """Room given, three calls: the arrays stay where they are; too little room is reported."""
    emulator = gpu_check.Emulator(dtype)
    boxes = np.zeros(2, np.dtype([("cell", dtype, (3, 3)), ("periodic", np.int32, 3)],
                                 align=True))
    boxes["cell"], boxes["periodic"] = 3 * np.eye(3), FLAGS
    starts = np.array([0, 25, 60], np.int32)
    there = emulator.to(boxes.view(np.uint8).reshape(-1)), emulator.to(starts), 2
    search, places = DeviceBoxes(), set()
    for seed in range(3):
        x = (3 * np.random.default_rng(seed).random((60, 3))).astype(dtype)
        rows, j, S = search.fill(emulator.to(x), *there, 1.0, False, True, 2000, None)
        search.check()
        places.add((rows.address, j.address, S.address))
        want = on_cpu(x, starts, False, 0)
        count = rows.numpy()[-1]
        if not (50 < count == len(want[0]) and np.array_equal(j.numpy()[:count], want[1]) and
                np.array_equal(S.numpy().reshape(-1, 3)[:count], want[2])):
            return False
    small = DeviceBoxes()
    rows = small.fill(emulator.to(x), *there, 1.0, False, True, 9, None)[0]
    try:
        small.check()
    except nf.Error:
        return len(places) == 1 and rows.numpy()[-1] == count
    return False


def on_rows(x, starts):
    i = on_cpu(x, starts, False, 0)[0]
    return np.searchsorted(i, np.arange(len(x) + 1))


def main(library):
    nf.load_library(library)
    passed = failed = 0
    for dtype in (np.float64, np.float32):
        good = check_fill(dtype)
        passed, failed = passed + bool(good), failed + (not good)
        print("%-8s python: boxes on the emulator: %s, room given" % (
            "ok" if good else "FAILED", np.dtype(dtype)))
        for half, nearest in ((False, 0), (True, 0), (False, 2)):
            good = check(dtype, half, nearest)
            passed, failed = passed + bool(good), failed + (not good)
            print("%-8s python: boxes on the emulator: %s, half %d, nearest %d" % (
                "ok" if good else "FAILED", np.dtype(dtype), half, nearest))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
