"""Neighbour lists for torch: registered operators, differentiable, traced by torch.compile.

SPDX-License-Identifier: MIT OR Unlicense

    neighbor_list   pairs in periodic boxes, of one system or of a batch; D and d have gradients of
                    any order with respect to positions and cell
    FixedNeighborList   the same pairs in tensors of a given size: nothing waits for the GPU, and a
                    CUDA graph can hold the call
    radius_graph    edges between points within a radius, in the form of torch_cluster
    radius          edges from query points to points within a radius
    knn_graph       edges to the k nearest
    release         frees what searches on GPUs keep

Arrays of NumPy, and lists, are taken as tensors; results are tensors.
CPU tensors are searched by the headers' serial code. Tensors on a GPU are searched by their CUDA
part, on the current stream, where libnearfield_cuda.so is installed.
"""
from __future__ import annotations

from typing import Any, Optional

import numpy as np
import torch
from torch import Tensor

from . import _neighbors
from ._arrays import refuse_not_finite
from ._binding import Error

__all__ = ["neighbor_list", "FixedNeighborList", "radius_graph", "radius", "knn_graph", "release"]


# ---- pairs: i, j, S ------------------------------------------------------------------------------


@torch.library.custom_op("nearfield::pairs", mutates_args=())
def _pairs(positions: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor],
           batch: Optional[Tensor], cutoff: float, half: bool, own: bool, nearest: int,
           ordered: bool) -> tuple[Tensor, Tensor, Tensor]:
    """i (m,), j (m,) int64 and S (m, 3) int32 of all systems. cell: (b, 3, 3), pbc: (b, 3); b may
    be 1 for all systems; None: no periodic axes."""
    return _find_pairs(positions, cell, pbc, batch, cutoff, half, own, nearest, ordered)


def _find_pairs(positions: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor],
                batch: Optional[Tensor], cutoff: float, half: bool, own: bool, nearest: int,
                ordered: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The operator's work."""
    if _is_on_gpu(positions):
        if cutoff == 0:
            i = torch.zeros(0, dtype=torch.int64, device=positions.device)
            return i, i.clone(), torch.zeros((0, 3), dtype=torch.int32, device=i.device)
        found = _on_gpu(positions, cell, pbc, batch, cutoff, half=half, own=int(own),
                        nearest=nearest, ordered=ordered)
        assert found is not None
        i, j, shift = found[:3]
        if shift is None:
            shift = torch.zeros((len(i), 3), dtype=torch.int32, device=i.device)
        return i, j, shift
    starts = _starts(batch, positions.shape[0], 1 if cell is None else cell.shape[0])
    i, j, shift = _on_cpu(positions, cell, pbc, starts, cutoff, "ijS", half=half, self=own,
                          nearest=nearest, sorted=ordered)
    return i, j, shift


def _on_cpu(positions: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor], starts: Tensor,
            cutoff: float, quantities: str, queries: Optional[Tensor] = None,
            query_starts: Optional[Tensor] = None, **asked: int) -> tuple[Tensor, ...]:
    """A search of the library; asked: fields of nearfield_search."""
    cell, pbc = _cells(positions, cell, pbc)
    systems = len(starts) - 1
    x = _host(positions)
    boxes = _boxes(cell.expand(systems, 3, 3), pbc.expand(systems, 3), x.dtype)
    first = np.ascontiguousarray(starts.numpy(), np.int32)
    x, n, stride = _neighbors.atom_rows(x, x.dtype)
    search = _neighbors.take(x.dtype.type)
    try:
        asks = search.asks
        asks.boxes, asks.starts, asks.systems = boxes.ctypes.data, first.ctypes.data, systems
        asks.pos, asks.stride = x.ctypes.data, stride
        asks.half = asks.sorted = asks.self = 0
        _neighbors.plain(asks)
        _neighbors._set_cutoff(search, 1.0 if cutoff == np.inf else cutoff, None, n)
        if cutoff == np.inf:        # the nearest, however far
            asks.cutoff = cutoff
        for name, value in asked.items():
            setattr(asks, name, value)
        if queries is not None and query_starts is not None:
            at = np.ascontiguousarray(_host(queries))
            refuse_not_finite("y", at)
            rows = np.ascontiguousarray(query_starts.numpy(), np.int32)
            asks.queries, asks.query_starts = at.ctypes.data, rows.ctypes.data
        if asks.cutoff == 0:
            refuse_not_finite("positions", x)
            found = _neighbors._empty(quantities, 0, x.dtype)
        else:
            _neighbors.run(search, x)
            found = _neighbors._answer(search, quantities)
    finally:
        _neighbors.give(search)
    return tuple(torch.from_numpy(a) for a in found)


