"""Reads the program that calls kernels from IREE's stream dialect.

In this room only the folder `reading/` uses the compiler's bindings, and only MLIR's.
"""

from __future__ import annotations

from .module_reader import read_program

__all__ = ["read_program"]
