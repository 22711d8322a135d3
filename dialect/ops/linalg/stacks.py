"""Matrices as stacks of one batch axis, and blocks of them at places known only at run time.

What the portable algorithms are written with: they see operands of shape (batch, rows, columns).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...primitive import Sample
from ..broadcasting import broadcast_in_dim
from ..elementwise import abs as absolute
from ..elementwise import add, div, max, mul, select_n
from ..family import Value
from ..padding import pad
from ..reduce import reduce_max, reduce_sum
from ..shape import reshape
from ..slicing import dynamic_slice, dynamic_update_slice
from ..transcendental import sqrt
from .matrices import conjugated, filled, positions, real_part

# Matrices up to this size are decomposed without blocks.
BLOCK = 32


def repeat(count: int, body: Callable[..., Sequence[Value]], *init: Value) -> list[Value]:
    """Applies `body(i, *values)` for i = 0, 1, ..., count - 1."""
    from ..loops import fori_values

    return list(fori_values(0, count, body, list(init)))


def stacked(x: Value) -> Value:
    """Brings (..., m, n) to (batch, m, n)."""
    return reshape(x, (math.prod(x.shape[:-2]), *x.shape[-2:]))


def unstacked(x: Value, batch: tuple[int, ...]) -> Value:
    """Splits the batch axis again."""
    return reshape(x, (*batch, *x.shape[1:]))


def spread(x: Value, shape: tuple[int, ...]) -> Value:
    """Repeats x along its axes of extent 1."""
    if tuple(x.shape) == tuple(shape):
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape))))


def rows_at(x: Value, start: Any, count: int) -> Value:
    """Returns some rows, from one on that need not be known."""
    zero = _zero(start)
    return dynamic_slice(
        x, (zero, start, zero), (x.shape[0], count, x.shape[2]), allow_negative_indices=False
    )


def columns_at(x: Value, start: Any, count: int) -> Value:
    """Returns some columns, from one on that need not be known."""
    zero = _zero(start)
    return dynamic_slice(
        x, (zero, zero, start), (*x.shape[:2], count), allow_negative_indices=False
    )


def with_rows(x: Value, rows: Value, start: Any) -> Value:
    """Returns x in which some rows are replaced."""
    zero = _zero(start)
    return dynamic_update_slice(x, rows, (zero, start, zero), allow_negative_indices=False)


def with_columns(x: Value, columns: Value, start: Any) -> Value:
    """Returns x in which some columns are replaced."""
    zero = _zero(start)
    return dynamic_update_slice(x, columns, (zero, zero, start), allow_negative_indices=False)


def _zero(like: Any) -> Value:
    return np.zeros((), getattr(like, "dtype", np.int32))


def rows_of(x: Value, shape: tuple[int, ...]) -> Value:
    """Returns the row of each element of a shape, as an op where x is traced."""
    return positions(x, shape, len(shape) - 2)


def columns_of(x: Value, shape: tuple[int, ...]) -> Value:
    """Returns the column of each element of a shape, as an op where x is traced."""
    return positions(x, shape, len(shape) - 1)


def padded(x: Value, rows: int, columns: int) -> Value:
    """Adds rows and columns of zeros behind."""
    if (rows, columns) == tuple(x.shape[1:]):
        return x
    extra = (0, rows - x.shape[1], 0), (0, columns - x.shape[2], 0)
    return pad(x, np.zeros((), x.dtype), ((0, 0, 0), *extra))


def padded_with_identity(x: Value, size: int) -> Value:
    """Extends square matrices to a size, by ones on the diagonal."""
    old = x.shape[1]
    if old == size:
        return x
    from ..elementwise import and_, eq, ge

    x = padded(x, size, size)
    rows, columns = rows_of(x, x.shape), columns_of(x, x.shape)
    is_new = and_(eq(rows, columns), ge(rows, old))
    return select_n(is_new, x, filled(x, x.shape, 1))


def sum_over(x: Value, axis: int) -> Value:
    """Sums along an axis, which stays with extent 1."""
    return reshape(reduce_sum(x, (axis,)), _kept(x, axis))


def largest_over(x: Value, axis: int) -> Value:
    """Returns the largest along an axis, which stays with extent 1."""
    return reshape(reduce_max(x, (axis,)), _kept(x, axis))


def _kept(x: Value, axis: int) -> tuple[int, ...]:
    return tuple(1 if d == axis else e for d, e in enumerate(x.shape))


def squared(x: Value) -> Value:
    """Returns the real squares of the moduli."""
    return real_part(mul(x, conjugated(x)))


def norm_over(x: Value, axis: int) -> Value:
    """Returns Euclidean norms along an axis, which stays, without overflow."""
    scale = largest_over(modulus(x), axis)
    safe = select_n(is_zero(scale), scale, filled(scale, scale.shape, 1))
    scaled = div(absolute(x), spread(safe, x.shape))
    return mul(safe, sqrt(sum_over(mul(scaled, scaled), axis)))


def modulus(x: Value) -> Value:
    """Returns the larger one of the absolute values of the real and the imaginary part."""
    from ..conversion import imag, real

    if not dtypes.is_complex(x.dtype):
        return absolute(x)
    return max(absolute(real(x)), absolute(imag(x)))


def taxicab(x: Value) -> Value:
    """Returns the sum of the absolute values of the real and the imaginary part."""
    from ..conversion import imag, real

    if not dtypes.is_complex(x.dtype):
        return absolute(x)
    return add(absolute(real(x)), absolute(imag(x)))


def is_zero(x: Value) -> Value:
    """Returns where x is zero."""
    from ..elementwise import eq

    return eq(x, 0)


def with_stack_beside_nan(samples: list[Sample]) -> list[Sample]:
    """Adds the first sample in a stack of rank 6, beside one in which all numbers are nan."""

    def stack(x: np.ndarray) -> np.ndarray:
        other = np.full_like(x, np.nan) if dtypes.is_inexact(x.dtype) else x
        return np.stack([x, other]).reshape(1, 2, 1, 1, *x.shape)

    args = tuple(stack(np.asarray(x)) for x in samples[0].args)
    return [*samples, dataclasses.replace(samples[0], args=args, is_smooth=False)]
