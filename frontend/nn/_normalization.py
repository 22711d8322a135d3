"""Functions along an axis: `softmax` and similar ones, `standardize`, and `one_hot`.

Gradients are finite where elements are masked, also where all of them are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axir._devices.placement import lies_where_told
from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import ParameterError
from axir.dialect.core.symbolic_dims import as_extent
from axir.dialect.ops.elementwise.arithmetic import add, div, mul, square, sub
from axir.dialect.ops.elementwise.arithmetic import max as maximum
from axir.dialect.ops.elementwise.comparison import eq, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type, stop_gradient
from axir.dialect.ops.elementwise.transcendental import exp, log, rsqrt
from axir.dialect.ops.reductions.blocks import reduce_in_blocks
from axir.dialect.ops.shape.broadcasting import broadcast_in_dim
from axir.dialect.ops.shape.constants import iota
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axes, canonical_axis, spread
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_arguments,
    constant,
    promote_inexact,
)
from axir.numpy._elementwise.elementwise import are_local, evaluate
from axir.numpy._reductions.logsumexp import is_narrow, logsumexp
from axir.numpy._reductions.moments import element_count
from axir.numpy._reductions.moments import mean as average
from axir.numpy._reductions.reductions import as_mask
from axir.numpy._reductions.reductions import max as largest
from axir.numpy._reductions.reductions import sum as total


def _is_known(x: Value) -> bool:
    """Tells whether NumPy computes with an array directly."""
    return (
        type(x) is ConcreteArray and x.type.dtype in _DIRECT and bool(x.type.size) and are_local(x)
    )


def _shifted(name: str, x: ArrayLike, axis: Axes, where: ArrayLike) -> tuple[Value, Value | None]:
    """Returns x less its maximum along axes, -inf where it is masked, and the mask."""
    (x,) = promote_inexact(f"nn.{name}", x)
    mask = None
    if where is not None:
        mask = as_mask(f"nn.{name}", where)
        x, mask = broadcast_arguments(f"nn.{name}", x, mask)
        x = select_n(mask, constant(-np.inf, x.dtype), x)
    peak = stop_gradient(largest(x, axis, keepdims=True, initial=-np.inf))
    if mask is not None:
        # If everything is masked, the maximum does not exist: subtract nothing.
        peak = select_n(eq(peak, constant(-np.inf, x.dtype)), peak, constant(0, x.dtype))
    return sub(x, spread(peak, x.shape)), mask


# Concrete arrays of these dtypes are evaluated by NumPy in one step instead of op by op.
_DIRECT = frozenset((dtypes.float32, dtypes.float64))


def _softmax_of(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    result = np.exp(x - np.maximum.reduce(x, axis=axes, keepdims=True))
    return result / reduce_in_blocks(np.add, result, axes, keepdims=True)


def _log_softmax_of(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    shifted = x - np.maximum.reduce(x, axis=axes, keepdims=True)
    return shifted - np.log(reduce_in_blocks(np.add, np.exp(shifted), axes, keepdims=True))


def softmax(x: UserObject, axis: UserObject = -1, where: UserObject = None) -> Value:
    """Returns exponentials, scaled so that they sum to one along axes.

    Args:
        x: Array.
        axis: Axis or tuple of axes.
        where: Bool array of the elements that take part; the result is zero elsewhere.

    Raises:
        AxisError: for an axis out of range.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    if is_narrow(x):
        wide = softmax(convert_element_type(x, dtypes.float32), axis, where)
        return convert_element_type(wide, x.dtype)
    if where is None and _is_known(x):
        axes = canonical_axes("nn.softmax", axis, x.ndim)
        return evaluate("nn.softmax", lambda v: _softmax_of(v, axes), x.type.strip_weak_type(), x)
    shifted, mask = _shifted("softmax", x, axis, where)
    exponentials = exp(shifted)
    sums = total(exponentials, axis, keepdims=True)
    if mask is not None:
        sums = select_n(eq(sums, constant(0, sums.dtype)), sums, constant(1, sums.dtype))
    return div(exponentials, spread(sums, shifted.shape))


def log_softmax(x: UserObject, axis: UserObject = -1, where: UserObject = None) -> Value:
    """Returns the logarithm of `softmax`, without underflow; -inf where elements are masked.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.log_softmax(jnp.array([1000.0, 0.0]))
    Array([    0., -1000.], dtype=float32)
    """
    if is_narrow(x):
        wide = log_softmax(convert_element_type(x, dtypes.float32), axis, where)
        return convert_element_type(wide, x.dtype)
    if where is None and _is_known(x):
        axes = canonical_axes("nn.log_softmax", axis, x.ndim)
        result = x.type.strip_weak_type()
        return evaluate("nn.log_softmax", lambda v: _log_softmax_of(v, axes), result, x)
    shifted, mask = _shifted("log_softmax", x, axis, where)
    sums = total(exp(shifted), axis, keepdims=True)
    if mask is not None:
        sums = select_n(eq(sums, constant(0, sums.dtype)), sums, constant(1, sums.dtype))
    result = sub(shifted, spread(log(sums), shifted.shape))
    # Selected once more, so that masked elements have zero derivatives.
    return result if mask is None else select_n(mask, constant(-np.inf, result.dtype), result)


