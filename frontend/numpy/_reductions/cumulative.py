"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import Axes, DTypeLike
from axir.dialect.core.array import ArrayLike
from axir.dialect.core.errors import AxisError
from axir.dialect.ops.elementwise.family import full
from axir.dialect.ops.reductions import cumulative
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.rules import Value
from axir.numpy._arguments.checks import canonical_axis, reject_out
from axir.numpy._arguments.promotion import array_argument

from .nan_reductions import without_nans
from .reductions import converted, promoted_integer

__all__ = [
    "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "nancumprod", "nancumsum",
]  # fmt: skip


def _accumulate(
    name: str,
    op: Callable[..., Value],
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike,
    out: object,
    substitute: object,
) -> Value:
    reject_out(name, out)
    a = array_argument(name, a)
    if axis is None:
        a, axis = (a if a.ndim == 1 else reshape(a, (a.size,))), 0
    else:
        axis = canonical_axis(name, axis, a.ndim)
    if substitute is not None:
        a = without_nans(a, substitute)
    if dtype is not None:
        dtype = dtypes.canonicalize_dtype(dtype)
    elif a.dtype == dtypes.bool_:
        dtype = promoted_integer(a.dtype)
    else:
        dtype = a.dtype
    if dtype == dtypes.bool_:
        wide = converted(converted(a, dtype), promoted_integer(dtype))
        return converted(op(wide, axis), dtype)
    return op(converted(a, dtype), axis)


def cumsum(a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None) -> Value:
    """Returns the sum of the elements up to and including each, along an axis.

    Args:
        a: Array of any shape and dtype.
        axis: The axis; by default the array is flattened.
        dtype: dtype of the result; by default `a`'s, for bools the default integer dtype.
        out: Not supported.

    Raises:
        AxisError: if the array has no such axis.

    >>> import axir.numpy as jnp
    >>> jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([[1, 2],
           [4, 6]], dtype=int32)
    """
    return _accumulate("cumsum", cumulative.cumsum, a, axis, dtype, out, None)


def cumprod(a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None) -> Value:
    """Returns the product of the elements up to and including each, along an axis; see `cumsum`.

    >>> import axir.numpy as jnp
    >>> jnp.cumprod(jnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _accumulate("cumprod", cumulative.cumprod, a, axis, dtype, out, None)


def nancumsum(a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None) -> Value:
    """Returns running sums that take NaN for zero; see `cumsum`.

    >>> import axir.numpy as jnp
    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    return _accumulate("nancumsum", cumulative.cumsum, a, axis, dtype, out, 0)


def nancumprod(a: ArrayLike, axis: Axes = None, dtype: DTypeLike = None, out: None = None) -> Value:
    """Returns running products that take NaN for one; see `cumsum`.

    >>> import axir.numpy as jnp
    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    return _accumulate("nancumprod", cumulative.cumprod, a, axis, dtype, out, 1)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Value:
    """Returns running sums, in the array API standard's form.

    Args:
        x: Array of at least one axis.
        axis: The axis; may be left out for vectors.
        dtype: dtype of the result; by default `sum`'s.
        include_initial: Whether the result begins with the sum of no elements.

    Raises:
        AxisError: for scalars, and if `axis` is left out for arrays of several axes.

    >>> import axir.numpy as jnp
    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _standard("cumulative_sum", cumulative.cumsum, x, axis, dtype, 0, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Value:
    """Returns running products, in the array API standard's form; see `cumulative_sum`.

    The dtype is by default `cumprod`'s: narrow integers stay.

    >>> import axir.numpy as jnp
    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _standard("cumulative_prod", cumulative.cumprod, x, axis, dtype, 1, include_initial)


def _standard(
    name: str, op: Callable[..., Value], x: ArrayLike, axis: Axes, dtype: DTypeLike, identity: int,
    include_initial: bool,
) -> Value:  # fmt: skip
    x = array_argument(name, x)
    if x.ndim == 0:
        raise AxisError(
            f"jnp.{name}: the input must be non-scalar, but it is {x.aval}.",
            "Reshape it to one axis first.",
        )
    if axis is None and x.ndim > 1:
        raise AxisError(
            f"jnp.{name}: axis must be given for an array of {x.ndim} axes, {x.aval}.",
            "Pass axis=0, or flatten the array.",
        )
    axis = canonical_axis(name, 0 if axis is None else axis, x.ndim)
    if dtype is None and op is cumulative.cumsum:
        dtype = promoted_integer(x.dtype)
    result = _accumulate(name, op, x, axis, dtype, None, None)
    if not include_initial:
        return result
    shape = tuple([1 if d == axis else extent for d, extent in enumerate(x.shape)])
    return concatenate([full(shape, identity, result.dtype), result], axis)
