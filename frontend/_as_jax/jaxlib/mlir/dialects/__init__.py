"""The package `jaxlib.mlir.dialects` where axir stands in for JAX."""

from __future__ import annotations

from types import ModuleType

from axir.dialect.core.dialect_modules import bindings_of

from . import chlo, stablehlo

__all__ = ["chlo", "hlo", "mhlo", "stablehlo"]

# One set of operations, under its names of several years.
hlo = mhlo = stablehlo


def __getattr__(name: str) -> ModuleType:
    """Returns the module of a dialect in the wheel of IREE's compiler: `func`, `arith` ..."""
    found = None if name.startswith("_") else bindings_of(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
