"""Neighbour lists for JAX on the CPU: arrays of a given size, under jit, vmap and grad.

SPDX-License-Identifier: MIT OR Unlicense

    neighbor_list   pairs in periodic boxes, padded as those of jax-md; d and D have gradients of
                    any order with respect to positions and cell

The search is a custom call of XLA (jax.ffi) for the CPU, serial; vmap hands all its systems to one
call. There is none for GPUs: XLA refuses to compile it there. Needs jax 0.5 or later. The classes
of nearfield take JAX's arrays on the CPU where NumPy's are taken.
"""
from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _binding
from ._arrays import count_of
from ._memory import _fixed_bytes
from ._neighbors import check_cutoff

__all__ = ["neighbor_list", "Pairs"]


class Pairs(NamedTuple):
    """Of `capacity` entries. From `count` on they are padding: i and j are n (which scatters and
    ``segment_sum`` leave out), S and D are 0, and d is the cutoff."""

    i: jax.Array
    j: jax.Array
    S: jax.Array
    d: jax.Array
    D: jax.Array
    count: jax.Array


def neighbor_list(positions: Any, cell: Any = None, pbc: Any = None, cutoff: float | None = None,
                  capacity: int | None = None, *, half: bool = False,
                  self_interaction: bool = False, sorted: bool = False) -> Pairs:
    """Pairs that are nearer than the cutoff, with their vectors and distances.

    Parameters
    ----------
    positions : array_like, (n, 3), float32 or float64
        Anywhere: nothing is wrapped.
    cell : array_like, (3, 3), (3,) or (), optional
        Vectors in rows, three lengths, or one. None: no periodic axes.
    pbc : bool, or array_like of bool (3,), optional
        Which vectors repeat (default: all, with a cell).
    cutoff : float
        Of Python: not traced.
    capacity : int, optional
        Room for so many pairs. None, outside of jit: what there is and a quarter more; take it for
        calls that are compiled: ``len(pairs.i)``.
    half : bool
        Each pair once.
    self_interaction : bool
        Also each point with itself. (The gradient of its d is 0.)
    sorted : bool
        By i, then j, then S.

    Returns
    -------
    Pairs
        i, j : int32, (capacity,). The two points; i ascends.
        S : int32, (capacity, 3). Periods to add to point j.
        d : (capacity,). Distances.
        D : (capacity, 3). ``positions[j] - positions[i] + S @ cell``.
        count : int32, (). How many pairs there are. Above `capacity` there are none in the arrays,
        and d and D are NaN.

    Raises
    ------
    ValueError
        Other shapes, no capacity under jit, and cutoffs as `nearfield.neighbor_list`.
    jax.errors.JaxRuntimeError
        Positions that are not finite, cells whose periodic vectors are dependent.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, nearfield.jax
    >>> x = jnp.array([[0.0, 0, 0], [0.9, 0, 0]])
    >>> energy = lambda x: (nearfield.jax.neighbor_list(x, 1.0, True, 0.3, 2).d ** 2).sum()
    >>> jax.jit(jax.grad(energy))(x)[:, 0].round(3)
    Array([ 0.4, -0.4], dtype=float32)
    """
    if cutoff is None:
        raise TypeError("cutoff: there is no default")
    x = _real(positions)
    if x.ndim != 2 or x.shape[1] != 3:
        raise ValueError("positions: expected an array of shape (n, 3), not %s" % (x.shape,))
    count_of(x.shape[0])
    check_cutoff(x.dtype, cutoff)
    vectors, flags = _box(x, cell, pbc)
    find = functools.partial(_find, x, vectors, flags, cutoff, half, self_interaction, sorted)
    if capacity is None:
        if any(isinstance(a, jax.core.Tracer) for a in (x, vectors, flags)):
            raise ValueError("capacity: under jit, vmap and grad it must be given")
        capacity = 5 * int(find(1)[3]) // 4 + 1
    return _measured(x, vectors, find(capacity), float(cutoff))


def _real(values: Any) -> jax.Array:
    x = jnp.asarray(values)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        x = x.astype(float)
    if x.dtype not in (np.float32, np.float64):
        raise ValueError("positions: expected float32 or float64, not %s" % x.dtype)
    return x


def _box(x: jax.Array, cell: Any, pbc: Any) -> tuple[jax.Array, jax.Array]:
    """Vectors (3, 3), and int32 flags."""
    if cell is None:
        if pbc is not None and np.any(pbc):
            raise ValueError("cell: periodic axes need one")
        cell, pbc = 1, False
    vectors = jnp.asarray(cell, x.dtype)
    if vectors.ndim < 2:
        vectors = jnp.diag(jnp.broadcast_to(vectors, 3))
    if vectors.shape != (3, 3):
        raise ValueError("cell: expected 3 vectors of shape (3, 3), 3 lengths or one, not %s"
                         % (vectors.shape,))
    flags = jnp.asarray(True if pbc is None else pbc)
    if flags.shape not in ((), (3,)):
        raise ValueError("pbc: expected True or False, or three of them, not %s" % (pbc,))
    return vectors, jnp.broadcast_to(flags.astype(bool), 3).astype(np.int32)


@functools.lru_cache(maxsize=None)
def _target(dtype: np.dtype[Any]) -> str:
    name = "nearfield_pairs_%s" % dtype
    jax.ffi.register_ffi_target(
        name, jax.ffi.pycapsule(_binding.library(dtype, False).nearfield_jax_pairs),
        platform="cpu")
    return name


def _find(x: jax.Array, vectors: jax.Array, flags: jax.Array, cutoff: float, half: bool, own: bool,
          sorted: bool, capacity: int) -> Any:
    """i, j, S, count."""
    capacity = int(capacity)
    if not 1 <= capacity < 2**31:
        raise ValueError("capacity must be 1 .. 2^31 - 1, not %d" % capacity)
    shapes = [jax.ShapeDtypeStruct(shape, np.int32)
              for shape in ((capacity,), (capacity,), (capacity, 3), ())]
    call = jax.ffi.ffi_call(_target(np.dtype(x.dtype)), shapes, vmap_method="broadcast_all")
    x, vectors = jax.lax.stop_gradient((x, vectors))
    return call(x, vectors, flags, cutoff=np.float64(cutoff), limit=np.float64(_fixed_bytes()),
                half=np.int32(half), self=np.int32(own), sorted=np.int32(sorted))


def _measured(x: jax.Array, vectors: jax.Array, found: Any, cutoff: float) -> Pairs:
    i, j, S, count = found
    there = jnp.arange(len(i)) < count
    whole = count <= len(i)
    if x.shape[0] == 0:
        x = jnp.zeros((1, 3), x.dtype)
    D = x[j] - x[i] + S.astype(x.dtype) @ vectors
    D = jnp.where(there[:, None], D, 0)
    square = (D * D).sum(1)
    d = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    d = jnp.where(there, d, jnp.asarray(cutoff, x.dtype))
    return Pairs(i, j, S, jnp.where(whole, d, jnp.nan), jnp.where(whole, D, jnp.nan), count)
