"""`axir.scipy`: functions of SciPy, with JAX's names. Its modules are loaded when first named."""

from __future__ import annotations

import importlib

from axir.dialect.core.annotations import UserObject

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal",
    "sparse", "spatial", "special", "stats",
]  # fmt: skip


def __getattr__(name: str) -> UserObject:
    if name in __all__:
        return importlib.import_module(f"axir.scipy.{name}")
    raise AttributeError(f"module 'axir.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
