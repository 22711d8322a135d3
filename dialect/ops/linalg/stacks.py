"""Matrices as stacks with one batch axis, and blocks of them at places known at run time.

The portable algorithms use these functions on operands of shape (batch, rows, columns).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.symbolic_dims import as_traced, is_symbolic_dim
from axir.dialect.ops.control_flow.flat_loops import fori_values
from axir.dialect.ops.elementwise.arithmetic import abs as absolute
from axir.dialect.ops.elementwise.arithmetic import add, div, max, mul
from axir.dialect.ops.elementwise.comparison import and_, eq, ge, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type, imag, real
from axir.dialect.ops.elementwise.transcendental import sqrt
from axir.dialect.ops.indexing.dynamic_slicing import dynamic_slice, dynamic_update_slice
from axir.dialect.ops.reductions.reduce import reduce_max, reduce_sum
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim, broadcast_shapes
from axir.dialect.ops.shape.padding import pad
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Operand, Value

from .matrices import conjugated, positions, real_part

# Matrices up to this size are decomposed without blocks.
BLOCK = 32


def repeat(count: int, body: Callable[..., Sequence[Value]], *init: Value) -> list[Value]:
    """Applies `body(i, *values)` for i = 0, 1, ..., count - 1."""
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


def where(is_chosen: Value, chosen: Any, other: Any) -> Value:
    """Returns one of two values per element; at least one is an array, and extents of 1 stretch."""
    arrays = [x for x in (is_chosen, chosen, other) if np.ndim(x)]
    shape = broadcast_shapes(*(x.shape for x in arrays))
    mask, *cases = (spread(x, shape) if np.ndim(x) else x for x in (is_chosen, other, chosen))
    return select_n(mask, *cases)


def rows_at(x: Value, start: Value, count: int) -> Value:
    """Returns some rows, from one on that may be unknown."""
    return _block(x, start, count, 1)


def columns_at(x: Value, start: Value, count: int) -> Value:
    """Returns some columns, from one on that may be unknown."""
    return _block(x, start, count, 2)


def _block(x: Value, start: Value, count: int, axis: int) -> Value:
    sizes = tuple(count if d == axis else e for d, e in enumerate(x.shape))
    return dynamic_slice(x, _starts(start, axis), sizes, allow_negative_indices=False)


def with_rows(x: Value, rows: Value, start: Value) -> Value:
    """Returns x with some rows replaced."""
    return dynamic_update_slice(x, rows, _starts(start, 1), allow_negative_indices=False)


def with_columns(x: Value, columns: Value, start: Value) -> Value:
    """Returns x with some columns replaced."""
    return dynamic_update_slice(x, columns, _starts(start, 2), allow_negative_indices=False)


def _starts(start: Operand, axis: int) -> list[Operand]:
    zero = np.zeros((), getattr(start, "dtype", np.int32))
    return [start if d == axis else zero for d in range(3)]


def rows_of(x: Value) -> Value:
    """Returns the row of each element, as an op if x is traced."""
    return positions(x, x.shape, 1)


def columns_of(x: Value) -> Value:
    """Returns the column of each element, as an op if x is traced."""
    return positions(x, x.shape, 2)


def exchanged(x: Value, first: Value, second: Value, axis: int) -> Value:
    """Exchanges two rows (axis 1) or columns: all matrices share the first, not the second."""
    places = positions(x, x.shape, axis)
    is_second = eq(places, second)
    other = sum_over(where(is_second, x, 0), axis)
    moved = where(is_second, _block(x, first, 1, axis), x)
    return where(eq(places, first), other, moved)


def padded(x: Value, rows: int, columns: int) -> Value:
    """Adds rows and columns of zeros at the end."""
    if (rows, columns) == tuple(x.shape[1:]):
        return x
    extra = (0, rows - x.shape[1], 0), (0, columns - x.shape[2], 0)
    return pad(x, np.zeros((), x.dtype), ((0, 0, 0), *extra))


def padded_with_identity(x: Value, size: int) -> Value:
    """Extends square matrices to a size, by ones on the diagonal."""
    old = x.shape[1]
    if old == size:
        return x
    x = padded(x, size, size)
    rows = rows_of(x)
    first = convert_element_type(as_traced(old), dtypes.int32) if is_symbolic_dim(old) else old
    return where(and_(eq(rows, columns_of(x)), ge(rows, first)), 1, x)


def sum_over(x: Value, axis: int) -> Value:
    """Sums along an axis, which stays with extent 1."""
    return reshape(reduce_sum(x, (axis,)), _kept(x, axis))


def largest_over(x: Value, axis: int) -> Value:
    """Returns the largest elements along an axis, which stays with extent 1."""
    return reshape(reduce_max(x, (axis,)), _kept(x, axis))


def _kept(x: Value, axis: int) -> tuple[int, ...]:
    return tuple(1 if d == axis else e for d, e in enumerate(x.shape))


def squared(x: Value) -> Value:
    """Returns the real squares of the moduli."""
    return real_part(mul(x, conjugated(x)))


def norm_over(x: Value, axis: int) -> Value:
    """Returns Euclidean norms along an axis, which stays, without overflow."""
    scale = nonzero(largest_over(modulus(x), axis))
    scaled = div(absolute(x), scale)
    return mul(scale, sqrt(sum_over(mul(scaled, scaled), axis)))


def nonzero(x: Value) -> Value:
    """Returns x with ones in place of zeros, to divide by."""
    return where(is_zero(x), 1, x)


def modulus(x: Value) -> Value:
    """Returns the larger one of the absolute values of the real and the imaginary part."""
    if not dtypes.is_complex(x.dtype):
        return absolute(x)
    return max(absolute(real(x)), absolute(imag(x)))


def taxicab(x: Value) -> Value:
    """Returns the sum of the absolute values of the real and the imaginary part."""
    if not dtypes.is_complex(x.dtype):
        return absolute(x)
    return add(absolute(real(x)), absolute(imag(x)))


def is_zero(x: Value) -> Value:
    """Returns a mask that is true where x is zero."""
    return eq(x, 0)
