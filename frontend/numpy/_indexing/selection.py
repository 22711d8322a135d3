"""Choosing elements by conditions: `where`, `select`, `clip`, `nan_to_num`, `nonzero`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import overload

import ml_dtypes
import numpy as np

from axir.dialect.core import dtypes
from axir.dialect.core.annotations import UserObject
from axir.dialect.core.array import ArrayLike, ConcreteArray, from_numpy
from axir.dialect.core.errors import ConcretizationTypeError, DTypeError, ParameterError, ShapeError
from axir.dialect.core.symbolic_dims import as_extent, operation
from axir.dialect.ops.elementwise import arithmetic as lax
from axir.dialect.ops.elementwise import comparison
from axir.dialect.ops.elementwise.conversion import complex_, convert_element_type, imag, real
from axir.dialect.ops.indexing.scatter import ScatterDimensionNumbers, scatter
from axir.dialect.ops.reductions.cumulative import cumsum
from axir.dialect.ops.shape.concatenation import concatenate
from axir.dialect.ops.shape.constants import full as filled
from axir.dialect.ops.shape.constants import iota
from axir.dialect.ops.shape.rearranging import reshape
from axir.dialect.program.op_table import OPS
from axir.dialect.program.rules import Value
from axir.dialect.program.tracer import Tracer
from axir.numpy._arguments.promotion import (
    array_argument,
    broadcast_arguments,
    constant,
    not_an_array,
    promote_arguments,
)
from axir.numpy._elementwise.arithmetic import maximum, minimum
from axir.numpy._elementwise.logic import as_bool, isnan

_select_n = OPS["select_n"].bind

__all__ = ["argwhere", "clip", "extract", "flatnonzero", "nan_to_num", "nonzero", "select", "where"]


@overload
def where(
    condition: UserObject, /, *, size: int | None = ..., fill_value: ArrayLike | None = ...
) -> tuple[Value, ...]: ...


@overload
def where(condition: UserObject, x: UserObject, y: object, /) -> Value: ...


def where(
    condition: UserObject,
    x: UserObject = None,
    y: object = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> UserObject:
    """Chooses elements of `x` where a condition holds, else of `y`.

    Args:
        condition: Array of bools; numbers count as true unless they are zero.
        x: Array or scalar; without `x` and `y` the result is `nonzero(condition)`.
        y: Array or scalar; the shapes of all three broadcast.
        size: Without `x` and `y`: as of `nonzero`.
        fill_value: Without `x` and `y`: as of `nonzero`.

    Returns:
        Array of the dtype that `x` and `y` promote to.

    Raises:
        NonArrayArgumentError: for lists, or if one of `x` and `y` is missing.
        BroadcastError: if the shapes do not fit.

    >>> import axir.numpy as jnp
    >>> jnp.where(jnp.array([True, False]), jnp.array([1, 2]), 0)
    Array([1, 0], dtype=int32)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise not_an_array("where", None, 1 if x is None else 2)
    if size is not None or fill_value is not None:
        raise ParameterError("jnp.where: size and fill_value are for calls without x and y.")
    condition = as_bool("where", condition)
    x_is_array = type(x) is ConcreteArray or type(x) is Tracer
    if not (x_is_array and (type(y) is ConcreteArray or type(y) is Tracer) and x.type is y.type):
        x, y = promote_arguments("where", x, y)
    return _select_n(*broadcast_arguments("where", condition, y, x))


