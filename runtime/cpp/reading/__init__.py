"""Reads the program that calls kernels from IREE's stream dialect.

Of this room only the folder `reading/` uses the compiler's bindings, and only those of MLIR.
"""

from __future__ import annotations

from .module_reader import read_program

__all__ = ["read_program"]
