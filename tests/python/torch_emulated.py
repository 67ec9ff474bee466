#!/usr/bin/env python3
"""torch_emulated.py - what nearfield.torch does with CUDA tensors, by the emulator.
SPDX-License-Identifier: MIT OR Unlicense

    python3 tests/python/torch_emulated.py LIBRARY      that of tests/python/run.sh

The emulator's device memory is the host's: tensors of the CPU can look at it. What the package asks
torch for on its way to the kernels is replaced. The oracle is the package on the CPU. The last
line is "N passed, M failed".
"""
import contextlib
import ctypes
import sys
import traceback
import types

try:
    import torch
except ImportError:
    print("skipped  torch is not installed")
    sys.exit(77)

import nearfield
import nearfield.torch as graph
from nearfield import _arrays, _torch_cuda

STREAM = types.SimpleNamespace(cuda_stream=0)


def there(tensor):
    """A copy in the memory of the emulator. (Each precision has one of its own.)"""
    if tensor is None or tensor.numel() == 0:
        return tensor
    block = _arrays.DeviceBlock(Torch.lib, 0, tensor.nbytes)
    memory = (ctypes.c_uint8 * tensor.nbytes).from_address(block.address)
    memory.block = block
    out = torch.frombuffer(memory, dtype=tensor.dtype).reshape(tensor.shape)
    return out.copy_(tensor.detach())


class Torch:
    """torch, but new tensors are of the emulator."""

    lib = None
    cuda = types.SimpleNamespace(
        is_current_stream_capturing=lambda: False, current_stream=lambda device: STREAM,
        device=lambda device: contextlib.nullcontext())

    def __getattr__(self, name):
        made = getattr(torch, name)
        if name == "as_tensor":
            return lambda array, device: torch.from_numpy(array.numpy())
        if name in ("empty", "zeros", "full"):
            return lambda *arguments, **named: there(made(*arguments, **named))
        return made


@contextlib.contextmanager
def emulated():
    """Within it all tensors pass for ones of the GPU."""
    find, queries, nearest = (_torch_cuda.index_pairs, _torch_cuda.near_queries,
                              _torch_cuda.nearest)

    def queries_there(x, y, *more):
        Torch.lib = _torch_cuda._lib(x)
        return queries(there(x), there(y), *more)

    def nearest_there(x, boxes, *more):
        Torch.lib = _torch_cuda._lib(x)
        return nearest(there(x), there(boxes), *more)

    def find_there(x, boxes, starts, *more, **options):
        Torch.lib = _torch_cuda._lib(x)
        return find(there(x), there(boxes), there(starts), *more, **options)
    try:
        graph._is_on_gpu = lambda x: True
        _torch_cuda.torch, _torch_cuda.index_pairs = Torch(), find_there
        _torch_cuda.near_queries, _torch_cuda.nearest = queries_there, nearest_there
        yield
    finally:
        graph._is_on_gpu = lambda x: x.is_cuda
        _torch_cuda.torch, _torch_cuda.index_pairs = torch, find
        _torch_cuda.near_queries, _torch_cuda.nearest = queries, nearest


