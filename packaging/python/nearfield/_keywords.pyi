"""Keywords of the classes: the fields of the C structs, for type checkers. python_checks.py holds
them to what declare.py reads in the headers."""
from typing import Literal, Sequence, TypedDict, Union

class GridFields(TypedDict, total=False):
    split: int
    outside: Union[str, int]
    buckets: int
    method: Literal["auto", "count", "sort", "fixed", "list", "list_packed"]
    placement: Literal["loose", "tight"]
    size: float
    walk: Literal["auto", "cells", "strips", "modular", "hybrid"]
    cell_order: Literal["rows", "morton"]
    slots: int
    grow: int
    slot_layout: Literal["by_column", "by_row"]
    no_records: int
    coherent: int
    inverse: int
    deterministic: int
    rows: int
    skip_invalid: int
    max_cells: int
    radius: float

class TreeFields(TypedDict, total=False):
    radius: float
    min: Union[float, Sequence[float]]
    max: Union[float, Sequence[float]]
    bits: int
    builder: Literal["merge", "split", "ploc"]
    keep_codes: int
    skip_invalid: int

class ListFields(TypedDict, total=False):
    layout: Union[str, int]
    width: int
    rows: int
    shifts: int
    distances: int
    offsets: int
    sorted: int
    nearest: int
    deterministic: int
    skip_invalid: int
    capacity: int
    grow: int
    if_moved: int
    contacts: int

class NBodyFields(TypedDict, total=False):
    levels: int
    leaf: int
    sources: Literal["auto", "mass_centres", "chebyshev"]
    subcells: int
    min: Union[float, Sequence[float]]
    size: float
    stage: Literal["fast", "one_thread", "many_threads", "shared_memory"]
    max_cells: int
    core: Union[str, int]
    periodic: int
    function_ns: float

class WorldFields(TypedDict, total=False):
    margin: float
    margin_part: float
