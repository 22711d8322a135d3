"""Names of `jax._src.state`: arrays that are assigned to."""

from __future__ import annotations

from axir._as_jax import src
from axir.dialect.core.annotations import UserObject
from axir.ref import AbstractRef

__all__ = ["AbstractRef"]


def __getattr__(name: str) -> UserObject:
    return src.load(__name__, name)
