"""Names of `jax._src.state.types`: types of arrays that are assigned to."""

from __future__ import annotations

from axir.ref import AbstractRef

__all__ = ["AbstractRef"]
