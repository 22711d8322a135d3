"""`jax._src.literals`: classes of numbers and arrays for literals in tracing.

Here such arrays are of the class of all arrays, so no object is an instance of these. Libraries
have rules for them.
"""

from __future__ import annotations

__all__ = ["LiteralArray", "TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray"]


class TypedNdArray:
    """An array of NumPy's that knows whether its dtype is weak; no array is one."""


LiteralArray = TypedNdArray


class TypedInt(int):
    """An integer that knows its dtype; none is one."""


class TypedFloat(float):
    """A float that knows its dtype; none is one."""


class TypedComplex(complex):
    """A complex number that knows its dtype; none is one."""
