"""Names of `jax._src.pallas`, the same as in `axir.experimental.pallas`."""

from __future__ import annotations

import axir.experimental.pallas
from axir._as_jax import src
from axir.dialect.core.annotations import UserObject


def __getattr__(name: str) -> UserObject:
    if f"pallas.{name}" in src.MODULES:
        return src.load(__name__, name)
    try:
        return getattr(axir.experimental.pallas, name)
    except AttributeError:
        return src.load(__name__, name)