def select(condlist: Sequence[object], choicelist: Sequence[object], default: object = 0) -> Value:
    """Chooses for each element the choice of the first condition that holds.

    Args:
        condlist: Conditions.
        choicelist: As many arrays or scalars; all shapes broadcast.
        default: What to take where no condition holds.

    Raises:
        ParameterError: if the lists differ in length or are empty.

    >>> import axir.numpy as jnp
    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x > 2], [x, 10 * x], -1)
    Array([ 0, -1, -1, 30], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ParameterError(
            f"jnp.select: {len(condlist)} conditions and {len(choicelist)} choices.",
            "There must be one choice for each condition, and at least one.",
        )
    *choices, result = promote_arguments("select", *choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return result


def clip(
    arr: UserObject = None,
    /,
    min: UserObject = None,
    max: UserObject = None,
    *,
    a: UserObject = None,
    a_min: UserObject = None,
    a_max: UserObject = None,
) -> Value:
    """Limits elements to an interval.

    Args:
        arr: Array or scalar.
        min: Lower bound, array or scalar, or None.
        max: Upper bound, array or scalar, or None; it wins over the lower one.
        a: Old name of `arr`.
        a_min: Old name of `min`.
        a_max: Old name of `max`.

    Raises:
        DTypeError: for complex numbers, which have no order.

    >>> import axir.numpy as jnp
    >>> jnp.clip(jnp.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    x = array_argument("clip", a if arr is None else arr)
    lower = a_min if min is None else min
    upper = a_max if max is None else max
    if any(_is_complex(operand) for operand in (x, lower, upper)):
        raise DTypeError(
            "jnp.clip does not take complex numbers: they have no order.",
            "Clip jnp.real(x) and jnp.imag(x), or scale by jnp.abs(x).",
        )
    if lower is not None:
        x = maximum(x, lower)
    return x if upper is None else minimum(x, upper)


def _is_complex(x: ArrayLike) -> bool:
    return type(x) is complex or dtypes.is_complex(getattr(x, "dtype", None))  # type: ignore[arg-type]


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: object = 0.0,
    posinf: object = None,
    neginf: object = None,
) -> Value:
    """Replaces NaN and infinities by numbers.

    Args:
        x: Array or scalar.
        copy: Accepted for compatibility: arrays are immutable.
        nan: The replacement of NaN.
        posinf: The replacement of infinity; by default the largest number of the dtype.
        neginf: The replacement of minus infinity; by default the smallest number of the dtype.

    >>> import axir.numpy as jnp
    >>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
    Array([1., 0., 9.], dtype=float32)
    """
    x = array_argument("nan_to_num", x)
    if not dtypes.is_inexact(x.dtype):
        return convert_element_type(x, x.dtype)
    if dtypes.is_complex(x.dtype):
        parts = (nan_to_num(part, copy, nan, posinf, neginf) for part in (real(x), imag(x)))
        return complex_(*parts)
    info = ml_dtypes.finfo(x.dtype)
    posinf = float(info.max) if posinf is None else posinf
    neginf = float(info.min) if neginf is None else neginf
    infinity = constant(math.inf, x.dtype)
    tests = (isnan(x), comparison.eq(x, infinity), comparison.eq(x, constant(-math.inf, x.dtype)))
    result = convert_element_type(x, x.dtype)
    for test, value in zip(tests, (nan, posinf, neginf), strict=True):
        value = convert_element_type(array_argument("nan_to_num", value), x.dtype)
        result = comparison.select_n(*broadcast_arguments("nan_to_num", test, result, value))
    return result


# Positions of nonzero elements -----------------------------------------------------------------


def concrete_host(x: Value, use: str) -> np.ndarray:
    """Returns the elements of a value, where they are known.

    Raises:
        ConcretizationTypeError: for a tracer with a known type and an unknown value.
        KeyConversionError: for random keys.
    """
    while type(x) is Tracer:
        x = x.known(ConcretizationTypeError, use)
    return x._numbers()  # type: ignore[attr-defined]


def nonzero(
    a: object, *, size: int | None = None, fill_value: UserObject = None
) -> tuple[Value, ...]:
    """Returns the indices of the elements that are not zero.

    Args:
        a: Array.
        size: How many indices to return: the first ones, padded where there are fewer. Needed while
            only the type of `a` is known, as under `jit`.
        fill_value: What to pad with, a scalar or one for each axis; zero by default.

    Returns:
        One integer array of rank 1 for each axis.

    Raises:
        ConcretizationTypeError: under `jit`, without `size`.
        ShapeError: for a scalar, which has no axes.

    >>> import axir.numpy as jnp
    >>> jnp.nonzero(jnp.array([0, 5, 0, 7]))
    (Array([1, 3], dtype=int32),)
    """
    a = array_argument("nonzero", a)
    if a.ndim == 0:
        raise ShapeError(
            f"jnp.nonzero: {a.type} is a scalar, and an index of it names no axis.",
            "Take jnp.atleast_1d(x), or bool(x).",
        )
    if size is None:
        use = "to count the elements that are not zero; pass size=... to fix their number"
        found = np.nonzero(concrete_host(a, use))
        return tuple(from_numpy(_default_integers(positions)) for positions in found)
    return _padded_nonzero(a, as_extent(size), fill_value)