@_pairs.register_fake
def _pairs_shapes(positions: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor],
                  batch: Optional[Tensor], cutoff: float, half: bool, own: bool, nearest: int,
                  ordered: bool) -> tuple[Tensor, Tensor, Tensor]:
    m = torch.library.get_ctx().new_dynamic_size()
    new = positions.new_empty
    return (new((m,), dtype=torch.int64), new((m,), dtype=torch.int64),
            new((m, 3), dtype=torch.int32))


def _no_gradients(inputs: int) -> Any:
    """Indices and shifts have no gradient: D is computed from them below, in operations of
    torch."""
    return lambda context, *gradients: (None,) * inputs


_pairs.register_autograd(_no_gradients(9))


def _host(positions: Tensor) -> Any:
    if positions.dtype not in (torch.float32, torch.float64):
        raise ValueError("positions: expected float32 or float64, not %s" % positions.dtype)
    return positions.detach().numpy()


def _boxes(cell: Tensor, pbc: Tensor, real: Any) -> Any:
    kind = np.dtype([("cell", real, (3, 3)), ("periodic", np.int32, 3)], align=True)
    boxes = np.zeros(len(cell), kind)
    boxes["cell"], boxes["periodic"] = cell.detach().numpy(), pbc.numpy()
    return boxes


def _is_on_gpu(x: Tensor) -> bool:
    return x.is_cuda


def _on_gpu(x: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor], batch: Optional[Tensor],
            cutoff: float, **options: Any) -> Any:
    """The CUDA part, on the current stream: `_torch_cuda.index_pairs`."""
    from . import _torch_cuda
    _torch_cuda.refuse_capture()
    starts, systems = _device_starts(x, batch, 1 if cell is None else cell.shape[0])
    boxes = None
    if cell is not None and pbc is not None:
        boxes = _device_boxes(cell.detach().expand(systems, 3, 3),
                              pbc.expand(systems, 3)).to(x.device)
    return _torch_cuda.index_pairs(x, boxes, starts, systems, cutoff, **options)


def _nearest_on_gpu(x: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor],
                    batch: Optional[Tensor], k: int, reach: float) -> tuple[Tensor, Tensor]:
    from . import _torch_cuda
    _torch_cuda.refuse_capture()
    starts = _starts(batch, x.shape[0], 1 if cell is None else cell.shape[0])
    boxes = None
    if cell is not None and pbc is not None and bool(pbc.any()):
        systems = len(starts) - 1
        boxes = _device_boxes(cell.detach().expand(systems, 3, 3),
                              pbc.expand(systems, 3)).to(x.device)
    return _torch_cuda.nearest(x, boxes, starts, k, reach)


def _device_boxes(cell: Tensor, pbc: Tensor) -> Tensor:
    """The bytes of nlist_box: 9 numbers, 3 of int32, padding."""
    width = 12 if cell.dtype == torch.float32 else 11
    boxes = torch.zeros((len(cell), width), dtype=cell.dtype, device=cell.device)
    boxes[:, :9] = cell.reshape(-1, 9)
    first = 9 * boxes.element_size() // 4
    boxes.view(torch.int32)[:, first:first + 3] = pbc.to(boxes.device, torch.int32)
    return boxes.view(torch.uint8)


def release() -> None:
    """Free the memory on GPUs that searches keep from one call to the next.

    That is at most 256 MiB, in 8 pieces; it goes back to torch's caching allocator. Not to be
    called while another thread captures a CUDA graph.
    """
    from . import _torch_cuda
    _torch_cuda.release()


# ---- systems -------------------------------------------------------------------------------------


def _tensor(values: Any) -> Any:
    """Arrays and lists become tensors; on the CPU they share their memory."""
    return values if values is None or isinstance(values, Tensor) else torch.as_tensor(values)


