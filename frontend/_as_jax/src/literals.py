"""Names of `jax._src.literals`: classes of arrays that tracing makes of literals.

Here such arrays are of the class of all arrays, so nothing is an instance of these.
"""

from __future__ import annotations

__all__ = ["LiteralArray", "TypedNdArray"]


class TypedNdArray:
    """An array of NumPy's that knows whether its dtype is weak; no array is one."""


LiteralArray = TypedNdArray
