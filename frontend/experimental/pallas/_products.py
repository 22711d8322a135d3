"""Products of two blocks."""

from __future__ import annotations

import numpy as np

from axir import lax
from axir.dialect.core import dtypes
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.program.rules import Value
from axir.numpy import promote_types


def dot(
    a: Value,
    b: Value,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: object = None,
) -> Value:
    """Returns the product of two matrices: float32 of narrower floats, int32 of integers.

    Args:
        a: A matrix.
        b: A matrix.
        trans_a: Whether to transpose the first one before.
        trans_b: Whether to transpose the second one before.
        allow_tf32: Accepted for compatibility.
        precision: See `lax.dot_general`; not together with `allow_tf32`.

    >>> import axir.numpy as jnp
    >>> dot(jnp.ones((2, 3)), jnp.ones((2, 3)), trans_b=True)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(
            f"dot: `a` and `b` must be 2D arrays, not of shapes {a.shape} and {b.shape}.",
            "Use axir.numpy.matmul for arrays of other ranks.",
        )
    if allow_tf32 is not None and precision is not None:
        raise ParameterError(
            "dot: only one of allow_tf32 and precision can be specified.", "Leave allow_tf32 out."
        )
    kind = promote_types(a.dtype, b.dtype)
    result = np.dtype(np.int32) if dtypes.is_integer(kind) else promote_types(kind, np.float32)
    numbers = (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ()))
    return lax.dot_general(a, b, numbers, precision=precision, preferred_element_type=result)