def _systems(positions: Tensor, cell: Optional[Tensor],
             pbc: Any) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """cell (b, 3, 3) and pbc (b, 3); b is 1 where all systems have the same. None: no periodic
    axes."""
    if positions.dim() != 2 or positions.shape[1] != 3:
        raise ValueError("positions: expected a tensor of shape (n, 3), not %s"
                         % (tuple(positions.shape),))
    device = positions.device
    if cell is None:
        if pbc is not None and bool(torch.as_tensor(pbc).any()):
            raise ValueError("cell: periodic axes need one")
        return None, None
    cell = _cell_vectors(cell)
    pbc = torch.as_tensor(True if pbc is None else pbc, dtype=torch.bool, device=device)
    systems = cell.shape[0] if cell.dim() == 3 else 1
    return (cell.to(positions.dtype).expand(systems, 3, 3).contiguous(),
            pbc.reshape(-1, pbc.shape[-1] if pbc.dim() else 1).expand(systems, 3).contiguous())


def _cell_vectors(cell: Tensor) -> Tensor:
    """Vectors in rows; of one length a cube, of three lengths a box."""
    if cell.dim() == 0:
        return cell * torch.eye(3, dtype=cell.dtype, device=cell.device)
    if cell.shape == (3,):
        return torch.diag(cell)
    if cell.shape[-2:] != (3, 3) or cell.dim() > 3:
        raise ValueError("cell: expected 3 vectors of shape (3, 3), 3 lengths (3,), or (b, 3, 3) "
                         "for a batch, not %s" % (tuple(cell.shape),))
    return cell


def _cells(positions: Tensor, cell: Optional[Tensor],
           pbc: Optional[Tensor]) -> tuple[Tensor, Tensor]:
    """Those of `_systems`; for None a box without periodic axes."""
    if cell is not None and pbc is not None:
        return cell, pbc
    return (torch.eye(3, dtype=positions.dtype, device=positions.device)[None],
            torch.zeros((1, 3), dtype=torch.bool, device=positions.device))


def _device_starts(x: Tensor, batch: Optional[Tensor],
                   cells: int) -> tuple[Optional[Tensor], int]:
    """Where each system begins, and n: int32 beside x (None: there is one); how many systems."""
    n = x.shape[0]
    if batch is None and cells == 1:
        return None, 1
    if batch is None or n == 0:
        starts = _starts(batch, n, cells)
        return starts.to(x.device), len(starts) - 1
    _check_batch_shape(batch, n)
    batch = batch.to(torch.int64)
    descends = (batch[1:] < batch[:-1]).any().to(batch.dtype)
    first, last, bad = torch.stack([batch[0], batch[-1], descends]).tolist()
    _check_batch(first, last, bad, cells)
    systems = max(cells, last + 1)
    if cells == 1 and last >= 2 * n + 64:
        batch = _numbered(batch)
        systems = int(batch[-1]) + 1
    numbers = torch.arange(systems + 1, dtype=batch.dtype, device=batch.device)
    starts = torch.searchsorted(batch.contiguous(), numbers, out_int32=True)
    return starts.to(x.device), systems


def _check_batch_shape(batch: Tensor, n: int) -> None:
    if batch.shape != (n,):
        raise ValueError("batch: expected one number for each of the %d points, not a tensor of "
                         "shape %s" % (n, tuple(batch.shape)))


def _check_batch(first: int, last: int, descends: int, cells: int) -> None:
    if descends:
        raise ValueError("batch must not descend")
    if first < 0:
        raise ValueError("batch must not be negative")
    if cells > 1 and last >= cells:
        raise ValueError("batch names system %d, but there are %d cells" % (last, cells))


def _numbered(batch: Tensor) -> Tensor:
    """0, 1, 2 .. for the names that follow each other: they may be any numbers."""
    changes = (batch[1:] != batch[:-1]).cumsum(0)
    return torch.cat([changes.new_zeros(1), changes])


def _starts(batch: Optional[Tensor], n: int, cells: int) -> Tensor:
    """Where each system begins, and n: int32 on the CPU."""
    if batch is None:
        return torch.tensor([0] + [n] * cells, dtype=torch.int32)
    _check_batch_shape(batch, n)
    last = int(batch[-1]) + 1 if n else 1
    if n:
        _check_batch(int(batch[0]), last - 1, bool((batch[1:] < batch[:-1]).any()), cells)
    if cells == 1 and last > 2 * n + 64:    # names, not numbers: those that there are
        batch = _numbered(batch)
        last = int(batch[-1]) + 1 if n else 1
    counts = torch.bincount(batch.to(torch.int64), minlength=max(cells, last)).cpu()
    starts = torch.zeros(len(counts) + 1, dtype=torch.int32)
    starts[1:] = counts.cumsum(0)
    return starts


# ---- neighbor_list -------------------------------------------------------------------------------


