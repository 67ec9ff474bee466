from typing import Any

VERSION: str
VERSION_NUMBER: int
CONSTANTS: dict[str, tuple[int, int]]
STRUCTS: dict[str, tuple[tuple[str, str, tuple[Any, ...]], ...]]
CUDA_STRUCTS: dict[str, tuple[tuple[str, str, tuple[Any, ...]], ...]]
FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]]
CUDA_FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]]