def logmeanexp(
    x: ArrayLike, axis: UserObject = None, where: UserObject = None, keepdims: bool = False
) -> Value:
    """Returns the logarithm of the mean of exponentials along axes, without overflow.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.logmeanexp(jnp.array([2.0, 2.0]))
    Array(2., dtype=float32)
    """
    x = array_argument("nn.logmeanexp", x)
    if is_narrow(x):
        wide = logmeanexp(convert_element_type(x, dtypes.float32), axis, where, keepdims)
        return convert_element_type(wide, x.dtype)
    result = logsumexp(x, axis, keepdims=keepdims, where=where)
    shape = x.shape if where is None else np.broadcast_shapes(x.shape, np.shape(where))
    count = element_count("nn.logmeanexp", shape, axis, keepdims, where, result.dtype)
    return sub(result, log(count))


def standardize(
    x: ArrayLike,
    axis: Axes = -1,
    mean: ArrayLike | None = None,
    variance: object = None,
    epsilon: object = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Value:
    """Subtracts the mean along axes and divides by the standard deviation.

    Args:
        x: Array.
        axis: Axis or tuple of axes.
        mean, variance: If known; with the axes kept.
        epsilon: What to add to the variance before taking its root.
        where: Bool array of the elements that count for mean and variance.
        algorithm: 'fast' computes the variance as mean(x**2) - mean(x)**2, 'stable' as
            mean((x - mean(x))**2).

    Raises:
        ParameterError: for another algorithm.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.standardize(jnp.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    name = "nn.standardize"
    if algorithm not in ("fast", "stable"):
        raise ParameterError(
            f"{name}: algorithm {algorithm!r} is unknown.", "Pass 'fast' or 'stable'."
        )
    (x,) = promote_inexact(name, x)
    center = average(x, axis, keepdims=True, where=where) if mean is None else mean
    centered = sub(*broadcast_arguments(name, *promote_inexact(name, x, center)))
    if variance is None and algorithm == "stable":
        variance = average(square(centered), axis, keepdims=True, where=where)
    elif variance is None:
        squares = average(square(x), axis, keepdims=True, where=where)
        squares, center = broadcast_arguments(name, *promote_inexact(name, squares, center))
        variance = sub(squares, square(center))
        # Rounding may have made it negative.
        variance = maximum(variance, constant(0, variance.dtype))
    variance, epsilon = promote_inexact(name, variance, epsilon)
    scale = rsqrt(add(*broadcast_arguments(name, variance, epsilon)))
    return mul(*broadcast_arguments(name, *promote_inexact(name, centered, scale)))


@lies_where_told
def one_hot(
    x: ArrayLike | Sequence[object],
    num_classes: int,
    *,
    dtype: DTypeLike = None,
    axis: Axes = -1,
    out_sharding: object = None,
) -> Value:
    """Returns a vector for each integer, which is 1 at its place and 0 elsewhere.

    Args:
        x: Array or nested lists of integers; those out of range give zeros.
        num_classes: Length of the vectors.
        dtype: dtype of the result; by default the default float dtype.
        axis: Where the axis of the vectors stands in the result.
        out_sharding: Placement of the result: a sharding, or a `PartitionSpec`.

    Raises:
        AxisError: for an axis out of range.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    if isinstance(x, (tuple, list)):
        x = np.asarray(x)
    x = array_argument("nn.one_hot", x)
    if x.dtype != dtypes.bool_ and x.dtype.itemsize < 4:  # which may not hold all the classes
        wide = dtypes.int32 if dtypes.is_integer(x.dtype) else dtypes.float32
        x = convert_element_type(x, wide)
    count = as_extent(num_classes)
    axis = canonical_axis("nn.one_hot", axis, x.ndim + 1)
    shape = (*x.shape[:axis], count, *x.shape[axis:])
    kept = tuple(d for d in range(len(shape)) if d != axis)
    numbers = convert_element_type(iota(dtypes.int32, count), x.dtype)
    is_place = eq(broadcast_in_dim(x, shape, kept), broadcast_in_dim(numbers, shape, (axis,)))
    result = dtypes.canonicalize_dtype(np.float64 if dtype is None else dtype)
    return convert_element_type(is_place, result)


def normalize(
    x: ArrayLike,
    axis: Axes = -1,
    mean: ArrayLike | None = None,
    variance: object = None,
    epsilon: object = 1e-5,
    where: ArrayLike | None = None,
) -> Value:
    """Does what `standardize` does, under its older name; deprecated.

    >>> import axir, axir.numpy as jnp
    >>> axir.nn.normalize(jnp.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    return standardize(x, axis, mean, variance, epsilon, where)
