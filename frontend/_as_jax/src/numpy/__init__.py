"""Names of `jax._src.numpy`: the names of `axir.numpy`, in JAX's modules."""

from __future__ import annotations

import axir.numpy
from axir._as_jax import src
from axir.dialect.core.annotations import UserObject


def __getattr__(name: str) -> UserObject:
    if f"numpy.{name}" in src.MODULES:
        return src.load(__name__, name)
    try:
        return getattr(axir.numpy, name)
    except AttributeError:
        return src.load(__name__, name)