def neighbor_list(positions: Tensor, cell: Optional[Tensor] = None, pbc: Any = None,
                  cutoff: Optional[float] = None, batch: Optional[Tensor] = None, *,
                  half: bool = False, self_interaction: bool = False,
                  sorted: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Pairs that are nearer than the cutoff, with their vectors and distances.

    Parameters
    ----------
    positions : Tensor, (n, 3), float32 or float64
        Anywhere: nothing is wrapped.
    cell : Tensor, (3, 3) or (b, 3, 3), optional
        Vectors in rows, for each system of the batch or for all. None: no periodic axes. One
        length: a cube; three, of shape (3,): a box.
    pbc : bool, or array_like of bool (3,) or (b, 3), optional
        Which vectors repeat (default: all, with a cell).
    cutoff : float
    batch : Tensor of int64, (n,), optional
        Which system each point belongs to, ascending; systems do not see each other.
    half : bool
        Each pair once.
    self_interaction : bool
        Also each point with itself. (The gradient of its d is 0.)
    sorted : bool
        By i, then j, then S.

    Returns
    -------
    i, j : Tensor of int64, (m,)
        The two points; i ascends.
    S : Tensor of int32, (m, 3)
        Periods to add to point j.
    d : Tensor, (m,)
        Distances.
    D : Tensor, (m, 3)
        ``positions[j] - positions[i] + S @ cell``: d and D have gradients with respect to
        positions and cell.

    Raises
    ------
    ValueError
        As `nearfield.neighbor_list`.

    Examples
    --------
    >>> import torch, nearfield.torch
    >>> x = torch.tensor([[0.0, 0, 0], [0.9, 0, 0]], requires_grad=True)
    >>> i, j, S, d, D = nearfield.torch.neighbor_list(x, torch.eye(3), True, 0.3)
    >>> (d ** 2).sum().backward()
    >>> x.grad[:, 0]
    tensor([ 0.4000, -0.4000])
    """
    if cutoff is None:
        raise TypeError("neighbor_list: cutoff is missing")
    positions, cell, batch = _tensor(positions), _tensor(cell), _tensor(batch)
    cells, flags = _systems(positions, cell, pbc)
    # indices have no gradient: what differentiates in any way (torch.func, too) sees D alone
    i, j, shift = _pairs(positions.detach(), None if cells is None else cells.detach(), flags,
                         batch, float(cutoff), half, self_interaction, 0, sorted)
    D = positions[j] - positions[i]
    if cells is not None and flags is not None:
        D = D + _shift_vectors(shift, cells, flags, batch, i)
    return i, j, shift, _lengths(D), D


def _shift_vectors(shift: Tensor, cells: Tensor, flags: Tensor, batch: Optional[Tensor],
                   i: Tensor) -> Tensor:
    """S @ cell. Vectors that do not repeat have no part in it, and may be anything."""
    vectors = torch.where(flags[:, :, None], cells, torch.zeros_like(cells))
    if batch is None or cells.shape[0] == 1:
        return shift.to(cells.dtype) @ vectors[0]
    return torch.einsum("ma,mab->mb", shift.to(cells.dtype), vectors[batch[i]])


def _lengths(D: Tensor) -> Tensor:
    """Norms; at 0 the gradients are 0, and not NaN."""
    squares = (D * D).sum(1)
    none = squares == 0
    return torch.where(none, 0.0, torch.where(none, 1.0, squares).sqrt())


# ---- lists of a given size -----------------------------------------------------------------------


class FixedNeighborList:
    """The pairs of `neighbor_list` in tensors of a given size.

    Each call searches again. On a GPU no call waits and none takes memory of its own, so that calls
    can be captured in a CUDA graph. An object belongs to one stream at a time.

    Parameters
    ----------
    n : int
        Points in each call, at least 1.
    capacity : int
        Room for so many pairs, at least 1.
    cutoff : float
    cell, pbc, batch
        As in `neighbor_list`. A call may replace `cell`.
    half, sorted : bool
        As in `neighbor_list`.
    dtype : torch.dtype
        float32 or float64.
    device : torch.device or str

    Examples
    --------
    >>> import torch, nearfield.torch
    >>> search = nearfield.torch.FixedNeighborList(2, 4, 0.3, torch.eye(3))
    >>> i, j, S, d, D, count = search(torch.tensor([[0.0, 0, 0], [0.9, 0, 0]]))
    >>> i, d, count
    (tensor([0, 1, 0, 0]), tensor([0.1000, 0.1000, 0.3000, 0.3000]), tensor(2))
    """

    def __init__(self, n: int, capacity: int, cutoff: float, cell: Optional[Tensor] = None,
                 pbc: Any = None, batch: Optional[Tensor] = None, *, half: bool = False,
                 sorted: bool = False, dtype: torch.dtype = torch.float32,
                 device: Any = "cpu") -> None:
        if n < 1 or capacity < 1:
            raise ValueError("n and capacity must be at least 1")
        if dtype not in (torch.float32, torch.float64):
            raise ValueError("dtype: expected float32 or float64, not %s" % dtype)
        self._n, self._capacity, self._cutoff = n, capacity, float(cutoff)
        self._options = (half, sorted)
        cell, batch = _tensor(cell), _tensor(batch)
        none = torch.full((n, 3), torch.nan, dtype=dtype, device=device)
        cell = None if cell is None else cell.to(none)
        batch = None if batch is None else batch.to(none.device)
        cells, flags = _cells(none, *_systems(none, cell, pbc))
        self._starts = _starts(batch, n, len(cells))
        systems = len(self._starts) - 1
        self._cells, self._flags = cells.expand(systems, 3, 3), flags.expand(systems, 3)
        self._batch, self._device, self._dtype = batch, none.device, dtype
        self._count: Optional[Tensor] = None
        self._search: Any = None
        if none.is_cuda:
            self._prepare(none)

    def __call__(self, positions: Tensor, cell: Optional[Tensor] = None) -> tuple[
            Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Search.

        Parameters
        ----------
        positions : Tensor, (n, 3)
        cell : Tensor, (3, 3) or (b, 3, 3), optional
            Instead of the cell that the object was made with.

        Returns
        -------
        i, j, S, d, D
            As of `neighbor_list`, of `capacity` entries. From `count` on they are padding: i, j, S
            and D are 0, and d is the cutoff. It has no gradient.
        count : Tensor of int64, ()
            How many pairs there are. Above `capacity` pairs are missing: `check` raises an Error.
        """
        positions, cell = _tensor(positions), _tensor(cell)
        if positions.shape != (self._n, 3) or positions.dtype != self._dtype:
            raise ValueError("positions: expected %s of shape (%d, 3), not %s of shape %s" % (
                self._dtype, self._n, positions.dtype, tuple(positions.shape)))
        cells = self._cells
        if cell is not None:
            cells = _cell_vectors(cell).to(self._dtype).expand_as(self._cells)
        find = self._on_gpu if self._device.type == "cuda" else self._on_cpu
        i, j, shift, count = find(positions.detach(), cells.detach())
        there = torch.arange(self._capacity, device=self._device) < count
        i, j, shift = (torch.where(there.reshape((-1,) + (1,) * (a.dim() - 1)), a, 0)
                       for a in (i, j, shift))
        D = positions[j] - positions[i] + _shift_vectors(shift, cells, self._flags, self._batch, i)
        D = torch.where(there[:, None], D, 0.0)
        d = torch.where(there, _lengths(D), self._cutoff)
        self._count = count
        return i, j, shift, d, D, count

    def check(self) -> None:
        """Wait for the last call, and raise an Error where its pairs are not complete: more than
        `capacity`, or positions that are not finite. (On the CPU the latter are refused by the
        call.) After an Error on a GPU, make a new object."""
        if self._count is not None and int(self._count) > self._capacity:
            raise Error("FixedNeighborList: %d pairs, but capacity is %d"
                        % (int(self._count), self._capacity))
        if self._search is not None:
            self._search.check()

    def _prepare(self, positions: Tensor) -> None:
        """Takes the memory, by a search among points that are left out."""
        from ._boxes_cuda import DeviceBoxes
        real, systems = self._dtype, len(self._cells)
        width = 12 if real == torch.float32 else 11     # nlist_box: 9 numbers, 3 of int32, padding
        self._boxes = torch.zeros((systems, width), dtype=real, device=self._device)
        words = self._boxes.view(torch.int32)
        first = 9 * self._boxes.element_size() // 4
        words[:, first:first + 3] = self._flags.to(torch.int32)
        self._starts = self._starts.to(self._device, torch.int32)
        self._search = DeviceBoxes(torch.cuda.current_stream(self._device))
        self._on_gpu(positions, self._cells)
        torch.cuda.synchronize(self._device)

    def _on_gpu(self, positions: Tensor, cells: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        self._boxes[:, :9] = cells.reshape(-1, 9)
        found = self._search.fill(positions.contiguous(), self._boxes, self._starts,
                                  len(self._boxes), self._cutoff, *self._options, self._capacity,
                                  torch.cuda.current_stream(self._device))
        rows, partner, shift = (torch.as_tensor(a, device=self._device) for a in found)
        entry = torch.arange(self._capacity, device=self._device)
        i = torch.searchsorted(rows[1:].contiguous(), entry, right=True)
        return i, partner.to(torch.int64), shift.reshape(-1, 3).clone(), rows[-1].clone()

    def _on_cpu(self, positions: Tensor, cells: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        half, ordered = self._options
        found = _pairs(positions, cells.contiguous(), self._flags, self._batch, self._cutoff, half,
                       False, 0, ordered)
        i, j, shift = (_padded(a, self._capacity) for a in found)
        return i, j, shift, torch.tensor(len(found[0]))


def _padded(a: Tensor, rows: int) -> Tensor:
    """The first `rows` rows, with zeros behind where there are fewer."""
    return torch.cat([a[:rows], a.new_zeros((max(rows - len(a), 0),) + a.shape[1:])])


# ---- graphs --------------------------------------------------------------------------------------


def _three(x: Tensor) -> Tensor:
    """Points of 1, 2 or 3 numbers, as points of 3."""
    x = x.reshape(-1, 1) if x.dim() == 1 else x
    if x.dim() != 2 or not 1 <= x.shape[1] <= 3:
        raise ValueError("x: expected a tensor of shape (n, 1), (n, 2) or (n, 3), not %s"
                         % (tuple(x.shape),))
    return x if x.shape[1] == 3 else torch.nn.functional.pad(x, (0, 3 - x.shape[1]))


def _to_target(flow: str) -> bool:
    """Whether the point whose neighbours are listed is in row 1 of the edges."""
    if flow not in ("source_to_target", "target_to_source"):
        raise ValueError('flow must be "source_to_target" or "target_to_source", not %r' % (flow,))
    return flow == "source_to_target"


def _looped(row: Tensor, col: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """With each point in front of its row."""
    each = torch.arange(n, device=row.device)
    row, col = torch.cat([each, row]), torch.cat([each, col])
    order = torch.argsort(row, stable=True)
    return row[order], col[order]


def _edges(points: Tensor) -> tuple[Tensor, Tensor]:
    """What the operators below return, for torch.compile."""
    m = torch.library.get_ctx().new_dynamic_size()
    return (points.new_empty((m,), dtype=torch.int64), points.new_empty((m,), dtype=torch.int64))


@torch.library.custom_op("nearfield::radius_graph", mutates_args=())
def _radius_graph(points: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor],
                  batch: Optional[Tensor], r: float, most: int, loop: bool,
                  to_target: bool) -> Tensor:
    """Edges to all neighbours, or to the `most` nearest. most: -1 for all."""
    most = min(most, 2**31 - 3)
    if 0 <= most <= loop or r == 0:     # room for the loop, or for nothing
        each = torch.arange(points.shape[0] * (loop and most != 0), device=points.device)
        return torch.stack([each, each])
    if _is_on_gpu(points):
        found = _on_gpu(points, cell, pbc, batch, r, own=2 * loop, most=most, flow=to_target)
        if found is not None:
            edges: Tensor = found.edges
            return edges
        row, col = _nearest_on_gpu(points, cell, pbc, batch, most - loop, r)
    else:
        starts = _starts(batch, points.shape[0], 1 if cell is None else cell.shape[0])
        row, col = _on_cpu(points, cell, pbc, starts, r, "ij", sorted=1,
                           most=most - loop if most >= 0 else 0)
    if loop:
        row, col = _looped(row, col, points.shape[0])
    return torch.stack([col, row] if to_target else [row, col])


@_radius_graph.register_fake
def _radius_graph_shapes(points: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor],
                         batch: Optional[Tensor], r: float, most: int, loop: bool,
                         to_target: bool) -> Tensor:
    m = torch.library.get_ctx().new_dynamic_size()
    return points.new_empty((2, m), dtype=torch.int64)


_radius_graph.register_autograd(_no_gradients(8))


def radius_graph(x: Tensor, r: float, batch: Optional[Tensor] = None, loop: bool = False,
                 max_num_neighbors: Optional[int] = 32, flow: str = "source_to_target",
                 num_workers: int = 1, batch_size: Optional[int] = None, *, pbc: Any = None,
                 cell: Optional[Tensor] = None) -> Tensor:
    """Edges between all points nearer than r, as ``torch_cluster.radius_graph``.

    Parameters
    ----------
    x : Tensor, (n, 1), (n, 2) or (n, 3)
    r : float
    batch : Tensor of int64, (n,), optional
        Which example each point belongs to, ascending.
    loop : bool
        Also an edge from each point to itself.
    max_num_neighbors : int, optional
        At most so many edges for each point: the nearest ones, and no memory for more. None: all.
        (torch_cluster keeps those that it finds first.)
    flow : str
        ``"source_to_target"``: edge_index[1] is the point whose neighbours are listed; else
        ``"target_to_source"``.
    num_workers, batch_size
        Accepted for torch_cluster's callers, and not used.
    pbc, cell
        As in `neighbor_list`, for points of 3 numbers: neighbours in periodic images, one edge for
        each image.

    Returns
    -------
    Tensor of int64, (2, m)

    Examples
    --------
    >>> import torch, nearfield.torch
    >>> x = torch.tensor([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
    >>> nearfield.torch.radius_graph(x, 1.5)
    tensor([[1, 0],
            [0, 1]])
    """
    x, cell, batch = _tensor(x), _tensor(cell), _tensor(batch)
    if cell is not None and x.shape[-1] != 3:
        raise ValueError("x: in a cell points have 3 numbers")
    points = _three(x)
    cells, flags = _systems(points, cell, pbc)
    most = -1 if max_num_neighbors is None else max(max_num_neighbors, 0)
    edges: Tensor = _radius_graph(points, cells, flags, batch, float(r), most, loop,
                                  _to_target(flow))
    return edges


@torch.library.custom_op("nearfield::radius", mutates_args=())
def _radius(x: Tensor, y: Tensor, batch_x: Optional[Tensor], batch_y: Optional[Tensor], r: float,
            most: int) -> tuple[Tensor, Tensor]:
    """Index in y, index in x; most: -1 for all. The trees are over x alone."""
    if most == 0 or r == 0:
        none = torch.zeros(0, dtype=torch.int64, device=x.device)
        return none, none.clone()
    most = max(min(most, 2**31 - 1), 0)
    of_x, of_y = _starts_of_both(x, y, batch_x, batch_y)
    if _is_on_gpu(x):
        from . import _torch_cuda
        _torch_cuda.refuse_capture()
        return _torch_cuda.near_queries(x, y, of_x, of_y, r, most)
    row, col = _on_cpu(x, None, None, of_x, r, "ij", y, of_y, sorted=1, lowest=most)
    return row, col


def _starts_of_both(x: Tensor, y: Tensor, batch_x: Optional[Tensor],
                    batch_y: Optional[Tensor]) -> tuple[Tensor, Tensor]:
    """Where the points of each example begin in x and in y: int32 on the CPU."""
    n, m = x.shape[0], y.shape[0]
    if batch_x is None and batch_y is None:
        return torch.tensor([0, n], dtype=torch.int32), torch.tensor([0, m], dtype=torch.int32)
    of_x, of_y = (_checked_batch(batch, count, x.device)
                  for batch, count in ((batch_x, n), (batch_y, m)))
    unique: Any = torch.unique      # some versions of torch give it no types
    names = unique(torch.cat([of_x, of_y]))
    starts = [torch.cat([torch.searchsorted(of, names), torch.tensor([len(of)]).to(of)])
              for of in (of_x, of_y)]
    return starts[0].to("cpu", torch.int32), starts[1].to("cpu", torch.int32)


def _checked_batch(batch: Optional[Tensor], n: int, device: torch.device) -> Tensor:
    if batch is None:
        return torch.zeros(n, dtype=torch.int64, device=device)
    _check_batch_shape(batch, n)
    if n:
        _check_batch(int(batch[0]), 0, bool((batch[1:] < batch[:-1]).any()), 1)
    return batch.to(torch.int64).contiguous()


@_radius.register_fake
def _radius_shapes(x: Tensor, y: Tensor, batch_x: Optional[Tensor], batch_y: Optional[Tensor],
                   r: float, most: int) -> tuple[Tensor, Tensor]:
    return _edges(x)


_radius.register_autograd(_no_gradients(6))


def radius(x: Tensor, y: Tensor, r: float, batch_x: Optional[Tensor] = None,
           batch_y: Optional[Tensor] = None, max_num_neighbors: Optional[int] = 32,
           num_workers: int = 1, batch_size: Optional[int] = None) -> Tensor:
    """For each point of y the points of x nearer than r, as ``torch_cluster.radius``.

    Parameters
    ----------
    x : Tensor, (n, 1), (n, 2) or (n, 3)
    y : Tensor, (m, same)
    r : float
    batch_x, batch_y : Tensor of int64, optional
        Which example each point belongs to, ascending.
    max_num_neighbors : int, optional
        At most so many for each point of y, those of the lowest index. None: all. The search is
        for points of y in a tree over x: it depends on the edges, not on pairs within x or y.
    num_workers, batch_size
        Accepted, and not used.

    Returns
    -------
    Tensor of int64, (2, edges)
        Rows: index in y, index in x.

    Examples
    --------
    >>> import torch, nearfield.torch
    >>> x, y = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.9]])
    >>> nearfield.torch.radius(x, y, 1.0)
    tensor([[0, 0],
            [0, 1]])
    """
    x, y, batch_x, batch_y = (_tensor(values) for values in (x, y, batch_x, batch_y))
    if x.dtype != y.dtype or x.shape[1:] != y.shape[1:]:
        raise ValueError("x and y must have the same type and the same numbers per point")
    most = -1 if max_num_neighbors is None else max(max_num_neighbors, 0)
    return torch.stack(_radius(_three(x), _three(y), batch_x, batch_y, float(r), most))


def knn_graph(x: Tensor, k: int, batch: Optional[Tensor] = None, loop: bool = False,
              flow: str = "source_to_target", cosine: bool = False, num_workers: int = 1,
              batch_size: Optional[int] = None, *, pbc: Any = None,
              cell: Optional[Tensor] = None) -> Tensor:
    """Edges to the k nearest of each point, as ``torch_cluster.knn_graph``.

    Parameters
    ----------
    x : Tensor, (n, 1), (n, 2) or (n, 3)
    k : int
    batch, loop, flow, num_workers, batch_size, pbc, cell
        As in `radius_graph`; with `loop` the point itself is one of the k.
    cosine : bool
        Not there: must be False.

    Returns
    -------
    Tensor of int64, (2, m)
        The neighbours of a point in the order of their distance, then of their index. Each point
        looks as far as it has to, in a tree: O(k log n) a point, wherever the others are.

    Examples
    --------
    >>> import torch, nearfield.torch
    >>> nearfield.torch.knn_graph(torch.tensor([[0.0], [1.0], [3.0]]), 1)
    tensor([[1, 0, 1],
            [0, 1, 2]])
    """
    if cosine:
        raise Error("knn_graph: cosine=True is not there; normalise x")
    x, cell, batch = _tensor(x), _tensor(cell), _tensor(batch)
    points = _three(x)
    cells, flags = _systems(points, cell, pbc)
    row, col = _knn_graph(points, cells, flags, batch, k, loop)
    return torch.stack([col, row] if _to_target(flow) else [row, col])


@torch.library.custom_op("nearfield::knn_graph", mutates_args=())
def _knn_graph(points: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor],
               batch: Optional[Tensor], k: int, loop: bool) -> tuple[Tensor, Tensor]:
    """row, col; with `loop` the point itself is the first of its row."""
    row, col = _k_nearest(points, cell, pbc, batch, k - loop)
    return _looped(row, col, points.shape[0]) if loop else (row, col)


@_knn_graph.register_fake
def _knn_graph_shapes(points: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor],
                      batch: Optional[Tensor], k: int, loop: bool) -> tuple[Tensor, Tensor]:
    return _edges(points)


_knn_graph.register_autograd(_no_gradients(6))


def _k_nearest(points: Tensor, cell: Optional[Tensor], pbc: Optional[Tensor],
               batch: Optional[Tensor], k: int) -> tuple[Tensor, Tensor]:
    """Each row looks as far as it has to."""
    if points.shape[0] == 0 or k < 1:
        none = torch.zeros(0, dtype=torch.int64, device=points.device)
        return none, none.clone()
    k = min(k, 2**31 - 1)
    if _is_on_gpu(points):
        return _nearest_on_gpu(points, cell, pbc, batch, k, np.inf)
    starts = _starts(batch, points.shape[0], 1 if cell is None else cell.shape[0])
    row, col = _on_cpu(points, cell, pbc, starts, np.inf, "ij", nearest=k)
    return row, col
