"""How much memory a search may take: of this machine, of its container, and by ulimit.

SPDX-License-Identifier: MIT OR Unlicense
"""
from __future__ import annotations

import functools
import os
from typing import Iterator

_NONE = 1 << 62


def memory_limit() -> int:
    """Bytes that can still be asked for, at most: physical memory, the limits of the control groups
    that this process is in, and what RLIMIT_AS and RLIMIT_DATA leave."""
    return max(min(_fixed_bytes(), _bytes_by_ulimit()), 0)


@functools.lru_cache(maxsize=None)
def _fixed_bytes() -> int:
    return min(_machine_bytes(), _group_bytes())


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):       # not known here
        return _NONE


def _group_bytes(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> int:
    """The smallest limit of the control groups above this process (Linux, versions 1 and 2)."""
    try:
        with open(own) as file:
            lines = file.read().splitlines()
    except OSError:
        return _NONE
    least = _NONE
    for line in lines:
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if controllers == "":
            files = "memory.max", root
        elif "memory" in controllers.split(","):
            files = "memory.limit_in_bytes", os.path.join(root, "memory")
        else:
            continue
        for folder in _with_parents(path):
            least = min(least, _number_in(os.path.join(files[1], folder, files[0])))
    return least


def _with_parents(path: str) -> Iterator[str]:
    """a/b, a and the root, without a leading slash. (A container may see its own group as root.)"""
    path = path.strip("/")
    while path:
        yield path
        path = os.path.dirname(path)
    yield ""


def _number_in(file: str) -> int:
    try:
        with open(file) as text:
            return int(text.read())
    except (OSError, ValueError):       # "max": no limit
        return _NONE


def _bytes_by_ulimit() -> int:
    """What is left of the address space and of the data that this process may have."""
    try:
        import resource
    except ImportError:                 # Windows
        return _NONE
    least = _NONE
    for which, column in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        limit = resource.getrlimit(which)[0]
        if limit != resource.RLIM_INFINITY:
            least = min(least, limit - _used(column))
    return least


def _used(column: int) -> int:
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[column]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
