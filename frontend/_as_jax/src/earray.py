"""Names of `jax._src.earray`: the class of arrays of dtypes that libraries add."""

from __future__ import annotations

from axir.experimental._extended_arrays import EArray

__all__ = ["EArray"]
