"""For tests/python/run.sh: nearfield.jax against neighbor_list of NumPy, and JAX's arrays.

    jax_checks.py       NEARFIELD_LIBRARY and NEARFIELD_MODULE as for python_checks.py

Needs jax; a compiler ($CC) for the comparison of structs. Prints "ok", "FAILED" or "skipped" and a
name per check, and "N passed, M failed" at the end.
"""
import os
import shutil
import subprocess
import sys
import traceback

import jax
import jax.numpy as jnp
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "..", "..")
sys.path.insert(0, os.environ.get("NEARFIELD_MODULE", os.path.join(root, "build", "python")))
import nearfield as nf  # noqa: E402
import nearfield.jax as nj  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
TYPES = np.float32, np.float64
CELL = np.array([[1.0, 0, 0], [0.4, 1, 0], [0, 0.2, 1]])


def system(dtype, n=60, seed=1):
    return np.random.default_rng(seed).random((n, 3)).astype(dtype), CELL.astype(dtype)


def refused(kind, text, function, *arguments, **keywords):
    try:
        jax.block_until_ready(function(*arguments, **keywords))
    except kind as error:
        assert text in str(error), "%r does not say %r" % (str(error), text)
        return
    raise AssertionError("not refused: %s" % (keywords or arguments,))


def same(pairs, want, n, cutoff):
    """What `neighbor_list` found, then padding."""
    m = int(pairs.count)
    assert m == len(want[0]) > 20, (m, len(want[0]))
    for found, right in zip(pairs[:3], want):
        assert found.dtype == np.int32 and (found[:m] == right).all()
    for found, right in zip(pairs[3:5], want[3:]):
        assert found.dtype == right.dtype and np.allclose(found[:m], right, rtol=0, atol=3e-7)
    assert (pairs.i[m:] == n).all() and (pairs.j[m:] == n).all()
    assert not pairs.S[m:].any() and not pairs.D[m:].any() and np.allclose(pairs.d[m:], cutoff)


def check_pairs():
    for dtype in TYPES:
        x, cell = system(dtype)
        for pbc, half, own in ((True, False, False), ((True, False, True), True, True)):
            options = dict(half=half, self_interaction=own, sorted=True)
            want = nf.neighbor_list("ijSdD", (x, cell, pbc), 0.31, own, half=half, sorted=True)
            same(nj.neighbor_list(x, cell, pbc, 0.31, 3000, **options), want, 60, 0.31)
            found = nj.neighbor_list(x, cell, pbc, 0.31, **options)
            same(found, want, 60, 0.31)
            assert len(found.i) == 5 * len(want[0]) // 4 + 1
        for cell in (1.0, [1.0, 1, 1]):
            want = nf.neighbor_list("ijSdD", (x, np.eye(3), True), 0.3, sorted=True)
            same(nj.neighbor_list(x, cell, True, 0.3, sorted=True), want, 60, 0.3)
        open_box = nf.neighbor_list("ijSdD", (x, np.eye(3), False), 0.3, sorted=True)
        same(nj.neighbor_list(x, cutoff=0.3, sorted=True), open_box, 60, 0.3)
    none = nj.neighbor_list(np.zeros((0, 3)), 1.0, True, 0.3, 4)
    assert none.count == 0 and (none.i == 0).all() and (none.d == 0.3).all()


def check_overflow():
    x, cell = system(np.float64)
    count = nj.neighbor_list(x, cell, True, 0.3).count
    small = nj.neighbor_list(x, cell, True, 0.3, int(count) - 1)
    assert small.count == count and (small.i == 60).all()
    assert jnp.isnan(small.d).all() and jnp.isnan(small.D).all()
    assert not jnp.isnan(nj.neighbor_list(x, cell, True, 0.3, int(count)).d).any()


def check_jit_and_vmap():
    """One compilation serves many positions; a batch of positions, of cells, of both."""
    traced = []

    @jax.jit
    def find(x, cell, pbc):
        traced.append(None)
        return nj.neighbor_list(x, cell, pbc, 0.31, 2000, sorted=True)

    many = np.stack([system(np.float64, seed=seed)[0] for seed in range(4)])
    flags = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 1, 1]], bool)
    cells = CELL * np.array([1, 1.1, 1.2, 1.3]).reshape(4, 1, 1)
    want = [find(x, c, f) for x, c, f in zip(many, cells, flags)]
    assert len(traced) == 1
    for x, c, f, found in zip(many, cells, flags, want):
        same(found, nf.neighbor_list("ijSdD", (x, c, f), 0.31, sorted=True), 60, 0.31)
    for found in (jax.vmap(find)(many, cells, flags), jax.jit(jax.vmap(find))(many, cells, flags)):
        for a, b in zip(found, jax.tree.map(lambda *leaves: jnp.stack(leaves), *want)):
            assert jnp.allclose(a, b, rtol=0, atol=1e-15)
    alone = jax.vmap(find, (0, None, None))(many, cells[0], flags[0])
    nested = jax.vmap(jax.vmap(find, (0, None, None)), (None, 0, 0))(many, cells[:2], flags[:2])
    for k in range(4):
        one = find(many[k], cells[0], flags[0])
        assert all((a[k] == b).all() for a, b in zip(alone[:3], one[:3]))
        assert all((a[0, k] == b).all() for a, b in zip(nested[:3], one[:3]))


