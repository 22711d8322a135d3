"""Reductions along axes: `sum`, `max`, `mean`, `var`, `argmax` and their like.

Sums and products of bools and narrow integers are computed in the default integer dtype, means and
variances of integers in a float dtype, and half precision accumulates in float32. Results are
never weakly typed. What does not live here: reductions that skip NaNs (`nan_reductions.py`),
running ones (`cumulative.py`) and order statistics (`quantiles.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from axir.dialect import dtypes
from axir.dialect.array import Array, scalar
from axir.dialect.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.ops import arg_reduce, reduce
from axir.dialect.ops.broadcasting import broadcast_in_dim
from axir.dialect.ops.conversion import conj, convert_element_type, real
from axir.dialect.ops.elementwise import add, and_, div, gt, mul, or_, select_n, square, sub
from axir.dialect.ops.elementwise import max as maximum
from axir.dialect.ops.elementwise import min as minimum
from axir.dialect.ops.folding import greatest, least
from axir.dialect.ops.shape import reshape
from axir.dialect.ops.transcendental import sqrt
from axir.dialect.tracer import Tracer

from .checks import all_axes, canonical_axes, canonical_axis, reject_out, spread
from .promotion import array_argument, broadcast_arguments, promote_arguments

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "max", "mean",
    "min", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip

Value = Any

# dtypes of results -----------------------------------------------------------------------------


def promoted_integer(dtype: np.dtype) -> np.dtype:
    """Returns the dtype in which to add elements of a dtype: bools and integers widen."""
    if dtypes.is_inexact(dtype):
        return dtype
    default = dtypes.canonicalize_dtype(np.uint64 if dtypes.is_unsigned(dtype) else np.int64)
    return dtype if dtype.itemsize >= default.itemsize and dtype != dtypes.bool_ else default


def inexact_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the float dtype in which to average integers; inexact dtypes stay."""
    if dtypes.is_inexact(dtype):
        return dtype
    return dtypes.float64 if dtype in (dtypes.int64, dtypes.uint64) else dtypes.float32


