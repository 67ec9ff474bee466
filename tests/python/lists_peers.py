#!/usr/bin/env python3
"""lists_peers.py - nearfield.neighbor_list beside ASE, matscipy and vesin, on random systems.
SPDX-License-Identifier: MIT OR Unlicense

    python3 tests/python/lists_peers.py [SYSTEMS [SEED]]        default: 2000 systems, seed 1

nearfield and the peers are those that Python finds. Systems are those of boxes_peers.py; a third
have a radius for each atom, a third a cutoff for each two kinds (those are ASE's and matscipy's
only). Every pair with its shift must be the same, and D within rounding; radii at which rounding
would decide are moved. A peer that takes longer than 10 s is asked about the next system, and that
is counted. 77: no peer is installed.
"""
import sys

import numpy as np

import nearfield
from boxes_peers import KINDS, Peer, make, ordered

CUTOFFS = "number", "radii", "laws"


def ask_ase(pos, cell, periodic, cutoff, numbers):
    from ase.neighborlist import primitive_neighbor_list
    return primitive_neighbor_list("ijSD", periodic, cell, pos, cutoff, numbers)


def ask_matscipy(pos, cell, periodic, cutoff, numbers):
    from matscipy.neighbours import neighbour_list
    return neighbour_list("ijSD", positions=pos, cell=cell, pbc=periodic, cutoff=cutoff,
                          numbers=numbers.astype(np.int32))


def ask_vesin(pos, cell, periodic, cutoff, numbers):
    import vesin
    pairs = vesin.NeighborList(cutoff=cutoff, full_list=True)
    return pairs.compute(pos, cell, np.array(periodic), "ijSD")


def peers():
    found = []
    for name, module, ask in (("ASE", "ase.neighborlist", ask_ase),
                              ("matscipy", "matscipy.neighbours", ask_matscipy),
                              ("vesin", "vesin", ask_vesin)):
        try:
            __import__(module)
            found.append(Peer(name, ask))
        except ImportError:
            print("skipped  %s is not installed" % name)
    return found


def cutoff_of(rng, form, radius, numbers):
    """The cutoff in that form, none of whose parts is larger than the radius."""
    if form == "number":
        return radius
    if form == "radii":
        return radius / 2 * rng.uniform(0.2, 1, len(numbers))
    kinds = [(1, 1), (1, 2), (2, 3)]
    return {kind: float(radius * rng.uniform(0.3, 1)) for kind in kinds}


def scaled(cutoff, factor):
    if isinstance(cutoff, dict):
        return {kind: factor * reach for kind, reach in cutoff.items()}
    return cutoff * factor


def ours(pos, cell, periodic, cutoff, numbers):
    return nearfield.neighbor_list("ijSD", (pos, cell, periodic, numbers), cutoff)


def away_from_rims(system, cutoff):
    """The cutoff, times a number at which no pair is within rounding of it."""
    pos, cell, periodic, numbers = system
    for _ in range(20):
        counts = [len(ours(pos, cell, periodic, scaled(cutoff, 1 + gap), numbers)[0])
                  for gap in (-1e-9, 1e-9)]
        if counts[0] == counts[1]:
            return cutoff
        cutoff = scaled(cutoff, 1.0123)
    return None


def compare(peer, turn, kind, asked, key, d, scale):
    """1 where they differ."""
    answer = peer(asked)
    if answer is None:
        return 0
    their_key, their_d = ordered(answer)
    peer.compared += 1
    if their_key.shape == key.shape and (their_key == key).all() and \
            np.abs(their_d - d).max(initial=0) <= 1e-12 * scale:
        return 0
    print("FAILED   %s, system %d (%s, %d atoms, periodic %s, cutoff %s): %d pairs, ours %d"
          % (peer.name, turn, kind, len(asked[0]), asked[2], asked[3], len(their_key), len(key)))
    return 1


def main(systems=2000, seed=1):
    rng, asked, failures = np.random.default_rng(seed), peers(), 0
    if not asked:
        return 77
    for turn in range(systems):
        kind, form = KINDS[turn % len(KINDS)], CUTOFFS[turn // len(KINDS) % 3]
        pos, cell, periodic, radius = make(rng, kind)
        numbers = rng.integers(1, 4, len(pos))
        cutoff = cutoff_of(rng, form, radius, numbers)
        cutoff = cutoff if len(pos) else None
        cutoff = cutoff is not None and away_from_rims((pos, cell, periodic, numbers), cutoff)
        if cutoff is None or cutoff is False:
            continue
        key, d = ordered(ours(pos, cell, periodic, cutoff, numbers))
        shifts = np.abs(key[:, 2:]).max(initial=0) + 1
        scale = np.abs(pos).max() + np.abs(cell).max() * shifts
        for peer in asked:
            if form == "number" or peer.name != "vesin":
                failures += compare(peer, turn, kind, (pos, cell, periodic, cutoff, numbers), key,
                                    d, scale)
    for peer in asked:
        print("%-9s %d systems compared, %d refused by it, %d given up after 10 s%s" % (
            peer.name, peer.compared, peer.refused, peer.given_up,
            ": " + peer.last if peer.refused else ""))
    print("%d differences" % failures)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
