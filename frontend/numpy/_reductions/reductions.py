"""Reductions along axes by one associative operation: `sum`, `max`, `any`, and similar functions.

Sums and products of bools and narrow integers are computed in the default integer dtype. Results
are never weakly typed. Elsewhere: means and variances (`moments.py`), positions (`positions.py`),
reductions that skip NaNs (`nan_reductions.py`), running ones (`cumulative.py`) and order statistics
(`quantiles.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, DTypeLike, UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray
from axir.dialect.core.errors import DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import check_decided
from axir.dialect.ops.elementwise.arithmetic import add, mul, sub
from axir.dialect.ops.elementwise.arithmetic import max as maximum
from axir.dialect.ops.elementwise.arithmetic import min as minimum
from axir.dialect.ops.elementwise.comparison import and_, ne, or_, select_n
from axir.dialect.ops.elementwise.conversion import convert_element_type
from axir.dialect.ops.reductions import reduce
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.checks import all_axes, canonical_axes, reject_out
from axir.numpy._arguments.promotion import array_argument, broadcast_arguments, constant

__all__ = [
    "all", "amax", "amin", "any", "count_nonzero", "max", "min", "minmax",
    "prod", "ptp", "sum",
]  # fmt: skip


# dtypes of results -----------------------------------------------------------------------------


def promoted_integer(dtype: np.dtype) -> np.dtype:
    """Returns the dtype in which to add elements of a dtype: bools and integers widen."""
    if dtypes.is_inexact(dtype):
        return dtype
    default = dtypes.canonicalize_dtype(np.uint64 if dtypes.is_unsigned(dtype) else np.int64)
    return dtype if dtype.itemsize >= default.itemsize and dtype != dtypes.bool_ else default


def converted(x: Value, dtype: np.dtype) -> Value:
    """Converts to a dtype that is not weak."""
    if x.type.dtype is dtype and not x.type.weak_type:
        return x
    if dtype == dtypes.bool_:
        return ne(x, constant(0, x.type.dtype))
    return convert_element_type(x, dtype)


# One associative operation ---------------------------------------------------------------------


class Reduction:
    """A reduction by one associative operation, with the arguments that all of them take.

    Attributes:
        name: The function's name.
        reduce: The op's function of an array and axes.
        combine: The operation on two values, for `initial`.
        identity: Its neutral element by dtype, for `where`; None if `initial` must be given.
        of_bools: The operation for truth values, if it differs.
    """

    def __init__(
        self,
        name: str,
        op: Callable[..., Value],
        combine: Callable[..., Value],
        identity: Callable[[np.dtype], UserObject] | None,
        of_bools: Reduction | None = None,
    ):
        self.name = name
        self.reduce = op
        self.combine = combine
        self.identity = identity
        self.of_bools = of_bools

    def apply(
        self,
        a: Value,
        dtype: np.dtype,
        axis: Axes,
        keepdims: bool,
        initial: ArrayLike | None,
        where: ArrayLike | None,
    ) -> Value:
        """Reduces an array in a dtype."""
        if dtype == dtypes.bool_ and self.of_bools is not None:
            return self.of_bools.apply(a, dtype, axis, keepdims, initial, where)
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

    def _masked(self, a: Value, where: ArrayLike, initial: ArrayLike | None) -> Value:
        if self.identity is not None:
            neutral: UserObject = constant(self.identity(a.dtype), a.dtype)
        else:
            neutral = converted(array_argument(self.name, initial), a.dtype)
        mask = as_mask(self.name, where)
        a, mask = broadcast_arguments(self.name, a, mask)
        return select_n(mask, neutral, a)

    def _check_identity(
        self,
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        initial: ArrayLike | None,
        where: object,
    ) -> None:
        if initial is not None:
            return
        if where is not None:
            raise ParameterError(
                f"jnp.{self.name}: reduction operation {self.name} does not have an identity, so "
                "that there is no result where `where` excludes all elements.",
                "Pass the result for this case as `initial`.",
            )
        reduced = tuple([shape[axis] for axis in axes])
        check_decided(reduced, 0)
        if 0 in reduced:
            raise ParameterError(
                f"jnp.{self.name}: zero-size array to reduction operation {self.name} which has "
                f"no identity; the shape is {shape} and the axes {axes}.",
                "Pass the result for this case as `initial`.",
            )


def as_mask(name: str, where: ArrayLike) -> Value:
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


SUM = Reduction(
    "sum",
    reduce.reduce_sum,
    add,
    lambda dtype: 0,
    Reduction("sum", reduce.reduce_or, or_, lambda dtype: False),
)
_PROD = Reduction(
    "prod",
    reduce.reduce_prod,
    mul,
    lambda dtype: 1,
    Reduction("prod", reduce.reduce_and, and_, lambda dtype: True),
)
_MAX = Reduction("max", reduce.reduce_max, maximum, None)
_MIN = Reduction("min", reduce.reduce_min, minimum, None)
_ALL = Reduction("all", reduce.reduce_and, and_, lambda dtype: True)
_ANY = Reduction("any", reduce.reduce_or, or_, lambda dtype: False)
_bind_sum = reduce.reduce_sum.primitive.bind
_bind_max = reduce.reduce_max.primitive.bind
_bind_min = reduce.reduce_min.primitive.bind


def _is_plain(a: ArrayLike) -> bool:
    """Tells whether an argument is a non-empty array with a dtype that no reduction changes."""
    if type(a) is not ConcreteArray and type(a) is not Tracer:
        return False
    array_type = a.type
    return dtypes.is_inexact(array_type.dtype) and not array_type.weak_type


def sum(
    a: UserObject,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: UserObject = None,
    where: UserObject = None,
    promote_integers: bool = True,
) -> Value:
    """Adds elements along axes.

    Args:
        a: Array of any shape and dtype.
        axis: Axis or tuple of axes; all by default.
        dtype: dtype to add in and of the result; by default `a`'s, save that bools and narrow
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
    return SUM.apply(a, result, axis, keepdims, initial, where)


