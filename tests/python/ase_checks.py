#!/usr/bin/env python3
"""ase_checks.py - nearfield.ase.LennardJones against ASE's own, and in molecular dynamics.
SPDX-License-Identifier: MIT OR Unlicense

    python3 tests/python/ase_checks.py [NAME...]

nearfield and ASE are those that Python finds. The last line is "N passed, M failed".
"""
import sys
import traceback

import numpy as np

try:
    from ase import Atoms, units
    from ase.build import bulk
    from ase.calculators.lj import LennardJones as Other
    from ase.md.verlet import VelocityVerlet
except ImportError:
    print("skipped  ase is not installed")
    sys.exit(77)

from nearfield.ase import LennardJones


def check_against_ase():
    rng = np.random.default_rng(3)
    for trial in range(20):
        atoms = bulk("Ar", "fcc", a=1.6, cubic=True) * (1 + trial % 3, 2, 1)
        atoms.set_cell(atoms.cell + 0.1 * rng.standard_normal((3, 3)), scale_atoms=True)
        atoms.rattle(0.05, rng=rng)
        atoms.pbc = [True] * 3 if trial % 4 == 0 else rng.random(3) < 0.6
        atoms.positions += 2 * rng.standard_normal(3)
        results = []
        for calculator in (LennardJones(1.1, 0.7, rc=2.6), Other(sigma=1.1, epsilon=0.7, rc=2.6)):
            atoms.calc = calculator
            results.append((atoms.get_potential_energy(), atoms.get_forces(), atoms.get_stress()))
        for ours, theirs in zip(*results):
            assert np.allclose(ours, theirs, rtol=1e-10, atol=1e-9), (trial, ours, theirs)


def check_dynamics():
    """The energy is kept, and one list serves many steps."""
    atoms = bulk("Ar", "fcc", a=1.7, cubic=True) * (4, 4, 4)
    atoms.set_masses(np.ones(len(atoms)))
    atoms.set_velocities(0.7 * np.random.default_rng(1).standard_normal((len(atoms), 3)))
    atoms.calc = LennardJones(rc=2.5, skin=0.4)
    energies = []
    steps = VelocityVerlet(atoms, timestep=0.002)
    steps.attach(lambda: energies.append(atoms.get_total_energy()), interval=10)
    steps.run(200)
    kept = np.ptp(energies) / len(atoms)
    assert kept < 5e-3, kept
    assert 1 < atoms.calc.searches < 60, atoms.calc.searches
    forces = atoms.get_forces()
    fresh = atoms.copy()
    fresh.calc = LennardJones(rc=2.5, skin=0)
    assert np.allclose(forces, fresh.get_forces(), rtol=0, atol=1e-11)


def check_changes():
    """What makes a list useless: another cell, other axes, other atoms."""
    atoms = bulk("Ar", "fcc", a=1.6, cubic=True)
    atoms.calc = LennardJones(rc=2.0, skin=1.0)
    for change in (lambda: atoms.set_cell(atoms.cell * 0.9), lambda: atoms.set_pbc([1, 0, 1]),
                   lambda: atoms.append("Ar"), lambda: atoms.positions.__iadd__(0.6)):
        change()
        atoms.positions[-1] += 0.01
        fresh = atoms.copy()
        fresh.calc = LennardJones(rc=2.0, skin=0)
        assert np.isclose(atoms.get_potential_energy(), fresh.get_potential_energy(), rtol=1e-12)
    none = Atoms()
    none.calc = LennardJones()
    assert none.get_potential_energy() == 0 and units.eV == 1


def check_parameters():
    """What cannot be is refused; what is changed afterwards counts from then on."""
    for bad in (dict(skin=-0.1), dict(rc=-1), dict(rc=0), dict(rc=np.inf), dict(skin=np.nan),
                dict(sigma=0), dict(epsilon=np.inf)):
        try:
            LennardJones(**bad)
        except ValueError as error:
            assert next(iter(bad)) in str(error)
        else:
            raise AssertionError("%s is not refused" % bad)
    for other in (dict(smooth=True), dict(ro=2.0), dict(rcc=2.0), dict(sigmaa=1.0)):
        try:
            LennardJones(**other)
        except TypeError as error:
            assert next(iter(other)) in str(error) and "cut and shifted" in str(error)
        else:
            raise AssertionError("%s is not refused" % other)
    assert LennardJones(label="one", directory=".").rc == 3
    atoms = bulk("Ar", "fcc", a=1.6, cubic=True)
    atoms.rattle(0.03, seed=1)
    atoms.calc = LennardJones(rc=2.0, skin=0.3)
    values = dict(sigma=1.0, epsilon=1.0, rc=2.0, skin=0.3)
    for name, value in (("rc", 2.8), ("skin", 0.1), ("epsilon", 0.5), ("sigma", 1.1), ("rc", 1.5)):
        atoms.get_potential_energy()
        setattr(atoms.calc, name, value)
        values[name] = value
        fresh = atoms.copy()
        fresh.calc = LennardJones(**dict(values, skin=0))
        assert np.isclose(atoms.get_potential_energy(), fresh.get_potential_energy(), rtol=1e-12)
    refused = False
    try:
        atoms.calc.skin = -1
    except ValueError:
        refused = True
    assert refused and atoms.calc.skin == 0.1


def main():
    checks = {name[6:]: f for name, f in globals().items() if name.startswith("check_")}
    names, failed = sys.argv[1:] or list(checks), 0
    for name in names:
        try:
            checks[name]()
            print("ok       ase: %s" % name.replace("_", " "), flush=True)
        except Exception as error:      # noqa: BLE001
            failed += 1
            print("FAILED   ase: %s: %s" % (name.replace("_", " "), repr(error)[:300]), flush=True)
            traceback.print_exc(limit=-4)
    print("%d passed, %d failed" % (len(names) - failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
