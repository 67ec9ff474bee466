#!/usr/bin/env python3
"""boxes_peers.py - nlist_search_box against ASE, matscipy and vesin, where they are installed, on
random systems.
SPDX-License-Identifier: MIT OR Unlicense

    python3 tests/python/boxes_peers.py [systems [seed]]       (default: 2000 systems, seed 1)

Every entry (i, j, S) must be the same, and D within rounding. Systems: orthogonal, triclinic and
left-handed boxes, needles, flat and sheared ones, boxes smaller than the radius, atoms far outside,
lattices, one atom, none. Radii at which rounding would decide are moved.
A peer that takes longer than 10 s for a system, or crashes, is asked about the next one: that is
counted, and is not a failure.
Without numpy, or without any peer, the script ends with 77 and a message.
"""
import ctypes, multiprocessing, os, subprocess, sys, tempfile

try:
    import numpy as np
except ImportError:
    print('skipped  numpy is not installed')
    sys.exit(77)

SHIM = r'''
#define NLIST_REAL double
#define NLIST_WITH_BOXES
#define NLIST_IMPLEMENTATION
#include "nlist.h"
static nlist list;
static nlist_arrays found;
int search(const double *pos, int n, const double *cell, const int *periodic, double radius,
           int half, int sorted,
           nlist_arrays **out)
{
    nlist_desc d;
    nlist_box box;
    memset(&d, 0, sizeof d);
    memset(&found, 0, sizeof found);
    memcpy(box.cell, cell, sizeof box.cell);
    memcpy(box.periodic, periodic, sizeof box.periodic);
    d.radius = radius;
    d.half = half;
    d.sorted = sorted;
    found.wanted = 31;
    *out = &found;
    return (int)nlist_search_box(&list, &d, &box, pos, 0, n, &found);
}
'''


class Arrays(ctypes.Structure):
    _fields_ = [('wanted', ctypes.c_int32), ('capacity', ctypes.c_int64),
                ('i', ctypes.POINTER(ctypes.c_int32)),
                ('j', ctypes.POINTER(ctypes.c_int32)), ('shift', ctypes.POINTER(ctypes.c_int32)),
                ('distance', ctypes.POINTER(ctypes.c_double)),
                ('offset', ctypes.POINTER(ctypes.c_double)),
                ('count', ctypes.c_int64), ('rows_cut', ctypes.c_int32)]


def build():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    while not os.path.exists(os.path.join(root, 'nlist.h')):
        root = os.path.dirname(root)
    folder = tempfile.mkdtemp()
    source, library = os.path.join(folder, 'shim.c'), os.path.join(folder, 'shim.so')
    with open(source, 'w') as f:
        f.write(SHIM)
    subprocess.check_call([os.environ.get('CC', 'cc'), '-std=c99', '-O2', '-shared', '-fPIC', '-I',
                           root, source, '-o', library, '-lm'])
    return ctypes.CDLL(library)


def ours(library, pos, cell, periodic, radius):
    pos = np.ascontiguousarray(pos, dtype=np.float64)
    cell = np.ascontiguousarray(cell, dtype=np.float64)
    flags = np.array(periodic, dtype=np.int32)
    out = ctypes.POINTER(Arrays)()
    code = library.search(pos.ctypes.data_as(ctypes.c_void_p), len(pos),
                          cell.ctypes.data_as(ctypes.c_void_p),
                          flags.ctypes.data_as(ctypes.c_void_p), ctypes.c_double(radius), 0, 1,
                          ctypes.byref(out))
    if code:
        raise RuntimeError('result %d' % code)
    a = out.contents
    m = a.count
    if m == 0:
        return np.zeros((0, 5), int), np.zeros((0, 3)), np.zeros(0)
    take = lambda p, k, width: np.ctypeslib.as_array(p, (k * width,)).reshape(k, width).copy()
    key = np.concatenate([take(a.i, m, 1), take(a.j, m, 1), take(a.shift, m, 3)], axis=1)
    return key, take(a.offset, m, 3), take(a.distance, m, 1)[:, 0]


def ask_ase(pos, cell, periodic, radius):
    from ase.neighborlist import primitive_neighbor_list
    return primitive_neighbor_list('ijSD', periodic, cell, pos, radius, self_interaction=False)


def ask_matscipy(pos, cell, periodic, radius):
    from matscipy.neighbours import neighbour_list
    return neighbour_list('ijSD', positions=pos, cell=cell, pbc=periodic, cutoff=radius)


def ask_vesin(pos, cell, periodic, radius):
    import vesin
    return vesin.NeighborList(cutoff=radius, full_list=True).compute(points=pos, box=cell,
                                                                     periodic=np.array(periodic),
                                                                     quantities='ijSD')