def _default_integers(positions: np.ndarray) -> np.ndarray:
    return positions.astype(dtypes.canonicalize_dtype(dtypes.int64))


def _padded_nonzero(a: Value, size: int, fill_value: ArrayLike) -> tuple[Value, ...]:
    integer = dtypes.canonicalize_dtype(dtypes.int64)
    is_set = reshape(as_bool("nonzero", a), (a.size,))
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * a.ndim
    if len(fills) != a.ndim:
        raise ParameterError(f"jnp.nonzero: {len(fills)} fill values for {a.ndim} axes.")
    # The n-th element that is set goes to place n; those that are not go beyond the end.
    count = cumsum(convert_element_type(is_set, integer), 0)
    beyond = constant(size, integer)
    places = comparison.select_n(is_set, beyond, lax.sub(count, constant(1, integer)))
    flat = scatter(
        filled((size,), -1, integer),
        reshape(places, (a.size, 1)),
        iota(integer, a.size),
        ScatterDimensionNumbers((), (0,), (0,)),
        mode="drop",
    )
    is_padding = comparison.lt(flat, constant(0, integer))
    results = []
    stride = a.size
    for extent, fill in zip(a.shape, fills, strict=True):
        stride = 0 if extent == 0 else stride // extent
        along = lax.div(flat, constant(_divisor(stride), integer))
        along = lax.rem(along, constant(_divisor(extent), integer))
        fill = convert_element_type(array_argument("nonzero", 0 if fill is None else fill), integer)
        results.append(comparison.select_n(is_padding, along, fill))
    return tuple(results)


def _divisor(extent: int) -> int:
    """Returns an extent, or one if it is zero, so that it can divide."""
    return operation("max", extent, 1)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Value:
    """Returns the indices, in row-major order, of the elements that are not zero.

    Takes the arguments and raises the errors of `nonzero`.

    >>> import axir.numpy as jnp
    >>> jnp.flatnonzero(jnp.array([[0, 5], [7, 0]]))
    Array([1, 2], dtype=int32)
    """
    a = array_argument("flatnonzero", a)
    return nonzero(reshape(a, (a.size,)), size=size, fill_value=fill_value)[0]


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Value:
    """Returns the indices of the elements that are not zero as rows of a matrix.

    Takes the arguments and raises the errors of `nonzero`.

    >>> import axir.numpy as jnp
    >>> jnp.argwhere(jnp.array([[0, 5], [7, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    a = array_argument("argwhere", a)
    if not a.ndim:  # an index of a scalar names no axis: there is a row or none
        (rows,) = nonzero(reshape(a, (1,)), size=size, fill_value=fill_value)
        return reshape(rows, (rows.size, 1))[:, :0]
    found = nonzero(a, size=size, fill_value=fill_value)
    return concatenate([reshape(positions, (positions.size, 1)) for positions in found], 1)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Value:
    """Returns the elements of an array where a condition holds, in row-major order.

    Args:
        condition: Array of as many elements.
        arr: The array.
        size: How many to return, padded with `fill_value`; needed under `jit`.
        fill_value: What to pad with.

    >>> import axir.numpy as jnp
    >>> jnp.extract(jnp.array([True, False, True]), jnp.arange(3))
    Array([0, 2], dtype=int32)
    """
    arr = array_argument("extract", arr, 1)
    flat = reshape(arr, (arr.size,))
    positions = flatnonzero(condition, size=size, fill_value=arr.size)
    return flat.at[positions].get(mode="fill", fill_value=fill_value)
