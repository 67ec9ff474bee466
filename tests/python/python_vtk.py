"""For tests/python/run.sh: opens the VTK files of the examples with the reader that ParaView has,
and compares them with what the programs say elsewhere.

    python_vtk.py DAM DRUM STEPS FOLDER        the three programs, and an empty folder
"""
import glob
import os
import subprocess
import sys

import numpy as np
import vtk
from vtk.util.numpy_support import vtk_to_numpy

dam, drum, steps, folder = (os.path.abspath(a) for a in sys.argv[1:5])
passed = failed = 0


def report(good, what, seen=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print("%-8s vtk: %s%s" % ("ok" if good else "FAILED", what, "" if good else ": %s" % (seen,)),
          flush=True)


def run(*command):
    return subprocess.run([str(c) for c in command], cwd=folder, check=True, capture_output=True,
                          text=True).stdout


def values(text):
    return {line.split()[0]: float(line.split()[1]) for line in text.splitlines()
            if len(line.split()) == 2}


def read(name):
    """The file as ParaView sees it; what the reader complains about is a failure."""
    complaints = []
    reader = vtk.vtkPolyDataReader()
    for source in (reader, vtk.vtkOutputWindow.GetInstance()):
        for event in ("ErrorEvent", "WarningEvent"):
            source.AddObserver(event, lambda *_: complaints.append(event))
    reader.ReadAllScalarsOn()
    reader.ReadAllVectorsOn()
    reader.SetFileName(os.path.join(folder, name))
    reader.Update()
    data = reader.GetOutput()
    report(not complaints and data.CheckAttributes() == 0 and data.GetNumberOfPoints() > 0,
           name + " can be read", complaints)
    return data


def points(data):
    return vtk_to_numpy(data.GetPoints().GetData())


def arrays(about):
    return {about.GetArrayName(k): vtk_to_numpy(about.GetArray(k))
            for k in range(about.GetNumberOfArrays())}


def ids(cells):
    return vtk_to_numpy(cells.GetConnectivityArray())


def the_dam():
    n = 1500
    told = values(run(dam, "-n", n, "--steps", 60, "--vtk", "--out", folder, "--write",
                      os.path.join(folder, "end.txt"), "--check"))
    data = read("frame_0000.vtk")
    at, about = points(data), arrays(data.GetPointData())
    written = np.loadtxt(os.path.join(folder, "end.txt"))
    report(at.dtype == np.float32 and np.array_equal(at, written.astype(np.float32)),
           "dam: positions are those of --write, in every bit")
    report(list(about) == ["velocity"] and about["velocity"].shape == (n, 3),
           "dam: one array, the velocity", list(about))
    report(np.array_equal(ids(data.GetVerts()), np.arange(n)), "dam: a vertex for each particle")
    speed = np.abs(about["velocity"])
    report(np.isfinite(speed).all() and 0 < speed.max() < 5, "dam: speeds of a fall", speed.max())
    report(len(at) == told["particles"] == n, "dam: as many as asked for, and as --check says",
           told["particles"])
    report(np.allclose(at.mean(0), [told["centre_" + a] for a in "xyz"], atol=1e-3),
           "dam: their centre, as --check says", at.mean(0))
    fastest = np.linalg.norm(about["velocity"].astype(float), axis=1).max()
    report(abs(fastest - told["fastest"]) <= 1e-5 * fastest, "dam: the fastest, as --check says",
           fastest)
    run(dam, "-n", n, "--steps", 60, "--vtk", "--frames", 3, "--out", folder, "--check")
    frames = sorted(glob.glob(os.path.join(folder, "frame_*.vtk")))
    report(len(frames) == 3 and np.array_equal(points(read("frame_0002.vtk")), at),
           "dam: the last of three frames is the end", frames)


def the_drum():
    n = 300
    for text in ([], ["--ascii"]):
        told = values(run(drum, "-n", n, "--steps", 2500, "--vtk", "--out", folder, "--check",
                          *text))
        what = "drum, %s: " % ("text" if text else "binary")
        data = read("spheres_0000.vtk")
        at, about = points(data), arrays(data.GetPointData())
        report(sorted(about) == ["id", "radius", "spin", "velocity"], what + "arrays",
               sorted(about))
        report(len(at) == n and np.array_equal(np.sort(about["id"]), np.arange(n)),
               what + "each sphere once")
        d = np.linalg.norm(at[:, None].astype(float) - at[None], axis=2)
        overlap = about["radius"][:, None].astype(float) + about["radius"][None] - d
        links = read("contacts_0000.vtk")
        pairs, of_links = ids(links.GetLines()).reshape(-1, 2), arrays(links.GetCellData())
        report(np.array_equal(points(links), at), what + "contacts are drawn between the spheres")
        report(sorted(of_links) == ["force", "overlap", "spring"], what + "arrays of contacts",
               sorted(of_links))
        want = set(zip(*np.nonzero(np.triu(overlap, 1) > 0)))
        report({tuple(sorted(p)) for p in pairs.tolist()} == want and len(pairs) == len(want) > 100,
               what + "the contacts of all pairs of spheres",
               "%d, not %d" % (len(pairs), len(want)))
        report(np.allclose(of_links["overlap"], overlap[tuple(pairs.T)], atol=1e-7),
               what + "overlaps")
        report((of_links["force"] >= 0).all() and (of_links["spring"] >= 0).all()
               and of_links["force"].max() > 0, what + "forces")
        walls = read("drum_0000.vtk")
        triangles, corners = walls.GetNumberOfPolys(), points(walls)
        report(triangles > 100 and ids(walls.GetPolys()).max() < len(corners), what + "the drum",
               triangles)
        inside = (at >= corners.min(0) - 0.01) & (at <= corners.max(0) + 0.01)
        report(inside.all(), what + "spheres are in the drum")
        report((told["contacts"], told["spheres"]) == (len(pairs), n),
               what + "contacts and spheres, as --check says", told["contacts"])
        report(np.allclose(at.mean(0), [told["centre_" + a] for a in "xyz"], atol=1e-6),
               what + "their centre, as --check says", at.mean(0))
        fastest = np.linalg.norm(about["velocity"].astype(float), axis=1).max()
        report(abs(fastest - told["fastest"]) <= 1e-5 * fastest,
               what + "the fastest, as --check says", fastest)


def the_tree():
    run(steps, "-n", 40, "--seed", 3, "--out", folder)
    data = read("levels.vtk")
    corners, level = points(data).reshape(-1, 4, 3), arrays(data.GetCellData())["level"]
    report(data.GetNumberOfPolys() == len(corners) == 2 * 40 - 1,
           "tree: a rectangle for each of the 79 nodes", data.GetNumberOfPolys())
    low, high = corners.min(1), corners.max(1)
    report((low[:, 2] == high[:, 2]).all() and len(np.unique(low[level == 1, 2])) == 1,
           "tree: a level lies on one height")
    report(level.min() == 0 and (level == 0).sum() == 1 and (np.diff(np.unique(level)) == 1).all(),
           "tree: levels from the root on")
    root = np.flatnonzero(level == 0)[0]
    report((low[:, :2] >= low[root, :2]).all() and (high[:, :2] <= high[root, :2]).all(),
           "tree: the root holds them all")
    edges = high[:, :2] - low[:, :2]
    leaf = (edges < edges.min()
            * 1.0001).all(1)                        # the boxes of points: all of one size
    report(leaf.sum() == 40 and (low[leaf, :2].min(0) == low[root, :2]).all()
           and (high[leaf, :2].max(0) == high[root, :2]).all(),
           "tree: 40 leaves of one size, which span the root", leaf.sum())
    inner = ~leaf
    holds = (low[inner, None, :2] <= low[None, leaf, :2]).all(-1) & (high[None, leaf,
                                                                          :2] <= high[inner, None,
                                                                                      :2]).all(-1)
    report((holds.sum(1) >= 2).all(), "tree: an inner node holds two leaves or more")


the_dam()
the_drum()
the_tree()
print("%d passed, %d failed" % (passed, failed))
sys.exit(failed > 0)