def _sum_dtype(dtype: np.dtype, asked: object, promote_integers: bool = True) -> np.dtype:
    if asked is not None:
        return dtypes.canonicalize_dtype(asked)
    return promoted_integer(dtype) if promote_integers else dtype


def prod(
    a: object,
    axis: Axes = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: UserObject = None,
    where: UserObject = None,
    promote_integers: bool = True,
) -> Value:
    """Multiplies elements along axes; takes the arguments and raises the errors of `sum`.

    >>> import axir.numpy as jnp
    >>> jnp.prod(jnp.array([2.0, 3.0]), initial=10)
    Array(60., dtype=float32)
    """
    reject_out("prod", out)
    a = array_argument("prod", a)
    result = _sum_dtype(a.dtype, dtype, promote_integers)
    return _PROD.apply(a, result, axis, keepdims, initial, where)


def max(
    a: object,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: object = None,
    where: object = None,
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
    a: object,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: object = None,
    where: object = None,
) -> Value:
    """Returns the smallest elements along axes, NaN where there is one; see `max`.

    >>> import axir.numpy as jnp
    >>> jnp.min(jnp.array([[1, 4], [3, 2]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    return _extremum(_MIN, _bind_min, a, axis, out, keepdims, initial, where)


amax, amin = max, min


def minmax(
    a: object,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: object = None,
    where: object = None,
) -> tuple[Value, Value]:
    """Returns the smallest and the largest elements along axes; see `min` and `max`.

    Args:
        a, axis, out, keepdims, where: As of `max`.
        initial: Scalar that takes part in both comparisons, or one for each.

    >>> import axir.numpy as jnp
    >>> jnp.minmax(jnp.array([[1, 4], [3, 2]]), axis=1)
    (Array([1, 2], dtype=int32), Array([4, 3], dtype=int32))
    """
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    return (
        _extremum(_MIN, _bind_min, a, axis, out, keepdims, low, where),
        _extremum(_MAX, _bind_max, a, axis, out, keepdims, high, where),
    )


def _extremum(
    reduction: Reduction,
    bind: Callable[..., Value],
    a: UserObject,
    axis: Axes,
    out: object,
    keepdims: bool,
    initial: UserObject,
    where: UserObject,
) -> Value:
    if axis is None and where is None and initial is None and not keepdims and out is None:
        if _is_plain(a) and a.type.size:
            return bind(a, axes=all_axes(a.type.ndim))
    reject_out(reduction.name, out)
    a = array_argument(reduction.name, a)
    return reduction.apply(a, a.dtype, axis, keepdims, initial, where)


def all(
    a: object,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: UserObject = None,
) -> Value:
    """Tells whether all elements along axes are nonzero (NaN is); True for empty axes.

    >>> import axir.numpy as jnp
    >>> jnp.all(jnp.array([[1, 0], [3, 2]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    reject_out("all", out)
    a = array_argument("all", a)
    return _ALL.apply(a, dtypes.bool_, axis, keepdims, None, where)


def any(
    a: object,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: UserObject = None,
) -> Value:
    """Tells whether any element along axes is nonzero (NaN is); False for empty axes.

    >>> import axir.numpy as jnp
    >>> jnp.any(jnp.array([[0, 0], [3, 2]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    reject_out("any", out)
    a = array_argument("any", a)
    return _ANY.apply(a, dtypes.bool_, axis, keepdims, None, where)


def count_nonzero(a: object, axis: Axes = None, keepdims: bool = False) -> Value:
    """Counts the nonzero elements along axes.

    >>> import axir.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([0, 5, 7]))
    Array(2, dtype=int32)
    """
    a = converted(array_argument("count_nonzero", a), dtypes.bool_)
    return SUM.apply(a, promoted_integer(dtypes.bool_), axis, keepdims, None, None)


def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Value:
    """Returns the largest less the smallest element along axes.

    >>> import axir.numpy as jnp
    >>> jnp.ptp(jnp.array([3.0, -1.0, 2.0]))
    Array(4., dtype=float32)
    """
    reject_out("ptp", out)
    a = array_argument("ptp", a)
    return sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))
