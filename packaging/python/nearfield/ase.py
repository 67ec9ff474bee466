"""A calculator for ASE: Lennard-Jones over a neighbour list with a skin.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

from typing import Any

import numpy as np
from ase.calculators import calculator

from ._neighbors import neighbor_list

__all__ = ["LennardJones"]

# ASE's classes have types in some versions, and none in others.
_Calculator: Any = calculator.Calculator
_all_changes: Any = calculator.all_changes
# Calculator stores all others, without a use for them.
_KEYWORDS = {"restart", "ignore_bad_restart_file", "label", "atoms", "directory"}


class LennardJones(_Calculator):  # type: ignore[misc]
    """Energy, forces and stress of the Lennard-Jones potential, cut and shifted to 0 at rc.

    The pairs are those within ``rc + skin``. They serve until an atom has moved by more than half
    the skin, or the cell, the periodic axes, the number of atoms, rc or the skin has changed.

    Parameters
    ----------
    sigma, epsilon : float
        Lengths in Angstrom, energies in eV, as ASE has them.
    rc : float, optional
        Where the potential ends (default: 3 sigma).
    skin : float, optional
        Default: 0.3 sigma; 0 searches in every step. All four may be changed afterwards.
    restart, label, atoms, directory
        Those of ASE's ``Calculator``. Others are refused, also ro, rcc and smooth of ASE's
        LennardJones: there is no smooth end but the shift.

    Attributes
    ----------
    searches : int
        How often pairs were searched for.

    Raises
    ------
    ValueError
        sigma or rc is not positive and finite, skin is negative or not finite.
    TypeError
        Another keyword.

    Examples
    --------
    >>> from ase import Atoms
    >>> from nearfield.ase import LennardJones
    >>> pair = Atoms("Ar2", positions=[[0, 0, 0], [2 ** (1 / 6), 0, 0]])
    >>> pair.calc = LennardJones(rc=10.0)
    >>> round(float(pair.get_potential_energy()), 4)
    -1.0
    """

    sigma: float
    epsilon: float
    rc: float
    skin: float
    searches: int
    implemented_properties: list[str] = ["energy", "energies", "free_energy", "forces", "stress"]

    def __init__(self, sigma: float = 1.0, epsilon: float = 1.0, rc: float | None = None,
                 skin: float | None = None, **keywords: Any) -> None:
        for name in keywords.keys() - _KEYWORDS:
            raise TypeError("nearfield.ase.LennardJones has no keyword %r: it is cut and shifted "
                            "at rc; there are sigma, epsilon, rc, skin, and those of ASE's "
                            "Calculator: %s" % (name, ", ".join(sorted(_KEYWORDS))))
        super().__init__(**keywords)
        self.sigma, self.epsilon = sigma, epsilon
        self.rc = 3 * self.sigma if rc is None else rc
        self.skin = 0.3 * self.sigma if skin is None else skin
        self.searches = 0
        self._pairs: Any = None
        self._reference: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        """Parameters are checked, and results with other ones dropped."""
        if name in ("sigma", "epsilon", "rc", "skin"):
            value = float(value)
            fits, what = {"epsilon": (True, ""), "skin": (value >= 0, " and not negative")}.get(
                name, (value > 0, " and positive"))
            if not (fits and np.isfinite(value)):
                raise ValueError("%s must be finite%s, not %s" % (name, what, value))
            self.reset()
        super().__setattr__(name, value)

    def calculate(self, atoms: Any = None, properties: Any = None,
                  system_changes: Any = _all_changes) -> None:
        """As ASE calls it."""
        super().calculate(atoms, properties or ["energy"], system_changes)
        x = self.atoms.positions
        self._update(x)
        i, j, offset = self._pairs
        D = x[j] - x[i] + offset
        r2 = np.einsum("ma,ma->m", D, D)
        near = r2 < self.rc ** 2
        i, j, D, r2 = i[near], j[near], D[near], r2[near]
        energy, push = self._law(r2)
        self._sum(i, j, D, energy, push, len(x))

    def _law(self, r2: Any) -> tuple[Any, Any]:
        """Energy, and force over distance, at these squared distances."""
        c6 = (self.sigma ** 2 / r2) ** 3
        cut6 = (self.sigma / self.rc) ** 6
        energy = 4 * self.epsilon * (c6 ** 2 - c6 - (cut6 ** 2 - cut6))
        return energy, 24 * self.epsilon * (2 * c6 ** 2 - c6) / r2

    def _sum(self, i: Any, j: Any, D: Any, energy: Any, push: Any, n: int) -> None:
        """Each pair is listed once: both atoms get half of its energy, and opposite forces."""
        along = push[:, None] * D
        forces = np.empty((n, 3))
        for axis in range(3):
            forces[:, axis] = (np.bincount(j, along[:, axis], n)
                               - np.bincount(i, along[:, axis], n))
        energies = (np.bincount(i, energy, n) + np.bincount(j, energy, n)) / 2
        self.results.update(energy=energies.sum(), energies=energies, forces=forces,
                            free_energy=energies.sum())
        if self.atoms.cell.rank == 3:
            stress = -(D.T @ along) / self.atoms.get_volume()
            self.results["stress"] = stress.ravel()[[0, 4, 8, 5, 2, 1]]

    def _update(self, x: Any) -> None:
        """New pairs, where the old ones may miss one."""
        cell, pbc = self.atoms.cell.array, self.atoms.pbc
        if self._reference is not None:
            old, old_cell, old_pbc, reach = self._reference
            if (old.shape == x.shape and (cell == old_cell).all() and (pbc == old_pbc).all()
                    and reach == self.rc + self.skin
                    and ((x - old) ** 2).sum(1).max(initial=0) <= (self.skin / 2) ** 2):
                return
        i, j, S = neighbor_list("ijS", (x, cell, pbc), self.rc + self.skin, half=True)
        self._pairs = i, j, S @ np.where(pbc[:, None], cell, 0.0)
        self._reference = x.copy(), cell.copy(), pbc.copy(), self.rc + self.skin
        self.searches += 1
