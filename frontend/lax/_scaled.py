"""Products of matrices with scales, one for each block of elements."""

from __future__ import annotations

import axir.numpy as jnp
from axir.dialect.core.annotations import DTypeLike
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import ShapeError
from axir.dialect.ops.contraction.dot_general import dot_general
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.elementwise.family import as_value
from axir.dialect.program.rules import Value


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: object = None,
    preferred_element_type: DTypeLike = None,
) -> Value:
    """Multiplies arrays that come with scales: `(lhs * lhs_scale) @ (rhs * rhs_scale)`.

    Args:
        lhs: Array, mostly of narrow floats.
        rhs: Array.
        lhs_scale: Scales of lhs: of the same rank, and of extents that divide lhs's extents; each
            scale counts for a block of elements. None for no scales.
        rhs_scale: Likewise of rhs.
        dimension_numbers: As of `dot_general`. By default matrices are multiplied, and arrays of
            three axes are batches of them.
        preferred_element_type: dtype of the result, and to add in; bfloat16 by default.

    Raises:
        ShapeError: if the extents of scales do not divide the operand's extents, or there are no
            dimension numbers for other ranks than two and three.

    >>> import axir.numpy as jnp
    >>> x = jnp.ones((2, 4), jnp.float8_e4m3fn)
    >>> scale = jnp.array([[2.0, 1.0], [1.0, 1.0]])
    >>> scaled_dot(x, x.T, lhs_scale=scale, preferred_element_type=jnp.float32)
    Array([[6., 6.],
           [4., 4.]], dtype=float32)
    """
    dtype = jnp.bfloat16.dtype if preferred_element_type is None else preferred_element_type
    left = _with_scales("lhs", as_value(lhs), lhs_scale)
    right = _with_scales("rhs", as_value(rhs), rhs_scale)
    if dimension_numbers is None:
        dimension_numbers = _matrix_product(left, right)
    product = dot_general(left, right, dimension_numbers, preferred_element_type=jnp.float32)
    return convert_element_type(product, dtype)


def _matrix_product(lhs: Value, rhs: Value) -> object:
    if lhs.ndim == rhs.ndim == 2:
        return ((1,), (0,)), ((), ())
    if lhs.ndim == rhs.ndim == 3:
        return ((2,), (1,)), ((0,), (0,))
    raise ShapeError(
        f"scaled_dot: arrays of {lhs.ndim} and {rhs.ndim} axes have several products.",
        "Pass dimension_numbers.",
    )


def _with_scales(name: str, x: Value, scale: ArrayLike | None) -> Value:
    """Returns float32 elements, multiplied with the scales of their blocks."""
    x = convert_element_type(x, jnp.float32)
    if scale is None:
        return x
    factors = convert_element_type(as_value(scale), jnp.float32)
    if factors.ndim != x.ndim or any(
        not b or a % b for a, b in zip(x.shape, factors.shape, strict=True)
    ):
        raise ShapeError(
            f"scaled_dot: the extents of {name}_scale {factors.shape} do not divide those of "
            f"{name}, {x.shape}."
        )
    for axis, (extent, count) in enumerate(zip(x.shape, factors.shape, strict=True)):
        if extent != count:
            factors = jnp.repeat(factors, extent // count, axis=axis)
    return jnp.multiply(x, factors)
