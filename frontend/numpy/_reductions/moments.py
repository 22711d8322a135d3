"""Means, averages, variances and standard deviations along axes.

They are computed in a float dtype for integers, and in float32 for half precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal, overload

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import (
    Axes,
    DTypeLike,
    UserObject,
)
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import ParameterError, ShapeError
from axir.dialect.core.types import ShapedArray
from axir.dialect.ops.elementwise.arithmetic import div, mul, square, sub
from axir.dialect.ops.elementwise.comparison import gt, select_n
from axir.dialect.ops.elementwise.conversion import conj, real
from axir.dialect.ops.elementwise.transcendental import sqrt
from axir.dialect.ops.reductions.blocks import reduce_in_blocks
from axir.dialect.ops.reductions.folding import accumulator_dtype
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.rearranging import transpose
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, reject_out, spread
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_arguments,
    constant,
    inexact_dtype,
    promote_arguments,
)
from axir.numpy._elementwise.elementwise import are_local, evaluate

from .reductions import SUM, as_mask, converted

__all__ = ["average", "mean", "std", "var"]


# Concrete arrays of these dtypes are evaluated by NumPy in one step instead of op by op.
_DIRECT = frozenset((dtypes.float32, dtypes.float64))


def _evaluated(
    name: str, function: Callable[..., object], a: ConcreteArray, axis: Axes, keepdims: bool,
    correction: object = 0,
) -> Value:  # fmt: skip
    """Computes a function of a concrete array, its axes, their number of elements, and so on."""
    axes = canonical_axes(name, axis, a.type.ndim)
    compute, result_type = _plan(function, a.type, axes, bool(keepdims), correction)
    return evaluate(name, compute, result_type, a)


@lru_cache(maxsize=1024)
def _plan(
    function: Callable[..., object],
    a: ShapedArray,
    axes: tuple[int, ...],
    keepdims: bool,
    correction: UserObject,
) -> tuple[Callable[..., object], ShapedArray]:
    count = math.prod([a.shape[d] for d in axes])
    extents = [1 if d in axes else extent for d, extent in enumerate(a.shape)]
    shape = tuple([n for d, n in enumerate(extents) if keepdims or d not in axes])
    number = a.dtype.type
    remaining = count - correction
    compute = partial(
        function,
        axes=axes,
        keepdims=keepdims,
        count=number(count),
        divisor=number(remaining if remaining > 0 else np.nan),
    )
    return compute, ShapedArray(shape, a.dtype)


def _mean_of(
    x: np.ndarray, axes: tuple[int, ...], keepdims: bool, count: object, divisor: ArrayLike
) -> object:
    return reduce_in_blocks(np.add, x, axes, keepdims=keepdims) / count


def _variance_of(
    x: np.ndarray, axes: tuple[int, ...], keepdims: bool, count: object, divisor: ArrayLike
) -> UserObject:
    distance = x - reduce_in_blocks(np.add, x, axes, keepdims=True) / count
    distance *= distance
    return reduce_in_blocks(np.add, distance, axes, keepdims=keepdims) / divisor


def _deviation_of(
    x: np.ndarray, axes: tuple[int, ...], keepdims: bool, count: object, divisor: ArrayLike
) -> object:
    return np.sqrt(_variance_of(x, axes, keepdims, count, divisor))


def element_count(
    name: str,
    shape: tuple[int, ...],
    axis: Axes,
    keepdims: bool,
    where: ArrayLike | None,
    dtype: np.dtype,
) -> Value:
    """Counts the elements along axes, those that `where` chooses, in a dtype."""
    if where is None:
        axes = canonical_axes(name, axis, len(shape))
        return constant(math.prod([shape[i] for i in axes]), dtype)
    mask = spread(as_mask(name, where), shape)
    return SUM.apply(mask, dtype, axis, keepdims, None, None)


def mean(
    a: UserObject,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: UserObject = None,
) -> Value:
    """Averages elements along axes.

    Args:
        a: Array of any shape and dtype.
        axis: Axis or tuple of axes; all by default.
        dtype: dtype of the result; by default `a`'s, a float dtype for integers.
        out: Not supported.
        keepdims: Whether the axes stay, with extent 1.
        where: Bool array of the elements to average, broadcast against `a`.

    Returns:
        An array without the axes; NaN where there are no elements.

    Raises:
        AxisError: for an axis out of range or named twice.

    >>> import axir.numpy as jnp
    >>> jnp.mean(jnp.array([[1, 2], [3, 5]]), axis=0)
    Array([2. , 3.5], dtype=float32)
    """
    is_known = type(a) is ConcreteArray and are_local(a)
    if is_known and dtype is None and where is None and a.type.dtype in _DIRECT:
        reject_out("mean", out)
        return _evaluated("mean", _mean_of, a, axis, keepdims)
    reject_out("mean", out)
    a = array_argument("mean", a)
    result = inexact_dtype(a.dtype) if dtype is None else dtypes.canonicalize_dtype(dtype)
    computed = accumulator_dtype(inexact_dtype(result))
    total = SUM.apply(a, computed, axis, keepdims, None, where)
    shape = a.shape if where is None else np.broadcast_shapes(a.shape, np.shape(where))
    count = element_count("mean", shape, axis, keepdims, where, computed)
    return converted(div(total, count), result)


@overload
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Value: ...
@overload
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Value, Value]: ...
def average(
    a: object,
    axis: Axes = None,
    weights: object = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Value | tuple[Value, Value]:
    """Averages elements along axes with weights.

    Args:
        a: Array.
        axis: Axis or tuple of axes; all by default.
        weights: Array of the shape of `a`, or of the extents of `axis` only; equal by default.
        returned: Whether to return the sums of the weights as well.
        keepdims: Whether the axes stay, with extent 1.

    Raises:
        ShapeError, ParameterError: if the weights do not fit.

    >>> import axir.numpy as jnp
    >>> jnp.average(jnp.array([1.0, 2.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.25, dtype=float32)
    """
    a = array_argument("average", a)
    axes = canonical_axes("average", axis, a.ndim)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        count = element_count("average", a.shape, axis, keepdims, None, result.dtype)
        return (result, broadcast_in_dim(count, result.shape, ())) if returned else result
    a, weights = promote_arguments("average", a, weights)
    dtype = inexact_dtype(a.dtype)
    a, weights = converted(a, dtype), converted(weights, dtype)
    if weights.shape != a.shape:
        weights = _spread_weights(a, weights, axis, axes)
    total = SUM.apply(weights, dtype, axis, keepdims, None, None)
    result = div(SUM.apply(mul(a, weights), dtype, axis, keepdims, None, None), total)
    return (result, total) if returned else result


def _spread_weights(a: Value, weights: Value, axis: Axes, axes: tuple[int, ...]) -> Value:
    if axis is None:
        raise ParameterError(
            f"jnp.average: axis must be specified when the shapes of a, {a.shape}, and of the "
            f"weights, {weights.shape}, differ.",
            "Pass axis, or weights of the shape of a.",
        )
    if weights.shape != tuple(a.shape[i] for i in axes):
        raise ShapeError(
            f"jnp.average: weights of shape {weights.shape} do not fit axes {axes} of an array of "
            f"shape {a.shape}.",
            "They have the shape of a, or the extents of the axes.",
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    if order != list(range(len(axes))):
        weights = transpose(weights, order)
    return broadcast_in_dim(weights, a.shape, sorted(axes))


def var(
    a: UserObject,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: object = None,
    mean: object = None,
    correction: int | float | None = None,
) -> Value:
    """Returns the variance along axes: the mean squared distance from the mean.

    Args:
        a: Array; for complex numbers the squared distance is real.
        axis: Axis or tuple of axes; all by default.
        dtype: dtype of the result; by default the dtype of (the real part of) `a`, a float dtype
            for integers.
        out: Not supported.
        ddof: What to subtract from the number of elements before dividing by it.
        keepdims: Whether the axes stay, with extent 1.
        where: Bool array of the elements to use, broadcast against `a`.
        mean: The mean, if known, with the axes kept.
        correction: Another name of `ddof`.

    Returns:
        An array without the axes; NaN where there are not more elements than `ddof`.

    Raises:
        ParameterError: if both ddof and correction are given, or if the dtype is real while `a` is
            complex.

    >>> import axir.numpy as jnp
    >>> jnp.var(jnp.array([1.0, 2.0, 3.0]), ddof=1)
    Array(1., dtype=float32)
    """
    reject_out("var", out)
    if _is_direct(a, dtype, where, mean, ddof, correction):
        correction = ddof if correction is None else correction
        return _evaluated("var", _variance_of, a, axis, keepdims, correction)
    return _variance("var", a, axis, dtype, ddof, keepdims, where, mean, correction)


def std(
    a: UserObject,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: object = None,
    mean: object = None,
    correction: int | float | None = None,
) -> Value:
    """Returns the standard deviation along axes, the square root of the variance; see `var`.

    >>> import axir.numpy as jnp
    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    reject_out("std", out)
    if _is_direct(a, dtype, where, mean, ddof, correction):
        correction = ddof if correction is None else correction
        return _evaluated("std", _deviation_of, a, axis, keepdims, correction)
    return sqrt(_variance("std", a, axis, dtype, ddof, keepdims, where, mean, correction))


def _is_direct(
    a: ArrayLike,
    dtype: DTypeLike,
    where: object,
    center: object,
    ddof: object,
    correction: object,
) -> bool:
    """Tells whether `_variance_of` handles the given arguments."""
    if type(a) is not ConcreteArray or a.type.dtype not in _DIRECT:
        return False
    if dtype is not None or where is not None or center is not None or type(ddof) is not int:
        return False
    return correction is None or (type(correction) in (int, float) and ddof == 0)


def _variance(
    name: str,
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike,
    ddof: object,
    keepdims: bool,
    where: UserObject,
    center: object,
    correction: object,
) -> Value:
    if correction is None:
        correction = ddof
    elif not isinstance(ddof, int) or ddof != 0:
        raise ParameterError(
            f"jnp.{name}: ddof={ddof} and correction={correction} say the same thing twice.",
            "Pass one of them.",
        )
    a = array_argument(name, a)
    computed, result = variance_dtypes(name, a.dtype, dtype)
    a = converted(a, computed)
    if center is None:
        center = mean(a, axis, keepdims=True, where=where)
    else:
        center = converted(array_argument(name, center), computed)
    a, center = broadcast_arguments(name, a, center)
    squares = squared_magnitude(sub(a, center))
    total = SUM.apply(squares, squares.dtype, axis, keepdims, None, where)
    shape = a.shape if where is None else np.broadcast_shapes(a.shape, np.shape(where))
    count = element_count(name, shape, axis, keepdims, where, squares.dtype)
    return normalized_squares(total, count, correction, result)


def variance_dtypes(name: str, dtype: np.dtype, asked: object) -> tuple[np.dtype, np.dtype]:
    """Returns the dtypes to compute a variance in, and of its result."""
    if asked is None:
        inexact = inexact_dtype(dtype)
        return accumulator_dtype(inexact), dtypes.real_dtype(inexact)
    result = dtypes.canonicalize_dtype(asked)
    if dtypes.is_complex(dtype) and not dtypes.is_complex(result):
        raise ParameterError(
            f"jnp.{name}: dtype={result} cannot hold the computation for {dtype} elements.",
            "Leave dtype out, and cast the result, which is real.",
        )
    return accumulator_dtype(inexact_dtype(result)), result


def squared_magnitude(x: Value) -> Value:
    """Returns x conj(x) as a real array."""
    return real(mul(x, conj(x))) if dtypes.is_complex(x.dtype) else square(x)


def normalized_squares(total: Value, count: Value, correction: object, dtype: np.dtype) -> Value:
    """Divides a sum of squares by count - correction, where that is positive; else NaN."""
    if not (isinstance(correction, (int, float)) and correction == 0):
        count = sub(count, converted(array_argument("var", correction), count.dtype))
    quotient = div(total, count)
    is_positive = gt(count, constant(0, count.dtype))
    if type(count) is ConcreteArray and not count.shape:
        # Known while tracing: no need to choose in the program.
        valid = bool(is_positive)
        result = quotient if valid else mul(quotient, constant(np.nan, count.dtype))
    else:
        result = select_n(is_positive, constant(np.nan, count.dtype), quotient)
    return converted(result, dtype)
