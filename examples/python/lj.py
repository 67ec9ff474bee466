"""lj.py - a Lennard-Jones liquid: molecular dynamics with a neighbour list that serves many steps.
SPDX-License-Identifier: MIT OR Unlicense

    python3 examples/python/lj.py [STEPS [CELLS]]          default: 500 steps of 4 * 6^3 = 864 atoms

Near the triple point (density 0.8442, temperature 0.72, units of sigma, epsilon and mass). The
potential is cut at 2.5 and shifted so that potential and force end at 0 there: then energy is
conserved, which the last line shows. Everything but the list is NumPy.
"""
import sys

import numpy as np

import nearfield

CUT, SKIN, DT = 2.5, 0.4, 0.004


def lattice(cells, density=0.8442):
    """A face-centred cube of atoms, and its edge."""
    base = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]) / 2
    corners = np.stack(np.meshgrid(*[np.arange(cells)] * 3), -1).reshape(-1, 1, 3)
    atoms = (corners + base).reshape(-1, 3)
    edge = (len(atoms) / density) ** (1 / 3)
    return atoms * (edge / cells), edge


def pair_law(r2):
    """Potential, and force over distance, of pairs at these squared distances."""
    cut6 = CUT ** -6
    slope, level = 24 * (2 * cut6 ** 2 - cut6) / CUT, 4 * (cut6 ** 2 - cut6)
    r, r6 = np.sqrt(r2), r2 ** -3
    return 4 * (r6 ** 2 - r6) - level + (r - CUT) * slope, 24 * (2 * r6 ** 2 - r6) / r2 - slope / r


def forces(x, edge, i, j):
    """Forces and potential energy, from a list of pairs that may be out of date by half a skin."""
    d = x[j] - x[i]
    d -= edge * np.round(d / edge)      # to the nearest image
    r2 = (d ** 2).sum(1)
    near = r2 < CUT ** 2
    energy, push = pair_law(r2[near])
    push = push[:, None] * d[near]
    f = np.empty_like(x)
    for axis in range(3):               # what j gets, i gives
        f[:, axis] = (np.bincount(j[near], push[:, axis], len(x)) -
                      np.bincount(i[near], push[:, axis], len(x)))
    return f, energy.sum()


def main(steps=500, cells=6):
    x, edge = lattice(cells)
    v = np.random.default_rng(1).standard_normal(x.shape) * 1.2     # half of it melts the crystal
    v -= v.mean(0)
    contacts = nearfield.List(x, radius=CUT, skin=SKIN, half=1, box=(0, edge), periodic=True)
    i, j = contacts.pairs().T
    f, potential = forces(x, edge, i, j)
    builds, first, drift = 1, None, 0.0
    for step in range(steps + 1):
        kinetic = (v ** 2).sum() / 2
        energy = (kinetic + potential) / len(x)
        first = energy if first is None else first
        drift = max(drift, abs(energy - first))
        if step % max(steps // 10, 1) == 0:
            print("step %5d   temperature %.3f   energy per atom %.6f" % (
                step, 2 * kinetic / (3 * len(x)), energy))
        v += DT / 2 * f
        x += DT * v
        if contacts.moved(x):
            i, j = contacts.build(x).pairs().T
            builds += 1
        f, potential = forces(x, edge, i, j)
        v += DT / 2 * f
    print("%d atoms, %d steps, %d lists: energy per atom %.6f, "
          "never off by more than %.6f; momentum %.1e" % (
              len(x), steps, builds, energy, drift, np.abs(v.sum(0)).max()))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