def points(n, seed, dtype=torch.float32):
    return torch.rand(n, 3, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def same(ours, theirs):
    ours, theirs = (a if isinstance(a, tuple) else (a,) for a in (ours, theirs))
    return len(ours) == len(theirs) and all(torch.equal(a, b) for a, b in zip(ours, theirs))


def check_both(call, *arguments, **named):
    """The same on the GPU as on the CPU."""
    want = call(*arguments, **named)
    with emulated():
        found = call(*arguments, **named)
    assert same(found, want)
    return want


def check_few():
    """Points that are tried each with each: rows, batches, halves, loops, limits."""
    for dtype in (torch.float32, torch.float64):
        x = points(150, 1, dtype)
        batch = torch.tensor([0] * 40 + [2] * 70 + [3] * 40)
        for of in (None, batch):
            for flow in ("source_to_target", "target_to_source"):
                for loop in (False, True):
                    for most in (None, 1000, 7, 1, 0):
                        check_both(graph.radius_graph, x, 0.3, of, loop, most, flow)
            for half in (False, True):
                for own in (False, True):
                    found = check_both(graph.neighbor_list, x, None, None, 0.3, of, half=half,
                                       self_interaction=own, sorted=True)
                    assert len(found[0]) > 150
            check_both(graph.radius, x, x[:40], 0.3, of, None if of is None else of[:40])
            check_both(graph.knn_graph, x, 3, of)
    bytes = torch.cat([torch.zeros(75), torch.full((75,), 255)]).to(torch.uint8)
    check_both(graph.radius_graph, points(150, 1), 0.3, bytes)
    for n in (0, 1, 2, 33):
        check_both(graph.radius_graph, points(n, 2), 0.5, loop=True)


def check_cells():
    """Periodic boxes, and more points than are tried each with each."""
    for dtype in (torch.float32, torch.float64):
        x, cell = points(150, 3, dtype), torch.eye(3, dtype=dtype)
        for own in (False, True):
            check_both(graph.neighbor_list, x, cell, True, 0.3, self_interaction=own, sorted=True)
        batch, cells = torch.arange(150) // 50, torch.stack([cell, 2 * cell, 3 * cell])
        check_both(graph.neighbor_list, x, cells, [True, False, True], 0.3, batch,
                   sorted=True)
        check_both(graph.radius_graph, x, 0.3, loop=True, cell=cell,
                   max_num_neighbors=5)
    with emulated():
        few = graph.radius_graph(x, 0.2, loop=True, max_num_neighbors=200)
        lib = _torch_cuda._lib(x)
        had, lib.nearfield_cuda_few = lib.nearfield_cuda_few, lambda: 0
        many = graph.radius_graph(x, 0.2, loop=True, max_num_neighbors=200)
        lib.nearfield_cuda_few = had
    assert few.shape[1] > 300 and torch.equal(few, many)


@contextlib.contextmanager
def large_from(few):
    """Systems of more points than that are large ones."""
    lib = _torch_cuda._lib(torch.zeros(1)), _torch_cuda._lib(torch.zeros(1, dtype=torch.float64))
    had = [one.nearfield_cuda_few for one in lib]
    try:
        for one in lib:
            one.nearfield_cuda_few = lambda: few
        yield
    finally:
        for one, function in zip(lib, had):
            one.nearfield_cuda_few = function


def check_near():
    """Queries and the nearest: each with each, by trees, and in boxes; the edges of the CPU."""
    for dtype, fews in ((torch.float32, (10**6, 16, 0)), (torch.float64, (10**6, 0))):
        x, y = points(36, 7, dtype), points(18, 8, dtype)
        x[20:26] = x[19]        # coincident ones
        y[:5] = x[19]
        far = x.clone()
        far[17] = 1000
        of_x = torch.tensor([0] * 12 + [5] * 20 + [10**12] * 4)
        of_y = torch.tensor([0] * 2 + [5] * 9 + [7] * 4 + [10**12] * 3)
        cell = torch.eye(3, dtype=dtype)
        for few in fews:
            with large_from(few):
                for a, b in ((None, None), (of_x, of_y)):
                    for most in (None, 2):
                        check_both(graph.radius, x, y, 0.5, a, b, most)
                check_both(graph.radius, x, y, 0.5, of_x, None, 40)
                for at, of, k in ((x, None, 4), (x, of_x, 12), (far, of_x, 1), (far, None, 99)):
                    check_both(graph.knn_graph, at, k, of)
                check_both(graph.radius_graph, x, 0.8, of_x, few > 0, max_num_neighbors=3)
                for at, k, pbc in ((x, 1, True), (x, 30, True), (far, 4, [True, False, False])):
                    check_both(graph.knn_graph, at[:18], k, cell=cell, pbc=pbc)
                check_both(graph.radius, x, x, 0.0)


def check_bound():
    """A limit of neighbours bounds the memory, too: a search in cells ends where it needs more."""
    n = 700
    x = points(n, 9)
    want = graph.radius_graph(x, 2.0, max_num_neighbors=3)
    granted, refused = [], []
    new = _torch_cuda._Memory._new

    def noted(self, size):
        try:
            block = new(self, size)
        except MemoryError:
            refused.append(size)
            raise
        granted.append(size)
        return block

    with emulated(), large_from(0):
        graph.release()
        _torch_cuda._Memory._new = noted
        try:
            assert torch.equal(graph.radius_graph(x, 2.0, max_num_neighbors=3), want)
        finally:
            _torch_cuda._Memory._new = new
            graph.release()
    assert want.shape[1] == 3 * n and refused and max(granted) < 2 * n * (n - 1)


def check_kept():
    """One search for calls one after the other; at most so many; none after release()."""
    x, cell = points(60, 4), torch.eye(3)
    with emulated():
        graph.release()
        assert not _torch_cuda._kept
        graph.neighbor_list(x, cell, True, 0.3)
        (_, search), = _torch_cuda._kept
        blocks = set(search._memory._blocks)
        for cutoff in (0.3, 0.2, 0.3):
            graph.neighbor_list(x, cell, True, cutoff)
        assert _torch_cuda._kept[0][1] is search and set(search._memory._blocks) == blocks
        for stream in range(20):
            _torch_cuda._give(("stream", stream), _torch_cuda._Search(x.device, STREAM))
        keys = [key for key, _ in _torch_cuda._kept]
        assert keys == [("stream", stream) for stream in range(12, 20)]
        had, _torch_cuda._KEPT_BYTES = _torch_cuda._KEPT_BYTES, 1000
        graph.release()
        graph.neighbor_list(x, cell, True, 0.3)
        assert not _torch_cuda._kept
        _torch_cuda._KEPT_BYTES = had


def check_guess():
    """Room for as many pairs as in the last search; where that is too much, the search counts."""
    x, cell = points(60, 4), torch.eye(3)
    want = graph.neighbor_list(x, cell, True, 0.3)
    with emulated():
        for most in (0, 1, 10**15):
            graph.neighbor_list(x, cell, True, 0.3)
            assert len(_torch_cuda._per_point) == 1
            for like in _torch_cuda._per_point:
                _torch_cuda._per_point[like] = most
            assert same(graph.neighbor_list(x, cell, True, 0.3), want)
            graph.release()


def check_refusals():
    x = points(60, 5)
    x[7, 1] = torch.nan
    with emulated():
        for cell in (None, torch.eye(3)):
            try:
                graph.neighbor_list(x, cell, None, 0.3)
            except nearfield.Error as error:
                assert "row = 7" in str(error), error
            else:
                raise AssertionError("NaN is not refused")
        for cutoff in (-0.3, float("inf"), float("nan")):
            for cell in (None, torch.eye(3)):       # tried each with each; in cells
                try:
                    graph.neighbor_list(points(60, 6), cell, None, cutoff)
                except (nearfield.Error, ValueError) as error:
                    assert "row" not in str(error), error
                else:
                    raise AssertionError("the cutoff %s is not refused" % cutoff)
        Torch.cuda.is_current_stream_capturing = lambda: True
        try:
            graph.radius_graph(points(5, 1), 0.3)
        except nearfield.Error as error:
            assert "FixedNeighborList" in str(error)
        else:
            raise AssertionError("a capture is not refused")
        Torch.cuda.is_current_stream_capturing = lambda: False


def main(library):
    passed = failed = 0
    nearfield.load_library(library)
    for check in (check_few, check_cells, check_near, check_bound, check_kept, check_guess,
                  check_refusals):
        name = check.__name__[6:]
        try:
            check()
        except Exception:
            traceback.print_exc()
            failed += 1
            print("FAILED   python: torch on the emulator: %s" % name)
        else:
            passed += 1
            print("ok       python: torch on the emulator: %s" % name)
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