def serve(pipe, ask):
    while True:
        system = pipe.recv()
        try:
            pipe.send(ask(*system))
        except Exception as error:  # a refusal of the peer
            pipe.send(repr(error))


class Peer:
    """A peer in a process of its own, so that it can be given up."""

    def __init__(self, name, ask):
        self.name, self.ask, self.process = name, ask, None
        self.compared = self.given_up = self.refused = 0

    def __call__(self, system):
        if self.process is None:
            self.pipe, there = multiprocessing.Pipe()
            self.process = multiprocessing.Process(target=serve, args=(there, self.ask),
                                                   daemon=True)
            self.process.start()
            there.close()
        try:
            self.pipe.send(system)
            if self.pipe.poll(10):
                answer = self.pipe.recv()
                if isinstance(answer, str):
                    self.refused += 1
                    self.last = answer
                    return None
                return answer
        except (EOFError, OSError):
            pass
        self.given_up += 1
        self.process.kill()
        self.process.join()
        self.process = None
        return None


def peers():
    found = []
    for name, module, ask in (('ASE', 'ase.neighborlist', ask_ase),
                              ('matscipy', 'matscipy.neighbours', ask_matscipy),
                              ('vesin', 'vesin', ask_vesin)):
        try:
            __import__(module)
            found.append(Peer(name, ask))
        except ImportError:
            print('skipped  %s is not installed' % name)
    return found


KINDS = 'orthogonal triclinic left-handed needle flat sheared tiny far lattice one none'.split()


def make(rng, kind):
    size = {'tiny': [0.5] * 3, 'needle': [0.7, 0.7, 20], 'flat': [0.3, 3, 3]}.get(kind, [3] * 3)
    cell = np.diag(np.array(size, float))
    if kind not in ('orthogonal', 'lattice'):
        cell += rng.uniform(-0.25, 0.25, (3, 3)) * np.array(size)
    if kind == 'left-handed':
        cell = cell[[1, 0, 2]]
    if kind == 'sheared':
        cell[1] += 6 * cell[0]
    n = {'one': 1, 'none': 0}.get(kind, int(rng.integers(1, 40)))
    out = 20 if kind == 'far' else 0.4
    f = rng.integers(0, 5, (n, 3)) / 4 if kind == 'lattice' else rng.uniform(-out, 1 + out, (n, 3))
    periodic = [bool(b) for b in rng.integers(0, 4, 3) > 0]
    return f @ cell, cell, periodic, float(rng.uniform(0.4, 1.8))


def ordered(answer):
    i, j, s, d = (np.asarray(x) for x in answer)
    key = np.concatenate([i.reshape(-1, 1), j.reshape(-1, 1), s.reshape(-1, 3)], axis=1).astype(int)
    order = np.lexsort(key.T[::-1])
    return key[order], d.reshape(-1, 3)[order]


def main():
    systems = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng, asked, library, failures = np.random.default_rng(seed), peers(), build(), 0
    if not asked:
        sys.exit(77)
    for turn in range(systems):
        kind = KINDS[turn % len(KINDS)]
        pos, cell, periodic, radius = make(rng, kind)
        for _ in range(20):     # peers list what is nearer than the radius, we what is not further
            key, d, length = ours(library, pos, cell, periodic, radius * (1 + 1e-9))
            if not len(length) or length.max() < radius * (1 - 1e-9):
                break
            radius *= 1.0123
        scale = (np.abs(pos).max() + np.abs(cell).max() * (np.abs(key[:, 2:]).max() + 1)
                 if len(key) else 1)
        assert np.all(np.abs(np.sqrt((d ** 2).sum(1)) - length) < 1e-12 * scale)
        for peer in asked:
            if len(pos) == 0:
                continue
            answer = peer((pos, cell, periodic, radius))
            if answer is None:
                continue
            their_key, their_d = ordered(answer)
            peer.compared += 1
            if (their_key.shape != key.shape or (their_key != key).any()
                    or np.abs(their_d - d).max(initial=0) > 1e-12 * scale):
                failures += 1
                print('FAILED   %s, system %d (%s, %d atoms, periodic %s, radius %g): %d entries, '
                      'ours %d'
                      % (peer.name, turn, kind, len(pos), periodic, radius, len(their_key),
                         len(key)))
    for peer in asked:
        print('%-9s %d systems compared, %d refused by it, %d given up after 10 s%s'
              % (peer.name, peer.compared, peer.refused, peer.given_up,
                 ': ' + peer.last if peer.refused else ''))
    print('%d differences' % failures)
    sys.exit(failures > 0)


if __name__ == '__main__':
    main()
