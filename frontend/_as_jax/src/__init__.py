"""What libraries use of `jax._src`: names of JAX's that are not public, and cost nothing here.

Each module has the names that a library in use asks for; what is public comes from elsewhere.
"""

from __future__ import annotations

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    # JAX imports all of these by itself.
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} (jax._src) has no attribute {name!r}") from None
