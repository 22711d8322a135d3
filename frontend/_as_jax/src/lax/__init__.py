"""Names of `jax._src.lax`: the names of `axir.lax`, in JAX's modules."""

from __future__ import annotations

import axir.lax
from axir._as_jax import src
from axir.dialect.core.annotations import UserObject


def __getattr__(name: str) -> UserObject:
    if f"lax.{name}" in src.MODULES:
        return src.load(__name__, name)
    try:
        return getattr(axir.lax, name)
    except AttributeError:
        return src.load(__name__, name)
