"""`axir.scipy.spatial`: its module `transform` has rotations."""

from __future__ import annotations

import importlib

from axir.dialect.core.annotations import UserObject

__all__ = ["transform"]


def __getattr__(name: str) -> UserObject:
    if name in __all__:
        return importlib.import_module(f"axir.scipy.spatial.{name}")
    raise AttributeError(f"module 'axir.scipy.spatial' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
