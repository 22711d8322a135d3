"""Shared code of reductions: axes arithmetic, identities, samples, folds of several arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Scalar
from axir.dialect.core.errors import AxisError, DTypeError
from axir.dialect.core.symbolic_dims import is_symbolic_dim
from axir.dialect.ops.elementwise.samples import random_values
from axir.dialect.ops.later_ops import later
from axir.dialect.ops.shape import movement
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import (
    broadcast_in_dim,
    expand_dims,
    reshape,
    squeeze,
    transpose,
)
from axir.dialect.program.rules import Value

Combine = Callable[[list[Value], list[Value]], list[Value]]

# Axes ------------------------------------------------------------------------------------------


# The same axes repeat: a look-up is faster than checking them again.
canonical_axes = functools.lru_cache(maxsize=4096)(movement.canonical_axes)


def check_axes(name: str, axes: tuple[int, ...], ndim: int) -> None:
    """Raises `AxisError` unless the parameter has distinct, non-negative axes."""
    if canonical_axes(name, axes, ndim) != axes:
        raise AxisError(
            f"{name}: parameter axes={axes} has negative axes.", "Count from the first axis."
        )


def without(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Returns a shape without some of its axes."""
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


def spread(value: Value, shape: tuple[int, ...], axes: Sequence[int]) -> Value:
    """Broadcasts the result of a reduction over `axes` to the shape of its operand."""
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    return broadcast_in_dim(value, shape, kept)


def gather_axes(x: Value, axes: Sequence[int]) -> Value:
    """Merges `axes` into one last axis; a reduction over `axes` is a reduction over that axis."""
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    merged = math.prod(x.shape[axis] for axis in axes)
    permutation = (*kept, *axes)
    moved = x if permutation == tuple(range(x.ndim)) else transpose(x, permutation)
    return reshape(moved, (*without(x.shape, axes), merged))