def check_gradients():
    """Against differences, and against all pairs and images in jax.numpy."""
    x, cell = system(np.float64, 12)

    def energy(x, cell):
        found = nj.neighbor_list(x, cell, True, 0.7, 800, half=True)
        return ((1 - found.d / 0.7) ** 3).sum()

    def dense(x, cell):
        images = np.array([[a, b, c] for a in (-2, -1, 0, 1, 2) for b in (-2, -1, 0, 1, 2)
                           for c in (-2, -1, 0, 1, 2)])
        D = x[None, :, None] - x[:, None, None] + images @ cell
        square = (D * D).sum(-1)
        near = (square < 0.49) & (square > 0)
        d = jnp.sqrt(jnp.where(near, square, 0.49))
        return ((1 - d / 0.7) ** 3).sum() / 2

    assert jnp.allclose(energy(x, cell), dense(x, cell), rtol=1e-12)
    for order in (jax.grad, lambda f, which: jax.jacfwd(jax.jacrev(f, which), which)):
        for which in (0, 1):
            found, want = (order(jax.jit(f), which)(x, cell) for f in (energy, dense))
            assert jnp.abs(want).max() > 1 and jnp.allclose(found, want, rtol=0, atol=1e-9)
    own = jax.grad(lambda x: nj.neighbor_list(x, cell, True, 0.3, 500,
                                              self_interaction=True).d.sum())(x)
    assert jnp.isfinite(own).all()


def check_refusals():
    x, cell = system(np.float64)
    refused(ValueError, "shape (n, 3)", nj.neighbor_list, x[:, :2], cell, True, 0.3)
    refused(TypeError, "no default", nj.neighbor_list, x, cell)
    refused(ValueError, "negative", nj.neighbor_list, x, cell, True, -1.0)
    refused(ValueError, "need one", nj.neighbor_list, x, None, True, 0.3)
    refused(ValueError, "not (2, 2)", nj.neighbor_list, x, np.eye(2), True, 0.3)
    refused(ValueError, "capacity must be", nj.neighbor_list, x, cell, True, 0.3, 0)
    refused(ValueError, "must be given", jax.jit(lambda x: nj.neighbor_list(x, 1.0, True, 0.3)), x)
    refused(ValueError, "float32 or float64", nj.neighbor_list, x.astype(np.float16), 1.0, True, 1)
    refused(ValueError, "more than 2^31", jax.eval_shape,
            lambda x: nj.neighbor_list(x, cell, True, 0.3, 9),
            jax.ShapeDtypeStruct((2**31, 3), float))
    bad = x.copy()
    bad[17, 1] = np.nan
    find = jax.jit(lambda x, cell: nj.neighbor_list(x, cell, True, 0.3, 900))
    refused(Exception, "row 17 of system 0 is not finite", find, bad, cell)
    refused(Exception, "BAD_BOX", find, x, cell * 0)
    assert find(x, cell).count > 20, "a call after refused ones"


def check_arrays():
    """The classes and functions of NumPy take JAX's arrays where they are, in their precision."""
    for dtype in TYPES:
        x = jnp.asarray(system(dtype)[0])
        there = np.from_dlpack(x).ctypes.data
        grid = nf.Grid(x, cell=0.3)
        assert grid._kept["pos"].ctypes.data == there and grid._lib.dtype == dtype
        assert nf.neighbor_list("d", (x, jnp.eye(3), jnp.ones(3, bool)), 0.3).dtype == dtype
        near = nf.nearest(x, 3, x[:9], cell=jnp.eye(3))
        assert near.distances.dtype == dtype and len(near) == 27
        ids = jnp.from_dlpack(nf.Tree(x, "points").nearest(x, 1)[0])
        assert (ids[:, 0] == jnp.arange(60)).all()


def check_structs():
    """jax.h beside jaxlib's own header."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        raise ModuleNotFoundError(name="compiler")
    said = subprocess.run(
        [compiler, "-std=c11", "-fsyntax-only", "-Wall", "-Werror", "-I" + jax.ffi.include_dir(),
         "-I" + os.path.join(root, "packaging", "python", "library"),
         os.path.join(here, "jax_struct.c")], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr[:2000]


def main():
    checks = {name[6:]: f for name, f in globals().items() if name.startswith("check_")}
    failed = skipped = 0
    names = sys.argv[1:] or list(checks)
    for name in names:
        what = "jax: %s" % name.replace("_", " ")
        try:
            checks[name]()
            print("ok       " + what, flush=True)
        except ModuleNotFoundError as error:
            skipped += 1
            print("skipped  %s: no %s" % (what, error.name), flush=True)
        except Exception as error:      # noqa: BLE001
            failed += 1
            print("FAILED   %s: %s" % (what, str(error)[:300] or repr(error)), flush=True)
            traceback.print_exc(limit=-3)
    print("%d passed, %d failed%s" % (len(names) - failed - skipped, failed,
                                      ", %d skipped" % skipped if skipped else ""))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
