"""Types for annotations of functions of arrays, under the names of `jax.typing`.

>>> from axir.typing import ArrayLike
>>> def double(x: ArrayLike) -> "axir.Array":
...     return axir.numpy.multiply(2, x)
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from axir.dialect.core.array import Array

__all__ = ["ArrayLike", "DTypeLike"]


def __dir__() -> list[str]:
    return __all__


ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
"""What functions of arrays take for an array: arrays, traced ones, NumPy's, and scalars."""


class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        ...


DTypeLike = str | type | np.dtype | SupportsDType
"""What stands for a dtype: a name, a scalar type, a dtype, or what has one."""