def batch_axes(axis: int, axes: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Returns the reduced axes of a batched operand, and the batch axis of the result."""
    shifted = tuple(a + (a >= axis) for a in axes)
    return shifted, axis - sum(a < axis for a in shifted)


# dtypes and identities -------------------------------------------------------------------------


def check_dtype(name: str, dtype: np.dtype, domain: Sequence[np.dtype]) -> None:
    """Raises `DTypeError` unless the dtype is one that the op takes."""
    if dtype not in domain:
        raise DTypeError(
            f"{name} does not accept {dtype}; it takes {', '.join(map(str, domain))}.",
            "Cast with x.astype(dtype).",
        )


def accumulator_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype to accumulate in: half precision would lose the small terms."""
    return dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype


def least(dtype: np.dtype) -> Scalar:
    """Returns the identity of max."""
    if dtypes.is_float(dtype):
        return -np.inf
    if dtypes.is_complex(dtype):
        return complex(-np.inf, -np.inf)
    return False if dtype == dtypes.bool_ else ml_dtypes.iinfo(dtype).min


def greatest(dtype: np.dtype) -> Scalar:
    """Returns the identity of min."""
    if dtypes.is_float(dtype):
        return np.inf
    if dtypes.is_complex(dtype):
        return complex(np.inf, np.inf)
    return True if dtype == dtypes.bool_ else ml_dtypes.iinfo(dtype).max


def all_ones(dtype: np.dtype) -> bool | np.ndarray:
    """Returns the identity of bitwise and."""
    return True if dtype == dtypes.bool_ else np.array(-1).astype(dtype)


# Folds -----------------------------------------------------------------------------------------


def fold(combine: Combine, values: Sequence[Value]) -> list[Value]:
    """Combines neighbours along the last axis of all values, until one element is left.

    Args:
        combine: Associative; takes two lists of arrays of equal shape, the earlier elements first,
            and returns such a list.
        values: Arrays of equal shape; their last axis is not empty.

    Returns:
        The remaining element of each array, without the last axis.
    """
    values = list(values)
    axis = values[0].ndim - 1
    while (extent := values[0].shape[axis]) > 1:
        paired = extent - extent % 2
        lhs = [later.slice_in_dim(x, 0, paired, 2, axis) for x in values]
        rhs = [later.slice_in_dim(x, 1, paired, 2, axis) for x in values]
        combined = combine(lhs, rhs)
        if extent % 2:
            rest = [later.slice_in_dim(x, paired, extent, 1, axis) for x in values]
            combined = [
                concatenate([x, last], axis) for x, last in zip(combined, rest, strict=True)
            ]
        values = combined
    return [squeeze(x, (axis,)) for x in values]


def scan(combine: Combine, values: Sequence[Value], axis: int) -> list[Value]:
    """Returns all prefixes' combinations along an axis, in logarithmically many steps.

    Combines neighbours, scans the halves, which gives the results at odd positions, and combines
    those once more for the even ones (Blelloch, "Prefix Sums and Their Applications", 1990).

    Args:
        combine: Associative; takes two lists of arrays of equal shape, the earlier elements first,
            and returns such a list.
        values: Arrays of equal shape.
        axis: The axis to scan along.
    """
    values = list(values)
    extent = values[0].shape[axis]
    if is_symbolic_dim(extent):
        return scan_in_order(combine, values, [axis] * len(values))
    if extent < 2:
        return values
    paired = extent - extent % 2
    lhs = [later.slice_in_dim(x, 0, paired, 2, axis) for x in values]
    rhs = [later.slice_in_dim(x, 1, paired, 2, axis) for x in values]
    odd = scan(combine, combine(lhs, rhs), axis)
    first = [later.slice_in_dim(x, 0, 1, 1, axis) for x in values]
    if extent == 2:
        return [concatenate([a, b], axis) for a, b in zip(first, odd, strict=True)]
    before = [later.slice_in_dim(x, 0, (extent - 1) // 2, 1, axis) for x in odd]
    after = [later.slice_in_dim(x, 2, extent, 2, axis) for x in values]
    even = [concatenate([a, b], axis) for a, b in zip(first, combine(before, after), strict=True)]
    return [_interleave(a, b, axis) for a, b in zip(even, odd, strict=True)]


def scan_in_order(combine: Combine, values: Sequence[Value], axes: Sequence[int]) -> list[Value]:
    """Returns the results of `scan`, one element after the other; used for unknown extents.

    Args:
        combine: As in `scan`; its arrays have one element along the axis.
        values: Arrays.
        axes: The axis to scan along in each array.
    """
    places = list(zip(values, axes, strict=True))
    first = [later.slice_in_dim(x, 0, 1, 1, axis) for x, axis in places]
    behind = [_to_front(later.slice_in_dim(x, 1, None, 1, axis), axis) for x, axis in places]

    def step(*parts: Value) -> list[Value]:
        slices = [expand_dims(x, (axis,)) for x, axis in zip(parts[len(axes) :], axes, strict=True)]
        return [*combine(list(parts[: len(axes)]), slices)] * 2

    types = [x.type.strip_weak_type() for x in first]
    types += [x.type.strip_weak_type().update(shape=x.shape[1:]) for x in behind]
    body = later.trace_body(step, types, "combine")
    _, rest = later.bind_scan(body, [], first, behind, length=behind[0].shape[0])
    moved = [_from_front(squeeze(x, (n + 1,)), n) for x, n in zip(rest, axes, strict=True)]
    return [concatenate(pair, axis) for *pair, axis in zip(first, moved, axes, strict=True)]


def _to_front(x: Value, axis: int) -> Value:
    return transpose(x, (axis, *(n for n in range(x.ndim) if n != axis)))


def _from_front(x: Value, axis: int) -> Value:
    return transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _interleave(even: Value, odd: Value, axis: int) -> Value:
    """Alternates elements along an axis; `even` is as long as `odd`, or one longer."""
    count = odd.shape[axis]
    paired = later.slice_in_dim(even, 0, count, 1, axis)
    stacked = concatenate([expand_dims(x, (axis + 1,)) for x in (paired, odd)], axis + 1)
    merged = reshape(stacked, (*odd.shape[:axis], 2 * count, *odd.shape[axis + 1 :]))
    if even.shape[axis] == count:
        return merged
    return concatenate([merged, later.slice_in_dim(even, count, count + 1, 1, axis)], axis)


# Samples ---------------------------------------------------------------------------------------


def spaced_values(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Draws an array; its inexact elements differ so much that small steps keep their order."""
    if not dtypes.is_inexact(dtype):
        return random_values(generator, shape, dtype, 0, 2)
    size = math.prod(shape)
    values = generator.permutation(np.linspace(0.5, 2, size)).reshape(shape)
    if dtypes.is_complex(dtype):
        values = values + 1j * generator.uniform(-1, 1, shape)
    return values.astype(dtype)