def computation_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype to compute in: float32 for half precision."""
    return dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype


def converted(x: Value, dtype: np.dtype) -> Value:
    """Converts to a dtype that is not weak."""
    if x.type.dtype is dtype and not x.type.weak_type:
        return x
    return convert_element_type(x, dtype)


# One associative operation ---------------------------------------------------------------------


class _Reduction:
    """A reduction by one associative operation, with the arguments that all of them take.

    Attributes:
        name: Of the function.
        reduce: The op's function of an array and axes.
        combine: The operation on two values, for `initial`.
        identity: Its neutral element by dtype, for `where`; None if `initial` must be given.
    """

    def __init__(
        self,
        name: str,
        op: Callable[..., Value],
        combine: Callable[..., Value],
        identity: Callable[[np.dtype], Any] | None,
    ):
        self.name = name
        self.reduce = op
        self.combine = combine
        self.identity = identity

    def apply(
        self, a: Value, dtype: np.dtype, axis: Any, keepdims: bool, initial: Any, where: Any
    ) -> Value:
        """Reduces an array in a dtype."""
        a = converted(a, dtype)
        axes = canonical_axes(self.name, axis, a.ndim)
        if self.identity is None:
            self._check_identity(a.shape, axes, initial, where)
        if where is not None:
            a = self._masked(a, where, initial)
            axes = axes if axis is not None else all_axes(a.ndim)
        result = self.reduce(a, axes)
        if initial is not None:
            start = array_argument(self.name, initial)
            if start.shape:
                raise ShapeError(
                    f"jnp.{self.name}: initial must be a scalar, but it is {start.aval}.",
                    "Combine arrays with the result afterwards.",
                )
            result = self.combine(result, converted(start, dtype))
        return keep_axes(result, a.shape, axes) if keepdims else result

    def _masked(self, a: Value, where: Any, initial: Any) -> Value:
        if self.identity is not None:
            neutral: Any = scalar(self.identity(a.dtype), a.dtype, weak_type=False)
        else:
            neutral = converted(array_argument(self.name, initial), a.dtype)
        mask = as_mask(self.name, where)
        a, mask = broadcast_arguments(self.name, a, mask)
        return select_n(mask, neutral, a)

    def _check_identity(
        self, shape: tuple[int, ...], axes: tuple[int, ...], initial: Any, where: Any
    ) -> None:
        if initial is not None:
            return
        if where is not None:
            raise ParameterError(
                f"jnp.{self.name}: reduction operation {self.name} does not have an identity, so "
                "that there is no result where `where` excludes all elements.",
                "Pass the result for this case as `initial`.",
            )
        if 0 in [shape[axis] for axis in axes]:
            raise ParameterError(
                f"jnp.{self.name}: zero-size array to reduction operation {self.name} which has "
                f"no identity; the shape is {shape} and the axes {axes}.",
                "Pass the result for this case as `initial`.",
            )


def as_mask(name: str, where: Any) -> Value:
    """Returns a `where` argument, which must hold bools."""
    mask = array_argument(name, where)
    if mask.dtype != dtypes.bool_:
        raise DTypeError(
            f"jnp.{name}: where must be a bool array, but it is {mask.aval}.",
            "Compare, as in where=x > 0, or cast with .astype(bool).",
        )
    return mask


def keep_axes(result: Value, shape: tuple[int, ...], axes: tuple[int, ...]) -> Value:
    """Puts the reduced axes back with extent 1."""
    if not axes:
        return result
    kept = tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])
    return reshape(result, kept)


_SUM = _Reduction("sum", reduce.reduce_sum, add, lambda dtype: 0)
_PROD = _Reduction("prod", reduce.reduce_prod, mul, lambda dtype: 1)
_MAX = _Reduction("max", reduce.reduce_max, maximum, None)
_MIN = _Reduction("min", reduce.reduce_min, minimum, None)
_ALL = _Reduction("all", reduce.reduce_and, and_, lambda dtype: True)
_ANY = _Reduction("any", reduce.reduce_or, or_, lambda dtype: False)
_bind_sum = reduce.reduce_sum.primitive.bind  # type: ignore[attr-defined]
_bind_max = reduce.reduce_max.primitive.bind  # type: ignore[attr-defined]
_bind_min = reduce.reduce_min.primitive.bind  # type: ignore[attr-defined]


def _is_plain(a: Any) -> bool:
    """Tells whether an argument is a non-empty array whose dtype no reduction changes."""
    if type(a) is not Array and type(a) is not Tracer:
        return False
    array_type = a.type
    return dtypes.is_inexact(array_type.dtype) and not array_type.weak_type


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Value:
    """Adds elements along axes.

    Args:
        a: Array of any shape and dtype.
        axis: Axis or tuple of axes; all by default.
        dtype: dtype to add in and of the result; by default that of `a`, save that bools and narrow
            integers widen to the default integer dtype.
        out: Not supported.
        keepdims: Whether the axes stay, with extent 1.
        initial: Scalar to start from.
        where: Bool array of the elements to add, broadcast against `a`.
        promote_integers: Whether integers widen.

    Returns:
        An array without the axes. Half precision accumulates in float32; integers wrap.

    Raises:
        AxisError: for an axis out of range or named twice.

    >>> import axir.numpy as jnp
    >>> jnp.sum(jnp.array([[1, 2], [3, 4]], jnp.int8), axis=0)
    Array([4, 6], dtype=int32)
    """
    if (
        axis is None and where is None and dtype is None and initial is None and out is None
        and not keepdims and _is_plain(a)
    ):  # fmt: skip
        return _bind_sum(a, axes=all_axes(a.type.ndim))
    reject_out("sum", out)
    a = array_argument("sum", a)
    result = _sum_dtype(a.dtype, dtype, promote_integers)
    return _SUM.apply(a, result, axis, keepdims, initial, where)


def _sum_dtype(dtype: np.dtype, asked: Any, promote_integers: bool = True) -> np.dtype:
    if asked is not None:
        return dtypes.canonicalize_dtype(asked)
    return promoted_integer(dtype) if promote_integers else dtype


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Value:
    """Multiplies elements along axes; arguments and errors are those of `sum`.

    >>> import axir.numpy as jnp
    >>> jnp.prod(jnp.array([2.0, 3.0]), initial=10)
    Array(60., dtype=float32)
    """
    reject_out("prod", out)
    a = array_argument("prod", a)
    result = _sum_dtype(a.dtype, dtype, promote_integers)
    return _PROD.apply(a, result, axis, keepdims, initial, where)


def max(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Value:
    """Returns the largest elements along axes, NaN where there is one.

    The gradient is shared equally by the elements that attain the maximum.

    Args:
        a: Array of any shape and dtype; complex numbers compare by real, then imaginary part.
        axis: Axis or tuple of axes; all by default.
        out: Not supported.
        keepdims: Whether the axes stay, with extent 1.
        initial: Scalar that takes part in the comparison; needed if there may be no elements.
        where: Bool array of the elements to compare, broadcast against `a`; needs `initial`.

    Raises:
        ParameterError: if there are no elements and no `initial`.
        AxisError: for an axis out of range or named twice.

    >>> import axir.numpy as jnp
    >>> jnp.max(jnp.array([[1, 4], [3, 2]]), axis=1)
    Array([4, 3], dtype=int32)
    """
    return _extremum(_MAX, _bind_max, a, axis, out, keepdims, initial, where)


def min(
    a: Any,
    axis: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Value:
    """Returns the smallest elements along axes, NaN where there is one; see `max`.

    >>> import axir.numpy as jnp
    >>> jnp.min(jnp.array([[1, 4], [3, 2]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    return _extremum(_MIN, _bind_min, a, axis, out, keepdims, initial, where)


amax, amin = max, min


def _extremum(
    reduction: _Reduction, bind: Callable[..., Value], a: Any, axis: Any, out: Any, keepdims: bool,
    initial: Any, where: Any,
) -> Value:  # fmt: skip
    if axis is None and where is None and initial is None and not keepdims and out is None:
        if _is_plain(a) and a.type.size:
            return bind(a, axes=all_axes(a.type.ndim))
    reject_out(reduction.name, out)
    a = array_argument(reduction.name, a)
    return reduction.apply(a, a.dtype, axis, keepdims, initial, where)


def all(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Value:
    """Tells whether all elements along axes are nonzero (NaN is); True where there are none.

    >>> import axir.numpy as jnp
    >>> jnp.all(jnp.array([[1, 0], [3, 2]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    reject_out("all", out)
    a = array_argument("all", a)
    return _ALL.apply(a, dtypes.bool_, axis, keepdims, None, where)


def any(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Value:
    """Tells whether any element along axes is nonzero (NaN is); False where there are none.

    >>> import axir.numpy as jnp
    >>> jnp.any(jnp.array([[0, 0], [3, 2]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    reject_out("any", out)
    a = array_argument("any", a)
    return _ANY.apply(a, dtypes.bool_, axis, keepdims, None, where)


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Value:
    """Counts the nonzero elements along axes.

    >>> import axir.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([0, 5, 7]))
    Array(2, dtype=int32)
    """
    a = converted(array_argument("count_nonzero", a), dtypes.bool_)
    return _SUM.apply(a, promoted_integer(dtypes.bool_), axis, keepdims, None, None)


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Value:
    """Returns the largest less the smallest element along axes.

    >>> import axir.numpy as jnp
    >>> jnp.ptp(jnp.array([3.0, -1.0, 2.0]))
    Array(4., dtype=float32)
    """
    reject_out("ptp", out)
    a = array_argument("ptp", a)
    return sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


# Moments ---------------------------------------------------------------------------------------


def element_count(
    name: str, shape: tuple[int, ...], axis: Any, keepdims: bool, where: Any, dtype: np.dtype
) -> Value:
    """Counts the elements along axes, those that `where` chooses, in a dtype."""
    if where is None:
        axes = canonical_axes(name, axis, len(shape))
        return scalar(math.prod([shape[i] for i in axes]), dtype, weak_type=False)
    mask = spread(as_mask(name, where), shape)
    return _SUM.apply(mask, dtype, axis, keepdims, None, None)


def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Value:
    """Averages elements along axes.

    Args:
        a: Array of any shape and dtype.
        axis: Axis or tuple of axes; all by default.
        dtype: dtype of the result; by default that of `a`, a float dtype for integers.
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
    reject_out("mean", out)
    a = array_argument("mean", a)
    result = inexact_dtype(a.dtype) if dtype is None else dtypes.canonicalize_dtype(dtype)
    computed = computation_dtype(inexact_dtype(result))
    total = _SUM.apply(a, computed, axis, keepdims, None, where)
    shape = a.shape if where is None else np.broadcast_shapes(a.shape, np.shape(where))
    count = element_count("mean", shape, axis, keepdims, where, computed)
    return converted(div(total, count), result)


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Value:
    """Averages elements along axes with weights.

    Args:
        a: Array.
        axis: Axis or tuple of axes; all by default.
        weights: Array of the shape of `a`, or of the extents of `axis` alone; equal by default.
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
    total = _SUM.apply(weights, dtype, axis, keepdims, None, None)
    result = div(_SUM.apply(mul(a, weights), dtype, axis, keepdims, None, None), total)
    return (result, total) if returned else result


def _spread_weights(a: Value, weights: Value, axis: Any, axes: tuple[int, ...]) -> Value:
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
        from axir.dialect.ops.shape import transpose

        weights = transpose(weights, order)
    return broadcast_in_dim(weights, a.shape, sorted(axes))


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: int | float | None = None,
) -> Value:
    """Returns the variance along axes: the mean squared distance from the mean.

    Args:
        a: Array; for complex numbers the squared distance is real.
        axis: Axis or tuple of axes; all by default.
        dtype: dtype of the result; by default that of (the real part of) `a`, a float dtype for
            integers.
        out: Not supported.
        ddof: What to subtract from the number of elements before dividing by it.
        keepdims: Whether the axes stay, with extent 1.
        where: Bool array of the elements to use, broadcast against `a`.
        mean: The mean, if known, with the axes kept.
        correction: Another name of `ddof`.

    Returns:
        An array without the axes; NaN where there are not more elements than `ddof`.

    Raises:
        ParameterError: if both ddof and correction are given.
        DTypeError: if the dtype is real while `a` is complex.

    >>> import axir.numpy as jnp
    >>> jnp.var(jnp.array([1.0, 2.0, 3.0]), ddof=1)
    Array(1., dtype=float32)
    """
    reject_out("var", out)
    return _variance("var", a, axis, dtype, ddof, keepdims, where, mean, correction)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: int | float | None = None,
) -> Value:
    """Returns the standard deviation along axes, the square root of the variance; see `var`.

    >>> import axir.numpy as jnp
    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    reject_out("std", out)
    return sqrt(_variance("std", a, axis, dtype, ddof, keepdims, where, mean, correction))


def _variance(
    name: str, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, where: Any, center: Any,
    correction: Any,
) -> Value:  # fmt: skip
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
    total = _SUM.apply(squares, squares.dtype, axis, keepdims, None, where)
    shape = a.shape if where is None else np.broadcast_shapes(a.shape, np.shape(where))
    count = element_count(name, shape, axis, keepdims, where, squares.dtype)
    return normalized_squares(total, count, correction, result)


def variance_dtypes(name: str, dtype: np.dtype, asked: Any) -> tuple[np.dtype, np.dtype]:
    """Returns the dtypes to compute a variance in, and of its result."""
    if asked is None:
        inexact = inexact_dtype(dtype)
        return computation_dtype(inexact), dtypes.real_dtype(inexact)
    result = dtypes.canonicalize_dtype(asked)
    if dtypes.is_complex(dtype) and not dtypes.is_complex(result):
        raise DTypeError(
            f"jnp.{name}: dtype={result} cannot hold the computation for {dtype} elements.",
            "Leave dtype out, and cast the result, which is real.",
        )
    return computation_dtype(inexact_dtype(result)), result


def squared_magnitude(x: Value) -> Value:
    """Returns x conj(x) as a real array."""
    return real(mul(x, conj(x))) if dtypes.is_complex(x.dtype) else square(x)


def normalized_squares(total: Value, count: Value, correction: Any, dtype: np.dtype) -> Value:
    """Divides a sum of squares by count - correction, where that is positive; else NaN."""
    if not (isinstance(correction, (int, float)) and correction == 0):
        count = sub(count, converted(array_argument("var", correction), count.dtype))
    quotient = div(total, count)
    is_positive = gt(count, scalar(0, count.dtype, weak_type=False))
    if type(count) is Array and not count.shape:
        # Known while tracing: no need to choose in the program.
        valid = bool(is_positive)
        result = quotient if valid else mul(quotient, scalar(np.nan, count.dtype, weak_type=False))
    else:
        result = select_n(is_positive, scalar(np.nan, count.dtype, weak_type=False), quotient)
    return converted(result, dtype)


# Positions -------------------------------------------------------------------------------------


def argmax(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Value:
    """Returns the position of the largest element along an axis; the first of equal ones.

    Args:
        a: Array of real numbers or bools. NaN counts as the largest.
        axis: The axis; by default the position is that in the flattened array.
        out: Not supported.
        keepdims: Whether the axis stays, with extent 1.

    Returns:
        Positions of the default integer dtype.

    Raises:
        ParameterError: if the axis is empty.
        AxisError: if it is out of range.
        DTypeError: for complex numbers.

    >>> import axir.numpy as jnp
    >>> jnp.argmax(jnp.array([[1, 4], [3, 2]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    return position("argmax", arg_reduce.argmax, a, axis, out, keepdims)


def argmin(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Value:
    """Returns the position of the smallest element along an axis; see `argmax`.

    >>> import axir.numpy as jnp
    >>> jnp.argmin(jnp.array([[1, 4], [3, 2]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    return position("argmin", arg_reduce.argmin, a, axis, out, keepdims)


def position(
    name: str, find: Callable[..., Value], a: Any, axis: Any, out: Any, keepdims: bool | None
) -> Value:
    """Finds positions along an axis, or in the flattened array."""
    reject_out(name, out)
    a = array_argument(name, a)
    shape = a.shape
    if axis is None:
        flat, along = (a if a.ndim == 1 else reshape(a, (a.size,))), 0
    else:
        flat, along = a, canonical_axis(name, axis, a.ndim)
    if flat.shape[along] == 0:
        raise ParameterError(
            f"jnp.{name}: attempt to get {name} of an empty sequence; the shape is {shape}.",
            "There must be at least one element.",
        )
    result = find(flat, along, dtypes.canonicalize_dtype(np.int64))
    if not keepdims:
        return result
    return keep_axes(result, shape, all_axes(len(shape)) if axis is None else (along,))
